"""Mixtures of experts: dense layers listed in every way, shared experts, groups, biases, sinks, windows."""

from __future__ import annotations

from tests.families.zoo_case import (
    CHUNKED,
    DENSE,
    FULL,
    GROUPED,
    HEADED,
    SLIDING,
    SPARSE,
    Case,
    family,
    rope,
    without_width,
)

_BIAS = {"attention_bias": True}
_TIED = {"tie_word_embeddings": True}
_UNTIED = {"tie_word_embeddings": False}
_EXPERTS = {"num_experts": 12, "num_experts_per_tok": 5}
_ROUTED = {"n_routed_experts": 12, "num_experts_per_tok": 5, "n_group": 3, "topk_group": 2}
_SUMMED, _SUMLESS = {"norm_topk_prob": True}, {"norm_topk_prob": False}
_SCALED = {"routed_scaling_factor": 1.7}
_LOCAL = {"num_local_experts": 10, "num_experts_per_tok": 3}
_DEEP = {**HEADED, "num_hidden_layers": 4, "moe_intermediate_size": 38}
_MIXED = {"layer_types": [SLIDING, FULL, SLIDING, FULL], "sliding_window": 9}
_DENSE_FIRST = [DENSE, SPARSE, SPARSE, SPARSE]
_PER_KIND = {SLIDING: rope(5300.0), FULL: rope(71000.0)}
_PARTIAL_PER_KIND = {
    FULL: rope(71000.0, partial_rotary_factor=0.5),
    SLIDING: rope(5300.0, partial_rotary_factor=1.0),
}
_UNSCALED = {"short_mscale": 1.0, "long_mscale": 1.0, "original_max_position_embeddings": 24}
_MULTIPLIED = {
    "embedding_multiplier": 3.0,
    "logits_scaling": 0.5,
    "residual_multiplier": 0.6,
    "attention_multiplier": 0.2,
}

CASES: list[Case] = [
    *family(
        "afmoe",
        {**_DEEP, **_EXPERTS, **_MIXED, "num_dense_layers": 2, "num_shared_experts": 3},
        bias={**_BIAS, "mup_enabled": True, "num_dense_layers": 0, "route_scale": 1.7},
        unshared={"num_shared_experts": 0, "layer_types": None, "global_attn_every_n_layers": 3},
    ),
    *family(
        "aria_text",
        {**HEADED, "moe_num_experts": 10, "moe_topk": 3, "moe_num_shared_experts": 3, "pad_token_id": 0},
        bias={**_BIAS, "mlp_bias": True},
        unshared={"moe_num_shared_experts": 0},
    ),
    *family(
        "beam",
        {**_DEEP, **_EXPERTS, **_MIXED, "mlp_layer_types": _DENSE_FIRST, "n_group": 3, "topk_group": 2},
        bias={**_BIAS, "mlp_layer_types": [SPARSE, DENSE, SPARSE, DENSE], **_SUMLESS},
    ),
    *family(
        "cohere2_moe",
        {**HEADED, **_EXPERTS, **_MIXED, "num_hidden_layers": 4, "pad_token_id": 0},
        shared={"num_shared_experts": 3, "expert_selection_fn": "sigmoid", **_BIAS},
        dense_first={
            "mlp_layer_types": [DENSE, DENSE, SPARSE, SPARSE],
            "prefix_dense_intermediate_size": 70,
            "shared_expert_combination_strategy": "sum",
            "num_shared_experts": 1,
            **_UNTIED,
        },
    ),
    *family(
        "dbrx",
        {
            "vocab_size": 211,
            "d_model": 60,
            "n_heads": 6,
            "n_layers": 3,
            "max_seq_len": 173,
            "attn_config": {"kv_n_heads": 2, "clip_qkv": 1.5, "rope_theta": 5300.0},
            "ffn_config": {"hidden_size": 60, "ffn_hidden_size": 38, "moe_num_experts": 10, "moe_top_k": 3},
        },
        power={
            "ffn_config": {
                "hidden_size": 60,
                "ffn_hidden_size": 38,
                "moe_num_experts": 10,
                "moe_top_k": 3,
                "moe_normalize_expert_weights": 2.5,
            }
        },
    ),
    *family(
        "dots1",
        {**_DEEP, **_ROUTED, **_MIXED, "n_shared_experts": 3, "first_k_dense_replace": 2},
        bias={**_BIAS, "first_k_dense_replace": 0, "layer_types": None, "max_window_layers": 1, **_SUMMED, **_SCALED},
    ),
    *family(
        "ernie4_5_moe",
        {
            **_DEEP,
            "num_hidden_layers": 6,
            "moe_num_experts": 12,
            "moe_k": 5,
            "moe_num_shared_experts": 3,
            "moe_layer_start_index": 1,
            "moe_layer_end_index": 4,
            "moe_layer_interval": 2,
        },
        bias={"use_bias": True, **_UNTIED, "moe_layer_end_index": -1, "moe_layer_interval": 1},
        unshared={"moe_num_shared_experts": 0, "moe_norm_min": 0.6},
    ),
    *family(
        "exaone_moe",
        {**_DEEP, **_EXPERTS, **_MIXED, "num_shared_experts": 3, "n_group": 3, "topk_group": 2},
        listed={"mlp_layer_types": [SPARSE, DENSE, SPARSE, DENSE], **_SUMLESS},
        dense_first={"first_k_dense_replace": 3, "mlp_layer_types": None, "layer_types": None, **_TIED},
    ),
    *family("flex_olmo", {**GROUPED, **_EXPERTS, "pad_token_id": 0}, bias={**_BIAS, **_TIED, **_SUMMED}),
    *family(
        "flint",
        {**_DEEP, **_EXPERTS, **_MIXED, "shared_expert_intermediate_size": 44, "mlp_only_layers": [0, 2]},
        bias={**_BIAS, "mlp_only_layers": [], "decoder_sparse_step": 2, **_SUMLESS},
    ),
    *family(
        "glm4_moe",
        {**_DEEP, **_ROUTED, "n_shared_experts": 3, "first_k_dense_replace": 2, "head_dim": 12},
        qk_norm={"use_qk_norm": True, **_BIAS, "num_nextn_predict_layers": 0, **_SUMLESS, **_SCALED},
    ),
    *family(
        "gpt_oss",
        {**HEADED, **_LOCAL, "num_hidden_layers": 4, "sliding_window": 9, "pad_token_id": 0},
        unbiased={"attention_bias": False, "layer_types": [FULL, FULL, SLIDING, FULL]},
        tight={"swiglu_limit": 0.6, "swiglu_alpha": 1.3},
    ),
    *family("granitemoe", {**GROUPED, **_LOCAL, **_MULTIPLIED}, bias={**_BIAS, **_TIED}),
    *family(
        "granitemoe_swa",
        {
            **GROUPED,
            **_LOCAL,
            **_MULTIPLIED,
            **_MIXED,
            "num_hidden_layers": 4,
            "layer_rope_theta": [5300.0, 0.0, 5300.0, 71000.0],
        },
        shared={"shared_intermediate_size": 44, **_BIAS},
    ),
    *family(
        "granitemoeshared",
        {**GROUPED, **_LOCAL, **_MULTIPLIED, "shared_intermediate_size": 44},
        unshared={"shared_intermediate_size": 0, **_BIAS},
    ),
    *family(
        "hunyuan_v1_moe",
        {**HEADED, "num_experts": 10, "moe_topk": 3, "pad_token_id": 0},
        bias={**_BIAS, "moe_topk": 2},
        one={"num_experts": 1, "moe_topk": 1},
        alpha={"rope_parameters": rope(5300.0, rope_type="dynamic", alpha=7.0, factor=1.0)},
    ),
    *family(
        "hy_v3",
        {**_DEEP, **_EXPERTS, "num_shared_experts": 3, "mlp_layer_types": _DENSE_FIRST},
        bias={**_BIAS, "mlp_bias": True, "mlp_layer_types": [SPARSE, DENSE, DENSE, SPARSE]},
        unshared={"num_shared_experts": 0},
    ),
    *family(
        "jetmoe",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "num_hidden_layers": 3,
            "num_key_value_heads": 2,
            "kv_channels": 14,
            "intermediate_size": 92,
            "max_position_embeddings": 173,
            "num_local_experts": 7,
            "num_experts_per_tok": 3,
        },
        untied=_UNTIED,
    ),
    *family(
        "kolibri1",
        without_width({**_DEEP, **_LOCAL, **_MIXED, "shared_expert_intermediate_size": 44}),
        pattern={"layer_types": None, **_TIED, **_SUMMED},
    ),
    *family(
        "laguna",
        {
            **_DEEP,
            **_EXPERTS,
            "head_dim": 16,
            "layer_types": [FULL, SLIDING, FULL, SLIDING],
            "sliding_window": 9,
            "num_attention_heads_per_layer": [6, 10, 6, 10],
            "shared_expert_intermediate_size": 44,
            "mlp_layer_types": _DENSE_FIRST,
            "rope_parameters": _PARTIAL_PER_KIND,
            "moe_router_logit_softcapping": 5.0,
        },
        ungated={"gating": False, **_BIAS, "num_attention_heads_per_layer": None, "moe_routed_scaling_factor": 1.7},
        elementwise={"gating": "per-element"},
    ),
    *family(
        "llama4_text",
        {
            **HEADED,
            **_LOCAL,
            "num_hidden_layers": 5,
            "intermediate_size_mlp": 70,
            "interleave_moe_layer_step": 2,
            "attention_chunk_size": 9,
            "pad_token_id": 0,
        },
        listed={
            "moe_layers": [0, 3],
            "layer_types": [FULL, CHUNKED, CHUNKED, FULL, CHUNKED],
            "no_rope_layers": [0, 1, 1, 0, 1],
            "use_qk_norm": False,
            "floor_scale": 8,
            "attn_scale": 0.7,
            **_BIAS,
        },
    ),
    *family(
        "mellum",
        {
            **_DEEP,
            **_LOCAL,
            **_MIXED,
            "mlp_layer_types": [SPARSE, DENSE, SPARSE, SPARSE],
            "rope_parameters": _PER_KIND,
        },
        bias={**_BIAS, "mlp_layer_types": None, **_SUMLESS},
    ),
    *family(
        "mimo_v2_flash",
        {
            **_DEEP,
            **_ROUTED,
            **_MIXED,
            "head_dim": 24,
            "v_head_dim": 14,
            "num_attention_heads": 12,
            "num_key_value_heads": 3,
            "mlp_layer_types": _DENSE_FIRST,
            "rope_parameters": {
                FULL: rope(71000.0, partial_rotary_factor=0.334),
                SLIDING: rope(5300.0, partial_rotary_factor=0.334),
            },
        },
        bias={**_BIAS, "mlp_layer_types": [SPARSE] * 4, **_SUMLESS, **_SCALED},
        own_share={"rope_parameters": {FULL: rope(71000.0, rope_type="linear", factor=3.0), SLIDING: rope(5300.0)}},
    ),
    *family("minimax_m2", {**HEADED, **_LOCAL, "rope_parameters": rope(5300.0, partial_rotary_factor=0.6)}, tied=_TIED),
    *family(
        "mixtral",
        {**HEADED, **_LOCAL},
        window={"sliding_window": 9, **_TIED},
    ),
    *family("olmoe", {**GROUPED, **_EXPERTS}, bias={**_BIAS, "clip_qkv": 1.5, **_TIED, **_SUMMED}),
    *family(
        "phimoe",
        {**GROUPED, "num_local_experts": 10, "num_experts_per_tok": 2},
        bias={**_BIAS, "lm_head_bias": True},
        window={"sliding_window": 9, "router_jitter_noise": 0.2},
        longrope={
            "rope_parameters": rope(
                5300.0,
                rope_type="longrope",
                short_factor=[1.0, 1.1, 1.25, 1.3, 1.45],
                long_factor=[1.2, 1.7, 2.6, 3.3, 4.8],
                short_mscale=1.2,
                long_mscale=1.2,
                original_max_position_embeddings=24,
            )
        },
        linear={"rope_parameters": rope(5300.0, rope_type="linear", factor=3.0, **_UNSCALED)},
        dynamic={"rope_parameters": rope(5300.0, rope_type="dynamic", factor=3.0, **_UNSCALED)},
    ),
    *family(
        "qwen2_moe",
        {
            **GROUPED,
            **_EXPERTS,
            "num_hidden_layers": 4,
            "moe_intermediate_size": 38,
            "shared_expert_intermediate_size": 44,
            "mlp_only_layers": [1],
        },
        unbiased={"qkv_bias": False, "mlp_only_layers": [], "decoder_sparse_step": 2, **_SUMMED},
        window={"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2, **_TIED},
    ),
    *family(
        "qwen3_moe",
        {**_DEEP, "num_experts": 12, "num_experts_per_tok": 5, "mlp_only_layers": [2]},
        bias={**_BIAS, "decoder_sparse_step": 2, "mlp_only_layers": [3], **_SUMMED},
        window={"use_sliding_window": True, "sliding_window": 9, **_TIED},
        unused_window={"use_sliding_window": False, "sliding_window": 9},
    ),
    *family(
        "sarvam_moe",
        {**_DEEP, **_ROUTED, "n_shared_experts": 3, "first_k_dense_replace": 2},
        bias={**_BIAS, "use_qk_norm": False, **_SUMLESS},
    ),
    *family(
        "solar_open",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "num_hidden_layers": 3,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "head_dim": 14,
            "max_position_embeddings": 173,
            "moe_intermediate_size": 38,
            "n_shared_experts": 3,
            **_ROUTED,
        },
        bias={**_BIAS, **_TIED, **_SUMLESS, **_SCALED},
    ),
]
