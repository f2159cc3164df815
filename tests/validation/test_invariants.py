"""Invariants on ports that break exactly one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from archc.architecture import Architecture, compile_text
from archc.validation.gate import run_gate
from archc.validation.places import Places
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.python_port import PythonPort
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


class MixesRows(GeneratedPort):
    """A row of a batch knows the row before it."""

    def logits(self, probe: Probe) -> Tensor:
        return super().logits(probe) + 0.01 * (probe.input_ids - probe.input_ids.roll(1, 0))[..., None]


class TakesPaddingToBeOnTheLeft(GeneratedPort):
    """Positions begin behind as many places as there is padding, wherever that is."""

    def logits(self, probe: Probe) -> Tensor:
        if probe.real.all() or probe.chunks is not None:
            return super().logits(probe)
        places = torch.arange(probe.real.shape[1]) - (~probe.real).sum(-1, keepdim=True)
        return super().logits(replace(probe, position_ids=places.clamp(min=0)))


class DecodesPadding(GeneratedPort):
    """With a cache, the attention mask is left out."""

    def logits(self, probe: Probe) -> Tensor:
        return super().logits(probe if probe.chunks is None else replace(probe, attention_mask=None))


class KnowsWhereItIs(GeneratedPort):
    """Positions are added to what they rotate."""

    def logits(self, probe: Probe) -> Tensor:
        at = torch.arange(probe.input_ids.shape[1])[None] if probe.position_ids is None else probe.position_ids
        return super().logits(probe) * (1 + 1e-3 * at[..., None])


class HasAShortCache(GeneratedPort):
    """Its cache begins anew after 48 tokens, as many as the probe of the cache has."""

    def logits(self, probe: Probe) -> Tensor:
        found = super().logits(probe)
        if probe.chunks is None or probe.input_ids.shape[1] <= 48:
            return found
        rest = super().logits(Probe("rest", "", probe.input_ids[:, 48:]))
        return torch.cat([found[:, :48], rest], dim=1)


class CannotBeTraced(GeneratedPort):
    """Wrong, and shows nothing but its logits."""

    def logits(self, probe: Probe) -> Tensor:
        return super().logits(probe) * 1.01

    places = Places()

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
        (IgnoresPadding, {"padding independence", "padded decoding"}),
        (ForgetsItsCache, {"cache equivalence", "padded decoding"}),
        (MixesRows, {"batch independence", "padding independence", "right padding", "padded decoding"}),
        (TakesPaddingToBeOnTheLeft, {"right padding"}),
        (DecodesPadding, {"padded decoding"}),
        (KnowsWhereItIs, {"shift invariance"}),
    ],
)
def test_each_invariant_is_broken_by_its_own_mistake(
    checkpoint: Checkpoint, port: Callable[[Architecture, Path], GeneratedPort], names: set[str]
) -> None:
    found = broken(checkpoint, port, "llama-default")
    assert names <= found if port is SeesTheFuture else found == names


def test_a_cache_is_filled_past_its_window(checkpoint: Checkpoint) -> None:
    """A window of 7 is crossed by the probe of 64 tokens, through the cache in pieces that reach over its edge."""
    assert broken(checkpoint, GeneratedPort, "mistral-window") == set()
    assert broken(checkpoint, HasAShortCache, "mistral-window") == {"cache, window 7"}
    assert broken(checkpoint, HasAShortCache, "llama-default") == set(), "no window, no such check"


class OneMaskForAll(transformers.LlamaForCausalLM):  # type: ignore[misc]
    """A mask of ones where there is none: documents that share a row are one text."""

    def forward(
        self, input_ids: Tensor, position_ids: Tensor | None = None, attention_mask: Tensor | None = None
    ) -> Any:
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        return super().forward(input_ids, position_ids=position_ids, attention_mask=mask)


def _packed(checkpoint: Checkpoint, kind: Any) -> list[bool]:
    """Whether packed documents are kept apart; nothing where that is not asked."""

    def load(folder: Path, dtype: torch.dtype) -> Any:
        return kind.from_pretrained(folder, dtype=dtype, attn_implementation="eager")

    result = run_gate(
        compile_text(BY_NAME["llama-default"].text()),
        checkpoint("llama-default"),
        lambda _step: None,
        open_port=lambda _architecture, folder: PythonPort("a port", load, folder),
    )
    return [one.passed for one in result.invariants if one.name == "packed documents"]


def test_packed_documents_are_asked_of_transformers_models_alone(checkpoint: Checkpoint) -> None:
    class Plain:
        @staticmethod
        def from_pretrained(*about: Any, **more: Any) -> Any:
            model = transformers.LlamaForCausalLM.from_pretrained(*about, **more)

            def call(input_ids: Tensor, position_ids: Tensor | None = None) -> Any:
                return model(input_ids, position_ids=position_ids)

            return call

    assert _packed(checkpoint, transformers.LlamaForCausalLM) == [True]
    assert _packed(checkpoint, OneMaskForAll) == [False]
    assert _packed(checkpoint, Plain) == []


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
