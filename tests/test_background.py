"""Facts about the four swaps, worked out by hand, on the code that archc generates."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from archc.architecture import compile_spec
from archc.codegen import generate
from archc.parts.position import Rope
from archc.validation.ports import import_source


def module(name: str, *overrides: str) -> Any:
    return import_source(generate(compile_spec(name, overrides).architecture))


def test_rmsnorm_by_hand() -> None:
    """x = [2, 4, 6, 8] has the root mean square sqrt(30); adding 10 to all changes the result."""
    norm = module("smollm2-135m").RMSNorm(4, 1e-12)
    x = torch.tensor([2.0, 4.0, 6.0, 8.0])
    assert norm(x).tolist() == pytest.approx([0.365, 0.730, 1.095, 1.461], abs=5e-4)
    assert norm(x + 10).tolist() == pytest.approx([0.791, 0.923, 1.055, 1.187], abs=5e-4)


def test_layernorm_by_hand() -> None:
    """Adding 10 to all channels changes nothing once they are centred; a stored weight of zero is a gain of one."""
    norm = module("smollm2-135m", "norm.kind=layernorm", "norm.weight=one_plus").OnePlusLayerNorm(4, 1e-12)
    x = torch.tensor([2.0, 4.0, 6.0, 8.0])
    assert norm(x).tolist() == pytest.approx([-1.342, -0.447, 0.447, 1.342], abs=5e-4)
    assert norm(x + 10).tolist() == pytest.approx([-1.342, -0.447, 0.447, 1.342], abs=5e-4)


def test_rotation_depends_on_distance_alone() -> None:
    """In two dimensions at 0.5 rad per position: q = [1, 0], k = [0.6, 0.8]."""
    rotate = module("smollm2-135m").rotate

    def score(q_at: int, k_at: int) -> float:
        def turned(vector: list[float], position: int) -> torch.Tensor:
            angle = torch.tensor([0.5 * position])
            return torch.as_tensor(rotate(torch.tensor(vector)[None], angle.cos(), angle.sin()))[0]

        return float(turned([1.0, 0.0], q_at) @ turned([0.6, 0.8], k_at))

    for q_at, k_at in ((2, 5), (10, 13), (100, 103)):
        assert score(q_at, k_at) == pytest.approx(-0.7556, abs=1e-4)
    assert score(5, 2) == pytest.approx(0.8404, abs=1e-4)
    assert score(7, 7) == pytest.approx(0.6, abs=1e-6)


def rope_of(name: str, *changes: str) -> Rope:
    mixer = compile_spec(name, changes).architecture.layers[0].mixer
    assert mixer is not None
    assert mixer.rope is not None
    return mixer.rope


@pytest.mark.parametrize(("base", "slowest"), [(10_000, 47_117), (100_000, 438_458)])
def test_periods(base: int, slowest: int) -> None:
    """64 channels: the fastest pair turns once per 2π positions, the slowest per 2π·base^(62/64)."""
    rope = rope_of("smollm2-135m", f"position.base={base}")
    frequencies = rope.frequencies()
    assert 2 * math.pi / float(frequencies[0]) == pytest.approx(6.2832, rel=1e-4)
    assert 2 * math.pi / float(frequencies[-1]) == pytest.approx(slowest, rel=1e-3)


def test_llama3_bands() -> None:
    """Of 64 pairs the 29 fastest are left alone, the 29 slowest slowed by 8, the 6 between blended."""
    rope = rope_of("llama3.1-8b")
    slowed = [f / g for f, g in zip(rope.unscaled_frequencies(), rope.frequencies(), strict=True)]
    assert slowed[:29] == pytest.approx([1.0] * 29)
    assert all(1.0 < ratio < 8.0 for ratio in slowed[29:35])
    assert slowed[35:] == pytest.approx([8.0] * 29)


def test_router_by_hand() -> None:
    """Scores [2, -1, 0.5, 1.5], top 2: experts 0 and 3, softmax weights 0.62 and 0.38."""
    overrides = ("ffn.experts=4", "ffn.top_k=2", "hidden_size=4", "ffn.width=1", "attention.head_dim=4", "layers=1")
    experts = module("mixtral-8x7b", *overrides).Experts()
    with torch.no_grad():
        experts.router.weight.copy_(torch.tensor([2.0, -1.0, 0.5, 1.5])[:, None] * torch.eye(4)[0])
        experts.up.fill_(1.0)
        experts.gate.fill_(1.0)
        experts.down.copy_(torch.eye(4)[:, :, None])  # expert e answers in channel e
    out = experts(torch.tensor([[[1.0, 0.0, 0.0, 0.0]]]), None)[0, 0] / float(
        torch.nn.functional.silu(torch.tensor(1.0))
    )
    assert out.tolist() == pytest.approx([0.622, 0, 0, 0.378], abs=1e-3)


def test_silu_by_hand() -> None:
    """A gate of x on an up of 1: the feed-forward answers silu(x)."""
    ffn = module("smollm2-135m", "hidden_size=2", "attention.head_dim=2", "ffn.width=1", "layers=1").FeedForward()
    with torch.no_grad():
        ffn.gate.weight.copy_(torch.tensor([[1.0, 0.0]]))
        ffn.up.weight.copy_(torch.tensor([[0.0, 1.0]]))
        ffn.down.weight.copy_(torch.tensor([[1.0], [0.0]]))
    found = [ffn(torch.tensor([[[float(x), 1.0]]]))[0, 0, 0].item() for x in range(-4, 5)]
    assert found == pytest.approx([-0.072, -0.142, -0.238, -0.269, 0, 0.731, 1.762, 2.858, 3.928], abs=5e-4)


def test_interleaved_groups_are_neighbours() -> None:
    """Query heads 0, 1, 2 look at key/value head 0; tiled, heads 0, 3, 6 do."""
    sizes = ("hidden_size=9", "attention.head_dim=1", "position=null", "layers=1")
    for grouping, expected in (("interleaved", [0, 0, 0, 1, 1, 1, 2, 2, 2]), ("tiled", [0, 1, 2] * 3)):
        attention = module("smollm2-135m", *sizes, f"attention.grouping={grouping}").Attention(0)
        with torch.no_grad():
            attention.v.weight.copy_(torch.eye(9)[:3])
            attention.o.weight.copy_(torch.eye(9))
        x = torch.zeros(1, 1, 9)
        x[0, 0, :3] = torch.tensor([0.0, 1.0, 2.0])
        visible = torch.ones(1, 1, 1, 1, dtype=torch.bool)
        assert attention(x, visible, None)[0, 0].tolist() == pytest.approx(expected)
