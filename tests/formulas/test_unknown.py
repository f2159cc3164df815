"""Numbers that are not known: what comes out on every way is what the same code returns for numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest
import sympy
from hypothesis import given, settings
from hypothesis import strategies as st

from archc.formulas.unknown import Fork, Leaf, Tree, Unknown, along, follow, numbers_met, unknown, written

small = st.integers(1, 40)


def value(tree: Tree[Any], **numbers: int) -> Any:
    """What a tree says for some numbers."""
    table = {sympy.Symbol(name, integer=True, positive=True): number for name, number in numbers.items()}
    while isinstance(tree, Fork):
        tree = tree.then if tree.condition.subs(table) else tree.otherwise
    return tree.value.expression.subs(table) if isinstance(tree.value, Unknown) else tree.value


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "polynomial": lambda a, b: 3 * a * b - a + b**2 - 7,
    "least": min,
    "greatest": lambda a, b: max(2 * a, b, 9),
    "quotient": lambda a, b: a // b + (-a // b) + -(-a // 8),
    "remainder": lambda a, b: a % b + 100 % a,
    "both": lambda a, b: sum(divmod(a, b)),
    "fraction": lambda a, b: Fraction(1, 2) * a * (a + 1) / b,
    "rounding": lambda a, b: math.floor(a * 0.25) + math.ceil(Fraction(1) * a / b),
    "truth": lambda a, b: 1 if a % b else 2,
    "equal": lambda a, b: 5 if a == b else 6 if a != 3 else 7,
    "twice": lambda a, b: (a if a < b else b) * (b if a < b else a),
    "any": lambda a, b: any(a % n == 0 and (b % n == 0 or n % b == 0) for n in (2, 3, 5)),
    "chain": lambda a, b: 1 if 3 <= a <= b else 0,
}


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(deadline=None)  # sympy may be slow on a busy machine
@given(a=small, b=small)
def test_a_tree_says_what_the_function_returns(name: str, a: int, b: int) -> None:
    function = FUNCTIONS[name]
    tree = TREES[name]
    assert value(tree, a=a, b=b) == function(a, b)


TREES = {name: follow(lambda f=f: f(unknown("a"), unknown("b"))) for name, f in FUNCTIONS.items()}  # type: ignore[misc]


def test_a_wrong_tree_would_be_seen() -> None:
    tree = follow(lambda: max(unknown("a"), unknown("b")))
    assert any(value(tree, a=a, b=b) != min(a, b) for a in range(1, 4) for b in range(1, 4))


@settings(deadline=None)  # sympy may be slow on a busy machine
@given(a=small, b=small)
def test_along_goes_the_way_of_the_numbers(a: int, b: int) -> None:
    found, conditions = along({"a": a, "b": b}, lambda: FUNCTIONS["greatest"](unknown("a"), unknown("b")))
    table = {sympy.Symbol(name, integer=True, positive=True): n for name, n in (("a", a), ("b", b))}
    assert Unknown(sympy.sympify(getattr(found, "expression", found)).subs(table)) == Unknown(
        sympy.Integer(max(2 * a, b, 9))
    )
    assert all(condition.subs(table) for condition in conditions)


def test_what_is_known_of_positive_numbers_asks_nothing() -> None:
    assert follow(lambda: "yes" if unknown("a") and unknown("a") > 0 else "no") == Leaf("yes")


def test_a_comparison_that_nobody_follows_is_refused() -> None:
    with pytest.raises(TypeError, match="nobody follows"):
        min(unknown("a"), 3)


def test_a_function_with_too_many_ways_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archc.formulas.unknown.MOST_WAYS", 64)
    follow(lambda: sum(unknown("a") % n == 0 for n in range(2, 8)))
    with pytest.raises(RecursionError):
        follow(lambda: sum(unknown("a") % n == 0 for n in range(2, 9)))


def test_texts_keep_places_for_numbers() -> None:
    size = unknown("size")

    def run() -> tuple[Any, ...]:
        text = f"{size:,} rows, {size / 10:g}"
        return (written(text, numbers_met()),)

    tree = follow(run)
    assert isinstance(tree, Leaf)
    (text,) = tree.value
    assert text.texts == ("", " rows, ", "")
    assert [(str(number), form) for number, form in text.numbers] == [("size", ","), ("size/10", "g")]


@pytest.mark.parametrize(("turning", "channels"), [(6, 14), (10, 30), (32, 96), (4, 12), (48, 112)])
def test_quotients_that_were_rounded(turning: int, channels: int) -> None:
    """A spec says which share of a head turns as a float; of as many channels it comes to the same number."""
    share = turning / channels
    turned = math.floor(unknown("channels") * share)
    assert math.floor(channels * share) == turning
    assert turned.expression.subs({sympy.Symbol("channels", integer=True, positive=True): channels}) == turning
