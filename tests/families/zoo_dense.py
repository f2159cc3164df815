"""Plain dense decoders: what a config can switch in each that changes a tensor or the cache."""

from __future__ import annotations

from tests.families.zoo_case import FULL, GROUPED, HEADED, SLIDING, Case, family, rope

_BIASED = {"attention_bias": True, "mlp_bias": True}
_TIED = {"tie_word_embeddings": True}
_UNTIED = {"tie_word_embeddings": False}
_GPT = {"vocab_size": 211, "n_positions": 173, "n_embd": 60, "n_layer": 3, "n_head": 5}
# Every head has its own keys and values, and hidden_size / heads is their size.
_PLAIN = {
    "vocab_size": 211,
    "hidden_size": 60,
    "intermediate_size": 92,
    "num_hidden_layers": 3,
    "num_attention_heads": 5,
    "max_position_embeddings": 173,
}
_YARN = rope(5300.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=43)
_LONGROPE = rope(
    5300.0,
    rope_type="longrope",
    short_factor=[1.0, 1.1, 1.25, 1.3, 1.45],
    long_factor=[1.2, 1.7, 2.6, 3.3, 4.8],
    original_max_position_embeddings=32,
)

CASES: list[Case] = [
    *family("arcee", HEADED, bias=_BIASED, tied=_TIED),
    *family("biogpt", _PLAIN, unscaled={"scale_embedding": False, **_UNTIED}),
    *family(
        "cwm",
        {
            **HEADED,
            "num_hidden_layers": 5,
            "sliding_window": 9,
            "layer_types": [FULL, SLIDING, SLIDING, FULL, SLIDING],
            "rope_parameters": rope(
                5300.0,
                rope_type="llama3",
                factor=5.0,
                low_freq_factor=0.7,
                high_freq_factor=3.1,
                original_max_position_embeddings=24,
            ),
        },
        pattern={"layer_types": None, "num_hidden_layers": 6},
    ),
    *family("ernie4_5", HEADED, bias={"use_bias": True}, untied=_UNTIED),
    *family("exaone", {**HEADED, "num_key_value_heads": 3}),
    *family("gpt-sw3", {**_GPT, "n_inner": 92}),
    *family(
        "gpt2",
        _GPT,
        inner={"n_inner": 92},
        untied=_UNTIED,
        scaled={"n_layer": 4, "scale_attn_by_inverse_layer_idx": True},
        tanh={"activation_function": "gelu_python_tanh"},
    ),
    *family("gpt_bigcode", {**_GPT, "n_inner": 92}, heads={"multi_query": False}, untied=_UNTIED),
    *family(
        "gpt_neo",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "num_layers": 4,
            "num_heads": 5,
            "window_size": 7,
            "max_position_embeddings": 173,
            "attention_types": [[["global", "local"], 2]],
        },
        inner={"intermediate_size": 92, "attention_types": [[["local"], 3], [["global"], 1]]},
        full={"attention_types": [[["global"], 4]]},
    ),
    *family(
        "gpt_neox",
        {**_PLAIN, "rope_parameters": rope(5300.0, partial_rotary_factor=0.5)},
        sequential={"use_parallel_residual": False},
        unbiased={"attention_bias": False},
        tied=_TIED,
    ),
    *family(
        "gpt_neox_japanese",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "num_hidden_layers": 3,
            "num_attention_heads": 5,
            "intermediate_multiple_size": 3,
            "max_position_embeddings": 173,
        },
        untied=_UNTIED,
    ),
    *family("gptj", {**_GPT, "rotary_dim": 8}, inner={"n_inner": 92}, tied=_TIED),
    *family("helium", {**GROUPED, "head_dim": 10}, bias=_BIASED),
    *family("internlm3", HEADED),
    *family("iquestcoder", {**HEADED, "num_attention_heads": 10}),
    *family("jais2", HEADED, unbiased={"attention_bias": False, "mlp_bias": False}),
    *family(
        "llama",
        HEADED,
        bias=_BIASED,
        tied=_TIED,
        derived={"head_dim": None},
        heads={"num_key_value_heads": 6},
        one={"num_key_value_heads": 1},
        # A null is no to the class, and a length beside the rotary parameters goes before the one among them.
        open_ramp={"rope_parameters": {**_YARN, "truncate": None}},
        length_beside={"rope_parameters": _YARN, "original_max_position_embeddings": 24},
    ),
    *family(
        "ministral",
        {**HEADED, "num_hidden_layers": 4, "sliding_window": 9, "layer_types": [SLIDING, FULL, FULL, SLIDING]},
        window={"layer_types": None},
    ),
    *family("mistral", {**HEADED, "sliding_window": 9}, full={"sliding_window": None}, derived={"head_dim": None}),
    *family("nemotron", {**HEADED, "head_dim": 12}, bias=_BIASED),
    *family("olmo", GROUPED, bias={"attention_bias": True}, clip={"clip_qkv": 1.5}),
    *family("openai-gpt", _GPT, untied=_UNTIED),
    *family(
        "opt",
        {
            "vocab_size": 211,
            "hidden_size": 60,
            "ffn_dim": 92,
            "num_hidden_layers": 3,
            "num_attention_heads": 5,
            "max_position_embeddings": 173,
            "word_embed_proj_dim": 60,
        },
        post={"do_layer_norm_before": False},
        projected={"word_embed_proj_dim": 36, "do_layer_norm_before": False},
        projected_pre={"word_embed_proj_dim": 36, "tie_word_embeddings": False},
        unbiased={"enable_bias": False},
        plain_norm={"layer_norm_elementwise_affine": False},
        headless={"_remove_final_layer_norm": True},
    ),
    *family("persimmon", _PLAIN, unnormed={"qk_layernorm": False}, tied=_TIED),
    *family(
        "phi",
        {**GROUPED, "rope_parameters": rope(5300.0, partial_rotary_factor=0.4)},
        qk_norm={"qk_layernorm": True},
        heads={"num_key_value_heads": None},
    ),
    *family(
        "phi3",
        {**GROUPED, "pad_token_id": 0, "rope_parameters": rope(5300.0, partial_rotary_factor=0.8)},
        window={"sliding_window": 9},
        window_listed={"sliding_window": 9, "layer_types": [SLIDING, FULL, SLIDING]},
        longrope={
            "original_max_position_embeddings": 32,
            "rope_parameters": _LONGROPE,
        },
    ),
    *family(
        "qwen2",
        GROUPED,
        tied=_TIED,
        window={"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
        unused_window={"use_sliding_window": False, "sliding_window": 9, "max_window_layers": 1},
        listed={"use_sliding_window": True, "sliding_window": 9, "layer_types": [SLIDING, FULL, SLIDING]},
    ),
    *family(
        "qwen3",
        HEADED,
        bias={"attention_bias": True, **_TIED},
        window={"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 2},
    ),
    *family(
        "seed_oss",
        HEADED,
        bias={"attention_out_bias": True, "mlp_bias": True},
        unbiased={"attention_bias": False},
    ),
    *family(
        "smollm3",
        {**GROUPED, "num_hidden_layers": 5, "pad_token_id": 0},
        bias={**_BIASED, **_UNTIED},
        window={"use_sliding_window": True, "sliding_window": 9, "no_rope_layers": [1, 0, 1, 1, 0]},
        listed={"sliding_window": 9, "layer_types": [SLIDING, FULL, SLIDING, FULL, FULL]},
    ),
    *family(
        "stablelm",
        {**GROUPED, "rope_parameters": rope(5300.0, partial_rotary_factor=0.4)},
        bias={"use_qkv_bias": True},
        qk_norm={"qk_layernorm": True},
        parallel={"use_parallel_residual": True, **_TIED},
    ),
    *family(
        "starcoder2",
        GROUPED,
        unbiased={"use_bias": False, **_UNTIED},
        window={"sliding_window": 9},
        # The class cannot decode, and its rotations depend on the length.
        longrope_listed={
            "sliding_window": 9,
            "layer_types": [SLIDING, FULL, SLIDING],
            "rope_parameters": _LONGROPE,
        },
    ),
    *family(
        "xglm",
        {
            "vocab_size": 211,
            "d_model": 60,
            "ffn_dim": 92,
            "num_layers": 3,
            "attention_heads": 5,
            "max_position_embeddings": 173,
        },
        untied=_UNTIED,
    ),
]
