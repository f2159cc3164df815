"""Plantings of wrong ends, stacks and residual rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from tests.faults.attention import FULL, SLIDING
from tests.faults.planting import Planting, every, identity, patched, reconfigured, rewritten, within, wrapped

LLAMA, GEMMA = "llama-default", "gemma2"
LAYERS = "layers.0 layers.1 layers.2"


def _tied(model: Any) -> Any:
    model.lm_head.weight = model.get_input_embeddings().weight
    return model


def _scaled_embedding(scale: float | None) -> Callable[[Any], Any]:
    """Gemma whose embedded tokens are multiplied by another number."""

    def plant(model: Any) -> Any:
        for module in within(model, "embed_tokens"):
            module.embed_scale = torch.tensor(1.0 if scale is None else scale)
        return model

    return plant


def _wrong_cap(model: Any) -> Any:
    """Gemma 2 whose logits become x·tanh(x / 2.3)."""
    model.config.final_logit_softcapping = None
    return wrapped(model, "lm_head", lambda _module, forward: lambda x: _times_tanh(forward(x)))


def _times_tanh(x: Tensor) -> Tensor:
    return x * torch.tanh(x / 2.3)


def _configured(**values: Any) -> Callable[[Any], Any]:
    """The model with a value of its config changed that it reads as it runs."""

    def plant(model: Any) -> Any:
        for name, value in values.items():
            assert hasattr(model.config, name)
            setattr(model.config, name, value)
        return model

    return plant


def _no_shift(module: Any) -> None:
    module.bias.zero_()


def _shorter(model: Any) -> Any:
    return reconfigured(model, num_hidden_layers=model.config.num_hidden_layers - 1)


def _by_depth(_original: Any, x: Tensor, residual: Tensor, _number: int) -> Tensor:
    return x + residual


def _ones(*names: str) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        for name in names:
            getattr(module, name).fill_(1.0)

    return change


def _carrying(layer: Any, _forward: Any) -> Callable[..., Tensor]:
    """A layer of Llama beside whose branches the normed input goes on."""

    def run(x: Tensor, **more: Any) -> Tensor:
        x = layer.input_layernorm(x)
        x = x + layer.self_attn(hidden_states=x, **more)[0]
        x = layer.post_attention_layernorm(x)
        return x + layer.mlp(x)  # type: ignore[no-any-return]

    return run


PLANTINGS = (
    Planting("embedding.scale", "null", GEMMA, _scaled_embedding(None)),
    Planting("embedding.scale", "twice, 72", GEMMA, _scaled_embedding(72.0)),
    Planting("embedding.scale", "rounded to bfloat16, 8.5", GEMMA, _scaled_embedding(8.5)),
    Planting("embedding.tied", "true", LLAMA, _tied),
    Planting("logits.scale", "null", "zoo/granite", _configured(logits_scaling=1.0)),
    Planting("logits.scale", "its inverse, 0.5", "zoo/granite", _configured(logits_scaling=2.0)),
    Planting("logits.softcap", "null", GEMMA, _configured(final_logit_softcapping=None)),
    Planting("logits.softcap.formula", None, GEMMA, _wrong_cap),
    Planting("logits.bias", "false", "zoo/phi", lambda m: rewritten(m, "lm_head", _no_shift)),
    Planting("logits.transform", "null", "zoo/modernbert-decoder", lambda m: identity(m, "lm_head")),
    Planting(
        "layers.pattern",
        "one layer later",
        "gemma3_text",
        lambda m: reconfigured(m, layer_types=[SLIDING, SLIDING, FULL]),
    ),
    Planting(
        "layers.pattern",
        "one layer earlier",
        "gemma3_text",
        lambda m: reconfigured(m, layer_types=[FULL, SLIDING, SLIDING]),
    ),
    Planting("layers.count", "2", LLAMA, _shorter),
    Planting("residual.branch", "1", "zoo/granite", lambda m: every(m, LAYERS, residual_multiplier=1.0)),
    Planting("residual.by_depth", "false", "zoo/beam", lambda m: patched(m, depth_scaled_residual_add=_by_depth)),
    Planting(
        "residual.learned",
        "none",
        "zoo/doge",
        lambda m: rewritten(m, LAYERS, _ones("input_residual", "post_attention_residual")),
    ),
    Planting(
        "residual.layer_scalar",
        "false",
        "zoo/gemma4_unified_text",
        lambda m: rewritten(m, " ".join(f"layers.{n}" for n in range(5)), _ones("layer_scalar")),
    ),
    Planting("residual.carries", "normed", LLAMA, lambda m: wrapped(m, LAYERS, _carrying)),
    Planting(
        "residual.carries",
        "stream",
        "zoo/bloom-post",
        lambda m: every(m, "h.0 h.1 h.2", apply_residual_connection_post_layernorm=False),
    ),
)
