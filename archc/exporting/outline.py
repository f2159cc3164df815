"""A spec as flat values by path, so that two can be compared field by field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from archc.architecture import Architecture, Branch, Compiled, Layer
from archc.spec.language import BranchFields, LayerFields

_NAMES: Final = ("archc", "name", "family", "source", "layers", "published")
"""Of the header, what does not say how the model computes; the number of layers is told by the layers."""

Values = Mapping[str, object]


class Outline(Struct, frozen=True):
    """The values of the header and of every layer, by path; where a default is known as a number, that number."""

    header: Values
    layers: tuple[Values, ...]

    def at(self, layer: int | None, path: str) -> object:
        """The value at a path; None where there is none."""
        return (self.header if layer is None else self.layers[layer]).get(path)

    def column(self, path: str) -> list[Any]:
        """The value at a path of every layer; None where there is none."""
        return [layer.get(path) for layer in self.layers]

    def first(self, path: str, *, windowed: bool | None = None) -> Any:
        """The first value at a path that any layer has, of those with or without a window if that is asked."""
        layers = (v for v in self.layers if windowed is None or windowed == (v.get("attention.window") is not None))
        return next((value for layer in layers if (value := layer.get(path)) is not None), None)


class Difference(Struct, frozen=True):
    """A field in which two specs differ; `layer` is None for those of the header."""

    layer: int | None
    path: str
    wanted: object
    found: object


def outline(compiled: Compiled) -> Outline:
    """The outline of a spec."""
    spec, built = compiled.loaded.spec, compiled.architecture
    header = dict(_flat(spec.header, "", _NAMES))
    header |= {f"embedding.{name}": value for name, value in _numbers(built.embedding).items() if name == "scale"}
    names = _shared_names(built)
    kinds = {
        kind: dict(_of_layer(fields, built.layers[spec.pattern.index(kind)], names))
        for kind, fields in spec.kinds.items()
    }
    return Outline({**header, "layers": len(spec.pattern)}, tuple(kinds[kind] for kind in spec.pattern))


def differences(wanted: Outline, found: Outline) -> list[Difference]:
    """Every field in which an outline is not as wanted."""
    pairs: list[tuple[int | None, Values, Values]] = [(None, wanted.header, found.header)]
    missing: Values = {}
    for layer in range(max(len(wanted.layers), len(found.layers))):
        one = wanted.layers[layer] if layer < len(wanted.layers) else missing
        other = found.layers[layer] if layer < len(found.layers) else missing
        if one is not other:
            pairs.append((layer, one, other))
    return [
        Difference(layer, path, one.get(path), other.get(path))
        for layer, one, other in pairs
        for path in (*one, *(path for path in other if path not in one))
        if one.get(path) != other.get(path)
    ]


def same_model(one: Architecture, other: Architecture) -> bool:
    """Whether two specs say the same model: what it, its kinds of layer and shared parts are called is no matter."""
    return _nameless(one) == _nameless(other)


def _nameless(architecture: Architecture) -> Architecture:
    names = _shared_names(architecture)
    layers = {
        id(layer): replace(
            layer,
            kind="",
            branches=tuple(replace(branch, shared=names.get(branch.shared)) for branch in layer.branches),
        )
        for layer, _ in architecture.distinct
    }
    return replace(
        architecture,
        name="",
        family=None,
        source=None,
        claims=(),
        layers=tuple(layers[id(layer)] for layer in architecture.layers),
    )


def _shared_names(architecture: Architecture) -> dict[str | None, str]:
    """A new name for all that layers share: how it is called makes no difference, only who shares it."""
    branches = (branch for layer in architecture.layers for branch in layer.branches)
    found = dict.fromkeys(branch.shared for branch in branches if branch.shared)
    return {name: str(number) for number, name in enumerate(found)}


def _of_layer(fields: LayerFields, layer: Layer, names: Mapping[str | None, str]) -> Iterator[tuple[str, object]]:
    """The values of a layer; sections of the second branch, and of further parts of one kind, have a number behind."""
    uses: Counter[str] = Counter()
    yield "block", tuple((tuple(branch.parts), names.get(branch.shared), branch.reads) for branch in fields.branches)
    for number, (branch, built) in enumerate(zip(fields.branches, layer.branches, strict=True), 1):
        for section in ("norm", "position", "residual"):
            yield from _section(getattr(branch, section), section if number == 1 else f"{section}#{number}")
        yield from _of_parts(branch, built, uses)


def _of_parts(branch: BranchFields, built: Branch, uses: Counter[str]) -> Iterator[tuple[str, object]]:
    for (section, declared), (_, part) in zip(branch.parts.items(), built.parts, strict=True):
        uses[section] += 1
        place = section if uses[section] == 1 else f"{section}#{uses[section]}"
        values = dict(_section(declared, place))
        known = {f"{place}.{name}": value for name, value in _numbers(part).items()}
        yield from {path: known.get(path, value) for path, value in values.items()}.items()


def _section(section: object, path: str) -> Iterator[tuple[str, object]]:
    if section is None:
        yield path, None
    else:
        yield from _flat(section, f"{path}.")


def _flat(section: object, inside: str, but: tuple[str, ...] = ()) -> Iterator[tuple[str, object]]:
    for name, value in fields(section).items():
        if name in but:
            continue
        if not isinstance(value, Struct):
            yield inside + name, value
        else:
            yield from _flat(value, f"{inside}{name}.")


def _numbers(part: object) -> dict[str, object]:
    """What a built part holds in place of a default, as far as it is a plain value."""
    return {name: value for name, value in fields(part).items() if isinstance(value, (int, float, str))}


def fields(section: object) -> dict[str, Any]:
    """The fields of a section of the language (and its kind, where that chooses among several), or of a part."""
    kind = getattr(section, "kind", None)
    found = {"kind": kind} if isinstance(kind, str) else {}
    return found | {name: getattr(section, name) for name in getattr(section, "__struct_fields__", ())}
