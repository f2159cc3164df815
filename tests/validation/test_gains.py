"""Norm weights that tell whether a 1 was added to them, and random ones that tell nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from archc.architecture import compile_text
from archc.checkpoints.headers import read_checkpoint
from archc.validation.gains import GainDoubt, doubtful_gains
from archc.validation.rewritten import rewrite
from tests.tiny import BY_NAME, TINY, Tiny

Checkpoint = Callable[[str], Path]


def wide(name: str) -> Tiny:
    """A tiny model of as many channels as a small released one has."""
    return replace(BY_NAME[name], config=BY_NAME[name].config | {"hidden_size": 288})


def doubts(tiny: Tiny, folder: Path) -> tuple[GainDoubt, ...]:
    return doubtful_gains(compile_text(tiny.text()).architecture, read_checkpoint(folder))


def with_gains(tiny: Tiny, folder: Path, mean: float, spread: float, place: str = "norm") -> Path:
    """A checkpoint with norm weights like those of released ones."""
    generator = torch.Generator().manual_seed(0)

    def change(name: str, tensor: Tensor) -> Tensor:
        mine = place in name and tensor.ndim == 1
        return mean + spread * torch.randn(tensor.shape, generator=generator) if mine else tensor

    made, into = folder / "made", folder / "changed"
    into.mkdir()
    tiny.save(made)
    rewrite(made, into, change=change)
    return into


@pytest.mark.parametrize("name", [tiny.name for tiny in TINY])
def test_random_weights_raise_no_alarm(name: str, checkpoint: Checkpoint) -> None:
    assert doubts(BY_NAME[name], checkpoint(name)) == ()


@pytest.mark.parametrize(
    ("name", "mean", "places"),
    [
        ("gemma2", 0.22, 0),  # as released
        ("gemma2", 1.15, 5),  # already folded: four norms of a layer, and the final one
        ("gemma2", 8.0, 0),  # trained far away from 1
        ("llama-default", 1.15, 0),
        ("llama-default", 0.3, 0),  # small, and positive all the same
        ("llama-default", 0.05, 3),  # stored as Gemma's are
    ],
)
def test_values_tell_the_convention(name: str, mean: float, places: int, tmp_path: Path) -> None:
    spread = 0.05 if mean == 0.3 else 0.2
    found = doubts(wide(name), with_gains(wide(name), tmp_path, mean, spread))
    assert len(found) == places
    for one in found:
        assert one.declared == ("one_plus" if name == "gemma2" else "plain")
        assert one.mean == pytest.approx(mean, abs=0.1)


def test_narrow_models_are_those_of_tests(tmp_path: Path) -> None:
    assert doubts(BY_NAME["gemma2"], with_gains(BY_NAME["gemma2"], tmp_path, 1.15, 0.2)) == ()


def test_one_place_is_named_alone(tmp_path: Path) -> None:
    """Two conventions in one layer: each norm is held against its own."""
    found = doubts(wide("qwen3"), with_gains(wide("qwen3"), tmp_path, 0.0, 0.2, "post_attention_layernorm"))
    assert [one.tensors for one in found] == ["model.layers.N.post_attention_layernorm.weight"]


def test_one_place_far_above_its_convention_is_training(tmp_path: Path) -> None:
    folder = with_gains(wide("gemma2"), tmp_path, 1.15, 0.2, "post_feedforward_layernorm")
    assert doubts(wide("gemma2"), folder) == ()
