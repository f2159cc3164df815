"""Linear attention, delta rules, short convolutions and other recurrences, alone or with attention."""

from __future__ import annotations

from tests.families.zoo_case import (
    CONV,
    DENSE,
    FULL,
    GROUPED,
    HEADED,
    LINEAR,
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
_FOUR = {"num_hidden_layers": 4}
_DELTA = {
    "linear_conv_kernel_dim": 5,
    "linear_key_head_dim": 10,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 3,
    "linear_num_value_heads": 6,
}
_EXPERTS = {
    "num_experts": 10,
    "num_experts_per_tok": 3,
    "moe_intermediate_size": 38,
    "shared_expert_intermediate_size": 44,
}
_LATENT = {
    "kv_lora_rank": 26,
    "q_lora_rank": None,
    "qk_nope_head_dim": 18,
    "qk_rope_head_dim": 8,
    "v_head_dim": 22,
    "num_key_value_heads": 6,
}
_KIMI = {
    **GROUPED,
    **_FOUR,
    **_LATENT,
    "moe_intermediate_size": 38,
    "num_experts": 12,
    "num_experts_per_token": 5,
    "num_shared_experts": 3,
    "num_expert_group": 3,
    "topk_group": 2,
    "linear_head_dim": 14,
    "linear_num_heads": 5,
    "linear_conv_kernel_dim": 5,
    "layer_types": [LINEAR, FULL, LINEAR, LINEAR],
    "mlp_layer_types": [DENSE, SPARSE, SPARSE, SPARSE],
}

CASES: list[Case] = [
    *family(
        "bailing_hybrid",
        {
            **{key: value for key, value in _KIMI.items() if not key.startswith("linear_")},
            "head_dim": 14,
            "short_conv_kernel_size": 5,
            "pad_token_id": 0,
            "rope_parameters": rope(5300.0),
        },
        query_rank={"q_lora_rank": 34, "attention_bias": True, "topk_group": 2},
        pattern={
            "layer_types": None,
            "mlp_layer_types": None,
            "layer_group_size": 3,
            "first_k_dense_replace": 2,
        },
    ),
    *family(
        "kimi_linear",
        {**_KIMI, "pad_token_id": 0},
        query_rank={"q_lora_rank": 34, "mlp_layer_types": [SPARSE, DENSE, SPARSE, DENSE]},
        unshared={"num_shared_experts": 0},
        legacy={
            "layer_types": None,
            "mlp_layer_types": None,
            "first_k_dense_replace": 2,
            "moe_layer_freq": 1,
            "linear_attn_config": {
                "kda_layers": [1, 2, 4],
                "full_attn_layers": [3],
                "head_dim": 18,
                "num_heads": 5,
                "short_conv_kernel_size": 3,
            },
        },
    ),
    *family(
        "lara_mini",
        without_width(
            {
                **HEADED,
                **_FOUR,
                **_DELTA,
                **_EXPERTS,
                "sliding_window": 9,
                "layer_types": [LINEAR, SLIDING, LINEAR, FULL],
            }
        ),
        bias={**_BIAS, **_UNTIED, "layer_types": [SLIDING, LINEAR, FULL, FULL]},
    ),
    *family(
        "lfm2",
        {
            **GROUPED,
            **_FOUR,
            "layer_types": [CONV, FULL, CONV, FULL],
            "conv_L_cache": 5,
            "block_multiple_of": 10,
            "pad_token_id": 0,
        },
        bias={"conv_bias": True, "block_ffn_dim_multiplier": 1.3, **_UNTIED},
        unadjusted={"block_auto_adjust_ff_dim": False},
        indices={"layer_types": None, "full_attn_idxs": [2]},
        legacy={"block_ff_dim": 130, "tie_embedding": False},
    ),
    *family(
        "lfm2_moe",
        {
            **GROUPED,
            **_FOUR,
            "num_experts": 10,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 38,
            "num_dense_layers": 1,
            "layer_types": [CONV, FULL, CONV, FULL],
            "conv_L_cache": 5,
            "pad_token_id": 0,
        },
        bias={"conv_bias": True, "use_expert_bias": False, "num_dense_layers": 3, **_UNTIED},
    ),
    *family(
        "lfm3",
        {
            **HEADED,
            **_FOUR,
            "head_dim": 12,
            "layer_types": [CONV, FULL, CONV, SLIDING],
            "conv_L_cache": 5,
            "sliding_window": 9,
            "pad_token_id": 0,
        },
        bias={**_BIAS, "conv_bias": True, **_UNTIED},
        plain={"use_sandwich_norm": False, "use_attention_gate": False},
    ),
    *family(
        "minimax",
        {
            **HEADED,
            **_FOUR,
            "num_local_experts": 10,
            "num_experts_per_tok": 3,
            "block_size": 16,
            "layer_types": [LINEAR, FULL, LINEAR, FULL],
        },
        pattern={"layer_types": None, **_TIED},
    ),
    *family(
        "olmo_hybrid",
        {
            **GROUPED,
            **_FOUR,
            **_DELTA,
            "linear_num_value_heads": 3,
            "layer_types": [LINEAR, LINEAR, FULL, FULL],
            "pad_token_id": 0,
        },
        bias={**_BIAS, "linear_allow_neg_eigval": False, **_TIED},
        grouped_values={"linear_num_value_heads": 6},
    ),
    *family(
        "qwen3_5_moe_text",
        without_width(
            {
                **HEADED,
                **_FOUR,
                **_DELTA,
                **_EXPERTS,
                "head_dim": 16,
                "layer_types": [LINEAR, LINEAR, FULL, LINEAR],
            }
        ),
        bias={**_BIAS, **_TIED, "layer_types": None},
    ),
    *family(
        "qwen3_5_text",
        {**HEADED, **_FOUR, **_DELTA, "head_dim": 16, "layer_types": [LINEAR, LINEAR, FULL, LINEAR]},
        bias={**_BIAS, **_TIED, "layer_types": None},
    ),
    *family(
        "qwen3_next",
        {
            **HEADED,
            **_FOUR,
            **_DELTA,
            **_EXPERTS,
            "head_dim": 16,
            "layer_types": [LINEAR, LINEAR, FULL, LINEAR],
            "mlp_only_layers": [1],
        },
        bias={**_BIAS, **_TIED, "layer_types": None, "mlp_only_layers": [], "decoder_sparse_step": 2},
    ),
    *family(
        "recurrent_gemma",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "intermediate_size": 92,
            "num_hidden_layers": 5,
            "num_attention_heads": 5,
            "num_key_value_heads": 1,
            "lru_width": 80,
            "attention_window_size": 9,
            "conv1d_width": 5,
            "block_types": ["recurrent", "recurrent", "attention"],
        },
        bias={**_BIAS, **_UNTIED, "block_types": ["attention", "recurrent"], "lru_width": None},
    ),
    *family(
        "rwkv",
        {
            "vocab_size": 211,
            "context_length": 173,
            "hidden_size": 60,
            "attention_hidden_size": 60,
            "intermediate_size": 92,
            "num_hidden_layers": 4,
            "rescale_every": 2,
        },
        derived={"attention_hidden_size": None, "intermediate_size": None, **_TIED},
    ),
    *family(
        "xlstm",
        {
            "vocab_size": 211,
            "hidden_size": 128,
            "embedding_dim": 128,
            "num_hidden_layers": 3,
            "num_blocks": 3,
            "num_heads": 4,
            "ffn_proj_factor": 1.7,
            "ffn_round_up_to_multiple_of": 10,
            "chunk_size": 16,
        },
        bias={"use_bias": True, "add_out_norm": False, **_TIED},
        narrow={"v_dim_factor": 0.5, "ffn_round_up_to_multiple_of": 64},
    ),
]
