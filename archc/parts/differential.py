"""Differential attention: what two softmax maps have in common is noise, and cancels (Ye et al. 2024).

Head i of the first half and head i of the second make a pair. Each attends by itself, to the values of two key/value
heads side by side. The output of the second, times lambda, is taken from that of the first, and what is left is normed
(transformers 5.24, models/diffllama/modeling_diffllama.py).
"""

from __future__ import annotations

from typing import Final, Self

from msgspec import structs

from archc.parts.attention import Attention
from archc.parts.base import Tensor
from archc.parts.norm import Norm, NormFields

_ANY: Final = {
    "hidden_size", "input_size", "heads", "kv_heads", "head_dim", "biased", "scale", "window", "window_rows", "chunk",
    "rope", "copies", "pair_norm",
}  # fmt: skip
"""Fields that can be generated with any value."""
_USUAL: Final = {"grouping": "interleaved", "values": "projected", "kv": "own", "sinks": "none"}
_OF_NORMS: Final = {"qk_norm_over", "qk_norm_order"}


class DifferentialAttention(Attention, frozen=True):
    """Attention of heads / 2 pairs."""

    pair_norm: Norm
    """What is done to the output of a pair."""

    partial = "differential.py.j2"

    @classmethod
    def of(cls, attention: Attention, norm: NormFields) -> Self:
        """The same attention in pairs; their norm has no weight, and the eps of `norm`."""
        pair_norm = Norm("rmsnorm", 2 * attention.value_dim, norm.eps, "none", bias=False)
        return cls(**structs.asdict(attention), pair_norm=pair_norm)

    @property
    def conventions(self) -> tuple[str, ...]:
        """What the arithmetic counts, where the reference does more."""
        own = "differential attention: scores are counted once, and weigh the values of both heads of a pair"
        return (own, *super().conventions)

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of attention that cannot be generated together with this one."""
        usual = _USUAL | {"value_dim": self.head_dim}
        others = (name for name in self.__struct_fields__ if name not in _ANY | _OF_NORMS)
        found = (name for name in others if (getattr(self, name) or None) != usual.get(name))
        return (*super().ungenerated(), *(f"attention.differential with {name}" for name in found))

    def tensors(self) -> tuple[Tensor, ...]:
        """What attention has, and four vectors [head_dim] that lambda is made of."""
        own = (Tensor(f"lambda_{name}", (self.head_dim,), "attention") for name in ("q1", "k1", "q2", "k2"))
        return (*super().tensors(), *own)

    @property
    def weighed_width(self) -> int:
        """Channels of all the values that heads weigh: both of a pair's."""
        return 2 * self.o_width
