"""apertus1p5_text: apertus, whose head may score fewer tokens (transformers 5.24, models/apertus1p5)."""

from archc.families import apertus
from archc.families.base import Family, Key, Table

CONFIG: Table = {**apertus.CONFIG, "logits.vocab_size": Key("output_vocab_size")}

FAMILY = Family("apertus1p5_text", apertus.FAMILY.rules, tier="twisted", config=CONFIG)
