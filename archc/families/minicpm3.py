"""minicpm3: youtu with depth- and width-dependent scales (transformers 5.24, models/minicpm3/modeling_minicpm3.py)."""

from archc.families import youtu
from archc.families.base import Family, Key, Table
from archc.families.common import rope
from archc.families.deepseek_v3 import DENSE

CONFIG: Table = {
    **youtu.CONFIG,
    "position": rope,
    "ffn": {**DENSE, "bias": Key("mlp_bias")},
    "embedding.scale": lambda c: float(c.scale_emb),
    "residual.branch": lambda c: c.scale_depth / c.num_hidden_layers**0.5,
    "logits.scale": lambda c: c.dim_model_base / c.hidden_size,
    "logits.scaled": "input",
}

FAMILY = Family("minicpm3", youtu.FAMILY.rules, tier="latent", config=CONFIG)
