"""Plantings of wrong positions: rotary ones, their scalings, tables and biases by distance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.faults.planting import Planting, every, patched, re_roped, reconfigured, rewritten, within

LLAMA = "llama-default"


def interleaved(original: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Any:
    """Channels 2i and 2i + 1 turn together."""

    def side_by_side(x: Tensor) -> Tensor:
        return x.reshape(*x.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)

    return original(side_by_side(q), side_by_side(k), cos, sin, unsqueeze_dim)


def _backward(original: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, unsqueeze_dim: int = 1) -> Any:
    return original(q, k, cos, -sin, unsqueeze_dim)


def _unturned(_original: Any, q: Tensor, k: Tensor, *_more: Any) -> Any:
    return q, k


def _of_the_first_half(original: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *_more: Any) -> Any:
    """Half of 16 channels turn, by the frequencies base^(-2i/8): every other one of base^(-2i/16)."""
    cos, sin = (table[..., :8:2].repeat(1, 1, 2) for table in (cos, sin))
    turned = original(q[..., :8], k[..., :8], cos, sin)
    return tuple(torch.cat((new, old[..., 8:]), dim=-1) for new, old in zip(turned, (q, k), strict=True))


def _halves(original: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *_more: Any) -> Any:
    """What DeepSeek's rotation of halves does in the place of its rotation of neighbours."""
    from transformers.models.deepseek_v3.modeling_deepseek_v3 import apply_rotary_pos_emb

    del original
    return apply_rotary_pos_emb(q, k, cos, sin)


def _frequencies(model: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The model with other frequencies of its rotary pairs."""
    for module in within(model, "rotary_emb"):
        module.inv_freq = change(module.inv_freq)
        module.original_inv_freq = module.inv_freq.clone()
    return model


def _spread(inverse: Tensor) -> Tensor:
    """Of heads of 18 channels of which 14 turn: exponents of all 18."""
    return 5300.0 ** -(2 * torch.arange(len(inverse)) / 18)


def _amplitude(factor: float) -> Callable[[Any], Any]:
    return lambda model: every(model, "rotary_emb", attention_scaling=factor)


def _both_kinds(model: Any, **changes: Any) -> Any:
    """Rotary parameters by kinds of layer: those of each kind become what is given for it."""
    rope = model.config.rope_parameters
    return reconfigured(model, rope_parameters={kind: changes.get(kind, own) for kind, own in rope.items()})


def _rolled(model: Any, by: int) -> Any:
    """SmolLM3's list of layers that turn, shifted."""
    attentions = within(model, "self_attn")
    turning = [module.use_rope for module in attentions]
    for index, module in enumerate(attentions):
        module.use_rope = turning[(index + by) % len(turning)]
    return model


# Tables.


def _zero(module: Any) -> None:
    module.weight.zero_()


def _interleaved_sines(module: Any) -> None:
    """XGLM's table, sines and cosines alternating."""
    half = module.weights.shape[1] // 2
    module.weights = torch.stack((module.weights[:, :half], module.weights[:, half:]), dim=-1).flatten(-2)


def _open_sines(module: Any) -> None:
    """XGLM's table by frequencies 10000^(-2i/d)."""
    half = module.weights.shape[1] // 2
    angles = torch.arange(len(module.weights))[:, None] * 10000.0 ** -(torch.arange(half) / half)
    module.weights = torch.cat((angles.sin(), angles.cos()), dim=1)


def _sines_from_the_second(module: Any) -> None:
    """XGLM's table, from row 1 on, which it keeps for padding."""
    module.weights = module.get_embedding(*module.weights.shape, None)
    module.offset = 1


# Biases by distance, of MPT.


def _biases(change: Callable[[int, int], Tensor]) -> Callable[[Any], Any]:
    """MPT with other biases [heads, 1, tokens], of the numbers of heads and tokens."""

    def biases(_original: Any, heads: int, tokens: int, *_more: Any, **_named: Any) -> Tensor:
        return change(heads, tokens)

    return lambda model: patched(model, build_mpt_alibi_tensor=biases)


def _slopes(power: int, max_bias: float) -> Tensor:
    return 2.0 ** -(max_bias / power * torch.arange(1, power + 1))


def _falling(slopes: Tensor, tokens: int) -> Tensor:
    return slopes[:, None, None] * torch.arange(1 - tokens, 1)


def _uneven(heads: int, tokens: int, max_bias: float, times: float = 1.0) -> Tensor:
    """The slopes of five heads: of eight, every other first."""
    eight = _slopes(8, max_bias)
    return times * _falling(torch.cat((eight[1::2], eight[::2]))[:heads], tokens)


PLANTINGS = (
    Planting("position.pairing", "interleaved", LLAMA, lambda m: patched(m, apply_rotary_pos_emb=interleaved)),
    Planting(
        "position.pairing",
        "half",
        "zoo/deepseek_v3",
        lambda m: patched(m, apply_rotary_pos_emb_interleave=_halves),
    ),
    Planting("position.base", "10000", LLAMA, lambda m: re_roped(m, rope_theta=10000.0)),
    Planting(
        "position.base",
        "700",
        "gemma3_text",
        lambda m: _both_kinds(m, full_attention={"rope_type": "linear", "rope_theta": 700.0, "factor": 3.0}),
    ),
    Planting("position.kind", "none", LLAMA, lambda m: patched(m, apply_rotary_pos_emb=_unturned)),
    Planting("position.kind.unmoving", "rope", "zoo/smollm3", lambda m: every(m, "self_attn", use_rope=1)),
    Planting(
        "position.layers",
        "as in global layers",
        "gemma3_text",
        lambda m: _both_kinds(m, sliding_attention={"rope_type": "linear", "rope_theta": 5300.0, "factor": 3.0}),
    ),
    Planting(
        "position.layers",
        "as in local layers",
        "gemma3_text",
        lambda m: _both_kinds(m, full_attention={"rope_type": "default", "rope_theta": 700.0}),
    ),
    Planting("position.layers", "one layer later", "zoo/smollm3", lambda m: _rolled(m, -1)),
    Planting("position.layers", "one layer earlier", "zoo/smollm3", lambda m: _rolled(m, 1)),
    Planting("position.partial", "1", "phi3-partial", lambda m: re_roped(m, partial_rotary_factor=1.0)),
    Planting("position.partial", "0.5", LLAMA, lambda m: patched(m, apply_rotary_pos_emb=_of_the_first_half)),
    Planting("position.partial.frequencies", None, "phi3-partial", lambda m: _frequencies(m, _spread)),
    Planting("position.direction", "backward", LLAMA, lambda m: patched(m, apply_rotary_pos_emb=_backward)),
    Planting("position.kind.added", "none", "gpt2", lambda m: rewritten(m, "wpe", _zero)),
    Planting("position.offset", "0", "zoo/opt", lambda m: every(m, "embed_positions", offset=0)),
    Planting("position.offset", "1", "zoo/xglm", lambda m: rewritten(m, "embed_positions", _sines_from_the_second)),
    Planting(
        "position.layout", "interleaved", "zoo/xglm", lambda m: rewritten(m, "embed_positions", _interleaved_sines)
    ),
    Planting("position.slowest", "open", "zoo/xglm", lambda m: rewritten(m, "embed_positions", _open_sines)),
    Planting(
        "position.kind.distances", "none", "zoo/mpt", _biases(lambda heads, tokens: torch.zeros(heads, 1, tokens))
    ),
    Planting("position.max_bias", "16", "zoo/mpt", _biases(lambda heads, tokens: _uneven(heads, tokens, 16.0))),
    Planting(
        "position.max_bias.heads",
        None,
        "zoo/mpt",
        _biases(lambda heads, tokens: _falling(_slopes(heads, 8.0), tokens)),
    ),
    Planting(
        "position.scaled",
        "true",
        "zoo/mpt",
        _biases(lambda heads, tokens: _uneven(heads, tokens, 8.0, 12**-0.5)),
    ),
)
"""Positions themselves."""


def _scaled(case: str, fault: str, behaves_as: str | None, **changes: Any) -> Planting:
    return Planting(fault, behaves_as, case, lambda model: re_roped(model, **changes))


SCALINGS = (
    _scaled("llama-llama3", "position.scaling", "null", rope_type="default"),
    _scaled("llama-linear", "position.scaling", "null", rope_type="default"),
    _scaled("llama-yarn", "position.scaling", "null", rope_type="default"),
    _scaled("llama-llama3", "position.scaling.kind", "linear", rope_type="linear"),
    _scaled("llama-linear", "position.scaling.factor", "8", factor=8.0),
    _scaled("llama-yarn", "position.scaling.factor", "4", factor=4.0),
    _scaled("llama-dynamic", "position.scaling.factor", "2", factor=2.0),
    _scaled(
        "llama-llama3",
        "position.scaling.original_context",
        "8192",
        original_max_position_embeddings=8192,
    ),
    _scaled("llama-yarn", "position.scaling.original_context", "400", original_max_position_embeddings=400),
    _scaled("llama-llama3", "position.scaling.low_freq_factor", "1", low_freq_factor=1.0),
    _scaled("llama-llama3", "position.scaling.high_freq_factor", "4", high_freq_factor=4.0),
    _scaled("llama-yarn", "position.scaling.beta_fast", "32", beta_fast=32.0),
    _scaled("llama-yarn", "position.scaling.beta_slow", "2", beta_slow=2.0),
    _scaled("llama-yarn", "position.scaling.truncate", "false", truncate=False),
    _scaled("llama-yarn-mscale", "position.scaling.mscale", None, mscale=None, mscale_all_dim=None),
    _scaled("llama-yarn-mscale", "position.scaling.mscale_all_dim", "0.8", mscale_all_dim=0.8),
    _scaled("llama-yarn", "position.scaling.attention_factor", "1", attention_factor=1.0),
    Planting("position.scaling.attention_factor", "1", "llama-longrope", _amplitude(1.0)),
    Planting(
        "position.scaling.layers",
        "linear in all",
        "gemma3_text",
        lambda m: _both_kinds(m, sliding_attention={"rope_type": "linear", "rope_theta": 700.0, "factor": 3.0}),
    ),
    Planting(
        "position.scaling.short_factors",
        None,
        "llama-longrope",
        lambda m: re_roped(m, short_factor=m.config.rope_parameters["long_factor"]),
    ),
    Planting(
        "position.scaling.long_factors",
        None,
        "llama-longrope",
        lambda m: re_roped(m, long_factor=m.config.rope_parameters["short_factor"]),
    ),
    _scaled("phimoe-mscales", "position.scaling.long_attention_factor", "none", long_mscale=1.2),
    _scaled("zoo/hunyuan_v1_dense-alpha", "position.scaling.alpha", "1000", alpha=1000.0),
    Planting(
        "position.scaling.share",
        "1",
        "zoo/gemma4_unified_text-scaled",
        lambda m: _both_kinds(
            m, full_attention={**m.config.rope_parameters["full_attention"], "partial_rotary_factor": 1.0}
        ),
    ),
)
"""Their scalings."""
