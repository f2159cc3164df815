"""`torchrun … -m archc validate`: the reference once, the generated module over two processes, one exit code."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
CHILD_FAILED = 1
"""What torchrun makes of every exit code of its processes but 0."""


@dataclass(frozen=True)
class Done:
    """How a run under torchrun ended, and the exit codes of its processes, in no order."""

    code: int
    out: str
    err: str
    codes: list[int]


def torchrun(tmp_path: Path, *arguments: str, first: str = "") -> Done:
    """Runs archc in two processes, `first` some statements; each writes down its exit code."""
    script = tmp_path / "run.py"
    script.write_text(
        "import os, sys, pathlib\n"
        "from archc.cli import main\n"
        f"{first}\n"
        "code = main()\n"
        "pathlib.Path(__file__).with_name('code-' + os.environ['RANK']).write_text(str(code))\n"
        "sys.exit(code)\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, env=environment, timeout=560
    )
    codes = sorted(int(path.read_text(encoding="utf-8")) for path in tmp_path.glob("code-*"))
    return Done(done.returncode, done.stdout, done.stderr, codes)


def result(tmp_path: Path, *options: str) -> tuple[Done, Any]:
    file = tmp_path / "result.json"
    done = torchrun(tmp_path, "validate", "tiny", *options, "--json", str(file))
    return done, json.loads(file.read_text(encoding="utf-8"))


def test_the_split_module_passes(tmp_path: Path) -> None:
    """Printed once, by the first process; all processes end with its exit code."""
    done, found = result(tmp_path)
    assert done.code == 0, done.err
    assert done.codes == [0, 0]
    assert found["passed"] is True
    assert found["port"]["kind"] == "generated"
    assert "tensor parallel over 2 processes, which share 99% of its weights" in found["port"]["name"]
    assert done.out.count("tiny: port against reference") == 1
    assert {one["name"] for one in found["invariants"]} >= {"cache equivalence", "grouped heads", "causality"}
    assert found["faults"]["survived"] == []


def test_a_wrong_field_fails_in_all_processes(tmp_path: Path) -> None:
    done, found = result(tmp_path, "--set", "position.pairing=interleaved")
    assert done.code == CHILD_FAILED
    assert set(done.codes) == {1}
    assert found["passed"] is False
    assert found["diagnosis"][0]["field"] == "position.pairing"


def test_weights_that_do_not_fit_end_it(tmp_path: Path) -> None:
    """Neither process waits for the other."""
    empty = tmp_path / "empty"
    empty.mkdir()
    done = torchrun(tmp_path, "validate", "tiny", "--weights", str(empty))
    assert done.code == CHILD_FAILED
    assert set(done.codes) <= {3}
    assert "Traceback (most recent call last)" not in done.err.split("ChildFailedError")[0].split("archc: ")[0]


def test_a_port_of_ones_own_is_refused(tmp_path: Path) -> None:
    done = torchrun(tmp_path, "validate", "tiny", "--port", "examples/wrong_activation.py:load")
    assert done.code == CHILD_FAILED
    assert set(done.codes) <= {2}
    assert "runs in one process" in done.err


BREAKS = """
if os.environ["RANK"] == "1":
    from archc.validation.ports import GeneratedPort
    def broken(port, probe):
        raise RuntimeError("one process alone has a fault")
    GeneratedPort.logits = broken
"""


def test_a_process_that_breaks_ends_the_other(tmp_path: Path) -> None:
    """In the middle of a probe, where the first one waits for its share."""
    done = torchrun(tmp_path, "validate", "tiny", first=BREAKS)
    assert done.code == CHILD_FAILED
    assert set(done.codes) == {3}  # torchrun may have ended the other before it wrote down its own
    assert "process 1 of 2, which run the port together, cannot go on: one process alone has a fault" in done.err
    assert "PASS" not in done.out
