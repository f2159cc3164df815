"""Dense decoders with a twist in one place: norms, windows, caps, multipliers, tables, fused layouts."""

from __future__ import annotations

from tests.families.zoo_case import FULL, GROUPED, HEADED, SLIDING, Case, family, rope

_BIAS = {"attention_bias": True}
_TIED = {"tie_word_embeddings": True}
_UNTIED = {"tie_word_embeddings": False}
_GEMMA = {**HEADED, "query_pre_attn_scalar": 13, "sliding_window": 9}
_MIXED = {"num_hidden_layers": 4, "layer_types": [SLIDING, FULL, SLIDING, FULL]}
_MULTIPLIED = {
    "embedding_multiplier": 3.0,
    "logits_scaling": 0.5,
    "residual_multiplier": 0.6,
    "attention_multiplier": 0.2,
}
_PER_KIND = {SLIDING: rope(5300.0), FULL: rope(71000.0)}
_ALPHA = rope(5300.0, rope_type="dynamic", alpha=7.0, factor=1.0)
_GEMMA4 = {
    **HEADED,
    "num_hidden_layers": 5,
    "layer_types": [SLIDING, FULL, SLIDING, SLIDING, FULL],
    "sliding_window": 9,
    "global_head_dim": 24,
    "pad_token_id": 0,
    "final_logit_softcapping": 17.0,
}

CASES: list[Case] = [
    *family("apertus", GROUPED, bias=_BIAS),
    *family(
        "apertus1p5_text",
        GROUPED,
        output_vocabulary={"output_vocab_size": 190},
        bias={**_BIAS, **_TIED},
        tied_vocabulary={"output_vocab_size": 190, **_TIED},
    ),
    *family("bitnet", GROUPED, bias={**_BIAS, **_TIED}),
    *family(
        "bloom",
        {"vocab_size": 211, "hidden_size": 60, "n_layer": 3, "n_head": 5},
        post={"apply_residual_connection_post_layernorm": True, **_UNTIED},
    ),
    *family(
        "codegen",
        {"vocab_size": 211, "n_positions": 173, "n_embd": 72, "n_layer": 3, "n_head": 12, "rotary_dim": 4},
        inner={"n_inner": 92},
    ),
    *family("cohere", {**GROUPED, "pad_token_id": 0}, qk_norm={"use_qk_norm": True}, bias={**_BIAS, **_UNTIED}),
    *family(
        "cohere2",
        {**HEADED, "num_hidden_layers": 5, "sliding_window": 9, "pad_token_id": 0},
        bias=_BIAS,
        listed={"layer_types": [FULL, SLIDING, FULL, FULL, SLIDING]},
    ),
    *family(
        "cohere_compass_text",
        {**HEADED, **_MIXED, "sliding_window": 9, "pad_token_id": 0, "rope_parameters": _PER_KIND},
        bias=_BIAS,
    ),
    *family(
        "ctrl",
        {"vocab_size": 211, "n_positions": 173, "n_embd": 60, "dff": 92, "n_layer": 3, "n_head": 5},
        untied=_UNTIED,
    ),
    *family("diffllama", HEADED, bias={**_BIAS, **_TIED}),
    *family(
        "doge",
        {**GROUPED, "keep_window_size": 21},
        bias={"attention_bias": True, "mlp_bias": True},
        experts={"is_moe": True, "num_experts": 49, "num_experts_per_tok": 5},
    ),
    *family(
        "exaone4",
        {**GROUPED, "num_hidden_layers": 5, "sliding_window": 9, "sliding_window_pattern": 3},
        full={"sliding_window": None, "sliding_window_pattern": None, "layer_types": [FULL] * 5},
        listed={"layer_types": [FULL, SLIDING, SLIDING, SLIDING, FULL], **_TIED},
        headed={"head_dim": 14},
    ),
    *family(
        "falcon",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "num_hidden_layers": 3,
            "num_attention_heads": 6,
            "max_position_embeddings": 173,
            "ffn_hidden_size": 92,
        },
        grouped={"new_decoder_architecture": True, "num_kv_heads": 2},
        grouped_one_norm={"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
        grouped_bias={"new_decoder_architecture": True, "num_kv_heads": 3, "bias": True, "ffn_hidden_size": None},
        heads={"multi_query": False, "alibi": True, "parallel_attn": False, "bias": True},
        heads_rope={"multi_query": False, "parallel_attn": True},
        sequential={"parallel_attn": False, "bias": True, **_UNTIED},
        alibi={"alibi": True},
    ),
    *family("gemma", HEADED, bias={**_BIAS, **_UNTIED}),
    *family(
        "gemma2",
        {**_GEMMA, "num_hidden_layers": 5},
        bias=_BIAS,
        listed={"layer_types": [FULL, FULL, SLIDING, FULL, SLIDING]},
    ),
    *family(
        "gemma3_text",
        {**_GEMMA, "num_hidden_layers": 7},
        listed={**_MIXED, "rope_parameters": _PER_KIND, **_BIAS},
        both_ways={"use_bidirectional_attention": True},
    ),
    *family(
        "gemma4_unified_text",
        _GEMMA4,
        shared_value={"attention_k_eq_v": True, "num_global_key_value_heads": 1},
        global_heads={"num_global_key_value_heads": 1},
        bias={**_BIAS, **_UNTIED},
        scaled={
            "rope_parameters": {
                FULL: rope(5300.0, rope_type="proportional", partial_rotary_factor=0.6, factor=3.0),
                SLIDING: rope(
                    900.0,
                    rope_type="llama3",
                    factor=5.0,
                    low_freq_factor=0.7,
                    high_freq_factor=3.1,
                    original_max_position_embeddings=24,
                ),
            }
        },
    ),
    *family("glm", {**HEADED, "head_dim": 12, "pad_token_id": 0}, unbiased={"attention_bias": False, **_TIED}),
    *family("glm4", {**HEADED, "head_dim": 12, "pad_token_id": 0}, unbiased={"attention_bias": False}),
    *family("granite", {**GROUPED, **_MULTIPLIED}, bias={"attention_bias": True, "mlp_bias": True, **_TIED}),
    *family(
        "granite_swa",
        {
            **GROUPED,
            **_MULTIPLIED,
            "num_hidden_layers": 5,
            "sliding_window": 9,
            "layer_types": [FULL, SLIDING, SLIDING, FULL, SLIDING],
            "layer_rope_theta": [0.0, 5300.0, 5300.0, 71000.0, 5300.0],
        },
        bias={"attention_bias": True, "mlp_bias": True, **_UNTIED},
        pattern={"layer_types": None, "layer_rope_theta": None, "num_hidden_layers": 6},
    ),
    *family("hunyuan_v1_dense", HEADED, bias=_BIAS, tied=_TIED, alpha={"rope_parameters": _ALPHA}),
    *family(
        "hyperclovax",
        {**HEADED, **_MULTIPLIED},
        pre={"use_post_norm": False},
        bias={"attention_bias": True, "mlp_bias": True, **_TIED},
    ),
    *family(
        "ministral3",
        {
            **HEADED,
            "pad_token_id": 0,
            "rope_parameters": rope(
                5300.0,
                rope_type="yarn",
                factor=16.0,
                original_max_position_embeddings=8,
                beta_fast=32.0,
                beta_slow=1.0,
                mscale=1.0,
                mscale_all_dim=1.0,
                llama_4_scaling_beta=0.1,
            ),
        },
        window={"sliding_window": 9},
    ),
    *family(
        "modernbert-decoder",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "intermediate_size": 92,
            "num_hidden_layers": 5,
            "num_attention_heads": 6,
            "max_position_embeddings": 173,
            "local_attention": 18,
            "pad_token_id": 0,
        },
        bias={"attention_bias": True, "mlp_bias": True, "norm_bias": True, "classifier_bias": True},
        unbiased={"decoder_bias": False, **_UNTIED},
        listed={"layer_types": [SLIDING, SLIDING, FULL, SLIDING, SLIDING]},
    ),
    *family(
        "mpt",
        {
            "vocab_size": 211,
            "d_model": 60,
            "n_heads": 5,
            "n_layers": 3,
            "expansion_ratio": 3,
            "max_seq_len": 173,
            "attn_config": {"alibi": True, "alibi_bias_max": 7, "clip_qkv": 1.5},
        },
        untied=_UNTIED,
    ),
    *family("nanochat", GROUPED, bias={**_BIAS, **_TIED}),
    *family("olmo2", {**GROUPED, "pad_token_id": 0}, bias={**_BIAS, **_TIED}),
    *family(
        "olmo3",
        {**GROUPED, "num_hidden_layers": 5, "sliding_window": 9},
        bias={**_BIAS, "layer_types": [FULL, SLIDING, FULL, SLIDING, SLIDING]},
    ),
    *family("vaultgemma", {**_GEMMA, "num_hidden_layers": 5}, bias={**_BIAS, "layer_types": [FULL] * 4 + [SLIDING]}),
    *family(
        "xlm",
        {
            "vocab_size": 211,
            "emb_dim": 60,
            "n_layers": 3,
            "n_heads": 5,
            "max_position_embeddings": 173,
            "causal": True,
        },
        languages={"n_langs": 4},
        sinusoidal={"sinusoidal_embeddings": True, "n_langs": 4, "use_lang_emb": False},
        adaptive={"asm": True, "asm_cutoffs": [50, 120], "asm_div_value": 2.0, **_UNTIED},
    ),
]
