"""Feed-forwards and mixtures of transformers, the sections that declare them, and fields whose change must be seen."""

from __future__ import annotations

import torch

from tests.codegen.mixtures import EXPERTS, FFN, SHARED, TOP_K, WIDTH, Routed, Truth, moe

DEEPSEEK = {
    "n_routed_experts": EXPERTS,
    "num_experts_per_tok": TOP_K,
    "moe_intermediate_size": FFN,
    "n_group": 3,
    "topk_group": 2,
    "routed_scaling_factor": 1.7,
    "n_shared_experts": 2,
}
LOCAL = {"num_local_experts": EXPERTS, "num_experts_per_tok": TOP_K, "intermediate_size": FFN}
NUMBERED = {"num_experts": EXPERTS, "num_experts_per_tok": TOP_K, "moe_intermediate_size": FFN}
GROUPS = "groups: {count: 3, chosen: 2, score: top2_sum}"
EPS = "renormalize: true, renormalize_eps: 1.0e-20"
TWO_SHARED = f", shared: {{width: {2 * FFN}}}"
ONE_SHARED = f", shared: {{width: {SHARED}}}"

MIXTURES = {
    "sigmoid, corrected, grouped": Truth(
        "deepseek_v3",
        lambda hf, c: hf.DeepseekV3MoE(c),
        {**DEEPSEEK, "norm_topk_prob": True},
        moe(f"score: sigmoid, correction: buffer, {GROUPS}, {EPS}, scale: 1.7, float32: true", TWO_SHARED),
        (
            "ffn.router.correction=none",
            "ffn.router.groups.score=max",
            "ffn.router.groups.chosen=3",
            "ffn.router.groups=null",
            "ffn.router.renormalize_eps=0.5",
            "ffn.router.scale=1.8",
        ),
    ),
    "grouped by the best": Truth(
        "deepseek_v2",
        lambda hf, c: hf.DeepseekV2Moe(c),
        {**DEEPSEEK, "topk_method": "group_limited_greedy"},
        moe(
            "score: softmax, groups: {count: 3, chosen: 2, score: max, others: zero}, renormalize: false, scale: 1.7, "
            "float32: true",
            TWO_SHARED,
        ),
        ("ffn.router.groups.score=top2_sum", "ffn.router.groups.chosen=3", "ffn.router.renormalize=true"),
    ),
    "groups outside of which 0 wins": Truth(
        "axk2",
        lambda hf, c: hf.AXK2MoE(c),
        {**DEEPSEEK, "norm_topk_prob": True},
        moe(
            "score: sigmoid, correction: buffer, groups: {count: 3, chosen: 2, score: top2_sum, others: zero}, "
            f"{EPS}, scale: 1.7, float32: true",
            TWO_SHARED,
        ),
        ("ffn.router.correction=none", "ffn.router.groups.others=excluded"),
        correction=-0.6,
    ),
    "product in float32": Truth(
        "beam",
        lambda hf, c: hf.BeamMoE(c),
        {**NUMBERED, "n_group": 3, "topk_group": 2, "norm_topk_prob": True, "routed_scaling_factor": 1.7},
        moe(
            f"score: sigmoid, correction: buffer, {GROUPS}, {EPS}, scale: 1.7, float32: true",
            ", glu: {float32: true}",
        ),
        ("ffn.router.correction=none",),
    ),
    "corrected, floored": Truth(
        "ernie4_5_moe",
        lambda hf, c: hf.Ernie4_5_MoeSparseMoeBlock(c),
        {
            "moe_num_experts": EXPERTS,
            "moe_k": TOP_K,
            "moe_intermediate_size": FFN,
            "moe_num_shared_experts": 2,
            "moe_norm_min": 0.7,
            "use_bias": True,
        },
        moe(
            "score: softmax, correction: parameter, renormalize: true, renormalize_floor: 0.7, float32: true",
            f", shared: {{width: {2 * FFN}, bias: true}}",
        ),
        ("ffn.router.renormalize_floor=0", "ffn.router.correction=none", "ffn.shared.bias=false"),
    ),
    "corrected logits": Truth(
        "kolibri1",
        lambda hf, c: hf.Kolibri1SparseMoeBlock(c),
        {
            "num_local_experts": EXPERTS,
            "num_experts_per_tok": TOP_K,
            "moe_intermediate_size": FFN,
            "shared_expert_intermediate_size": SHARED,
            "norm_topk_prob": True,
        },
        moe(
            "score: sigmoid, order: top_k_then_score, correction: buffer, renormalize: true, float32: true", ONE_SHARED
        ),
        ("ffn.router.order=score_then_top_k", "ffn.router.correction=none", "ffn.router.renormalize=false"),
    ),
    "capped logits": Truth(
        "laguna",
        lambda hf, c: hf.LagunaSparseMoeBlock(c),
        {
            **NUMBERED,
            "shared_expert_intermediate_size": SHARED,
            "moe_router_logit_softcapping": 0.8,
            "moe_routed_scaling_factor": 1.7,
        },
        moe("score: sigmoid, correction: parameter, renormalize: true, softcap: 0.8, scale: 1.7", ONE_SHARED),
        ("ffn.router.softcap=0.9", "ffn.router.softcap=null", "ffn.router.correction=none"),
    ),
    "biases and a limited product": Truth(
        "gpt_oss",
        lambda hf, c: hf.GptOssMLP(c),
        {**LOCAL, "swiglu_limit": 0.4, "swiglu_alpha": 1.3},
        moe(
            "score: softmax, order: top_k_then_score, renormalize: false, bias: true",
            ", bias: experts, glu: {limit: 0.4, slope: 1.3, up_shift: 1}",
        ),
        (
            "ffn.glu.limit=0.5",
            "ffn.glu.limited=after_activation",
            "ffn.glu.slope=1",
            "ffn.glu.up_shift=0",
            "ffn.router.bias=false",
            "ffn.bias=none",
        ),
        output=lambda output: output[0],
        interleaved=True,
    ),
    "weighed inputs": Truth(
        "llama4_text",
        lambda hf, c: hf.Llama4TextMoe(c),
        LOCAL,
        moe(
            "score: sigmoid, order: top_k_then_score, renormalize: false, weighs: input", f", shared: {{width: {FFN}}}"
        ),
        ("ffn.router.weighs=output", "ffn.router.score=softmax"),
        output=lambda output: output[0],
    ),
    "one after another": Truth(
        "phimoe",
        lambda hf, c: hf.PhimoeSparseMoeBlock(c),
        {**LOCAL, "num_experts_per_tok": 2, "router_jitter_noise": 0.2},
        moe("score: softmax, order: sparsemixer, renormalize: false, jitter: 0.2", top_k=2),
        ("ffn.router.jitter=0.3", "ffn.router.jitter=null", "ffn.router.renormalize=true"),
    ),
    "mean with the shared": Truth(
        "cohere2_moe",
        lambda hf, c: hf.Cohere2MoeSparseMoeBlock(c),
        {
            "num_experts": EXPERTS,
            "num_experts_per_tok": TOP_K,
            "intermediate_size": FFN,
            "num_shared_experts": 2,
            "shared_expert_combination_strategy": "average",
            "expert_selection_fn": "sigmoid",
            "norm_topk_prob": True,
        },
        moe(
            "score: sigmoid, order: top_k_then_score, renormalize: true",
            f", shared: {{width: {2 * FFN}, combine: average}}",
        ),
        ("ffn.shared.combine=sum",),
    ),
    "gated shared": Truth(
        "qwen2_moe",
        lambda hf, c: hf.Qwen2MoeSparseMoeBlock(c),
        {**NUMBERED, "shared_expert_intermediate_size": SHARED, "norm_topk_prob": True},
        moe("score: softmax, renormalize: true", f", shared: {{width: {SHARED}, gate: sigmoid}}"),
        ("ffn.shared.gate=none", "ffn.router.score=sigmoid"),
    ),
    "divided by another norm": Truth(
        "dbrx",
        lambda hf, c: hf.DbrxFFN(c),
        {
            "d_model": WIDTH,
            "ffn_config": {
                "hidden_size": WIDTH,
                "ffn_hidden_size": FFN,
                "moe_num_experts": EXPERTS,
                "moe_top_k": TOP_K,
                "moe_normalize_expert_weights": 3.0,
            },
        },
        moe("score: softmax, renormalize: true, renormalize_power: 3"),
        ("ffn.router.renormalize_power=1", "ffn.router.renormalize_power=2"),
    ),
    "a bias on the sum": Truth(
        "jetmoe",
        lambda hf, c: hf.JetMoeMoE(c),
        {**LOCAL, "activation_function": "silu"},
        moe("score: softmax, order: top_k_then_score, renormalize: false", ", bias: sum"),
        ("ffn.bias=none", "ffn.router.score=sigmoid"),
    ),
    "a norm and learned factors": Truth(
        "gemma4_text",
        lambda hf, c: Routed(hf.Gemma4TextRouter(c), hf.Gemma4TextExperts(c)),
        {
            "num_experts": EXPERTS,
            "top_k_experts": TOP_K,
            "moe_intermediate_size": FFN,
            "hidden_activation": "silu",
            "rms_norm_eps": 3e-3,
        },
        moe("score: softmax, renormalize: true, norm: true, expert_scale: true"),
        ("ffn.router.norm=false", "ffn.router.expert_scale=false", "norm.eps=0.1"),
    ),
    "root of softplus, capped product": Truth(
        "inkling2_text",
        lambda hf, c: hf.Inkling2SparseMoeBlock(c),
        {
            "n_routed_experts": EXPERTS,
            "num_experts_per_tok": TOP_K,
            "moe_intermediate_size": FFN,
            "scoring_func": "sqrtsoftplus",
            "mlp_gate_softcap": 0.8,
            "mlp_up_softcap": 0.6,
            "route_scale": 1.7,
        },
        moe(
            f"score: sqrt_softplus, correction: buffer, {EPS}, scale: 1.7, float32: true",
            ", glu: {gate_softcap: 0.8, up_softcap: 0.6, float32: true}",
        ),
        ("ffn.router.score=sigmoid", "ffn.glu.gate_softcap=null", "ffn.glu.up_softcap=0.7"),
    ),
    "limits for the shared, too": Truth(
        "deepseek_v4",
        lambda hf, c: hf.DeepseekV4SparseMoeBlock(c, 0),
        {
            **DEEPSEEK,
            "swiglu_limit": 0.4,
            "scoring_func": "sigmoid",
            "mlp_layer_types": ["moe"],
            "num_hidden_layers": 1,
        },
        moe(
            f"score: sigmoid, correction: buffer, {EPS}, scale: 1.7",
            f", glu: {{limit: 0.4}}, shared: {{width: {FFN}, glu: {{limit: 0.4}}}}",
        ),
        ("ffn.shared.glu=null", "ffn.glu=null", "ffn.shared.glu.limit=0.5"),
    ),
}
DENSE = {
    "limited, shifted": Truth(
        "minimax_m3_vl_text",
        lambda hf, c: hf.MiniMaxM3VLDenseMLP(c),
        {"dense_intermediate_size": FFN, "swiglu_limit": 0.4, "swiglu_alpha": 1.3},
        f"{{kind: gated, width: {FFN}, activation: silu, glu: {{limit: 0.4, slope: 1.3, up_shift: 1}}}}",
        ("ffn.glu.limit=0.5", "ffn.glu.limited=after_activation", "ffn.glu.slope=1", "ffn.glu.up_shift=0"),
    ),
    "limited behind the activation": Truth(
        "step3p5",
        lambda hf, c: hf.Step3p7MLP(c, 0),
        {"intermediate_size": FFN, "swiglu_limits_shared": [0.3] * 45, "mlp_bias": True},
        f"{{kind: gated, width: {FFN}, activation: silu, bias: true, glu: {{limit: 0.3, limited: after_activation}}}}",
        ("ffn.glu.limited=before_activation", "ffn.glu=null", "ffn.glu.limit=0.2"),
    ),
    "an inner norm": Truth(
        "bitnet",
        lambda hf, c: hf.BitNetMLP(c),
        {"intermediate_size": FFN, "hidden_act": "relu2", "rms_norm_eps": 3e-3},
        f"{{kind: gated, width: {FFN}, activation: relu2, inner_norm: true}}",
        ("ffn.inner_norm=false", "norm.eps=0.1", "norm.kind=layernorm"),
    ),
    "fixed factors": Truth(
        "falcon_h1",
        lambda hf, c: hf.FalconH1MLP(c),
        {"intermediate_size": FFN, "mlp_multipliers": [0.7, 1.9]},
        f"{{kind: gated, width: {FFN}, activation: silu, factors: {{gate: 0.7, output: 1.9}}}}",
        ("ffn.factors.gate=0.8", "ffn.factors.output=1.8", "ffn.factors=null"),
    ),
    "a learned factor": Truth(
        "inkling_text",
        lambda hf, c: hf.InklingMLP(c),
        {"intermediate_size": FFN},
        f"{{kind: gated, width: {FFN}, activation: silu, factors: {{learned_output: true}}}}",
        ("ffn.factors=null",),
    ),
    "product of a dense one in float32": Truth(
        "beam",
        lambda hf, c: hf.BeamMLP(c),
        {"intermediate_size": FFN},
        f"{{kind: gated, width: {FFN}, activation: silu, glu: {{float32: true}}}}",
        ("ffn.activation=gelu",),
    ),
    "learned slopes": Truth(
        "apertus",
        lambda hf, c: hf.ApertusMLP(c),
        {"intermediate_size": FFN, "hidden_act": "xielu", "dtype": torch.float32},
        f"{{kind: mlp, width: {FFN}, activation: xielu}}",
        ("ffn.activation=relu2",),
    ),
}
