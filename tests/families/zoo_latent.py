"""Latent and sparse attention: ranks, query rank left out, index heads, per-kind sizes, compressed keys."""

from __future__ import annotations

from tests.families.zoo_case import DENSE, FULL, INDEXED, SLIDING, SPARSE, Case, family, rope

_BIAS = {"attention_bias": True}
_TIED = {"tie_word_embeddings": True}
_NO_QUERY_RANK = {"q_lora_rank": None}
# Three query heads of 18 + 8, values of 22: no width of the latent, the key or the value equals another.
_LATENT = {
    "vocab_size": 211,
    "hidden_size": 60,
    "intermediate_size": 92,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "num_key_value_heads": 3,
    "max_position_embeddings": 173,
    "kv_lora_rank": 26,
    "q_lora_rank": 34,
    "qk_nope_head_dim": 18,
    "qk_rope_head_dim": 8,
    "v_head_dim": 22,
}
_EXPERTS = {
    "moe_intermediate_size": 38,
    "n_routed_experts": 12,
    "num_experts_per_tok": 5,
    "n_shared_experts": 3,
    "n_group": 3,
    "topk_group": 2,
}
_YARN = {"rope_type": "yarn", "original_max_position_embeddings": 43, "beta_fast": 6, "beta_slow": 0.5}
# What scores are multiplied by, and cosines and sines too; and the released form, where these cancel out.
_MSCALES = rope(7100.0, **_YARN, factor=4.0, mscale=0.7, mscale_all_dim=1.6)
_EQUAL_MSCALES = rope(7100.0, **_YARN, factor=4.0, mscale=1.0, mscale_all_dim=1.0)
_HALVES = {"rope_interleave": False}
_INDEX = {"index_n_heads": 7, "index_head_dim": 16, "index_topk": 6}
_MIXTURE = {**_LATENT, **_EXPERTS}
_SPARSE_ATTENTION = {**_MIXTURE, **_INDEX, "num_hidden_layers": 4}
_COMPRESSED, _HEAVY = "compressed_sparse_attention", "heavily_compressed_attention"

CASES: list[Case] = [
    *family(
        "axk1",
        {**_MIXTURE, "mlp_layer_types": [DENSE, SPARSE, SPARSE]},
        bias={**_BIAS, "mlp_layer_types": [SPARSE, DENSE, SPARSE], "rope_interleave": False},
    ),
    *family(
        "axk2",
        {**_SPARSE_ATTENTION, "gated_norm_rank": 5, "mlp_layer_types": [DENSE, SPARSE, SPARSE, SPARSE]},
        bias={**_BIAS, "n_group": None, "topk_group": None, "mlp_layer_types": [SPARSE, SPARSE, DENSE, DENSE]},
    ),
    *family(
        "deepseek_v2",
        {**_MIXTURE, "topk_method": "group_limited_greedy", "first_k_dense_replace": 1},
        direct={**_NO_QUERY_RANK, **_BIAS, "topk_method": "greedy", "n_group": None, "topk_group": None},
        bias={**_BIAS, "mlp_bias": True, "n_shared_experts": 1, "first_k_dense_replace": 0},
        yarn={"rope_parameters": _MSCALES},
        unshared={"n_shared_experts": 0},
    ),
    *family(
        "deepseek_v3",
        {**_MIXTURE, "first_k_dense_replace": 1, "rope_interleave": True},
        direct={**_NO_QUERY_RANK, **_BIAS, "first_k_dense_replace": 2},
        null_switch={"norm_topk_prob": None},
        unshared={"n_shared_experts": 0},
        yarn={"rope_parameters": _MSCALES, **_BIAS},
        halves={"rope_interleave": False, "num_nextn_predict_layers": 0, **_BIAS, **_TIED, "first_k_dense_replace": 0},
    ),
    *family(
        "deepseek_v32",
        {**_SPARSE_ATTENTION, "first_k_dense_replace": 2},
        bias={**_BIAS, "mlp_bias": True, "mlp_layer_types": [DENSE, SPARSE, DENSE, SPARSE]},
    ),
    *family(
        "deepseek_v4",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "moe_intermediate_size": 38,
            "num_hidden_layers": 4,
            "num_attention_heads": 6,
            "num_key_value_heads": 1,
            "head_dim": 28,
            "qk_rope_head_dim": 8,
            "q_lora_rank": 34,
            "o_groups": 3,
            "o_lora_rank": 10,
            "n_routed_experts": 12,
            "num_experts_per_tok": 5,
            "n_shared_experts": 1,
            "sliding_window": 9,
            "index_n_heads": 7,
            "index_head_dim": 16,
            "index_topk": 2,
            "hc_mult": 3,
            "max_position_embeddings": 173,
            "layer_types": [_HEAVY, _COMPRESSED, _COMPRESSED, SLIDING],
            "compress_rates": {_COMPRESSED: 3, _HEAVY: 7},
            "mlp_layer_types": ["hash_moe", "hash_moe", "moe", "moe"],
        },
        legacy={
            "layer_types": None,
            "compress_rates": None,
            "compress_ratios": [0, 128, 4, 128],
            "mlp_layer_types": None,
            "num_hash_layers": 1,
            "hc_mult": 4,
        },
    ),
    *family(
        "dots3_note_text",
        {
            **_SPARSE_ATTENTION,
            "layer_types": [INDEXED, SLIDING, INDEXED, SLIDING],
            "mlp_layer_types": [DENSE, SPARSE, SPARSE, SPARSE],
            "sliding_window": 9,
            "pad_token_id": 0,
            "head_dim": 32,
            "moe_shared_expert_intermediate_size": 44,
            "swa_num_attention_heads": 5,
            "swa_num_key_value_heads": 5,
            "swa_q_lora_rank": 30,
            "swa_kv_lora_rank": 20,
            "swa_head_dim": 32,
            "swa_qk_nope_head_dim": 24,
            "swa_v_head_dim": 14,
        },
        bias=_BIAS,
        full={"use_dsa": False, "use_sliding_window": False, "layer_types": None, **_BIAS},
        pattern={"layer_types": None, "first_k_dense_replace": 2, "mlp_layer_types": None},
    ),
    *family(
        "glm4_moe_lite",
        {**_MIXTURE, "mlp_layer_types": [DENSE, SPARSE, SPARSE]},
        direct={**_NO_QUERY_RANK, **_BIAS, "mlp_layer_types": [SPARSE, DENSE, SPARSE]},
        halves={**_HALVES, "rope_parameters": _EQUAL_MSCALES},
    ),
    *family(
        "glm_moe_dsa",
        {**_SPARSE_ATTENTION, "indexer_types": ["full", "full", "shared", "full"], "first_k_dense_replace": 1},
        bias={**_BIAS, "indexer_types": ["full", "shared", "shared", "full"], "mlp_layer_types": [SPARSE, DENSE] * 2},
        every_other={"indexer_types": None, "index_topk_freq": 2, "index_skip_topk_offset": 1},
    ),
    *family(
        "hy_v4",
        {**_SPARSE_ATTENTION, "num_hidden_layers": 6, "pad_token_id": 0, "hc_mult": 3, "index_head_dim": 20},
        listed={
            "indexer_types": ["full", "shared", "full", "full", "shared", "shared"],
            "mlp_layer_types": [SPARSE, DENSE, SPARSE, SPARSE, DENSE, SPARSE],
            **_BIAS,
        },
    ),
    *family(
        "longcat_flash",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "num_layers": 2,
            "num_attention_heads": 3,
            "num_key_value_heads": 3,
            "max_position_embeddings": 173,
            "kv_lora_rank": 26,
            "q_lora_rank": 34,
            "qk_nope_head_dim": 18,
            "qk_rope_head_dim": 8,
            "v_head_dim": 22,
            "head_dim": 8,
            "ffn_hidden_size": 92,
            "expert_ffn_hidden_size": 38,
            "n_routed_experts": 10,
            "zero_expert_num": 3,
            "moe_topk": 4,
        },
        bias={**_BIAS, "zero_expert_num": 0},
    ),
    *family(
        "minicpm3",
        {**_LATENT, "dim_model_base": 20, "scale_emb": 7, "scale_depth": 1.3},
        bias={**_BIAS, "mlp_bias": True, "tie_word_embeddings": False},
        longrope={
            **_NO_QUERY_RANK,
            "rope_parameters": rope(
                7100.0,
                rope_type="longrope",
                short_factor=[1.0, 1.1, 1.3, 1.6],
                long_factor=[1.0, 2.1, 3.3, 4.6],
                original_max_position_embeddings=31,
            ),
        },
    ),
    *family(
        "minimax_m3_vl_text",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "intermediate_size": 38,
            "dense_intermediate_size": 92,
            "shared_intermediate_size": 44,
            "num_hidden_layers": 4,
            "num_attention_heads": 6,
            "num_key_value_heads": 2,
            "head_dim": 14,
            "max_position_embeddings": 173,
            "num_local_experts": 10,
            "num_experts_per_tok": 3,
            "layer_types": [FULL, "minimax_m3_sparse", "minimax_m3_sparse", FULL],
            "mlp_layer_types": [DENSE, SPARSE, SPARSE, SPARSE],
            "index_n_heads": 2,
            "index_head_dim": 18,
            "index_block_size": 4,
            "index_topk_blocks": 2,
            "index_local_blocks": 1,
            "rotary_dim": 8,
        },
        legacy={
            "layer_types": None,
            "mlp_layer_types": None,
            "moe_layer_freq": [0, 0, 1, 1],
            "sparse_attention_config": {
                "sparse_attention_freq": [0, 0, 1, 1],
                "sparse_num_index_heads": 1,
                "sparse_index_dim": 22,
                "sparse_block_size": 5,
                "sparse_topk_blocks": 3,
                "sparse_local_block": 1,
            },
            **_TIED,
        },
    ),
    *family(
        "sarvam_mla",
        {**_MIXTURE, **_NO_QUERY_RANK, "first_k_dense_replace": 1},
        query_rank={"q_lora_rank": 34, **_BIAS},
    ),
    *family(
        "youtu",
        _LATENT,
        direct={**_NO_QUERY_RANK, **_BIAS},
        padded={"pad_token_id": 7},
        untied={"tie_word_embeddings": False, "rope_parameters": rope(5300.0)},
        yarn={**_HALVES, "rope_parameters": _MSCALES},
    ),
]
