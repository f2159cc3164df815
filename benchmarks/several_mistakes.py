"""How many of several mistakes at once `archc validate` names: sets drawn at random, planted by hand.

    python -m benchmarks.several_mistakes               10 sets each of two, three and four mistakes
    python -m benchmarks.several_mistakes --sets 3 --seed 1

The mistakes are those of benchmarks/gate_mistakes.py that are named when they are alone, planted into transformers' own
model of tiny without archc's help. In a set no two are of the same field. What is named and was not planted is counted
as wrong; what was planted and is not named lies within the noise of the rest, as the search ends at the first
explanation of everything that the port gives.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers.utils.logging import disable_progress_bar

from archc.architecture import compile_spec
from archc.faults.catalogue import CATALOGUE
from archc.validation.gate import run_gate
from archc.validation.python_port import PythonPort
from archc.validation.validator import find_validator
from benchmarks.gate_mistakes import MISTAKES, load

UNNAMED = ("layernorm", "no_q_norm", "ahead", "rounded_frequencies", "rounded_weights")
"""Those that are not named by themselves (docs/why-archc.md)."""
SIZES = (2, 3, 4)


def sets(size: int, number: int, seed: int) -> Iterator[tuple[str, ...]]:
    """Names of mistakes, no two with a field in common."""
    chance = random.Random(seed * 1000 + size)
    names = [name for name in MISTAKES if name not in UNNAMED]
    while number:
        chosen = chance.sample(names, size)
        fields = [field for name in chosen for field in MISTAKES[name].fields]
        if len(fields) == len(set(fields)):
            number -= 1
            yield tuple(chosen)


def named(chosen: Sequence[str], weights: Path) -> list[tuple[str, str]]:
    """What the gate names for a port with these mistakes: of each its field, and what it is called."""

    def ported(folder: Path, _dtype: torch.dtype) -> Any:
        model = load(folder)
        with torch.no_grad():
            for name in chosen:
                MISTAKES[name].plant(model)
        return model

    result = run_gate(
        compile_spec("tiny"),
        weights,
        lambda _step: None,
        open_port=lambda architecture, folder: PythonPort("port", ported, folder, architecture),
        catalogue=CATALOGUE,
    )
    found = result.diagnosis.found if result.diagnosis else ()
    return [(one.fault.field, one.fault.id) for one in found[0].mutants] if found else []


def verdict(chosen: Sequence[str], found: Sequence[tuple[str, str]]) -> str:
    """What is to be said of what was named."""
    wanted = tuple(field for name in chosen for field in MISTAKES[name].fields)
    if not found:
        return "nothing named"
    if not all(field.startswith(wanted) or name.startswith(wanted) for field, name in found):
        return "something else named"
    return "all named" if len(found) == len(chosen) else "fewer named"


def main() -> None:
    """Print each set, and how many there are of each verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=10, metavar="N", help="sets of each size")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, metavar="N", help="mistakes in a set")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    disable_progress_bar()
    weights = find_validator("tiny").weights
    assert weights is not None  # they come with archc
    for size in options.sizes:
        verdicts, seconds = [], []
        for chosen in sets(size, options.sets, options.seed):
            start = time.monotonic()
            found = named(chosen, weights)
            seconds.append(time.monotonic() - start)
            verdicts.append(verdict(chosen, found))
            names = ", ".join(name for _, name in found)
            print(f"{verdicts[-1]:<22}{seconds[-1]:4.0f} s  {', '.join(chosen)}: {names}", flush=True)
        counts = ", ".join(f"{one} {verdicts.count(one)}" for one in dict.fromkeys(verdicts))
        print(f"{size} mistakes: {counts}; {statistics.median(seconds):.0f} s in the median", flush=True)


if __name__ == "__main__":
    main()
