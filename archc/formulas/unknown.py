"""A number that is not known: arithmetic with it makes a formula, and a comparison asks which way to go.

`follow` runs a function until every way that its comparisons can go has been gone, and returns the tree of them:

>>> size = unknown("size")
>>> str(follow(lambda: min(size, 512)))
'if 512 < size: 512, else size'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from fractions import Fraction
from functools import cache
from typing import Any, Generic, TypeVar, cast

import sympy
from msgspec import Struct

Value = TypeVar("Value")
MOST_WAYS = 20_000
"""Ways after which a function is given up: each comparison of new numbers can double them."""
_SMALL = 2**16
"""Up to which a denominator is taken for what was meant, such as the number of a head's channels."""


class Unknown:
    """An expression over unknown numbers, all of them positive.

    Whole numbers and fractions are exact in it. Floats stand for the fraction of small numbers that they are nearest to
    (0.42857142857142855 is 3/7, so that of 14 channels it is 6), else for their shortest decimal.
    """

    __slots__ = ("expression",)

    def __init__(self, expression: sympy.Expr) -> None:
        self.expression = expression

    def __add__(self, other: Any) -> Unknown:
        return Unknown(self.expression + _expression(other))

    def __radd__(self, other: Any) -> Unknown:
        return Unknown(_expression(other) + self.expression)

    def __sub__(self, other: Any) -> Unknown:
        return Unknown(self.expression - _expression(other))

    def __rsub__(self, other: Any) -> Unknown:
        return Unknown(_expression(other) - self.expression)

    def __mul__(self, other: Any) -> Unknown:
        return Unknown(self.expression * _expression(other))

    def __rmul__(self, other: Any) -> Unknown:
        return Unknown(_expression(other) * self.expression)

    def __truediv__(self, other: Any) -> Unknown:
        return Unknown(self.expression / _expression(other))

    def __rtruediv__(self, other: Any) -> Unknown:
        return Unknown(_expression(other) / self.expression)

    def __floordiv__(self, other: Any) -> Unknown:
        return Unknown(sympy.floor(self.expression / _expression(other)))

    def __rfloordiv__(self, other: Any) -> Unknown:
        return Unknown(sympy.floor(_expression(other) / self.expression))

    def __mod__(self, other: Any) -> Unknown:
        return Unknown(_remainder(self.expression, _expression(other)))

    def __rmod__(self, other: Any) -> Unknown:
        return Unknown(_remainder(_expression(other), self.expression))

    def __divmod__(self, other: Any) -> tuple[Unknown, Unknown]:
        return self // other, self % other

    def __pow__(self, other: Any) -> Unknown:
        return Unknown(self.expression ** _expression(other))

    def __rpow__(self, other: Any) -> Unknown:
        return Unknown(_expression(other) ** self.expression)

    def __neg__(self) -> Unknown:
        return Unknown(-self.expression)

    def __floor__(self) -> Unknown:
        return Unknown(sympy.floor(self.expression))

    def __ceil__(self) -> Unknown:
        return Unknown(sympy.ceiling(self.expression))

    def __round__(self) -> Unknown:
        return Unknown(sympy.floor(self.expression + sympy.Rational(1, 2)))

    def log(self) -> Unknown:
        """Its natural logarithm."""
        return Unknown(sympy.log(self.expression))

    def root(self) -> Unknown:
        """Its square root."""
        return Unknown(sympy.sqrt(self.expression))

    def __lt__(self, other: Any) -> bool:
        return _decide(_less(self.expression, _expression(other)))

    def __le__(self, other: Any) -> bool:
        return _decide(_at_most(self.expression, _expression(other)))

    def __gt__(self, other: Any) -> bool:
        return _decide(_less(_expression(other), self.expression))

    def __ge__(self, other: Any) -> bool:
        return _decide(_at_most(_expression(other), self.expression))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Unknown) and other.expression == self.expression:
            return True
        if not isinstance(other, Unknown | int | float | Fraction) or _walk.get() is None:
            return False
        return _decide(_equal(self.expression, _expression(other)))

    def __bool__(self) -> bool:
        return not _decide(_equal(self.expression, sympy.Integer(0)))

    def __hash__(self) -> int:
        return hash(self.expression)

    def __format__(self, form: str) -> str:
        walk = _walk.get()
        return f"⟨{self.expression}⟩" if walk is None else walk.placeholder(self, form)

    def __repr__(self) -> str:
        return str(self.expression)


def unknown(name: str, *, whole: bool = True) -> Unknown:
    """The unknown number of that name: positive, and whole unless it is said not to be."""
    return Unknown(symbol(name) if whole else sympy.Symbol(name, positive=True))


def symbol(name: str) -> sympy.Symbol:
    """The unknown whole number of that name, as it stands in expressions."""
    return sympy.Symbol(name, integer=True, positive=True)


def expression_of(number: object) -> sympy.Expr:
    """A number, known or not, as an expression."""
    return _expression(number)


def along(numbers: Mapping[str, int], run: Callable[[], Value]) -> tuple[Value, list[sympy.Basic]]:
    """What `run` returns for some numbers, with the comparisons that hold for them, on which that depends."""
    walk = _Given({symbol(name): value for name, value in numbers.items()})
    token = _walk.set(walk)
    try:
        value = run()
    finally:
        _walk.reset(token)
    return value, [c if holds else sympy.Not(c) for c, holds in walk.known.items()]


class Leaf(Struct, Generic[Value], frozen=True):
    """What a function returned on one way."""

    value: Value

    def __str__(self) -> str:
        return str(self.value)


class Fork(Struct, Generic[Value], frozen=True):
    """A comparison, and what comes of it on either side."""

    condition: sympy.Basic
    then: Tree[Value]
    otherwise: Tree[Value]

    def __str__(self) -> str:
        return f"if {self.condition}: {self.then}, else {self.otherwise}"


Tree = Leaf[Value] | Fork[Value]


class Written(Struct, frozen=True):
    """A text with places for numbers: texts, and between them expressions, each with how it is to be formatted."""

    texts: tuple[str, ...]
    numbers: tuple[tuple[sympy.Expr, str], ...]


def follow(run: Callable[[], Value]) -> Tree[Value]:
    """What `run` returns on every way that its comparisons can go.

    Raises RecursionError where there are too many.
    """
    return _grown(run, [])[0]


def written(text: str, walked: tuple[tuple[Unknown, str], ...]) -> Written:
    """A text that was made on a way, with the numbers that stand in it; `walked` is what `numbers_met` returned."""
    texts, numbers, rest = [], [], text
    while _OPEN in rest:
        before, _, rest = rest.partition(_OPEN)
        index, _, rest = rest.partition(_CLOSE)
        number, form = walked[int(index)]
        texts.append(before)
        numbers.append((number.expression, form))
    return Written((*texts, rest), tuple(numbers))


def numbers_met() -> tuple[tuple[Unknown, str], ...]:
    """The numbers that have been written into texts so far on this way, to be asked within `run`."""
    walk = _walk.get()
    return () if walk is None else tuple(walk.written)


_OPEN, _CLOSE = "\ue000", "\ue001"


class _Walk:
    """One way: what has been decided so far, and what is to be decided first."""

    def __init__(self, decisions: list[bool]) -> None:
        self.decisions = decisions
        self.conditions: list[sympy.Basic] = []
        self.known: dict[sympy.Basic, bool] = {}
        self.written: list[tuple[Unknown, str]] = []

    def decide(self, condition: sympy.Basic) -> bool:
        if condition in self.known:
            return self.known[condition]
        if len(self.conditions) == len(self.decisions):
            self.decisions.append(True)
        answer = self.decisions[len(self.conditions)]
        self.conditions.append(condition)
        self.known[condition] = answer
        return answer

    def placeholder(self, number: Unknown, form: str) -> str:
        self.written.append((number, form))
        return f"{_OPEN}{len(self.written) - 1}{_CLOSE}"


class _Given(_Walk):
    """The way that known numbers go."""

    def __init__(self, numbers: Mapping[sympy.Symbol, int]) -> None:
        super().__init__([])
        self.numbers = numbers

    def decide(self, condition: sympy.Basic) -> bool:
        if condition not in self.known:
            self.known[condition] = bool(condition.subs(self.numbers))
        return self.known[condition]


_walk: ContextVar[_Walk | None] = ContextVar("walk", default=None)


def _grown(run: Callable[[], Value], decisions: list[bool]) -> tuple[Tree[Value], int]:
    """The tree behind some decisions, and how many ways were gone."""
    walk = _Walk(list(decisions))
    token = _walk.set(walk)
    try:
        value = run()
    finally:
        _walk.reset(token)
    tree: Tree[Value] = Leaf(value)
    ways = 1
    for depth in reversed(range(len(decisions), len(walk.conditions))):
        other, more = _grown(run, [*walk.decisions[:depth], False])
        ways += more
        if ways > MOST_WAYS:
            raise RecursionError("more ways than a formula can have")
        tree = tree if tree == other else Fork(walk.conditions[depth], tree, other)
    return tree, ways


# sympy thinks long about a comparison, and the same ones are asked on every way.
@cache
def _less(a: sympy.Expr, b: sympy.Expr) -> sympy.Basic:
    return a < b


@cache
def _at_most(a: sympy.Expr, b: sympy.Expr) -> sympy.Basic:
    return a <= b


@cache
def _equal(a: sympy.Expr, b: sympy.Expr) -> sympy.Basic:
    return sympy.Eq(a, b)


@cache
def _remainder(a: sympy.Expr, b: sympy.Expr) -> sympy.Expr:
    return sympy.Mod(a, b)


def _decide(condition: sympy.Basic) -> bool:
    if condition in (sympy.true, sympy.false):
        return bool(condition)
    walk = _walk.get()
    if walk is None:
        raise TypeError(f"nobody follows both ways of {condition}")
    return walk.decide(condition)


def _expression(number: object) -> sympy.Expr:
    if isinstance(number, Unknown):
        return number.expression
    if isinstance(number, Fraction):
        return sympy.Rational(number.numerator, number.denominator)
    if isinstance(number, float):
        simple = Fraction(number).limit_denominator(_SMALL)
        return _expression(simple) if float(simple) == number else sympy.Rational(repr(number))
    return sympy.Integer(cast(int, number))
