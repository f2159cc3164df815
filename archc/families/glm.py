"""glm: llama with pairs of neighbours, of which a part turns (transformers 5.24, models/glm/modeling_glm.py)."""

from archc.families import llama, phi3
from archc.families.base import Family, Table
from archc.families.common import head_dim, partial_rope, qkvo

CONFIG: Table = {
    **llama.CONFIG,
    "position": lambda c: partial_rope(c, pairing="interleaved"),
    "attention.head_dim": head_dim,
    "attention.bias": lambda c: qkvo(c.attention_bias, c.attention_bias, c.attention_bias, False),
    "ffn.bias": False,
}

FAMILY = Family("glm", llama.ENDS + llama.ATTENTION + llama.PRE_NORMS + phi3.FUSED_FFN, tier="twisted", config=CONFIG)
