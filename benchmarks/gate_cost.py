"""What the gate costs: `archc validate` as a whole process, against the script that one would write instead.

    python -m benchmarks.gate_cost [--runs 5] [--target smollm2-135m] [--threads 2]

The naive script imports torch and transformers, loads transformers' model and the generated module, runs each once on
64 tokens and compares. All rows take turns, so that a busy machine slows all of them alike; figures are medians of
whole processes, ratios are to the naive script. On a busy machine read the processor seconds, with --threads 1. A
split of the gate's own seconds, by its JSON, follows.

Targets: --quick at most 1.3 times the naive script; the default level without planted mistakes at most 2.5 times.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from archc.validation.validator import find_validator
from benchmarks.processes import Cost, measure, medians

NAIVE_ROW, FULL_ROW = "naive script", "archc validate"
NAIVE = """
import sys
import torch
from transformers import AutoModelForCausalLM
sys.path.insert(0, sys.argv[1])
from generated import Model
theirs = AutoModelForCausalLM.from_pretrained(sys.argv[2], dtype=torch.float32, attn_implementation="eager").eval()
ours = Model.from_pretrained(sys.argv[2])
ids = torch.randint(0, theirs.config.vocab_size, (1, 64), generator=torch.Generator().manual_seed(0))
with torch.no_grad():
    print(float((theirs(ids).logits - ours(ids)).abs().max()))
"""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="smollm2-135m", help="a validator that names its weights")
    parser.add_argument("--runs", type=int, default=5, help="runs of every row")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of every process")
    options = parser.parse_args()
    weights = find_validator(options.target).weights
    assert weights is not None, "the target names no weights"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(options.threads)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    archc = [sys.executable, "-m", "archc"]
    with tempfile.TemporaryDirectory() as folder:
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        result = Path(folder) / "result.json"
        measure([*archc, "generate", options.target, "-o", f"{folder}/generated.py"], environment)
        validate = [*archc, "validate", options.target, "--json", str(result), "--force"]
        rows = {
            NAIVE_ROW: [sys.executable, "-c", NAIVE, folder, str(weights)],
            f"{FULL_ROW} --quick": [*validate, "--quick"],
            FULL_ROW: validate,
        }
        costs: dict[str, list[Cost]] = {name: [] for name in rows}
        splits: dict[str, list[dict[str, float]]] = {name: [] for name in rows}
        for run in range(options.runs + 1):  # the first one makes bytecode, and is not counted
            for name, command in rows.items():
                cost = measure(command, environment)
                if run:
                    costs[name].append(cost)
                    splits[name].append({} if name == NAIVE_ROW else json.loads(result.read_text())["seconds"])
    typical = {name: medians(found) for name, found in costs.items()}
    base = typical[NAIVE_ROW]
    print(f"{options.threads} threads, {options.runs} runs of each")
    print(f"{'':<28}{'wall s':>9}{'cpu s':>9}{'MB':>9}{'× wall':>9}{'× cpu':>9}")
    for name, cost in typical.items():
        ratios = f"{cost.wall / base.wall:>9.2f}{cost.cpu / base.cpu:>9.2f}"
        print(f"{name:<28}{cost.wall:>9.2f}{cost.cpu:>9.2f}{cost.megabytes:>9.0f}{ratios}")
    planted = statistics.median(split["faults"] for split in splits[FULL_ROW])
    alone = typical[FULL_ROW].wall - planted
    print(f"{'  without planted mistakes':<28}{alone:>9.2f}{'':>18}{alone / base.wall:>9.2f}")
    for name in list(rows)[1:]:
        parts = {key: statistics.median(split[key] for split in splits[name]) for key in splits[name][0]}
        parts["outside"] = typical[name].wall - parts["total"]
        print(f"\n{name}, seconds by the clock: {', '.join(f'{key} {value:.2f}' for key, value in parts.items())}")


if __name__ == "__main__":
    main()
