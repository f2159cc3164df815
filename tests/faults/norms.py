"""Plantings of wrong norms: around the parts, before the head, and inside parts."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.faults.planting import Planting, every, identity, patched, reconfigured, rewritten, within, wrapped

LLAMA, QWEN, GEMMA = "llama-default", "qwen3", "gemma2"
BRANCHES = "input_layernorm post_attention_layernorm"
ALL = f"{BRANCHES} model.norm"
GEMMA_ALL = f"{ALL} pre_feedforward_layernorm post_feedforward_layernorm"
HEADS = "q_norm k_norm"


def _centred(_module: Any, forward: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    """The mean is subtracted first."""
    return lambda x: forward(x - x.mean(-1, keepdim=True))


def _root_mean_square(module: Any, _forward: Any) -> Callable[[Tensor], Tensor]:
    """LayerNorm without its mean."""
    return lambda x: x * torch.rsqrt(x.square().mean(-1, keepdim=True) + module.eps) * module.weight + module.bias


def _plus(number: float) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        module.weight += number

    return change


def _constant(number: float) -> Callable[[Any], None]:
    def change(module: Any) -> None:
        module.weight.fill_(number)

    return change


def _no_shift(module: Any) -> None:
    module.bias.zero_()


# Where norms stand.


def _given(layer: Any, part: str, before: Callable[[Tensor], Tensor], behind: Callable[[Tensor], Tensor]) -> None:
    """A part of a layer that reads and gives something else."""
    module = getattr(layer, part)
    forward = module.forward

    @functools.wraps(forward)
    def run(*args: Any, **more: Any) -> Any:
        if args:
            args = (before(args[0]), *args[1:])
        else:
            more["hidden_states"] = before(more["hidden_states"])
        found = forward(*args, **more)
        return (behind(found[0]), *found[1:]) if isinstance(found, tuple) else behind(found)

    module.forward = run


def _same(x: Tensor) -> Tensor:
    return x


def _norms_behind(model: Any) -> Any:
    """Llama's norms, on what attention and feed-forward give."""
    for layer in model.model.layers:
        first, second = layer.input_layernorm, layer.post_attention_layernorm
        layer.input_layernorm, layer.post_attention_layernorm = nn.Identity(), nn.Identity()
        _given(layer, "self_attn", _same, first)
        _given(layer, "mlp", _same, second)
    return model


def _norms_before(model: Any) -> Any:
    """OLMo 2's norms, on what attention and feed-forward read."""
    for layer in model.model.layers:
        first, second = layer.post_attention_layernorm, layer.post_feedforward_layernorm
        layer.post_attention_layernorm, layer.post_feedforward_layernorm = nn.Identity(), nn.Identity()
        _given(layer, "self_attn", first, _same)
        _given(layer, "mlp", second, _same)
    return model


def _side_by_side(layer: Any, _forward: Any) -> Callable[..., Tensor]:
    """A layer of Llama whose branches both read its input."""

    def run(x: Tensor, **more: Any) -> Tensor:
        attended, _ = layer.self_attn(hidden_states=layer.input_layernorm(x), **more)
        return x + attended + layer.mlp(layer.post_attention_layernorm(x))  # type: ignore[no-any-return]

    return run


def _one_after_another(layer: Any, _forward: Any) -> Callable[..., Tensor]:
    """A layer of Phi whose feed-forward reads what attention was added to."""

    def run(x: Tensor, **more: Any) -> Tensor:
        attended, _ = layer.self_attn(hidden_states=layer.input_layernorm(x), **more)
        x = x + attended
        return x + layer.mlp(layer.input_layernorm(x))  # type: ignore[no-any-return]

    return run


def _layers(model: Any, wrap: Callable[[Any, Any], Callable[..., Any]]) -> Any:
    for layer in model.model.layers:
        layer.forward = functools.wraps(layer.forward)(wrap(layer, layer.forward))
    return model


def _exchanged(first: str, second: str) -> Callable[[Any], Any]:
    def plant(model: Any) -> Any:
        for one, other in zip(within(model, first), within(model, second), strict=True):
            one.weight, other.weight = other.weight, one.weight
        return model

    return plant


def _shared(model: Any) -> Any:
    for layer in model.model.layers:
        layer.post_attention_layernorm = layer.input_layernorm
    return model


# Norms of queries and keys.


def _normed_behind_turning(model: Any) -> Any:
    """Qwen 3 with its norms of heads behind the rotation: keys are normed whenever they are read."""
    for module in within(model, "self_attn"):
        module.norms = [module.q_norm.forward, module.k_norm.forward]
    identity(model, HEADS)

    def attend(original: Any, module: Any, query: Tensor, key: Tensor, *args: Any, **more: Any) -> Any:
        q_norm, k_norm = module.norms
        return original(module, q_norm(query), k_norm(key), *args, **more)

    return patched(model, eager_attention_forward=attend)


def _over_all_heads(module: Any, forward: Any) -> Callable[[Tensor], Tensor]:
    """A norm of heads [..., heads, channels], by the root mean square of all of them."""
    del forward

    def run(x: Tensor) -> Tensor:
        square = x.square().mean((-2, -1), keepdim=True)
        found: Tensor = module.weight * (x * torch.rsqrt(square + module.variance_epsilon))
        return found

    return run


def _over_each_head(module: Any, forward: Any) -> Callable[[Tensor], Tensor]:
    """A norm of all heads side by side, by the root mean square of each head of ten channels."""
    del forward

    def run(x: Tensor) -> Tensor:
        heads = x.reshape(*x.shape[:-1], -1, 10)
        square = heads.square().mean(-1, keepdim=True)
        found: Tensor = module.weight * (heads * torch.rsqrt(square + module.variance_epsilon)).flatten(-2)
        return found

    return run


PLANTINGS = (
    Planting("norm.eps", "1e-06", LLAMA, lambda m: reconfigured(m, rms_norm_eps=1e-6)),
    Planting("norm.eps", "1e-05", QWEN, lambda m: reconfigured(m, rms_norm_eps=1e-5)),
    Planting("norm.eps", "1e-05", "gpt2", lambda m: reconfigured(m, layer_norm_epsilon=1e-5)),
    Planting("norm.eps.branches", "1e-06", LLAMA, lambda m: every(m, BRANCHES, variance_epsilon=1e-6)),
    Planting("final_norm_eps", "1e-06", LLAMA, lambda m: every(m, "model.norm", variance_epsilon=1e-6)),
    Planting("norm.kind", "layernorm", LLAMA, lambda m: wrapped(m, ALL, _centred)),
    Planting("norm.kind", "rmsnorm", "gpt2", lambda m: wrapped(m, "ln_1 ln_2 ln_f", _root_mean_square)),
    Planting("norm.weight", "one_plus", LLAMA, lambda m: rewritten(m, ALL, _plus(1))),
    Planting("norm.weight", "plain", GEMMA, lambda m: rewritten(m, GEMMA_ALL, _plus(-1))),
    Planting("norm.weight", "none", LLAMA, lambda m: rewritten(m, ALL, _constant(1))),
    Planting("norm.weight.final", "plain", GEMMA, lambda m: rewritten(m, "model.norm", _plus(-1))),
    Planting("norm.bias", "false", "gpt2", lambda m: rewritten(m, "ln_1 ln_2 ln_f", _no_shift)),
    Planting("final_norm_bias", "false", "gpt2", lambda m: rewritten(m, "ln_f", _no_shift)),
    Planting("final_norm", "false", LLAMA, lambda m: identity(m, "model.norm")),
    Planting("norm.placement", "post", LLAMA, _norms_behind),
    Planting("norm.placement", "pre", "olmo2", _norms_before),
    Planting("norm.placement", "parallel_separate", LLAMA, lambda m: _layers(m, _side_by_side)),
    Planting("norm.placement", "pre", "zoo/phi", lambda m: _layers(m, _one_after_another)),
    Planting("norm.placement", "pre", "zoo/gpt_neox", lambda m: reconfigured(m, use_parallel_residual=False)),
    Planting(
        "norm.placement",
        "pre",
        GEMMA,
        lambda m: identity(m, "post_attention_layernorm post_feedforward_layernorm"),
    ),
    Planting("norm.placement", "post", GEMMA, lambda m: identity(m, "input_layernorm pre_feedforward_layernorm")),
    Planting(
        "norm.placement.exchanged", None, GEMMA, _exchanged("post_attention_layernorm", "pre_feedforward_layernorm")
    ),
    Planting("norm.placement.exchanged", None, LLAMA, _exchanged("input_layernorm", "post_attention_layernorm")),
    Planting("norm.placement.shared", None, LLAMA, _shared),
)
"""Norms around the parts, and before the head."""

INNER = (
    Planting("attention.qk_norm", "none", QWEN, lambda m: identity(m, HEADS)),
    Planting("attention.qk_norm", "none", "olmo2", lambda m: identity(m, HEADS)),
    Planting("attention.qk_norm.order", "after_rope", QWEN, _normed_behind_turning),
    Planting("attention.qk_norm.over", "width", QWEN, lambda m: wrapped(m, HEADS, _over_all_heads)),
    Planting("attention.qk_norm.over", "head", "olmo2", lambda m: wrapped(m, HEADS, _over_each_head)),
    Planting("attention.qk_norm.kind", "layernorm", QWEN, lambda m: wrapped(m, HEADS, _centred)),
    Planting("attention.qk_norm.eps", "1e-05", QWEN, lambda m: every(m, HEADS, variance_epsilon=1e-5)),
    Planting("attention.qk_norm.weight", "one_plus", QWEN, lambda m: rewritten(m, HEADS, _plus(1))),
    Planting("attention.qk_norm.weight", "plain", "gemma3_text", lambda m: rewritten(m, HEADS, _plus(-1))),
    Planting("attention.v_norm", "false", "zoo/gemma4_unified_text", lambda m: identity(m, "v_norm")),
    Planting("attention.output_norm", "false", "zoo/bitnet", lambda m: identity(m, "attn_sub_norm")),
    Planting("ffn.inner_norm", "false", "zoo/bitnet", lambda m: identity(m, "ffn_sub_norm")),
    Planting(
        "attention.latent_norm.eps",
        "0.037",
        "deepseek_v3-eps",
        lambda m: every(m, "q_a_layernorm kv_a_layernorm", variance_epsilon=0.037),
    ),
    Planting("attention.latent_norm", None, "zoo/deepseek_v3", lambda m: identity(m, "kv_a_layernorm")),
    Planting("attention.latent_norm.query", None, "zoo/deepseek_v3", lambda m: identity(m, "q_a_layernorm")),
    Planting("embedding.norm", "false", "zoo/bloom", lambda m: identity(m, "word_embeddings_layernorm")),
)
"""Norms inside parts, and of embedded tokens."""
