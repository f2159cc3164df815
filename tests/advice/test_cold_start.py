"""Advice costs the commands nothing that do not give it."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(("command", "loaded"), [("report", False), ("check", True)])
def test_only_check_loads_the_rules(command: str, loaded: bool) -> None:
    script = "import sys; from archc.cli import main; main(sys.argv[1:]); print('archc.advice' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, command, "gpt2"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == str(loaded)
