"""Completion: asked as click asks, and in the shells themselves where they are installed."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from archc.cli.app import COMMANDS, VARIABLE, app
from archc.cli.completing import Fish, source_of
from archc.cli.completion import SHELLS
from archc.cli.field_names import field_values
from archc.cli.fields import known_paths
from archc.faults.catalogue import CATALOGUE
from archc.spec.load import shipped_names
from tests.cli.runner import archc

ROOT = Path(__file__).parents[2]


def completed(*words: str) -> dict[str, str]:
    """What `archc WORDS` goes on with, the last word being incomplete: each with its kind."""
    found = Fish(app, {}, "archc", VARIABLE).get_completions(list(words[:-1]), words[-1])
    return {item.value: item.type for item in found}


def test_commands() -> None:
    assert set(completed("")) == set(COMMANDS)
    assert set(completed("re")) == {"report"}


def test_options_and_choices() -> None:
    assert set(completed("report", "gpt2", "--kv")) == {"--kv-dtype"}
    assert "bfloat16" in completed("report", "gpt2", "--dtype", "")
    assert set(completed("completion", "")) == set(SHELLS)
    assert set(completed("sweep", "x", "--engine", "")) == {"local", "ray"}


@pytest.mark.parametrize("words", [["report"], ["check", "gpt2"], ["compare", "gpt2"], ["diff", "gpt2"], ["trace"]])
def test_shipped_specs_and_files(words: list[str]) -> None:
    assert completed(*words, "") == {**dict.fromkeys(shipped_names(), "plain"), "": "file"}
    assert completed(*words, "ladder/ro") == {"ladder/rope": "plain", "ladder/ro": "file"}


def test_an_operand_that_is_there_is_not_asked_for_again() -> None:
    assert completed("report", "gpt2", "") == {}


def test_what_else_names_something() -> None:
    assert {"tiny", "smollm2-135m", "gpt2", ""} < set(completed("validate", ""))
    assert completed("fetch", "") == {"smollm2-135m": "plain"}
    assert "qwen3_moe" in completed("list", "--families", "qwen3")
    assert completed("validate", "tiny", "--weights", "x") == {"x": "dir"}
    assert completed("validate", "tiny", "--junit", "x") == {"x": "file"}
    assert completed("validate", "tiny", "--port", "x") == {"x": "file"}


def test_behind_a_bare_json_comes_the_operand_that_is_missing_or_a_file() -> None:
    assert set(completed("report", "--json", "ladder/ro")) == {"ladder/rope", "ladder/ro"}
    assert completed("report", "gpt2", "--json", "x") == {"x": "file"}


def test_topics() -> None:
    assert set(completed("explain", "")) >= {"E201", "faults", *known_paths(), *(fault.id for fault in CATALOGUE)}
    assert set(completed("explain", "e20")) == {f"E20{number}" for number in range(1, 10)}
    assert completed("explain", "norm.e").keys() == {"norm.eps", "norm.eps.branches"}
    assert completed("explain", "nothing.like.this") == {}


def test_fields_are_those_that_the_schema_has() -> None:
    assert set(field_values()) == set(known_paths())


def test_settings() -> None:
    assert completed("report", "gpt2", "--set", "attention.kv_h") == {"attention.kv_heads=": "part"}
    pairings = {"position.pairing=half": "plain", "position.pairing=interleaved": "plain"}
    assert completed("report", "gpt2", "--set", "position.pairing=") == pairings
    assert completed("report", "gpt2", "--set", "vocab_size=") == {}
    assert completed("report", "gpt2", "--set", "no.such=") == {}


# Operands and options whose values nothing is known about.
FREE = {"CMD", "ADDRESS", "I/N", "NAME"}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_text_is_completed_or_free(name: str) -> None:
    context = click.Context(app)
    command = app.get_command(context, name)
    assert command is not None
    for parameter in command.params:
        if type(parameter.type) is click.types.StringParamType and parameter.metavar not in FREE:
            assert source_of(parameter) is not None, (name, parameter.metavar)


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = archc("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"{VARIABLE}={shell}_complete" in done.out
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    assert archc("completion").out == done.out


def test_a_shell_that_there_is_no_script_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/csh")
    done = archc("completion")
    assert (done.code, done.out) == (2, "")
    assert "say which: bash, zsh, fish" in done.err
    assert archc("completion", "csh").code == 2


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A PATH on which `archc` is the one under test."""
    program = tmp_path / "bin" / "archc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} -m archc "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}{os.pathsep}{os.environ['PATH']}"


def run(shell: str, script: str, path: str, folder: Path) -> list[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    environment = {**os.environ, "PATH": path, "HOME": str(folder)}
    done = subprocess.run(
        [shell, "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["rep"], ["report"]),
        (["report", "ladder/ro"], ["ladder/rope"]),
        (["report", "my"], ["my model.yaml", "my-folder"]),
        (["validate", "tiny", "--weights", "my"], ["my-folder"]),
        (["report", "gpt2", "--set", "attention.kv_h"], ["attention.kv_heads="]),
        (["report", "gpt2", "--set", "position.pairing", "=", "in"], ["interleaved"]),
        (["report", "gpt2", "--set", "position.pairing", "="], ["half", "interleaved"]),
        (["explain", "E21"], ["E210", "E211", "E212", "E213"]),
    ],
)
def test_in_bash(words: list[str], found: list[str], path: str, tmp_path: Path) -> None:
    """As readline calls it: words are split at = besides, and `compopt` works only inside a completion."""
    (tmp_path / "my model.yaml").touch()
    (tmp_path / "my-folder").mkdir()
    script = (
        'eval "$(archc completion bash)"; compopt() { :; }; complete -p archc >/dev/null || exit 1\n'
        f"COMP_WORDS=(archc {shlex.join(words)}); COMP_CWORD={len(words)}\n"
        "_archc_completion archc\n"
        '[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert sorted(run("bash", script, path, tmp_path)) == found


def test_in_fish(path: str, tmp_path: Path) -> None:
    (tmp_path / "zebra.yaml").touch()
    script = 'archc completion fish | source; complete -C "archc {}"'
    assert run("fish", script.format("rep"), path, tmp_path) == ["report\t" + COMMANDS["report"][1]]
    assert run("fish", script.format("report zeb"), path, tmp_path) == ["zebra.yaml"]
    settings = run("fish", script.format("report gpt2 --set position.pairing="), path, tmp_path)
    assert settings == ["position.pairing=half", "position.pairing=interleaved"]


def test_in_zsh(path: str, tmp_path: Path) -> None:
    """The function, with what only a line editor has replaced by what prints."""
    (tmp_path / "zebra.yaml").touch()
    script = (
        "compdef() { :; }\n"
        "compadd() { if [[ $* == *' -a '* ]]; then print -rl -- ${(P)@[-1]}; else print $@[-1]; fi; }\n"
        "_describe() { print -rl -- ${(P)3}; }; _path_files() { print -r -- files $1; }\n"
        'eval "$(archc completion zsh)"\n'
        "words=(archc %s); CURRENT=$#words; _archc_completion\ntrue"
    )
    assert run("zsh", script % "rep", path, tmp_path) == [f"report:{COMMANDS['report'][1]}"]
    assert run("zsh", script % "report ladder/ro", path, tmp_path) == ["files -f", "ladder/rope"]
    assert run("zsh", script % "report a --set position.pai", path, tmp_path) == ["position.pairing="]
