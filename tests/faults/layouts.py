"""Plantings of wrong layouts: weights of transformers models, permuted as a wrong reader would."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.faults.planting import Planting, rewritten, within

Rows = Callable[[Tensor], Tensor]
LLAMA, QWEN, PHI, NEOX = "llama-default", "qwen3", "phi3-partial", "zoo/gpt_neox"
MIXTURE, LATENT = "qwen3_moe", "zoo/deepseek_v3"
HEADS, KV_HEADS, HEAD_DIM = 6, 2, 16


def _rows(model: Any, endings: str, change: Rows) -> Any:
    """The model with rows of these modules in another order, those of their biases alike."""

    def of(module: Any) -> None:
        module.weight.copy_(change(module.weight.clone()))
        if getattr(module, "bias", None) is not None:
            module.bias.copy_(change(module.bias.clone()))

    return rewritten(model, endings, of)


def _columns(model: Any, endings: str, change: Rows) -> Any:
    """The same of Conv1D, whose weights are [in, out]."""

    def of(module: Any) -> None:
        module.weight.copy_(change(module.weight.T.clone()).T)
        module.bias.copy_(change(module.bias.clone()))

    return rewritten(model, endings, of)


def _exchanged(model: Any, one: str, other: str) -> Any:
    with torch.no_grad():
        for a, b in zip(within(model, one), within(model, other), strict=True):
            a.weight.data, b.weight.data = b.weight.data.clone(), a.weight.data.clone()
    return model


def _neighbours(heads: int) -> Rows:
    """Halves of heads, side by side: as a converter does for a runtime that turns neighbours."""
    return lambda rows: rows.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)


def _halves(heads: int) -> Rows:
    """The way back."""
    return lambda rows: rows.unflatten(0, (heads, -1, 2)).transpose(1, 2).flatten(0, 2)


def _split(sizes: tuple[int, ...], order: tuple[int, ...], groups: int, right: int = 1) -> Rows:
    """Rows of a fused tensor, for a model that reads it right, so that it gets what a wrong reader would.

    The wrong reader finds parts in this order, and in so many groups; the right one in `right` groups.
    """

    def change(stored: Tensor) -> Tensor:
        shares = [sizes[index] // groups for index in order]
        found = dict(zip(order, stored.unflatten(0, (groups, -1)).split(shares, 1), strict=True))
        parts = [found[index].flatten(0, 1).unflatten(0, (right, -1)) for index in range(len(sizes))]
        return torch.cat(parts, 1).flatten(0, 1)

    return change


def _norm_weights(model: Any, endings: str) -> Any:
    return _rows(model, endings, _neighbours(1))


def _biases(module: Any) -> None:
    module.bias.copy_(_neighbours(module.bias.numel() // HEAD_DIM)(module.bias.clone()))


def _rounded_plus_one(module: Any) -> None:
    module.weight.copy_((module.weight.bfloat16() + 1).float() - 1)


def _sorted_by_name(model: Any) -> Any:
    layers = model.model.layers
    states = [{name: tensor.clone() for name, tensor in layer.state_dict().items()} for layer in layers]
    for layer, index in zip(layers, sorted(range(len(layers)), key=str), strict=True):
        layer.load_state_dict(states[index])
    return model


def _experts(change: Callable[[Tensor], Tensor], *names: str) -> Callable[[Any], Any]:
    def of(module: Any) -> None:
        for name in names:
            getattr(module, name).copy_(change(getattr(module, name).clone()))

    return lambda model: rewritten(model, "mlp.experts", of)


def _interleaved_as_halves(module: Any) -> None:
    """gpt-oss keeps gate and up by turns: what a reader of halves takes for them, by turns."""
    for weight in (module.gate_up_proj, module.gate_up_proj_bias):
        weight.copy_(torch.stack(weight.clone().chunk(2, dim=-1), dim=-1).flatten(-2))


def _keys_then_values(rows: Tensor) -> Tensor:
    """Of 3 heads, with 18 channels of keys and 22 of values."""
    keys, values = rows.split((3 * 18, 3 * 22))
    return torch.cat((keys.unflatten(0, (3, -1)), values.unflatten(0, (3, -1))), 1).flatten(0, 1)


def _rounded(model: Any) -> Any:
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(weight.bfloat16())
    return model


ROWS = (
    Planting("layout.rope_rows", "q permuted", LLAMA, lambda m: _rows(m, "q_proj", _neighbours(HEADS))),
    Planting("layout.rope_rows", "k permuted", LLAMA, lambda m: _rows(m, "k_proj", _neighbours(KV_HEADS))),
    Planting(
        "layout.rope_rows",
        "q and k permuted",
        LLAMA,
        lambda m: _rows(_rows(m, "q_proj", _neighbours(HEADS)), "k_proj", _neighbours(KV_HEADS)),
    ),
    Planting("layout.rope_rows", "norm weights permuted", QWEN, lambda m: _norm_weights(m, "q_norm k_norm")),
    Planting("layout.rope_rows", "biases permuted", "llama-biased", lambda m: rewritten(m, "q_proj k_proj", _biases)),
    Planting(
        "layout.rope_rows",
        "k permuted by a wrong number of heads",
        "llama-pairs",
        lambda m: _rows(m, "k_proj", lambda rows: _halves(6)(_neighbours(2)(rows))),
    ),
    Planting("layout.fused_qkv", "q, v, k", PHI, lambda m: _rows(m, "qkv_proj", _split((108, 36, 36), (0, 2, 1), 1))),
    Planting("layout.fused_qkv", "k, q, v", PHI, lambda m: _rows(m, "qkv_proj", _split((108, 36, 36), (1, 0, 2), 1))),
    Planting(
        "layout.fused_qkv",
        "q, k, v in each of 2 groups",
        PHI,
        lambda m: _rows(m, "qkv_proj", _split((108, 36, 36), (0, 1, 2), 2)),
    ),
    Planting(
        "layout.fused_qkv",
        "q, k, v",
        NEOX,
        lambda m: _rows(m, "query_key_value", _split((60, 60, 60), (0, 1, 2), 1, right=5)),
    ),
    Planting(
        "layout.fused_qkv",
        "q, v, k in each of 5 groups",
        NEOX,
        lambda m: _rows(m, "query_key_value", _split((60, 60, 60), (0, 2, 1), 5, right=5)),
    ),
    Planting(
        "layout.gate_up", "gate, up by turns", PHI, lambda m: _rows(m, "gate_up_proj", _split((100, 100), (0, 1), 100))
    ),
    Planting(
        "layout.gate_up", "gate, up", "zoo/gpt_oss", lambda m: rewritten(m, "mlp.experts", _interleaved_as_halves)
    ),
    Planting(
        "layout.shards",
        "gate, up cut evenly over 2 ranks",
        PHI,
        lambda m: _rows(m, "gate_up_proj", _split((100, 100), (0, 1), 2)),
    ),
    Planting(
        "layout.shards",
        "q, k, v cut evenly over 2 ranks",
        "gpt2",
        lambda m: _columns(m, "attn.c_attn", _split((60, 60, 60), (0, 1, 2), 2)),
    ),
)
PLACES = (
    Planting("ffn.gate_order", None, LLAMA, lambda m: _exchanged(m, "gate_proj", "up_proj")),
    Planting(
        "ffn.gate_order",
        None,
        "qwen3_moe-renormalised",
        _experts(lambda weight: torch.cat(weight.chunk(2, 1)[::-1], 1), "gate_up_proj"),
    ),
    Planting("attention.qk_norm.exchanged", None, QWEN, lambda m: _exchanged(m, "q_norm", "k_norm")),
    Planting(
        "norm.weight.rounded",
        None,
        "gemma",
        lambda m: rewritten(m, "input_layernorm post_attention_layernorm model.norm", _rounded_plus_one),
    ),
    Planting("layout.kv_order", None, LLAMA, lambda m: _exchanged(m, "k_proj", "v_proj")),
    Planting(
        "layout.heads",
        "q by turns of its groups",
        LLAMA,
        lambda m: _rows(m, "q_proj", lambda rows: rows.unflatten(0, (KV_HEADS, 3, -1)).transpose(0, 1).flatten(0, 2)),
    ),
    Planting(
        "layout.heads",
        "k and v one head further",
        LLAMA,
        lambda m: _rows(m, "k_proj v_proj", lambda rows: rows.roll(-HEAD_DIM, 0)),
    ),
    Planting(
        "layout.heads",
        "channels before heads",
        LLAMA,
        lambda m: _rows(
            _rows(m, "q_proj", lambda rows: rows.unflatten(0, (-1, HEADS)).transpose(0, 1).flatten(0, 1)),
            "k_proj v_proj",
            lambda rows: rows.unflatten(0, (-1, KV_HEADS)).transpose(0, 1).flatten(0, 1),
        ),
    ),
    Planting("layout.experts", "one further", MIXTURE, _experts(lambda w: w.roll(-1, 0), "gate_up_proj", "down_proj")),
    Planting("layout.experts", "down one further", MIXTURE, _experts(lambda w: w.roll(-1, 0), "down_proj")),
    Planting(
        "layout.experts",
        "the first for all",
        MIXTURE,
        _experts(lambda w: w[:1].expand_as(w), "gate_up_proj", "down_proj"),
    ),
    Planting(
        "layout.transpose",
        "attention.o.weight as [in, out]",
        "gpt2",
        lambda m: rewritten(m, "attn.c_proj", lambda module: module.weight.copy_(module.weight.T.clone())),
    ),
    Planting("layout.latent", "all keys, then all values", LATENT, lambda m: _rows(m, "kv_b_proj", _keys_then_values)),
    Planting(
        "layout.latent",
        "what turns is first in q",
        LATENT,
        lambda m: _rows(m, "q_b_proj", lambda rows: rows.unflatten(0, (3, -1)).roll(-8, 1).flatten(0, 1)),
    ),
    Planting(
        "layout.latent",
        "what turns is first in kv_down",
        LATENT,
        lambda m: _rows(m, "kv_a_proj_with_mqa", lambda rows: rows.roll(-8, 0)),
    ),
    Planting("layout.layers", None, "llama-deep", _sorted_by_name),
    Planting("dtype", None, LLAMA, _rounded),
)
PLANTINGS = (*ROWS, *PLACES)
