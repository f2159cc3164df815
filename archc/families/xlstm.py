"""xlstm: mLSTM and a gated feed-forward (transformers 5.24, models/xlstm/modeling_xlstm.py)."""

from typing import Any

from archc.families import common
from archc.families.base import Family, Inverse, Key, Table


def share(factor: str) -> Any:
    """Channels of a head, by the share of hidden_size that all heads have."""
    return lambda c: int(c.hidden_size * getattr(c, factor)) // c.num_heads


def hidden_size(c: Any) -> int:
    """Channels of the stream, which those of the embedding must be too."""
    found: int = c.hidden_size
    if c.embedding_dim != found:
        raise ValueError(f"embedding_dim {c.embedding_dim} is not hidden_size {found}")
    return found


def width(c: Any) -> int:
    """Width of the feed-forward: a multiple of hidden_size, rounded up."""
    step: int = c.ffn_round_up_to_multiple_of
    return int((c.hidden_size * c.ffn_proj_factor + step - 1) // step) * step  # as the class does, fractions and all


CONFIG: Table = {
    "vocab_size": Key("vocab_size"),
    "hidden_size": hidden_size,
    "context": 8192,  # no key states it: Beck et al. (2025) trained xLSTM 7B at this length
    "embedding.tied": False,  # the class ties nothing, whatever tie_word_embeddings says
    "logits.softcap": lambda c: c.output_logit_soft_cap and float(c.output_logit_soft_cap),
    "logits.float32": True,
    "layers": Key("num_blocks"),
    "norm.kind": "rmsnorm",
    "norm.eps": Key("norm_eps"),
    "norm.bias": Key("use_bias"),
    "final_norm_bias": lambda c: False if c.use_bias else None,
    "mixer": {
        "kind": "mlstm",
        "heads": Key("num_heads"),
        "key_dim": share("qk_dim_factor"),
        "value_dim": share("v_dim_factor"),
        "bias": Key("use_bias"),
        "gate_softcap": lambda c: c.gate_soft_cap and float(c.gate_soft_cap),
        "eps": Key("eps"),
    },
    "ffn": {"kind": "gated", "activation": "silu", "width": width, "bias": Key("use_bias")},
}


def _step(o: Any) -> int:
    return 64 if o.first("ffn.width") % 64 == 0 else 1


INVERSE: Inverse = {
    "qk_dim_factor": lambda o: common.share(o.first("mixer.heads") * o.first("mixer.key_dim"), o.header["hidden_size"]),
    "v_dim_factor": lambda o: common.share(
        o.first("mixer.heads") * o.first("mixer.value_dim"), o.header["hidden_size"]
    ),
    "ffn_round_up_to_multiple_of": _step,
    # the middle of what is rounded to the width
    "ffn_proj_factor": lambda o: (o.first("ffn.width") - _step(o) / 2 + 1) / o.header["hidden_size"],
}

FAMILY = Family("xlstm", tier="hybrid", config=CONFIG, inverse=INVERSE)
