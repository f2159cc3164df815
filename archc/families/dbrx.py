"""dbrx: layer norms without bias, clipped projections, experts (transformers 5.24, models/dbrx/modeling_dbrx.py)."""

from typing import Any

from archc.families.base import Family, Key, Module, Parameter, Table
from archc.families.common import ACTIVATIONS, rope


def experts(key: str) -> Any:
    """A key of the section that describes the experts."""
    return lambda c: getattr(c.section("ffn_config"), key)


def power(c: Any) -> float | None:
    """The norm by which weights are divided, where it is not their sum."""
    found = c.section("ffn_config").moe_normalize_expert_weights
    return None if found in (None, 1) else float(found)


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": Key("d_model"),
    "context": Key("max_seq_len"),
    "embedding.tied": Key("tie_word_embeddings"),
    "layers": Key("n_layers"),
    "norm.kind": "layernorm",
    "norm.eps": 1e-5,
    "norm.placement": "pre",
    "position": rope,
    "attention.heads": Key("n_heads"),
    "attention.kv_heads": lambda c: c.section("attn_config").kv_n_heads,
    "attention.clip": lambda c: c.section("attn_config").clip_qkv,
    "ffn.kind": "moe",
    "ffn.experts": experts("moe_num_experts"),
    "ffn.top_k": experts("moe_top_k"),
    "ffn.width": experts("ffn_hidden_size"),
    "ffn.activation": lambda c: ACTIVATIONS[c.section("ffn_config").ffn_act_fn.get("name", "silu")],
    "ffn.router.score": "softmax",
    "ffn.router.renormalize": lambda c: c.section("ffn_config").moe_normalize_expert_weights is not None,
    "ffn.router.renormalize_power": power,
}


def _attention(o: Any) -> dict[str, Any]:
    """The section attn_config; the class reads the base there, too, without using it."""
    return {
        "rope_theta": o.first("position.base"),
        "kv_n_heads": o.first("attention.kv_heads"),
        "clip_qkv": o.first("attention.clip"),
    }


FAMILY = Family(
    "dbrx",
    (
        Module("transformer.wte", ("embedding",)),
        Module("transformer.blocks.N.norm_attn_norm.norm_1", ("layers.N.attention_norm",)),
        Module(
            "transformer.blocks.N.norm_attn_norm.attn.Wqkv",
            ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
        ),
        Module("transformer.blocks.N.norm_attn_norm.attn.out_proj", ("layers.N.attention.o",)),
        Module("transformer.blocks.N.norm_attn_norm.norm_2", ("layers.N.ffn_norm",)),
        Module("transformer.blocks.N.ffn.router.layer", ("layers.N.ffn.router",)),
        Parameter("transformer.blocks.N.ffn.experts.mlp.w1", ("layers.N.ffn.gate",), flat=True),
        Parameter("transformer.blocks.N.ffn.experts.mlp.v1", ("layers.N.ffn.up",), flat=True),
        Parameter("transformer.blocks.N.ffn.experts.mlp.w2", ("layers.N.ffn.down",), transposed=True, flat=True),
        Module("transformer.norm_f", ("final_norm",)),
        Module("lm_head", ("head",)),
    ),
    tier="mixture",
    config=CONFIG,
    inverse={"attn_config": _attention},
)
