"""What attention may do beside the plain thing, against arithmetic that is written out head by head in fp64.

Where transformers has a function of its own for a step, that step is held against it as well.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from torch import Tensor
from transformers.masking_utils import chunked_causal_mask_function
from transformers.models.beam.modeling_beam import compute_attention_scaling
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.cohere.modeling_cohere import CohereLayerNorm
from transformers.models.ministral3.modeling_ministral3 import get_llama_4_attn_scale
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.stablelm.modeling_stablelm import StableLmLayerNormPerHead

from archc.architecture import compile_text
from archc.codegen import generate
from tests.codegen.attention_by_hand import HEAD_DIM, HEADS, KV_HEADS, TOKENS, Section, by_hand
from tests.codegen.combinations import BASE, layers
from tests.codegen.support import import_text, random_ids


def made(folder: Path, *overrides: str) -> Any:
    """The module of BASE with overrides."""
    return import_text(generate(compile_text(BASE, overrides=overrides).architecture), folder)


def ugly(module: Any) -> Any:
    """A model whose numbers are all far from neutral."""
    model, generator = module.Model(), torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.6 if parameter.ndim == 1 else 1.5 * parameter.shape[-1] ** -0.5
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return model


# ---------------------------------------------------------------- the whole attention, head by head

ROPE = {"kind": "rope"}
NONE = {"kind": "none"}
FEATURES: dict[str, tuple[Section, Section]] = {
    "plain": ({}, ROPE),
    "sinks": ({"sinks": "column"}, ROPE),
    "sinks-sigmoid": ({"sinks": "sigmoid", "grouping": "tiled", "scale": 0.4}, ROPE),
    "sinks-and-cap": ({"sinks": "column", "softcap": 1.5, "window": 5}, NONE),
    "clip": ({"clip": 0.7}, ROPE),
    "clip-behind-norms": ({"clip": 0.7, "v_norm": True, "qk_norm": {"over": "width"}}, ROPE),
    "gate-head": ({"gate": {"over": "head", "bias": True}, "bias": "all"}, ROPE),
    "gate-head-biased": ({"gate": {"over": "head", "head_bias": True, "score": "softplus"}}, ROPE),
    "gate-element": ({"gate": {"over": "element", "head_bias": True}, "value_dim": 10}, ROPE),
    "gate-softplus": ({"gate": {"over": "element", "score": "softplus"}, "output_norm": True}, ROPE),
    "steps": ({"query_scale": {"form": "steps", "strength": 0.7, "length": 6}}, ROPE),
    "steps-from-one": ({"query_scale": {"form": "steps", "strength": 0.7, "length": 6, "first": 1}}, NONE),
    "beyond": ({"query_scale": {"form": "beyond", "strength": 0.7, "length": 6}}, ROPE),
    "power": ({"query_scale": {"form": "power", "strength": 0.7, "length": 6, "first": 1}}, ROPE),
    "power-behind-norm": (
        {
            "query_scale": {"form": "power", "strength": 0.7, "length": 6, "counts": "columns"},
            "qk_norm": {"over": "head", "order": "after_rope"},
        },
        ROPE,
    ),
    "v-norm": ({"v_norm": True, "value_dim": 10, "value_scale": 0.6}, ROPE),
    "keys": ({"values": "keys"}, ROPE),
    "keys-normed": ({"values": "keys", "v_norm": True, "qk_norm": {"over": "head"}, "value_scale": 0.6}, ROPE),
    "keys-normed-wide": ({"values": "keys", "qk_norm": {"over": "width"}, "clip": 0.7}, ROPE),
    "keys-normed-late": ({"values": "keys", "qk_norm": {"over": "width", "order": "after_rope"}}, ROPE),
    "value-dim": ({"value_dim": 24, "grouping": "tiled", "output_norm": True}, ROPE),
    "value-dim-explicit": ({"value_dim": 10, "softcap": 1.5}, ROPE),
    "each-head": ({"qk_norm": {"over": "each_head"}}, ROPE),
    "each-head-late": ({"qk_norm": {"over": "each_head", "kind": "layernorm", "order": "after_rope"}}, ROPE),
    "weightless-late": ({"qk_norm": {"over": "each_head", "weight": "none", "order": "after_rope"}}, ROPE),
    "chunk": ({"chunk": 7}, ROPE),
    "chunk-and-sinks": ({"chunk": 7, "sinks": "sigmoid"}, NONE),
    "alibi": ({}, {"kind": "alibi"}),
    "alibi-eight": ({"heads": 8, "window": 9}, {"kind": "alibi", "max_bias": 3.0}),
    "alibi-scaled": ({"kv_heads": 6, "scale": 0.4}, {"kind": "alibi", "scaled": True}),
    "alibi-and-sinks": ({"sinks": "column"}, {"kind": "alibi"}),
    "factors": ({"factors": {"input": 1.3, "key": 0.7, "output": 0.6}, "gate": {"over": "head"}}, ROPE),
    "all": (
        {
            "bias": "all",
            "value_dim": 10,
            "value_scale": 0.6,
            "v_norm": True,
            "clip": 0.8,
            "softcap": 1.5,
            "sinks": "sigmoid",
            "chunk": 9,
            "output_norm": True,
            "qk_norm": {"over": "each_head", "order": "after_rope"},
            "gate": {"over": "element", "score": "softplus", "bias": True, "head_bias": True},
            "query_scale": {"form": "beyond", "strength": 0.7, "length": 6, "first": 1},
            "factors": {"input": 1.3, "key": 0.7, "output": 0.6},
        },
        ROPE,
    ),
    "factor-of-keys": ({"factors": {"key": 0.7}, "values": "keys", "qk_norm": {"over": "width"}}, ROPE),
}


def written(a: Section, position: Section) -> list[str]:
    """The same as overrides of BASE."""
    place = {**position, "base": 5300} if position["kind"] == "rope" else position
    section = {"heads": HEADS, "kv_heads": KV_HEADS, "head_dim": HEAD_DIM, **a}
    return [f"attention={_flow(section)}", f"position={_flow(place)}"]


def _flow(section: Section) -> str:
    text: str = yaml.safe_dump(section, default_flow_style=True, width=1000)
    return text.strip()


def deviation(folder: Path, printed: tuple[Section, Section], reference: tuple[Section, Section]) -> float:
    """How far the generated attention is from one that is worked out by hand, relative to its largest output."""
    model = ugly(made(folder, *written(*printed))).double()
    seen: list[tuple[Tensor, Tensor]] = []
    for layer in model.layers:
        layer.attention.register_forward_hook(lambda _module, inputs, output: seen.append((inputs[0][0], output[0])))
    with torch.no_grad():
        model(random_ids(1, TOKENS))
    torch.set_default_dtype(torch.float64)
    try:
        found = []
        for layer, (x, y) in zip(model.layers, seen, strict=True):
            weights = {name: parameter.detach() for name, parameter in layer.attention.named_parameters()}
            found.append(float((by_hand(*reference, weights, x) - y).abs().max() / y.abs().max()))
    finally:
        torch.set_default_dtype(torch.float32)
    return max(found)


@pytest.mark.parametrize("name", FEATURES)
def test_computes_what_the_language_says(tmp_path: Path, name: str) -> None:
    assert deviation(tmp_path, FEATURES[name], FEATURES[name]) < 1e-5  # tables and norms are made in fp32


TWINS: dict[str, tuple[Section, Section]] = {
    "sinks": ({}, ROPE),
    "sinks-sigmoid": ({"grouping": "tiled", "scale": 0.4}, ROPE),
    "sinks-and-cap": ({"sinks": "column", "softcap": 1.5, "window": 6}, NONE),
    "clip": ({"clip": 0.75}, ROPE),
    "gate-head": ({"gate": {"over": "head", "bias": True, "score": "softplus"}, "bias": "all"}, ROPE),
    "gate-element": ({"gate": {"over": "element"}, "value_dim": 10}, ROPE),
    "steps": ({"query_scale": {"form": "steps", "strength": 0.7, "length": 6, "first": 1}}, ROPE),
    "beyond": ({"query_scale": {"form": "steps", "strength": 0.7, "length": 6}}, ROPE),
    "power": ({"query_scale": {"form": "power", "strength": 0.7, "length": 6}}, ROPE),
    "v-norm": ({"value_dim": 10, "value_scale": 0.6}, ROPE),
    "keys-normed": ({"values": "keys", "qk_norm": {"over": "head"}, "value_scale": 0.6}, ROPE),
    "keys-normed-wide": ({"values": "keys", "qk_norm": {"over": "width", "order": "after_rope"}, "clip": 0.7}, ROPE),
    "each-head-late": ({"qk_norm": {"over": "each_head", "kind": "layernorm"}}, ROPE),
    "chunk": ({"window": 7}, ROPE),
    "alibi": ({}, {"kind": "alibi", "max_bias": 7.0}),
    "alibi-scaled": ({"kv_heads": 6, "scale": 0.4}, {"kind": "alibi"}),
    "alibi-and-sinks": ({"sinks": "column"}, {"kind": "alibi", "scaled": True}),
    "factors": ({"factors": {"input": 1.3, "key": 0.7, "output": 0.65}, "gate": {"over": "head"}}, ROPE),
}
"""For some, one thing said otherwise: the twin that must be seen."""


@pytest.mark.parametrize("name", TWINS)
def test_and_not_what_it_says_of_another(tmp_path: Path, name: str) -> None:
    assert deviation(tmp_path, FEATURES[name], TWINS[name]) > 1e-2


# ---------------------------------------------------------------- steps for which transformers has a function


@pytest.mark.parametrize("heads", [4, 6, 7, 12])
@pytest.mark.parametrize("build", ["bloom", "mpt"])
def test_slopes_are_those_of_transformers(tmp_path: Path, heads: int, build: str) -> None:
    """They differ by what is the same for all keys."""
    module = made(tmp_path, "position={kind: alibi}", f"attention={{heads: {heads}, kv_heads: 1, head_dim: 16}}")
    visible = torch.ones(1, 1, 1, TOKENS, dtype=torch.bool)
    ours = module.alibi_bias(heads, 8.0, visible)[:, 0]
    if build == "bloom":
        theirs = build_alibi_tensor(torch.ones(1, TOKENS), heads, torch.float32)[:, 0]
    else:
        theirs = build_mpt_alibi_tensor(heads, TOKENS)[:, 0]
    assert (ours - ours[:, :1]).allclose(theirs - theirs[:, :1], rtol=1e-5)
    other = module.alibi_bias(heads, 7.0, visible)[:, 0]
    assert not (other - other[:, :1]).allclose(theirs - theirs[:, :1], rtol=1e-3)


def test_growth_is_that_of_transformers(tmp_path: Path) -> None:
    positions = torch.tensor([[0, 5, 6, 11, 12, 4095, 4096]])
    steps = "attention.query_scale={form: steps, strength: 0.1, length: 6}"
    module = made(tmp_path, steps)
    assert module.query_growth(positions).allclose(get_llama_4_attn_scale(positions, 0.1, 6))
    power = "attention.query_scale={form: power, strength: 0.1, length: 2048, first: 1}"
    assert made(tmp_path, power).query_growth(positions).allclose(compute_attention_scaling(positions))
    assert not module.query_growth(positions + 1).allclose(get_llama_4_attn_scale(positions, 0.1, 6))


@pytest.mark.parametrize("padding", [0, 4])
def test_chunks_are_those_of_transformers(tmp_path: Path, padding: int) -> None:
    """They begin at the first token of a row. Of the tokens before these 9, the cache has the last of a chunk."""
    module = made(tmp_path, "attention.chunk=7")
    mask = torch.ones(1, TOKENS, dtype=torch.long)
    mask[:, :padding] = 0
    visible = torch.ones(9, TOKENS, dtype=torch.bool).tril(TOKENS - 9) & mask[:, None, None].bool()
    sees = chunked_causal_mask_function(7, torch.tensor([padding]))
    columns = torch.arange(TOKENS)
    theirs = sees(torch.tensor(0), torch.tensor(0), columns[TOKENS - 9 :, None], columns)
    for chunk, right in ((7, True), (6, False)):
        ours = module.within_chunk(visible, chunk, mask)[0, 0]
        assert torch.equal(ours, module.as_remembered(theirs, chunk)) is right


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_of_heads_are_those_of_transformers(tmp_path: Path, dtype: torch.dtype) -> None:
    module = made(tmp_path, "attention.qk_norm={over: each_head, kind: layernorm, eps: 0.01}")
    ours = module.HeadLayerNorm(HEADS, HEAD_DIM, 0.01)
    weight = 1 + 0.5 * torch.randn(HEADS, HEAD_DIM, generator=torch.Generator().manual_seed(1))
    cohere, stablelm = CohereLayerNorm((HEADS, HEAD_DIM), 0.01), StableLmLayerNormPerHead(HEAD_DIM, HEADS, 0.01)
    with torch.no_grad():
        ours.weight.copy_(weight)
        cohere.weight.copy_(weight)
        for norm, row in zip(stablelm.norms, weight, strict=True):
            norm.weight.copy_(row)
    for norm in (ours, cohere, stablelm):
        norm.to(dtype)
    x = torch.randn(2, HEADS, TOKENS, HEAD_DIM, generator=torch.Generator().manual_seed(2)).to(dtype)
    bound = 1e-6 if dtype == torch.float32 else 2**-7
    assert ours(x).allclose(cohere(x.transpose(1, 2)).transpose(1, 2), atol=bound, rtol=bound)
    assert ours(x).allclose(stablelm(x), atol=bound, rtol=bound)
    assert not ours(x).allclose(stablelm(x.flip(1)).flip(1), atol=0.1)


def test_norms_of_heads_start_neutral(tmp_path: Path) -> None:
    """Their weights are matrices, and are not drawn as those are."""
    attention = made(tmp_path, "attention.qk_norm={over: each_head}").Model().layers[0].attention
    assert torch.equal(attention.k_norm.weight, torch.ones(KV_HEADS, HEAD_DIM))
    assert attention.k.weight.std() > 0.01


# ---------------------------------------------------------------- what padding does

PADDED = {
    "chunk": ("attention.chunk=7",),
    "alibi": ("position={kind: alibi}",),
    "alibi and sinks": ("position={kind: alibi}", "attention.sinks=column"),
    "sinks": ("attention.sinks=sigmoid",),
    "growth": ("attention.query_scale={form: power, strength: 0.7, length: 6}",),
}


def from_padding(folder: Path, overrides: tuple[str, ...]) -> float:
    """How far a row behind padding is from the same row alone."""
    model = ugly(made(folder, *overrides))
    ids = random_ids(2, TOKENS)
    mask = torch.ones_like(ids)
    mask[1, :5] = 0
    with torch.no_grad():
        alone, padded = model(ids[1:, 5:]), model(ids, attention_mask=mask)[1:, 5:]
    return float((alone - padded).abs().max() / alone.abs().max())


@pytest.mark.parametrize("name", PADDED)
def test_padding_changes_nothing(tmp_path: Path, name: str) -> None:
    assert from_padding(tmp_path, PADDED[name]) < 1e-5


def test_padding_counts_among_columns(tmp_path: Path) -> None:
    """The twin: queries that grow by column grow by padding, too, as llama4_text's do."""
    columns = "attention.query_scale={form: power, strength: 0.7, length: 6, counts: columns}"
    assert from_padding(tmp_path, (columns,)) > 1e-2


# ---------------------------------------------------------------- a scale for each layer

EACH = layers("a, b, a, c", a="{attention: {scale: 0.4}}", b="{attention: {scale: 0.2}}", c="{attention: {scale: 0.1}}")
WINDOWED = layers("a, b, a", a="{attention: {scale: 0.4}}", b="{attention: {scale: 0.2, window: 5}}")


def test_layers_that_differ_in_scale_share_a_class(tmp_path: Path) -> None:
    module = made(tmp_path, EACH)
    assert module.ATTENTION_SCALES == (0.4, 0.2, 0.4, 0.1)
    model = module.Model()
    assert {type(layer) for layer in model.layers} == {module.Block}
    assert [layer.attention.scale for layer in model.layers] == [0.4, 0.2, 0.4, 0.1]
    assert not hasattr(module, "LAYER_KINDS")  # they differ in nothing that the code asks for


def test_layers_that_see_differently_keep_their_kinds(tmp_path: Path) -> None:
    module = made(tmp_path, WINDOWED)
    assert module.LAYER_KINDS == ("a", "b", "a")
    assert {type(layer) for layer in module.Model().layers} == {module.Block}
    assert module.ATTENTION_SCALES == (0.4, 0.2, 0.4)


def test_layers_that_agree_need_no_table(tmp_path: Path) -> None:
    module = made(tmp_path, layers("a, b", a="", b="{attention: {window: 5}}"), "attention.scale=0.4")
    assert not hasattr(module, "ATTENTION_SCALES")
    assert module.ATTENTION_SCALE == 0.4


def test_every_layer_has_its_own_scale(tmp_path: Path) -> None:
    """A model of one layer of each kind computes what the layers of the other do."""
    model = ugly(made(tmp_path, EACH))
    x = torch.randn(1, TOKENS, 72, generator=torch.Generator().manual_seed(1))
    module = made(tmp_path, "attention.scale=0.1")
    single = module.Model()
    single.layers[0].load_state_dict(model.layers[3].state_dict())
    table = module.rotation_table(torch.arange(TOKENS)[None], torch.float32)
    visible = torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool).tril()
    with torch.no_grad():
        ours = model.layers[3].attention(x, table, visible, None)
        assert ours.allclose(single.layers[0].attention(x, table, visible, None), atol=1e-6)
        assert not ours.allclose(model.layers[0].attention(x, table, visible, None), atol=1e-2)
