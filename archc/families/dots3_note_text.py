"""dots3_note_text: latent attention whose sizes differ by kind of layer (transformers 5.24, models/dots3_note)."""

from typing import Any

from archc.families.base import Family, Inverse, Source, Table
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
    "attention.bias": lambda c: ["q_down", "kv_down", "o"] if c.attention_bias else None,
    "attention.scale": None,
    "attention.window": window,
    "attention.latent_norm.eps": None,
    "attention.rope_key_norm": {},
    "attention.gate": {"over": "head"},
    "attention.indexer": lambda c: INDEXER if c.layer_types[c.layer] == "indexed_attention" else None,
    "ffn": lambda c: _EXPERTS if c.mlp_layer_types[c.layer] == "sparse" else DENSE,
}


_BY_KIND = {
    "num_attention_heads": "heads",
    "num_key_value_heads": "heads",
    "q_lora_rank": "q_rank",
    "kv_lora_rank": "kv_rank",
    "qk_nope_head_dim": "nope_dim",
    "qk_rope_head_dim": "rope_dim",
    "v_head_dim": "value_dim",
}


def _value(path: str, *, windowed: bool) -> Any:
    return lambda o: o.first(path, windowed=windowed)


def _head_dim(*, windowed: bool) -> Any:
    def sum_of(o: Any) -> int | None:
        parts = [o.first(f"attention.{name}", windowed=windowed) for name in ("nope_dim", "rope_dim")]
        return None if None in parts else sum(parts)

    return sum_of


INVERSE: Inverse = {
    "head_dim": _head_dim(windowed=False),
    "swa_head_dim": _head_dim(windowed=True),
    **{key: _value(f"attention.{name}", windowed=False) for key, name in _BY_KIND.items()},
    **{f"swa_{key}": _value(f"attention.{name}", windowed=True) for key, name in _BY_KIND.items()},
}

FAMILY = Family("dots3_note_text", tier="latent", config=CONFIG, inverse=INVERSE)
