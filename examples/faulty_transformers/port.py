"""Transformers' Llama with one deliberate mistake each, as ports really have had: the gate must fail them all.

`archc validate smollm2-135m --port examples/faulty_transformers/port.py:tiled`. What is right is here too: `clean`, and
`permuted`, which rotates interleaved pairs of weights that lie to suit, and must pass.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers.models.llama.modeling_llama import (
    LlamaAttention,
    LlamaForCausalLM,
    LlamaRMSNorm,
    LlamaRotaryEmbedding,
)


class Attention(LlamaAttention):
    """Attention as transformers has it, in steps that can go wrong."""

    def forward(
        self,
        hidden_states: Tensor,
        position_embeddings: tuple[Tensor, Tensor],
        attention_mask: Tensor,
        cache: Any = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        """What attention adds to hidden_states [batch, tokens, hidden], and its weights."""
        batch, tokens, _hidden = hidden_states.shape
        project = (self.q_proj, self.k_proj, self.v_proj)
        q, k, v = (linear(hidden_states).view(batch, tokens, -1, self.head_dim).transpose(1, 2) for linear in project)
        q, k = self.rotate(q, *position_embeddings), self.rotate(k, *position_embeddings)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)
        scores = q @ self.expand(k).transpose(2, 3) * self.scaling + self.masked(attention_mask)
        weights = scores.softmax(-1)
        mixed = (weights @ self.expand(v)).transpose(1, 2).reshape(batch, tokens, -1)
        return self.o_proj(mixed), weights

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """Element i of x [batch, heads, tokens, head_dim] turns with element i + head_dim / 2."""
        a, b = x.chunk(2, dim=-1)
        return x * cos[:, None] + torch.cat((-b, a), dim=-1) * sin[:, None]

    def expand(self, x: Tensor) -> Tensor:
        """Heads of a group stand beside one another."""
        return x.repeat_interleave(self.num_key_value_groups, dim=1)

    def masked(self, mask: Tensor) -> Tensor:
        """What is added to the scores [batch, 1, tokens, keys]."""
        return mask


class InterleavedAttention(Attention):
    """Element 2i turns with element 2i + 1."""

    def rotate(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The other of the two conventions."""
        cos, sin = (half.chunk(2, dim=-1)[0].repeat_interleave(2, dim=-1)[:, None] for half in (cos, sin))
        turned = torch.stack((-x[..., 1::2], x[..., 0::2]), dim=-1).flatten(-2)
        return x * cos + turned * sin


class TiledAttention(Attention):
    """Query head h reads key/value head h mod kv_heads."""

    def expand(self, x: Tensor) -> Tensor:
        """Heads of a group stand kv_heads apart."""
        return x.repeat(1, self.num_key_value_groups, 1, 1)


class AheadAttention(Attention):
    """Every token sees the next one."""

    def masked(self, mask: Tensor) -> Tensor:
        """The diagonal lies one too far to the right."""
        return torch.cat((mask[..., :1], mask[..., :-1]), dim=-1)


class CentringNorm(LlamaRMSNorm):
    """LayerNorm in the place of RMSNorm."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        """The mean is taken away first."""
        return super().forward(hidden_states - hidden_states.mean(-1, keepdim=True))


class RestartingRotary(LlamaRotaryEmbedding):
    """Positions begin at nought at every call, with a cache or without."""

    def forward(self, x: Tensor, position_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Right for a prompt, wrong for every step after it."""
        return super().forward(x, position_ids - position_ids[:, :1])


class PaddingBlindModel(LlamaForCausalLM):
    """Padding is read like any token."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        position_ids: Tensor | None = None,
        cache: Any = None,
        **more: Any,
    ) -> Any:
        """The mask is of ones, whatever it was."""
        ones = None if attention_mask is None else torch.ones_like(attention_mask)
        return super().forward(input_ids, attention_mask=ones, position_ids=position_ids, cache=cache, **more)


def clean(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """No mistake."""
    model: LlamaForCausalLM = LlamaForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager")
    return model.eval()


def interleaved(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Rotary pairs of the other convention."""
    return _with_attention(clean(weights, dtype), InterleavedAttention)


@torch.no_grad()
def permuted(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """No mistake: rotary pairs of the other convention, and the rows of q and k where they belong then."""
    model = interleaved(weights, dtype)
    for layer in model.model.layers:
        for linear in (layer.self_attn.q_proj, layer.self_attn.k_proj):
            rows = linear.weight.view(-1, 2, layer.self_attn.head_dim // 2, linear.in_features)
            linear.weight.copy_(rows.transpose(1, 2).reshape_as(linear.weight).clone())
    return model


def tiled(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Key/value heads dealt out in turn."""
    return _with_attention(clean(weights, dtype), TiledAttention)


def sees_ahead(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """A mask that is off by one."""
    return _with_attention(clean(weights, dtype), AheadAttention)


def wrong_scale(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Scores divided by head_dim, not by its square root."""
    model = clean(weights, dtype)
    for layer in model.model.layers:
        layer.self_attn.scaling = 1 / layer.self_attn.head_dim
    return model


def wrong_base(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Rotary base 10,000, the default of many a config."""
    model = clean(weights, dtype)
    table = model.model.rotary_emb.inv_freq
    table.copy_(10_000.0 ** (-torch.arange(len(table)) / len(table)))
    return model


def rounded_frequencies(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Rotary frequencies that went through bfloat16."""
    model = clean(weights, dtype)
    table = model.model.rotary_emb.inv_freq
    table.copy_(table.bfloat16())
    return model


def layernorm(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """LayerNorm for RMSNorm."""
    model = clean(weights, dtype)
    for norm in _norms(model):
        norm.__class__ = CentringNorm
    return model


def wrong_eps(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """eps 1e-6, the default of many a config."""
    model = clean(weights, dtype)
    for norm in _norms(model):
        norm.variance_epsilon = 1e-6
    return model


def gelu(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """GELU for SiLU."""
    model = clean(weights, dtype)
    for layer in model.model.layers:
        layer.mlp.act_fn = nn.GELU()
    return model


def swapped_gate(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """The activation on the other half of the gated feed-forward."""
    model = clean(weights, dtype)
    for layer in model.model.layers:
        layer.mlp.gate_proj, layer.mlp.up_proj = layer.mlp.up_proj, layer.mlp.gate_proj
    return model


def restarts(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Positions that do not go on behind the cache."""
    model = clean(weights, dtype)
    model.model.rotary_emb.__class__ = RestartingRotary
    return model


def reads_padding(weights: Path, dtype: torch.dtype) -> LlamaForCausalLM:
    """Padding that is not masked."""
    model = clean(weights, dtype)
    model.__class__ = PaddingBlindModel
    return model


RIGHT = (clean, permuted)
FAULTS: tuple[Callable[[Path, torch.dtype], LlamaForCausalLM], ...] = (
    interleaved,
    tiled,
    sees_ahead,
    wrong_scale,
    wrong_base,
    rounded_frequencies,
    layernorm,
    wrong_eps,
    gelu,
    swapped_gate,
    restarts,
    reads_padding,
)


def _with_attention(model: LlamaForCausalLM, kind: type[Attention]) -> LlamaForCausalLM:
    for layer in model.model.layers:
        layer.self_attn.__class__ = kind
    return model


def _norms(model: LlamaForCausalLM) -> list[LlamaRMSNorm]:
    return [module for module in model.modules() if isinstance(module, LlamaRMSNorm)]
