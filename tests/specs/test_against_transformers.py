"""What the plainest shipped specs say, field by field, against what transformers' own classes build.

No count of parameters shows a base of rotations, a window, a scale or an activation; these read them off the model that
transformers makes of the published config.json.
"""

import pytest
import torch

from archc.architecture import Architecture, compile_spec
from archc.parts.experts import Experts
from tests.layers import attention_of, feed_forward_of
from tests.specs.published import published, reference

PLAIN = (
    "gpt2",
    "smollm2-135m",
    "llama2-7b",
    "llama2-70b",
    "llama3-8b",
    "llama3-70b",
    "llama3.1-8b",
    "llama3.1-405b",
    "mistral-7b",
    "mixtral-8x7b",
    "qwen2-0.5b",
    "qwen3-0.6b",
    "qwen3-30b-a3b",
    "qwen3-235b-a22b",
    "gemma3-270m",
    "olmo2-7b",
)
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
    first, ffn = attention_of(architecture.layers[0]), feed_forward_of(architecture.layers[0])
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


@pytest.mark.parametrize("name", PLAIN)
def test_spec_says_what_transformers_builds(name: str) -> None:
    architecture = compile_spec(name).architecture
    assert architecture.family == published(name)["model_type"]
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
