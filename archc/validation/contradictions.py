"""Where the reference contradicts itself: cached steps against its full pass, a padded batch against its rows alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from torch import Tensor

from archc.architecture.model import Architecture
from archc.validation.invariants import alone_in_padding
from archc.validation.parity import BOUND, Baseline, ProbeResult, judge, measure
from archc.validation.ports import Port
from archc.validation.probes import Blind, length_matters
from archc.validation.reference import Reference


def disagreement_of(reference: Reference, baselines: list[Baseline]) -> float | None:
    """How far the reference's own cached run is from its own full pass, in floors; None without such a run."""
    for baseline in baselines:
        if baseline.probe.chunks is not None and not reference.steps_are_whole:
            whole = reference.logits(replace(baseline.probe, chunks=None))
            return judge(reference, baseline, whole).times_floor
    return None


def contradicts_itself(architecture: Architecture, disagreement: float | None) -> bool:
    """Whether the reference's cached run is another function than its full pass, and nothing declared says why.

    Where frequencies depend on the length of the input so far, both may differ.
    """
    return disagreement is not None and disagreement > BOUND and not length_matters(architecture)


def hold_steps_against_whole(
    reference: Reference,
    results: list[ProbeResult],
    baselines: list[Baseline],
    logits: Mapping[str, Tensor],
    step: Callable[[str], None],
) -> None:
    """Judges steps that leave the reference's own by its full pass, from which its own steps part.

    Replaces these results and their baselines, and has the reference take its full pass for its steps.
    """
    for index, one in enumerate(results):
        if one.probe.chunks is not None and not one.passed:
            reference.steps_are_whole = True
            [baseline], _ = measure(reference, [one.probe], step)
            baselines[index] = baseline
            results[index] = judge(reference, baseline, logits[one.probe.name])


def leave_padding_to_the_invariant(
    reference: Reference, port: Port, results: list[ProbeResult], logits: Mapping[str, Tensor]
) -> list[Blind]:
    """Takes a padded batch out of the verdict where the reference contradicts its own rows, and the port does not.

    Removes it from the results, and gives what is then not seen.
    """
    blind = []
    for one in list(results):
        failed = not one.probe.real.all() and not one.passed
        if failed and alone_in_padding(reference, port, one, logits[one.probe.name]):
            results.remove(one)
            why = "in it the reference contradicts what it computes for each row alone; the port does not"
            blind.append(Blind(one.probe.name, why))
    return blind
