"""What the templates print: every decision about a generated module, made here and in the views of its parts.

A view groups the layers of an Architecture by what differs in their code. Rotary tables and
windows enter a block as arguments, so layers that differ in nothing else share one class.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from archc.architecture.model import Architecture
from archc.codegen.blocks import BlockView, PartViews, block_view, mixer_without_arguments, without_arguments
from archc.codegen.caching import CacheView, cache_view
from archc.codegen.constants import (
    Constant,
    rope_constants,
    scaling_constants,
    size_constants,
)
from archc.codegen.ends import EmbeddingView, HeadView, embedding_view, end_constants, head_view
from archc.codegen.experts import ExpertsView
from archc.codegen.inputs import Input, ModelInputs
from archc.codegen.naming import LONGEST_CLASS_PREFIX, Variant, labels, variants
from archc.codegen.norms import NormCall, NormClass, Norms
from archc.codegen.part_view import FfnView, MixerView
from archc.codegen.parts import FFNS, MIXERS
from archc.codegen.residuals import ResidualClass, Residuals
from archc.codegen.rotation import RopeView, ScalingView, Turn, rope_views, scaling_variants, turn_variants
from archc.codegen.routing import RouterView
from archc.codegen.scales import SCALES, with_table
from archc.codegen.sequences import sequence
from archc.parts.base import MixerPart

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
    given: ModelInputs
    inputs: tuple[Input, ...]
    mixers: tuple[MixerView[Any], ...]
    ffns: tuple[FfnView[Any], ...]
    residual_classes: tuple[ResidualClass, ...]
    blocks: tuple[BlockView, ...]
    embedding: EmbeddingView
    head: HeadView
    final_norm: NormCall | None
    block_of: Mapping[str, str]
    cache: CacheView
    kinds: tuple[str, ...]

    @property
    def scalings(self) -> tuple[ScalingView, ...]:
        """The functions that give frequencies."""
        return tuple(dict.fromkeys(rope.scaling for rope in self.ropes))

    @property
    def mixtures(self) -> tuple[RouterView, ...]:
        """The routers, at whose choices the load-balancing loss looks."""
        return tuple(view.choice for view in (*self.mixers, *self.ffns) if view.choice is not None)

    @property
    def balanced_together(self) -> bool:
        """Whether all routers choose as many from as many, so that one average is taken over all layers."""
        return len({(router.experts, router.top_k) for router in self.mixtures}) == 1

    @property
    def routing_type(self) -> str:
        """What the routers' logits are collected in; where routers differ, beside how many they choose."""
        return "list[Tensor]" if self.balanced_together else "list[tuple[Tensor, int]]"

    def recorded(self, router: RouterView) -> str:
        """What a router tells the load-balancing loss."""
        return "logits_NE" if self.balanced_together else f"(logits_NE, {router.constants}TOP_K)"

    @property
    def exact(self) -> Mapping[str, tuple[str, ...]]:
        """Classes with parts that stay in float32 whatever type a model is loaded in, and what keeps them there."""
        routed = ((view.name, view.choice) for view in (*self.mixers, *self.ffns))
        return {name: router.exact for name, router in routed if router is not None and router.exact}

    @property
    def stacked_biases(self) -> bool:
        """Whether some biases are matrices, one row for each expert."""
        return any(isinstance(view, ExpertsView) and view.part.bias == "experts" for view in self.ffns)

    @property
    def learns_activation(self) -> bool:
        """Whether some feed-forward has an activation with parameters."""
        return any(view.part.activation == "xielu" for view in self.ffns)

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
        return sequence("LAYER_KINDS", self.kinds)

    @property
    def block_arguments(self) -> list[str]:
        """What the loop over layers hands to a block."""
        routing = ["routing"] if self.mixtures else []
        return ["x_BTD", *(given.argument for given in self.inputs), "cache", *routing]

    @property
    def positions_matter(self) -> bool:
        """Whether anything is worked out from the numbers of positions."""
        asked = ("position_ids" in (value or "") for given in self.inputs for value in given.values.values())
        return bool(self.ropes) or self.embedding.part.table is not None or any(asked)

    @property
    def forwarded(self) -> list[str]:
        """What the model's call hands on."""
        segments = ["segment_ids"] if self.embedding.part.segments else []
        return ["input_ids", "position_ids", "attention_mask", "cache", *segments]

    @property
    def attention_factors_matter(self) -> bool:
        """Whether some rope scales its cosines and sines."""
        return any(scaling.attention_factor != "1.0" for scaling in self.scalings)

    @property
    def length_matters(self) -> bool:
        """Whether some rope depends on the length of the input."""
        return any(scaling.length_matters or scaling.amplitude for scaling in self.scalings)

    @property
    def soft_caps(self) -> bool:
        """Whether some scores or logits are capped."""
        return self.architecture.head.softcap is not None or any(v.soft_caps for v in (*self.mixers, *self.ffns))

    @property
    def float32_stream(self) -> bool:
        """Whether the residual stream is kept in float32 whatever type the model has."""
        return any(block.float32_stream for block in self.blocks)

    @property
    def depth_matters(self) -> bool:
        """Whether the sums of some layers depend on how deep they stand."""
        return any(block.needs_math for block in self.blocks)

    @property
    def needs_math(self) -> bool:
        """Whether some frequencies take logarithms or count turns, or some part calls `math`."""
        rules = (scaling.rule for scaling in self.scalings)
        parts = any(view.needs_math for view in (*self.mixers, *self.ffns))
        return parts or self.depth_matters or any(rule.needs_math for rule in rules if rule is not None)


def build_view(architecture: Architecture) -> ModuleView:
    """The view of an Architecture."""
    architecture, scales = with_table(architecture)
    label = labels(layer.kind for layer in architecture.layers)
    kinds = tuple(label[layer.kind] for layer in architecture.layers)
    by_kind = {label[layer.kind]: layer for layer in architecture.layers}
    norms = Norms(architecture)
    residuals = Residuals(branch.residual for layer in architecture.layers for branch in layer.branches)
    mixing = {kind: layer.mixer for kind, layer in by_kind.items() if layer.mixer is not None}

    ropes = variants((kind, part.rope) for kind, part in mixing.items() if part.rope is not None)
    turns = turn_variants(ropes)
    mixers = variants((kind, mixer_without_arguments(part)) for kind, part in mixing.items())
    ffns = variants((kind, layer.ffn) for kind, layer in by_kind.items() if layer.ffn is not None)
    layers = variants(((kind, without_arguments(layer)) for kind, layer in by_kind.items()), LONGEST_CLASS_PREFIX)

    mixer_views = {variant.value: MIXERS[type(variant.value)].of(variant, norms, turns) for variant in mixers}
    ffn_views = {variant.value: FFNS[type(variant.value)].of(variant, norms) for variant in ffns}
    head_dims = {
        variant.value.rope.head_dim: mixer_views[variant.value].rope_channels
        for variant in reversed(mixers)
        if variant.value.rope is not None
    }
    rope_list = rope_views(ropes, head_dims)
    given = ModelInputs.of(mixing, rope_list, {kind: v.constant_prefix for v in mixers for kind in v.kinds})
    inputs = [_for_all(list(by_kind), each) for each in given.all]
    part_views: PartViews = dict((*mixer_views.items(), *ffn_views.items()))
    blocks = [block_view(variant, part_views, norms, residuals, inputs) for variant in layers]
    embedding = embedding_view(architecture.embedding, norms)
    final_norm = norms.call(architecture.final_norm, "WIDTH") if architecture.final_norm else None
    head = head_view(architecture.head, norms)

    return ModuleView(
        architecture=architecture,
        constants=(
            *size_constants(architecture),
            *(c for view in mixer_views.values() for c in view.sizes),
            *([Constant(SCALES, sequence(SCALES, scales))] if scales else ()),
            *given.constants,
            *(c for v in ropes for c in rope_constants(v.value, v.constant_prefix)),
            *(c for v in scaling_variants(ropes) for c in scaling_constants(*v.value, v.constant_prefix)),
            *(c for view in ffn_views.values() for c in view.sizes),
            *norms.constants(),
            *end_constants(architecture),
        ),
        norm_classes=tuple(norms.classes.values()),
        ropes=tuple(rope_list),
        turns=tuple(turns),
        given=given,
        inputs=tuple(inputs),
        mixers=tuple(mixer_views.values()),
        ffns=tuple(ffn_views.values()),
        residual_classes=residuals.classes,
        blocks=tuple(blocks),
        embedding=embedding,
        head=head,
        final_norm=final_norm,
        block_of=_where_kinds_differ(layers, [view.name for view in blocks]),
        cache=cache_view(
            {kind: _cached_sizes(layer.mixer) for kind, layer in by_kind.items()},
            next(iter(mixer_views.values())).cached,
            [view.kept for view in mixer_views.values()],
        ),
        kinds=kinds,
    )


def _for_all(kinds: Sequence[str], given: Input) -> Input:
    """An input of all kinds of layer: those that use none get what the first one gets."""
    first = next(iter(given.values.values()))
    return replace(given, values={kind: given.values.get(kind, first) for kind in kinds})


def _cached_sizes(part: MixerPart | None) -> tuple[tuple[int, int], tuple[int, int]]:
    return MIXERS[type(part)].cached_sizes(part) if part is not None else ((0, 0), (0, 0))


def _where_kinds_differ(found: Sequence[Variant[T]], values: Sequence[V]) -> dict[str, V]:
    """The value of each kind, or nothing where there is but one."""
    pairs = zip(found, values, strict=True)
    return {kind: value for variant, value in pairs for kind in variant.kinds} if len(found) > 1 else {}
