"""nemotron_h: one part per layer: mamba2, attention, mlp or experts (transformers 5.24, models/nemotron_h)."""

from typing import Any

from archc.families import deepseek_v3, jamba, llama, mamba2
from archc.families.base import Family, Key, Source, Table
from archc.families.common import activation, moe, without
from archc.importing.translate import NULL

MIXER: Table = {
    **mamba2.MIXER,
    "heads": Key("mamba_num_heads"),
    "head_dim": Key("mamba_head_dim"),
    "groups": Key("n_groups"),
    "state": Key("ssm_state_size"),
    "kernel": Key("conv_kernel"),
    "activation": activation("mamba_hidden_act"),
    "bias": Key("use_bias"),
    "output_bias": Key("use_bias"),
    "conv_bias": Key("use_conv_bias"),
    "dt_min": lambda c: float(c.time_step_min),
    "dt_max": None,
}


def latent(c: Any) -> dict[str, Source] | None:
    """The section `ffn.latent`, where experts work in a narrower space."""
    return None if c.moe_latent_size is None else {"width": Key("moe_latent_size"), "bias": Key("mlp_bias")}


MLP: Table = {
    "kind": "mlp",
    "activation": activation("mlp_hidden_act"),
    "width": Key("intermediate_size"),
    "bias": Key("mlp_bias"),
}
EXPERTS = moe(
    deepseek_v3.ROUTER,
    experts=Key("n_routed_experts"),
    activation=activation("mlp_hidden_act"),
    gated=False,
    shared={"width": Key("moe_shared_expert_intermediate_size"), "bias": Key("mlp_bias")},
    latent=latent,
)
PARTS = {"linear_attention": "mixer", "full_attention": "attention", "mlp": "ffn", "moe": "ffn"}
SECTIONS: dict[str, Table] = {
    "linear_attention": MIXER,
    "full_attention": jamba.ATTENTION,
    "mlp": MLP,
    "moe": EXPERTS,
}


def part(name: str) -> Any:
    """The section `name`, in the layers whose one part it is."""

    def read(c: Any) -> Any:
        kind = c.layer_types[c.layer]
        return SECTIONS[kind] if PARTS[kind] == name else NULL

    return read


CONFIG: Table = {
    **without(llama.CONFIG, "attention", "ffn"),
    "embedding.tied": False,  # the class ties nothing, whatever tie_word_embeddings says
    "norm.eps": Key("layer_norm_epsilon"),
    "position": {"kind": "none"},
    **{name: part(name) for name in ("attention", "mixer", "ffn")},
}

FAMILY = Family("nemotron_h", tier="hybrid", config=CONFIG)
