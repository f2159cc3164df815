"""Attention with grouped key/value heads in a generated module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from archc.codegen.constants import Constant
from archc.codegen.naming import Variant, literal
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import MixerView
from archc.codegen.rotation import Turn, function_of
from archc.parts.attention import Attention


@dataclass(frozen=True, slots=True)
class AttentionView(MixerView[Attention]):
    """One attention class."""

    q_norm: NormCall | None
    k_norm: NormCall | None
    rotate: str | None

    @classmethod
    def of(cls, variant: Variant[Attention], norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of an attention, with the names of the norms and rotations that it calls."""
        part, p = variant.value, variant.constant_prefix
        q_size, k_size = ("HEAD_DIM", "HEAD_DIM") if part.qk_norm_over == "head" else ("Q_WIDTH", "KV_WIDTH")
        return cls(
            name=f"{variant.class_prefix}Attention",
            constants=p,
            part=part,
            q_norm=norms.call(part.q_norm, p + q_size) if part.q_norm else None,
            k_norm=norms.call(part.k_norm, p + k_size) if part.k_norm else None,
            rotate=function_of(part.rope, turns),
        )

    @staticmethod
    def without_arguments(part: Attention) -> Attention:
        """The attention without which keys are visible and which table turns it."""
        rope = part.rope
        if rope is not None:
            rope = replace(rope, base=2.0, scaling=None, attention_factor=1.0)
        return replace(part, window=None, window_rows="dropped", rope=rope)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it is given beside the stream and the cache."""
        return ("rotation", "visible_BTS") if self.rotate else ("visible_BTS",)

    @property
    def cached(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Heads and channels of keys and of values."""
        found = (f"{self.constants}KV_HEADS", f"{self.constants}HEAD_DIM")
        return found, found

    @staticmethod
    def cached_sizes(part: Attention) -> tuple[tuple[int, int], tuple[int, int]]:
        """The same in numbers."""
        return (part.kv_heads, part.head_dim), (part.kv_heads, part.value_dim)

    @property
    def sizes(self) -> Iterator[Constant]:
        """Sizes and scales."""
        part, p = self.part, self.constants
        yield Constant(f"{p}HEADS", literal(part.heads))
        yield Constant(f"{p}KV_HEADS", literal(part.kv_heads), "key/value heads")
        yield Constant(f"{p}HEAD_DIM", literal(part.head_dim), "channels of a head")
        yield Constant(f"{p}Q_WIDTH", f"{p}HEADS * {p}HEAD_DIM")
        yield Constant(f"{p}KV_WIDTH", f"{p}KV_HEADS * {p}HEAD_DIM")
        if part.scale == part.head_dim**-0.5:
            yield Constant(f"{p}ATTENTION_SCALE", f"{p}HEAD_DIM**-0.5")
        else:
            yield Constant(f"{p}ATTENTION_SCALE", literal(part.scale), "not HEAD_DIM**-0.5")
        if part.softcap is not None:
            yield Constant(f"{p}ATTENTION_SOFTCAP", literal(part.softcap))

    @property
    def soft_caps(self) -> bool:
        """Whether scores are capped."""
        return self.part.softcap is not None

    @property
    def normed(self) -> str:
        """What the norm of queries and keys runs over, and when: `width before`, `head after` … or nothing."""
        if self.q_norm is None:
            return ""
        after = self.rotate is not None and self.part.qk_norm_order == "after_rope"
        return f"{self.part.qk_norm_over} {'after' if after else 'before'}"

    @property
    def group(self) -> str:
        """How many query heads share a key/value head, as an expression."""
        return f"{self.constants}HEADS // {self.constants}KV_HEADS"

    @property
    def summary(self) -> str:
        """The docstring of an attention class."""
        part = self.part
        if part.kv_heads == part.heads:
            return f"{part.heads} heads, each with keys and values of its own."
        if part.grouping == "tiled":
            return f"{part.heads} query heads share {_key_value_heads(part)} in turn."
        if part.kv_heads == 1:
            return f"{part.heads} query heads share one key/value head."
        return f"{part.group_size} neighbouring query heads share each of {_key_value_heads(part)}."

    @staticmethod
    def words(part: Attention) -> str:
        """What the header says of it."""
        text = f"{part.heads} heads of {part.head_dim} channels"
        if part.kv_heads < part.heads:
            text = f"{part.heads} query heads of {part.head_dim} channels share {_key_value_heads(part)}"
        if part.biased:
            text += "; biases on " + ", ".join(name for name in "qkvo" if name in part.biased)
        if part.q_norm:
            over = "each head" if part.qk_norm_over == "head" else "all heads together"
            when = "" if part.rope is None else f" {part.qk_norm_order.replace('_', ' ').replace('rope', 'turning')}"
            text += f"; queries and keys are normed over {over}{when}"
        if part.softcap:
            text += f"; scores are capped at {part.softcap:g}"
        return text


def _key_value_heads(part: Attention) -> str:
    return "1 key/value head" if part.kv_heads == 1 else f"{part.kv_heads} key/value heads"
