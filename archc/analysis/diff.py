"""In what two specs differ, and what each difference alone would change in the first.

A port that mixes two values up fails loudly where parameters would have other names or shapes, because the weights do
not load. Where they would not, nothing is raised: the port runs, and computes something else.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NotRequired, TypedDict

from msgspec.structs import replace

from archc.analysis.alignment import continued, described, layer_changes, restructured, structure
from archc.analysis.cache import cache_sizes
from archc.analysis.changes import Change, changes
from archc.analysis.ordered import ordered
from archc.analysis.params import count_params
from archc.architecture.build import build
from archc.architecture.model import Architecture, Layer
from archc.spec.checks import check_branch, check_kinds
from archc.spec.language import BranchFields, Header, LayerFields, Spec
from archc.spec.sums import check_sums

APART: Final = ("name", "family", "source", "dtype", "published")
"""Fields of the header that change nothing computed."""
_OWN: Final = (*APART, "archc", "layers")


class Sizes(TypedDict):
    """Sizes of one model, or changes of them. The cache is that of one sequence, in A's dtype."""

    params: int
    cache_bytes_per_token: int | float
    cache_bytes_at_context: int


class Difference(TypedDict):
    """One declared field in which B differs from A."""

    field: str
    """Its dotted path in the language."""
    layers: list[int] | None
    """Layers of B in which it differs from A; null for what is not declared by layer."""
    a: Any
    b: Any
    along: NotRequired[dict[str, Any]]
    """Where the kind differs: what the change takes from B as well, which A's kind lacks or means otherwise."""
    effect: Sizes | None
    """What changes in A if only this field becomes as in B; null where such a model cannot be built."""
    why: NotRequired[str]
    """Why it cannot be built."""
    failure: Literal["loud", "silent"]


class Apart(TypedDict):
    """A field of the header that differs and changes nothing computed."""

    field: str
    a: Any
    b: Any


class Model(Sizes):
    """One side."""

    name: str
    layers: int


class Diff(TypedDict):
    """How B differs from A."""

    a: Model
    b: Model
    equal: bool
    """Whether nothing differs, fields apart aside."""
    differences: list[Difference]
    apart: list[Apart]


@dataclass
class _Entry:
    """The same change, wherever it is found."""

    change: Change
    header: Header | None = None
    pairs: dict[int, dict[int, BranchFields]] = field(default_factory=dict)
    """Branches as they become, for each pair of kinds that stand at the same depth."""
    layer: dict[int, LayerFields] = field(default_factory=dict)
    """Whole layers as they become, likewise."""
    count: int | None = None
    """The number of layers as it becomes."""


def diff(a: Spec, b: Spec) -> Diff:
    """How `b` differs from `a`; both have passed all checks."""
    ours, theirs = build(a), build(b)
    side = _Sides(a, b, ours, theirs)
    found = [difference for entry in side.entries() if (difference := side.judge(entry))]
    apart = [
        Apart(field=name, a=_shown(a.header, name), b=_shown(b.header, name))
        for name in APART
        if getattr(a.header, name) != getattr(b.header, name)
    ]
    models = [Model(name=model.name, layers=len(model.layers), **_sizes(model, ours.dtype)) for model in (ours, theirs)]
    return Diff(a=models[0], b=models[1], equal=not found, differences=found, apart=apart)


class _Sides:
    """A and B layer by layer: A with as many layers as B, and the pairs of kinds at the same depth."""

    def __init__(self, a: Spec, b: Spec, ours: Architecture, theirs: Architecture) -> None:
        self.a, self.b = a, b
        self.resized = continued(a.pattern, len(b.pattern))
        depths = list(zip(self.resized, b.pattern, strict=True))
        self.pairs = list(dict.fromkeys(depths))
        self.at = [self.pairs.index(pair) for pair in depths]
        self.ours = dict(zip(a.pattern, ours.layers, strict=True))
        self.theirs = dict(zip(b.pattern, theirs.layers, strict=True))

    def entries(self) -> list[_Entry]:
        """Every field that differs, once for each pair of values."""
        found: dict[str, _Entry] = {}

        def entry(change: Change, path: tuple[str, ...]) -> _Entry:
            named = replace(change, path=path)
            return found.setdefault(repr((path, change.a, change.b)), _Entry(named))

        if len(self.a.pattern) != len(self.b.pattern):
            counts = Change(("layers",), len(self.a.pattern), len(self.b.pattern), None)
            entry(counts, counts.path).count = len(self.b.pattern)
        stated = {name: getattr(self.b.header, name) for name in Header.__struct_fields__ if name not in _OWN}
        for change in changes(self.a.header, replace(self.a.header, **stated)):
            assert isinstance(change.after, Header)
            entry(change, change.path).header = change.after
        for index, (mine, other) in enumerate(self.pairs):
            layer, target = self.a.kinds[mine], self.b.kinds[other]
            if structure(layer) != structure(target):
                shapes = Change(("block",), described(layer), described(target), None)
                entry(shapes, shapes.path).layer[index] = restructured(layer, target)
            for path, change, branches in layer_changes(layer, target, self.ours[mine], self.theirs[other]):
                entry(change, path).pairs[index] = branches
        return list(found.values())

    def judge(self, entry: _Entry) -> Difference | None:
        """What the change does to A alone; None if it changes nothing that is computed."""
        where = [depth for depth, pair in enumerate(self.at) if pair in entry.pairs or pair in entry.layer]
        beyond = bool(where) and where[0] >= len(self.a.pattern) and not entry.header
        base = self._spec(_Entry(entry.change, count=len(self.resized) if beyond else None))
        before, change = build(base), entry.change
        shown = Difference(
            field=".".join(change.path),
            layers=where if where else None,
            a=change.a,
            b=change.b,
            effect=None,
            failure="loud",
        )
        if change.along:
            shown["along"] = change.along
        after_spec = self._spec(dataclasses.replace(entry, count=len(self.resized)) if beyond else entry)
        problem = change.problem or _problem(after_spec)
        if problem:
            shown["why"] = problem
            return ordered(shown, Difference)
        after = build(after_spec)
        if same_model(before, after):
            return None
        old, new = _sizes(before, before.dtype), _sizes(after, before.dtype)
        shown["effect"] = Sizes(
            params=new["params"] - old["params"],
            cache_bytes_per_token=new["cache_bytes_per_token"] - old["cache_bytes_per_token"],
            cache_bytes_at_context=new["cache_bytes_at_context"] - old["cache_bytes_at_context"],
        )
        shown["failure"] = "loud" if _tensors_differ(before, after) else "silent"
        return ordered(shown, Difference)

    def _spec(self, entry: _Entry) -> Spec:
        """A with this change; kinds of layer are named by the pair that they belong to."""
        pattern = self.a.pattern if entry.count is None else continued(self.a.pattern, entry.count)
        kinds: dict[str, LayerFields] = {}
        names = []
        for depth, kind in enumerate(pattern):
            pair = self.at[depth] if depth < len(self.at) else None
            name = kind if pair is None else f"{kind} {pair}"
            names.append(name)
            if name not in kinds:
                kinds[name] = self._layer(self.a.kinds[kind], entry, pair)
        return Spec(entry.header or self.a.header, kinds, tuple(names))

    @staticmethod
    def _layer(layer: LayerFields, entry: _Entry, pair: int | None) -> LayerFields:
        if pair in entry.layer:
            return entry.layer[pair]
        changed = entry.pairs.get(pair, {}) if pair is not None else {}
        return LayerFields(tuple(changed.get(index, branch) for index, branch in enumerate(layer.branches)))


def _problem(spec: Spec) -> str | None:
    """The first error that the checks find, in words."""
    layers = {
        kind: [{"norm": b.norm, "position": b.position, "residual": b.residual, **b.parts} for b in layer.branches]
        for kind, layer in spec.kinds.items()
    }
    branches = [(kind, sections) for kind, found in layers.items() for sections in found]
    header = spec.header
    around = (header.hidden_size, header.context, header.embedding)
    alone = (finding for _, sections in branches for finding in check_branch(sections, *around))
    together = (finding for _, finding in check_kinds(branches))
    added = (finding for found in layers.values() for _, finding in check_sums(found))
    return next((f.message for found in (alone, together, added) for f in found if f.code.startswith("E")), None)


def same_model(a: Architecture, b: Architecture) -> bool:
    """Whether two models are the same, whatever their layers are called."""
    if replace(a, layers=()) != replace(b, layers=()) or len(a.layers) != len(b.layers):
        return False
    return all(replace(one, kind=two.kind) == two for one, two in _layer_pairs(a, b))


def _tensors_differ(a: Architecture, b: Architecture) -> bool:
    """Whether parameters differ in name or shape."""

    def stored(layer: Layer) -> set[tuple[str, tuple[int, ...]]]:
        return {(tensor.name, tensor.shape) for tensor in layer.tensors("layers")}

    ends = [{(t.name, t.shape) for t in replace(one, layers=()).tensors()} for one in (a, b)]
    if ends[0] != ends[1] or len(a.layers) != len(b.layers):
        return True
    return any(stored(one) != stored(two) for one, two in _layer_pairs(a, b))


def _layer_pairs(a: Architecture, b: Architecture) -> list[tuple[Layer, Layer]]:
    """Layers at the same depth, each pair once."""
    pairs = {(id(one), id(two)): (one, two) for one, two in zip(a.layers, b.layers, strict=True)}
    return list(pairs.values())


def _sizes(architecture: Architecture, dtype: str) -> Sizes:
    cache = cache_sizes(architecture, context=architecture.context, batch=1, dtype=dtype, state_dtype=dtype)
    return Sizes(
        params=count_params(architecture)["total"],
        cache_bytes_per_token=cache["bytes_per_token"],
        cache_bytes_at_context=cache["bytes_at_context"],
    )


def _shown(header: Header, name: str) -> Any:
    value = getattr(header, name)
    return sorted(value) if isinstance(value, dict) else value
