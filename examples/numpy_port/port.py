"""Llama or Qwen3 (so SmolLM2, and tiny), written by hand in numpy: a port that is a command.

python port.py WEIGHTS PROBES OUT reads a Hugging Face checkpoint folder and a file of probes, and writes their logits,
and the activations on the way.
It needs numpy alone: safetensors files are read and written here, as a port in any other language would.
"""

from __future__ import annotations

import json
import sys
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ids = NDArray[np.int64]

DTYPES = {"F16": np.float16, "BF16": np.uint16, "F32": np.float32, "F64": np.float64, "I64": np.int64}


def read(file: Path) -> dict[str, NDArray[Any]]:
    """The tensors of a safetensors file: 8 bytes with the length of a JSON header, the header, the data."""
    raw = np.memmap(file, np.uint8, "r")
    start = 8 + int(raw[:8].view("<u8")[0])
    header = json.loads(bytes(raw[8:start]))
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = raw[start + begin : start + end].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
        if entry["dtype"] == "BF16":  # the upper half of a float32
            data = (data.astype(np.uint32) << 16).view(np.float32)
        tensors[name] = data
    return tensors


def write(file: Path, tensors: dict[str, Floats]) -> None:
    """Write tensors as a safetensors file."""
    ends = list(accumulate((tensor.nbytes for tensor in tensors.values()), initial=0))
    header = {
        name: {"dtype": "F32", "shape": tensor.shape, "data_offsets": span}
        for (name, tensor), span in zip(tensors.items(), pairwise(ends), strict=True)
    }
    text = json.dumps(header).encode()
    with file.open("wb") as stream:
        stream.write(len(text).to_bytes(8, "little") + text)
        for tensor in tensors.values():
            stream.write(np.ascontiguousarray(tensor, np.float32).tobytes())


def read_weights(folder: Path) -> dict[str, Floats]:
    """All weights of a checkpoint, of one file or of several, in float32."""
    files = sorted(folder.glob("*.safetensors"))
    return {name: np.asarray(tensor, np.float32) for file in files for name, tensor in read(file).items()}


def frequencies(rope: dict[str, Any], head_dim: int) -> Floats:
    """By how much each pair of a head turns from one position to the next, [head_dim / 2]."""
    plain = rope["rope_theta"] ** -(np.arange(0, head_dim, 2) / head_dim)
    kind = rope.get("rope_type", "default")
    if kind == "default":
        return plain.astype(np.float32)
    if kind != "llama3":
        raise SystemExit(f"this port knows no rope_type {kind}")
    # What turns often within the original context stays, what hardly turns is stretched, between they blend.
    turns = rope["original_max_position_embeddings"] * plain / (2 * np.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    kept = np.clip((turns - low) / (high - low), 0, 1)
    return (kept * plain + (1 - kept) * plain / rope["factor"]).astype(np.float32)


class Llama:
    """A decoder with RMSNorm, rotary positions, grouped heads and a gated feed-forward.

    Windows where the config has them; biases, and norms on queries and keys, where the weights do.
    """

    def __init__(self, folder: Path) -> None:
        config = json.loads((folder / "config.json").read_text())
        rope = config.get("rope_parameters") or {"rope_theta": config.get("rope_theta", 10000.0)}
        if config["model_type"] not in ("llama", "qwen3") or config["hidden_act"] != "silu":
            raise SystemExit("this port knows llama and qwen3, with SiLU")
        self.weights = read_weights(folder)
        self.layers: int = config["num_hidden_layers"]
        self.heads: int = config["num_attention_heads"]
        self.kv_heads: int = config["num_key_value_heads"]
        self.head_dim: int = config.get("head_dim") or config["hidden_size"] // self.heads
        self.eps = np.float32(config["rms_norm_eps"])
        self.frequencies = frequencies(rope, self.head_dim)
        kinds = config.get("layer_types") or ["full_attention"] * self.layers
        self.windows: list[int | None] = [
            config["sliding_window"] if kind == "sliding_attention" else None for kind in kinds
        ]
        self.points: dict[str, Floats] = {}  # activations of the last call, by archc's names: shown if a port fails

    def __call__(
        self, ids: Ids, positions: Ids | None, mask: Ids | None, cache: dict[int, tuple[Floats, Floats]]
    ) -> Floats:
        """Logits [batch, tokens, vocab] of ids [batch, tokens].

        positions [batch, tokens] count on from the cache by themselves, and mask [batch, cached + tokens] (1: a token,
        0: padding) is of ones, unless given. The keys and values of a layer [batch, kv_heads, tokens, head_dim] are
        added to those in the cache.
        """
        past = cache[0][0].shape[2] if cache else 0
        slots = np.arange(past, past + ids.shape[1])
        if positions is None:
            positions = np.broadcast_to(slots, ids.shape)
        allowed = (np.arange(past + ids.shape[1]) <= slots[:, None])[None, None]  # [1, 1, tokens, past + tokens]
        if mask is not None:
            allowed = allowed & mask[:, None, None, :].astype(bool)
        x = self.points["embed"] = self.weights["model.embed_tokens.weight"][ids]
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}."
            x = x + self.attention(layer, self.norm(x, prefix + "input_layernorm"), positions, allowed, cache)
            h = self.norm(x, prefix + "post_attention_layernorm")
            gate = self.linear(h, prefix + "mlp.gate_proj")
            gated = gate / (1 + np.exp(-gate)) * self.linear(h, prefix + "mlp.up_proj")
            x = self.points[f"layers.{layer}.out"] = x + self.linear(gated, prefix + "mlp.down_proj")
        x = self.points["final_norm"] = self.norm(x, "model.norm")
        return self.linear(x, "lm_head" if "lm_head.weight" in self.weights else "model.embed_tokens")

    def attention(
        self,
        layer: int,
        x: Floats,
        positions: Ids,
        allowed: NDArray[np.bool_],
        cache: dict[int, tuple[Floats, Floats]],
    ) -> Floats:
        """What a layer's attention adds; query head h reads key/value head h // (heads / kv_heads)."""
        prefix = f"model.layers.{layer}.self_attn."
        q = self.split(self.linear(x, prefix + "q_proj"), self.heads)
        k = self.split(self.linear(x, prefix + "k_proj"), self.kv_heads)
        if prefix + "q_norm.weight" in self.weights:
            q, k = self.norm(q, prefix + "q_norm"), self.norm(k, prefix + "k_norm")
        q, k = self.rotate(q, positions), self.rotate(k, positions)
        v = self.split(self.linear(x, prefix + "v_proj"), self.kv_heads)
        if layer in cache:
            k, v = (np.concatenate(pair, axis=2) for pair in zip(cache[layer], (k, v), strict=True))
        cache[layer] = k, v
        if (window := self.windows[layer]) is not None:  # by places in the row: positions may have gaps
            places = np.arange(k.shape[2])
            allowed = allowed & (places > places[-x.shape[1] :, None] - window)
        k, v = (np.repeat(one, self.heads // self.kv_heads, axis=1) for one in (k, v))
        scores = q @ k.swapaxes(-1, -2) * np.float32(self.head_dim**-0.5)
        # Not -inf: a row of padding alone would be 0 / 0, and not a number.
        scores = np.where(allowed, scores, np.finfo(np.float32).min)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        mixed = scores / scores.sum(-1, keepdims=True) @ v
        return self.linear(mixed.swapaxes(1, 2).reshape(x.shape[0], x.shape[1], -1), prefix + "o_proj")

    def rotate(self, x: Floats, positions: Ids) -> Floats:
        """Rotary positions of x [batch, heads, tokens, head_dim]: element i turns with element i + head_dim / 2."""
        angles = positions[:, None, :, None].astype(np.float32) * self.frequencies
        cos, sin = np.cos(angles), np.sin(angles)
        a, b = np.split(x, 2, axis=-1)
        return np.concatenate((a * cos - b * sin, b * cos + a * sin), axis=-1)

    def split(self, x: Floats, heads: int) -> Floats:
        """[batch, tokens, heads · head_dim] as [batch, heads, tokens, head_dim]."""
        return x.reshape(x.shape[0], x.shape[1], heads, self.head_dim).swapaxes(1, 2)

    def norm(self, x: Floats, name: str) -> Floats:
        """RMSNorm."""
        scale: Floats = 1 / np.sqrt(np.square(x).mean(-1, keepdims=True) + self.eps)
        return self.weights[name + ".weight"] * (x * scale)

    def linear(self, x: Floats, name: str) -> Floats:
        """A matrix stored as [out, in], and its bias where it has one."""
        product: Floats = x @ self.weights[name + ".weight"].T
        return product + self.weights[name + ".bias"] if name + ".bias" in self.weights else product


def main(weights: Path, probes: Path, out: Path) -> None:
    """Run the probes of a file, each from an empty cache."""
    model = Llama(weights)
    given = read(probes)
    answers = {}
    for name in [key.removesuffix("/input_ids") for key in given if key.endswith("/input_ids")]:
        ids, positions, mask, chunks = (
            given.get(f"{name}/{what}") for what in ("input_ids", "position_ids", "attention_mask", "chunks")
        )
        assert ids is not None
        cache: dict[int, tuple[Floats, Floats]] = {}
        if chunks is None:
            answers[f"{name}/logits"] = model(ids, positions, mask, cache)
            answers |= {f"{name}/{point}": values for point, values in model.points.items()}
        else:
            pieces = np.split(ids, np.cumsum(chunks)[:-1], axis=1)
            answers[f"{name}/logits"] = np.concatenate([model(piece, None, None, cache) for piece in pieces], axis=1)
    write(out, answers)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
