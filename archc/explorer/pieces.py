"""Pieces of a model: each part of each branch, what is around the parts, and both ends.

Whatever the report says is a sum over pieces, or follows from sums. So a piece is a model that has nothing else, and
its figures come from the same code as those of a whole one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from archc.advice.rules import BRANCH_RULES, MODEL_RULES, BranchRule
from archc.analysis.cache import cache_sums, layer_caches
from archc.analysis.flops import product_sums
from archc.analysis.params import tensor_sums
from archc.analysis.weights import quantised_sums
from archc.architecture.build import build_ends
from archc.architecture.model import SHARED, Branch, Layer
from archc.formulas.sketch import DEPTH, Sketch, sketch_of, sketched_layer
from archc.formulas.unknown import Leaf, Tree, Unknown, Written, follow, numbers_met, unknown, written
from archc.parts.base import Fields, Finding, Heads, MixerPart, Part, Tensor
from archc.parts.caches import Cache
from archc.parts.ends import EmbeddingFields
from archc.parts.norm import NormFields
from archc.parts.position import Rope
from archc.parts.residual import Residual
from archc.spec.checks import check_branch
from archc.spec.language import Header, LayerFields

Items = tuple[tuple[str, Any], ...]
# The analysis takes them for the numbers that they stand for.
CONTEXT: Final = cast(int, unknown("context"))
LENGTH: Final = cast(int, unknown("length"))
"""Tokens of a sequence in use, as `archc report --context` has it."""


class Found(Struct, frozen=True):
    """A finding whose texts have places for numbers."""

    code: str
    message: Written
    mend: Written


Findings = Tree[tuple[Found, ...]]


class Piece(Struct, frozen=True):
    """What a piece adds to the sums of a model. Names of caches are `cache.KIND.WHAT`."""

    sums: tuple[Tree[Items], ...]
    """Once for every layer that has it."""
    once: tuple[str, tuple[Tree[Items], ...]] | None
    """What all layers share: its first tensor's name, and its sums, which count once for all pieces with that name."""
    checks: tuple[Findings, ...]
    """What is wrong, and warnings of the language itself."""
    advice: tuple[Findings, ...]
    """What is asked of a model in which nothing is wrong."""
    conventions: tuple[str, ...] = ()
    """What its arithmetic counts, where that is not plain."""


class _Nothing(Part, frozen=True):
    """A part that there is not."""

    def tensors(self) -> tuple[Tensor, ...]:
        return ()

    def caches(self) -> tuple[()]:
        return ()

    def linear_flops(self) -> int:
        return 0

    def mixing_flops(self, keys: object) -> int:
        del keys
        return 0


class _Answers(MixerPart, frozen=True):
    """What a mixer answers to advice, by which mixers that differ in other things are one."""

    shape: Heads | None
    rope: Rope | None
    window: int | None
    chunk: int | None
    bounded_logits: bool
    idle_biases: tuple[str, ...]


def part_piece(header: Header, layer: LayerFields, index: int, name: str, trained: int | None) -> Piece:
    """The part `name` of a branch of a kind of layer."""
    fields, built = layer.branches[index], sketched_layer("layer", layer, header)
    branch = built.branches[index]
    slot, part = branch.parts[list(fields.parts).index(name)]
    lone = replace(branch, parts=((slot, _asked(part)),), pre_norm=None, post_norm=None, streams=None)
    sections = {"position": fields.position, name: fields.parts[name]}
    return Piece(
        *_layer_sums(replace(built, branches=(_bare(branch, slot, part),), shared_norm=None, streams=None)),
        checks=(_checks(header, sections),),
        advice=tuple(_advice(rule, _sketch(trained), lone) for rule in BRANCH_RULES),
        conventions=part.conventions,
    )


def around_piece(header: Header, layer: LayerFields) -> Piece:
    """Norms, residuals and streams of a kind of layer."""
    built = sketched_layer("layer", layer, header)
    bare = (replace(b, parts=tuple((slot, _Nothing()) for slot, _ in b.parts)) for b in built.branches)
    return Piece(
        *_layer_sums(replace(built, branches=tuple(bare))),
        checks=tuple(_checks(header, {"norm": b.norm, "residual": b.residual}) for b in layer.branches),
        advice=(),
    )


def ends_piece(header: Header, kinds: Mapping[str, LayerFields]) -> Piece:
    """What stands before and behind the layers."""
    model = _ends(header, kinds)

    def sums() -> Items:
        found = tensor_sums(model.counted())
        linear = model.embedding.linear_flops() + model.head.linear_flops() + model.linear_flops_around()
        return _items({f"ends.{name}": value for name, value in found.items()} | {"linear": linear})

    return Piece(
        (follow(sums),), None, checks=(), advice=tuple(_followed(partial(rule, model)) for rule in MODEL_RULES)
    )


def limits(header: Header, kinds: Mapping[str, LayerFields]) -> tuple[Any, Any]:
    """Rows of a learned table, and the length of training, as far as a model says them."""
    model = _ends(header, kinds)
    return model.embedding.positions, model.trained_context


def _ends(header: Header, kinds: Mapping[str, LayerFields]) -> Sketch:
    layers = [sketched_layer(kind, fields, header) for kind, fields in kinds.items()]
    built = build_ends(header, kinds.values(), layers, DEPTH)
    return sketch_of(built)


@cache
def _sketch(trained: int | None) -> Sketch:
    """A model of which advice on branches knows sizes alone."""
    header = Header(
        archc=1,
        name="sketch",
        vocab_size=1,
        hidden_size=cast(int, unknown("hidden_size")),
        context=CONTEXT,
        trained_context=trained,
        dtype="float32",
        embedding=EmbeddingFields(tied=True),
        norm=NormFields(kind="rmsnorm", eps=1.0),
        layers=1,
    )
    return _ends(header, {})


def _asked(part: Part) -> Part:
    """As far as advice looks at it: at positions only by their scaling, and at mixers alone."""
    if not isinstance(part, MixerPart):
        return _Nothing()
    answers = {name: getattr(part, name) for name in _Answers.__struct_fields__}
    return _Answers(**answers | {"rope": part.rope and replace(part.rope, base=1e4, rotary_dim=2, head_dim=2)})


def _bare(branch: Branch, slot: str, part: Part) -> Branch:
    """A branch with one part and nothing around it."""
    return replace(
        branch, parts=((slot, part),), pre_norm=None, post_norm=None, residual=Residual(1.0, 1.0), streams=None
    )


def _checks(header: Header, sections: Mapping[str, Fields | None]) -> Findings:
    return _checked(tuple(sections.items()), header.hidden_size, header.context, header.embedding)


@cache
def _checked(sections: tuple[tuple[str, Fields | None], ...], *around: Any) -> Findings:
    return _followed(lambda: check_branch(dict(sections), *around))


@cache
def _advice(rule: BranchRule, model: Sketch, branch: Branch) -> Findings:
    return _followed(lambda: rule(model, branch))


@cache
def _layer_sums(layer: Layer) -> tuple[tuple[Tree[Items], ...], tuple[str, tuple[Tree[Items], ...]] | None]:
    """The sums over what a layer has of its own, and over what it shares with others, with the name of that.

    What asks different things is followed by itself: two questions of two answers are four ways, if not parted.
    """
    tensors = list(layer.tensors("layers"))
    own, shared = ([t for t in tensors if t.name.startswith(SHARED) == side] for side in (False, True))
    caches = (follow(partial(_cache_items, cache_)) for cache_ in layer_caches(layer))
    products = (follow(partial(_product_items, part)) for part in layer.parts())
    around = follow(lambda: _items({"linear": layer.linear_flops_around()}))
    sums = (*_tensor_sums(own), *caches, *products, around)
    once = (shared[0].name, _tensor_sums(shared)) if shared else None
    return tuple(tree for tree in sums if tree != Leaf(())), once


def _tensor_sums(tensors: list[Tensor]) -> tuple[Tree[Items], ...]:
    by_inputs: dict[Any, list[tuple[Tensor, int]]] = {}
    for tensor in tensors:
        by_inputs.setdefault(tensor.shape[-1:], []).append((tensor, 1))
    counted = follow(lambda: _items(tensor_sums((tensor, 1) for tensor in tensors)))
    return (counted, *(follow(partial(_quantised_items, tuple(some))) for some in by_inputs.values()))


def _quantised_items(counted: tuple[tuple[Tensor, int], ...]) -> Items:
    return _items(quantised_sums(counted))


def _cache_items(one: Cache) -> Items:
    (found,) = cache_sums([([one], 1)], context=LENGTH).values()
    return _items({f"cache.{one.kind}.{name}": value for name, value in found.items()})


def _product_items(part: Part) -> Items:
    return _items(product_sums([(part, 1)], context=LENGTH))


def _items(sums: Mapping[str, Any]) -> Items:
    """Sums that are not 0 on every way."""
    return tuple((name, value) for name, value in sums.items() if isinstance(value, Unknown) or value != 0)


def _followed(findings: Callable[[], Iterator[Finding]]) -> Findings:
    def run() -> tuple[Found, ...]:
        found = list(findings())
        met = numbers_met()
        return tuple(Found(one.code, written(one.message, met), written(one.mend, met)) for one in found)

    return follow(run)
