"""The surface of the command line, frozen: a change here is a change for every user and script."""

import importlib

import click
import pytest

from archc.cli.app import COMMANDS, SECTIONS
from tests.cli.runner import archc

# Command → its operands, then its options. Adding is fine; nothing here may go or change its meaning.
SURFACE = {
    "list": ["[FAMILY]...", "--families", "--json", "--force"],
    "check": ["SPEC...", "--sarif", "--json", "--force"],
    "explain": ["CODE|FIELD|FAULT", "--json", "--force"],
    "schema": [],
    "report": [
        "SPEC",
        "--context",
        "--batch",
        "--dtype",
        "--kv-dtype",
        "--state-dtype",
        "--set",
        "--layers",
        "--fits",
        "--formula",
        "--html",
        "--json",
        "--force",
    ],
    "compare": [
        "SPEC...",
        "--context",
        "--batch",
        "--dtype",
        "--kv-dtype",
        "--state-dtype",
        "--plot",
        "--json",
        "--force",
    ],
    "explore": ["[SPEC...]", "-o", "--output", "--force", "--serve", "--port"],
    "diff": ["A", "B", "--json", "--force"],
    "import": ["SRC", "-o", "--output", "--explain", "--json", "--force"],
    "generate": ["SPEC", "--set", "-o", "--output", "--force"],
    "validate": [
        "TARGET",
        "--weights",
        "--port",
        "--port-command",
        "--port-timeout",
        "--trace",
        "--dtype",
        "--quick",
        "--stream",
        "--set",
        "--strict",
        "--junit",
        "--sarif",
        "--certificate",
        "--html",
        "--json",
        "--force",
    ],
    "sweep": [
        "DIR|LIST...",
        "-o",
        "--output",
        "--jobs",
        "--threads",
        "--timeout",
        "--shard",
        "--merge",
        "--engine",
        "--ray-address",
        "--junit",
        "--json",
        "--force",
    ],
    "certificate": ["FILE", "--weights"],
    "faults": ["TARGET", "--weights", "--text", "--set", "--html", "--json", "--force"],
    "lengths": ["TARGET", "--weights", "--text", "--max", "--port", "--set", "--plot", "--json", "--force"],
    "trace": ["SPEC", "--weights", "--set", "--probe", "-o", "--output", "--force"],
    "export": ["SPEC", "--set", "-o", "--output", "--force"],
    "weights": ["A", "B", "--json", "--force"],
    "fetch": ["NAME"],
    "doctor": ["--deep", "--json", "--force"],
    "completion": ["[SHELL]"],
}


def surface(name: str) -> list[str]:
    command = importlib.import_module(COMMANDS[name][0]).command
    assert isinstance(command, click.Command)
    operands = [str(p.metavar) for p in command.params if isinstance(p, click.Argument)]
    return operands + [name for p in command.params if isinstance(p, click.Option) for name in p.opts]


def test_commands() -> None:
    assert set(COMMANDS) == set(SURFACE)


@pytest.mark.parametrize("name", SURFACE)
def test_options(name: str) -> None:
    assert surface(name) == SURFACE[name]


def test_help_lists_every_command_once_and_by_purpose() -> None:
    done = archc("--help")
    assert done.code == 0
    listed = done.out.partition("Options:\n")[2].splitlines()
    headings = [line.removesuffix(":") for line in listed if line and not line.startswith(" ")]
    commands = [line.split()[0] for line in listed if line.startswith("  ") and not line.startswith("  -")]
    assert headings == list(SECTIONS)
    assert commands == list(COMMANDS)
    assert done.out == archc("-h").out


def test_help_needs_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that cannot be imported breaks neither the help nor the others."""
    monkeypatch.setitem(COMMANDS, "list", ("archc.cli.absent", "Not there."))
    monkeypatch.setitem(SECTIONS["Look at models"], "list", COMMANDS["list"])
    assert "Not there." in archc("--help").out
    assert archc("explain", "norm.eps").code == 0


@pytest.mark.parametrize("name", COMMANDS)
def test_no_line_of_help_is_longer_than_a_terminal(name: str) -> None:
    assert max(len(line) for line in archc(name, "--help").out.splitlines()) <= 80
