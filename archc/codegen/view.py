"""What the templates print: every decision about a generated module, made here and in the views of its parts.

A view groups the layers of an Architecture by what differs in their code. Rotary tables and
windows enter a block as arguments, so layers that differ in nothing else share one class.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from archc.architecture.model import Architecture
from archc.codegen.blocks import BlockView, block_view, mixer_without_arguments, without_arguments
from archc.codegen.caching import CacheView, cache_view
from archc.codegen.constants import (
    Constant,
    end_constants,
    rope_constants,
    scaling_constants,
    size_constants,
    window_constants,
)
from archc.codegen.inputs import Input, rotation_input, visible_input
from archc.codegen.naming import LINE, LONGEST_CLASS_PREFIX, Variant, labels, literal, variants
from archc.codegen.norms import NormCall, NormClass, Norms
from archc.codegen.part_view import FfnView, MixerView
from archc.codegen.parts import FFNS, MIXERS
from archc.codegen.plain import ffn_of, mixer_of
from archc.codegen.rotation import RopeView, ScalingView, Turn, rope_views, scaling_variants, turn_variants

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class ModuleView:
    """Everything that `model.py.j2` prints. A mapping by kind is empty where all kinds agree."""

    architecture: Architecture
    constants: tuple[Constant, ...]
    norm_classes: tuple[NormClass, ...]
    ropes: tuple[RopeView, ...]
    turns: tuple[Variant[Turn], ...]
    inputs: tuple[Input, ...]
    mixers: tuple[MixerView[Any], ...]
    ffns: tuple[FfnView[Any], ...]
    blocks: tuple[BlockView, ...]
    final_norm: NormCall
    block_of: Mapping[str, str]
    cache: CacheView
    kinds: tuple[str, ...]

    @property
    def scalings(self) -> tuple[ScalingView, ...]:
        """The functions that give frequencies."""
        return tuple(dict.fromkeys(rope.scaling for rope in self.ropes))

    @property
    def mixtures(self) -> tuple[FfnView[Any], ...]:
        """The feed-forwards with a router, whose routing the load-balancing loss looks at."""
        return tuple(view for view in self.ffns if view.routed)

    @property
    def routing_type(self) -> str:
        """What the routers' logits are collected in; where mixtures differ, beside how many experts they choose."""
        return "list[Tensor]" if len(self.mixtures) <= 1 else "list[tuple[Tensor, int]]"

    @property
    def layers_ask_kind(self) -> bool:
        """Whether the loop over layers asks for the kind of a layer."""
        return any(given.by_kind for given in self.inputs)

    @property
    def by_kind(self) -> bool:
        """Whether the code asks for the kind of a layer."""
        return bool(self.block_of or self.layers_ask_kind or self.cache.of_kind)

    @property
    def kinds_expression(self) -> str:
        """The kind of every layer as a Python expression: (("local",) * 5 + ("global",)) * 3."""
        count = len(self.kinds)
        period = next(n for n in range(1, count + 1) if self.kinds[:n] * (count // n) == self.kinds)
        line = _sum_of_runs(self.kinds[:period])
        if period < count:
            line = f"{f'({line})' if ' + ' in line else line} * {count // period}"
        if len("LAYER_KINDS = ") + len(line) <= LINE:
            return line
        rows = [f"*({literal(kind)},) * {run}" if run > 1 else literal(kind) for kind, run in _runs(self.kinds)]
        return "(\n" + "".join(f"    {row},\n" for row in rows) + ")"

    @property
    def block_arguments(self) -> list[str]:
        """What the loop over layers hands to a block."""
        routing = ["routing"] if self.mixtures else []
        return ["x_BTD", *(given.argument for given in self.inputs), "cache", *routing]

    @property
    def attention_factors_matter(self) -> bool:
        """Whether some rope scales its cosines and sines."""
        return any(rope.attention_factor != "1.0" for rope in self.ropes)

    @property
    def length_matters(self) -> bool:
        """Whether some frequencies depend on the length of the input."""
        return any(scaling.length_matters for scaling in self.scalings)

    @property
    def soft_caps(self) -> bool:
        """Whether some scores or logits are capped."""
        return self.architecture.head.softcap is not None or any(v.soft_caps for v in (*self.mixers, *self.ffns))

    @property
    def needs_math(self) -> bool:
        """Whether some frequencies take logarithms or count turns."""
        return any(scaling.rule is not None and scaling.rule.needs_math for scaling in self.scalings)


def _runs(kinds: Sequence[str]) -> list[tuple[str, int]]:
    return [(kind, len(list(run))) for kind, run in groupby(kinds)]


def _sum_of_runs(kinds: Sequence[str]) -> str:
    runs = _runs(kinds)
    if 1 < len(runs) == len(kinds):
        return f"({', '.join(map(literal, kinds))})"
    return " + ".join(f"({literal(kind)},)" + (f" * {run}" if run > 1 else "") for kind, run in runs)


def build_view(architecture: Architecture) -> ModuleView:
    """The view of an Architecture."""
    label = labels(layer.kind for layer in architecture.layers)
    kinds = tuple(label[layer.kind] for layer in architecture.layers)
    by_kind = {label[layer.kind]: layer for layer in architecture.layers}
    assert architecture.final_norm is not None  # E210
    norms = Norms(architecture, architecture.final_norm)
    mixing = {kind: mixer_of(layer) for kind, layer in by_kind.items()}

    ropes = variants((kind, part.rope) for kind, part in mixing.items() if part.rope is not None)
    turns = turn_variants(ropes)
    windows = variants((kind, part.window) for kind, part in mixing.items())
    mixers = variants((kind, mixer_without_arguments(part)) for kind, part in mixing.items())
    ffns = variants((kind, ffn_of(layer)) for kind, layer in by_kind.items())
    layers = variants(((kind, without_arguments(layer)) for kind, layer in by_kind.items()), LONGEST_CLASS_PREFIX)

    mixer_views = {variant.value: MIXERS[type(variant.value)].of(variant, norms, turns) for variant in mixers}
    ffn_views = {variant.value: FFNS[type(variant.value)].of(variant, norms) for variant in ffns}
    head_dims = {
        variant.value.rope.head_dim: mixer_views[variant.value].rope_channels
        for variant in reversed(mixers)
        if variant.value.rope is not None
    }
    rope_list = rope_views(ropes, head_dims)
    given = (rotation_input(rope_list, list(by_kind)), visible_input(windows, list(by_kind)))
    inputs = tuple(one for one in given if one is not None)
    blocks = [block_view(variant, mixer_views, ffn_views, norms, inputs) for variant in layers]
    final_norm = norms.call(architecture.final_norm, "WIDTH")

    return ModuleView(
        architecture=architecture,
        constants=(
            *size_constants(architecture),
            *(c for view in mixer_views.values() for c in view.sizes),
            *(c for v in windows for c in window_constants(v.value, v.constant_prefix)),
            *(c for v in ropes for c in rope_constants(v.value, v.constant_prefix)),
            *(c for v in scaling_variants(ropes) for c in scaling_constants(*v.value, v.constant_prefix)),
            *(c for view in ffn_views.values() for c in view.sizes),
            *norms.constants(),
            *end_constants(architecture),
        ),
        norm_classes=tuple(norms.classes.values()),
        ropes=tuple(rope_list),
        turns=tuple(turns),
        inputs=inputs,
        mixers=tuple(mixer_views.values()),
        ffns=tuple(ffn_views.values()),
        blocks=tuple(blocks),
        final_norm=final_norm,
        block_of=_where_kinds_differ(layers, [view.name for view in blocks]),
        cache=cache_view(
            {kind: MIXERS[type(part)].cached_sizes(part) for kind, part in mixing.items()},
            next(iter(mixer_views.values())).cached,
        ),
        kinds=kinds,
    )


def _where_kinds_differ(found: Sequence[Variant[T]], values: Sequence[V]) -> dict[str, V]:
    """The value of each kind, or nothing where there is but one."""
    pairs = zip(found, values, strict=True)
    return {kind: value for variant, value in pairs for kind in variant.kinds} if len(found) > 1 else {}
