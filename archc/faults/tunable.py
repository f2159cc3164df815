"""Numbers that a port may have wrong by any amount, for a search of the value that it has."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replaced
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from archc.architecture.model import Architecture
from archc.faults.base import Fault, Faulty, Layers, Slip
from archc.faults.sites import (
    Site,
    attentions,
    branch_norms,
    field_slips,
    head_norms,
    held,
    model_slips,
    residuals,
    ropes,
)

S = TypeVar("S", bound=Struct)
Change = Callable[[Faulty, Layers], Faulty]


@dataclass(frozen=True, slots=True)
class Tunable:
    """A positive number of a model: its field, the range in which it is looked for, and the slip that it is a value.

    `slips` gives, of an Architecture and a value, the slip with that value; none where the model has no such number.
    """

    field: str
    low: float
    high: float
    slips: Callable[[Architecture, float], Iterator[Slip]]

    def fault(self, value: float) -> Fault:
        """The fault of having this value."""
        return Fault(
            id=self.field,
            field=self.field,
            kind="architecture",
            wrong=f"{self.field} has another value than the spec states.",
            when="models with such a number",
            mend="take the value from the spec, or from the resolved config",
            slips=lambda architecture: self.slips(architecture, value),
        )


def _in_layers(site: Site[S], name: str) -> Callable[[Architecture, float], Iterator[Slip]]:
    """A number of what stands at a site."""

    def slips(architecture: Architecture, value: float) -> Iterator[Slip]:
        def values(thing: S) -> list[float]:
            return [] if getattr(thing, name) is None else [value]

        yield from field_slips(site, name, values)(architecture)

    return slips


def _at_end(section: str, name: str) -> Callable[[Architecture, float], Iterator[Slip]]:
    """A number of the embedding, the head or the final norm."""

    def slips(architecture: Architecture, value: float) -> Iterator[Slip]:
        def wrong(model: Architecture) -> list[tuple[object, str, Architecture]]:
            part = getattr(model, section)
            declared = getattr(part, name, None)
            if declared is None:
                return []
            return [(declared, f"{value:.6g}", replace(model, **{section: replace(part, **{name: value})}))]

        yield from model_slips(wrong)(architecture)

    return slips


def _every_norm(architecture: Architecture, value: float) -> Iterator[Slip]:
    """The eps of the norms of branches, and that of the final norm with them."""
    final = next(_at_end("final_norm", "eps")(architecture, value), None)
    for slip in _in_layers(branch_norms, "eps")(architecture, value):
        if final is not None:
            yield replaced(slip, change=_both(slip.change, final.change))


def _both(first: Change, second: Change) -> Change:
    return lambda faulty, layers: second(first(faulty, layers), None)


TUNABLES = (
    Tunable("position.base", 1.5, 1e8, _in_layers(ropes, "base")),
    Tunable("attention.scale", 1e-3, 16.0, _in_layers(attentions, "scale")),
    Tunable("norm.eps", 1e-12, 1.0, _every_norm),
    Tunable("norm.eps", 1e-12, 1.0, _in_layers(branch_norms, "eps")),
    Tunable("final_norm_eps", 1e-12, 1.0, _at_end("final_norm", "eps")),
    Tunable("attention.qk_norm.eps", 1e-12, 1.0, _in_layers(head_norms, "eps")),
    Tunable("embedding.scale", 1e-3, 1e3, _at_end("embedding", "scale")),
    Tunable("logits.scale", 1e-3, 1e3, _at_end("head", "scale")),
    Tunable("logits.softcap", 1.0, 1e3, _at_end("head", "softcap")),
    Tunable("attention.softcap", 1.0, 1e3, _in_layers(attentions, "softcap")),
    Tunable("residual.branch", 1e-3, 1e2, _in_layers(residuals, "branch")),
    Tunable("ffn.router.scale", 1e-2, 1e2, _in_layers(held("router"), "scale")),
)


def logarithmic(low: float, high: float, count: int) -> list[float]:
    """Values from low to high at equal ratios."""
    step = math.log(high / low) / (count - 1)
    return [low * math.exp(step * number) for number in range(count)]
