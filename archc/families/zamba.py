"""zamba: mamba with heads, and one shared block beside it at several depths (transformers 5.24, models/zamba)."""

from typing import Any

from archc.families import jamba, llama
from archc.families.base import Family, Key, Source, Table
from archc.families.common import activation, gated, without
from archc.importing.translate import NULL

MIXER: Table = {**jamba.MIXER, "heads": Key("n_mamba_heads"), "activation": activation("hidden_mamba_act")}


def attention(c: Any) -> Table:
    """The section `attention` of the shared block."""
    if c.attention_hidden_size != 2 * c.hidden_size:
        raise ValueError("attention_hidden_size is not twice hidden_size")
    return {
        **jamba.ATTENTION,
        "head_dim": Key("attention_head_dim"),
        "scale": lambda c: (c.attention_head_dim / 2) ** -0.5,
    }


def shared(c: Any, block: str) -> str | None:
    """The name of a shared part; with tie_word_embeddings off, transformers ties no blocks either."""
    return block if c.tie_word_embeddings else None


def hybrid(block: str, attention: Source, ffn: Source, mixer: Source) -> list[dict[str, Any]]:
    """A layer in which the mixer also sees what a shared attention and feed-forward say of stream and embedding."""
    return [
        {
            "attention": attention,
            "shared": lambda c: shared(c, f"{block}_attention"),
            "reads": "stream_and_embedding",
            "residual": {"target": "replace_input"},
        },
        {"ffn": ffn, "shared": lambda c: shared(c, f"{block}_ffn"), "residual": {"target": "replace_input"}},
        {"ffn": {"kind": "linear"}, "norm": NULL, "residual": {"target": "add_to_input"}},
        {"mixer": mixer},
    ]


def block(c: Any) -> list[dict[str, Any]]:
    """The branches of the layer in question."""
    if c.layer_types[c.layer] != "hybrid":
        return [{"mixer": MIXER}]
    return hybrid("shared", attention, gated(), MIXER)


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "position": {"kind": "none"},
    "block": block,
}

FAMILY = Family("zamba", tier="hybrid", config=CONFIG)
