"""Every shipped spec with a family says what transformers' own classes build from the published config.json.

PUBLISHED is written out by hand from the config.json of each spec's source; what a config leaves out, transformers'
config class supplies. Models are made on the meta device: their parameters have shapes and no storage.
"""

from functools import cache
from typing import Any

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from archc.architecture import Architecture, compile_spec
from archc.codegen.plain import attention_of, ffn_of
from archc.parts.experts import Experts
from archc.spec.load import shipped_names

LLAMA3_SCALING = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
PUBLISHED: dict[str, dict[str, Any]] = {
    "gpt2": {
        "model_type": "gpt2",
        "vocab_size": 50257,
        "n_embd": 768,
        "n_layer": 12,
        "n_head": 12,
        "n_positions": 1024,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": 1e-5,
        "dtype": "float32",  # the config has none; the checkpoint is stored so
    },
    "smollm2-135m": {
        "model_type": "llama",
        "vocab_size": 49152,
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 100000,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    },
    "llama2-7b": {
        "model_type": "llama",
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "dtype": "float16",
    },
    "llama2-70b": {
        "model_type": "llama",
        "vocab_size": 32000,
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "tie_word_embeddings": False,
        "dtype": "float16",
    },
    "llama3-8b": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "llama3-70b": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 8192,
        "intermediate_size": 28672,
        "num_hidden_layers": 80,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 8192,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "llama3.1-8b": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "rope_scaling": LLAMA3_SCALING,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "llama3.1-405b": {
        "model_type": "llama",
        "vocab_size": 128256,
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 131072,
        "rms_norm_eps": 1e-5,
        "rope_theta": 500000.0,
        "rope_scaling": LLAMA3_SCALING,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "mistral-7b": {
        "model_type": "mistral",
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "hidden_act": "silu",
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "sliding_window": 4096,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "vocab_size": 32000,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "hidden_act": "silu",
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-5,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "qwen2-0.5b": {
        "model_type": "qwen2",
        "vocab_size": 151936,
        "hidden_size": 896,
        "intermediate_size": 4864,
        "num_hidden_layers": 24,
        "num_attention_heads": 14,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "max_position_embeddings": 131072,
        "max_window_layers": 24,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "sliding_window": 131072,
        "use_sliding_window": False,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    },
    "qwen3-0.6b": {
        "model_type": "qwen3",
        "vocab_size": 151936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "attention_bias": False,
        "hidden_act": "silu",
        "max_position_embeddings": 40960,
        "max_window_layers": 28,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000,
        "sliding_window": None,
        "use_sliding_window": False,
        "tie_word_embeddings": True,
        "dtype": "bfloat16",
    },
    "qwen3-30b-a3b": {
        "model_type": "qwen3_moe",
        "vocab_size": 151936,
        "hidden_size": 2048,
        "intermediate_size": 6144,
        "moe_intermediate_size": 768,
        "num_hidden_layers": 48,
        "num_attention_heads": 32,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "attention_bias": False,
        "hidden_act": "silu",
        "max_position_embeddings": 40960,
        "max_window_layers": 48,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "qwen3-235b-a22b": {
        "model_type": "qwen3_moe",
        "vocab_size": 151936,
        "hidden_size": 4096,
        "intermediate_size": 12288,
        "moe_intermediate_size": 1536,
        "num_hidden_layers": 94,
        "num_attention_heads": 64,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "attention_bias": False,
        "hidden_act": "silu",
        "max_position_embeddings": 40960,
        "max_window_layers": 94,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "sliding_window": None,
        "use_sliding_window": False,
        "tie_word_embeddings": False,
        "dtype": "bfloat16",
    },
    "gemma3-270m": {
        "model_type": "gemma3_text",
        "vocab_size": 262144,
        "hidden_size": 640,
        "intermediate_size": 2048,
        "num_hidden_layers": 18,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 256,
        "query_pre_attn_scalar": 256,
        "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3,
        "hidden_activation": "gelu_pytorch_tanh",
        "max_position_embeddings": 32768,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1000000.0,
        "rope_local_base_freq": 10000.0,
        "sliding_window": 512,
        "attention_bias": False,
        "attn_logit_softcapping": None,
        "final_logit_softcapping": None,
        "dtype": "bfloat16",
    },
    "olmo2-7b": {
        "model_type": "olmo2",
        "vocab_size": 100352,
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 32,
        "attention_bias": False,
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_scaling": None,
        "rope_theta": 500000,
        "tie_word_embeddings": False,
        "dtype": "float32",
    },
}
ACTIVATIONS = {"silu": "silu", "gelu_new": "gelu_tanh", "gelu_pytorch_tanh": "gelu_tanh"}
RMS_WEIGHTS = {"Gemma3RMSNorm": "one_plus"}

# (spec, override, changes the number of parameters): each must be seen.
CHANGES = [
    ("gpt2", "embedding.tied=false", True),
    ("gpt2", "attention.bias=[q, k, v]", True),
    ("gpt2", "context=1023", True),
    ("gpt2", "norm.eps=1e-6", False),
    ("gpt2", "ffn.activation=gelu", False),
    ("llama2-7b", "ffn.width=11007", True),
    ("llama2-7b", "position.base=500000", False),
    ("llama3-8b", "attention.kv_heads=4", True),
    ("llama3.1-8b", "position.scaling=null", False),
    ("llama3.1-8b", "position.scaling.low_freq_factor=2", False),
    ("mistral-7b", "attention.window=4095", False),
    ("mistral-7b", "dtype=float16", False),
    ("mixtral-8x7b", "ffn.top_k=1", False),
    ("mixtral-8x7b", "ffn.experts=7", True),
    ("qwen2-0.5b", "attention.bias=none", True),
    ("qwen3-0.6b", "attention.qk_norm=null", True),
    ("qwen3-0.6b", "attention.head_dim=64", True),
    ("qwen3-30b-a3b", "ffn.router.renormalize=false", False),
    ("gemma3-270m", "norm.placement=pre", True),
    ("gemma3-270m", "norm.weight=plain", False),
    ("gemma3-270m", "embedding.scale=null", False),
    ("gemma3-270m", "attention.scale=0.05", False),
    ("gemma3-270m", "layers.pattern=local, 3*(5*local, global) ", False),
    ("gemma3-270m", "layers.kinds.local.position.base=1000000", False),
    ("olmo2-7b", "norm.placement=sandwich", True),
    ("olmo2-7b", "attention.qk_norm.over=head", True),
]


@cache
def reference(name: str) -> Any:
    """The model of transformers, on the meta device."""
    config = AutoConfig.for_model(**PUBLISHED[name])
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(config)


def reference_sizes(name: str) -> tuple[int, int]:
    """All parameters, each once, and those that one token uses: of the experts, only the chosen ones."""
    model, config = reference(name), reference(name).config
    sizes = {key: parameter.numel() for key, parameter in model.named_parameters()}
    experts = sum(size for key, size in sizes.items() if ".experts." in key)
    total = sum(sizes.values())
    if not experts:
        return total, total
    return total, total - experts // config.num_local_experts * (config.num_local_experts - config.num_experts_per_tok)


def reference_fields(name: str) -> dict[str, object]:
    """What no parameter count shows, in the words of a spec."""
    model, config = reference(name), reference(name).config
    gpt2 = name == "gpt2"
    backbone = model.transformer if gpt2 else model.model
    mixers = [block.attn for block in backbone.h] if gpt2 else [layer.self_attn for layer in backbone.layers]
    norm = backbone.ln_f if gpt2 else backbone.norm
    activation = next(
        getattr(config, key)
        for key in ("activation_function", "hidden_activation", "hidden_act")
        if getattr(config, key, None)
    )
    moe = hasattr(config, "num_experts_per_tok")
    return {
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "context": config.max_position_embeddings,
        "dtype": str(config.dtype).removeprefix("torch."),
        "tied": config.tie_word_embeddings,
        "embedding scale": getattr(backbone.embed_tokens, "scalar_embed_scale", None) if not gpt2 else None,
        "norm": "layernorm" if isinstance(norm, torch.nn.LayerNorm) else "rmsnorm",
        "norm weight": RMS_WEIGHTS.get(type(norm).__name__, "plain"),
        "eps": config.layer_norm_epsilon if gpt2 else config.rms_norm_eps,
        "activation": ACTIVATIONS[activation],
        "heads": config.num_attention_heads,
        "kv_heads": getattr(config, "num_key_value_heads", config.num_attention_heads),
        "head_dim": mixers[0].head_dim,
        "scale": [mixer.scaling for mixer in mixers],
        "window": [getattr(mixer, "sliding_window", getattr(config, "sliding_window", None)) for mixer in mixers],
        "top_k": config.num_experts_per_tok if moe else None,
        "renormalize": getattr(config, "norm_topk_prob", True) if moe else None,  # Mixtral's router always does
        "softcaps": (
            getattr(config, "attn_logit_softcapping", None),
            getattr(config, "final_logit_softcapping", None),
        ),
    }


def fields(architecture: Architecture) -> dict[str, object]:
    """The same of an Architecture."""
    first, ffn = attention_of(architecture.layers[0]), ffn_of(architecture.layers[0])
    norm = architecture.final_norm
    assert norm is not None
    return {
        "vocab_size": architecture.vocab_size,
        "hidden_size": architecture.hidden_size,
        "context": architecture.context,
        "dtype": architecture.dtype,
        "tied": architecture.head.tied,
        "embedding scale": architecture.embedding.scale,
        "norm": norm.kind,
        "norm weight": norm.weight,
        "eps": norm.eps,
        "activation": ffn.activation,
        "heads": first.heads,
        "kv_heads": first.kv_heads,
        "head_dim": first.head_dim,
        "scale": [attention_of(layer).scale for layer in architecture.layers],
        "window": [attention_of(layer).window for layer in architecture.layers],
        "top_k": ffn.top_k if isinstance(ffn, Experts) else None,
        "renormalize": ffn.router.renormalize if isinstance(ffn, Experts) else None,
        "softcaps": (first.softcap, architecture.head.softcap),
    }


def reference_frequencies(name: str) -> list[list[float]]:
    """Radians per position of every rotary pair, layer by layer; nothing without rotary positions."""
    model, config = reference(name), reference(name).config
    if not hasattr(model, "model"):
        return []
    rotary = type(model.model.rotary_emb)(config)  # a second one, with storage
    kinds = getattr(config, "layer_types", None) or ["full_attention"] * config.num_hidden_layers
    buffers = dict(rotary.named_buffers())
    keys = [f"{kind}_inv_freq" if f"{kind}_inv_freq" in buffers else "inv_freq" for kind in kinds]
    return [buffers[key].tolist() for key in keys]


def frequencies(architecture: Architecture) -> list[list[float]]:
    """The same of an Architecture."""
    ropes = [attention_of(layer).rope for layer in architecture.layers]
    return [rope.frequencies() for rope in ropes if rope is not None]


def close(left: list[list[float]], right: list[list[float]]) -> bool:
    return len(left) == len(right) and all(
        a == pytest.approx(b, rel=1e-5, abs=0) for a, b in zip(left, right, strict=True)
    )


def sizes(architecture: Architecture) -> tuple[int, int]:
    tensors = list(architecture.tensors())
    return sum(tensor.size for tensor in tensors), sum(tensor.active_size for tensor in tensors)


def test_every_spec_with_a_family_is_compared() -> None:
    with_family = [name for name in shipped_names() if compile_spec(name).architecture.family]
    assert sorted(PUBLISHED) == sorted(with_family)


@pytest.mark.parametrize("name", PUBLISHED)
def test_spec_says_what_transformers_builds(name: str) -> None:
    architecture = compile_spec(name).architecture
    assert architecture.family == PUBLISHED[name]["model_type"]
    assert sizes(architecture) == reference_sizes(name)
    assert fields(architecture) == reference_fields(name)
    assert close(frequencies(architecture), reference_frequencies(name))


@pytest.mark.parametrize(("name", "change", "resizes"), CHANGES)
def test_a_changed_spec_is_told_apart(name: str, change: str, resizes: bool) -> None:
    overrides = [change, "layers.count=19"] if "pattern" in change else [change]
    architecture = compile_spec(name, overrides).architecture
    if resizes:
        assert sizes(architecture)[0] != reference_sizes(name)[0]
    else:
        same = fields(architecture) == reference_fields(name)
        assert not (same and close(frequencies(architecture), reference_frequencies(name)))
