"""Attention with grouped key/value heads in a generated module."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from msgspec.structs import replace as altered

from archc.codegen.attention_words import attention_words, key_value_heads
from archc.codegen.by_kind import chosen
from archc.codegen.constants import Constant
from archc.codegen.inputs import norms_turned, without_inputs
from archc.codegen.naming import Names, Variant, literal
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import MixerView
from archc.codegen.rotation import Turn, function_of
from archc.codegen.scales import SCALES, from_table
from archc.parts.attention import Attention
from archc.parts.base import MixerPart

_SIZES = ("HEADS", "KV_HEADS", "HEAD_DIM", "VALUE_DIM")
_PRODUCTS = {
    "Q_WIDTH": ("HEADS", "HEAD_DIM"),
    "KV_WIDTH": ("KV_HEADS", "HEAD_DIM"),
    "V_WIDTH": ("KV_HEADS", "VALUE_DIM"),
    "O_WIDTH": ("HEADS", "VALUE_DIM"),
}


@dataclass(frozen=True, slots=True)
class AttentionView(MixerView[Attention]):
    """One attention class."""

    norms: Mapping[str, NormCall]
    variables: Mapping[str, Mapping[str, str]] = field(default_factory=dict, kw_only=True)
    """Sizes that layers of other kinds have otherwise, as variables of the class, and what they are for each kind."""

    @classmethod
    def of(cls, part: Attention, names: Names, norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of an attention, with the names of the norms and rotations that it calls."""
        c = names
        by_head = part.qk_norm_over == "head"
        sizes = {
            "q_norm": (c.HEAD_DIM if by_head else c.Q_WIDTH, c.HEADS),
            "k_norm": (c.HEAD_DIM if by_head else c.KV_WIDTH, c.KV_HEADS),
            "v_norm": (_value_dim(part, c), ""),
            "output_norm": (_output_width(part, c), ""),
        }
        return cls(
            name=names.class_("Attention"),
            names=names,
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
        none = {name: " | None" if name in self.optional else "" for name in self.inputs[:-1]}
        given = [f"{name}: {'Pair' if name == 'rotation' else 'Tensor'}{no}" for name, no in none.items()]
        return ["self", "x_BTD: Tensor", *given, self.mask, "cache: Cache | None"]

    @property
    def cached(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Heads and channels of keys and of values."""
        c = self.names
        return (c.KV_HEADS, c.HEAD_DIM), (c.KV_HEADS, _value_dim(self.part, c))

    @property
    def asks_kind(self) -> bool:
        """Whether some size is another in layers of another kind."""
        return bool(self.variables)

    @property
    def given_sizes(self) -> Iterator[str]:
        """The statements that find the sizes of a layer."""
        if self.variables:
            yield "kind = LAYER_KINDS[layer]"
        for name, values in self.variables.items():
            yield chosen(8, name, values)
        yield from (f"self.{name} = {name}" for name in self._kept)

    @property
    def _kept(self) -> list[str]:
        """Those of its variables that the forward pass reads."""
        return [name for name in self.variables if name.endswith("_dim")]

    @property
    def made(self) -> Names:
        """The names of what its modules are made with."""
        found = {name.upper(): name for name in self.variables}
        for product, factors in _PRODUCTS.items():
            if not found.keys().isdisjoint(factors):
                found[product] = " * ".join(found.get(factor, getattr(self.names, factor)) for factor in factors)
        return self.names.with_variables(found) if found else self.names

    @property
    def norm_calls(self) -> dict[str, NormCall]:
        """The calls that make its norms."""
        sizes = {getattr(self.names, name): getattr(self.made, name) for name in (*_SIZES, *_PRODUCTS)}
        return {
            name: NormCall(norm.function, tuple(sizes.get(argument, argument) for argument in norm.arguments))
            for name, norm in self.norms.items()
        }

    @property
    def within(self) -> Names:
        """The names of what the forward pass reads."""
        kept = {name.upper(): f"self.{name}" for name in self._kept}
        return self.names.with_variables(kept) if kept else self.names

    @property
    def sizes(self) -> Iterator[Constant]:
        """Sizes and scales."""
        part, c = self.part, self.names
        yield Constant(c.HEADS, literal(part.heads))
        yield Constant(c.KV_HEADS, literal(part.kv_heads), "key/value heads")
        yield Constant(c.HEAD_DIM, literal(part.head_dim), "channels of a head")
        if part.value_dim != part.head_dim:
            yield Constant(c.VALUE_DIM, literal(part.value_dim), "channels of a head of values")
        for name, factors in _PRODUCTS.items():
            own = part.value_dim != part.head_dim or "VALUE_DIM" not in factors
            if own and not {factor.lower() for factor in factors} & self.variables.keys():
                yield Constant(getattr(c, name), " * ".join(getattr(c, factor) for factor in factors))
        if not self.usual_scale and not from_table(part):
            yield Constant(c.ATTENTION_SCALE, literal(part.scale), "not HEAD_DIM**-0.5")
        if part.dynamic_mask:
            yield Constant(c.KEPT_KEYS, literal(part.dynamic_mask.keep), "keys a query sees at most")
        for name, number in self._factors.items():
            yield Constant(getattr(c, name), literal(number))

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
        return f" * {getattr(self.names, name)}" if name in self._factors else ""

    @property
    def usual_scale(self) -> bool:
        """Whether scores are scaled as torch's attention does, by the root of the channels of a head."""
        return bool(self.part.scale == self.part.head_dim**-0.5)

    @property
    def scale(self) -> str:
        """What multiplies the products of queries and keys."""
        if self.usual_scale:
            return f"{self.within.HEAD_DIM}**-0.5"
        return "self.scale" if from_table(self.part) else self.names.ATTENTION_SCALE

    @property
    def attended(self) -> list[str]:
        """What torch's attention is given, where keys and values are not repeated for the queries that share them."""
        mask = ("bias_BHTS",) if self.part.dynamic_mask else self.masked
        scale = [] if self.usual_scale else [f"scale={self.scale}"]
        shared = ["enable_gqa=True"] if self.part.group_size > 1 and self.part.grouping == "interleaved" else []
        return ["q_BHTC", "k_BKSC", "v_BKSC", *mask, *scale, *shared]

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
    def reads_mask(self) -> bool:
        """Whether scores are masked here, or keys chosen among the visible ones."""
        return self.explicit or self.part.dynamic_mask is not None

    @property
    def value_dim(self) -> str:
        """Channels of a head of values."""
        return _value_dim(self.part, self.within)

    @property
    def linears(self) -> Mapping[str, tuple[str, str, str]]:
        """Sizes of its projections, and whether they have biases."""
        part, c = self.part, self.made
        sizes = {
            "q": ("WIDTH", c.Q_WIDTH),
            "k": ("WIDTH", c.KV_WIDTH),
            "v": ("WIDTH", c.KV_WIDTH if part.value_dim == part.head_dim else c.V_WIDTH),
            "o": (_output_width(part, c), "WIDTH"),
        }
        found: dict[str, tuple[str, str, str]]
        found = {name: (*sizes[name], f"bias={name in part.biased}") for name in part.projections}
        if part.gate:
            width = c.HEADS if part.gate.over == "head" else _output_width(part, c)
            found["gate"] = ("WIDTH", width, f"bias={part.gate.bias}")
        if part.dynamic_mask:
            found["mask"] = (sizes["v"][1], c.KV_HEADS, f"bias={part.dynamic_mask.bias}")
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
            return "" if self.normed_where_turned else f"{part.qk_norm_over} after"
        split = part.qk_norm_over == "width" and part.values == "keys"
        return "width split" if split else f"{part.qk_norm_over} before"

    @property
    def normed_where_turned(self) -> bool:
        """Whether queries and keys are normed behind turning, and not in layers where they do not turn."""
        return "rotation" in self.optional and norms_turned(self.part)

    @property
    def gate(self) -> str:
        """What multiplies the output of heads, made of `gate_BHTC`."""
        assert self.part.gate is not None
        if self.part.gate.score == "softplus":
            return "F.softplus(gate_BHTC.float()).to(y_BHTC.dtype)"
        return "torch.sigmoid(gate_BHTC)"

    @staticmethod
    def group(tensor: str) -> str:
        """How many query heads share one of keys or values, as an expression: a process may hold some heads alone."""
        return f"q_BHTC.shape[1] // {tensor}.shape[1]"

    @property
    def group_words(self) -> str:
        """The key/value head that query head h looks at."""
        part = self.part
        if "heads" in self.variables or "kv_heads" in self.variables:
            return "h // (heads // kv_heads)"
        return f"h // {part.group_size}" if part.grouping == "interleaved" else f"h % {part.kv_heads}"

    @property
    def repeated(self) -> tuple[str, list[str]]:
        """How a key/value head is repeated for every query head: a method and its arguments."""
        if self.part.grouping == "interleaved":
            return "repeat_interleave", [self.group("k_BKSC"), "dim=1"]
        return "repeat", ["1", self.group("k_BKSC"), "1", "1"]

    @property
    def summary(self) -> str:
        """The docstring of an attention class."""
        part = self.part
        if "heads" in self.variables or "kv_heads" in self.variables:
            return "Query heads share key/value heads, neighbours the same one."
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


def _value_dim(part: Attention, names: Names) -> str:
    return names.HEAD_DIM if part.value_dim == part.head_dim else names.VALUE_DIM


def _output_width(part: Attention, names: Names) -> str:
    return names.Q_WIDTH if part.value_dim == part.head_dim else names.O_WIDTH


def sharing(views: dict[MixerPart, MixerView[Any]], kinds: Mapping[MixerPart, Sequence[str]]) -> None:
    """Attentions of layers of these kinds that differ in sizes alone share the class of the first, from here on."""
    plain = {part: view for part, view in views.items() if type(view) is AttentionView}
    alike: dict[Hashable, list[MixerPart]] = {}
    for part, view in plain.items():
        alike.setdefault(_without_sizes(view), []).append(part)
    for parts in alike.values():
        variables = {}
        first = plain[parts[0]]
        for size in _SIZES if first.part.value_dim != first.part.head_dim else _SIZES[:-1]:
            values = {kind: getattr(plain[part].names, size) for part in parts for kind in kinds[part]}
            if len(set(values.values())) > 1:
                variables[size.lower()] = values
        if len(parts) > 1:
            name = "Attention" if len(alike) == 1 else first.name
            views |= {part: replace(plain[part], name=name, variables=variables) for part in parts}


def _without_sizes(view: AttentionView) -> Hashable:
    """What is left of an attention without the sizes of heads."""
    part = view.part
    plain = altered(
        part,
        heads=1,
        kv_heads=1,
        head_dim=1,
        value_dim=1 if part.value_dim == part.head_dim else 2,
        scale=0.0 if view.usual_scale else part.scale,
        rope=None,
        **{name: altered(norm, size=0, heads=norm.heads and 1) for name, norm in part.norms.items()},
    )
    sized = {getattr(view.names, name) for name in (*_SIZES, *_PRODUCTS)}
    others = tuple(constant for constant in view.sizes if constant.name not in sized)
    return plain, part.group_size > 1, view.rotate, view.optional, others
