"""qwen3_5_text: qwen3_next with a dense feed-forward (transformers 5.24, models/qwen3_5/modeling_qwen3_5.py).

Its rotary positions have three rows, for time, height and width; for text all are the position.
"""

from archc.families import qwen3_next
from archc.families.base import Family, Table
from archc.families.common import gated

CONFIG: Table = {**qwen3_next.CONFIG, "ffn": gated()}

FAMILY = Family("qwen3_5_text", tier="hybrid", config=CONFIG)
