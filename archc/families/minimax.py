"""minimax: lightning and full attention, experts, weighed residuals (transformers 5.24, models/minimax)."""

from typing import Any

from archc.families import jamba, llama
from archc.families.base import Family, Key, Source, Table
from archc.families.common import activation, head_dim, moe, without


def rows(c: Any) -> str | None:
    """What the cache does with rows outside a window: layers of the type full_attention keep them."""
    return None if c.sliding_window is None else "kept"


ATTENTION: Table = {**jamba.ATTENTION, "window": Key("sliding_window"), "window_rows": rows}
MIXER: Table = {
    "kind": "lightning",
    "heads": Key("num_attention_heads"),
    "head_dim": head_dim,
    "activation": activation("hidden_act"),
    "chunk": Key("block_size"),
    "output_norm": {"eps": 1e-6},
}

EXPERTS = moe(
    {"score": "softmax", "renormalize": True}, experts=Key("num_local_experts"), width=Key("intermediate_size")
)


def residual(name: str) -> dict[str, Source]:
    """How a branch joins the normed input that goes on beside it; `name` is what its factors are stated under."""
    return {
        "carries": "normed",
        "stream": lambda c: float(getattr(c, f"{name}_alpha_factor")),
        "branch": lambda c: float(getattr(c, f"{name}_beta_factor")),
    }


def block(c: Any) -> list[dict[str, Any]]:
    """The branches of the layer in question."""
    attends = jamba.attends(c)
    first: dict[str, Any] = {"attention": ATTENTION} if attends else {"mixer": MIXER}
    return [
        {**first, "residual": residual("full_attn" if attends else "linear_attn")},
        {"ffn": EXPERTS, "residual": residual("mlp")},
    ]


CONFIG: Table = {**without(llama.CONFIG, "attention", "ffn"), "block": block}

FAMILY = Family("minimax", tier="hybrid", config=CONFIG)
