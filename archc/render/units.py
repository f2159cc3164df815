"""Numbers as people read them: four significant digits and a unit, so that 131,072 bytes are 131.1 kB and 128 KiB."""

from __future__ import annotations

import math

_THOUSANDS = ("", "k", "M", "G", "T", "P", "E", "Z", "Y")
_COUNTS = ("", "k", "M", "B", "T", "P", "E")
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB")


def decimal_bytes(count: float) -> str:
    """Bytes in powers of 1000.

    >>> decimal_bytes(131072)
    '131.1 kB'
    """
    number, prefix = _scaled(count, 1000, _THOUSANDS)
    return f"{number} {prefix}B"


def binary_bytes(count: float) -> str:
    """Bytes in powers of 1024.

    >>> binary_bytes(131072)
    '128 KiB'
    """
    number, unit = _scaled(count, 1024, _BINARY)
    return f"{number} {unit}"


def both_bytes(count: float) -> str:
    """Bytes in both, where people argue about them; once where they agree.

    >>> both_bytes(131072), both_bytes(512)
    ('131.1 kB = 128 KiB', '512 B')
    """
    decimal, binary = decimal_bytes(count), binary_bytes(count)
    if decimal == binary:
        return decimal
    return f"{decimal} = {binary}"


def short_count(count: float) -> str:
    """A count in thousands, millions, billions (10⁹), trillions (10¹²).

    >>> short_count(134_515_008), short_count(671e9)
    ('134.5 M', '671 B')
    """
    number, prefix = _scaled(count, 1000, _COUNTS)
    return f"{number} {prefix}".rstrip()


def operations(count: float) -> str:
    """Floating-point operations, with SI prefixes.

    >>> operations(552_109_824)
    '552.1 MFLOP'
    """
    number, prefix = _scaled(count, 1000, _THOUSANDS)
    return f"{number} {prefix}FLOP"


def exact(count: float) -> str:
    """All digits of a whole number, four of any other.

    >>> exact(438459), exact(6.283185), exact(438459.9)
    ('438,459', '6.283', '438,460')
    """
    if isinstance(count, int) or abs(count) >= 1000:
        return f"{round(count):,}"
    return f"{count:.4g}"


def percent(share: float) -> str:
    """A share with one decimal.

    >>> percent(0.7497)
    '75.0 %'
    """
    return f"{100 * share:.1f} %"


def figure(number: float | None) -> str:
    """A figure in a sentence, such as a multiple of the noise floor; JSON has null for what is not finite.

    >>> figure(0.831), figure(1234.5), figure(None)
    ('0.83', '1,234', '∞')
    """
    if number is None or not math.isfinite(number):
        return "∞"
    return f"{number:.2f}" if number < 100 else f"{number:,.0f}"


def amount(number: float | None, unit: str) -> str:
    """A figure with its unit: a multiple of a floor as it is measured, and anything else as a number of things.

    >>> amount(0.831, "times the floor"), amount(0, "layers")
    ('0.83 times the floor', '0 layers')
    """
    if unit == "times the floor" or number is None or not math.isfinite(number):
        return f"{figure(number)} {unit}"
    return f"{number:,.0f} {unit}"


def finite(number: float | None) -> float | None:
    """A number for JSON, which has no word but null for one that is not finite."""
    return number if number is not None and math.isfinite(number) else None


def _scaled(count: float, step: int, units: tuple[str, ...]) -> tuple[str, str]:
    """Four significant digits and the unit that keeps them in front of the point where one does."""
    power, value = 0, float(count)
    while abs(value) >= step and power < len(units) - 1:
        value, power = value / step, power + 1
    # Rounding may carry into the next unit: 999,999 bytes are 1 MB, not 1000 kB.
    if float(f"{value:.4g}") >= step and power < len(units) - 1:
        value, power = value / step, power + 1
    digits = f"{value:.4g}"
    return (f"{value:.0f}" if "e" in digits else digits), units[power]
