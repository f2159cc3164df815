"""Inside a port: where it and the reference part and, in 16 bits, whether some layer alone computes something else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from archc.architecture.model import Architecture
from archc.validation.blockwise import Blockwise, blockwise, probes_for_layers
from archc.validation.divergence import Divergence, first_divergence
from archc.validation.parity import ProbeResult
from archc.validation.ports import Port, Traceable
from archc.validation.reference import Reference


@dataclass(frozen=True, slots=True)
class Inside:
    """Where port and reference part first, why that is not known, and the layers judged alone."""

    divergence: Divergence | None = None
    note: str = ""
    blockwise: Blockwise | None = None


def look_inside(
    architecture: Architecture,
    reference: Reference,
    port: Port,
    results: list[ProbeResult],
    step: Callable[[str], None],
) -> Inside:
    """What is found within a port after its probes; nothing where all of them hold in 32 bits."""
    step("first divergence")
    divergence, note, found = _divergence(reference, port, results)
    if found is None and reference.dtype is not torch.float32:
        step("layers")
        found = _layer_by_layer(architecture, reference, port, results)
    return Inside(divergence, note, found)


def _divergence(
    reference: Reference, port: Port, probes: list[ProbeResult]
) -> tuple[Divergence | None, str, Blockwise | None]:
    """Where port and reference part, or why that is not known; neither where every probe holds.

    Layers are judged alone where the port lets them be fed.
    """
    failed = [one for one in probes if not one.passed]
    if not failed:
        return None, "", None
    whole = [one for one in failed if one.probe.chunks is None]
    if not whole:
        return None, "not traced: only the probe that decodes through the cache fails", None
    shortest = min(whole, key=lambda one: one.probe.tokens)
    found = blockwise(reference, port, shortest.probe, shortest.choices) if isinstance(port, Traceable) else None
    if found is not None and found.first is not None:
        return found.first, "", found
    ours = port.points(shortest.probe)
    if ours is None:
        return Divergence(None, "logits", shortest.times_floor), "this port shows nothing but its logits", found
    first = first_divergence(reference, ours, shortest)
    return first, "" if first else "none at the traced points", found


def _layer_by_layer(
    architecture: Architecture, reference: Reference, port: Port, results: list[ProbeResult]
) -> Blockwise | None:
    """Each layer alone, in 16 bits, where logits hide small mistakes: the first probe that shows one, else the last."""
    found: Blockwise | None = None
    choices = {one.probe.name: one.choices for one in results}
    for probe in probes_for_layers(architecture, [one.probe for one in results]):
        found = blockwise(reference, port, probe, choices[probe.name]) if isinstance(port, Traceable) else None
        if found is None or not found.passed:
            return found
    return found
