"""`--json`: one document, on standard output or in a file, wherever the option stands."""

import json
import os
from pathlib import Path

import click
import pytest

from archc.cli.options import json_option, settle_json, spec_argument
from archc.cli.output import emit_json
from archc.errors import IncompleteError, UsageError
from archc.files import write_whole
from tests.cli.runner import archc

DOCUMENT = {"name": "ü", "share": 0.1, "list": [1, None, True]}


@click.command()
@spec_argument
@click.option("--set", "overrides", multiple=True)
@click.option("--weights", "-w")
@json_option
def one(**_: object) -> None:
    """A command with one operand."""


@click.command()
@click.argument("specs", nargs=-1, required=True)
@json_option
def many(**_: object) -> None:
    """A command with one or more operands."""


@click.command()
@json_option
def none(**_: object) -> None:
    """A command without operands."""


@pytest.mark.parametrize(
    ("command", "arguments", "settled"),
    [
        (one, "gpt2 --json", "gpt2 --json=-"),
        (one, "--json gpt2", "--json=- gpt2"),
        (one, "--json - gpt2", "--json=- gpt2"),
        (one, "gpt2 --json -", "gpt2 --json=-"),
        (one, "gpt2 --json out.json", "gpt2 --json=out.json"),
        (one, "gpt2 --json out", "gpt2 --json=out"),
        (one, "--json out.json gpt2", "--json=out.json gpt2"),
        (one, "--json out gpt2", "--json=out gpt2"),
        (one, "--json=out gpt2", "--json=out gpt2"),
        (one, "--json config.json", "--json=- config.json"),  # an operand is needed, and this is the only word
        (one, "gpt2 --json --layers", "gpt2 --json=- --layers"),
        (one, "--json --set a=b gpt2", "--json=- --set a=b gpt2"),
        (one, "--set a=b --json gpt2", "--set a=b --json=- gpt2"),  # a=b is a value, no operand
        (one, "--set=a=b --json gpt2", "--set=a=b --json=- gpt2"),
        (one, "-w folder --json gpt2", "-w folder --json=- gpt2"),
        (one, "--weights folder gpt2 --json out", "--weights folder gpt2 --json=out"),
        (one, "--set --json gpt2", "--set --json gpt2"),  # click refuses what this means
        (one, "gpt2 --json llama3-8b", "gpt2 --json=- llama3-8b"),  # so that no file is named so by mistake
        (one, "gpt2 --json mine.yaml", "gpt2 --json=- mine.yaml"),
        (one, "--json -- gpt2", "--json=- -- gpt2"),
        (one, "-- --json", "-- --json"),
        (many, "--json a.yaml b.yaml", "--json=- a.yaml b.yaml"),
        (many, "a.yaml --json b.yaml", "a.yaml --json=- b.yaml"),
        (many, "--json gpt2 llama3-8b", "--json=- gpt2 llama3-8b"),
        (many, "--json out.json a.yaml b.yaml", "--json=out.json a.yaml b.yaml"),
        (none, "--json", "--json=-"),
        (none, "--json out", "--json=out"),
    ],
)
def test_what_the_next_word_is(command: click.Command, arguments: str, settled: str) -> None:
    assert settle_json(command, arguments.split()) == settled.split()


def test_commands_without_the_option_are_left_alone() -> None:
    assert settle_json(click.Command("x"), ["--json", "gpt2"]) == ["--json", "gpt2"]


@pytest.mark.parametrize("arguments", [("--json", "gpt2"), ("gpt2", "--json"), ("gpt2", "--json", "-")])
def test_a_document_and_nothing_else(arguments: tuple[str, ...]) -> None:
    done = archc("report", *arguments)
    assert (done.code, done.err) == (0, "")
    assert done.json["params"]["total"] == 124_439_808


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    done = archc("report", "--json", str(file), "gpt2")
    assert (done.code, done.out, done.err) == (0, "", "")
    document = json.loads(file.read_bytes())
    assert document.pop("generated")["by"].startswith("archc ")
    assert document == archc("report", "gpt2", "--json").json


def test_own_files_are_replaced(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    assert archc("report", "gpt2", "--json", str(file)).code == 0
    assert archc("report", "llama3-8b", "--json", str(file)).code == 0
    assert json.loads(file.read_bytes())["name"] == "llama3-8b"


@pytest.mark.parametrize("content", ['{"hidden_size": 4096}', "not JSON", "[]", "", '{"generated": {"sha256": "0"}}'])
def test_other_files_are_not(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.json"
    file.write_text(content)
    done = archc("report", "gpt2", "--json", str(file))
    assert done.code == 2
    assert "exists, and archc did not write it or it was changed since; choose another name, or add --force" in done.err
    assert file.read_text() == content
    assert archc("report", "gpt2", "--json", str(file), "--force").code == 0
    assert json.loads(file.read_bytes())["name"] == "gpt2"


def test_changed_files_are_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    emit_json(DOCUMENT, str(file))
    file.write_text(file.read_text().replace("0.1", "0.2"))
    with pytest.raises(UsageError, match="changed since"):
        emit_json(DOCUMENT, str(file))
    file.write_text(file.read_text().replace("0.2", "0.1").replace("\n", " "))
    emit_json(DOCUMENT, str(file))  # another layout is no change


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    done = archc("report", "gpt2", "--json", str(tmp_path / "absent" / "x.json"))
    assert done.code == 3
    assert "No such file or directory; choose a place that exists" in done.err


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    done = archc("report", "gpt2", "--json", str(tmp_path))
    assert done.code == 2
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_text("old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(IncompleteError, match="No space left"):
        write_whole(file, b"new")
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    file.write_text("old")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(file, b"new")
    assert (file.read_text(), list(tmp_path.iterdir())) == ("old", [file])


def test_rights_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "x", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o640)


def test_a_new_file_has_the_rights_of_new_files(tmp_path: Path) -> None:
    (tmp_path / "usual").touch()
    write_whole(tmp_path / "x", b"new")
    assert (tmp_path / "x").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_devices_are_written_to_as_they_are() -> None:
    emit_json(DOCUMENT, os.devnull)


def test_numbers_that_json_does_not_have(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        emit_json({"x": float("nan")}, str(tmp_path / "x"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("command", "first", "second"),
    [
        (("report", "gpt2"), "--html", "--json"),
        (("compare", "gpt2", "tiny"), "--plot", "--json"),
        (("check", "gpt2"), "--sarif", "--json"),
        (("validate", "tiny"), "--junit", "--certificate"),
        (("validate", "tiny"), "--html", "--sarif"),
    ],
)
def test_two_documents_need_two_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], first: str, second: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = archc(*command, first, "out.html", second, str(tmp_path / "x" / ".." / "out.html"), "--force")
    assert done.code == 2
    assert f"{first} and {second} would both write" in done.err or f"{second} and {first} would both write" in done.err
    assert list(tmp_path.iterdir()) == []


def test_a_document_on_standard_output_is_in_nobody_s_way(tmp_path: Path) -> None:
    done = archc("check", "gpt2", "--sarif", str(tmp_path / "out.sarif"), "--json", str(tmp_path / "out.json"))
    assert done.code == 0
    assert archc("report", "gpt2", "--html", str(tmp_path / "out.html"), "--json").json["name"] == "gpt2"
