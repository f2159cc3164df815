"""dory: everything of length one, a band of layers that runs several times (transformers 5.24, models/dory)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import band, repeated, rope, stored_layers, stored_types, without


def _depth(c: Any) -> int:
    found: int = c.num_hidden_layers + (c.n_recurrent_loops - 1) * c.n_recurrent_layers
    return found


def _stored(c: Any) -> tuple[int, int]:
    """The number of the layer in question among those stored, and of its pass."""
    turn, place = divmod(c.layer - c.n_input_layers, max(c.n_recurrent_layers, 1))
    if c.layer < c.n_input_layers:
        return c.layer, 0
    if turn < c.n_recurrent_loops:
        return c.n_input_layers + place, turn
    return c.layer - (c.n_recurrent_loops - 1) * c.n_recurrent_layers, 0


def _kind(c: Any) -> str:
    kind: str = c.layer_types[_stored(c)[0]]
    return kind


def _attention(c: Any) -> dict[str, Source]:
    kept = c.recurrent_kv_cache_mode == "per_loop" or not _repeats(c) or _stored(c)[1] == c.n_recurrent_loops - 1
    return {} if kept else {"kv": "not_kept"}


def _repeats(c: Any) -> bool:
    number, _ = _stored(c)
    return bool(c.n_recurrent_loops > 1 and c.n_input_layers <= number < c.n_input_layers + c.n_recurrent_layers)


def _block(c: Any) -> list[dict[str, Source]]:
    block: list[dict[str, Source]] = [{"attention": _attention}, {"ffn": {}}]
    return repeated(_stored(c)[0], block) if _repeats(c) else block


def _passes(c: Any) -> dict[str, Source] | None:
    if not c.n_recurrent_layers:
        raise ValueError("n_recurrent_layers is 0")
    band = {"first": Key("n_input_layers"), "layers": Key("n_recurrent_layers"), "times": Key("n_recurrent_loops")}
    return {"kind": "restart", **band}


CONFIG: Table = {
    **without(llama.CONFIG, "norm"),
    "layers": _depth,
    "passes": _passes,
    "norm": {"kind": "l2", "eps": 1e-6, "weight": "none", "placement": "sandwich"},
    "position": lambda c: rope(c, _kind(c)),
    "attention.window": lambda c: c.sliding_window if _kind(c) == "sliding_attention" else None,
    "attention.qk_norm.over": "head",
    "attention.query_factor": lambda c: c.head_dim**0.5 / c.initializer_range,
    "attention.output_norm": True,
    "attention.gate": {"over": "element", "factor": lambda c: c.hidden_size**0.25 / c.initializer_range},
    "ffn.factors.learned": lambda c: c.hidden_size**0.5,
    "ffn.inner_norm": True,
    "residual.carries": "normed",
    "residual.learned": "rate",
    "residual.learned_scale": lambda c: c.ngpt_alpha_init / c.initializer_range,
    "logits.learned_scale": lambda c: 1 / c.initializer_range,
    "logits.float32": True,
    "block": _block,
}


INVERSE: Inverse = {
    "num_hidden_layers": stored_layers,
    "n_input_layers": lambda o: band(o)[0],
    "n_recurrent_layers": lambda o: band(o)[1],
    "n_recurrent_loops": lambda o: band(o)[2],
    "n_output_layers": lambda o: stored_layers(o) - band(o)[0] - band(o)[1],
    "layer_types": stored_types("sliding_attention", "full_attention"),
    "recurrent_kv_cache_mode": lambda o: "last_loop" if "not_kept" in o.column("attention.kv") else "per_loop",
}

FAMILY = Family("dory", tier="exotic", config=CONFIG, inverse=INVERSE)
