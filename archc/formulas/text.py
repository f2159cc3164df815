"""Formulas as people write them: V·d + L·d·(2·a·g + 3·f), with what all layers cost taken together."""

from __future__ import annotations

from typing import Any, Final

import sympy
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

_RAISED: Final = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_LOWERED: Final = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_HALF: Final = sympy.Rational(1, 2)


def formula(expression: sympy.Expr) -> str:
    """An expression in one line.

    >>> a, b, layers = (sympy.Symbol(name, integer=True, positive=True) for name in ("a", "b", "L"))
    >>> formula(layers * a * b + 2 * layers * a + 5000 * b**2)
    'L·a·(b + 2) + 5,000·b²'
    """
    return str(_Words().doprint(_by_layers(expression)))


def condition(relation: sympy.Basic) -> str:
    """A condition in one line.

    >>> condition(sympy.Symbol("C") > 512)
    'C > 512'
    """
    words = {"<": "<", "<=": "≤", ">": ">", ">=": "≥", "==": "=", "!=": "≠"}
    if isinstance(relation, sympy.core.relational.Relational):
        left, right = relation.lhs, relation.rhs
        if left.is_number and relation.rel_op in ("<", "<=", ">", ">="):
            return condition(relation.reversed)
        return f"{formula(left)} {words[relation.rel_op]} {formula(right)}"
    return str(relation)


class _Words(StrPrinter):  # type: ignore[misc] # sympy has no types
    def _print_Integer(self, number: sympy.Integer) -> str:
        return f"{number.p:,}"

    def _print_Symbol(self, symbol: sympy.Symbol) -> str:
        return str(symbol.name).translate(_LOWERED)

    def _print_Mul(self, product: sympy.Mul) -> str:
        above, below = sympy.fraction(product)
        if below != 1:
            return f"{self._factor(above)} / {self._factor(below)}"
        coefficient, rest = product.as_coeff_Mul()
        factors = sorted(sympy.Mul.make_args(rest), key=_rank)
        if coefficient < 0:
            return f"-{self._print(-product)}"
        return "·".join(map(self._factor, [coefficient, *factors] if coefficient != 1 else factors))

    def _print_Pow(self, power: sympy.Pow, rational: bool = False) -> str:
        if power.exp.is_Integer and power.exp > 0:
            return f"{self.parenthesize(power.base, PRECEDENCE['Pow'])}{str(power.exp).translate(_RAISED)}"
        return str(super()._print_Pow(power, rational))

    def _print_floor(self, call: sympy.floor) -> str:
        inside = sympy.expand(call.args[0])
        if inside.as_coeff_Add()[0] == _HALF:
            return f"round({self._print(_by_layers(inside - _HALF))})"
        return f"⌊{self._print(_by_layers(inside))}⌋"

    def _print_Mod(self, call: sympy.Mod) -> str:
        return f"mod({self._print(call.args[0])}, {self._print(call.args[1])})"

    def _factor(self, term: Any) -> str:
        return str(self.parenthesize(term, PRECEDENCE["Mul"], strict=True))


def _by_layers(expression: sympy.Expr) -> sympy.Expr:
    """What is multiplied by a number of layers collected behind it, and common factors before the brackets."""
    above, below = sympy.fraction(expression)
    if below != 1:
        return _by_layers(above) / _by_layers(below)
    layers = sorted((s for s in expression.free_symbols if s.name.startswith("L")), key=lambda symbol: symbol.name)
    terms = sympy.collect(sympy.expand(expression), layers, evaluate=False) if layers else {sympy.S.One: expression}
    return sympy.Add(*(sympy.factor_terms(outer * inner) for outer, inner in terms.items()))


def _rank(factor: sympy.Basic) -> tuple[bool, bool, str]:
    """Layers first, brackets last."""
    return factor.is_Add, not str(factor).startswith("L"), str(factor)
