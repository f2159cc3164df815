"""Plantings of wrong running: caches, masks, padding, positions, formulas, in transformers models and around them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.faults.planting import Planting, patched, wrapped

LLAMA, GPT, GEMMA, WINDOW = "llama-default", "gpt2", "gemma2", "mistral-window"
MIXTURE, DYNAMIC, LONG = "qwen3_moe", "llama-dynamic", "llama-longrope"
Inputs = dict[str, Any]
CONTEXT, CHUNK = 96, 9


def _called(model: Any, change: Callable[[Inputs, int], Any] = lambda inputs, past: None) -> Any:
    """The model that is called otherwise: `change` gets its inputs, all of them stated, and what is cached.

    A cache is used only where the caller has one, or asks for one.
    """
    forward = model.forward

    @functools.wraps(forward)
    def run(
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cache: Any = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
    ) -> Any:
        past = 0 if cache is None else cache.get_seq_length()
        new = input_ids.shape[1]
        mask = torch.ones(len(input_ids), past + new).long() if attention_mask is None else attention_mask
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -new:] if position_ids is None else position_ids
        inputs = {"position_ids": positions, "attention_mask": mask, "cache": cache, "use_cache": use_cache}
        change(inputs, past)
        return forward(input_ids, **inputs, output_hidden_states=output_hidden_states)

    model.forward = run
    return model


def _without_padding(model: Any, *, steps: bool = True) -> Any:
    """The model as a port that knows no attention mask, nor steps: what padding, or dropped keys, do is not defined."""
    forward = model.forward

    def run(input_ids: Tensor, position_ids: Tensor | None = None, output_hidden_states: bool = False) -> Any:
        mask = torch.ones_like(input_ids)
        more = {"attention_mask": mask, "use_cache": False, "output_hidden_states": output_hidden_states}
        return forward(input_ids, position_ids=position_ids, **more)

    def step(
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        cache: Any = None,
        use_cache: bool = False,
        output_hidden_states: bool = False,
    ) -> Any:
        if cache is None and not use_cache:
            return run(input_ids, position_ids, output_hidden_states)
        return forward(input_ids, cache=cache, use_cache=True)

    model.forward = step if steps else run
    return model


def _start_again(inputs: Inputs, _past: int) -> None:
    inputs["position_ids"] = torch.arange(inputs["position_ids"].shape[1])[None]


def _start_again_behind(inputs: Inputs, past: int) -> None:
    if past:
        _start_again(inputs, past)


def _one_ahead(inputs: Inputs, past: int) -> None:
    inputs["position_ids"] = inputs["position_ids"] + (past > 0)


def _forget(inputs: Inputs, past: int) -> None:
    if past:
        inputs["attention_mask"] = inputs["attention_mask"][:, past:]
        inputs["cache"] = None
        _start_again(inputs, past)


def _visible(model: Any, change: Callable[[Tensor, int, Any], Tensor], name: str = "create_causal_mask") -> Any:
    """The model whose mask is another: `change` gets what is cached, and ones [new, past + new]."""

    def mask(_original: Any, *, inputs_embeds: Tensor, attention_mask: Any, cache: Any, **_more: Any) -> Tensor:
        new = inputs_embeds.shape[1]
        past = 0 if cache is None else cache.get_seq_length()
        ones = torch.ones(new, past + new).bool()
        if cache is not None:  # a cache of windows may keep fewer keys
            kept, _ = cache.get_mask_sizes(new, 0)
            ones, past = ones[:, -kept:], kept - new
        padding = torch.ones(1, past + new) if attention_mask is None else attention_mask[:, -(past + new) :]
        itself = ones.tril(past).triu(past)
        seen = change(ones, past, cache) & padding[:, None, None].bool()
        seen = seen | itself & ~seen.any(-1, keepdim=True)
        return torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min)

    return patched(_called(model), **{name: mask})


def _aligned_with_the_first(ones: Tensor, past: int, _cache: Any) -> Tensor:
    return ones.tril(past if len(ones) == 1 else 0)


def _narrower(ones: Tensor, past: int, _cache: Any) -> Tensor:
    """A window of 7 over the keys that the cache keeps, of 6 once there are cached ones."""
    return ones.tril(past).triu(past - 7 + 1 + (past > 0))


def _taken_early(ones: Tensor, past: int, _cache: Any) -> Tensor:
    """A window of 7, of which a piece that is no longer sees only what is left once it is written."""
    new, total = ones.shape
    left = (torch.arange(total) >= total - 7) | (new > 7)
    return ones.tril(past).triu(past - 7 + 1) & left


def _columns_in_chunks(ones: Tensor, past: int, cache: Any) -> Tensor:
    """Chunks of CHUNK, counted from the first column, whatever stands there."""
    dropped = 0 if cache is None else cache.get_seq_length() - past
    chunk = (torch.arange(ones.shape[1]) + dropped) // CHUNK
    return ones.tril(past) & (chunk[-len(ones) :, None] == chunk)


class _Between:
    """A cache that gets other keys and values than attention gives."""

    def __init__(self, cache: Any, change: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]) -> None:
        self._cache, self._change = cache, change

    def update(self, keys: Tensor, values: Tensor, *args: Any, **more: Any) -> Any:
        return self._cache.update(*self._change(keys, values), *args, **more)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)


def _stored(model: Any, change: Callable[[Tensor, Tensor, Any], tuple[Tensor, Tensor]]) -> Any:
    """The model with others in its cache: `change` gets keys, values, and cosines and sines."""

    def wrap(_module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, cache: Any = None, **more: Any) -> Any:
            rotation = more.get("position_embeddings")
            kept = None if cache is None else _Between(cache, lambda keys, values: change(keys, values, rotation))
            return forward(*args, cache=kept, **more)

        return run

    return wrapped(_called(model), "self_attn", wrap)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, dim=-1)
    return x * cos[:, None] + torch.cat((-b, a), dim=-1) * sin[:, None]


def _without_distances(model: Any) -> Any:
    """BLOOM, whose biases are nothing once there are cached keys."""
    build = model.transformer.build_alibi_tensor
    cached = {"past": 0}

    def note(_inputs: Inputs, past: int) -> None:
        cached["past"] = past

    model.transformer.build_alibi_tensor = lambda mask, heads, dtype: build(mask, heads, dtype) * (cached["past"] == 0)
    return _called(model, note)


def _padding(change: Callable[[Tensor], Tensor]) -> Callable[[Any], Any]:
    def of(inputs: Inputs, _past: int) -> None:
        inputs["attention_mask"] = change(inputs["attention_mask"])

    return lambda model: _called(model, of)


def _count_padding(inputs: Inputs, past: int) -> None:
    if not inputs["attention_mask"].all():
        _start_again(inputs, past)


def _count_anew(inputs: Inputs, _past: int) -> None:
    mask, new = inputs["attention_mask"], inputs["position_ids"].shape[1]
    inputs["position_ids"] = (mask.cumsum(-1) - 1).clamp(min=0)[:, -new:]


def _last_row(inputs: Inputs, _past: int) -> None:
    inputs["position_ids"] = inputs["position_ids"].clamp(max=CONTEXT - 1)


def _from_the_start(inputs: Inputs, _past: int) -> None:
    inputs["position_ids"] = inputs["position_ids"] % CONTEXT


def _capped_behind_the_mask(
    _original: Any,
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor,
    *,
    scaling: float,
    softcap: float,
    **_more: Any,
) -> tuple[Tensor, None]:
    groups = module.num_key_value_groups
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    scores = query @ key.transpose(2, 3) * scaling + attention_mask
    weights = F.softmax(torch.tanh(scores / softcap) * softcap, dim=-1)
    return (weights @ value).transpose(1, 2), None


def _not_transposed(original: Any, *args: Any, **more: Any) -> tuple[Tensor, Any]:
    output, weights = original(*args, **more)
    return output.transpose(1, 2).contiguous(), weights


def _routed(model: Any, choose: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Any:
    """The model with other weights of the chosen experts, made of router logits, these weights, and who is chosen."""

    def wrap(_module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits, weights, experts = forward(hidden_states)
            return logits, choose(logits, weights, experts), experts

        return run

    return wrapped(model, "mlp.gate", wrap)


def _over_tokens(model: Any) -> Any:
    """The softmax runs over tokens, and the best experts are those with the largest share of theirs."""

    def wrap(module: Any, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(hidden_states: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            logits = forward(hidden_states)[0]
            return logits, *logits.softmax(dim=0).topk(module.top_k, dim=-1)

        return run

    return wrapped(model, "mlp.gate", wrap)


def _dropped(logits: Tensor, weights: Tensor, experts: Tensor) -> Tensor:
    """Of the tokens of an expert, in their order, those beyond 1.25 times an equal share count for nothing."""
    most = max(5 * experts.numel() // (4 * logits.shape[-1]), 1)
    sent = F.one_hot(experts, logits.shape[-1]).sum(1)  # of every token, the experts that it is sent to
    place = sent.cumsum(0).gather(1, experts)
    return weights * (place <= most)


def _frequencies(model: Any, change: Callable[[Any, Tensor], Tensor]) -> Any:
    """The model whose frequencies are another function of positions [B, T]: [..., C / 2], or one for each position."""

    def wrap(module: Any, _forward: Any) -> Callable[..., Any]:
        def run(x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
            angles = position_ids[..., None].float() * change(module, position_ids)
            both = torch.cat((angles, angles), dim=-1)
            return both.cos() * module.attention_scaling, both.sin() * module.attention_scaling

        return run

    return wrapped(model, "rotary_emb", wrap)


def _grown(growth: Callable[[float, Tensor], float | Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """Frequencies of a base that grows by that, of the factor and of how many times too long the input is."""

    def frequencies(module: Any, positions: Tensor) -> Tensor:
        rope, channels = module.config.rope_parameters, module.config.head_dim
        stretch = (positions.max() + 1) / module.config.max_position_embeddings
        base = rope["rope_theta"] * growth(rope["factor"], stretch) ** (channels / (channels - 2))
        frequencies: Tensor = 1.0 / base ** (torch.arange(0, channels, 2).float() / channels)
        return frequencies

    return frequencies


def _long_where(test: Callable[[Tensor, int], Tensor]) -> Callable[[Any, Tensor], Tensor]:
    """Frequencies divided by the long factors where a test of positions and the original length says so."""

    def frequencies(module: Any, positions: Tensor) -> Tensor:
        rope, channels = module.config.rope_parameters, module.config.head_dim
        long = test(positions, rope["original_max_position_embeddings"])[..., None]
        divisors = torch.where(long, torch.tensor(rope["long_factor"]), torch.tensor(rope["short_factor"]))
        turns: Tensor = 1.0 / (divisors * rope["rope_theta"] ** (torch.arange(0, channels, 2).float() / channels))
        return turns

    return frequencies


CACHES = (
    Planting("cache.positions", "start again", LLAMA, lambda m: _called(m, _start_again_behind)),
    Planting("cache.positions", "start again", GPT, lambda m: _called(m, _start_again_behind)),
    Planting("cache.positions", "one ahead", LLAMA, lambda m: _called(m, _one_ahead)),
    Planting("cache.mask", "aligned with the first key", LLAMA, lambda m: _visible(m, _aligned_with_the_first)),
    Planting(
        "cache.mask",
        "none behind cached keys",
        LLAMA,
        lambda m: _visible(m, lambda ones, past, _cache: ones if past else ones.tril()),
    ),
    Planting(
        "cache.window",
        "one less behind cached keys",
        WINDOW,
        lambda m: _visible(m, _narrower, "create_sliding_window_causal_mask"),
    ),
    Planting(
        "cache.rows",
        "taken before they are seen",
        WINDOW,
        lambda m: _visible(m, _taken_early, "create_sliding_window_causal_mask"),
    ),
    Planting("cache.keys", "turned twice", LLAMA, lambda m: _stored(m, lambda k, v, turn: (_turned(k, *turn), v))),
    Planting(
        "cache.keys", "not turned", LLAMA, lambda m: _stored(m, lambda k, v, turn: (_turned(k, turn[0], -turn[1]), v))
    ),
    Planting("cache.length", "the last piece", LLAMA, lambda m: _called(m, _forget)),
    Planting("cache.alibi", None, "zoo/bloom", _without_distances),
    Planting(
        "cache.dtype",
        None,
        LLAMA,
        lambda m: _stored(m, lambda k, v, _turn: (k.bfloat16().float(), v.bfloat16().float())),
    ),
)
MASKS = (
    Planting("mask.causal", "none", LLAMA, lambda m: _visible(m, lambda ones, _past, _cache: ones)),
    Planting(
        "mask.causal",
        "none without a cache",
        LLAMA,
        lambda m: _visible(m, lambda ones, past, cache: ones if cache is None else ones.tril(past)),
    ),
    Planting(
        "mask.causal",
        "up to the next token",
        LLAMA,
        lambda m: _visible(m, lambda ones, past, _cache: ones.tril(past + 1)),
    ),
    Planting(
        "mask.causal",
        "up to the token before",
        LLAMA,
        lambda m: _visible(m, lambda ones, past, _cache: ones.tril(past - 1)),
    ),
    Planting("padding.mask", "ignored", LLAMA, _padding(torch.ones_like)),
    Planting("padding.mask", "read from its end", LLAMA, _padding(lambda mask: mask.flip(-1))),
    Planting(
        "padding.chunk",
        None,
        "zoo/llama4_text",
        lambda m: _visible(m, _columns_in_chunks, "create_chunked_causal_mask"),
    ),
    Planting("padding.positions", None, GPT, lambda m: _called(m, _count_padding)),
    Planting("positions.given", None, LLAMA, lambda m: _called(m, _count_anew)),
    Planting("positions.table", "the last row again from 96 on", LLAMA, lambda m: _called(m, _last_row)),
    Planting("positions.table", "the rows again from 96 on", LLAMA, lambda m: _called(m, _from_the_start)),
)
FORMULAS = (
    Planting(
        "attention.softcap.order",
        None,
        GEMMA,
        lambda m: _without_padding(patched(m, eager_attention_forward=_capped_behind_the_mask), steps=False),
    ),
    Planting(
        "attention.output",
        None,
        LLAMA,
        lambda m: _without_padding(patched(m, eager_attention_forward=_not_transposed)),
    ),
    Planting(
        "ffn.router.raw", None, MIXTURE, lambda m: _routed(m, lambda logits, _w, chosen: logits.gather(-1, chosen))
    ),
    Planting("ffn.router.axis", None, MIXTURE, lambda m: _without_padding(_over_tokens(m))),
    Planting("ffn.router.ignored", "nothing", MIXTURE, lambda m: _routed(m, lambda _l, w, _c: torch.ones_like(w))),
    Planting(
        "ffn.router.ignored",
        "all experts alike",
        MIXTURE,
        lambda m: _routed(m, lambda _l, w, _c: w.mean(-1, keepdim=True).expand_as(w)),
    ),
    Planting("ffn.capacity", None, MIXTURE, lambda m: _routed(m, _dropped)),
    Planting(
        "position.scaling.growth",
        "factor² - (factor - 1)",
        DYNAMIC,
        lambda m: _frequencies(m, _grown(lambda factor, _stretch: factor * factor - (factor - 1))),
    ),
    Planting(
        "position.scaling.growth",
        "factor · stretch",
        DYNAMIC,
        lambda m: _frequencies(m, _grown(lambda factor, stretch: factor * stretch.clamp(min=1.0))),
    ),
    Planting(
        "position.scaling.switch",
        "by position",
        LONG,
        lambda m: _frequencies(m, _long_where(lambda positions, original: positions >= original)),
    ),
    Planting(
        "position.scaling.switch",
        "one position early",
        LONG,
        lambda m: _frequencies(m, _long_where(lambda positions, original: positions.max() + 1 >= original)),
    ),
)
PLANTINGS = (*CACHES, *MASKS, *FORMULAS)
