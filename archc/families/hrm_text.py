"""hrm_text: a fast and a slow stack that take turns (transformers 5.24, models/hrm_text/modeling_hrm_text.py)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Inverse, Key, Source, Table
from archc.families.common import exact_scale, factor, repeated


def _depth(c: Any) -> int:
    found: int = c.num_layers_per_stack * c.H_cycles * (c.L_cycles + 1)
    return found


def _block(c: Any) -> list[dict[str, Source]]:
    stack, place = divmod(c.layer, c.num_layers_per_stack)
    slow = stack % (c.L_cycles + 1) == c.L_cycles
    return repeated(place + c.num_layers_per_stack * slow, [{"attention": {}}, {"ffn": {}}])


def _undeclared(c: Any) -> list[str] | None:
    return ["tokens that token_type_ids mark as a prefix see one another"] if c.prefix_lm else None


CONFIG: Table = {
    **llama.CONFIG,
    "layers": _depth,
    "passes": {"kind": "alternation", "layers": Key("num_layers_per_stack"), "fast": Key("L_cycles")},
    **exact_scale(factor("embedding_scale")),
    "norm.weight": "none",
    "attention.kv_heads": None,
    "attention.gate": {"over": "element", "bias": Key("attention_bias")},
    "undeclared": _undeclared,
    "block": _block,
}


def _rounds(o: Any) -> int:
    found: int = len(o.layers) // (o.header["passes.layers"] * (o.header["passes.fast"] + 1))
    return found


INVERSE: Inverse = {
    "num_layers_per_stack": lambda o: o.header["passes.layers"],
    "L_cycles": lambda o: o.header["passes.fast"],
    "H_cycles": _rounds,
}

FAMILY = Family("hrm_text", tier="exotic", config=CONFIG, inverse=INVERSE)
