"""Logarithms and roots, of numbers and of numbers that are not known yet (archc/formulas/unknown.py)."""

from __future__ import annotations

import math


def log(number: float) -> float:
    """The natural logarithm."""
    formula = getattr(number, "log", None)
    return math.log(number) if formula is None else formula()


def root(number: float) -> float:
    """The square root."""
    formula = getattr(number, "root", None)
    return math.sqrt(number) if formula is None else formula()
