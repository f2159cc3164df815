"""The training example: the same losses on one process, sharded over two, and split and sharded over four."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from archc import resources
from archc.architecture import compile_spec
from archc.codegen import generate

pytestmark = pytest.mark.slow
TRAIN = Path(__file__).parents[2] / "examples" / "distributed" / "train.py"
TEXT = resources.folder("validators") / "texts" / "ferry.txt"


def losses(model: Path, processes: int, tensor: int, script: Path = TRAIN) -> list[float]:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)]
    options = ["--tensor", str(tensor), "--steps", "3", "--length", "32"]
    done = subprocess.run(
        [*command, str(script), str(model), str(TEXT), *options],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]


def test_losses_are_those_of_one_process(tmp_path: Path) -> None:
    model = tmp_path / "model.py"
    source = generate(compile_spec("tiny").architecture)
    model.write_text(source, encoding="utf-8")
    alone = losses(model, 1, 1)
    assert len(set(alone)) == len(alone) == 3
    for processes, tensor in ((2, 1), (4, 2)):
        assert losses(model, processes, tensor) == pytest.approx(alone, abs=2e-5)
    seed = "torch.manual_seed(0)"
    script = TRAIN.read_text(encoding="utf-8")
    assert seed in script
    wrong = tmp_path / "wrong.py"  # the twin: processes that do not begin with the same weights
    wrong.write_text(script.replace(seed, "torch.manual_seed(dist.get_rank())"), encoding="utf-8")
    assert losses(model, 2, 1, wrong)[0] != pytest.approx(alone[0], abs=2e-5)
