"""Rotary tables and turns of a generated module, against those of transformers' classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding
from transformers.models.nanochat.modeling_nanochat import apply_rotary_pos_emb as turn_backward
from transformers.models.phimoe.modeling_phimoe import PhimoeRotaryEmbedding

from archc.architecture import compile_text
from archc.codegen import generate
from archc.importing.convert import convert
from tests.codegen.combinations import BASE, LLAMA3, LONG_FACTORS, YARN, combination, longrope
from tests.codegen.support import import_text
from tests.families.zoo import CASES
from tests.families.zoo_case import Case, rope

WIDTH, HEADS, HEAD_DIM, CONTEXT = 72, 6, 16, 64


def module(tmp_path: Path, *overrides: str) -> Any:
    """The module that archc generates for the common spec with overrides."""
    return import_text(generate(compile_text(BASE, overrides=overrides).architecture), tmp_path)


def close(ours: Tensor, theirs: Tensor) -> bool:
    """Equal but for the rounding of 32-bit numbers."""
    return torch.allclose(ours, theirs, rtol=1e-5, atol=1e-5)


LENGTHS = (1, 30, 31, 64, 200)


class Config:
    """As much of a config as transformers' functions ask for."""

    hidden_size, num_attention_heads, head_dim, max_position_embeddings = WIDTH, HEADS, HEAD_DIM, CONTEXT

    def __init__(self, **parameters: Any) -> None:
        self.rope_parameters = {"rope_theta": 5300.0, "partial_rotary_factor": 1.0, **parameters}

    def standardize_rope_params(self) -> None:
        """Nothing to bring up to date."""


KEYS = {
    "kind": "rope_type",
    "original_context": "original_max_position_embeddings",
    "short_factors": "short_factor",
    "long_factors": "long_factor",
    "share": "partial_rotary_factor",
}
SCALINGS = {
    "linear": "{kind: linear, factor: 3}",
    "dynamic": f"{{kind: dynamic, factor: 3, original_context: {CONTEXT}}}",
    "llama3": LLAMA3,
    "llama3-one-factor": LLAMA3.replace("low_freq_factor: 0.7", "low_freq_factor: 3.1"),
    "yarn": YARN,
    "yarn-ragged": YARN.replace("}", ", truncate: false}"),
    "yarn-steep": "{kind: yarn, factor: 3, original_context: 30, beta_fast: 1.2, beta_slow: 1.1}",
    "yarn-mscales": YARN.replace("}", ", mscale: 0.7, mscale_all_dim: 0.5}"),
    "yarn-factor": YARN.replace("}", ", attention_factor: 1.4}"),
    "longrope": longrope(30, LONG_FACTORS),
    "longrope-factor": longrope(30, LONG_FACTORS, "attention_factor: 1.4"),
    "longrope-one-table": longrope(30),
    "proportional": "{kind: proportional, share: 0.4, factor: 3}",
    "proportional-whole": "{kind: proportional, factor: 3}",
}


def theirs(scaling: str, length: int, **changes: Any) -> tuple[Tensor, float]:
    """transformers' frequencies for an input of a length, and what multiplies cosines and sines."""
    stated = {KEYS.get(name, name): value for name, value in {**yaml.safe_load(scaling), **changes}.items()}
    function = ROPE_INIT_FUNCTIONS[stated["rope_type"]]
    frequencies, factor = function(Config(**stated), torch.device("cpu"), seq_len=length)
    return frequencies, factor


def ours(generated: Any, length: int, table: str = "rotation_table") -> tuple[Tensor, float]:
    """The same of a generated module: the angle at position 1, and the root of cosine and sine squared."""
    positions = torch.tensor([[1, max(length - 1, 1)]])
    cos, sin = (found[0, 0, 0] for found in getattr(generated, table)(positions, dtype=torch.float32))
    return torch.atan2(sin, cos), float(torch.hypot(sin, cos)[0])


@pytest.mark.parametrize("name", SCALINGS)
def test_tables_are_those_of_transformers(tmp_path: Path, name: str) -> None:
    generated = module(tmp_path, f"position.scaling={SCALINGS[name]}")
    for length in LENGTHS:
        frequencies, factor = ours(generated, length)
        wanted, wanted_factor = theirs(SCALINGS[name], length)
        assert torch.allclose(frequencies, wanted, rtol=1e-6, atol=0), length
        assert factor == pytest.approx(wanted_factor)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("linear", {"factor": 3.1}),
        ("dynamic", {"factor": 3.1}),
        ("llama3", {"high_freq_factor": 3.0}),
        ("llama3-one-factor", {"low_freq_factor": 0.2}),
        ("yarn", {"truncate": False}),
        ("yarn-ragged", {"truncate": True}),
        ("longrope", {"original_context": 64}),
        ("longrope-one-table", {"long_factors": [1.0] * 8}),
        ("proportional", {"share": 0.6}),
        ("proportional-whole", {"share": 0.9}),
    ],
)
def test_a_changed_field_is_another_table(tmp_path: Path, name: str, changes: dict[str, Any]) -> None:
    frequencies, _ = ours(module(tmp_path, f"position.scaling={SCALINGS[name]}"), 64 + 36 * (name == "dynamic"))
    wanted, _ = theirs(SCALINGS[name], 64 + 36 * (name == "dynamic"), **changes)
    assert not torch.allclose(frequencies, wanted, rtol=1e-3, atol=0)


def test_alpha_is_a_larger_base(tmp_path: Path) -> None:
    generated = module(tmp_path, "position.scaling={kind: ntk_alpha, alpha: 7}")
    for alpha, same in ((7.0, True), (6.0, False)):
        config = Config(rope_type="dynamic", alpha=alpha)
        wanted, _ = HunYuanDenseV1RotaryEmbedding.compute_ntk_alpha_rope_parameters(config)
        assert torch.allclose(ours(generated, 1)[0], wanted, rtol=1e-6, atol=0) is same


def test_kinds_of_layer_have_tables_of_their_own(tmp_path: Path) -> None:
    """Both are made by rules of their own, over heads of their own."""
    near = f"{{position: {{base: 900, scaling: {LLAMA3}}}, attention: {{head_dim: 12}}}}"
    far = f"{{position: {{scaling: {SCALINGS['proportional']}}}}}"
    generated = module(tmp_path, f"layers={{count: 2, kinds: {{near: {near}, far: {far}}}, pattern: 'near, far'}}")
    llama3, _ = ROPE_INIT_FUNCTIONS["llama3"](
        type("Near", (Config,), {"head_dim": 12})(
            **{**{KEYS.get(k, k): v for k, v in yaml.safe_load(LLAMA3).items()}, "rope_theta": 900.0}
        ),
        torch.device("cpu"),
    )
    assert torch.allclose(ours(generated, 1, "near_rotation_table")[0], llama3, rtol=1e-6, atol=0)
    proportional, _ = theirs(SCALINGS["proportional"], 1)
    assert torch.allclose(ours(generated, 1, "far_rotation_table")[0], proportional, rtol=1e-6, atol=0)
    assert (generated.NEAR_ROPE_BASE, generated.FAR_ROPE_BASE) == (900, 5300)


def test_the_factor_of_long_inputs(tmp_path: Path) -> None:
    """phimoe's: cosines and sines have one factor up to the original context, and another beyond."""
    stated = rope(
        5300.0,
        rope_type="longrope",
        short_factor=[1.0, 1.1, 1.25, 1.3, 1.45],
        long_factor=[1.2, 1.7, 2.6, 3.3, 4.8],
        short_mscale=1.2,
        long_mscale=1.7,
        original_max_position_embeddings=24,
    )
    case = Case("phimoe", "phimoe", {**_phimoe().config, "rope_parameters": stated})
    architecture = compile_text(convert(case.config_dict(), "tiny").text).architecture
    generated = import_text(generate(architecture), tmp_path)
    reference = PhimoeRotaryEmbedding(case.hf_config())
    for length in (24, 25):
        positions = torch.arange(length)[None]
        cos, sin = reference(torch.zeros(1, 1, 60), positions)
        our_cos, our_sin = generated.rotation_table(positions, torch.float32)
        assert close(our_cos[0, 0], cos[0, :, :5])
        assert close(our_sin[0, 0], sin[0, :, :5])
        assert ours(generated, length)[1] == pytest.approx(1.2 if length == 24 else 1.7)


# ---------------------------------------------------------------- turning


def test_backward_is_the_other_way_round(tmp_path: Path) -> None:
    backward = module(tmp_path, "position.direction=backward")
    forward = module(tmp_path)
    heads = torch.randn(2, HEADS, 20, HEAD_DIM, generator=torch.Generator().manual_seed(5))
    angles = torch.arange(20)[:, None] * ours(forward, 1)[0]
    cos, sin = (torch.cat((table, table), -1)[None] for table in (angles.cos(), angles.sin()))
    wanted, _ = turn_backward(heads, heads, cos, sin)
    turned = backward.rotate(heads, angles.cos()[None, None], angles.sin()[None, None])
    assert close(turned, wanted)
    assert not close(forward.rotate(heads, angles.cos()[None, None], angles.sin()[None, None]), wanted)
    assert close(forward.rotate(turned, angles.cos()[None, None], angles.sin()[None, None]), heads)


@pytest.mark.parametrize("name", ["backward-interleaved", "interleaved-partial"])
def test_neighbours_turn_as_complex_numbers(tmp_path: Path, name: str) -> None:
    """Of the first half of the channels, the pair (2i, 2i + 1) is multiplied by exp(± i·angle)."""
    generated = import_text(generate(combination(name)), tmp_path)
    heads = torch.randn(2, HEADS, 20, HEAD_DIM, generator=torch.Generator().manual_seed(5))
    angles = torch.arange(20)[:, None] * torch.arange(1, 5) / 7
    turned = generated.rotate(heads, angles.cos()[None, None], angles.sin()[None, None])
    sign = -1 if name.startswith("backward") else 1
    pairs = torch.view_as_complex(heads[..., :8].reshape(2, HEADS, 20, 4, 2))
    by_hand = torch.view_as_real(pairs * torch.exp(sign * 1j * angles)).flatten(-2)
    assert close(turned[..., :8], by_hand)
    assert torch.equal(turned[..., 8:], heads[..., 8:])


def _phimoe() -> Case:
    return next(case for case in CASES if case.name == "phimoe")
