"""hunyuan_v1_dense: queries and keys normed once they have turned (transformers 5.24, models/hunyuan_v1_dense)."""

from typing import Any

from archc.families import llama
from archc.families.base import Family, Table
from archc.families.common import rope


def position(c: Any) -> dict[str, Any]:
    """Rotary positions; dynamic ones with an alpha are those of a fixed, larger base."""
    found = c.rope()
    if found.get("rope_type") == "dynamic" and found.get("alpha"):
        return rope(c, scaling={"kind": "ntk_alpha", "alpha": lambda c: float(c.rope()["alpha"])})
    return rope(c)


CONFIG: Table = {
    **llama.CONFIG,
    "position": position,
    "attention.qk_norm": {"over": "head", "order": "after_rope"},
    "ffn.bias": False,
}

FAMILY = Family("hunyuan_v1_dense", config=CONFIG)
