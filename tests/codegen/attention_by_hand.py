"""Attention written out head by head, query by query: what the language says, in no one's code but this."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

TOKENS = 23
EPS = 3e-3
HEADS, KV_HEADS, HEAD_DIM = 6, 2, 16
Section = dict[str, Any]


def normed(x: Tensor, kind: str, weight: Tensor | None) -> Tensor:
    """Divided by the root mean square, or by the deviation."""
    if kind == "layernorm":
        x = x - x.mean(-1, keepdim=True)
    x = x / (x.square().mean(-1, keepdim=True) + EPS).sqrt()
    return x if weight is None else x * weight


def turned(x_TC: Tensor) -> Tensor:
    """Channel i turns with channel i + 8 by position · 5300^(-i/8)."""
    out = x_TC.clone()
    for n in range(len(x_TC)):
        for i in range(HEAD_DIM // 2):
            angle = n * 5300 ** (-i / (HEAD_DIM // 2))
            a, b = x_TC[n, i], x_TC[n, i + HEAD_DIM // 2]
            out[n, i] = a * math.cos(angle) - b * math.sin(angle)
            out[n, i + HEAD_DIM // 2] = b * math.cos(angle) + a * math.sin(angle)
    return out


def growth(fields: Section, n: int) -> float:
    """What multiplies the query at position n."""
    x = (n + fields.get("first", 0)) / fields["length"]
    strength: float = fields["strength"]
    forms: dict[str, float] = {
        "steps": 1 + strength * math.log(1 + math.floor(x)),
        "beyond": 1 + strength * math.log(max(x, 1)),
        "power": (1 + x) ** strength,
    }
    return forms[fields["form"]]


def slope(max_bias: float, head: int, heads: int) -> float:
    """As the paper's code gives it: the slopes of a power of two, then every other of twice as many."""
    power = 2 ** int(math.log2(heads))
    if head < power:
        return float(2 ** (-max_bias * (head + 1) / power))
    return float(2 ** (-max_bias * (2 * (head - power) + 1) / (2 * power)))


def by_hand(a: Section, position: Section, w: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """The output of an attention with these fields for its input [T, D]."""
    heads, kv_heads = a.get("heads", HEADS), a.get("kv_heads", KV_HEADS)
    value_dim, factors = a.get("value_dim", HEAD_DIM), a.get("factors", {})
    qk, gate, growing = a.get("qk_norm"), a.get("gate"), a.get("query_scale")
    rope, alibi = position["kind"] == "rope", position["kind"] == "alibi"

    def projected(name: str, source: Tensor) -> Tensor:
        found: Tensor = source @ w[f"{name}.weight"].T + w.get(f"{name}.bias", torch.zeros(()))
        return found

    def clipped(y: Tensor) -> Tensor:
        return y.clamp(-a["clip"], a["clip"]) if "clip" in a else y

    def qk_normed(name: str, y: Tensor, when: str) -> Tensor:
        """Of all heads, [T, heads, C]."""
        if qk is None or (qk.get("order", "before_rope") if rope else "before_rope") != when:
            return y
        kind, weight = qk.get("kind", "rmsnorm"), w.get(f"{name}.weight")
        if qk["over"] == "width":
            return normed(y.flatten(1), kind, weight).view_as(y)
        each = [weight[h] if qk["over"] == "each_head" and weight is not None else weight for h in range(y.shape[1])]
        return torch.stack([normed(y[:, h], kind, each[h]) for h in range(y.shape[1])], 1)

    source = x * factors.get("input", 1)
    q = projected("q", source).view(TOKENS, heads, HEAD_DIM)
    k = projected("k", source).view(TOKENS, kv_heads, HEAD_DIM) * factors.get("key", 1)
    v = k if a.get("values") == "keys" else projected("v", source).view(TOKENS, kv_heads, value_dim)
    q, k = clipped(qk_normed("q_norm", q, "before_rope")), clipped(qk_normed("k_norm", k, "before_rope"))
    v = clipped(normed(v, "rmsnorm", None) if a.get("v_norm") else v) * a.get("value_scale", 1)
    if rope:
        q = torch.stack([turned(q[:, h]) for h in range(heads)], 1)
        k = torch.stack([turned(k[:, h]) for h in range(kv_heads)], 1)
    q, k = qk_normed("q_norm", q, "after_rope"), qk_normed("k_norm", k, "after_rope")
    if growing:
        q = q * torch.tensor([growth(growing, n) for n in range(TOKENS)])[:, None, None]

    out = torch.zeros(TOKENS, heads, value_dim)
    for h in range(heads):
        kv = h % kv_heads if a.get("grouping") == "tiled" else h // (heads // kv_heads)
        for n in range(TOKENS):
            first = n // a["chunk"] * a["chunk"] if "chunk" in a else max(0, n + 1 - a.get("window", TOKENS))
            scores = k[first : n + 1, kv] @ q[n, h]
            far = torch.arange(first, n + 1) - n
            if alibi and position.get("scaled"):
                scores = scores + slope(position.get("max_bias", 8), h, heads) * far
            scores = scores * a.get("scale", HEAD_DIM**-0.5)
            if alibi and not position.get("scaled"):
                scores = scores + slope(position.get("max_bias", 8), h, heads) * far
            if "softcap" in a:
                scores = a["softcap"] * torch.tanh(scores / a["softcap"])
            sink = w["sinks"][h].exp() if a.get("sinks") == "column" else 0
            out[n, h] = scores.exp() / (scores.exp().sum() + sink) @ v[first : n + 1, kv]
            if a.get("sinks") == "sigmoid":
                out[n, h] *= torch.sigmoid(scores.logsumexp(0) - w["sinks"][h])
    if gate:
        z = projected("gate", x).view(TOKENS, heads, 1 if gate["over"] == "head" else value_dim)
        z = z + w["gate_bias"][:, None] if gate.get("head_bias") else z
        out = out * (torch.log1p(z.exp()) if gate.get("score") == "softplus" else torch.sigmoid(z))
    y = out.flatten(1)
    if a.get("output_norm"):
        y = normed(y, "rmsnorm", w["output_norm.weight"])
    found: Tensor = projected("o", y) * factors.get("output", 1)
    return found
