"""Correct ports that compute in other ways, on several seeds of probes: the gate must pass them all.

    python benchmarks/false_alarms.py                     SmolLM2-135M (`archc fetch smollm2-135m` first)
    python benchmarks/false_alarms.py tiny --seeds 20

For every seed of the probes: transformers in eager arithmetic, with fused attention and in fp64, and the generated
module, each with one thread and with two. Printed is the worst deviation of each over all probes and seeds, in noise
floors; at most 8 passes.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from archc.architecture import compile_spec
from archc.validation.parity import BOUND, judge, measure
from archc.validation.ports import GeneratedPort, Port
from archc.validation.probes import SEED, derive_probes
from archc.validation.python_port import PythonPort
from archc.validation.reference import Reference
from archc.validation.validator import find_validator

THREADS = (1, 2)


class InDouble:
    """Transformers' model in fp64, whose logits are given in fp32."""

    def __init__(self, model: Any) -> None:
        self._model = model.double()

    def __call__(
        self, input_ids: torch.Tensor, position_ids: Any = None, attention_mask: Any = None, cache: Any = None
    ) -> Any:
        output = self._model(
            input_ids, position_ids=position_ids, attention_mask=attention_mask, cache=cache, use_cache=True
        )
        output.logits = output.logits.float()
        return output


def transformers_port(
    folder: Path, attention: str, wrapped: Callable[[Any], Any] = lambda model: model
) -> Callable[[], Port]:
    """Transformers' own model as a port, with one of its kinds of attention."""

    def load(weights: Path, dtype: torch.dtype) -> Any:
        return wrapped(AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation=attention).eval())

    return lambda: PythonPort(attention, load, folder)


def main() -> int:
    """Runs all ports on all seeds; 1 if the gate would fail one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("validator", nargs="?", default="smollm2-135m")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    validator = find_validator(options.validator)
    assert validator.weights is not None
    architecture, folder = compile_spec(validator.spec).architecture, validator.weights
    reference = Reference(folder, architecture=architecture)
    ports: dict[str, Port] = {
        name: make()
        for name, make in {
            "transformers, eager": transformers_port(folder, "eager"),
            "transformers, fused attention": transformers_port(folder, "sdpa"),
            "transformers, fp64": transformers_port(folder, "eager", InDouble),
            "generated module": lambda: GeneratedPort(architecture, folder),
        }.items()
    }
    worst: dict[tuple[str, int], float] = defaultdict(float)
    for seed in range(SEED, SEED + options.seeds):
        torch.set_num_threads(1)
        derived, _ = derive_probes(architecture, seed, avoid=reference.padding)
        probes = [probe for probe in derived if reference.refusal(probe) is None]
        baselines, _ = measure(reference, probes, lambda _step: None)
        for name, port in ports.items():
            for threads in THREADS:
                torch.set_num_threads(threads)
                for one in baselines:
                    if port.refusal(one.probe) is None and not (name.endswith("fp64") and len(one.probe.input_ids) > 1):
                        result = judge(reference, one, port.logits(one.probe))
                        worst[name, threads] = max(worst[name, threads], result.times_floor)
        print(f"seed {seed}: {len(probes)} probes", flush=True)
    for (name, threads), times in worst.items():
        print(f"{name:<32} {threads} thread{'s' if threads > 1 else ' '}  at most {times:.2f} floors")
    return 0 if max(worst.values()) <= BOUND else 1


if __name__ == "__main__":
    raise SystemExit(main())
