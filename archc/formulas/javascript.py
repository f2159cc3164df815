"""Formulas in JavaScript: expressions over `v`, an object of numbers by name, and trees of conditions.

Counts are printed for BigInt, in which they are exact whatever their size; a fraction becomes a quotient of two of
them. What is measured (frequencies, angles) is printed for the doubles that JavaScript's numbers are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import sympy
from sympy.printing.jscode import JavascriptCodePrinter

from archc.formulas.unknown import Fork, Leaf, Tree, Unknown, Written, expression_of

Value = TypeVar("Value")


class _Doubles(JavascriptCodePrinter):  # type: ignore[misc] # sympy has no types
    """sympy's printer, with the names of numbers looked up in `v`."""

    def _print_Symbol(self, symbol: sympy.Symbol) -> str:
        return f"v.{symbol.name}"


class _Counts(_Doubles):
    """Whole numbers as BigInt. Quotients are rounded down by `/`, as all of them are positive."""

    def _print_Integer(self, number: sympy.Integer) -> str:
        return f"{number.p}n"

    def _print_Rational(self, number: sympy.Rational) -> str:
        raise ValueError(f"{number} in a formula of whole numbers")

    def _print_Pow(self, power: sympy.Pow) -> str:
        if not (power.exp.is_Integer and power.exp > 0):
            raise ValueError(f"{power} in a formula of whole numbers")
        return f"{self.parenthesize(power.base, sympy.printing.precedence.PRECEDENCE['Pow'])}**{power.exp.p}n"

    def _print_floor(self, call: sympy.floor) -> str:
        above, below = sympy.fraction(sympy.together(call.args[0]))
        return f"floor({self._print(above)}, {self._print(below)})"

    def _print_ceiling(self, call: sympy.ceiling) -> str:
        above, below = sympy.fraction(sympy.together(call.args[0]))
        return f"-floor({self._print(-above)}, {self._print(below)})"

    def _print_Mod(self, call: sympy.Mod) -> str:
        a, b = (self.parenthesize(term, sympy.printing.precedence.PRECEDENCE["Mul"]) for term in call.args)
        return f"({a} % {b})"


class Book:
    """Expressions and trees, each kept once and named by its number."""

    def __init__(self) -> None:
        self.counts: list[str] = []
        """Expressions for BigInt."""
        self.doubles: list[str] = []
        self.nodes: list[Any] = []
        """Forks, as [condition, then, otherwise], and leaves, as {"leaf": value}."""
        self.entries: list[Any] = []
        """Whatever else occurs more than once."""
        self._numbers: dict[tuple[str, object], int] = {}
        self._printed: dict[sympy.Basic, int | list[int]] = {}
        self._conditions: dict[tuple[sympy.Basic, bool], int] = {}
        self._trees: dict[int, tuple[object, int]] = {}

    def copy(self) -> Book:
        """A book that goes on from here, and leaves this one as it is."""
        made = Book()
        for name, kept in vars(self).items():
            setattr(made, name, kept.copy())
        return made

    def count(self, number: object) -> int | list[int]:
        """The number of an expression of whole numbers; for a fraction those of what is above and below the line."""
        expression = expression_of(number)
        if expression not in self._printed:
            above, below = sympy.fraction(sympy.together(expression))
            self._printed[expression] = self._count(above) if below == 1 else [self._count(above), self._count(below)]
        return self._printed[expression]

    def double(self, number: object) -> int:
        """The number of an expression of doubles."""
        return self._kept("doubles", self.doubles, _Doubles().doprint(expression_of(number)))

    def tree(self, tree: Tree[Value], leaf: Callable[[Value], Any], *, doubles: bool = False) -> int:
        """The number of the node at the root of a tree, whose leaves are exported by `leaf`."""
        if id(tree) in self._trees:
            return self._trees[id(tree)][1]
        if isinstance(tree, Leaf):
            node = self._node({"leaf": leaf(tree.value)})
        else:
            then, otherwise = (self.tree(side, leaf, doubles=doubles) for side in (tree.then, tree.otherwise))
            node = then if then == otherwise else self._node([self._condition(tree, doubles), then, otherwise])
        self._trees[id(tree)] = (tree, node)  # kept, so that no other gets its id
        return node

    def text(self, text: Written | str) -> Any:
        """A text as such, or as a list of texts and of [expression, format]."""
        if isinstance(text, str):
            return text
        parts: list[Any] = [text.texts[0]]
        for (number, form), after in zip(text.numbers, text.texts[1:], strict=True):
            parts += [[self.count(Unknown(number)), form], after]
        return [part for part in parts if part != ""]

    def entry(self, value: object) -> int:
        """The number of a value that JSON can hold."""
        return self._kept("entries", self.entries, value)

    def export(self) -> Mapping[str, Any]:
        """All of it, ready for JSON."""
        return {"counts": self.counts, "doubles": self.doubles, "nodes": self.nodes, "entries": self.entries}

    def _condition(self, fork: Fork[Value], doubles: bool) -> int:
        key = (fork.condition, doubles)
        if key not in self._conditions:
            self._conditions[key] = (
                self._kept("doubles", self.doubles, _Doubles().doprint(fork.condition))
                if doubles
                else self._count(_whole(fork.condition))
            )
        return self._conditions[key]

    def _count(self, expression: sympy.Expr) -> int:
        return self._kept("counts", self.counts, _Counts().doprint(expression))

    def _node(self, node: Any) -> int:
        return self._kept("nodes", self.nodes, node)

    def _kept(self, where: str, entries: list[Any], entry: Any) -> int:
        key = (where, repr(entry))
        if key not in self._numbers:
            self._numbers[key] = len(entries)
            entries.append(entry)
        return self._numbers[key]


def _whole(condition: sympy.Basic) -> sympy.Basic:
    """The same condition without fractions: both sides times what is below their lines, all of it positive."""
    if not isinstance(condition, sympy.core.relational.Relational):
        return condition
    left, below = sympy.fraction(sympy.together(condition.lhs))
    right, other = sympy.fraction(sympy.together(condition.rhs))
    return condition.func(left * other, right * below, evaluate=False)
