"""`--help` at every level: examples that are read as they stand, and those that cost nothing run as they stand."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import click
import pytest

from archc.cli.app import COMMANDS, app
from tests.cli.runner import archc

ROOT = Path(__file__).parents[2]
QUICK = ("list", "report", "compare", "diff", "check", "explain", "schema", "generate", "doctor", "completion")
"""Commands that compute nothing, or little."""
SLOW = ("--deep", "config.json", "path/to")
"""What makes them need the libraries of an extra, or files of the reader's."""


def examples(text: str) -> list[str]:
    """The lines below "Examples:", up to an empty one."""
    block = text.partition("Examples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in block.splitlines()]


def words(line: str) -> list[str]:
    """What archc is given by an example: its description, a pipe, redirections and what stands before archc left out.

    Empty for a comment.
    """
    command = re.split(r"   +|  (?=the )| [|>]+ ", line)[0]
    read = shlex.split(command, comments=True)
    return read[read.index("archc") + 1 :] if "archc" in read else []


def parse(arguments: list[str]) -> None:
    """Let click read a command line, without running anything. Raises a ClickException for one that makes no sense."""
    with app.make_context("archc", arguments) as context:
        _, command, rest = app.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        with command.make_context(command.name, rest, parent=context):
            pass


HELP = {name: archc(name, "--help").out for name in COMMANDS} | {"": archc("--help").out}
LINES = [(name, line) for name, text in HELP.items() for line in examples(text)]
CHEAP = [line for name, line in LINES if name in QUICK and words(line) and not any(mark in line for mark in SLOW)]


@pytest.mark.parametrize("name", HELP)
def test_every_level_has_examples(name: str) -> None:
    lines = [line for line in examples(HELP[name]) if words(line)]
    assert len(lines) >= 2 or name in ("schema",), lines
    assert lines
    assert all(name in words(line) for line in lines if name)
    assert max(len(line) for line in HELP[name].splitlines()) <= 80


@pytest.mark.parametrize("line", [line for _, line in LINES if words(line)])
def test_examples_are_read(line: str) -> None:
    parse(words(line))


def test_examples_that_cannot_be_read_are_seen() -> None:
    for wrong in ("archc reprot gpt2", "archc report gpt2 --contxt 5", "archc report", "archc report a --dtype int3"):
        with pytest.raises(click.UsageError):
            parse(words(wrong))


def test_the_words_of_an_example() -> None:
    assert words("archc explain faults           all faults, a line each") == ["explain", "faults"]
    assert words("A=/b archc fetch x") == ["fetch", "x"]
    assert words("archc list --json | jq -r '.specs[].name'") == ["list", "--json"]
    assert words("archc completion fish > ~/f.fish") == ["completion", "fish"]
    assert words("# and as the first line of a spec:") == []


@pytest.mark.parametrize("line", CHEAP)
def test_cheap_examples_run(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "specs" / "smollm2-135m.yaml", "my-model.yaml")
    shutil.copytree(ROOT / "specs", "specs")
    given = [file for word in words(line) for file in (sorted(map(str, Path().glob(word))) or [word])]
    given = ["attention.kv_heads=9" if word == "attention.kv_heads=4" else word for word in given]  # of 9 query heads
    done = archc(*given)
    assert (done.code, "Traceback" in done.err) == (0, False), done.err


def test_there_are_cheap_examples() -> None:
    assert len(CHEAP) >= 20
