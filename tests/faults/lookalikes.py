"""Ports that look wrong and are not: what they do differently changes no probability, or nothing at all."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.faults.feed_forward import SUMMED, softmax_of_chosen
from tests.faults.planting import Planting, every, identity, patched, rewritten, within, wrapped
from tests.faults.positions import LLAMA, interleaved

ORDER = torch.tensor([3, 0, 11, 7, 14, 1, 9, 5, 12, 2, 15, 6, 10, 4, 13, 8])
"""An order of the 16 channels of a head."""


def _permuted(model: Any) -> Any:
    """Rows of queries and keys are stored for pairs side by side, and these turn."""
    for module in within(model, "q_proj k_proj"):
        heads = module.weight.data.unflatten(0, (-1, 16))
        first, second = heads.chunk(2, dim=1)
        module.weight.data = torch.stack((first, second), dim=2).flatten(1, 2).flatten(0, 1)
    return patched(model, apply_rotary_pos_emb=interleaved)


def _reordered(original: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Any:
    """Channels of queries and keys change places behind the rotation, in the same way."""
    q, k = original(q, k, cos, sin)
    return q[..., ORDER], k[..., ORDER]


def _normed_first(model: Any) -> Any:
    """NanoChat's norms of heads, which have no gain, before the rotation."""
    for module in within(model, "self_attn"):
        module.norms = (module.q_norm.forward, module.k_norm.forward)
    norm = within(model, "layers.0.self_attn.q_norm")[0].forward
    identity(model, "q_norm k_norm")

    def turn(original: Any, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Any:
        return original(norm(q), norm(k), cos, sin)

    return patched(model, apply_rotary_pos_emb=turn)


def _folded(model: Any) -> Any:
    """The scale of scores is in the weights of queries."""

    def scale(module: Any) -> None:
        module.weight *= 16**-0.5

    return every(rewritten(model, "q_proj", scale), "self_attn", scaling=1.0)


def _shifted(model: Any) -> Any:
    """All logits of a position are higher by the first of them: probabilities are the same."""

    def shift(_module: Any, forward: Any) -> Any:
        def run(x: Tensor) -> Tensor:
            logits: Tensor = forward(x)
            return logits + logits[..., :1]

        return run

    return wrapped(model, "lm_head", shift)


SAME = (
    Planting("permuted rows, other pairing", None, LLAMA, _permuted),
    Planting("common permutation of q and k", None, LLAMA, lambda m: patched(m, apply_rotary_pos_emb=_reordered)),
    Planting("softmax of the chosen, renormalised", None, SUMMED, softmax_of_chosen),
    Planting("norm without gain before turning", None, "zoo/nanochat", _normed_first),
    Planting("scale folded into queries", None, LLAMA, _folded),
)
"""These compute the same logits."""

SHIFTED = Planting("constant added to all logits", None, LLAMA, _shifted)
"""This computes other logits, and the same probabilities."""
