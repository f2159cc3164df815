"""sarvam_moe: glm4_moe under names of its own (transformers 5.24, models/sarvam_moe)."""

from archc.families import glm4_moe, llama
from archc.families.base import Family, Module, Parameter
from archc.families.common import EMPTY_SHARED, ROUTED_EXPERTS, shared_ffn

OWN_NAMES = (
    Module("model.word_embeddings", ("embedding",)),
    Module("model.norm", ("final_norm",)),
    Module("lm_head", ("head",)),
    Module(
        "model.layers.N.attention.query_key_value",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
    ),
    Module("model.layers.N.attention.query_layernorm", ("layers.N.attention.q_norm",)),
    Module("model.layers.N.attention.key_layernorm", ("layers.N.attention.k_norm",)),
    Module("model.layers.N.attention.dense", ("layers.N.attention.o",)),
    Parameter("model.layers.N.mlp.gate.expert_bias", ("layers.N.ffn.correction",)),
)

FAMILY = Family(
    "sarvam_moe",
    OWN_NAMES + llama.PRE_NORMS + llama.GATED_FFN + ROUTED_EXPERTS + shared_ffn("mlp.shared_experts"),
    empty=EMPTY_SHARED,
    tier="mixture",
    config=glm4_moe.CONFIG,
)
