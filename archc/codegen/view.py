"""What the templates print: every decision about a generated module, made here and in the views of its parts.

A view groups the layers of an Architecture by what differs in their code. Rotary tables and
windows enter a block as arguments, so layers that differ in nothing else share one class.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from archc.architecture.model import Architecture
from archc.codegen.attention import sharing as sharing_attentions
from archc.codegen.blocks import BlockView, PartViews, block_views
from archc.codegen.caching import CacheView, cache_view
from archc.codegen.classes import printed_mixers, without_arguments
from archc.codegen.constants import (
    Constant,
    rope_constants,
    scaling_constants,
    size_constants,
    with_names,
)
from archc.codegen.ends import EmbeddingView, HeadView, embedding_view, end_constants, head_view
from archc.codegen.experts import ExpertsView
from archc.codegen.feed_forward import FeedForwardView
from archc.codegen.feed_forward import sharing as sharing_feed_forwards
from archc.codegen.inputs import Handed, Input, ModelInputs, handed
from archc.codegen.naming import Names, Variant, labels, variants
from archc.codegen.norms import NormCall, NormClass, Norms
from archc.codegen.parallel import ParallelView, parallel_view
from archc.codegen.part_view import FfnView, MixerView, PartView
from archc.codegen.parts import FFNS, MIXERS
from archc.codegen.residuals import ResidualClass, Residuals
from archc.codegen.rotation import RopeView, TableView, Turn, rope_views, scaling_variants, turn_variants
from archc.codegen.routing import RouterView
from archc.codegen.scales import SCALES, with_table
from archc.codegen.sequences import sequence
from archc.parts.base import FfnPart, MixerPart

_NOTHING = (("0", "0"), ("0", "0"))
T = TypeVar("T", bound=Hashable)
W = TypeVar("W", bound=PartView[Any])


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
    cache: CacheView
    parallel: ParallelView
    kinds: tuple[str, ...]

    @property
    def tables(self) -> tuple[TableView, ...]:
        """The functions that make tables of cosines and sines."""
        return tuple(dict.fromkeys(rope.table for rope in self.ropes))

    @property
    def mixer_classes(self) -> tuple[MixerView[Any], ...]:
        """The classes that let positions meet."""
        return tuple({view.name: view for view in reversed(self.mixers)}.values())[::-1]

    @property
    def ffn_classes(self) -> tuple[FfnView[Any], ...]:
        """The feed-forward classes, each before those that call it."""
        found: dict[str, FfnView[Any]] = {}
        for view in self.ffns:
            if isinstance(view, ExpertsView) and view.shared:
                found.setdefault(view.shared.name, view.shared)
            found.setdefault(view.name, view)
        return tuple(found.values())

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
        return "logits_NE" if self.balanced_together else f"(logits_NE, {router.names.TOP_K})"

    @property
    def exact(self) -> Mapping[str, tuple[str, ...]]:
        """Classes with parts that stay in float32 whatever type a model is loaded in, and what keeps them there."""
        routed = ((view.name, view.choice) for view in (*self.mixers, *self.ffns))
        return {name: router.exact for name, router in routed if router is not None and router.exact}

    @property
    def norms_are_matrices(self) -> bool:
        """Whether some norm has a weight for each head."""
        return any(norm_class.norm.heads is not None for norm_class in self.norm_classes)

    @property
    def stacked_biases(self) -> bool:
        """Whether some biases are matrices, one row for each expert."""
        return any(isinstance(view, ExpertsView) and view.part.bias == "experts" for view in self.ffns)

    @property
    def learns_activation(self) -> bool:
        """Whether some feed-forward has an activation with parameters."""
        return any(view.part.activation == "xielu" for view in self.ffns)

    @property
    def handed(self) -> Handed:
        """How the loop over layers hands inputs to them."""
        return handed(self.inputs)

    @property
    def block_of(self) -> Mapping[str, str]:
        """The block class of each kind, or nothing where there is but one."""
        found = {kind: block.name for block in self.blocks for kind in block.forms}
        return {kind: found[kind] for kind in dict.fromkeys(self.kinds)} if len(self.blocks) > 1 else {}

    @property
    def by_kind(self) -> bool:
        """Whether the code asks for the kind of a layer."""
        asked = [*(block.asks_kind for block in self.blocks), *(mixer.asks_kind for mixer in self.mixers)]
        return bool(self.block_of or any(asked) or self.handed.asks_kind or self.cache.by_kind)

    @property
    def kinds_expression(self) -> str:
        """The kind of every layer as a Python expression: (("local",) * 5 + ("global",)) * 3."""
        return sequence("LAYER_KINDS", self.kinds)

    @property
    def block_arguments(self) -> list[str]:
        """What the loop over layers hands to a block."""
        routing = ["routing"] if self.mixtures else []
        return ["x_BTD", *self.handed.arguments, "cache", *routing]

    @property
    def positions_matter(self) -> bool:
        """Whether anything is worked out from the numbers of positions."""
        asked = ("position_ids" in (value or "") for given in self.inputs for value in given.values.values())
        return bool(self.ropes) or self.embedding.part.table is not None or any(asked)

    @property
    def forwarded(self) -> list[str]:
        """What the model's call hands on."""
        positions = ["position_ids"] if self.positions_matter else []
        segments = ["segment_ids"] if self.embedding.part.segments else []
        return ["input_ids", *positions, "attention_mask", "cache", *segments]

    @property
    def soft_caps(self) -> bool:
        """Whether some scores or logits are capped."""
        return self.architecture.head.softcap is not None or any(v.soft_caps for v in (*self.mixers, *self.ffns))

    @property
    def float32_stream(self) -> bool:
        """Whether the residual stream is kept in float32 whatever type the model has."""
        return any(block.form.float32_stream for block in self.blocks)

    @property
    def depth_matters(self) -> bool:
        """Whether the sums of some layers depend on how deep they stand."""
        return any(block.form.by_depth for block in self.blocks)

    @property
    def needs_math(self) -> bool:
        """Whether some frequencies take logarithms or count turns, or some part calls `math`."""
        rules = (table.rule for table in self.tables)
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

    rope_forms = variants((kind, part.rope) for kind, part in mixing.items() if part.rope is not None)
    ropes = with_names(rope_forms, rope_constants)
    turns = turn_variants(ropes)
    printed = printed_mixers(mixing)
    mixers = variants(printed.items())
    ffns = variants((kind, layer.ffn) for kind, layer in by_kind.items() if layer.ffn is not None)

    def mixer_view(part: MixerPart, names: Names) -> MixerView[Any]:
        return MIXERS[type(part)].of(part, names, norms, turns)

    def ffn_view(part: FfnPart, names: Names) -> FfnView[Any]:
        return FFNS[type(part)].of(part, names, norms)

    layers = variants((kind, without_arguments(layer, printed.get(kind))) for kind, layer in by_kind.items())

    mixer_views = _views(mixers, mixer_view)
    ffn_views = _with_shared_classes(_views(ffns, ffn_view))
    head_dims = {
        variant.value.rope.head_dim: mixer_views[variant.value].rope_channels
        for variant in reversed(mixers)
        if variant.value.rope is not None
    }
    rope_list = rope_views(ropes, head_dims)
    given = ModelInputs.of(
        mixing,
        rope_list,
        {kind: mixer_views[v.value].names for v in mixers for kind in v.kinds},
        read=any(view.reads_mask for view in mixer_views.values()),
    )
    inputs = [_for_all(list(by_kind), each) for each in given.all]
    for form in mixers:
        lacking = (each.name for each in given.all if any(each.values[kind] is None for kind in form.kinds))
        mixer_views[form.value] = replace(mixer_views[form.value], optional=frozenset(lacking), unmasked=given.unmasked)
    sharing_attentions(mixer_views, {form.value: form.kinds for form in mixers})
    part_views: PartViews = dict((*mixer_views.items(), *ffn_views.items()))
    blocks = block_views(layers, part_views, norms, residuals, inputs)
    embedding = embedding_view(architecture.embedding, norms)
    final_norm = norms.call(architecture.final_norm, "WIDTH") if architecture.final_norm else None
    head = head_view(architecture.head, norms)
    parallel = parallel_view(
        by_kind,
        architecture.head,
        {kind: mixer_views[part] for kind, part in printed.items()},
        {kind: ffn_views[layer.ffn] for kind, layer in by_kind.items() if layer.ffn is not None},
    )

    return ModuleView(
        architecture=architecture,
        constants=_once(
            *size_constants(architecture),
            *(c for view in mixer_views.values() for c in view.sizes),
            *([Constant(SCALES, sequence(SCALES, scales))] if scales else ()),
            *given.constants,
            *(c for rope, names in ropes for c in rope_constants(rope.value, names)),
            *(c for rule, names in scaling_variants(ropes) for c in scaling_constants(rule.value, names)),
            *(c for view in ffn_views.values() for c in view.sizes),
            *norms.constants(),
            *residuals.constants(),
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
        cache=cache_view(
            {kind: mixer_views[printed[kind]].cached if kind in printed else _NOTHING for kind in by_kind},
            [view.kept for view in mixer_views.values()],
            # A kind without a mixer keeps nothing: any number of rows is its own.
            {kind: given.kept.get(kind) or next(iter(given.kept.values())) for kind in by_kind},
            splits=parallel.heads is not None,
        ),
        parallel=parallel,
        kinds=kinds,
    )


def _once(*constants: Constant) -> tuple[Constant, ...]:
    """Constants in order, those that several parts share at the first of them."""
    found: dict[str, Constant] = {}
    for constant in constants:
        assert found.setdefault(constant.name, constant).value == constant.value, constant
    return tuple(found.values())


def _views(forms: Sequence[Variant[T]], view: Callable[[T, Names], W]) -> dict[T, W]:
    """The views of the forms of a part. Classes have a prefix where others have their stem."""
    stems = Counter(view(form.value, Names()).name for form in forms)
    found = {}
    for form, names in with_names(forms, lambda part, names: view(part, names).sizes):
        one = stems[view(form.value, Names()).name] == 1
        found[form.value] = view(form.value, replace(names, one=one))
    return found


def _with_shared_classes(views: Mapping[FfnPart, FfnView[Any]]) -> dict[FfnPart, FfnView[Any]]:
    """Feed-forwards and shared experts that differ in their widths alone have one class."""
    dense = [view for view in views.values() if isinstance(view, FeedForwardView)]
    beside = [view.shared for view in views.values() if isinstance(view, ExpertsView) and view.shared]
    new = dict(zip((*dense, *beside), sharing_feed_forwards((*dense, *beside)), strict=True))
    found: dict[FfnPart, FfnView[Any]] = {}
    for part, view in views.items():
        if isinstance(view, ExpertsView):
            found[part] = replace(view, shared=new[view.shared] if view.shared else None)
        else:
            found[part] = new[view] if isinstance(view, FeedForwardView) else view
    return found


def _for_all(kinds: Sequence[str], given: Input) -> Input:
    """An input of all kinds of layer: those that use none get what the first one gets."""
    first = next(iter(given.values.values()))
    return replace(given, values={kind: given.values.get(kind, first) for kind in kinds})
