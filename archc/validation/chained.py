"""Several mistakes at once: found one after another, where a port shows what happens within its layers.

A model with the mistakes found so far parts from the port at some point of the forward pass. Whatever is still missing
acts first there, so only such mistakes are tried: one goes on if with it the model gives what the port gives, up to a
later point. What is seen within layers is no proof: some points are another thing in other classes, and are passed
over where nothing explains them. So a chain counts only if it agrees with all the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, combinations
from typing import Final, TypeAlias

from archc.validation.evidence import Answers, Evidence, same_in_every_class
from archc.validation.tracing import split
from archc.validation.workshop import Mutant

MOST: Final = 6
"""Mistakes in a chain."""
_BREADTH: Final = 3
"""Mistakes that are followed from one point, where several lead as far."""
_AROUND: Final = 2
"""How far from the point where the port parts a mistake may begin to act, as noise hides what is small."""
_PAIRS: Final = 400
"""Pairs tried in all, of mistakes that begin to act at the same point."""

Marks: TypeAlias = Sequence[bool | None]
"""Yes or no at the points of the path, as far as it was asked; None where there is no answer."""
Answering: TypeAlias = Callable[[tuple[Mutant, ...]], Answers | None]
Fitting: TypeAlias = Callable[[tuple[Mutant, ...], Evidence], Iterator[Mutant]]


@dataclass
class Chain:
    """A search for mistakes that together make what a port shows along `path`.

    The path has only what the generated module shows too. `answers` makes one with some mistakes, `fitted` proposes
    numbers that bring it near to the port at a point, and `holds` says whether mistakes agree with all the evidence.
    """

    path: Sequence[Evidence]
    mutants: Sequence[Mutant]
    answers: Answering
    fitted: Fitting
    holds: Callable[[tuple[Mutant, ...]], bool]
    late: Callable[[], bool]
    partly: tuple[tuple[Mutant, ...], int] | None = None
    """The mistakes that lead furthest, and the place in `path` up to which nothing else is needed."""
    _acts: dict[int, Marks] = field(default_factory=dict)
    """Where each mistake by itself moves the right model, by its place in `mutants`."""
    _known: dict[tuple[Mutant, ...], Marks] = field(default_factory=dict)
    """Where mistakes give what the port gives."""
    _pairs_left: int = _PAIRS

    def find(self) -> tuple[Mutant, ...] | None:
        """The mistakes, in the order in which they act; None where no chain of them holds."""
        agreed = [one.agrees(one.right) for one in self.path]
        return self._beyond((), agreed, frozenset()) if not all(agreed) else None

    def _beyond(self, chosen: tuple[Mutant, ...], agreed: Marks, strange: frozenset[str]) -> tuple[Mutant, ...] | None:
        """A chain that begins with what is chosen; `agreed` is where it gives what the port gives."""
        if len(chosen) > 1 and self.holds(chosen):
            return self._needed(chosen)
        parted = self._first(agreed, strange)
        if parted is not None and chosen and not strange and (self.partly is None or parted > self.partly[1]):
            self.partly = chosen, parted
        if parted is None or len(chosen) >= MOST or self.late():
            return None
        explained = False
        for mutants, further in self._steps(chosen, parted, strange):
            explained = True
            found = self._beyond((*chosen, *mutants), further, strange)
            if found is not None:
                return found
        if explained or same_in_every_class(self.path[parted]):
            return None
        return self._beyond(chosen, agreed, strange | {split(self.path[parted].point)[1]})

    def _needed(self, chosen: tuple[Mutant, ...]) -> tuple[Mutant, ...]:
        """Without those that the others explain everything without."""
        for one in chosen:
            others = tuple(other for other in chosen if other is not one)
            if len(chosen) > 1 and self.holds(others):
                return self._needed(others)
        return chosen

    def _steps(
        self, chosen: tuple[Mutant, ...], parted: int, strange: frozenset[str]
    ) -> Iterator[tuple[tuple[Mutant, ...], Marks]]:
        """What leads beyond the point where the port parts: single mistakes, those that lead furthest first.

        Where none does, a number of another value; else two mistakes that begin to act there.
        """
        known = [one.fault for one in chosen]
        acting = [one for one in self._acting(parted, strange) if one.fault not in known]
        found = list(self._leading(chosen, ((one,) for one in acting), parted, strange))
        furthest = max((first for first, _, _ in found), default=None)
        yield from [(mutants, agreed) for first, mutants, agreed in found if first == furthest][:_BREADTH]
        if not found:
            numbers = ((one,) for one in self.fitted(chosen, self.path[parted]))
            two = (pair for pair in combinations(acting, 2) if pair[0].fault is not pair[1].fault)
            for _, mutants, agreed in self._leading(chosen, chain(numbers, self._few(two)), parted, strange):
                yield mutants, agreed
                return

    def _leading(
        self,
        chosen: tuple[Mutant, ...],
        tried: Iterable[tuple[Mutant, ...]],
        parted: int,
        strange: frozenset[str],
    ) -> Iterator[tuple[int, tuple[Mutant, ...], Marks]]:
        """Those of the mistakes that lead beyond a point, how far, and where there is agreement with them.

        It takes a point that agrees: to show nothing leads nowhere.
        """
        for mutants in tried:
            agreed = self._agreed((*chosen, *mutants))
            first = self._first(agreed, strange)
            until = len(agreed) if first is None else first
            if any(agreed[parted:until]):
                yield until, mutants, agreed

    def _few(self, pairs: Iterable[tuple[Mutant, ...]]) -> Iterator[tuple[Mutant, ...]]:
        for pair in pairs:
            if self._pairs_left == 0 or self.late():
                return
            self._pairs_left -= 1
            yield pair

    def _acting(self, parted: int, strange: frozenset[str]) -> Iterator[Mutant]:
        """Mistakes that begin to act near a point."""
        places = list(self._places(strange))
        near = places.index(parted)
        for number, mutant in enumerate(self.mutants):
            if self.late():
                return
            if number not in self._acts:
                answers = self.answers((mutant,))
                self._acts[number] = [] if answers is None else self._moved(answers)
            moved = self._acts[number]
            first = next((n for n, at in enumerate(places) if at < len(moved) and moved[at]), None)
            if first is not None and abs(first - near) <= _AROUND:
                yield mutant

    def _moved(self, answers: Answers) -> Marks:
        """Where a model gives something else than the right one, up to the first point of all classes."""

        def differs(one: Evidence) -> bool:
            given = answers.at(one)
            return given is not None and one.differs(given, one.right)

        return self._marks(differs, ends=True)

    def _agreed(self, mutants: tuple[Mutant, ...]) -> Marks:
        """Where a model gives what the port gives, up to the first point of all classes at which it does not."""
        if mutants not in self._known:
            answers = self.answers(mutants)
            self._known[mutants] = [] if answers is None else self._marks(_agreement(answers), ends=False)
        return self._known[mutants]

    def _marks(self, mark: Callable[[Evidence], bool | None], *, ends: bool) -> Marks:
        """A mark for every point, as far as the first point of all classes whose mark `ends` it."""
        found: list[bool | None] = []
        for one in self.path:
            found.append(mark(one))
            if found[-1] == ends and same_in_every_class(one):
                break
        return found

    def _first(self, agreed: Marks, strange: frozenset[str]) -> int | None:
        """The first place where there is no agreement, but for points that are strange."""
        return next((at for at in self._places(strange) if at >= len(agreed) or agreed[at] is False), None)

    def _places(self, strange: frozenset[str]) -> Iterator[int]:
        return (at for at, one in enumerate(self.path) if split(one.point)[1] not in strange)


def _agreement(answers: Answers) -> Callable[[Evidence], bool | None]:
    """Whether a model gives what the port gives; None where it gives nothing, as behind a norm that is left out."""
    return lambda one: None if answers.at(one) is None else answers.agree(one)
