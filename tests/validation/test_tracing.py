"""Trace points: their names mean the same in transformers' classes and in generated modules, family by family."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from archc.validation.places import find_places
from archc.validation.tracing import LAYER_POINTS, order, trace
from tests.validation.traced import open_case, some_tokens

EVERYWHERE = {"embed", "final_norm", "logits"}
IN_EVERY_LAYER = set(LAYER_POINTS) - {"router.scores"}
PLAIN = ["llama", "qwen3", "gpt2", "gpt_neo", "gpt_bigcode", "gemma2", "gemma3_text", "olmo2", "phi", "phi3", "gptj"]
PLAIN += ["cohere", "falcon", "gpt_neox", "opt", "bloom", "mpt", "stablelm", "starcoder2", "glm4", "granite"]
PLAIN += ["minicpm3", "xglm"]
MIXTURES = ["mixtral", "qwen3_moe", "gpt_oss", "deepseek_v3", "glm4_moe", "llama4_text", "phimoe", "jetmoe", "dbrx"]
MIXTURES += ["deepseek_v2"]
SCALED_BEFORE = {"opt", "xglm"}
"""Classes that scale queries before the product, where the generated module does it after."""


def by_layer(points: dict[str, Tensor]) -> list[set[str]]:
    found: dict[int, set[str]] = {}
    for name in points:
        if name.startswith("layers."):
            _, number, kind = name.split(".", 2)
            found.setdefault(int(number), set()).add(kind)
    return [found[number] for number in sorted(found)]


@pytest.mark.parametrize("name", PLAIN + MIXTURES)
def test_both_sides_show_every_point_and_agree(name: str) -> None:
    case, probe = open_case(name), some_tokens()
    theirs, ours = case.reference.points(probe), case.port.points(probe)
    for points in (theirs, ours):
        assert set(points) >= EVERYWHERE
        layers = by_layer(points)
        assert len(layers) == case.layers
        assert all(kinds >= IN_EVERY_LAYER for kinds in layers)
        assert any("router.scores" in kinds for kinds in layers) == (name in MIXTURES)
        assert order(points) == list(points)
    assert set(theirs) == set(ours)
    for point, expected in theirs.items():
        assert ours[point].shape == expected.shape, point
        turned = point.endswith((".q", ".k"))  # some classes change the order of channels before they turn them
        if not turned:
            assert torch.allclose(ours[point], expected, rtol=1e-3, atol=1e-3 * float(expected.abs().max())), point
        elif name not in SCALED_BEFORE:
            assert torch.allclose(ours[point].norm(dim=-1), expected.norm(dim=-1), rtol=1e-3), point


def test_shapes_are_those_of_the_docs() -> None:
    case, probe = open_case("qwen3_moe"), some_tokens(24)
    config = case.reference.model.config
    heads, kv_heads, channels = config.num_attention_heads, config.num_key_value_heads, config.head_dim
    points = case.reference.points(probe)
    assert points["layers.0.mixer.q"].shape == (1, heads, 24, channels)
    assert points["layers.0.mixer.k"].shape == points["layers.0.mixer.v"].shape == (1, kv_heads, 24, channels)
    for point in ("embed", "layers.1.mixer.in", "layers.1.mixer.out", "layers.1.ffn.in", "layers.1.ffn.out"):
        assert points[point].shape == (1, 24, config.hidden_size)
    scores = [value for name, value in points.items() if name.endswith("router.scores")]
    assert {tuple(value.shape) for value in scores} == {(1, 24, config.num_experts)}


def test_queries_and_keys_are_those_of_the_product() -> None:
    """After the norm and the rotation: worked out here from the layer's input, by the rules of the paper (RoFormer)."""
    case, probe = open_case("llama"), some_tokens(9)
    points, config = case.reference.points(probe), case.reference.model.config
    layer = case.reference.model.model.layers[0].self_attn
    with torch.no_grad():
        q = layer.q_proj(points["layers.0.mixer.in"]).unflatten(-1, (config.num_attention_heads, -1)).transpose(1, 2)
    half = q.shape[-1] // 2
    base = config.rope_parameters["rope_theta"]
    angles = torch.arange(9.0)[:, None] * base ** (-torch.arange(half) / half)
    a, b = q[..., :half], q[..., half:]
    turned = torch.cat((a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), dim=-1)
    assert torch.allclose(points["layers.0.mixer.q"], turned, atol=1e-5)
    assert not torch.allclose(points["layers.0.mixer.q"], q, atol=1e-2)


def test_a_class_that_adds_the_stream_itself_shows_what_it_adds() -> None:
    """Bloom's attention returns its output with the stream added; the point is what the part alone gives."""
    case, probe = open_case("bloom"), some_tokens(12)
    points = case.reference.points(probe)
    rest = points["layers.0.out"] - points["layers.0.mixer.out"] - points["layers.0.ffn.out"]
    assert torch.allclose(rest, points["embed"], atol=1e-4)


def test_layers_are_fed() -> None:
    case, probe = open_case("llama"), some_tokens(12)
    base, _ = case.reference.trace(probe)
    other = {"layers.1": torch.randn(base.entering["layers.1"].shape, generator=torch.Generator().manual_seed(0))}
    fed, _ = case.reference.trace(probe, fed=other)
    assert torch.equal(fed.points["layers.0.out"], base.points["layers.0.out"])
    assert not torch.equal(fed.points["layers.1.mixer.in"], base.points["layers.1.mixer.in"])
    again, _ = case.reference.trace(probe, fed=base.entering)
    assert all(torch.equal(again.points[point], value) for point, value in base.points.items())


class Bare(nn.Module):
    """A port of the user's own, whose names are nobody else's."""

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.my_attention = nn.Linear(60, 60)
            self.norm_before_mlp = nn.LayerNorm(60)
            self.my_mlp = nn.Linear(60, 60)

        def forward(self, x: Tensor) -> Tensor:
            x = x + self.my_attention(x)
            out: Tensor = x + self.my_mlp(self.norm_before_mlp(x))
            return out

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.rows = nn.Embedding(211, 60)
        self.stack = nn.ModuleList(self.Layer() for _ in range(layers))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.rows(ids)
        for layer in self.stack:
            x = layer(x)
        product: Tensor = x @ self.rows.weight.T
        return product


def test_a_module_of_ones_own_is_recognised_by_the_number_of_its_layers() -> None:
    architecture, probe = open_case("llama").architecture, some_tokens(8)
    model = Bare(len(architecture.layers))
    places = find_places(model, architecture)
    assert places.guessed
    with torch.no_grad():
        points = trace(lambda: model(probe.input_ids), places, (1, 8), None).points
    kinds = by_layer(points)
    assert kinds == [{"mixer.in", "mixer.out", "ffn.in", "ffn.out", "out"}] * len(architecture.layers)
    assert torch.allclose(
        points["layers.0.out"], points["layers.0.mixer.out"] + points["embed"] + points["layers.0.ffn.out"]
    )
    assert find_places(Bare(len(architecture.layers) + 1), architecture).layers == ()


@pytest.mark.parametrize("name", ["llama", "gpt2", "deepseek_v3"])
def test_a_run_may_end_behind_a_layer(name: str) -> None:
    """It shows what a whole run shows up to there, and nothing of what comes behind."""
    case, probe = open_case(name), some_tokens()
    whole, early = case.port.points(probe), case.port.points_until(probe, 1)
    assert list(early) == [point for point in whole if point == "embed" or point.startswith(("layers.0.", "layers.1."))]
    assert all(torch.equal(early[point], whole[point]) for point in early)
    assert case.port.points_until(probe, 99).keys() == whole.keys()
    assert torch.equal(case.port.points(probe)["logits"], whole["logits"]), "nothing of it stays behind"
