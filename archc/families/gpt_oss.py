"""gpt_oss: sinks, biases everywhere, a limited and shifted product (transformers 5.24, models/gpt_oss)."""

from archc.families import llama
from archc.families.base import Family, Key, Table
from archc.families.common import moe, window, without

EXPERTS = moe(
    {"score": "softmax", "order": "top_k_then_score", "renormalize": False, "bias": True},
    experts=Key("num_local_experts"),
    width=Key("intermediate_size"),
    bias="experts",
    glu={"limit": Key("swiglu_limit"), "slope": Key("swiglu_alpha"), "up_shift": 1.0},
)
CONFIG: Table = {
    **without(llama.CONFIG, "ffn"),
    "attention.sinks": "column",
    "attention.window": window,
    "ffn": {**EXPERTS, "activation": "silu"},
}

FAMILY = Family("gpt_oss", config=CONFIG)
