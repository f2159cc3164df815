"""gpt2: fused and transposed Conv1D weights (transformers 5.24, models/gpt2/modeling_gpt2.py)."""

from archc.families.base import Family, Module

FAMILY = Family(
    "gpt2",
    (
        Module("transformer.wte", ("embedding",)),
        Module("transformer.wpe", ("position_embedding",)),
        Module("transformer.h.N.ln_1", ("layers.N.attention_norm",)),
        Module(
            "transformer.h.N.attn.c_attn",
            ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
            transposed=True,
        ),
        Module("transformer.h.N.attn.c_proj", ("layers.N.attention.o",), transposed=True),
        Module("transformer.h.N.ln_2", ("layers.N.ffn_norm",)),
        Module("transformer.h.N.mlp.c_fc", ("layers.N.ffn.up",), transposed=True),
        Module("transformer.h.N.mlp.c_proj", ("layers.N.ffn.down",), transposed=True),
        Module("transformer.ln_f", ("final_norm",)),
        Module("lm_head", ("head",)),
    ),
    optional_prefix="transformer.",
    ignored=("transformer.h.N.attn.bias", "transformer.h.N.attn.masked_bias"),
)
