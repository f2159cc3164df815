"""dots3_note_text: latent attention whose sizes differ by kind of layer (transformers 5.24, models/dots3_note)."""

from typing import Any

from archc.families.base import Family, Source, Table
from archc.families.common import rope, window
from archc.families.deepseek_v3 import DENSE, EXPERTS, LATENT
from archc.families.deepseek_v32 import INDEXER


def _own(key: str) -> Any:
    """A key of the config as this layer has it: what `per_layer_config` says of it, or the model's."""
    return lambda c: getattr(c.per_layer_config[c.layer], key)


def _ratio(rank: str) -> Any:
    return lambda c: (c.hidden_size / _own(rank)(c)) ** 0.5


_SIZES: Table = {
    "attention.heads": _own("num_attention_heads"),
    "attention.q_rank": _own("q_lora_rank"),
    "attention.kv_rank": _own("kv_lora_rank"),
    "attention.nope_dim": _own("qk_nope_head_dim"),
    "attention.rope_dim": _own("qk_rope_head_dim"),
    "attention.value_dim": _own("v_head_dim"),
    "attention.q_latent_scale": _ratio("q_lora_rank"),
    "attention.kv_latent_scale": _ratio("kv_lora_rank"),
}
_EXPERTS: Table = {
    **EXPERTS,
    "shared": {"width": lambda c: c.shared_experts_intermediate_size * c.n_shared_experts},
}


def _position(c: Any) -> dict[str, Source]:
    return {**rope(c, c.layer_types[c.layer], pairing="interleaved"), "partial": None}


CONFIG: Table = {
    **LATENT,
    **_SIZES,
    "position": _position,
    "attention.scale": None,
    "attention.window": window,
    "attention.latent_norm.eps": None,
    "attention.rope_key_norm": {},
    "attention.gate": {"over": "head"},
    "attention.indexer": lambda c: INDEXER if c.layer_types[c.layer] == "indexed_attention" else None,
    "ffn": lambda c: _EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else DENSE,
}

FAMILY = Family("dots3_note_text", config=CONFIG)
