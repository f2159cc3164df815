"""Published figures, held against what a spec gives.

A claim names a key of the report (`params.total`), a value, where it was published and how far the published figure
may be rounded. A claim that cannot be compared does not hold: a misspelt key must not pass for a checked one.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from archc.analysis.report import Report
from archc.architecture.model import Claim


class ClaimResult(Struct, frozen=True):
    """What became of one claim."""

    key: str
    claimed: float
    derived: float | None
    """None when the report has no number under this key."""
    within: float
    """Relative tolerance."""
    holds: bool
    source: str

    def as_json(self) -> dict[str, object]:
        """The result for machines, whole numbers written as such."""
        return {
            "key": self.key,
            "claimed": _plain(self.claimed),
            "derived": self.derived,
            "within": self.within,
            "holds": self.holds,
            "source": self.source,
        }

    def sentence(self) -> str:
        """What is wrong with a claim that does not hold."""
        if self.derived is None:
            return f"the report has no figure {self.key}"
        tolerance = f" within {self.within:.3g}" if self.within else ""
        return f"{self.key} is {_shown(self.derived)}, published {_shown(_plain(self.claimed))}{tolerance}"


def compare_claims(claims: tuple[Claim, ...], report: Report) -> list[ClaimResult]:
    """Hold every claim against `report`, in the order in which the spec states them."""
    return [_compare(claim, figure(report, claim.key)) for claim in claims]


def figure(report: Report, key: str) -> float | None:
    """The number under a dotted key of the report; None when there is none."""
    found: object = report
    for step in key.split("."):
        if not isinstance(found, Mapping) or step not in found:
            return None
        found = found[step]
    return found if isinstance(found, int | float) and not isinstance(found, bool) else None


def _compare(claim: Claim, derived: float | None) -> ClaimResult:
    holds = derived is not None and abs(derived - claim.value) <= claim.within * abs(claim.value)
    return ClaimResult(claim.key, claim.value, derived, claim.within, holds, claim.source)


def _plain(value: float) -> float:
    return int(value) if float(value).is_integer() else value


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"
