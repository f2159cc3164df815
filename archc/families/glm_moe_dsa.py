"""glm_moe_dsa: deepseek_v32 whose layers may reuse chosen keys (transformers 5.24, models/glm_moe_dsa)."""

from typing import Any

from archc.families import deepseek_v32
from archc.families.base import Family, Table


def reused_indices(c: Any) -> str | None:
    """Whether the layer takes over what the last indexer has chosen."""
    return "reused" if c.indexer_types[c.layer] == "shared" else None


INDEXER: Table = {**deepseek_v32.INDEXER, "indices": reused_indices}
CONFIG: Table = {**deepseek_v32.CONFIG, "attention.indexer": INDEXER}


def _indexer_types(o: Any) -> list[str]:
    return ["shared" if indices == "reused" else "full" for indices in o.column("attention.indexer.indices")]


FAMILY = Family("glm_moe_dsa", tier="latent", config=CONFIG, inverse={"indexer_types": _indexer_types})
