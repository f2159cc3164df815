"""Plantings of wrong feed-forwards, dense ones and experts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.faults.planting import Function, Planting, every, rewritten, within, wrapped

LLAMA, GEMMA, OSS = "llama-default", "gemma2", "zoo/gpt_oss-tight"
MIXTURE, SUMMED, DEEPSEEK = "qwen3_moe", "qwen3_moe-renormalised", "zoo/deepseek_v3"
SPARSE = "layers.0.mlp layers.2.mlp layers.3.mlp"


def _activation(behaves_as: str, case: str, function: nn.Module, *, fault: str = "ffn.activation") -> Planting:
    return Planting(fault, behaves_as, case, lambda model: every(model, "mlp", act_fn=function))


def _of_one_half(half: str) -> Callable[[Any, Any], Callable[[Tensor], Tensor]]:
    """A feed-forward without a gate, made of one of its two halves."""

    def wrap(module: Any, _forward: Any) -> Callable[[Tensor], Tensor]:
        first = getattr(module, half)
        return lambda x: module.down_proj(module.act_fn(first(x)))

    return wrap


def _gated(change: Callable[[Any, Tensor, Tensor], Tensor]) -> Callable[[Any], Any]:
    """gpt-oss whose two halves are multiplied otherwise."""

    def plant(model: Any) -> Any:
        for module in within(model, "mlp.experts"):

            def apply(gate_up: Tensor, module: Any = module) -> Tensor:
                return change(module, gate_up[..., ::2], gate_up[..., 1::2])

            module._apply_gate = apply
        return model

    return plant


def _unshifted(module: Any, gate: Tensor, up: Tensor) -> Tensor:
    gate, up = gate.clamp(max=module.limit), up.clamp(-module.limit, module.limit)
    return up * gate * torch.sigmoid(gate * module.alpha)


def _limited_behind(module: Any, gate: Tensor, up: Tensor) -> Tensor:
    activated = (gate * torch.sigmoid(gate * module.alpha)).clamp(max=module.limit)
    return (up.clamp(-module.limit, module.limit) + 1) * activated


def _no_shift(module: Any) -> None:
    module.bias.zero_()


def _no_shifts(module: Any) -> None:
    module.gate_up_proj_bias.zero_()
    module.down_proj_bias.zero_()


# Routers: logits, weights and numbers of the chosen experts, in this order.


def _routed(change: Callable[[Any, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> Callable[[Any], Any]:
    """A mixture whose weights, or chosen experts, are others."""

    def wrap(module: Any, forward: Any) -> Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]:
        def run(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits, weights, chosen = forward(x)
            return (logits, *change(module, logits, weights, chosen))

        return run

    return lambda model: wrapped(model, "mlp.gate", wrap)


def _softmax_of_chosen(_module: Any, logits: Tensor, _weights: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    return logits.gather(-1, chosen).softmax(-1), chosen


def _softmax_of_all(_module: Any, logits: Tensor, _weights: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    return logits.softmax(-1).gather(-1, chosen), chosen


def _sigmoid(_module: Any, logits: Tensor, _weights: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    return logits.sigmoid().gather(-1, chosen), chosen


def _one_more(_module: Any, logits: Tensor, _weights: Tensor, chosen: Tensor) -> tuple[Tensor, Tensor]:
    weights, chosen = logits.softmax(-1).topk(chosen.shape[-1] + 1)
    return weights, chosen


def _deepseek(
    score: Callable[[Tensor], Tensor] = torch.sigmoid,
    *,
    corrected: bool = True,
    in_weights: bool = False,
    groups: int | None = None,
    best: int = 2,
    outside: float = -torch.inf,
    logits_first: bool = False,
) -> Callable[[Any], Any]:
    """DeepSeek's choice of experts, written out, with something in it changed."""

    def choose(module: Any, logits: Tensor, _weights: Tensor, _chosen: Tensor) -> tuple[Tensor, Tensor]:
        scores = score(logits)
        values = logits if logits_first else scores
        choice = values + module.e_score_correction_bias if corrected else values
        chosen_groups = groups or module.topk_group
        grouped = choice.unflatten(-1, (module.num_group, -1))
        rank = grouped.topk(best, dim=-1).values.sum(-1)
        kept = torch.zeros_like(rank).scatter(-1, rank.topk(chosen_groups, dim=-1).indices, 1.0).bool()
        chosen = grouped.masked_fill(~kept[..., None], outside).flatten(-2).topk(module.top_k, dim=-1).indices
        weights = (choice if in_weights else scores).gather(-1, chosen)
        return weights / weights.sum(-1, keepdim=True) * module.routed_scaling_factor, chosen

    return _routed(choose)


def _weighed_inputs(_module: Any, forward: Any) -> Callable[..., Tensor]:
    """Experts that read their input times the weight, and whose output is not weighed."""

    def run(x: Tensor, chosen: Tensor, weights: Tensor) -> Tensor:
        ones = torch.ones_like(weights[:, :1])
        found: Tensor = sum(
            forward(x * weights[:, index, None], chosen[:, index, None], ones) for index in range(chosen.shape[-1])
        )
        return found

    return run


def _uncapped(module: Any) -> None:
    module.router_logit_softcapping = 0.0


def _none(_module: Any, forward: Any) -> Callable[..., Tensor]:
    """A part that adds nothing."""
    return lambda *args, **more: 0.0 * forward(*args, **more)


def _open(_module: Any, forward: Any) -> Callable[[Tensor], Tensor]:
    """A gate whose sigmoid is one."""
    return lambda x: torch.full_like(forward(x), 40.0)


def _halved(_module: Any, forward: Any) -> Callable[..., Any]:
    return lambda *args, **more: 0.5 * forward(*args, **more)


def _powerless(model: Any) -> Any:
    return every(model, "ffn", moe_normalize_expert_weights=1.0)


softmax_of_chosen = _routed(_softmax_of_chosen)

DENSE = (
    _activation("gelu", LLAMA, nn.GELU()),
    _activation("relu", LLAMA, nn.ReLU()),
    _activation("gelu", GEMMA, nn.GELU()),
    _activation("silu", GEMMA, nn.SiLU()),
    Planting("ffn.activation", "gelu", "gpt2", lambda m: every(m, "mlp", act=nn.GELU())),
    Planting("ffn.activation", "relu", "zoo/nemotron", lambda m: every(m, "mlp", act_fn=nn.ReLU())),
    _activation(
        "x·sigmoid(1.702·x)", GEMMA, Function(lambda x: x * torch.sigmoid(1.702 * x)), fault="ffn.activation.quick"
    ),
    _activation("x", LLAMA, nn.Identity(), fault="ffn.activation.missing"),
    Planting("ffn.kind", "mlp", LLAMA, lambda m: wrapped(m, "mlp", _of_one_half("up_proj"))),
    Planting("ffn.kind", "mlp, made of the gate", LLAMA, lambda m: wrapped(m, "mlp", _of_one_half("gate_proj"))),
    Planting("ffn.glu.limit", "null", OSS, lambda m: every(m, "mlp.experts", limit=1e9)),
    Planting("ffn.glu.slope", "1", OSS, lambda m: every(m, "mlp.experts", alpha=1.0)),
    Planting("ffn.glu.up_shift", "0", OSS, _gated(_unshifted)),
    Planting("ffn.glu.limited", "after_activation", OSS, _gated(_limited_behind)),
    Planting("ffn.bias", "false", "llama-biased", lambda m: rewritten(m, "gate_proj up_proj down_proj", _no_shift)),
    Planting("ffn.bias", "false for down", "llama-biased", lambda m: rewritten(m, "down_proj", _no_shift)),
    Planting("ffn.bias", "false for up", "gpt2", lambda m: rewritten(m, "c_fc", _no_shift)),
    Planting(
        "ffn.bias",
        "false",
        OSS,
        lambda m: rewritten(m, "mlp.experts", _no_shifts),
    ),
)
"""Dense feed-forwards, and what is inside experts."""

EXPERTS = (
    Planting("ffn.router.renormalize", "true", MIXTURE, lambda m: every(m, "mlp.gate", norm_topk_prob=True)),
    Planting("ffn.router.renormalize", "false", SUMMED, lambda m: every(m, "mlp.gate", norm_topk_prob=False)),
    Planting("ffn.router.renormalize", "false", DEEPSEEK, lambda m: every(m, "mlp.gate", norm_topk_prob=False)),
    Planting("ffn.router.order", "top_k_then_score", MIXTURE, softmax_of_chosen),
    Planting("ffn.router.score", "sigmoid", MIXTURE, _routed(_sigmoid)),
    Planting("ffn.router.score", "softmax", DEEPSEEK, _deepseek(lambda x: x.softmax(-1))),
    Planting("ffn.router.scale", "1", DEEPSEEK, lambda m: every(m, "mlp.gate", routed_scaling_factor=1.0)),
    Planting("ffn.router.scale", "6.25", DEEPSEEK, lambda m: every(m, "mlp.gate", routed_scaling_factor=6.25)),
    Planting("ffn.top_k", "2", MIXTURE, lambda m: every(m, "mlp.gate", top_k=2)),
    Planting("ffn.top_k", "4", MIXTURE, _routed(_one_more)),
    Planting("ffn.router.correction", "none", DEEPSEEK, _deepseek(corrected=False)),
    Planting("ffn.router.correction.weights", None, DEEPSEEK, _deepseek(in_weights=True)),
    Planting("ffn.router.groups", "null", DEEPSEEK, _deepseek(groups=3)),
    Planting("ffn.router.groups.chosen", "3", "deepseek_v3-groups", _deepseek(groups=3)),
    Planting("ffn.router.groups.score", "max", DEEPSEEK, _deepseek(best=1)),
    Planting("ffn.router.groups.others", "zero", "deepseek_v3-low", _deepseek(outside=0.0)),
    Planting("ffn.router.bias", "false", "zoo/gpt_oss", lambda m: rewritten(m, "mlp.router", _no_shift)),
    Planting("ffn.router.softcap", "none", "laguna-capped", lambda m: rewritten(m, "mlp.gate", _uncapped)),
    Planting("ffn.router.renormalize_power", "1", "zoo/dbrx-power", _powerless),
    Planting(
        "ffn.router.renormalize_floor",
        "0",
        "zoo/ernie4_5_moe-unshared",
        lambda m: every(m, "mlp.gate", norm_min=0.0),
    ),
    Planting("ffn.router.weighs", "input", MIXTURE, lambda m: wrapped(m, "mlp.experts", _weighed_inputs)),
    Planting("ffn.shared", "null", "zoo/qwen2_moe", lambda m: wrapped(m, "shared_expert", _none)),
    Planting("ffn.shared", "null", DEEPSEEK, lambda m: wrapped(m, "shared_experts", _none)),
    Planting("ffn.shared.gate", "none", "zoo/qwen2_moe", lambda m: wrapped(m, "shared_expert_gate", _open)),
    Planting(
        "ffn.shared.combine",
        "average",
        "zoo/qwen2_moe",
        lambda m: wrapped(m, SPARSE, _halved),
    ),
)
"""Experts: how they are chosen and weighed, and what stands beside them."""
