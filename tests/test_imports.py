"""Commands on specs start fast and work without the torch extra: they never import a heavy library."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HEAVY = ("numpy", "torch", "transformers")

# {tmp} is an empty folder.
LIGHT_COMMANDS = [
    ["--help"],
    ["list"],
    ["report", "gpt2", "--json"],
    ["check", "gpt2"],
    ["schema"],
    ["explain", "E101"],
    ["generate", "gpt2", "-o", "{tmp}/model.py"],
]

# Runs `python -m archc ARGUMENTS` in this very process, so that its modules can be looked at when it ends.
RUN_ARCHC = "import runpy; runpy.run_module('archc', run_name='__main__', alter_sys=True)"
WATCHED = """
import sys
try:
    exec(sys.argv.pop(1))
finally:
    heavy = [name for name in {heavy} if name in sys.modules]
    if heavy:
        print("heavy imports:", *heavy, file=sys.stderr)
"""


def run_watched(code: str, *arguments: str) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """Run code in a fresh interpreter; return the heavy libraries that it imported, and the finished process."""
    command = [sys.executable, "-c", WATCHED.format(heavy=HEAVY), code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    marks = [line for line in done.stderr.splitlines() if line.startswith("heavy imports: ")]
    return [name for line in marks for name in line.split()[2:]], done


def test_importing_archc_is_light() -> None:
    heavy, done = run_watched("import archc")
    assert done.returncode == 0, done.stderr
    assert heavy == []


@pytest.mark.parametrize("arguments", LIGHT_COMMANDS, ids=" ".join)
def test_command_is_light(arguments: list[str], tmp_path: Path) -> None:
    heavy, done = run_watched(RUN_ARCHC, *(argument.format(tmp=tmp_path) for argument in arguments))
    assert done.returncode == 0, done.stderr
    assert heavy == []


@pytest.mark.parametrize("ending", ["", "; sys.exit(0)", "; sys.exit(1)", "; 1 / 0"])
def test_a_heavy_import_is_seen(ending: str) -> None:
    heavy, _ = run_watched(f"import numpy, sys{ending}")
    assert heavy == ["numpy"]


def test_every_heavy_library_could_be_imported() -> None:
    """Otherwise the tests above would pass for want of anything to import."""
    find = f"import importlib.util; print([n for n in {HEAVY} if not importlib.util.find_spec(n)])"
    _, done = run_watched(find)
    assert done.stdout.strip() == "[]"
