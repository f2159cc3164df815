"""What transformers does by keys that it reads of any config, and that a model's own class may know nothing of.

From transformers 5.24, masking_utils.py (`create_causal_mask`) and cache_utils.py (`get_layer_types_and_kwargs`).
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from typing import Any


def undeclared(config: Any, read: Set[str]) -> Iterator[str]:
    """What no spec says of a config of which a family's table has `read` these keys."""
    if not getattr(config, "is_causal", True):
        yield "queries see later positions too"
    name = _kept_by(config)
    if name is not None and name not in read and not hasattr(type(config)(), name):
        yield f"the reference's cache keeps rows by {name}, which nothing else there goes by"


def _kept_by(config: Any) -> str | None:
    """The key by which a cache keeps fewer rows than all, in some layers."""
    kinds = getattr(config, "layer_types", None)
    if kinds is not None:
        return "layer_types" if set(kinds) != {"full_attention"} else None
    windows = ("sliding_window", "attention_chunk_size")
    return next((name for name in windows if getattr(config, name, None) is not None), None)
