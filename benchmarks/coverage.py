"""Prints the README's table of families: the gate on every tiny checkpoint of the tests, clean and with a mistake.

    python -m benchmarks.coverage

Figures are the worst probe's deviation in noise floors: at most 8 passes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch
import transformers
from transformers.utils import logging

from archc.architecture import compile_text
from archc.validation.gate import GateResult, run_gate
from tests.tiny import TINY, Tiny

MISTAKE = "norm.eps=1e-3"  # for 3e-3


def gate(tiny: Tiny, folder: Path, *overrides: str) -> GateResult:
    """One run of the gate, without a text."""
    return run_gate(compile_text(tiny.text(), tiny.name, overrides), folder, lambda _step: None)


def main() -> None:
    """Make, run, print."""
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}\n")
    print("| checkpoint | full pass | cache | padded batch | eps 1e-3 for 3e-3 |\n|---|---|---|---|---|")
    for tiny in TINY:
        with tempfile.TemporaryDirectory() as folder:
            tiny.save(Path(folder))
            clean = {probe.probe.name: probe.times_floor for probe in gate(tiny, Path(folder)).probes}
            wrong = max(probe.times_floor for probe in gate(tiny, Path(folder), MISTAKE).probes)
        whole = max(times for name, times in clean.items() if name.endswith("tokens"))
        cells = (f"{whole:.2f}", f"{clean['cache']:.2f}", f"{clean['left-padded batch']:.2f}", f"{wrong:,.0f}")
        print(f"| {tiny.name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
