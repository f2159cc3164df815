"""Every layer judged alone: a port whose layers are given what the reference gave its own, so errors do not pile up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from archc.architecture.model import Architecture
from archc.errors import IncompleteError
from archc.validation.arithmetic import arithmetic_in
from archc.validation.choices import Choices, Tied
from archc.validation.divergence import Divergence, first_of
from archc.validation.places import Places
from archc.validation.ports import Traceable
from archc.validation.probes import Probe
from archc.validation.reference import Reference
from archc.validation.tracing import Trace, split
from archc.validation.yardstick import Yardstick

PLENTY = 64
"""Tokens on which every layer shows what it does at each of them."""


@dataclass(frozen=True, slots=True)
class Blockwise:
    """A port on one probe, layer by layer: how many floors it is off at each point that both sides have."""

    probe: str
    bound: float
    points: Mapping[str, float]
    layers: tuple[int, ...]
    """Layers that compute something else than the reference's."""
    first: Divergence | None
    unfed: tuple[int, ...] = ()
    """Layers that were not judged: they use what earlier layers made beside the stream, or a stream of another form."""

    @property
    def passed(self) -> bool:
        """Whether nothing that was judged lies beyond the bound."""
        return self.first is None


def probes_for_layers(architecture: Architecture, probes: Sequence[Probe]) -> list[Probe]:
    """The probes that say most of a layer for what they cost, cheapest first: of one row, run in one piece.

    They have about PLENTY tokens, or as many as what a mixer hides takes to show; gaps in positions cost nothing.
    """
    sizes = [size for layer in architecture.layers for mixer in layer.mixers() for _, size in mixer.shows_beyond]
    whole = [one for one in probes if one.chunks is None and len(one.input_ids) == 1]
    plain = sorted((one for one in whole if one.position_ids is None), key=lambda one: one.tokens)
    spread = [one for one in whole if one.position_ids is not None and one.tokens <= PLENTY]
    enough = [next((one for one in plain if one.tokens >= count), None) for count in (PLENTY, *(3 * n for n in sizes))]
    chosen = [one for one in plain if any(one is found for found in enough)] or plain[-1:]
    return sorted((*spread, *chosen), key=lambda one: one.tokens)


def blockwise(reference: Reference, port: Traceable, probe: Probe, choices: Choices | None = None) -> Blockwise | None:
    """Compares a port with the reference layer by layer, on a probe that runs in one piece.

    The reference makes these `choices`, where given; near ties the port decides as the reference does. None where
    either side shows no layers.
    """
    if not reference.places.layers or not port.places.layers:
        return None
    return layer_by_layer(Yardstick(reference, probe, choices, fed=True), port)


def layer_by_layer(yardstick: Yardstick, port: Traceable) -> Blockwise | None:
    """As `blockwise`, by a yardstick that serves several ports; None of a port that shows no layers."""
    theirs = yardstick.base.entering

    def trace() -> Trace | None:
        return port.trace(yardstick.probe, theirs, Tied(yardstick.choices, yardstick.noise))

    ours = trace()
    if ours is None or not port.places.layers:
        return None
    left_out = tuple(unfed(yardstick.places, theirs, ours.entering))
    times = {point: value for point, value in yardstick.times(ours.points).items() if _layer(point) not in left_out}
    hidden = yardstick.hidden(times)
    may_count = hidden and yardstick.rounded and not port.places.guessed
    beyond = yardstick.beyond(times, hidden - _strangers(yardstick, hidden, port, trace) if may_count else ())
    layers = sorted({layer for point in beyond if (layer := _layer(point)) is not None})
    return Blockwise(yardstick.probe.name, yardstick.bound, times, tuple(layers), first_of(beyond), left_out)


def _strangers(yardstick: Yardstick, hidden: set[str], port: Traceable, trace: Callable[[], Trace | None]) -> set[str]:
    """Those of the points that mean another thing in the port, by its arithmetic in 32 bits; all, if it has none."""
    try:
        with arithmetic_in(torch.float32, port.module):
            exact = trace()
    except IncompleteError:
        return hidden
    return hidden if exact is None else yardstick.strangers(hidden, exact.points)


def _layer(point: str) -> int | None:
    stem, _ = split(point)
    return int(stem.split(".")[1]) if stem else None


def unfed(places: Places, theirs: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> Iterator[int]:
    """Layers whose work depends on more than the stream that they were fed with, or that could not be fed."""
    for number, place in enumerate(places.layers):
        name = f"layers.{number}"
        fed = name in theirs and name in ours and theirs[name].shape == ours[name].shape
        if place.reuses or not fed:
            yield number
