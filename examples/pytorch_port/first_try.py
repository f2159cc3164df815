"""A first try at a port of tiny in plain PyTorch, as one gets written: it has six mistakes.

docs/cookbook/pytorch.md mends them one by one, by what `archc validate` says of each. Modules are called as the
checkpoint's tensors are, so the weights load by name, and archc finds the layers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

Cache = dict[nn.Module, tuple[Tensor, Tensor]]  # of each attention: keys and values [batch, kv_heads, so far, head_dim]


class RMSNorm(nn.Module):
    """Root mean square norm over the last axis."""

    def __init__(self, width: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(width))
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return self.weight * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps))


def stretched(frequencies: Tensor, rope: dict[str, Any]) -> Tensor:
    """Llama 3: what turns often within the original context stays, what hardly turns is slowed, between they blend."""
    turns = rope["original_max_position_embeddings"] * frequencies / (2 * torch.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / rope["factor"]


def rotate(x: Tensor, positions: Tensor, rope: dict[str, Any]) -> Tensor:
    """Turns x [batch, heads, tokens, head_dim]: channel i goes with channel i + head_dim / 2."""
    half = x.shape[-1] // 2
    frequencies = rope["rope_theta"] ** -(torch.arange(half) / half)
    angles = positions[:, None, :, None] * frequencies
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    """Grouped heads, normed before they turn; `window` positions are seen, or all."""

    def __init__(self, config: dict[str, Any], window: int | None) -> None:
        super().__init__()
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.head_dim = config["hidden_size"] // self.heads
        self.window, self.rope = window, config["rope_parameters"]
        self.q_proj = nn.Linear(config["hidden_size"], self.heads * self.head_dim)
        self.k_proj = nn.Linear(config["hidden_size"], self.kv_heads * self.head_dim)
        self.v_proj = nn.Linear(config["hidden_size"], self.kv_heads * self.head_dim)
        self.o_proj = nn.Linear(self.heads * self.head_dim, config["hidden_size"])
        self.q_norm = RMSNorm(self.head_dim)
        self.k_norm = RMSNorm(self.head_dim)

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (-1, self.head_dim)).transpose(1, 2)

    def forward(self, x: Tensor, positions: Tensor, mask: Tensor | None, cache: Cache) -> Tensor:
        q, k, v = self.split(self.q_proj(x)), self.split(self.k_proj(x)), self.split(self.v_proj(x))
        q = rotate(self.q_norm(q), positions, self.rope)
        k = rotate(self.k_norm(k), positions, self.rope)
        if self in cache:
            k, v = (torch.cat(pair, dim=2) for pair in zip(cache[self], (k, v), strict=True))
        cache[self] = k, v
        keys = torch.arange(k.shape[2])
        queries = keys[-x.shape[1] :, None]
        seen = keys <= queries  # [tokens, keys]
        if self.window is not None:
            seen = seen & (keys >= queries - self.window)
        repeats = self.heads // self.kv_heads
        k, v = k.repeat_interleave(repeats, dim=1), v.repeat_interleave(repeats, dim=1)
        mixed = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.o_proj(mixed.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    """Gated feed-forward."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        width, inner = config["hidden_size"], config["intermediate_size"]
        self.gate_proj = nn.Linear(width, inner, bias=False)
        self.up_proj = nn.Linear(width, inner, bias=False)
        self.down_proj = nn.Linear(inner, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """Attention, then feed-forward, each behind a norm."""

    def __init__(self, config: dict[str, Any], window: int | None) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(config["hidden_size"])
        self.self_attn = Attention(config, window)
        self.post_attention_layernorm = RMSNorm(config["hidden_size"])
        self.mlp = MLP(config)

    def forward(self, x: Tensor, positions: Tensor, mask: Tensor | None, cache: Cache) -> Tensor:
        x = x + self.self_attn(self.input_layernorm(x), positions, mask, cache)
        return x + self.mlp(self.post_attention_layernorm(x))


class Decoder(nn.Module):
    """Embedding, layers, last norm."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        windows = {"sliding_attention": config["sliding_window"], "full_attention": None}
        self.embed_tokens = nn.Embedding(config["vocab_size"], config["hidden_size"])
        self.layers = nn.ModuleList(Layer(config, windows[kind]) for kind in config["layer_types"])
        self.norm = RMSNorm(config["hidden_size"])


class Port(nn.Module):
    """What archc calls."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__()
        self.model = Decoder(config)
        self.lm_head = nn.Linear(config["hidden_size"], config["vocab_size"], bias=False)

    def new_cache(self, batch: int, max_length: int) -> Cache:
        return {}

    def forward(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        cache = {} if cache is None else cache
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1]).expand(input_ids.shape)
        x = self.model.embed_tokens(input_ids)
        for layer in self.model.layers:
            x = layer(x, position_ids, attention_mask, cache)
        return self.lm_head(self.model.norm(x))


def load(weights: Path, dtype: torch.dtype) -> Port:
    """The port with the weights of a checkpoint folder."""
    port = Port(json.loads((weights / "config.json").read_text()))
    port.load_state_dict(load_file(weights / "model.safetensors"))
    return port.to(dtype).eval()
