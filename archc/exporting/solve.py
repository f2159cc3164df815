"""Finds the config that imports as a spec, by trying values for the keys that its fields are read from."""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice, product
from math import inf
from re import sub
from typing import Any, Final

from msgspec import Struct

from archc.architecture import Compiled, compile_text
from archc.errors import ArchcError
from archc.exporting.candidates import for_key
from archc.exporting.outline import Difference, differences, outline, same_model
from archc.exporting.trace import Place, Trace, trace
from archc.exporting.writers import Config, is_open, seeds, typed
from archc.families import family
from archc.importing.convert import convert, leaves
from archc.importing.reading import Reading
from archc.importing.resolve import reference, resolve
from archc.importing.translate import Leaf, translate
from archc.spec.language import SECTIONS

_ROUNDS: Final = 12
_PATIENCE: Final = 250
"""Configs to import before the search is given up: a spec that its family can say takes some dozens."""
_LOOK: Final = 0.25
_LIKELY: Final = 4
_TRIES: Final = 250
"""Values that are tried for a key, for one field; the first few are the likely ones."""
_SIZES: Final = ("attention.heads", "attention.kv_heads", "attention.head_dim", "ffn.width")
_SEEDED: Final = ("position", "attention.window", "attention.chunk", "block", "ffn.kind")
"""What the writers of common shapes decide about."""
_INVALID: Final = 1e9
"""The distance of a config that imports as no spec; the reference may not even read it."""
_SWITCHES: Final = 4
_ENTRIES: Final = 64
"""Ways to give every kind of layer its entry in a list."""


class Attempt(Struct, frozen=True):
    """A config, and in what the spec that it imports as is not the wanted one."""

    config: Config
    wrong: tuple[Difference, ...]
    problem: str | None = None
    """Why it imports as no spec at all."""

    @property
    def distance(self) -> float:
        """How far it is from the wanted spec; 0 is there."""
        if self.problem is None:
            return len(self.wrong)
        return _INVALID + len(self.wrong) if self.wrong else inf


class Search:
    """The search for one spec. What has been tried is remembered."""

    def __init__(self, wanted: Compiled, model_type: str) -> None:
        self.wanted = wanted
        self.goal = outline(wanted)
        self.model_type = model_type
        self._known: dict[str, Attempt] = {}
        self._fixed: Config = {}
        self.spent = 0.0
        """How many configs have been imported or traced; a look at one field alone is a part of that."""

    def attempt(self, config: Config) -> Attempt:
        """Import a config and compare."""
        key = json.dumps(config, sort_keys=True, default=repr)
        if key not in self._known:
            self.spent += 1
            self._known[key] = self._attempt(config)
        return self._known[key]

    def _attempt(self, config: Config) -> Attempt:
        try:
            found = compile_text(convert(config, "model").text)
        except (ArchcError, RecursionError) as error:
            return Attempt(config, tuple(self._wrong_leaves(config)), str(error))
        if same_model(self.wanted.architecture, found.architecture):
            return Attempt(config, ())
        wrong = differences(self.goal, outline(found))
        return Attempt(config, tuple(wrong) or (Difference(None, "the model", None, None),))

    def _wrong_leaves(self, config: Config) -> Iterator[Difference]:
        """What is wrong with what the table says of a config, where that makes no spec."""
        try:
            resolved, stated, _ = resolve(config)
            table = family(self.model_type).config
            found = translate(table, lambda layer: Reading(resolved, stated, layer), len(self.goal.layers))
        except Exception:  # the reference reads no such config, or the table trips over it
            return
        for layer, tree in ((None, found.header), *enumerate(found.layers)):
            for place, leaf in leaves(tree, ""):
                wanted = self.goal.at(layer, unnumbered(place))
                if isinstance(leaf.value, (int, float, str)) and leaf.value != wanted:
                    yield Difference(layer, unnumbered(place), wanted, leaf.value)

    def run(self, bare: Config, start: Config) -> Attempt:
        """The nearest config that is found. `bare` is one that the reference reads; `start` is known to be needed."""
        self._fixed = start
        best = self._nearest(self._starts(bare))
        for _ in range(_ROUNDS):
            before = best.config
            best = self._better(best, [self._stated(best.config)])
            if best.distance:
                best = self._tried(best)
            if not best.distance or best.config == before:
                break
        return best

    def _nearest(self, configs: Iterable[Config]) -> Attempt:
        """The nearest of some configs; those behind one that is there are not looked at."""
        best: Attempt | None = None
        for config in configs:
            found = self.attempt(config)
            if best is None or found.distance < best.distance:
                best = found
            if not best.distance:
                break
        assert best is not None
        return best

    def _starts(self, bare: Config) -> Iterator[Config]:
        """Configs to begin with: one that is read at all lies near one of them."""
        yield self._fixed
        with suppress(ArchcError):
            resolved, _, _ = resolve(bare)
            kinds = {**typed(resolved, self.goal), **self._fixed}
            for config in (bare, {**self._stated(bare), **kinds}, {**kinds, **self._fixed}):
                stated = {**self._stated(config), **self._fixed}
                yield stated
                yield from self._seeds(stated, resolved)

    def _seeds(self, config: Config, resolved: Any) -> Iterator[Config]:
        return ({**seed, **self._fixed} for seed in seeds(config, resolved, self.goal))

    def _traces(self, config: Config) -> tuple[Any, list[Trace]]:
        self.spent += 1
        resolved, _, _ = resolve(config)
        return resolved, trace(resolved, family(self.model_type).config, len(self.goal.layers))

    def _stated(self, config: Config) -> Config:
        """A config in which every key that is a field of the spec has its value."""
        try:
            resolved, traces = self._traces(config)
        except ArchcError:
            return config
        changed = copy.deepcopy(config)
        values: dict[Place, list[object]] = {}
        for found in traces:
            if found.direct:
                value = self.goal.at(found.layer, found.path)
                if value is not None:
                    values.setdefault(found.reads[0], []).append(value)
        for place, wanted in values.items():
            put(changed, resolved, place, max(wanted, key=wanted.count))
        return changed

    def _better(self, best: Attempt, configs: Iterable[Config]) -> Attempt:
        """The first of some configs that is nearer, or `best`."""
        for config in configs:
            if self.spent > _PATIENCE:
                break
            found = self.attempt(config)
            if found.distance < best.distance:
                return found
        return best

    def _tried(self, best: Attempt) -> Attempt:
        """One value after another, field by field, as long as it helps; first the likely ones for every field."""
        for tries in (_LIKELY, _TRIES):
            seen: set[tuple[str, str]] = set()
            while best.distance and self.spent <= _PATIENCE:
                try:
                    resolved, traces = self._traces(best.config)
                except ArchcError:
                    return best
                if any(difference.path.startswith(_SEEDED) for difference in best.wrong):
                    best = self._better(best, self._seeds(best.config, resolved))
                todo = next((d for d in best.wrong if (d.path, repr(d.wanted)) not in seen), None)
                if todo is None:
                    break
                seen.add((todo.path, repr(todo.wanted)))
                found = self._mended(best, todo, resolved, traces, tries)
                if found.distance >= best.distance and tries == _TRIES:
                    found = self._turned(best, todo, resolved, traces)
                if found.distance < best.distance:
                    best = self._better(found, [self._stated(found.config)])  # further keys may be read now
        return best

    def _turned(self, best: Attempt, todo: Difference, resolved: Any, traces: Sequence[Trace]) -> Attempt:
        """One switch turned, and then the one value mended that this puts wrong."""
        for place in self._places(todo, resolved, traces):
            if not isinstance(value := read(resolved, place), bool):
                continue
            turned = self.attempt(with_value(best.config, resolved, place, not value))
            with suppress(ArchcError):
                then, after = self._traces(turned.config)
                for wrong in list({d.path: d for d in turned.wrong}.values())[:_SWITCHES]:
                    found = self._mended(turned, wrong, then, after, _TRIES)
                    if found.distance < best.distance:
                        return found
        return best

    def _places(self, todo: Difference, resolved: Any, traces: Sequence[Trace]) -> list[Place]:
        """The keys that a field is read from, those that are read for it alone before those of its whole section."""
        concerned = [t for t in traces if (t.layer == todo.layer or t.layer is None or todo.layer is None)]
        concerned = sorted((t for t in concerned if t.concerns(todo.path)), key=lambda t: -len(t.path))
        found = dict.fromkeys(place for t in concerned for place in t.reads)
        return [p for p in found if p[0] not in self._fixed and (is_open(resolved, p[0]) or read(resolved, p) is None)]

    def _mended(self, best: Attempt, todo: Difference, resolved: Any, traces: Sequence[Trace], most: int) -> Attempt:
        """One value changed, or several switches turned, so that a field comes right."""
        places = self._places(todo, resolved, traces)
        sizes = [v for v in (read(resolved, place) for place in places) if _is_number(v)]
        sizes += [v for v in self.goal.header.values() if _is_number(v)]
        sizes += [v for v in map(self.goal.layers[0].get, _SIZES) if _is_number(v)]
        wrong = [d for d in best.wrong if d.path == todo.path]
        for place in places:
            current = read(resolved, place)
            found = self._better(best, self._lists(best, resolved, place, current))
            if found is not best:
                return found
            values = {repr(value): value for value in for_key(current, wrong, self.goal, sizes)}
            configs = (with_value(best.config, resolved, place, value) for value in islice(values.values(), most))
            found = self._better(best, (config for config in configs if self._may_mend(config, todo)))
            if found is not best:
                return found
        return self._better(best, _switched(best.config, resolved, places))

    def _may_mend(self, config: Config, todo: Difference) -> bool:
        """Whether a field comes right, or is left to its default; cheaper than to import the whole config."""
        self.spent += _LOOK
        table = {
            path: source
            for path, source in family(self.model_type).config.items()
            if path == "layers" or (path.partition(".")[0] in SECTIONS) == (todo.layer is not None)
        }
        try:
            resolved, stated, _ = resolve(config)
            found = translate(table, lambda _: Reading(resolved, stated, todo.layer or 0), 1)
        except Exception:  # the reference reads no such config, or the table trips over it
            return False
        count = found.header.get("layers")
        if isinstance(count, Leaf) and isinstance(count.value, int) and count.value > len(self.goal.layers):
            return False  # and importing it could take long
        tree = found.header if todo.layer is None else found.layers[0]
        values = [leaf.value for place, leaf in leaves(tree, "") if unnumbered(place) == unnumbered(todo.path)]
        return not values or todo.wanted in values or not all(map(_is_number, values))

    def _lists(self, best: Attempt, resolved: Any, place: Place, current: object) -> Iterator[Config]:
        """A list with an entry for every layer: the entry that suits each best, tried on all at once."""
        count = len(self.goal.layers)
        if not isinstance(current, (list, tuple)) or len(current) != count:
            return
        pool = _entries(current)
        scores: list[tuple[object, dict[int | None, int]]] = []
        for entry in pool:
            found = self.attempt(with_value(best.config, resolved, place, [entry] * count))
            if found.problem is None:
                scores.append((entry, _by_layer(found.wrong)))
        if scores:
            yield with_value(best.config, resolved, place, [_suited(scores, layer) for layer in range(count)])
        kinds = list(dict.fromkeys(id(layer) for layer in self.goal.layers))
        if len(pool) ** len(kinds) <= _ENTRIES:
            for ways in product(pool, repeat=len(kinds)):
                of_kind = dict(zip(kinds, ways, strict=True))
                yield with_value(best.config, resolved, place, [of_kind[id(layer)] for layer in self.goal.layers])


def unnumbered(place: str) -> str:
    """The path of a field without the number of its branch."""
    return sub(r"^block\.\d+\.|#\d+", "", place)


def _suited(scores: Sequence[tuple[object, dict[int | None, int]]], layer: int) -> object:
    """The entry with which a layer has the fewest wrong fields; the first of several."""
    return min(scores, key=lambda score: score[1].get(layer, 0))[0]


def _by_layer(wrong: Iterable[Difference]) -> dict[int | None, int]:
    return dict(Counter(difference.layer for difference in wrong))


def _entries(current: Sequence[object]) -> list[object]:
    """What may stand in a list that has an entry for every layer."""
    if all(isinstance(entry, str) for entry in current):
        known = reference("transformers.configuration_utils")
        dense_or_not = set(current) <= set(known.ALLOWED_MLP_LAYER_TYPES)
        names = known.ALLOWED_MLP_LAYER_TYPES if dense_or_not else known.ALLOWED_LAYER_TYPES
        return list(dict.fromkeys((*current, *names)))
    if all(isinstance(entry, bool) for entry in current):
        return [True, False]
    return list(dict.fromkeys((*current, 0, 1)))


def _switched(config: Config, resolved: Any, places: Sequence[Place]) -> Iterator[Config]:
    """Several switches turned at once."""
    switches = [place for place in places if isinstance(read(resolved, place), bool)][:_SWITCHES]
    for values in product((False, True), repeat=len(switches)) if len(switches) > 1 else ():
        changed = config
        for place, value in zip(switches, values, strict=True):
            changed = with_value(changed, resolved, place, value)
        yield changed


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def read(resolved: Any, place: Place) -> Any:
    """What a resolved config has at a place; None for nothing."""
    found = resolved
    with suppress(Exception):  # a class may refuse to answer for all layers at once what each has for itself
        for key in place:
            found = found.get(key) if isinstance(found, Mapping) else getattr(found, key, None)
        return found
    return None


def with_value(config: Config, resolved: Any, place: Place, value: object) -> Config:
    """A config with one value changed."""
    changed = copy.deepcopy(config)
    put(changed, resolved, place, value)
    return changed


def put(config: Config, resolved: Any, place: Place, value: object) -> None:
    """Give a config a value; a section that it does not state is first written as it is resolved."""
    inside = config
    for depth, key in enumerate(place[:-1], 1):
        if not isinstance(inside.get(key), dict):
            whole = read(resolved, place[:depth])
            inside[key] = copy.deepcopy(dict(whole) if isinstance(whole, Mapping) else {})
        inside = inside[key]
    inside[place[-1]] = list(value) if isinstance(value, tuple) else value
