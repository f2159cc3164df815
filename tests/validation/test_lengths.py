"""Loss by position: the figures are transformers' own, every mark is where it was worked out by hand, and a port that
goes wrong at a length is caught at that very position."""

from __future__ import annotations

import json
import lzma
import math
import shutil
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers

from archc import resources
from archc.architecture import compile_spec, compile_text
from archc.checkpoints.cache import checkpoint_folder
from archc.errors import IncompleteError, UsageError
from archc.render.lengths import lengths_document, print_lengths
from archc.render.lengths_plot import write_plot
from archc.validation import lengths, losses
from archc.validation.lengths import LengthsResult, run_lengths
from archc.validation.marks import edges_of, marks_of
from archc.validation.python_port import open_python_port
from archc.validation.reference import Reference
from archc.validation.text import Tokens, read_text
from tests.drawings import Drawing, path_of
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
TOKENIZER = resources.folder("validators") / "weights" / "tiny" / "tokenizer.json"
SMOLLM2 = checkpoint_folder("smollm2-135m")
BOOK = Path(__file__).parents[2] / "training" / "pride-and-prejudice.txt.xz"
SENTENCES = "The timetable was a description of the sea rather than a promise to the passengers. "


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Callable[[str], Path]:
    """A copy of a tiny checkpoint by name, with a tokenizer whose tokens are bytes."""

    def make(name: str) -> Path:
        shutil.copytree(checkpoint(name), tmp_path / name, dirs_exist_ok=True)
        shutil.copy(TOKENIZER, tmp_path / name)
        return tmp_path / name

    return make


@pytest.fixture
def novel(tmp_path: Path) -> Path:
    file = tmp_path / "novel.txt"
    file.write_text(SENTENCES * 4)
    return file


def measure(name: str, folder: Path, text: Path, *overrides: str, **more: Any) -> LengthsResult:
    architecture = compile_text(BY_NAME[name].text(), name, overrides).architecture
    return run_lengths(architecture, folder, text, lambda _name, _share: None, **more)


def as_port(tmp_path: Path, body: str) -> Any:
    """What opens a port whose `load` has this body; `model` is transformers' own."""
    file = tmp_path / "my_port.py"
    head = """
        from transformers import AutoModelForCausalLM
        def load(weights, dtype):
            model = AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager").eval()
        """
    file.write_text(textwrap.dedent(head) + textwrap.indent(textwrap.dedent(body), "    "))
    return open_python_port(f"{file}:load")


def test_losses_are_those_of_transformers(folder: Callable[[str], Path], novel: Path) -> None:
    """One full pass without a cache, by transformers' class alone."""
    result = measure("llama-default", folder("llama-default"), novel, longest=64)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder("llama-default"), dtype=torch.float32)
    raw = novel.read_bytes()
    assert result.passages == len(raw) // 65
    rows = torch.tensor([list(raw[65 * n : 65 * n + 65]) for n in range(result.passages)])
    with torch.no_grad():
        logits = model(rows[:, :-1]).logits.transpose(1, 2)
    found = F.cross_entropy(logits, rows[:, 1:], reduction="none")
    assert [(bucket.start, bucket.end) for bucket in result.buckets] == [
        (0, 16),
        (16, 24),
        (24, 32),
        (32, 48),
        (48, 64),
    ]
    for bucket in result.buckets:
        assert bucket.reference == pytest.approx(float(found[:, bucket.start : bucket.end].mean()), rel=1e-5)
        assert bucket.tokens == found[:, bucket.start : bucket.end].numel()


CLEAN = ["llama-default", "mistral-window", "gemma3_text", "qwen3_moe", "llama-dynamic", "llama-longrope", "gpt2"]


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_port_keeps_to_the_reference(
    name: str, folder: Callable[[str], Path], novel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "CHUNK", 20)
    result = measure(name, folder(name), novel, longest=90)
    assert result.passed
    assert result.departure is None
    assert result.notes == []
    assert max(bucket.times_floor for bucket in result.buckets) < 4


# The window counts the token itself: with W, the token at position W is the first that loses one (position 0).
@pytest.mark.parametrize(("window", "departure"), [(8, 7), (6, 6), (40, 7), (5, 5)])
def test_a_wrong_window_shows_right_after_the_window(
    window: int, departure: int, folder: Callable[[str], Path], novel: Path
) -> None:
    result = measure("mistral-window", folder("mistral-window"), novel, f"attention.window={window}", longest=64)
    assert not result.passed
    assert result.departure == departure
    assert [bucket.passed for bucket in result.buckets if bucket.end <= departure] == [True] * (departure == window)
    mark = result.departure_mark
    assert (mark is not None) == (abs(window - departure) <= 1)


@pytest.mark.parametrize(
    ("name", "override"),
    [
        ("llama-default", "position.base=5400"),
        ("llama-llama3", "position.scaling.factor=4.9"),
        ("llama-default", "position.pairing=interleaved"),
        ("qwen3_moe", "position.base=5400"),
    ],
)
def test_a_wrong_rotation_shows_from_the_first_positions(
    name: str, override: str, folder: Callable[[str], Path], novel: Path
) -> None:
    result = measure(name, folder(name), novel, override, longest=64)
    assert not result.passed
    assert result.departure is not None
    assert result.departure < 8


def test_a_cache_that_forgets_how_far_it_is_shows_at_the_second_chunk(
    folder: Callable[[str], Path], novel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "CHUNK", 20)
    body = """
        import torch
        def forward(input_ids, cache=None, use_cache=True):
            positions = torch.arange(input_ids.shape[1])[None] + {start}
            mask = torch.ones((1, input_ids.shape[1] + held(cache)))
            return model(input_ids, position_ids=positions, attention_mask=mask, cache=cache, use_cache=True)
        def held(cache):
            return 0 if cache is None else cache.get_seq_length()
        return forward
        """
    right = as_port(tmp_path, body.format(start="held(cache)"))
    assert measure("llama-default", folder("llama-default"), novel, longest=64, open_port=right).passed
    wrong = as_port(tmp_path, body.format(start=0))
    result = measure("llama-default", folder("llama-default"), novel, longest=64, open_port=wrong)
    assert result.departure == 20


def test_a_port_without_a_cache_gives_one_full_pass(folder: Callable[[str], Path], novel: Path, tmp_path: Path) -> None:
    port = as_port(tmp_path, "return lambda input_ids: model(input_ids).logits")
    result = measure("llama-default", folder("llama-default"), novel, longest=64, open_port=port)
    assert result.passed
    assert result.chunks == {"reference": 64, "port": None}
    assert result.notes == ["the port was run in one full pass: it takes no cache"]
    late = as_port(
        tmp_path, "return lambda input_ids: model(input_ids).logits * (1 + (input_ids.shape[1] > 32) * 0.001)"
    )
    assert measure("llama-default", folder("llama-default"), novel, longest=32, open_port=late).passed
    assert not measure("llama-default", folder("llama-default"), novel, longest=64, open_port=late).passed


@pytest.mark.parametrize("returned", ["logits[..., :50]", "logits * float('nan')", "logits[:, 1:]"])
def test_logits_that_are_none_are_a_finding(
    returned: str, folder: Callable[[str], Path], novel: Path, tmp_path: Path
) -> None:
    port = as_port(
        tmp_path, f"def run(input_ids):\n    logits = model(input_ids).logits\n    return {returned}\nreturn run"
    )
    result = measure("llama-default", folder("llama-default"), novel, longest=64, open_port=port)
    assert not result.passed
    document = json.loads(json.dumps(lengths_document(result), allow_nan=False))
    assert document["buckets"][-1]["loss"]["port"] is None
    assert math.isfinite(document["buckets"][-1]["loss"]["reference"])
    write_plot(result, str(tmp_path / "image.svg"))
    print_lengths(result)


class ForgetsInSteps(Reference):
    """A reference that forgets its last position at every step through the cache."""

    def _forward(self, **inputs: Any) -> Any:
        if inputs.get("cache") is not None:
            inputs["cache"].crop(-1)
        return super()._forward(**inputs)


class CannotStep(Reference):
    """A reference that trips over what it has kept."""

    def _forward(self, **inputs: Any) -> Any:
        if inputs.get("cache") is not None:
            raise IncompleteError("a mask of another size", "")
        return super()._forward(**inputs)


@pytest.mark.parametrize(
    ("kind", "note"),
    [
        (ForgetsInSteps, "the reference's steps part from its own full pass; the port is held against the latter"),
        (CannotStep, "the reference was run in one full pass: it cannot decode in chunks"),
    ],
)
def test_a_reference_whose_steps_are_wrong_is_no_false_alarm(
    kind: type[Reference], note: str, folder: Callable[[str], Path], novel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "CHUNK", 20)
    monkeypatch.setattr(lengths, "Reference", kind)
    result = measure("llama-default", folder("llama-default"), novel, longest=64)
    assert result.passed
    assert note in result.notes
    assert not measure("llama-default", folder("llama-default"), novel, "position.base=5400", longest=64).passed


def test_a_rise_past_the_trained_length_is_said_and_is_no_failure() -> None:
    """The checkpoint that comes with archc was trained on pieces of 256 bytes; Pride and Prejudice is its text."""
    result = tiny_result(1024)
    assert result.passed
    assert result.rise is not None
    assert result.rise.position == 256
    assert result.rise.beyond_chance
    assert [(mark.position, mark.field) for mark in result.marks] == [
        (32, "attention.window"),
        (64, "position.scaling.original_context"),
        (256, "context"),
        (256, "trained_context"),
    ]


def test_weights_that_learned_nothing_do_not_get_worse(folder: Callable[[str], Path], novel: Path) -> None:
    result = measure("llama-default", folder("llama-default"), novel, "trained_context=32", longest=90)
    assert result.rise is not None
    assert not result.rise.beyond_chance


def test_no_rise_is_claimed_within_the_trained_length() -> None:
    assert tiny_result(128).rise is None


def tiny_result(longest: int) -> LengthsResult:
    validators = resources.folder("validators")
    return run_lengths(
        compile_spec("tiny").architecture,
        validators / "weights" / "tiny",
        validators / "texts" / "ferry.txt",
        lambda _name, _share: None,
        longest=longest,
    )


# By hand: half powers of two from 16 on. 512 and 1,000 are marks; 1,024 is within a quarter of 1,000 and gives way.
def test_buckets_begin_at_marks() -> None:
    assert edges_of(2048, [512, 1000]) == [0, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1000, 1536, 2048]
    assert edges_of(10, []) == [0, 10]
    assert edges_of(40, [7]) == [0, 7, 16, 24, 32, 40]
    assert edges_of(1, []) == [0, 1]


@pytest.mark.parametrize(
    ("spec", "length", "marks"),
    [
        ("gemma3-270m", 2048, [(512, "attention.window")]),
        ("mistral-7b", 8192, [(4096, "attention.window")]),
        (
            "llama3.1-8b",
            2**18,
            [(8192, "position.scaling.original_context"), (8192, "trained_context"), (131072, "context")],
        ),
        ("gpt2", 1024, []),
    ],
)
def test_windows_scalings_and_contexts_are_marked(spec: str, length: int, marks: list[tuple[int, str]]) -> None:
    found = marks_of(compile_spec(spec).architecture, length)
    assert sorted((mark.position, mark.field) for mark in found) == marks


def test_every_passage_opens_as_the_tokenizer_opens_a_text() -> None:
    tokens = Tokens("novel", "", (1, 10, 11, 12, 13, 14, 15), opening=1)
    assert tokens.passages(3, most=9) == [(1, 10, 11), (1, 12, 13), (1, 14, 15)]
    assert tokens.passages(4, most=9) == [(1, 10, 11, 12), (1, 13, 14, 15)]
    assert tokens.passages(3, most=1) == [(1, 10, 11)]
    assert tokens.passages(8, most=9) == []


def test_special_tokens_before_a_text_are_told_from_the_text(folder: Callable[[str], Path], novel: Path) -> None:
    place = folder("llama-default")
    tokenizer = json.loads((place / "tokenizer.json").read_text())
    tokenizer["added_tokens"] = [
        {"id": 0, "content": "<s>", "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    ]
    tokenizer["model"]["vocab"]["<s>"] = 0
    special = {"SpecialToken": {"id": "<s>", "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [special, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]}},
    }
    (place / "tokenizer.json").write_text(json.dumps(tokenizer))
    tokens = read_text(compile_text(BY_NAME["llama-default"].text(), "x").architecture, place, novel)
    assert tokens is not None
    assert tokens.opening == 1
    assert tokens.ids == (0, *novel.read_bytes())


def test_what_cannot_be_measured_is_refused(folder: Callable[[str], Path], checkpoint: Checkpoint, novel: Path) -> None:
    with pytest.raises(IncompleteError, match=r"too short: 336 tokens, and 336 positions .* take 337; name a longer"):
        measure("llama-default", folder("llama-default"), novel, longest=336)
    assert measure("llama-default", folder("llama-default"), novel, longest=335).passages == 1
    with pytest.raises(UsageError, match=r"--max 97 is beyond its table of positions, which ends after 96 positions"):
        measure("gpt2", folder("gpt2"), novel, longest=97)
    assert measure("gpt2", folder("gpt2"), novel).length == 96
    with pytest.raises(IncompleteError, match=r"has no tokenizer.json"):
        measure("llama-default", checkpoint("llama-default"), novel)
    with pytest.raises(IncompleteError, match=r"cannot read the text .*No such file"):
        measure("llama-default", folder("llama-default"), novel.parent / "absent.txt")
    (novel.parent / "short.txt").write_text("")
    with pytest.raises(IncompleteError, match=r"too short"):
        measure("llama-default", folder("llama-default"), novel.parent / "short.txt")


def test_the_table_says_where_and_why(
    folder: Callable[[str], Path], novel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    print_lengths(measure("mistral-window", folder("mistral-window"), novel, "attention.window=6", longest=64))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("loss by position, in nats a token")
    rows = [line.split() for line in lines]
    assert ["6", "─", "window", "of", "6", "is", "full"] in rows
    assert [row[0] for row in rows if "pass" in row] == ["0–5"]
    assert [row[0] for row in rows if "FAIL" in row] == ["6–15", "16–23", "24–31", "32–47", "48–63"]
    assert lines[-1].startswith(
        "  FAIL: the port leaves the reference from position 6 on (where the window of 6 is full, at 6)"
    )


def test_the_plot_needs_nothing_else_and_escapes_names(
    folder: Callable[[str], Path], novel: Path, tmp_path: Path
) -> None:
    result = measure("mistral-window", folder("mistral-window"), novel, longest=64)
    result.text = replace(result.text, name='<script>"&\x1b')
    write_plot(result, str(tmp_path / "image.svg"))
    drawing = Drawing.read(tmp_path / "image.svg")
    assert drawing.outside() == []
    lines = {line.attrib["id"]: line.attrib["data-points"].split() for line in drawing.marks("curve")}
    document = lengths_document(result)["buckets"]
    assert isinstance(document, list)
    for side in ("reference", "port"):
        drawn = [float(point.split(",")[1]) for point in lines[f"curve-{side}"]]
        assert drawn == pytest.approx([bucket["loss"][side] for bucket in document], rel=1e-5)
    assert {len(path_of(line)) for line in drawing.marks("curve")} == {len(document)}
    assert "window of 7 is full" in drawing.words()


@pytest.mark.slow
@pytest.mark.xdist_group("smollm2")
@pytest.mark.skipif(not SMOLLM2.exists(), reason="needs `archc fetch smollm2-135m`")
def test_on_real_weights_a_window_that_is_not_there_shows_where_it_fills(tmp_path: Path) -> None:
    file = tmp_path / "book.txt"
    file.write_bytes(lzma.decompress(BOOK.read_bytes())[:12_000])
    architecture = compile_spec("smollm2-135m", ["attention.window=1024"]).architecture
    result = run_lengths(architecture, SMOLLM2, file, lambda _name, _share: None, longest=1280)
    assert result.departure == 1024
    assert [bucket.passed for bucket in result.buckets] == [bucket.end <= 1024 for bucket in result.buckets]
    assert all(2 < bucket.reference < 6 for bucket in result.buckets if bucket.tokens >= 64)
