"""Tiny checkpoints that hide no mistake, made by Hugging Face's own classes, with a spec for each.

Head counts are no powers of two and no key/value head count is also the size of a group, no matrix is square
but where transformers leaves no choice (GPT-2, Phi-3), norm weights differ inside every rotary pair, biases are not
zero, and no number is a library's default.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

YARN = {
    "rope_type": "yarn",
    "rope_theta": 5300.0,
    "factor": 3.0,
    "original_max_position_embeddings": 200,
    "beta_fast": 5.0,
    "beta_slow": 0.5,
}
LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5300.0,
    "factor": 5.0,
    "original_max_position_embeddings": 24,
    "low_freq_factor": 0.7,
    "high_freq_factor": 3.1,
}
SHORT = [1.0, 1.1, 1.25, 1.3, 1.45, 1.6, 1.7, 1.9]
LONG = [1.2, 1.7, 2.6, 3.3, 4.8, 7.1, 9.9, 12.5]
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 5300.0,
    "short_factor": SHORT,
    "long_factor": LONG,
    "original_max_position_embeddings": 24,
    "factor": 3.7,
}

COMMON = """
archc: 1
vocab_size: 211
context: 96
dtype: float32
"""
ROPE = "{kind: rope, base: 5300"
GATED = "{kind: gated, activation: silu, width: 100}"


@dataclass(frozen=True)
class Tiny:
    """A tiny model: how to make Hugging Face's, and the spec that declares it."""

    name: str
    family: str
    config: dict[str, Any]
    spec: str
    one_plus: bool = False

    def text(self) -> str:
        """The whole spec."""
        hidden = self.config.get("hidden_size", self.config.get("n_embd"))
        return f"name: {self.name}\nfamily: {self.family}\nhidden_size: {hidden}\n{COMMON}{self.spec}"

    def model(self, seed: int = 0) -> Any:
        """Hugging Face's model with ugly random weights, in fp32, with its plainest attention and experts."""
        kind = transformers.AutoConfig.for_model(self.family)
        config = type(kind)(**self.config)
        config._attn_implementation = config._experts_implementation = "eager"
        model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.ndim == 1 and name.endswith("weight"):
                    centre = 0.0 if self.one_plus else 1.0
                    weight.copy_(centre + 0.6 * (torch.rand(weight.shape, generator=generator) - 0.4))
                elif weight.ndim == 1:
                    weight.copy_(0.3 * torch.randn(weight.shape, generator=generator))
                elif "embed" in name or "wte" in name or "wpe" in name:
                    weight.copy_(torch.randn(weight.shape, generator=generator))
                else:
                    fan_in = weight.shape[0] if self.family == "gpt2" else weight.shape[-1]
                    weight.copy_(1.4 * fan_in**-0.5 * torch.randn(weight.shape, generator=generator))
        return model.eval()

    def save(self, folder: Path, seed: int = 0) -> Any:
        """Writes the checkpoint to `folder` and returns the model."""
        model = self.model(seed)
        model.save_pretrained(folder)
        return model


def _base(**more: Any) -> dict[str, Any]:
    return {
        "vocab_size": 211,
        "hidden_size": 72,
        "intermediate_size": 100,
        "num_hidden_layers": 3,
        "num_attention_heads": 6,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 96,
        "rms_norm_eps": 3e-3,
        "rope_parameters": {"rope_type": "default", "rope_theta": 5300.0},
        "tie_word_embeddings": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "pad_token_id": 0,
    } | more


def _spec(
    *,
    tied: bool = False,
    scale: str = "null",
    norm: str = "{kind: rmsnorm, eps: 3.0e-3}",
    position: str = ROPE + "}",
    attention: str = "{heads: 6, kv_heads: 2, head_dim: 16}",
    ffn: str = GATED,
    layers: str = "3",
    more: str = "",
) -> str:
    return f"""
embedding: {{tied: {str(tied).lower()}, scale: {scale}}}
norm: {norm}
position: {position}
attention: {attention}
ffn: {ffn}
layers: {layers}
{more}
"""


def _llama(name: str, rope: dict[str, Any], position: str, **more: Any) -> Tiny:
    return Tiny(f"llama-{name}", "llama", _base(rope_parameters=rope, **more), _spec(position=position))


_QK = "{heads: 6, kv_heads: 2, head_dim: 16, qk_norm: {over: head}"
_ROUTER = "{score: softmax, renormalize: true}"
_PHI3 = _base(hidden_size=108, head_dim=18)

TINY = (
    Tiny(
        "gpt2",
        "gpt2",
        {
            "vocab_size": 211,
            "n_embd": 60,
            "n_layer": 3,
            "n_head": 5,
            "n_inner": 104,
            "n_positions": 96,
            "layer_norm_epsilon": 3e-3,
            "activation_function": "gelu_new",
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        _spec(
            tied=True,
            norm="{kind: layernorm, eps: 3.0e-3, bias: true}",
            position="{kind: learned}",
            attention="{heads: 5, bias: all}",
            ffn="{kind: mlp, activation: gelu_tanh, width: 104, bias: true}",
        ),
    ),
    _llama("default", {"rope_type": "default", "rope_theta": 5300.0}, ROPE + "}"),
    Tiny(
        "llama-biased",
        "llama",
        _base(attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        _spec(
            tied=True,
            attention="{heads: 6, kv_heads: 2, head_dim: 16, bias: all}",
            ffn="{kind: gated, activation: silu, width: 100, bias: true}",
        ),
    ),
    _llama(
        "linear",
        {"rope_type": "linear", "rope_theta": 5300.0, "factor": 3.0},
        ROPE + ", scaling: {kind: linear, factor: 3}}",
    ),
    _llama(
        "dynamic",
        {"rope_type": "dynamic", "rope_theta": 5300.0, "factor": 3.0},
        ROPE + ", scaling: {kind: dynamic, factor: 3, original_context: 20}}",
        max_position_embeddings=20,
    ),
    _llama(
        "llama3",
        LLAMA3,
        ROPE
        + ", scaling: {kind: llama3, factor: 5, original_context: 24, low_freq_factor: 0.7, high_freq_factor: 3.1}}",
    ),
    _llama(
        "yarn",
        YARN,
        ROPE + ", scaling: {kind: yarn, factor: 3, original_context: 200, beta_fast: 5, beta_slow: 0.5}}",
        max_position_embeddings=600,
    ),
    _llama(
        "yarn-mscale",
        YARN | {"mscale": 0.8, "mscale_all_dim": 1.7, "truncate": False},
        ROPE + ", scaling: {kind: yarn, factor: 3, original_context: 200, beta_fast: 5, beta_slow: 0.5, "
        "mscale: 0.8, mscale_all_dim: 1.7, truncate: false}}",
        max_position_embeddings=600,
    ),
    _llama(
        "longrope",
        LONGROPE,
        ROPE + f", scaling: {{kind: longrope, original_context: 24, factor: 3.7, short_factors: {SHORT}, "
        f"long_factors: {LONG}}}}}",
    ),
    Tiny(
        "mistral-window",
        "mistral",
        _base(sliding_window=7),
        _spec(attention="{heads: 6, kv_heads: 2, head_dim: 16, window: 7}"),
    ),
    Tiny(
        "qwen2",
        "qwen2",
        _base(num_attention_heads=12, num_key_value_heads=3, head_dim=10),
        _spec(attention="{heads: 12, kv_heads: 3, head_dim: 10, bias: [q, k, v]}"),
    ),
    Tiny(
        "qwen3",
        "qwen3",
        _base(attention_bias=True),
        _spec(attention=_QK + ", bias: all}"),
    ),
    Tiny(
        "qwen3_moe",
        "qwen3_moe",
        _base(
            num_experts=7,
            num_experts_per_tok=3,
            moe_intermediate_size=44,
            norm_topk_prob=False,
            mlp_only_layers=[1],
            decoder_sparse_step=1,
        ),
        _spec(
            attention=_QK + "}",
            ffn="{kind: moe, experts: 7, top_k: 3, width: 44, activation: silu, "
            "router: {score: softmax, renormalize: false}}",
            layers="{count: 3, kinds: {sparse: null, dense: {ffn: {kind: gated, width: 100}}}, "
            'pattern: "sparse, dense, sparse"}',
        ),
    ),
    Tiny(
        "qwen3_moe-renormalised",
        "qwen3_moe",
        _base(num_experts=7, num_experts_per_tok=3, moe_intermediate_size=44, norm_topk_prob=True),
        _spec(
            attention=_QK + "}",
            ffn=f"{{kind: moe, experts: 7, top_k: 3, width: 44, activation: silu, router: {_ROUTER}}}",
        ),
    ),
    Tiny(
        "mixtral",
        "mixtral",
        _base(num_local_experts=5, num_experts_per_tok=2, sliding_window=None),
        _spec(ffn=f"{{kind: moe, experts: 5, top_k: 2, width: 100, activation: silu, router: {_ROUTER}}}"),
    ),
    Tiny(
        "gemma",
        "gemma",
        _base(hidden_activation="gelu_pytorch_tanh", hidden_act="gelu_pytorch_tanh", tie_word_embeddings=True),
        _spec(
            tied=True,
            scale="sqrt(hidden_size)",
            norm="{kind: rmsnorm, eps: 3.0e-3, weight: one_plus}",
            ffn="{kind: gated, activation: gelu_tanh, width: 100}",
        ),
        one_plus=True,
    ),
    Tiny(
        "gemma2",
        "gemma2",
        _base(
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            query_pre_attn_scalar=23,
            attn_logit_softcapping=1.7,
            final_logit_softcapping=2.3,
            sliding_window=7,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        ),
        _spec(
            tied=True,
            scale="sqrt(hidden_size)",
            norm="{kind: rmsnorm, eps: 3.0e-3, weight: one_plus, placement: sandwich}",
            attention=f"{{heads: 6, kv_heads: 2, head_dim: 16, scale: {23**-0.5}, softcap: 1.7}}",
            ffn="{kind: gated, activation: gelu_tanh, width: 100}",
            layers="{count: 3, kinds: {local: {attention: {window: 7}}, global: null}, "
            'pattern: "local, global, local"}',
            more="logits: {softcap: 2.3}",
        ),
        one_plus=True,
    ),
    Tiny(
        "gemma3_text",
        "gemma3_text",
        _base(
            hidden_activation="gelu_pytorch_tanh",
            tie_word_embeddings=True,
            query_pre_attn_scalar=23,
            sliding_window=7,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            rope_parameters={
                "sliding_attention": {"rope_type": "default", "rope_theta": 700.0},
                "full_attention": {"rope_type": "linear", "rope_theta": 5300.0, "factor": 3.0},
            },
        ),
        _spec(
            tied=True,
            scale="sqrt(hidden_size)",
            norm="{kind: rmsnorm, eps: 3.0e-3, weight: one_plus, placement: sandwich}",
            attention=f"{{heads: 6, kv_heads: 2, head_dim: 16, scale: {23**-0.5}, qk_norm: {{over: head}}}}",
            ffn="{kind: gated, activation: gelu_tanh, width: 100}",
            position=ROPE + ", scaling: {kind: linear, factor: 3}}",
            layers="{count: 3, kinds: {local: {attention: {window: 7}, position: {base: 700, scaling: null}}, "
            'global: null}, pattern: "local, global, local"}',
        ),
        one_plus=True,
    ),
    Tiny(
        "phi3-partial",
        "phi3",
        _PHI3 | {"rope_parameters": {"rope_type": "default", "rope_theta": 5300.0, "partial_rotary_factor": 0.8}},
        _spec(attention="{heads: 6, kv_heads: 2, head_dim: 18}", position=ROPE + ", partial: 0.8}"),
    ),
    Tiny(
        "phi3-longrope",
        "phi3",
        _PHI3
        | {
            "sliding_window": 11,
            "original_max_position_embeddings": 24,
            "rope_parameters": {
                "rope_type": "longrope",
                "rope_theta": 5300.0,
                "partial_rotary_factor": 0.9,
                "short_factor": SHORT,
                "long_factor": LONG,
            },
        },
        _spec(
            attention="{heads: 6, kv_heads: 2, head_dim: 18, window: 11}",
            position=ROPE + f", partial: 0.9, scaling: {{kind: longrope, original_context: 24, "
            f"short_factors: {SHORT}, long_factors: {LONG}}}}}",
        ),
    ),
    Tiny(
        "olmo2",
        "olmo2",
        _base(num_attention_heads=12, num_key_value_heads=3, head_dim=10),
        _spec(
            norm="{kind: rmsnorm, eps: 3.0e-3, placement: post}",
            position=ROPE + ", float32: all}",
            attention="{heads: 12, kv_heads: 3, head_dim: 10, qk_norm: {over: width}}",
        ),
    ),
)
BY_NAME = {tiny.name: tiny for tiny in TINY}
