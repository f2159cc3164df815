"""ministral3: mistral, whose queries grow with their position (transformers 5.24, models/ministral3)."""

from typing import Any

from archc.families import mistral
from archc.families.base import Family, Table


def _query_scale(c: Any) -> Table | None:
    """Steps as long as the context before its stretch."""
    if not c.rope().get("llama_4_scaling_beta"):
        return None
    return {
        "form": "steps",
        "strength": lambda c: float(c.rope()["llama_4_scaling_beta"]),
        "length": lambda c: c.rope()["original_max_position_embeddings"],
    }


CONFIG: Table = {**mistral.CONFIG, "attention.query_scale": _query_scale}

FAMILY = Family("ministral3", mistral.FAMILY.rules, tier="twisted", config=CONFIG)
