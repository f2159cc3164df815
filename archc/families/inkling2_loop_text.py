"""inkling2_loop_text: inkling2_text with a band of layers that runs several times
(transformers 5.24, models/inkling2_loop/modeling_inkling2_loop.py).
"""

from typing import Any

from archc.families import inkling2_text, inkling_text
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import repeated


def _band(c: Any) -> int:
    found: int = c.loop_layer_index_end - c.loop_layer_index_start
    return found


def _block(c: Any) -> list[dict[str, Source]]:
    number = inkling_text.stored(c)
    found = inkling2_text.block(c, number)
    repeats = c.loop_num_passes > 1 and c.loop_layer_index_start <= number < c.loop_layer_index_end
    return repeated(number, found) if repeats else found


CONFIG: Table = {
    **inkling2_text.CONFIG,
    "layers": lambda c: c.num_hidden_layers + (c.loop_num_passes - 1) * _band(c),
    "passes": {
        "kind": "messages",
        "first": Key("loop_layer_index_start"),
        "layers": _band,
        "times": Key("loop_num_passes"),
        "rank": Key("loop_gate_rank"),
    },
    "block": _block,
}


def _passes(o: Any) -> tuple[int, int, int]:
    first, layers, times = (o.header[f"passes.{name}"] for name in ("first", "layers", "times"))
    return first, layers, times


def _stored_layers(o: Any) -> int:
    _, layers, times = _passes(o)
    return len(o.layers) - (times - 1) * layers


def _layer_types(o: Any) -> list[str]:
    first, layers, times = _passes(o)
    windows = o.column("attention.window")
    stored = windows[: first + layers] + windows[first + times * layers :]
    return ["hybrid_sliding" if window else "hybrid" for window in stored]


INVERSE: Inverse = {
    "num_hidden_layers": _stored_layers,
    "loop_layer_index_start": lambda o: _passes(o)[0],
    "loop_layer_index_end": lambda o: sum(_passes(o)[:2]),
    "loop_num_passes": lambda o: _passes(o)[2],
    "layer_types": _layer_types,
}

FAMILY = Family("inkling2_loop_text", config=CONFIG, inverse=INVERSE)
