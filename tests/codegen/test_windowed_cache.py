"""Caches of layers that see a window or a chunk: as few rows as the report says, and what the full pass computes."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from archc.analysis.cache import cache_sizes
from archc.architecture import compile_spec, compile_text
from archc.codegen import generate
from archc.validation.probes import mixers
from tests.codegen.combinations import BASE, LATENT
from tests.codegen.support import GENERATABLE, import_text, random_ids
from tests.codegen.test_combinations import ugly

LONGEST = 40
EXACT = 1e-5
"""Scores that are capped or meet sinks stay in 32 bits."""
MIXED = "layers={count: 3, kinds: {near: {attention: {SEEN}}, far: {}}, pattern: 'near, far, near'}"
DESIGNS = {
    "all": ("attention.window=ROWS",),
    "mixed": (MIXED.replace("SEEN", "window: ROWS"),),
    "two windows": (
        "layers={count: 2, kinds: {a: {attention: {window: ROWS}}, b: {attention: {window: 5}}}, pattern: 'a, b'}",
    ),
    "chunks": ("attention.chunk=ROWS",),
    "chunks-mixed": (
        MIXED.replace("SEEN", "chunk: ROWS"),
        "attention.query_scale={form: steps, strength: 0.3, length: 4}",
    ),
    "sinks": ("attention.window=ROWS", "attention.sinks=column"),
    "cap": ("attention.window=ROWS", "attention.softcap=1.5"),
    "alibi": ("attention.window=ROWS", "position={kind: alibi}"),
    "alibi-mixed": (MIXED.replace("SEEN", "window: ROWS"), "position={kind: alibi}"),
    "latent": (f"attention={LATENT}", "attention.window=ROWS"),
    "differential": ("attention.differential=true", "attention.window=ROWS"),
    "tiled": ("attention.window=ROWS", "attention.grouping=tiled", "position={kind: learned}"),
    "values-are-keys": ("attention.window=ROWS", "attention.values=keys"),
}
WRONG = {
    "a window wider by one": (r"past - window \+ 1", "past - window"),
    "a prompt's mask for a piece": (r"\(1 if past else WINDOW\)", "WINDOW"),
    "a row off": (r"start = past % rows", "start = (past + (past >= rows)) % rows"),
    "in the order of places": (r"\(place_S, unwritten_N\)", "(place_S.sort().values, unwritten_N)"),
    "the first rows of a piece": (r"new_BKTC\[:, :, -rows:\]", "new_BKTC[:, :, :rows]"),
}


@functools.cache
def _scratch() -> Path:
    return Path(tempfile.mkdtemp())


@functools.cache
def made(design: str, rows: int, wrong: str = "") -> Any:
    """A model in 64 bits whose weights all matter."""
    overrides = [one.replace("ROWS", str(rows)) for one in DESIGNS[design]]
    text = generate(compile_text(BASE, overrides=overrides).architecture)
    if wrong:
        text, count = re.subn(*WRONG[wrong], text)
        assert count
    return ugly(import_text(text, _scratch()).Model()).double()


def apart(model: Any, pieces: Sequence[int], mask: Tensor | None = None, positions: Tensor | None = None) -> float:
    """How far logits of real tokens are from those of the full pass, where tokens come in pieces through the cache."""
    total = sum(pieces)
    ids = random_ids(3, total)
    ends = list(accumulate(pieces, initial=0))
    with torch.no_grad():
        whole = model(ids, positions, mask)
        cache = model.new_cache(3, total)
        found = []
        for a, b in pairwise(ends):
            given_positions = None if positions is None else positions[:, a:b]
            found.append(model(ids[:, a:b], given_positions, None if mask is None else mask[:, :b], cache))
    real = torch.ones(3, total).bool() if mask is None else mask.bool()
    return float((torch.cat(found, dim=1) - whole)[real].abs().max())


@pytest.mark.parametrize("design", DESIGNS)
@settings(max_examples=25, deadline=None)
@given(
    rows=st.sampled_from((1, 2, 5, 8)),
    pieces=st.lists(st.sampled_from((1, 1, 1, 2, 3, 7, 11)), min_size=2, max_size=14),
    padding=st.none() | st.lists(st.integers(0, 9), min_size=3, max_size=3),
    gap=st.integers(1, 3),
)
def test_pieces_equal_the_full_pass(
    design: str, rows: int, pieces: list[int], padding: list[int] | None, gap: int
) -> None:
    """Whatever the window, the pieces, the padding on the left, and the gaps between positions that are given."""
    pieces = [size for size, end in zip(pieces, accumulate(pieces), strict=True) if end <= LONGEST]
    total = sum(pieces)
    mask = None
    if padding is not None:
        mask = (torch.arange(total) >= torch.tensor(padding).clamp(max=total - 1)[:, None]).long()
    positions = None if gap == 1 else (torch.arange(total)[None] * gap).clamp(max=63).expand(3, -1)
    assert apart(made(design, rows), pieces, mask, positions) < EXACT


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_row_is_seen(wrong: str) -> None:
    pieces = (9, 1, 1, 1, 3, 1, 7, 1, 1)
    assert apart(made("all", 5), pieces) < EXACT
    assert apart(made("all", 5, wrong), pieces) > 1e-4


def test_a_prefill_that_fills_the_window_needs_no_more_than_it() -> None:
    """Just before, at and just behind the last row."""
    for prefill in (4, 5, 6):
        assert apart(made("all", 5), (prefill, 1, 1, 1, 1, 1, 1)) < EXACT


def _bytes(cache: Any) -> int:
    return sum(rows.numel() * rows.element_size() for name in vars(cache).values() for rows in _tensors(name))


def _tensors(value: object) -> Iterable[Tensor]:
    return [each for each in value if isinstance(each, Tensor)] if isinstance(value, list) else []


@pytest.mark.parametrize("name", GENERATABLE)
def test_a_cache_has_the_reported_size(tmp_path: Path, name: str) -> None:
    """Below, at and beyond the windows; nothing is rounded up."""
    architecture = compile_spec(name).architecture
    with torch.device("meta"):
        model = import_text(generate(architecture), tmp_path).Model().bfloat16()
    for length in (100, 512, 5000):
        sizes = cache_sizes(architecture, context=length, batch=2, dtype="bfloat16", state_dtype="bfloat16")
        assert _bytes(model.new_cache(2, length)) == sizes["bytes_at_context"]
        windows = [mixer.window or mixer.chunk or length for mixer in mixers(architecture)]
        assert (sizes["bytes_at_context"] < sizes["bytes_at_context_reserved"]) is (min(windows) < length)


def test_rows_are_written_in_place() -> None:
    model = made("mixed", 5)
    cache = model.new_cache(1, LONGEST)
    before = [rows.data_ptr() for rows in (*cache.keys, *cache.values)]
    assert [rows.shape[2] for rows in cache.keys] == [5, LONGEST, 5]
    with torch.no_grad():
        for ids in torch.split(random_ids(1, LONGEST), [9, 1, 1, 7, 1, 1, 20], dim=1):
            model(ids, cache=cache)
    assert [rows.data_ptr() for rows in (*cache.keys, *cache.values)] == before


@pytest.mark.slow
def test_nothing_is_compiled_again_once_windows_are_full() -> None:
    model, ids = made("two windows", 7), random_ids(2, 24)
    counter = CompileCounter()
    compiled: Any = torch.compile(model, backend=counter, fullgraph=True, dynamic=True)
    cache, found, full = model.new_cache(2, ids.shape[1]), [], 0
    with torch.no_grad():
        for end in range(1, ids.shape[1] + 1):
            found.append(compiled(ids[:, end - 1 : end], cache=cache))
            full = counter.frame_count if end == 9 else full
        assert (torch.cat(found, dim=1) - model(ids)).abs().max() < EXACT
    assert counter.frame_count == full
