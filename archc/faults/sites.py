"""Where in an Architecture a mistake can be, and the slips that change a value there.

A site changes every part of one type in a layer. Slips are made from values: for each thing at a site, the wrong
things that a port may have in its place, each with its word. Slips of one word are one slip, in all layers that it
fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as replaced
from typing import Any, TypeAlias, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from archc.architecture.model import Architecture, Branch, Layer
from archc.faults.base import Edit, Faulty, Layers, Slip, Weights
from archc.parts.attention import Attention
from archc.parts.base import Part
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward
from archc.parts.latent import LatentAttention
from archc.parts.norm import Norm
from archc.parts.position import Rope
from archc.parts.residual import Residual
from archc.parts.router import RouterFields

T = TypeVar("T")
P = TypeVar("P", bound=Part)
S = TypeVar("S", bound=Struct)
Site: TypeAlias = Callable[[Layer, Callable[[T], T]], Layer]
Slips: TypeAlias = Callable[[Architecture], Iterator[Slip]]
Wrong: TypeAlias = Callable[[T], Iterable[tuple[str, T]]]
"""What may stand in a thing's place, each with its word."""


def parts(layer: Layer, change: Callable[[Part], Part]) -> Layer:
    """Every part."""

    def branch(one: Branch) -> Branch:
        return replace(one, parts=tuple((slot, change(part)) for slot, part in one.parts))

    return replace(layer, branches=tuple(branch(one) for one in layer.branches))


def _of(kind: type[P]) -> Site[P]:
    def site(layer: Layer, change: Callable[[P], P]) -> Layer:
        return parts(layer, lambda part: change(part) if isinstance(part, kind) else part)

    return site


attentions: Site[Attention] = _of(Attention)
feed_forwards: Site[FeedForward] = _of(FeedForward)
experts: Site[Experts] = _of(Experts)
latents: Site[LatentAttention] = _of(LatentAttention)


def held(name: str) -> Site[Any]:
    """What parts of any kind hold under `name`, where they do."""

    def site(layer: Layer, change: Callable[[Any], Any]) -> Layer:
        def inside(part: Part) -> Part:
            value = getattr(part, name, None)
            return part if value is None else replace(part, **{name: change(value)})

        return parts(layer, inside)

    return site


def ropes(layer: Layer, change: Callable[[Rope], Rope]) -> Layer:
    """The rotary positions of every mixer that holds its own."""
    return held("rope")(layer, change)


def routers(layer: Layer, change: Callable[[RouterFields], RouterFields]) -> Layer:
    """The routers of mixtures."""
    return held("router")(layer, change)


def branch_norms(layer: Layer, change: Callable[[Norm], Norm]) -> Layer:
    """The norms before and behind the parts."""

    def other(norm: Norm | None) -> Norm | None:
        return norm and change(norm)

    branches = tuple(
        replace(one, pre_norm=other(one.pre_norm), post_norm=other(one.post_norm)) for one in layer.branches
    )
    return replace(layer, branches=branches, shared_norm=other(layer.shared_norm))


def head_norms(layer: Layer, change: Callable[[Norm], Norm]) -> Layer:
    """The norms of queries and keys; latent attention has norms of latents instead."""

    def inside(attention: Attention) -> Attention:
        q, k = attention.q_norm, attention.k_norm
        return replace(attention, q_norm=q and change(q), k_norm=k and change(k))

    return attentions(layer, inside)


def layers_whole(layer: Layer, change: Callable[[Layer], Layer]) -> Layer:
    """The layer itself."""
    return change(layer)


def norms(layer: Layer, change: Callable[[Norm], Norm]) -> Layer:
    """Every norm: before and behind the parts, and inside them."""

    def inside(part: Part) -> Part:
        values = {name: getattr(part, name) for name in part.__struct_fields__}
        found = {name: change(value) for name, value in values.items() if isinstance(value, Norm)}
        return replace(part, **found) if found else part

    return parts(branch_norms(layer, change), inside)


def residuals(layer: Layer, change: Callable[[Residual], Residual]) -> Layer:
    """The rules by which branches join the stream."""
    return replace(layer, branches=tuple(replace(one, residual=change(one.residual)) for one in layer.branches))


def in_layers(faulty: Faulty, layers: Layers, change: Callable[[Layer], Layer]) -> Faulty:
    """With `change` in these layers."""
    return by_layer(faulty, layers, lambda _index, layer: change(layer))


def by_layer(faulty: Faulty, layers: Layers, change: Callable[[int, Layer], Layer]) -> Faulty:
    """With `change` in these layers, which is told their numbers. Layers of a kind that now differ become two kinds."""
    architecture = faulty.architecture
    changed = (
        change(index, layer) if layers is None or index in layers else layer
        for index, layer in enumerate(architecture.layers)
    )
    return replaced(faulty, architecture=replace(architecture, layers=tuple(_named_apart(changed))))


def _named_apart(layers: Iterable[Layer]) -> Iterator[Layer]:
    """The layers, no two of them different under one name, and equal ones the same object."""
    made: dict[Layer, Layer] = {}
    names = set[str]()
    for layer in layers:
        if layer not in made:
            name = layer.kind
            while name in names:
                name += "_x"
            names.add(name)
            made[layer] = replace(layer, kind=name)
        yield made[layer]


def places(architecture: Architecture, layers: Layers = None) -> Iterator[tuple[int, str, Part]]:
    """Every part of these layers, with the number of its layer and what the names of its tensors begin with."""
    for index, layer in enumerate(architecture.layers):
        for branch in layer.branches if layers is None or index in layers else ():
            owner = f"shared.{branch.shared}" if branch.shared else f"layers.{index}"
            for slot, part in branch.parts:
                yield index, f"{owner}.{slot}", part


def filled(faulty: Faulty, values: Callable[[Weights], Weights]) -> Faulty:
    """With other tensors: `values` gives those that change, made of all that there are."""
    return replaced(faulty, weights=(*faulty.weights, lambda weights: {**weights, **values(weights)}))


def slips(site: Site[T], declared: Callable[[T], object], wrong: Wrong[T]) -> Slips:
    """The slips of what stands at a site; `declared` is the right value of the field."""

    def find(architecture: Architecture) -> Iterator[Slip]:
        words: dict[str, dict[int, list[str]]] = {}
        seen: dict[int, dict[str, list[str]]] = {}
        for index, layer in enumerate(architecture.layers):
            if id(layer) not in seen:
                seen[id(layer)] = _words(site, layer, declared, wrong)
            for behaves_as, values in seen[id(layer)].items():
                words.setdefault(behaves_as, {})[index] = values
        for behaves_as, by_layer in words.items():
            right = dict.fromkeys(value for values in by_layer.values() for value in values)
            yield Slip(" and ".join(right), behaves_as, _planted(site, wrong, behaves_as), tuple(by_layer))

    return find


def _words(site: Site[T], layer: Layer, declared: Callable[[T], object], wrong: Wrong[T]) -> dict[str, list[str]]:
    """What may be wrong in a layer, each with the values declared there."""
    found: dict[str, list[str]] = {}

    def look(thing: T) -> T:
        for behaves_as, other in wrong(thing):
            if other != thing:
                found.setdefault(behaves_as, []).append(word(declared(thing)))
        return thing

    site(layer, look)
    return found


def _planted(site: Site[T], wrong: Wrong[T], behaves_as: str) -> Callable[[Faulty, Layers], Faulty]:
    def one(thing: T) -> T:
        return next((other for found, other in wrong(thing) if found == behaves_as), thing)

    return lambda faulty, layers: in_layers(faulty, layers, lambda layer: site(layer, one))


def field_slips(site: Site[S], name: str, values: Callable[[S], Iterable[Any]]) -> Slips:
    """The slips of one field of what stands at a site: the wrong values that it may have."""
    return slips(
        site,
        lambda thing: getattr(thing, name),
        lambda thing: [(word(value), replace(thing, **{name: value})) for value in values(thing)],
    )


def left_out(site: Site[S], *names: str, behaves_as: str = "none") -> Slips:
    """The slips by which things of that name are not there at all."""

    def declared(thing: S) -> object:
        values = [value for name in names if (value := getattr(thing, name)) is not None]
        return values[0] if isinstance(values[0], int | float) else "stated"

    return slips(site, declared, lambda thing: [(behaves_as, replace(thing, **dict.fromkeys(names)))])


def edit_slips(applies: Callable[[Architecture], bool], declared: str, behaves_as: str, *edits: Edit) -> Slips:
    """The slip that a change of the generated code makes, for mistakes that no spec can say."""

    def change(faulty: Faulty, layers: Layers) -> Faulty:
        del layers
        return replaced(faulty, edits=(*faulty.edits, *edits))

    def find(architecture: Architecture) -> Iterator[Slip]:
        if applies(architecture):
            yield Slip(declared, behaves_as, change)

    return find


def model_slips(wrong: Callable[[Architecture], Iterable[tuple[object, str, Architecture]]]) -> Slips:
    """The slips of what belongs to no layer: of an Architecture, what is declared, its wrong word, and how it is then.

    `wrong` is asked again where another mistake is planted already.
    """

    def find(architecture: Architecture) -> Iterator[Slip]:
        for declared, behaves_as, other in wrong(architecture):
            if other != architecture:
                yield Slip(word(declared), behaves_as, _in_model(wrong, behaves_as))

    return find


def _in_model(
    wrong: Callable[[Architecture], Iterable[tuple[object, str, Architecture]]], behaves_as: str
) -> Callable[[Faulty, Layers], Faulty]:
    def change(faulty: Faulty, layers: Layers) -> Faulty:
        del layers
        found = (other for _, text, other in wrong(faulty.architecture) if text == behaves_as)
        return replaced(faulty, architecture=next(found, faulty.architecture))

    return change


def word(value: object) -> str:
    """A value as the language writes it."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(word(one) for one in value) + "]"
    return str(value)
