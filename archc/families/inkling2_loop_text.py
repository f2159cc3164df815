"""inkling2_loop_text: inkling2_text with a band of layers that runs several times
(transformers 5.24, models/inkling2_loop/modeling_inkling2_loop.py).
"""

from typing import Any

from archc.families import inkling2_text, inkling_text
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import band, repeated, stored_layers, stored_types


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


INVERSE: Inverse = {
    "num_hidden_layers": stored_layers,
    "loop_layer_index_start": lambda o: band(o)[0],
    "loop_layer_index_end": lambda o: sum(band(o)[:2]),
    "loop_num_passes": lambda o: band(o)[2],
    "layer_types": stored_types("hybrid_sliding", "hybrid"),
}

FAMILY = Family("inkling2_loop_text", tier="exotic", config=CONFIG, inverse=INVERSE)
