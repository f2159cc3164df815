"""Diagnosis: which mistake, or pair of mistakes, makes a model that behaves exactly as a failing port does?

The search goes from the likeliest to the rarest, and stops at the first explanation: single mistakes everywhere; a
number of another value than any that the catalogue has; one mistake in some layers alone, found layer by layer where
the port can be traced; pairs, of which one must explain by itself some of the evidence (the first token, which no
position moves; an early point of a trace; a probe that the other mistake does not touch). What explains nothing is
never named.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import torch
from torch import Tensor

from archc.faults.tunable import TUNABLES, Tunable
from archc.validation.chained import Chain
from archc.validation.evidence import Answers, Case, Evidence
from archc.validation.fitting import fitted
from archc.validation.parity import distance
from archc.validation.ports import GeneratedPort
from archc.validation.tracing import layer_of
from archc.validation.workshop import Mutant, Workshop

_T = TypeVar("_T")
_NOTHING = "no mistake of the catalogue, and no pair of them, explains what the port gives"
SECONDS = 150.0
"""How long a search may take, in seconds of its own thread, so that a busy machine finds no less."""
_NEAREST = 8
"""Mistakes tried in pairs with all others where none explains anything by itself: those nearest to the port."""
_IN_LAYERS = 12
_ANOTHER = 2.0
"""A number matters at a point if so many times its declared value give something else there."""
_NEARER = 0.5
"""An explanation comes this much nearer to the port than the right model, or noise alone could be explained."""
_ALIKE = 3.0
"""Two noises whose root mean squares differ by no more than this factor are alike."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Changes with which the generated model behaves as a port, or the reference, and how far apart they still are.

    `times_floor` is in floors of the probe where it is most.
    """

    mutants: tuple[Mutant, ...]
    times_floor: float

    @property
    def text(self) -> str:
        """The mistakes in words."""
        return " and ".join(self.words)

    @property
    def words(self) -> list[str]:
        """Each of the mistakes in words."""
        return [_in_words(one) for one in self.mutants]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What a search found, best first, and what it did: the mistakes tried, and why it ended without an explanation."""

    found: tuple[Explanation, ...]
    tried: int
    note: str = ""
    of: Literal["port", "reference"] = "port"
    """Whose behaviour is explained: where the spec itself is not the reference's, that is the reference."""


def diagnose(
    case: Case, workshop: Workshop, mutants: Sequence[Mutant], step: Callable[[str], None], seconds: float = SECONDS
) -> Diagnosis:
    """The mistakes behind the evidence of a case. `step` is told what is about to be tried."""
    if not case.wrong:
        return Diagnosis((), 0, "no probe shows it at its logits, and nothing else is searched by")
    search = _Search(case, workshop, list(mutants), step, time.thread_time() + seconds)
    for stage in (search.singles, search.fitted, search.layered, search.chained, search.pairs):
        found = stage()
        if found is not None:
            return Diagnosis((found,), search.tried)
        if search.late:
            ended = f"the search ended after {seconds:.0f} seconds{search.partly}"
            return Diagnosis((), search.tried, search.in_16_bits() or ended)
    return Diagnosis((), search.tried, search.in_16_bits() or f"{_NOTHING}{search.partly}")


def _in_words(mutant: Mutant) -> str:
    slip = mutant.slip
    return f"{mutant.fault.field} = {slip.behaves_as} (declared: {slip.declared}){_where(mutant)}"


def _where(mutant: Mutant) -> str:
    if mutant.layers is None:
        return ", everywhere" if len(mutant.slip.layers) > 1 else ""
    numbers = sorted(mutant.layers)
    return f", on layer{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))} only"


@dataclass(slots=True)
class _Tried:
    """A mistake by itself: the wrong evidence that it explains, whether it spoils right evidence, how near it comes."""

    mutant: Mutant
    explains: tuple[Evidence, ...]
    spoils: bool
    nearness: float


@dataclass
class _Search:
    case: Case
    workshop: Workshop
    mutants: list[Mutant]
    step: Callable[[str], None]
    end: float
    tried: int = 0
    partly: str = ""
    """What explains the port up to some point, in words."""
    results: list[_Tried] = field(default_factory=list)

    @property
    def late(self) -> bool:
        """Whether time is up."""
        return time.thread_time() > self.end

    def singles(self) -> Explanation | None:
        """Every mistake by itself."""
        for mutant in self._until_late(self.mutants):
            found = self._single(mutant)
            if found is not None:
                return found
        return None

    def fitted(self) -> Explanation | None:
        """One number, of whatever value comes nearest to the port."""
        return next(
            (found for one in self._fitted((), self._cheap[0]) if (found := self._whole(one)) is not None), None
        )

    def _fitted(self, chosen: tuple[Mutant, ...], evidence: Evidence) -> Iterator[Mutant]:
        """Numbers that bring a model with some mistakes near to the port."""
        start = self._near(chosen, evidence)
        if not math.isfinite(start):  # the right model gives exactly what the port gives here
            return
        for tunable in self._until_late(TUNABLES):
            declared = self._declared(tunable)
            if declared is None:
                continue

            def nearness(value: float, tunable: Tunable = tunable) -> float:
                mutant = self._tuned(tunable, value)
                return math.inf if mutant is None else self._near((*chosen, mutant), evidence) / start

            if nearness(_ANOTHER * declared) == 1:
                continue
            for value in fitted(tunable, declared, nearness, lambda: self.late):
                mutant = self._tuned(tunable, value)
                if mutant is not None:
                    yield mutant

    def _declared(self, tunable: Tunable) -> float | None:
        """The declared value of a number, where there is one."""
        slip = next(iter(tunable.fault(tunable.low).slips(self.workshop.clean.architecture)), None)
        try:
            return None if slip is None else float(slip.declared.partition(" and ")[0])
        except ValueError:
            return None

    def _near(self, mutants: tuple[Mutant, ...], evidence: Evidence) -> float:
        """How far a model still is from the port, 1 for the right one."""
        if not mutants:
            return 1.0
        answers = self._answers(mutants)
        at = None if answers is None else answers.at(evidence)
        return math.inf if at is None else evidence.nearness(at)

    def _tuned(self, tunable: Tunable, value: float) -> Mutant | None:
        fault = tunable.fault(value)
        slip = next(iter(fault.slips(self.workshop.clean.architecture)), None)
        return None if slip is None else Mutant(fault, slip)

    def layered(self) -> Explanation | None:
        """One mistake in some of the layers that it can be in."""
        several = [mutant for mutant in self.mutants if len(mutant.slip.layers) > 1]
        outs = [one for one in self.case.evidence if layer_of(one.point) is not None]
        if outs:
            return self._by_trace(several, outs)
        return self._by_kinds(several)

    def _by_trace(self, mutants: Sequence[Mutant], outs: Sequence[Evidence]) -> Explanation | None:
        """Layers are added where the port parts from the model with those found so far."""
        first = next((one for one in outs if one in self.case.wrong), None)
        start = layer_of(first.point) if first is not None else None
        if start is None:
            return None
        until = [one for one in outs if layer_of(one.point) == start]
        for mutant in self._until_late([one for one in mutants if start in one.slip.layers]):
            layers = frozenset({start})
            answers = self._answers((replace(mutant, layers=layers),))
            if answers is None or not all(answers.agree(one) for one in until):
                continue
            while answers is not None:
                parted = next((one for one in outs if not answers.agree(one)), None)
                if parted is None:
                    break
                layer = layer_of(parted.point)
                if layer is None or layer in layers or layer not in mutant.slip.layers:
                    break
                layers |= {layer}
                answers = self._answers((replace(mutant, layers=layers),))
            for chosen in (layers, layers | {max(mutant.slip.layers)}):  # of the last layer there may be no point
                if chosen != frozenset(mutant.slip.layers):
                    found = self._whole(replace(mutant, layers=chosen))
                    if found is not None:
                        return found
        return None

    def _by_kinds(self, mutants: Sequence[Mutant]) -> Explanation | None:
        """Layers of one kind, all others, single ones; then layers that each bring the model nearer to the port."""
        architecture = self.workshop.clean.architecture
        kinds = dict.fromkeys(layer.kind for layer in architecture.layers)
        for mutant in self._until_late(mutants):
            mine = frozenset(mutant.slip.layers)
            of_kind = (frozenset(n for n in mine if architecture.layers[n].kind == kind) for kind in kinds)
            halves = (frozenset(n for n in mine if n % 2 == odd) for odd in (0, 1))
            for layers in dict.fromkeys((*of_kind, *halves)):
                if layers and layers != mine:
                    found = self._whole(replace(mutant, layers=layers))
                    if found is not None:
                        return found
        for mutant in self._until_late(mutants):
            found = self._greedily(mutant)
            if found is not None:
                return found
        return None

    def _greedily(self, mutant: Mutant) -> Explanation | None:
        wrong = self._cheap[0]
        layers: frozenset[int] = frozenset()
        best = 1.0
        while len(layers) < _IN_LAYERS and not self.late:
            tried: list[tuple[float, frozenset[int]]] = []
            for layer in self._until_late([n for n in mutant.slip.layers if n not in layers]):
                answers = self._answers((replace(mutant, layers=layers | {layer}),))
                found = None if answers is None else answers.at(wrong)
                if found is not None:
                    tried.append((wrong.nearness(found), layers | {layer}))
            if not tried or min(tried, key=lambda one: one[0])[0] >= 0.9 * best:
                return None
            best, layers = min(tried, key=lambda one: one[0])
            explained = self._whole(replace(mutant, layers=layers))
            if explained is not None:
                return explained
        return None

    def chained(self) -> Explanation | None:
        """Several mistakes, one after another along the forward pass; for half of the time that is left."""
        end = time.thread_time() + (self.end - time.thread_time()) / 2

        explained: dict[tuple[Mutant, ...], Explanation | None] = {}

        def holds(chosen: tuple[Mutant, ...]) -> bool:
            explained[chosen] = self._whole(*chosen)
            return explained[chosen] is not None

        clean = Answers(self.workshop.correct)
        path = [one for one in self.case.path if clean.at(one) is not None]
        chain = Chain(path, self.mutants, self._answers, self._fitted, holds, lambda: time.thread_time() > end)
        found = chain.find()
        if chain.partly is not None:
            mistakes, until = chain.partly
            one = path[until]
            place = f"the probe {one.probe.name}" if one.point == "logits" else one.point
            self.partly = f"; up to {place}, it behaves as with {' and '.join(map(_in_words, mistakes))}"
        return None if found is None else explained[found]

    def pairs(self) -> Explanation | None:
        """Two mistakes, of which one explains some of the evidence, or comes nearest to the port."""
        halves = [one for one in self.results if one.explains and not one.spoils]
        halves.sort(key=lambda one: (-len(one.explains), one.nearness))
        nearest = sorted((one for one in self.results if one not in halves), key=lambda one: one.nearness)
        for half in self._until_late([*halves, *nearest[:_NEAREST]]):
            first = half.mutant
            for second in self._until_late(self.mutants):
                if second.fault is not first.fault:
                    found = self._whole(first, second)
                    if found is not None:
                        return found
        return None

    def in_16_bits(self) -> str:
        """Whether the port deviates as much as the model does in a type of 16 bits, in words; empty if in none."""
        logits = [one for one in self.case.wrong if one.point == "logits"]
        for dtype, name in ((torch.bfloat16, "bfloat16"), (torch.float16, "float16")):
            port = self.workshop.make(dtype=dtype)
            assert isinstance(port, GeneratedPort)
            answers = Answers(port)
            noise = [distance(_given(answers, one), one.right, one.judged).rms for one in logits]
            off = [distance(one.ours, one.right, one.judged).rms for one in logits]
            if logits and all(a / _ALIKE <= b <= a * _ALIKE for a, b in zip(noise, off, strict=True)):
                return f"no mistake explains it, but the port deviates as much as the model does in {name}"
        return ""

    @property
    def _cheap(self) -> list[Evidence]:
        """Wrong evidence of the first probe that is wrong at its logits: one run of a model, or two, shows it all."""
        first = next((one.probe for one in self.case.wrong if one.point == "logits"), self.case.wrong[0].probe)
        return [one for one in self.case.wrong if one.probe is first]

    def _single(self, mutant: Mutant) -> Explanation | None:
        """The explanation that one mistake is; else what is remembered of it for pairs."""
        answers = self._answers((mutant,))
        if answers is None:
            return None
        explains = [one for one in self._cheap if answers.agree(one)]
        if len(explains) == len(self._cheap):
            explains += [one for one in self.case.wrong if one not in explains and answers.agree(one)]
            agrees = len(explains) == len(self.case.wrong) and all(answers.agree(one) for one in self.case.right)
            if agrees and self._nearer(answers):
                return self._explanation((mutant,), answers)
        probes = {id(one.probe) for one in self._cheap}
        spoils = not all(answers.agree(one) for one in self.case.right if id(one.probe) in probes)
        at = answers.at(self._cheap[0])
        near = math.inf if at is None else self._cheap[0].nearness(at)
        self.results.append(_Tried(mutant, tuple(explains), spoils, near))
        return None

    def _whole(self, *mutants: Mutant) -> Explanation | None:
        """The explanation that these mistakes are, if they agree with all the evidence."""
        answers = self._answers(mutants)
        if answers is None:
            return None
        ordered = (*self._cheap, *self.case.wrong, *self.case.right)
        agrees = all(answers.agree(one) for one in ordered) and self._nearer(answers)
        return self._explanation(mutants, answers) if agrees else None

    def _nearer(self, answers: Answers) -> bool:
        """Whether a model that agrees with the port is much nearer to it than the right one, somewhere."""
        found = ((one, answers.at(one)) for one in self.case.wrong)
        return any(given is not None and one.nearness(given) < _NEARER for one, given in found)

    def _explanation(self, mutants: tuple[Mutant, ...], answers: Answers) -> Explanation:
        worst = max(one.times(found) for one in self.case.wrong if (found := answers.at(one)) is not None)
        return Explanation(mutants, worst)

    def _answers(self, mutants: tuple[Mutant, ...]) -> Answers | None:
        self.tried += 1
        self.step(f"does it behave as with {' and '.join(one.name for one in mutants)}")
        port = self.workshop.make(*mutants)
        return Answers(port) if isinstance(port, GeneratedPort) else None

    def _until_late(self, things: Sequence[_T]) -> Iterator[_T]:
        for thing in things:
            if self.late:
                return
            yield thing


def _given(answers: Answers, evidence: Evidence) -> Tensor:
    found = answers.at(evidence)
    assert found is not None  # logits are given by every model
    return found.float()
