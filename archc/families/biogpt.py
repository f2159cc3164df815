"""biogpt: pre-norm, learned positions from the third row on (transformers 5.24, models/biogpt/modeling_biogpt.py)."""

from archc.families.base import Family, Key, Module, Table
from archc.families.common import activation, exact_scale, layernorm

CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("hidden_size"),
    "context": Key("max_position_embeddings"),
    "embedding.tied": Key("tie_word_embeddings"),
    **exact_scale(lambda c: "sqrt(hidden_size)" if c.scale_embedding else None),
    "layers": Key("num_hidden_layers"),
    **layernorm(1e-5),  # layer_norm_eps of the config is read by none of its norms
    "norm.placement": "pre",
    "position": {"kind": "learned", "offset": 2},
    "attention.heads": Key("num_attention_heads"),
    "attention.bias": "all",
    "ffn.kind": "mlp",
    "ffn.activation": activation("hidden_act"),
    "ffn.width": Key("intermediate_size"),
    "ffn.bias": True,
}


def layers(prefix: str) -> tuple[Module, ...]:
    """The layers that a class keeps under `prefix`, named as in fairseq."""
    layer = f"{prefix}.layers.N"
    return (
        Module(f"{layer}.self_attn_layer_norm", ("layers.N.attention_norm",)),
        Module(f"{layer}.self_attn.q_proj", ("layers.N.attention.q",)),
        Module(f"{layer}.self_attn.k_proj", ("layers.N.attention.k",)),
        Module(f"{layer}.self_attn.v_proj", ("layers.N.attention.v",)),
        Module(f"{layer}.self_attn.out_proj", ("layers.N.attention.o",)),
        Module(f"{layer}.final_layer_norm", ("layers.N.ffn_norm",)),
        Module(f"{layer}.fc1", ("layers.N.ffn.up",)),
        Module(f"{layer}.fc2", ("layers.N.ffn.down",)),
    )


ENDS = (
    Module("biogpt.embed_tokens", ("embedding",)),
    Module("biogpt.embed_positions", ("position_embedding",)),
    Module("biogpt.layer_norm", ("final_norm",)),
    Module("output_projection", ("head",)),
)

FAMILY = Family("biogpt", ENDS + layers("biogpt"), tier="dense", config=CONFIG)
