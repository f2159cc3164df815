"""Mistakes planted by hand into transformers' model of a checkpoint, and right ports: what benchmarks/gates.py judges.

`archc validate tiny --port benchmarks/gate_mistakes.py:port_eps` holds a single one against the reference. Models are
Llama's and those built like it (Qwen3, as tiny is). Where a mistake is another order of channels or heads, the weights
are put into that order and run as before, which computes the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

Model = Any


def layers(model: Model) -> Any:
    """The decoder layers."""
    return model.model.layers


def norms(model: Model) -> list[Any]:
    """Every RMSNorm of the model."""
    return [module for module in model.modules() if type(module).__name__.endswith("RMSNorm")]


def eps(model: Model) -> None:
    """1e-6, the default of many a config."""
    for norm in norms(model):
        norm.variance_epsilon = 1e-6


def final_eps(model: Model) -> None:
    """Of the last norm alone."""
    model.model.norm.variance_epsilon = 1e-6


def layernorm(model: Model) -> None:
    """The mean is taken away first."""

    class Centring(type(norms(model)[0])):  # type: ignore[misc]  # a base that is known at run time
        def forward(self, hidden_states: Tensor) -> Tensor:
            centred: Tensor = super().forward(hidden_states - hidden_states.mean(-1, keepdim=True))
            return centred

    for layer in layers(model):
        for norm in (layer.input_layernorm, layer.post_attention_layernorm):
            norm.__class__ = Centring


def final_norm_weight(model: Model) -> None:
    """Never read."""
    model.model.norm.weight.data.fill_(1)


def swapped_norms(model: Model) -> None:
    """Each of a layer's two norms in the other's place."""
    for layer in layers(model):
        layer.input_layernorm, layer.post_attention_layernorm = layer.post_attention_layernorm, layer.input_layernorm


def gelu(model: Model) -> None:
    """Another activation."""
    for layer in layers(model):
        layer.mlp.act_fn = nn.GELU()


def swapped_gate(model: Model) -> None:
    """The activation on the other half of the feed-forward."""
    for layer in layers(model):
        layer.mlp.gate_proj, layer.mlp.up_proj = layer.mlp.up_proj, layer.mlp.gate_proj


def interleaved(model: Model) -> None:
    """Channel 2i turns with 2i + 1: rows of q and k (and of their norms) in that order, turned as before."""
    for layer in layers(model):
        attention = layer.self_attn
        order = torch.arange(attention.head_dim).view(-1, 2).T.flatten()
        for linear in (attention.q_proj, attention.k_proj):
            for held in (linear.weight, linear.bias):
                if held is not None:
                    held.data = held.data.unflatten(0, (-1, attention.head_dim))[:, order].flatten(0, 1)
        for norm in (getattr(attention, "q_norm", None), getattr(attention, "k_norm", None)):
            if norm is not None:
                norm.weight.data = norm.weight.data[order]


def tiled(model: Model) -> None:
    """Query head h reads key/value head h mod kv_heads: heads in that order on both sides of the attention."""
    for layer in layers(model):
        attention = layer.self_attn
        heads = model.config.num_attention_heads
        order = torch.arange(heads).view(-1, model.config.num_key_value_heads).T.flatten()
        linear = attention.q_proj
        for held in (linear.weight, linear.bias):
            if held is not None:
                held.data = held.data.unflatten(0, (heads, -1))[order].flatten(0, 1)
        out = attention.o_proj.weight
        out.data = out.data.unflatten(1, (heads, -1))[:, order].flatten(1, 2)


def scale(model: Model) -> None:
    """Scores divided by head_dim."""
    for layer in layers(model):
        layer.self_attn.scaling = 1 / layer.self_attn.head_dim


def no_q_norm(model: Model) -> None:
    """The norm of queries left out."""
    for layer in layers(model):
        layer.self_attn.q_norm = nn.Identity()


def without_bias(model: Model, *names: str) -> None:
    """Biases never read."""
    for layer in layers(model):
        for name in names:
            getattr(layer.self_attn, name).bias.data.zero_()


def ahead(model: Model) -> None:
    """A mask one column too far to the right: every token sees the next."""

    def shift(_: nn.Module, arguments: Any, given: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        mask = given["attention_mask"]
        return arguments, given | {"attention_mask": torch.cat((mask[..., :1], mask[..., :-1]), dim=-1)}

    for layer in layers(model):
        layer.register_forward_pre_hook(shift, with_kwargs=True)


def rotary(model: Model, **changes: Any) -> None:
    """Rotary frequencies of another config."""
    config = type(model.config)(**model.config.to_dict())
    config.rope_parameters = {**config.rope_parameters, **changes}
    model.model.rotary_emb = type(model.model.rotary_emb)(config)


def rounded_frequencies(model: Model) -> None:
    """Frequencies that went through bfloat16."""
    table = model.model.rotary_emb.inv_freq
    table.copy_(table.bfloat16())


def backwards(model: Model) -> None:
    """The rotation the other way round."""
    model.model.rotary_emb.inv_freq.neg_()


def _with_positions(model: Model, change: Callable[[Tensor], Tensor]) -> None:
    class Moved(type(model.model.rotary_emb)):  # type: ignore[misc]  # a base that is known at run time
        def forward(self, x: Tensor, position_ids: Tensor) -> Any:
            return super().forward(x, change(position_ids))

    model.model.rotary_emb.__class__ = Moved


def restarts(model: Model) -> None:
    """Positions that do not go on behind the cache."""
    _with_positions(model, lambda positions: positions - positions[:, :1])


def short_table(model: Model) -> None:
    """A table of as many positions as the context: its last row again behind it."""
    _with_positions(model, lambda positions: positions.clamp(max=model.config.max_position_embeddings - 1))


def window(model: Model, size: int) -> None:
    """Another window."""
    model.config.sliding_window = size
    for layer in layers(model):
        if layer.self_attn.sliding_window:
            layer.self_attn.sliding_window = size


def shifted_pattern(model: Model) -> None:
    """Windows in the wrong layers."""
    kinds = model.config.layer_types[::-1]
    model.config.layer_types = kinds
    for layer, kind in zip(layers(model), kinds, strict=True):
        layer.attention_type = kind
        layer.self_attn.layer_type = kind
        layer.self_attn.sliding_window = model.config.sliding_window if kind == "sliding_attention" else None


def blind_to_padding(model: Model) -> None:
    """Padding is read like any token."""
    forward = model.forward

    def run(
        input_ids: Tensor, attention_mask: Any = None, position_ids: Any = None, cache: Any = None, **more: Any
    ) -> Any:
        ones = None if attention_mask is None else torch.ones_like(attention_mask)
        return forward(input_ids, attention_mask=ones, position_ids=position_ids, cache=cache, **more)

    model.forward = run


def tied(model: Model) -> None:
    """The head takes the embedding, and its own weights are not read."""
    model.lm_head.weight = model.model.embed_tokens.weight


def rounded_weights(model: Model) -> None:
    """One matrix of one layer went through 8 bits on its way."""
    weight = layers(model)[1].mlp.down_proj.weight
    step = weight.abs().amax(1, keepdim=True) / 127
    weight.data = (weight / step).round() * step


@dataclass(frozen=True)
class Mistake:
    """How it is planted, in words, and which fields name it rightly; none where it is no field's."""

    plant: Callable[[Model], None]
    words: str
    fields: tuple[str, ...] = ()


MISTAKES = {
    "eps": Mistake(eps, "eps 1e-6 for 1e-5", ("norm.eps",)),
    "final_eps": Mistake(final_eps, "the same in the last norm alone", ("final_norm_eps", "norm.eps")),
    "layernorm": Mistake(layernorm, "LayerNorm for RMSNorm in layers", ("norm.kind",)),
    "final_norm_weight": Mistake(final_norm_weight, "the last norm's weight not read", ("norm.weight", "final_norm")),
    "swapped_norms": Mistake(swapped_norms, "a layer's two norms swapped", ("layout.norms", "norm.placement")),
    "gelu": Mistake(gelu, "GELU for SiLU", ("ffn.activation",)),
    "swapped_gate": Mistake(swapped_gate, "gate and up swapped", ("ffn.gate_order", "layout.gate_up")),
    "interleaved": Mistake(interleaved, "rotary pairs side by side", ("position.pairing", "layout.rope_rows")),
    "tiled": Mistake(tiled, "shared heads dealt out in turn", ("attention.grouping",)),
    "scale": Mistake(scale, "scores divided by head_dim", ("attention.scale",)),
    "no_q_norm": Mistake(no_q_norm, "no norm on queries", ("attention.qk_norm",)),
    "no_bias": Mistake(
        lambda m: without_bias(m, "q_proj", "k_proj", "v_proj", "o_proj"),
        "no biases",
        ("attention.bias",),
    ),
    "no_output_bias": Mistake(lambda m: without_bias(m, "o_proj"), "no bias on the output alone", ("attention.bias",)),
    "ahead": Mistake(ahead, "a mask off by one", ("mask.causal",)),
    "base": Mistake(lambda m: rotary(m, rope_theta=10000.0), "rotary base 10,000", ("position.base",)),
    "no_scaling": Mistake(lambda m: rotary(m, rope_type="default"), "rotary scaling left out", ("position.scaling",)),
    "scaling_factor": Mistake(lambda m: rotary(m, factor=8.0), "scaling factor 8 for 4", ("position.scaling",)),
    "rounded_frequencies": Mistake(rounded_frequencies, "frequencies rounded to bfloat16", ("position.base", "dtype")),
    "backwards": Mistake(backwards, "rotation the other way", ("position.direction",)),
    "restarts": Mistake(restarts, "positions start again behind the cache", ("cache.positions",)),
    "short_table": Mistake(short_table, "a table of positions that ends", ("positions.table",)),
    "window_33": Mistake(lambda m: window(m, 33), "a window of 33 for 32", ("attention.window",)),
    "no_window": Mistake(lambda m: window(m, 10**6), "no window", ("attention.window",)),
    "shifted_pattern": Mistake(shifted_pattern, "windows in the wrong layers", ("attention.window", "layers.pattern")),
    "blind_to_padding": Mistake(blind_to_padding, "padding is read", ("padding.mask",)),
    "tied": Mistake(tied, "the head tied to the embedding", ("embedding.tied",)),
    "rounded_weights": Mistake(rounded_weights, "one matrix rounded to 8 bits"),
}
"""What is planted, by name. A fault's field may be longer than what is asked for here."""

RIGHT = {
    "eager": ("eager", torch.float32),
    "fused": ("sdpa", torch.float32),
    "double": ("sdpa", torch.float64),
}
"""Right ports: how transformers' model is loaded."""
RIGHT_IN_16_BITS = "fused_bfloat16"
"""Both sides in bfloat16, the port with fused attention."""


def load(weights: Path, attention: str = "eager", dtype: torch.dtype = torch.float32) -> Model:
    """Transformers' model of the checkpoint."""
    return AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation=attention).eval()


def port(name: str, weights: Path) -> Model:
    """The port of this name."""
    if name in RIGHT:
        return load(weights, *RIGHT[name])
    model = load(weights)
    with torch.no_grad():
        MISTAKES[name].plant(model)
    return model


def __getattr__(name: str) -> Callable[[Path, torch.dtype], Model]:
    """`port_NAME`, as `archc validate --port` asks for it."""
    wanted = name.removeprefix("port_")
    if wanted == RIGHT_IN_16_BITS:
        return lambda weights, dtype: load(weights, "sdpa", dtype)
    if wanted == name or (wanted not in RIGHT and wanted not in MISTAKES):
        raise AttributeError(name)
    return lambda weights, _: port(wanted, weights)
