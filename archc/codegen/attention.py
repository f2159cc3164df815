"""Attention with grouped key/value heads in a generated module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from archc.codegen.attention_words import attention_words, key_value_heads
from archc.codegen.constants import Constant
from archc.codegen.inputs import without_inputs
from archc.codegen.naming import Variant, literal
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import MixerView
from archc.codegen.rotation import Turn, function_of
from archc.codegen.scales import SCALES, from_table
from archc.parts.attention import Attention


@dataclass(frozen=True, slots=True)
class AttentionView(MixerView[Attention]):
    """One attention class."""

    norms: Mapping[str, NormCall]
    rotate: str | None

    @classmethod
    def of(cls, variant: Variant[Attention], norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of an attention, with the names of the norms and rotations that it calls."""
        part, p = variant.value, variant.constant_prefix
        by_head = part.qk_norm_over == "head"
        sizes = {
            "q_norm": (f"{p}HEAD_DIM" if by_head else f"{p}Q_WIDTH", f"{p}HEADS"),
            "k_norm": (f"{p}HEAD_DIM" if by_head else f"{p}KV_WIDTH", f"{p}KV_HEADS"),
            "v_norm": (p + _value_dim(part), ""),
            "output_norm": (p + _output_width(part), ""),
        }
        return cls(
            name=f"{variant.class_prefix}Attention",
            constants=p,
            part=part,
            norms={name: norms.call(norm, *sizes[name]) for name, norm in part.norms.items()},
            rotate=function_of(part.rope, turns),
        )

    @staticmethod
    def without_arguments(part: Attention) -> Attention:
        """The attention without which keys are visible, which table turns it, and what depends on distance."""
        return without_inputs(part)

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it is given beside the stream and the cache."""
        found = {
            "rotation": self.rotate is not None,
            "growth_B1T1": self.part.query_scale is not None,
            "alibi_HTS": self.part.alibi is not None,
            "visible_BTS": True,
        }
        return tuple(name for name, is_given in found.items() if is_given)

    @property
    def parameters(self) -> list[str]:
        """The parameters of its forward pass."""
        given = [f"{name}: {'tuple[Tensor, Tensor]' if name == 'rotation' else 'Tensor'}" for name in self.inputs]
        return ["self", "x_BTD: Tensor", *given, "cache: Cache | None"]

    @property
    def cached(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Heads and channels of keys and of values."""
        p = self.constants
        return (f"{p}KV_HEADS", f"{p}HEAD_DIM"), (f"{p}KV_HEADS", self.value_dim)

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
        if part.value_dim != part.head_dim:
            yield Constant(f"{p}VALUE_DIM", literal(part.value_dim), "channels of a head of values")
        yield Constant(f"{p}Q_WIDTH", f"{p}HEADS * {p}HEAD_DIM")
        yield Constant(f"{p}KV_WIDTH", f"{p}KV_HEADS * {p}HEAD_DIM")
        if part.value_dim != part.head_dim:
            yield Constant(f"{p}V_WIDTH", f"{p}KV_HEADS * {p}VALUE_DIM")
            yield Constant(f"{p}O_WIDTH", f"{p}HEADS * {p}VALUE_DIM")
        if part.scale == part.head_dim**-0.5:
            yield Constant(f"{p}ATTENTION_SCALE", f"{p}HEAD_DIM**-0.5")
        elif not from_table(part):
            yield Constant(f"{p}ATTENTION_SCALE", literal(part.scale), "not HEAD_DIM**-0.5")
        if part.dynamic_mask:
            yield Constant(f"{p}KEPT_KEYS", literal(part.dynamic_mask.keep), "keys a query sees at most")
        for name, number in self._factors.items():
            yield Constant(f"{p}{name}", literal(number))

    @property
    def _factors(self) -> Mapping[str, float]:
        """Numbers that clamp, cap or multiply."""
        part, factors = self.part, self.part.factors
        found = {
            "QKV_CLIP": part.clip,
            "VALUE_SCALE": part.value_scale,
            "ATTENTION_SOFTCAP": part.softcap,
            "ATTENTION_INPUT_FACTOR": factors.input if factors and factors.input != 1 else None,
            "KEY_FACTOR": factors.key if factors and factors.key != 1 else None,
            "ATTENTION_OUTPUT_FACTOR": factors.output if factors and factors.output != 1 else None,
        }
        return {name: number for name, number in found.items() if number is not None}

    def times(self, name: str) -> str:
        """` * NAME` where it has that factor."""
        return f" * {self.constants}{name}" if name in self._factors else ""

    @property
    def scale(self) -> str:
        """What multiplies the products of queries and keys."""
        return "self.scale" if from_table(self.part) else f"{self.constants}ATTENTION_SCALE"

    @property
    def scale_in_table(self) -> str | None:
        """The expression of a scale that is another in every layer."""
        return f"{SCALES}[layer]" if from_table(self.part) else None

    @property
    def soft_caps(self) -> bool:
        """Whether scores are capped."""
        return self.part.softcap is not None

    @property
    def explicit(self) -> bool:
        """Whether something is done to scores that torch's attention cannot do."""
        return self.part.softcap is not None or self.part.sinks != "none" or self.part.alibi is not None

    @property
    def value_dim(self) -> str:
        """Channels of a head of values."""
        return self.constants + _value_dim(self.part)

    @property
    def linears(self) -> Mapping[str, tuple[str, str, str]]:
        """Sizes of its projections, and whether they have biases."""
        part, p = self.part, self.constants
        sizes = {
            "q": ("WIDTH", f"{p}Q_WIDTH"),
            "k": ("WIDTH", f"{p}KV_WIDTH"),
            "v": ("WIDTH", p + ("KV_WIDTH" if part.value_dim == part.head_dim else "V_WIDTH")),
            "o": (p + _output_width(part), "WIDTH"),
        }
        found: dict[str, tuple[str, str, str]]
        found = {name: (*sizes[name], f"bias={name in part.biased}") for name in part.projections}
        if part.gate:
            width = f"{p}HEADS" if part.gate.over == "head" else p + _output_width(part)
            found["gate"] = ("WIDTH", width, f"bias={part.gate.bias}")
        if part.dynamic_mask:
            found["mask"] = (sizes["v"][1], f"{p}KV_HEADS", f"bias={part.dynamic_mask.bias}")
        return found

    @property
    def normed(self) -> str:
        """What the norm of queries and keys runs over, and when: `width before`, `head after` … or nothing.

        `width split`: before they turn, but once keys are split into heads, since values are those.
        """
        part = self.part
        if part.q_norm is None:
            return ""
        if self.rotate is not None and part.qk_norm_order == "after_rope":
            return f"{part.qk_norm_over} after"
        split = part.qk_norm_over == "width" and part.values == "keys"
        return "width split" if split else f"{part.qk_norm_over} before"

    @property
    def gate(self) -> str:
        """What multiplies the output of heads, made of `gate_BHTC`."""
        assert self.part.gate is not None
        if self.part.gate.score == "softplus":
            return "F.softplus(gate_BHTC.float()).to(y_BHTC.dtype)"
        return "torch.sigmoid(gate_BHTC)"

    @property
    def group(self) -> str:
        """How many query heads share a key/value head, as an expression."""
        return f"{self.constants}HEADS // {self.constants}KV_HEADS"

    @property
    def group_words(self) -> str:
        """The key/value head that query head h looks at."""
        part = self.part
        return f"h // {part.group_size}" if part.grouping == "interleaved" else f"h % {part.kv_heads}"

    @property
    def repeated(self) -> tuple[str, list[str]]:
        """How a key/value head is repeated for every query head: a method and its arguments."""
        if self.part.grouping == "interleaved":
            return "repeat_interleave", [self.group, "dim=1"]
        return "repeat", ["1", self.group, "1", "1"]

    @property
    def summary(self) -> str:
        """The docstring of an attention class."""
        part = self.part
        if part.kv_heads == part.heads:
            return f"{part.heads} heads, each with keys and values of its own."
        if part.grouping == "tiled":
            return f"{part.heads} query heads share {key_value_heads(part)} in turn."
        if part.kv_heads == 1:
            return f"{part.heads} query heads share one key/value head."
        return f"{part.group_size} neighbouring query heads share each of {key_value_heads(part)}."

    @staticmethod
    def words(part: Attention) -> str:
        """What the header says of it."""
        return attention_words(part)


def _value_dim(part: Attention) -> str:
    return "HEAD_DIM" if part.value_dim == part.head_dim else "VALUE_DIM"


def _output_width(part: Attention) -> str:
    return "Q_WIDTH" if part.value_dim == part.head_dim else "O_WIDTH"
