"""What a size costs: archc, as a whole process from start to end, against importing alone and against transformers.

    python -m benchmarks.report_cold [--runs 15] [--as-is] [--skip-reference]

Rows: `archc report deepseek-v3 --json`; a Python that only imports pydantic, yaml and click; `archc compare` of one
spec and of 60; and the usual route to a parameter count, which builds the model on torch's meta device from the same
config. All rows take turns, so that a busy machine slows all of them alike; figures are medians. Python's bytecode is
cached in a folder of its own and made before anything is measured, as it is once a package is installed; --as-is
leaves the environment as it is.

Targets: report at most 2.5 times the imports and 80 MB; 60 specs less than a second more than one.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from benchmarks.processes import ROOT, Cost, measure, medians

MODEL = "deepseek-v3"
CONFIG = ROOT / "tests" / "specs" / "configs" / f"{MODEL}.json"
SPECS = sorted(path.stem for path in (ROOT / "specs").glob("*.yaml"))[:60]

ARCHC = [sys.executable, "-m", "archc"]
IMPORTS = "import pydantic, yaml, click"
META = f"""
import json, torch
from transformers import AutoConfig, AutoModelForCausalLM
config = AutoConfig.for_model(**json.load(open({str(CONFIG)!r})))
with torch.device("meta"):
    model = AutoModelForCausalLM.from_config(config)
print(sum(parameter.numel() for parameter in model.parameters()))
"""
ROWS = {
    f"archc report {MODEL} --json": [*ARCHC, "report", MODEL, "--json"],
    IMPORTS: [sys.executable, "-c", IMPORTS],
    "archc compare, one spec": [*ARCHC, "compare", MODEL, "--json"],
    f"archc compare, {len(SPECS)} specs": [*ARCHC, "compare", *SPECS, "--json"],
}
REFERENCE = "transformers, meta device"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15, help="runs of every row (3 at most of the reference)")
    parser.add_argument("--as-is", action="store_true", help="do not cache bytecode for the runs")
    parser.add_argument("--skip-reference", action="store_true", help="leave out the route through transformers")
    options = parser.parse_args()
    rows = dict(ROWS) if options.skip_reference else {**ROWS, REFERENCE: [sys.executable, "-c", META]}
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
        if not options.as_is:
            environment.pop("PYTHONDONTWRITEBYTECODE", None)
            environment["PYTHONPYCACHEPREFIX"] = folder
        found: dict[str, list[Cost]] = {name: [] for name in rows}
        for run in range(options.runs + 1):  # the first one makes bytecode, and is not counted
            for name, command in rows.items():
                if name == REFERENCE and run > 3:
                    continue
                cost = measure(command, environment)
                if run:
                    found[name].append(cost)
    typical = {name: medians(costs) for name, costs in found.items()}
    base = typical[IMPORTS]
    print(f"{'':<34}{'wall s':>9}{'cpu s':>9}{'MB':>9}{'× cpu':>9}{'× wall':>9}")
    for name, cost in typical.items():
        ratios = f"{cost.cpu / base.cpu:>9.2f}{cost.wall / base.wall:>9.2f}"
        print(f"{name:<34}{cost.wall:>9.3f}{cost.cpu:>9.3f}{cost.megabytes:>9.1f}{ratios}")
    report, one, many = (typical[name] for name in rows if name.startswith("archc"))
    print(f"\n{len(SPECS)} specs cost {many.cpu - one.cpu:.2f} s more than one (cpu; the target is below 1)")
    print(f"report: {report.cpu / base.cpu:.2f} × the imports (at most 2.5), {report.megabytes:.0f} MB (at most 80)")
    if REFERENCE in typical:
        reference = typical[REFERENCE]
        print(
            f"the route through transformers takes {reference.cpu / report.cpu:.0f} times the processor time "
            f"and {reference.megabytes / report.megabytes:.0f} times the memory of the report"
        )


if __name__ == "__main__":
    main()
