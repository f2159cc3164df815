"""zamba2: mamba2, shared blocks in turn beside it, adapted for every use (transformers 5.24, models/zamba2)."""

from typing import Any

from archc.families import mamba2, zamba
from archc.families.base import Family, Inverse, Key, Table
from archc.families.common import gated, rope

MIXER: Table = {
    **mamba2.MIXER,
    "heads": Key("n_mamba_heads"),
    "head_dim": Key("mamba_headdim"),
    "groups": Key("mamba_ngroups"),
    "activation": "silu",
    "bias": Key("add_bias_linear"),
    "output_bias": Key("add_bias_linear"),
    "conv_bias": True,
    "output_norm": {"order": "after_gate", "eps": 1e-5},
    "dt_min": lambda c: float(c.time_step_min),
    "dt_max": None,
}


def attention(c: Any) -> Table:
    """The section `attention` of a shared block."""
    return {
        **zamba.attention(c),
        "adapter_rank": lambda c: c.adapter_rank if c.use_shared_attention_adapter else None,
    }


def block(c: Any) -> list[dict[str, Any]]:
    """The branches of the layer in question; the n-th hybrid layer uses the n-th shared block, round and round."""
    if c.layer_types[c.layer] != "hybrid":
        return [{"mixer": MIXER}]
    if not c.tie_word_embeddings and len(c.hybrid_layer_ids) > c.num_mem_blocks:
        raise ValueError("with tie_word_embeddings off, the class ties no blocks and stores adapters that none uses")
    turn = c.hybrid_layer_ids.index(c.layer) % c.num_mem_blocks
    ffn = gated(bias=Key("add_bias_linear"), adapter_rank=Key("adapter_rank"))
    return zamba.hybrid(f"shared_{turn + 1}", attention, ffn, MIXER)


CONFIG: Table = {
    **zamba.CONFIG,
    "position": lambda c: rope(c) if c.use_mem_rope else {"kind": "none"},
    "block": block,
}


def _mem_blocks(o: Any) -> int:
    """The blocks that layers share, or, where they share none, as many as there are hybrid layers."""
    hybrid = [block for block in o.column("block") if len(block) > 1]
    return len({repr(block) for block in hybrid} if o.header["embedding.tied"] else hybrid) or 1


INVERSE: Inverse = {"num_mem_blocks": _mem_blocks, "mamba_expand": mamba2.expansion}

FAMILY = Family("zamba2", tier="hybrid", config=CONFIG, inverse=INVERSE)
