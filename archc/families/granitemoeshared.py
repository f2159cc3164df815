"""granitemoeshared: granitemoe with a shared feed-forward (transformers 5.24, models/granitemoeshared)."""

from typing import Any

from archc.families import granitemoe
from archc.families.base import Family, Key, Module, Table

SHARED = (
    Module("model.layers.N.shared_mlp.input_linear", ("layers.N.ffn.shared.gate", "layers.N.ffn.shared.up")),
    Module("model.layers.N.shared_mlp.output_linear", ("layers.N.ffn.shared.down",)),
)


def shared(c: Any) -> Table | None:
    """The shared feed-forward; a width of 0 is none."""
    return {"width": Key("shared_intermediate_size")} if c.shared_intermediate_size else None


CONFIG: Table = {**granitemoe.CONFIG, "ffn": {**granitemoe.EXPERTS, "shared": shared}}

FAMILY = Family("granitemoeshared", granitemoe.FAMILY.rules + SHARED, tier="mixture", config=CONFIG)
