"""qwen3_moe: qwen3 with experts, stored one by one (transformers 5.24, models/qwen3_moe/modeling_qwen3_moe.py)."""

from archc.families import qwen3
from archc.families.base import Family, Module, PerExpert

EXPERTS = (
    Module("model.layers.N.mlp.gate", ("layers.N.ffn.router",)),
    PerExpert("model.layers.N.mlp.experts.E.gate_proj.weight", ("layers.N.ffn.gate",)),
    PerExpert("model.layers.N.mlp.experts.E.up_proj.weight", ("layers.N.ffn.up",)),
    PerExpert("model.layers.N.mlp.experts.E.down_proj.weight", ("layers.N.ffn.down",)),
)

FAMILY = Family("qwen3_moe", qwen3.FAMILY.rules + EXPERTS)
