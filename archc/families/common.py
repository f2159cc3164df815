"""Readings that many families share, and the rules of experts: rotary positions, windows, activations.

A reading works out one value of a spec from a config `c` (an `archc.importing.reading.Reading`).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf, nextafter
from typing import Any, Final

from archc.families.base import Key, Module, Parameter, Source, Table

ACTIVATIONS: Final[Mapping[str, str]] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_python_tanh": "gelu_tanh",
    "gelu_accurate": "gelu_tanh",
    "relu": "relu",
    "relu2": "relu2",
}
"""transformers' names (activations.py) of the activations of the language."""

SCALING_KEYS: Final[Mapping[str, Mapping[str, str]]] = {
    "linear": {"factor": "factor"},
    "dynamic": {"factor": "factor"},
    "llama3": {
        "factor": "factor",
        "low_freq_factor": "low_freq_factor",
        "high_freq_factor": "high_freq_factor",
    },
    "yarn": {
        "factor": "factor",
        "beta_fast": "beta_fast",
        "beta_slow": "beta_slow",
        "attention_factor": "attention_factor",
        "mscale": "mscale",
        "mscale_all_dim": "mscale_all_dim",
        "truncate": "truncate",
    },
    "longrope": {
        "short_factors": "short_factor",
        "long_factors": "long_factor",
        "factor": "factor",
        "attention_factor": "attention_factor",
    },
    "proportional": {"share": "partial_rotary_factor", "factor": "factor"},
}


def activation(key: str) -> Any:
    """The activation that a config names under `key`."""

    def read(c: Any) -> str:
        name = getattr(c, key)
        return ACTIVATIONS.get(name, name)

    return read


def switch(key: str) -> Any:
    """Whether a config says yes under `key`; null is no, as to the reference, whatever the language's default."""
    return lambda c: bool(getattr(c, key))


def head_dim(c: Any) -> int:
    """Channels of a head: as the config says, or an equal share of the hidden size."""
    found: int = c.get("head_dim") or c.hidden_size // c.num_attention_heads
    return found


def layernorm(eps: Source) -> Table:
    """The section `norm` of layer norms with weight and shift."""
    return {"norm.kind": "layernorm", "norm.eps": eps, "norm.bias": True}


def block_with_eps(eps: float, key: str) -> Any:
    """The `block` of layers whose norms have an eps of their own; the config's, under `key`, is the final norm's."""

    def read(c: Any) -> list[Table] | None:
        if getattr(c, key) == eps:
            return None
        return [{"norm": {"eps": eps}, name: {}} for name in ("attention", "ffn")]

    return read


def without(table: Table, *sections: str) -> Table:
    """A table less everything below some sections."""
    return {path: source for path, source in table.items() if path.split(".")[0] not in sections}


def self_attending(layers: str) -> Any:
    """The number of layers, under the key `layers`, of a decoder that has no attention to an encoder."""

    def read(c: Any) -> int:
        if c.get("add_cross_attention"):
            raise ValueError("with add_cross_attention its layers attend to an encoder")
        found: int = getattr(c, layers)
        return found

    return read


def rope(c: Any, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """The section `position` of whole heads that turn; `kind` chooses one kind of layer, `more` adds fields.

    Most classes of the reference read no `partial_rotary_factor`, whatever a config states: those that do have
    `partial_rope`.
    """
    section = {
        "kind": "rope",
        "base": lambda c: float(c.rope(kind)["rope_theta"]),
        "partial": None,
        "scaling": lambda c: _scaling(c, kind, whole="partial" not in more),
    }
    return {**section, **more}


def partial_rope(c: Any, kind: str | None = None, **more: Any) -> dict[str, Any]:
    """The section `position` of heads of which `partial_rotary_factor` says the share that turns."""
    return rope(c, kind, partial=lambda c: _share(c, kind), **more)


def _share(c: Any, kind: str | None) -> float | None:
    if c.rope(kind).get("rope_type") == "proportional":
        return None
    share = c.rope(kind).get("partial_rotary_factor")
    return None if share in (None, 1, 1.0) else float(share)


def _scaling(c: Any, kind: str | None, *, whole: bool) -> dict[str, Any] | None:
    scaling = c.rope(kind).get("rope_type", "default")
    if scaling == "default":
        return None
    if scaling not in SCALING_KEYS:
        raise ValueError(f"rope_type {scaling!r}")
    if whole and (share := _share(c, kind)) is not None:  # the reference's scalings read it, and its class does not
        raise ValueError(f"rope_type {scaling!r} for a share of {share:g} of heads that turn as a whole")
    section: dict[str, Any] = {"kind": lambda c: c.rope(kind).get("rope_type")}
    for field, key in SCALING_KEYS[scaling].items():
        section[field] = lambda c, key=key: _number(c.rope(kind).get(key))
    if scaling == "dynamic":
        section["original_context"] = Key("max_position_embeddings")
    elif scaling not in ("linear", "proportional"):
        section["original_context"] = lambda c: c.rope(kind).get(
            "original_max_position_embeddings", c.max_position_embeddings
        )
    for field in ("beta_fast", "beta_slow", "mscale", "mscale_all_dim") if scaling == "yarn" else ():
        section[field] = lambda c, key=field: _number(c.rope(kind).get(key)) or None  # the reference takes 0 as unset
    if scaling == "yarn":
        section["truncate"] = _truncate
    if scaling == "yarn" and c.rope(kind).get("factor") is None:
        section["factor"] = lambda c: c.max_position_embeddings / section["original_context"](c)
    return section


def _truncate(c: Any) -> bool | None:
    """Whether YaRN's ramp has whole ends. Read beside the kinds, where there are some; null is no to the reference."""
    rope = c.rope()
    return False if rope.nulls("truncate") else rope.get("truncate")


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [float(entry) for entry in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def share(part: int, whole: int) -> float:
    """The fraction part / whole, rounded so that whole times it is at least part."""
    found = part / whole
    return found if int(whole * found) == part else nextafter(found, inf)


def sliding(c: Any) -> bool:
    """Whether the layer in question is one with a window, by `layer_types`."""
    types = c.get("layer_types")
    return types is not None and types[c.layer] == "sliding_attention"


def window(c: Any) -> int | None:
    """The window of the layer in question, where `layer_types` gives it one."""
    return c.sliding_window if sliding(c) else None


def qkvo(q: bool, k: bool, v: bool, o: bool) -> str | list[str]:
    """The biases of four projections, as the language writes them."""
    found = [name for name, biased in zip("qkvo", (q, k, v, o), strict=True) if biased]
    return "all" if len(found) == 4 else found or "none"


def rope_per_kind(c: Any, **more: Any) -> dict[str, Any]:
    """The section `position` of models that keep rotary parameters for each kind of layer; null parameters are none."""
    kind = c.layer_types[c.layer]
    return {"kind": "none"} if c.rope_parameters[kind] is None else rope(c, kind, **more)


def rope_where_sliding(c: Any) -> dict[str, Any]:
    """The section `position` of models that turn heads on sliding layers alone."""
    return rope(c) if sliding(c) else {"kind": "none"}


def rope_where_windowed(c: Any) -> dict[str, Any]:
    """The section `position` of models that turn heads on sliding layers, and on all where there is no window."""
    return rope(c) if c.sliding_window is None else rope_where_sliding(c)


def gated(width: str = "intermediate_size", **more: Source) -> dict[str, Source]:
    """The section `ffn` of a dense feed-forward, whose width a config states under `width`."""
    return {"kind": "gated", "activation": activation("hidden_act"), "width": Key(width), **more}


def moe(router: Table, **more: Source) -> dict[str, Source]:
    """The section `ffn` of a mixture of experts, under the keys that most configs use; `more` replaces and adds."""
    return {
        "kind": "moe",
        "experts": Key("num_experts"),
        "top_k": Key("num_experts_per_tok"),
        "width": Key("moe_intermediate_size"),
        "activation": activation("hidden_act"),
        "router": router,
        **more,
    }


def shared_experts(count: str, width: str = "moe_intermediate_size") -> Any:
    """The section `ffn.shared` of as many experts as a config states under `count`, each of the width of the others."""

    def read(c: Any) -> dict[str, Source] | None:
        return {"width": lambda c: getattr(c, count) * getattr(c, width)} if getattr(c, count) else None

    return read


def repeated(layer: int, block: list[dict[str, Source]]) -> list[dict[str, Source]]:
    """The branches of a layer that runs several times, number `layer` of those stored."""
    return [{**branch, "shared": f"layer_{layer}_{number}"} for number, branch in enumerate(block, 1)]


def band(o: Any) -> tuple[int, int, int]:
    """Of a spec, the first of the layers that run several times, their number, and how often they run."""
    first, layers, times = (o.header[f"passes.{name}"] for name in ("first", "layers", "times"))
    return first, layers, times


def stored_layers(o: Any) -> int:
    """The number of layers that a config states, where some of the spec's are the same ones again."""
    _, layers, times = band(o)
    return len(o.layers) - (times - 1) * layers


def stored_types(windowed: str, other: str) -> Any:
    """The types of these layers, by the names of those with a window and of the others."""

    def work_out(o: Any) -> list[str]:
        first, layers, times = band(o)
        windows = o.column("attention.window")
        stored = windows[: first + layers] + windows[first + times * layers :]
        return [windowed if window else other for window in stored]

    return work_out


def factor(key: str) -> Any:
    """A factor that a config states under `key`; left out where it changes nothing."""

    def read(c: Any) -> float | None:
        value = getattr(c, key)
        return None if value is None or value == 1 else float(value)

    return read


def exact_scale(scale: Source) -> Table:
    """The scale of an embedding that multiplies as it is: the class does not round it to the type of the weights."""

    def rounded(c: Any) -> bool | None:
        return None if (scale(c) if callable(scale) else scale) is None else False

    return {"embedding.scale": scale, "embedding.scale_rounded": rounded}


SINGLE_EXPERTS: Final = (
    Parameter("model.layers.N.mlp.experts.E.gate_proj.weight", ("layers.N.ffn.gate",)),
    Parameter("model.layers.N.mlp.experts.E.up_proj.weight", ("layers.N.ffn.up",)),
    Parameter("model.layers.N.mlp.experts.E.down_proj.weight", ("layers.N.ffn.down",)),
)
"""Where most families store their experts: one by one."""

ROUTED_EXPERTS: Final = (Module("model.layers.N.mlp.gate", ("layers.N.ffn.router",)), *SINGLE_EXPERTS)
"""The same, and their router."""

CORRECTION: Final = (Parameter("model.layers.N.mlp.gate.e_score_correction_bias", ("layers.N.ffn.correction",)),)
"""Where most families store what their router adds for the choice of experts."""

SINKS: Final = (Parameter("model.layers.N.self_attn.sinks", ("layers.N.attention.sinks",)),)
"""Where sinks are stored under their own name."""


def shared_ffn(stored: str) -> tuple[Module, ...]:
    """The rules of the feed-forward for every token beside the experts, which a layer stores under `stored`."""
    return tuple(
        Module(f"model.layers.N.{stored}.{name}_proj", (f"layers.N.ffn.shared.{name}",))
        for name in ("gate", "up", "down")
    )


EMPTY_SHARED: Final = tuple(f"{rule.stored}.weight" for rule in shared_ffn("mlp.shared_experts"))
"""What classes store that keep shared experts of width 0 where a config asks for none."""
