"""Plantings of wrong attention: scale, groups, what a query sees, and what is done to scores and outputs."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.faults.planting import Planting, every, patched, reconfigured, rewritten, within, wrapped

LLAMA, GEMMA, CHUNKED = "llama-default", "gemma2", "zoo/llama4_text"
FULL, SLIDING = "full_attention", "sliding_attention"


def _tiled(_original: Any, x: Tensor, times: int) -> Tensor:
    return x.repeat(1, times, 1, 1)


def _scaled(fault: str, behaves_as: str, case: str, scale: float) -> Planting:
    return Planting(fault, behaves_as, case, lambda model: every(model, "self_attn", scaling=scale))


def _windows(behaves_as: str, *kinds: str, fault: str = "attention.window.layers", **more: Any) -> Planting:
    """Gemma 2 with a window in layers of these kinds."""
    return Planting(fault, behaves_as, GEMMA, lambda model: reconfigured(model, layer_types=list(kinds)), **more)


def _sliding(_original: Any, config: Any, **more: Any) -> Any:
    """A window in the place of chunks."""
    from transformers.masking_utils import create_sliding_window_causal_mask

    config.sliding_window = config.attention_chunk_size
    return create_sliding_window_causal_mask(config=config, **more)


def _no_shift(module: Any) -> None:
    module.bias.zero_()


def _capped_wrongly(model: Any) -> Any:
    """Gemma 2 whose scores become x·tanh(x / 1.7)."""

    def attend(_original: Any, module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, **more: Any) -> Any:
        key, value = (x.repeat_interleave(module.num_key_value_groups, dim=1) for x in (k, v))
        scores = q @ key.transpose(2, 3) * more["scaling"]
        weights = (scores * torch.tanh(scores / 1.7) + mask).softmax(-1)
        return (weights @ value).transpose(1, 2).contiguous(), None

    return patched(model, eager_attention_forward=attend)


def _faint(module: Any) -> None:
    """Sinks that take nothing."""
    module.sinks.fill_(-1e4)


def _always(number: float) -> Callable[[Any, Any], Callable[[Tensor], Tensor]]:
    """A projection that gives a constant."""
    return lambda _module, forward: lambda x: torch.full_like(forward(x), number)


def _before_softplus(_module: Any, forward: Any) -> Callable[[Tensor], Tensor]:
    """What softplus makes the sigmoid of."""
    return lambda x: torch.log(torch.expm1(torch.sigmoid(forward(x))))


def _growth(change: Callable[..., Tensor]) -> Callable[[Any], Any]:
    """Ministral 3 whose queries grow otherwise."""
    return lambda model: patched(model, get_llama_4_attn_scale=change)


def _from_one(original: Any, positions: Tensor, beta: float, length: int) -> Any:
    return original(positions + 1, beta, length)


def _longer(original: Any, positions: Tensor, beta: float, length: int) -> Any:
    return original(positions, beta, length + 1)


def _no_growth(_original: Any, positions: Tensor, _beta: float, _length: int) -> Tensor:
    return torch.ones_like(positions)[:, None, :, None].float()


def _unmasked_by_values(model: Any) -> Any:
    """Doge whose mask is that of the positions alone."""

    def prepare(hidden_states: Tensor, dt_states: Tensor, attention_mask: Tensor, **_more: Any) -> Tensor:
        least = torch.finfo(hidden_states.dtype).min
        zeros = torch.zeros_like(dt_states)[:, :, None].expand(-1, -1, hidden_states.shape[1], -1)
        hidden = ~attention_mask if attention_mask.dtype == torch.bool else attention_mask != 0
        return zeros.masked_fill(hidden[..., : dt_states.shape[-1]], least)

    return every(model, "self_attn", prepare_dynamic_mask=prepare)


def _plain(model: Any) -> Any:
    """DiffLlama with the attention of Llama."""
    from transformers.models.llama.modeling_llama import LlamaAttention

    for module in within(model, "self_attn"):
        module.forward = types.MethodType(LlamaAttention.forward, module)
    return model


def _times(number: float) -> Callable[[Any, Any], Callable[..., Tensor]]:
    return lambda _module, forward: lambda *args, **more: number * forward(*args, **more)


_SQUARE, _FORM = (0.1 * 0.7 * math.log(4) + 1) ** 2, 0.1 * 1.6 * math.log(4) + 1

PLANTINGS = (
    Planting("attention.grouping", "tiled", LLAMA, lambda m: patched(m, repeat_kv=_tiled)),
    Planting("attention.grouping", "tiled", "qwen2", lambda m: patched(m, repeat_kv=_tiled)),
    _scaled("attention.scale", "1", LLAMA, 1.0),
    _scaled("attention.scale", "head_dim^-1", LLAMA, 1 / 16),
    _scaled("attention.scale", "(hidden_size / heads)^-0.5", LLAMA, 12**-0.5),
    _scaled("attention.scale", "head_dim^-0.5", GEMMA, 16**-0.5),
    _scaled("attention.scale", "head_dim^-0.5", "zoo/granite", 10**-0.5),
    _scaled("attention.scale.latent", "(nope_dim + rope_dim)^-0.5", "zoo/deepseek_v3-yarn", 26**-0.5),
    _scaled(
        "attention.scale.latent",
        "(nope_dim + rope_dim)^-0.5 times the square of the form with mscale",
        "zoo/deepseek_v3-yarn",
        26**-0.5 * _SQUARE,
    ),
    _scaled(
        "attention.scale.latent",
        "(nope_dim + rope_dim)^-0.5 times the form with mscale_all_dim",
        "zoo/deepseek_v3-yarn",
        26**-0.5 * _FORM,
    ),
    Planting("attention.window", "8", "mistral-window", lambda m: reconfigured(m, sliding_window=8)),
    Planting("attention.window", "6", "mistral-window", lambda m: reconfigured(m, sliding_window=6)),
    Planting("attention.window", "none", "mistral-window", lambda m: reconfigured(m, sliding_window=None)),
    Planting("attention.window", "8", GEMMA, lambda m: reconfigured(m, sliding_window=8)),
    _windows("none", FULL, FULL, FULL, fault="attention.window"),
    _windows("none", FULL, FULL, SLIDING, fault="attention.window", layers=frozenset({0})),
    _windows("7 in all layers", SLIDING, SLIDING, SLIDING),
    _windows("exchanged", FULL, SLIDING, FULL),
    _windows("one layer later", SLIDING, SLIDING, FULL),
    _windows("one layer earlier", FULL, SLIDING, SLIDING),
    Planting("attention.chunk", "10", CHUNKED, lambda m: reconfigured(m, attention_chunk_size=10)),
    Planting("attention.chunk", "none", CHUNKED, lambda m: reconfigured(m, layer_types=[FULL] * 5)),
    Planting("attention.chunk.window", None, CHUNKED, lambda m: patched(m, create_chunked_causal_mask=_sliding)),
    Planting(
        "attention.chunk.layers",
        "9 in all layers",
        CHUNKED,
        lambda m: reconfigured(m, layer_types=["chunked_attention"] * 5),
    ),
    Planting("attention.bias", "[k, v]", "qwen2", lambda m: rewritten(m, "q_proj", _no_shift)),
    Planting("attention.bias", "[q, v]", "qwen2", lambda m: rewritten(m, "k_proj", _no_shift)),
    Planting("attention.bias", "[q, k]", "qwen2", lambda m: rewritten(m, "v_proj", _no_shift)),
    Planting("attention.bias", "none", "qwen2", lambda m: rewritten(m, "q_proj k_proj v_proj", _no_shift)),
    Planting("attention.bias", "[q, k, v]", "llama-biased", lambda m: rewritten(m, "o_proj", _no_shift)),
    Planting("attention.softcap", "null", GEMMA, lambda m: every(m, "self_attn", attn_logit_softcapping=None)),
    Planting("attention.softcap.formula", None, GEMMA, _capped_wrongly),
    Planting("attention.sinks", "none", "zoo/gpt_oss", lambda m: rewritten(m, "self_attn", _faint)),
    Planting("attention.gate", "null", "zoo/afmoe", lambda m: wrapped(m, "self_attn.gate_proj", _always(40.0))),
    Planting("attention.gate.score", "sigmoid", "zoo/laguna", lambda m: wrapped(m, "g_proj", _before_softplus)),
    Planting("attention.clip", "null", "zoo/olmo-clip", lambda m: reconfigured(m, clip_qkv=None)),
    Planting("attention.value_scale", "null", "zoo/mimo_v2_flash", lambda m: every(m, "self_attn", v_scale=1.0)),
    Planting("attention.query_scale", "null", "zoo/ministral3", _growth(_no_growth)),
    Planting("attention.query_scale", "first 1", "zoo/ministral3", _growth(_from_one)),
    Planting("attention.query_scale", None, "zoo/ministral3", _growth(_longer)),
    Planting("attention.dynamic_mask", "null", "zoo/doge", _unmasked_by_values),
    Planting("attention.differential", "false", "zoo/diffllama", _plain),
)
