"""Invariants on ports that break exactly one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from archc.architecture import Architecture, compile_text
from archc.validation.gate import run_gate
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


class SeesTheFuture(GeneratedPort):
    """The logits of every position know the last token."""

    def logits(self, probe: Probe) -> Tensor:
        return super().logits(probe) + 0.01 * probe.input_ids[:, -1:, None]


class IgnoresPadding(GeneratedPort):
    """The attention mask of a batch is left out."""

    def logits(self, probe: Probe) -> Tensor:
        return super().logits(replace(probe, attention_mask=None))


class ForgetsItsCache(GeneratedPort):
    """Every piece is computed as if nothing came before it."""

    def logits(self, probe: Probe) -> Tensor:
        if probe.chunks is None:
            return super().logits(probe)
        return torch.cat([GeneratedPort.logits(self, Probe("p", "", piece)) for piece in probe.pieces()], dim=1)


class CannotBeTraced(GeneratedPort):
    """Wrong, and shows nothing but its logits."""

    def logits(self, probe: Probe) -> Tensor:
        return super().logits(probe) * 1.01

    def points(self, probe: Probe) -> dict[str, Tensor]:
        return None  # type: ignore[return-value]


def broken(checkpoint: Checkpoint, port: Callable[[Architecture, Path], GeneratedPort], name: str) -> set[str]:
    result = run_gate(compile_text(BY_NAME[name].text()), checkpoint(name), lambda _step: None, open_port=port)
    if any(not invariant.passed for invariant in result.invariants):
        assert not result.passed
    return {invariant.name for invariant in result.invariants if not invariant.passed}


@pytest.mark.parametrize(
    ("port", "names"),
    [
        (GeneratedPort, set()),
        (SeesTheFuture, {"causality"}),
        (IgnoresPadding, {"padding independence"}),
        (ForgetsItsCache, {"cache equivalence"}),
    ],
)
def test_each_invariant_is_broken_by_its_own_mistake(
    checkpoint: Checkpoint, port: Callable[[Architecture, Path], GeneratedPort], names: set[str]
) -> None:
    found = broken(checkpoint, port, "llama-default")
    assert names <= found if port is SeesTheFuture else found == names


def test_a_cache_of_another_size_is_noticed(checkpoint: Checkpoint) -> None:
    """A window that transformers does not have: its cache holds all 256 positions, the spec says 6."""
    result = run_gate(
        compile_text(BY_NAME["llama-default"].text(), overrides=["attention.window=7"]),
        checkpoint("llama-default"),
        lambda _step: None,
    )
    size = next(one for one in result.invariants if one.name == "cache size")
    assert not size.passed
    assert size.figure == 3 * 256 * 2 * 2 * 16


def test_a_window_longer_than_every_probe_is_noticed(tmp_path: Path) -> None:
    """Mistral's window of 4,096 left out of a spec: no probe of 512 tokens can see it, the reference's cache can."""
    tiny = replace(BY_NAME["mistral-window"], config=BY_NAME["mistral-window"].config | {"sliding_window": 4096})
    tiny.save(tmp_path)
    for override, right in (("attention.window=4096", True), ("attention.window=null", False)):
        result = run_gate(compile_text(tiny.text(), overrides=[override]), tmp_path, lambda _step: None)
        windows = next(one for one in result.invariants if one.name == "windows")
        assert windows.passed == result.passed == right
        assert windows.figure == (0 if right else 3)


def test_a_scaling_that_begins_past_the_context_is_noticed(checkpoint: Checkpoint) -> None:
    """Dynamic scaling with the original context as context: only positions beyond it rotate differently."""
    at_original = ["context=20", "position.scaling=null"]
    result = run_gate(
        compile_text(BY_NAME["llama-dynamic"].text(), overrides=at_original),
        checkpoint("llama-dynamic"),
        lambda _step: None,
    )
    assert not result.passed
    assert not next(probe for probe in result.probes if probe.probe.name == "beyond the context").passed


def test_a_port_that_shows_nothing_is_said_to(checkpoint: Checkpoint) -> None:
    result = run_gate(
        compile_text(BY_NAME["llama-default"].text()),
        checkpoint("llama-default"),
        lambda _step: None,
        open_port=CannotBeTraced,
    )
    assert not result.passed
    assert result.divergence is not None
    assert result.divergence.point == "logits"
    assert "shows nothing but its logits" in result.divergence_note


def test_only_the_cached_probe_failing_is_said_to(checkpoint: Checkpoint) -> None:
    result = run_gate(
        compile_text(BY_NAME["llama-default"].text()),
        checkpoint("llama-default"),
        lambda _step: None,
        open_port=ForgetsItsCache,
    )
    assert not result.passed
    assert "only the probe that decodes through the cache fails" in result.divergence_note
