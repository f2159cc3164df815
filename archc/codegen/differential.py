"""Differential attention in a generated module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

from archc.codegen.attention import AttentionView
from archc.codegen.naming import Names, Variant
from archc.codegen.norms import NormCall, Norms
from archc.codegen.rotation import Turn
from archc.parts.attention import Attention
from archc.parts.differential import DifferentialAttention


@dataclass(frozen=True, slots=True)
class DifferentialView(AttentionView):
    """One class of differential attention."""

    pair_norm: NormCall

    @classmethod
    def of(cls, part: Attention, names: Names, norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of an attention in pairs, with the names of the norm and rotation that it calls."""
        plain = AttentionView.of(part, names, norms, turns)
        assert isinstance(part, DifferentialAttention)
        pair_norm = norms.call(part.pair_norm, f"2 * {names.HEAD_DIM}")
        return cls(**{field.name: getattr(plain, field.name) for field in fields(plain)}, pair_norm=pair_norm)

    @property
    def needs_math(self) -> bool:
        """How much is taken away at first depends on the depth, by an exponential."""
        return True

    @property
    def summary(self) -> str:
        """The docstring of the class."""
        return f"{self.part.heads // 2} pairs of heads: what both attend to is taken away."

    @staticmethod
    def words(part: Attention) -> str:
        """What the header says of it."""
        pairs = "differential: the second half of the heads, times a learned lambda, is taken from the first"
        return f"{AttentionView.words(part)}; {pairs}"
