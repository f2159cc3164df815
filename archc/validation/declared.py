"""What a spec declares against what the checkpoint's own config.json says, field by field, before anything runs.

Some fields no run can see on given weights: an eps below the last digit, a window longer than every probe. The
config is imported as `archc import` does it, and two specs are compared by the models that they declare, not by text.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from archc.analysis.diff import APART, Difference, diff, same_model
from archc.architecture import compile_text
from archc.architecture.build import build
from archc.errors import ArchcError
from archc.importing.convert import Imported, import_spec
from archc.importing.translate import Leaf
from archc.spec.diagnostics import SpecError
from archc.spec.language import Spec

_SAID: Final = (*APART, "trained_context", "undeclared")
"""Fields of the header that change nothing computed."""


@dataclass(frozen=True, slots=True)
class ConfigDifference:
    """A field whose declared value is not that of config.json; null is what is not there.

    `layers` are those concerned, None for what is not declared by layer. `stated` says whether the config itself gives
    the value (true) or the reference's config class does (false); None where the value follows from no key.
    """

    field: str
    layers: tuple[int, ...] | None
    declared: object
    config: object
    stated: bool | None


@dataclass(frozen=True, slots=True)
class ConfigResult:
    """The differences, or why there was nothing to compare with."""

    differences: tuple[ConfigDifference, ...] = ()
    why_not: str = ""

    @property
    def passed(self) -> bool:
        """Whether the spec is a contract about this checkpoint."""
        return not self.differences


def compare_config(spec: Spec, folder: Path) -> ConfigResult:
    """The declared fields of a spec, which has passed all checks, against the config.json in `folder`."""
    try:
        imported = import_spec(str(folder))
        other = compile_text(imported.text).loaded.spec
    except (ArchcError, SpecError) as error:
        return ConfigResult(why_not=str(error).splitlines()[0])
    ours, theirs = _anonymous(spec), _anonymous(other)
    theirs = replace(theirs, header=replace(theirs.header, **{name: getattr(ours.header, name) for name in _SAID}))
    if _context_is_idle(ours, theirs):
        theirs = _with_context(theirs, ours.header.context)
    if same_model(build(ours), build(theirs)):
        return ConfigResult()
    found, back = (diff(*pair)["differences"] for pair in ((ours, theirs), (theirs, ours)))
    either_way = {one["field"] for one in back}
    real = (one for one in found if one["layers"] or one["field"] in either_way)
    return ConfigResult(tuple(_difference(one, imported) for one in real if not _rounded_alike(one["a"], one["b"])))


def _with_context(spec: Spec, context: int) -> Spec:
    return replace(spec, header=replace(spec.header, context=context))


def _context_is_idle(ours: Spec, theirs: Spec) -> bool:
    """Whether another context changes nothing computed, in either: no table is as long, no scaling starts from it."""
    contexts = (ours.header.context, theirs.header.context)

    def models(spec: Spec) -> tuple[Any, ...]:
        built = (build(_with_context(spec, context)) for context in contexts)
        return tuple(replace(one, context=0, trained_context=None) for one in built)

    return all(same_model(*models(spec)) for spec in (ours, theirs))


def _anonymous(spec: Spec) -> Spec:
    """The spec with branches that depths share named in the order in which they first occur: names are free."""
    names: dict[str | None, str | None] = {None: None}
    for kind in dict.fromkeys(spec.pattern):
        for branch in spec.kinds[kind].branches:
            names.setdefault(branch.shared, f"shared_{len(names)}")
    kinds = {
        kind: replace(layer, branches=tuple(replace(one, shared=names[one.shared]) for one in layer.branches))
        for kind, layer in spec.kinds.items()
        if kind in spec.pattern
    }
    return replace(spec, kinds=kinds)


def _rounded_alike(a: object, b: object) -> bool:
    """Whether two numbers are one in fp32, as where a scale is written with nine digits."""
    numbers = isinstance(a, float) and isinstance(b, float) and max(abs(a), abs(b)) < 1e38
    return numbers and struct.pack("f", a) == struct.pack("f", b)


def _difference(found: Difference, imported: Imported) -> ConfigDifference:
    layers = None if found["layers"] is None else tuple(found["layers"])
    leaf = _leaf(found["field"], layers, dict(imported.values))
    stated = None if leaf is None or not leaf.keys else not leaf.unstated
    return ConfigDifference(found["field"], layers, found["a"], found["b"], stated)


def _leaf(field: str, layers: tuple[int, ...] | None, values: Mapping[str, Leaf]) -> Leaf | None:
    """Where the imported value of a field came from; of one in a block, also where the block takes it from."""
    below = field.split(".", 2)[-1] if field.startswith("block.") else field
    inside = [f"layers.{layers[0]}.{name}" for name in (field, below)] if layers else [field, f"layers.0.{field}"]
    return next((values[name] for name in inside if name in values), None)
