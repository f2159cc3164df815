"""apertus1p5_text: apertus, whose head may score fewer tokens (transformers 5.24, models/apertus1p5)."""

from typing import Any

from archc.families import apertus
from archc.families.base import Family, Table


def _scored(c: Any) -> int | None:
    """The rows of a head of its own; a tied one is the whole embedding, whatever the config says."""
    found: int | None = None if c.tie_word_embeddings else c.output_vocab_size
    return found


CONFIG: Table = {**apertus.CONFIG, "logits.vocab_size": _scored}

FAMILY = Family("apertus1p5_text", apertus.FAMILY.rules, tier="twisted", config=CONFIG)
