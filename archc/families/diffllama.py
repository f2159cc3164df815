"""diffllama: llama with differential attention (transformers 5.24, models/diffllama/modeling_diffllama.py)."""

from archc.families import llama
from archc.families.base import Family, Parameter, Table

LAMBDAS = (
    Parameter("model.layers.N.self_attn.lambda_q1", ("layers.N.attention.lambda_q1",)),
    Parameter("model.layers.N.self_attn.lambda_k1", ("layers.N.attention.lambda_k1",)),
    Parameter("model.layers.N.self_attn.lambda_q2", ("layers.N.attention.lambda_q2",)),
    Parameter("model.layers.N.self_attn.lambda_k2", ("layers.N.attention.lambda_k2",)),
)

CONFIG: Table = {**llama.CONFIG, "attention.differential": True, "ffn.bias": False}

FAMILY = Family("diffllama", llama.FAMILY.rules + LAMBDAS, tier="twisted", config=CONFIG)
