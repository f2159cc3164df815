"""Llama or Qwen3 (so SmolLM2, and tiny), in JAX: a port that is Python.

`archc validate … --port examples/jax_port/port.py:load`. The layers are stacked and scanned: one is compiled for all.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax import Array
from safetensors.torch import load_file

jax.config.update("jax_default_matmul_precision", "highest")  # what accelerators round otherwise

MODULES = {
    "q": "self_attn.q_proj",
    "k": "self_attn.k_proj",
    "v": "self_attn.v_proj",
    "o": "self_attn.o_proj",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "q_norm": "self_attn.q_norm",
    "k_norm": "self_attn.k_norm",
}


class Shape(NamedTuple):
    """What a config.json says of the computation, beyond what the weights show."""

    heads: int
    kv_heads: int
    eps: float


class Weights(NamedTuple):
    """All weights; those of the layers are stacked, [layers, out, in], and so are biases ("q.bias") and windows."""

    embedding: Array
    layers: dict[str, Array]
    norm: Array
    head: Array
    frequencies: Array


class Cache:
    """Keys and values [layers, batch, positions, kv_heads, head_dim] of the tokens so far; written in place."""

    def __init__(self) -> None:
        self.kv: tuple[Array, Array] | None = None


def norm(x: Array, weight: Array, eps: float) -> Array:
    """RMSNorm."""
    return weight * (x * jax.lax.rsqrt(jnp.square(x).mean(-1, keepdims=True) + eps))


def frequencies(rope: dict[str, Any], head_dim: int) -> Array:
    """By how much each pair of a head turns from one position to the next, [head_dim / 2]."""
    plain = rope["rope_theta"] ** -(np.arange(0, head_dim, 2) / head_dim)
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return jnp.asarray(plain, jnp.float32)
    if kind != "llama3":
        raise ValueError(f"this port knows no rope_type {kind}")
    # What turns often within the original context stays, what hardly turns is stretched, between they blend.
    turns = rope["original_max_position_embeddings"] * plain / (2 * np.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return jnp.asarray(kept * plain + (1 - kept) * plain / rope["factor"], jnp.float32)


def linear(x: Array, w: dict[str, Array], name: str) -> Array:
    """A matrix stored as [out, in], and its bias where it has one."""
    product = x @ w[name].T
    return product + w[name + ".bias"] if name + ".bias" in w else product


def rotate(x: Array, positions: Array, frequencies: Array) -> Array:
    """Rotary positions of x [batch, tokens, heads, head_dim]: element i turns with element i + head_dim / 2."""
    half = x.shape[-1] // 2
    angles = positions[:, :, None, None] * frequencies
    cos, sin = jnp.cos(angles), jnp.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return jnp.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)


@partial(jax.jit, static_argnames="shape")
def forward(
    weights: Weights, shape: Shape, ids: Array, positions: Array, allowed: Array, past: tuple[Array, Array]
) -> tuple[Array, tuple[Array, Array]]:
    """Logits [batch, tokens, vocab], and keys and values of past and tokens.

    allowed [batch, tokens, past + tokens] says which position may read which.
    """

    def layer(x: Array, given: tuple[dict[str, Array], Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        w, past_k, past_v = given
        h = norm(x, w["attention_norm"], shape.eps)
        q, k, v = (
            linear(h, w, name).reshape(*h.shape[:2], heads, -1)
            for name, heads in (("q", shape.heads), ("k", shape.kv_heads), ("v", shape.kv_heads))
        )
        if "q_norm" in w:
            q, k = norm(q, w["q_norm"], shape.eps), norm(k, w["k_norm"], shape.eps)
        q, k = rotate(q, positions, weights.frequencies), rotate(k, positions, weights.frequencies)
        k, v = jnp.concatenate((past_k, k), axis=1), jnp.concatenate((past_v, v), axis=1)
        grouped = q.reshape(*q.shape[:2], shape.kv_heads, -1, q.shape[-1])  # heads of a group follow one another
        scores = jnp.einsum("btgrd,bsgd->bgrts", grouped, k) * q.shape[-1] ** -0.5
        places = jnp.arange(k.shape[1])  # in the row: positions may have gaps
        near = places > places[-q.shape[1] :, None] - w["window"]
        scores = jnp.where((allowed & near)[:, None, None], scores, jnp.finfo(scores.dtype).min)
        mixed = jnp.einsum("bgrts,bsgd->btgrd", jax.nn.softmax(scores, axis=-1), v)
        x = x + linear(mixed.reshape(*h.shape[:2], -1), w, "o")
        h = norm(x, w["ffn_norm"], shape.eps)
        return x + linear(jax.nn.silu(linear(h, w, "gate")) * linear(h, w, "up"), w, "down"), (k, v)

    x, kv = jax.lax.scan(layer, weights.embedding[ids], (weights.layers, *past))
    return norm(x, weights.norm, shape.eps) @ weights.head.T, kv


class Port:
    """Called with torch tensors, as archc has them; computes in JAX."""

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        rope = config.get("rope_parameters") or {"rope_theta": config.get("rope_theta", 10000.0)}
        if config["model_type"] not in ("llama", "qwen3") or config["hidden_act"] != "silu":
            raise ValueError("this port knows llama and qwen3, with SiLU")
        heads = config["num_attention_heads"]
        self.shape = Shape(heads, config["num_key_value_heads"], config["rms_norm_eps"])
        self.head_dim = config.get("head_dim") or config["hidden_size"] // heads
        stored = {
            name: jnp.asarray(tensor.float().numpy())
            for file in sorted(folder.glob("*.safetensors"))
            for name, tensor in load_file(file).items()
        }
        layers = range(config["num_hidden_layers"])
        kinds = config.get("layer_types") or ["full_attention"] * len(layers)
        windows = [config["sliding_window"] if kind == "sliding_attention" else 2**30 for kind in kinds]
        stacked = {
            to + end: jnp.stack([stored[f"model.layers.{n}.{name}{kind}"] for n in layers])
            for to, name in MODULES.items()
            for end, kind in (("", ".weight"), (".bias", ".bias"))
            if f"model.layers.0.{name}{kind}" in stored
        }
        embedding = stored["model.embed_tokens.weight"]
        self.weights = Weights(
            embedding,
            stacked | {"window": jnp.asarray(windows)},
            stored["model.norm.weight"],
            stored.get("lm_head.weight", embedding),
            frequencies(rope, self.head_dim),
        )

    def new_cache(self, batch: int, max_length: int) -> Cache:
        """An empty cache. It grows, so it need not know how far."""
        del batch, max_length
        return Cache()

    def __call__(
        self,
        input_ids: torch.Tensor,
        position_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        cache: Cache | None = None,
    ) -> torch.Tensor:
        """Logits [batch, tokens, vocab] of input_ids [batch, tokens].

        position_ids [batch, tokens]; attention_mask [batch, cached + tokens].
        """
        batch, tokens = input_ids.shape
        past = cache.kv if cache is not None and cache.kv is not None else self._nothing(batch)
        slots = np.arange(past[0].shape[2], past[0].shape[2] + tokens)
        positions = np.broadcast_to(slots, (batch, tokens)) if position_ids is None else position_ids.numpy()
        allowed = np.broadcast_to(np.arange(slots[-1] + 1) <= slots[:, None], (batch, tokens, slots[-1] + 1))
        if attention_mask is not None:
            allowed = allowed & attention_mask.numpy()[:, None].astype(bool)
        logits, kv = forward(self.weights, self.shape, input_ids.numpy(), positions, allowed, past)
        if cache is not None:
            cache.kv = kv
        return torch.from_numpy(np.array(logits))

    def _nothing(self, batch: int) -> tuple[Array, Array]:
        """Keys and values of no position."""
        layers = len(self.weights.layers["window"])
        empty = jnp.zeros((layers, batch, 0, self.shape.kv_heads, self.head_dim))
        return empty, empty


def load(weights: Path, dtype: torch.dtype) -> Port:
    """The port, in float32."""
    if dtype != torch.float32:
        raise ValueError("this port computes in float32")
    return Port(weights)
