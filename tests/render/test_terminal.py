"""The terminal: what a reader sees, within 80 columns, with colours only where they are wanted."""

import io
import re

import pytest

from archc.analysis import build_report
from archc.architecture import compile_spec, compile_text
from archc.render.report import print_report
from archc.render.terminal import PLAIN_WIDTH, console, print_failed, print_list, print_passed
from archc.spec.load import shipped_names
from tests.analysis.specs import CONV, HYBRID, RECURRENT, STATE, WINDOWED

ESCAPE = "\x1b["


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def shown(target: str, layers: bool = False, stream: io.StringIO | None = None) -> str:
    stream = stream or io.StringIO()
    architecture = compile_text(target).architecture if "\n" in target else compile_spec(target).architecture
    print_report(build_report(architecture, layers=layers), console(stream))
    return stream.getvalue()


@pytest.mark.parametrize("name", shipped_names())
def test_no_line_is_longer_than_a_terminal(name: str) -> None:
    lines = shown(name, layers=True).splitlines()
    assert max(len(line) for line in lines) <= 80
    assert not [line for line in lines if line != line.rstrip()]


def test_narrow_terminals_do_not_break_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    wide = shown("llama3.1-8b", layers=True)
    monkeypatch.setenv("COLUMNS", "40")
    narrow = shown("llama3.1-8b", layers=True, stream=Terminal())
    assert len(narrow.splitlines()) == len(wide.splitlines())


def test_a_report_shows_what_people_argue_about() -> None:
    text = shown("llama3.1-8b")
    for figure in (
        "8.03 B",
        "8,030,261,248",
        "80.8 % feed-forward",
        "131.1 kB = 128 KiB",
        "17.18 GB = 16 GiB",
        "16.06 GB",
        "32 query heads over 8 key/value heads, 128 channels each",
        "llama3: 29 unchanged, 6 blended, 29 stretched",
        "turns once in 6.283 positions",
    ):
        assert figure in text


def test_a_dense_model_shows_no_experts() -> None:
    assert "Experts" not in shown("llama3-8b")
    text = shown("qwen3-30b-a3b")
    assert "128, of which a token uses 8" in text
    assert "95.0 % of all parameters" in text
    assert re.search(r"active +3\.353 B", text)


def test_a_wall_is_named() -> None:
    assert "1,024 rows" in shown("gpt2")
    assert "Position table" not in shown("llama3-8b")


def test_a_tied_head_is_named() -> None:
    assert "embedding = head" in shown("smollm2-135m")
    assert "embedding = head" not in shown("llama3-8b")


def test_windows_are_shown_apart() -> None:
    text = shown("mistral-7b")
    assert re.search(r"per token +0 B ", text)
    assert re.search(r"131\.1 kB = 128 KiB +more until the windows are full", text)
    assert "windows" not in shown("llama3-8b")


def test_equal_layers_share_a_line() -> None:
    lines = shown(WINDOWED, layers=True).splitlines()
    first = lines.index(next(line for line in lines if line.startswith("layers")))
    assert [line.split() for line in lines[first : first + 3]] == [
        ["layers", "kind", "params", "heads", "feed-forward", "window", "rope", "base"],
        ["0-4", "local", "520", "3/1×4", "gated", "6", "3", "100"],
        ["5", "global", "520", "3/1×4", "gated", "6", "10000"],
    ]


def test_kinds_that_rotate_differently() -> None:
    text = shown(WINDOWED.replace("position: {base: 100}", "position: null"))
    assert "local: none" in text
    assert "global: 2 pairs (half), base 10,000" in text


def test_one_head_is_singular() -> None:
    assert "3 query heads over 1 key/value head," in shown(WINDOWED)


def test_no_colours_without_a_terminal() -> None:
    assert ESCAPE not in shown("gpt2")


def test_colours_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert f"{ESCAPE}36m" in shown("gpt2", stream=Terminal())


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", "1")
    assert f"{ESCAPE}36m" not in shown("gpt2", stream=Terminal())


def test_bars_that_every_encoding_has() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    print_report(build_report(compile_spec("gpt2").architecture), console(stream))
    stream.flush()
    assert b"######" in written.getvalue()
    assert "#" not in shown("gpt2")


def test_width_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    assert console(io.StringIO()).width == PLAIN_WIDTH


def test_a_reader_that_left_is_not_a_finding() -> None:
    """rich from 13.8 on would end the program with code 1, which is that of findings."""

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        console(Closed()).print("text")


def test_list() -> None:
    stream = io.StringIO()
    names = ["gpt2", "mixtral-8x7b", "mistral-7b"]
    print_list([(name, build_report(compile_spec(name).architecture)) for name in names], console(stream))
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert lines[0] == ["name", "params", "active", "context", "KV/token", "besides"]
    assert lines[1] == ["gpt2", "124.4", "M", "1,024", "73.73", "kB"]
    assert lines[2][:5] == ["mixtral-8x7b", "46.7", "B", "12.88", "B"]
    assert lines[3][-5:] == ["0", "B", "w", "131.1", "kB"]


def test_list_marks_states() -> None:
    stream = io.StringIO()
    print_list([("hybrid", build_report(compile_text(HYBRID).architecture))], console(stream))
    assert stream.getvalue().splitlines()[1].split()[-5:] == ["16", "B", "s", "320", "B"]


def test_check_lines() -> None:
    stream = io.StringIO()
    print_passed("gpt2", 124_439_808, 1, {"warning": 2, "note": 0}, console(stream))
    print_passed("evil\x1b[2J.yaml", 5, 0, {}, console(stream))
    print_failed("bad.yaml", 1, console(stream))
    assert stream.getvalue().splitlines() == [
        "gpt2: ok, 124.4 M parameters, 1 published figure reproduced, 2 warnings",
        r"evil\x1b[2J.yaml: ok, 5 parameters",
        "bad.yaml: 1 error",
    ]


def test_kinds_of_cache_have_a_line_each() -> None:
    text = shown(HYBRID)
    assert re.search(r"Mixers +2 mamba2, 1 gqa\n", text)
    assert re.search(rf"convolution +2 layers +{2 * CONV} fixed\n", text)
    assert re.search(rf"state +2 layers +{2 * STATE} fixed\n", text)
    assert re.search(r"full +1 layer +8 per token\n", text)
    assert "layers  " not in shown("llama3-8b").split("Weights")[0].split("KV cache")[1]


def test_layers_without_heads() -> None:
    lines = shown(HYBRID, layers=True).splitlines()
    rows = [line.split() for line in lines if line[:1].isdigit() and "gated" in line]
    assert [row[:2] for row in rows] == [["0-1", "recurrent"], ["2", "full"]]
    assert (rows[0][3], rows[1][3]) == ("mamba2", "3/1×4")
    assert "heads" in shown(RECURRENT, layers=True)


def test_formats_of_the_weights() -> None:
    text = shown("llama3-8b")
    assert re.search(r"float8 +9\.081 GB = 8\.458 GiB", text)
    assert re.search(r"int4 +5\.701 GB = 5\.309 GiB", text)
    assert "bfloat16         " in shown("gpt2")  # published in float32


def test_the_note_stands_at_the_most_common_kind() -> None:
    turned = WINDOWED.replace("5*local, global", "2*local, 4*global")
    assert re.search(r"4 global +above: the most common kind", shown(turned))
    assert re.search(r"5 local +above: the most common kind", shown(WINDOWED))
