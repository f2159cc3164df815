"""`archc check`: everything wrong with every file, and published figures."""

from pathlib import Path

import pytest

from archc.spec.load import shipped_names
from tests.analysis.specs import PLAIN
from tests.cli.runner import archc

CLAIM = '{value: 201, source: "a slip"}'


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A spec that deserves no advice: 64 tokens are 64 × 10 parameters at each end, 880 more than 20 tokens are."""
    spec = tmp_path / "good.yaml"
    text = PLAIN.replace("vocab_size: 20", "vocab_size: 64")
    spec.write_text(f"{text}published:\n  params.embedding: {{value: 640, source: by hand}}\n")
    return spec


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Three mistakes, each on a line of its own."""
    spec = tmp_path / "bad.yaml"
    text = PLAIN.replace("eps: 1.0e-5", "epsilon: 1.0e-5").replace("heads: 3,", "heads: three,")
    spec.write_text(text)
    return spec


@pytest.fixture
def claiming(tmp_path: Path) -> Path:
    spec = tmp_path / "claiming.yaml"
    spec.write_text(f"{PLAIN}published:\n  params.head: {{value: 200, source: x}}\n  params.embedding: {CLAIM}\n")
    return spec


def test_shipped_specs_hold() -> None:
    done = archc("check", *shipped_names())
    assert done.code == 0
    assert len(done.out.splitlines()) == len(shipped_names())
    assert "error" not in done.err


def test_a_good_spec(good: Path) -> None:
    done = archc("check", str(good))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{good}: ok, 2.33 k parameters, 1 published figure reproduced\n"


def test_all_mistakes_of_a_file(bad: Path) -> None:
    done = archc("check", str(bad))
    assert done.code == 1
    assert f"{bad}:8:23: error[E101]: unknown key 'epsilon' in norm" in done.err
    assert f"{bad}:8:1: error[E102]: norm.eps is missing" in done.err
    assert f"{bad}:10:20: error[E103]: attention.heads must be a whole number, not the text 'three'" in done.err
    assert done.out == f"{bad}: 3 errors\n"


def test_colours_are_for_terminals(bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[1;31merror[E101]" in archc("check", str(bad), terminal=True).err
    assert "\x1b" not in archc("check", str(bad)).err
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in archc("check", str(bad), terminal=True).err


def test_all_files_whatever_the_others_hold(good: Path, bad: Path) -> None:
    done = archc("check", str(bad), str(good), "gpt2")
    assert done.code == 1
    assert [line.split(":")[0] for line in done.out.splitlines()] == [str(bad), str(good), "gpt2"]


def test_a_claim_that_does_not_hold(claiming: Path) -> None:
    done = archc("check", str(claiming))
    assert done.code == 1
    assert f"{claiming}:15:3: error[E301]: params.embedding is 200, published 201" in done.err
    assert "correct the spec, or the figure from a slip" in done.err
    assert done.out == f"{claiming}: 1 error\n"


def test_a_claim_about_nothing(tmp_path: Path) -> None:
    spec = tmp_path / "x.yaml"
    spec.write_text(f"{PLAIN}published:\n  params.totl: {CLAIM}\n")
    done = archc("check", str(spec))
    assert done.code == 1
    assert "error[E301]: the report has no figure params.totl" in done.err


def test_a_warning_is_no_error(tmp_path: Path) -> None:
    spec = tmp_path / "wide.yaml"
    spec.write_text(PLAIN.replace("width: 6", "width: 40"))
    done = archc("check", str(spec))
    assert done.code == 0
    assert "warning[W401]" in done.err
    assert done.out.endswith("parameters, 1 warning, 1 note\n")


def test_notes_take_a_line_each_and_are_counted(tmp_path: Path) -> None:
    spec = tmp_path / "noted.yaml"
    text = PLAIN.replace("{kind: rope, base: 10000}", "{kind: learned}")
    spec.write_text(text.replace("head_dim: 4}", "head_dim: 4, bias: all, window: 16}"))
    done = archc("check", str(spec))
    assert done.code == 0
    assert [line.split(": ")[1] for line in done.err.splitlines()] == [f"note[N50{number}]" for number in (3, 1, 4, 8)]
    assert f"{spec}:9:18: note[N501]: position 16 has no row in the learned table" in done.err
    assert done.out.endswith("parameters, 4 notes\n")


def test_a_note_shows_no_control_characters(tmp_path: Path) -> None:
    spec = tmp_path / "\x1b[2J.yaml"
    spec.write_text(PLAIN)
    done = archc("check", str(spec))
    assert "note[N503]" in done.err
    assert "\x1b" not in done.err + done.out


def test_notes_are_coloured_on_terminals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    spec = tmp_path / "x.yaml"
    spec.write_text(PLAIN)
    assert "\x1b[36m\x1b[1mnote[N503]\x1b[0m" in archc("check", str(spec), terminal=True).err


def test_a_file_that_is_not_there(good: Path) -> None:
    done = archc("check", "absent.yaml", str(good))
    assert done.code == 2
    assert "archc: no spec 'absent.yaml'" in done.err
    assert f"{good}: ok" in done.out


def test_json(good: Path, claiming: Path) -> None:
    done = archc("check", "--json", str(good), str(claiming), "absent.yaml")
    assert (done.code, done.err) == (2, "")
    first, second, third = done.json["specs"]
    assert done.json["passed"] is False
    assert (first["spec"], first["name"], first["passed"], first["diagnostics"]) == (str(good), "small", True, [])
    assert first["claims"] == [
        {"key": "params.embedding", "claimed": 640, "derived": 640, "within": 0.0, "holds": True, "source": "by hand"}
    ]
    assert [claim["holds"] for claim in second["claims"]] == [True, False]
    diagnostic, note = second["diagnostics"]
    assert (note["code"], note["level"], note["line"], note["path"]) == ("N503", "note", 3, "vocab_size")
    assert (diagnostic["code"], diagnostic["line"], diagnostic["column"]) == ("E301", 15, 3)
    assert diagnostic["path"] == "published.params.embedding"
    assert third["problem"].startswith("no spec 'absent.yaml'")


def test_json_in_a_file(good: Path, tmp_path: Path) -> None:
    done = archc("check", str(good), "--json", str(tmp_path / "out.json"))
    assert done.code == 0
    assert done.out.startswith(f"{good}: ok")
    assert (tmp_path / "out.json").exists()
