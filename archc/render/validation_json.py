"""The verdict of the gate, for machines: the validation JSON."""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from archc.render.units import finite
from archc.render.validation import dtype_name, reason, unseen

if TYPE_CHECKING:
    from archc.validation.adequacy import Adequacy, Spared, Trial
    from archc.validation.blockwise import Blockwise
    from archc.validation.declared import ConfigDifference
    from archc.validation.diagnosis import Diagnosis
    from archc.validation.gate import GateResult
    from archc.validation.parity import ProbeResult
    from archc.validation.streaming.walk import Streamed

_MOST_POSITIONS = 64


def gate_document(result: GateResult) -> dict[str, object]:
    """The validation JSON. Numbers that are not finite become null, which JSON has no other word for."""
    from archc.validation.parity import BOUND

    manifest = result.manifest
    return {
        "passed": result.passed,
        "passed_strictly": result.strictly_passed,
        "verdict": reason(result, BOUND),
        "verdict_strictly": unseen(result) if result.passed and not result.strictly_passed else reason(result, BOUND),
        "level": "quick" if result.quick else "full",
        "bound": BOUND,
        "reference": {
            "kind": "transformers",
            "version": result.reference_version or None,
            "dtype": dtype_name(result),
            "dequantised": result.dequantised or None,
        },
        "port": {"kind": result.port_kind or None, "name": result.port_name or None},
        "spec": {"name": result.spec_name, "sha256": result.spec_sha256},
        "platform": {"python": platform.python_version(), "machine": platform.machine()},
        "probes": [_probe_document(probe) for probe in result.probes],
        "floor_runs": [
            {
                "name": run.name,
                "times_floor": finite(run.times_floor),
                "left_out": list(run.left_out),
                "on": list(run.on),
            }
            for run in result.floor_runs
        ],
        "reference_disagreement": {
            "cache": finite(result.disagreement),
            "held_against": "full pass" if result.steps_against_whole else "steps",
        },
        "first_divergence": None
        if result.divergence is None
        else {
            "layer": result.divergence.layer,
            "point": result.divergence.point,
            "times_floor": finite(result.divergence.times_floor),
        },
        "blockwise": None if result.blockwise is None else _blockwise_document(result.blockwise),
        "divergence_note": result.divergence_note or None,
        "fields": {
            "observed": None if result.adequacy is None else result.observed,
            "blind": [{"field": one.field, "why": one.why, "declared": one.declared} for one in result.blind],
        },
        "faults": None if result.adequacy is None else _faults_document(result.adequacy),
        "diagnosis": [] if result.diagnosis is None else _diagnosis_document(result.diagnosis),
        "diagnosis_note": (result.diagnosis.note or None) if result.diagnosis else None,
        "invariants": [
            {
                "name": one.name,
                "passed": one.passed,
                "figure": finite(one.figure),
                "unit": one.unit,
                "detail": one.detail,
            }
            for one in result.invariants
        ],
        "manifest": {
            "missing": list(manifest.missing),
            "unexpected": list(manifest.unexpected),
            "wrong_shape": [
                {"name": one.name, "declared": list(one.declared), "stored": list(one.stored)}
                for one in manifest.wrong_shape
            ],
            "unread": list(manifest.unread),
        },
        "static": None if result.config.why_not else [_static_document(one) for one in result.config.differences],
        "norm_weights": [
            {"tensors": one.tensors, "declared": one.declared, "mean": finite(one.mean), "looks": one.looks}
            for one in result.gains
        ],
        "text": None
        if result.text is None
        else {
            "name": result.text.name,
            "sha256": result.text.sha256,
            "tokens": result.text.tokens,
            "loss": {"reference": finite(result.text.reference), "port": finite(result.text.port)},
        },
        "stream": None if result.stream is None else _stream_document(result.stream),
        "seconds": {name: round(seconds, 3) for name, seconds in result.seconds.items()},
        "peak_memory_bytes": result.peak_memory_bytes,
    }


def _stream_document(found: Streamed) -> dict[str, object]:
    spent = found.seconds_per_layer
    return {
        "why": found.why,
        "whole_bytes": found.fitting.needed,
        "available_bytes": found.fitting.available,
        "layers": found.layers,
        "checkpoint_bytes": found.checkpoint_bytes,
        "bytes_read": found.bytes_read,
        "most_reads": found.most_reads,
        "peak_resident_bytes": found.peak_resident_bytes,
        "seconds_per_layer": round(sum(spent) / len(spent), 3) if spent else None,
        "resumed_at": found.resumed_at,
        "drift": {
            probe: {point: finite(times) for point, times in points.items()} for probe, points in found.drift.items()
        },
    }


def _static_document(found: ConfigDifference) -> dict[str, object]:
    return {
        "field": found.field,
        "layers": None if found.layers is None else list(found.layers),
        "declared": found.declared,
        "config": found.config,
        "stated": found.stated,
    }


def _probe_document(probe: ProbeResult) -> dict[str, object]:
    found = probe.deviation
    return {
        "name": probe.probe.name,
        "purpose": probe.probe.purpose,
        "tokens": probe.probe.tokens,
        "floor": {"max_abs": finite(probe.floor.max_abs), "rms": finite(probe.floor.rms)},
        "deviation": {
            "max_abs": finite(found.max_abs),
            "rms": finite(found.rms),
            "kl": finite(found.kl),
            "top1": found.top1,
        },
        "times_floor": finite(probe.times_floor),
        "passed": probe.passed,
        "flips": len(probe.flips),
        "shifted": probe.shifted,
        "by_position": _positions_document(probe.by_position),
    }


def _positions_document(by_position: tuple[float, ...]) -> dict[str, object]:
    """The largest figure of every `width` positions: few enough to read, and to draw."""
    width = max(1, -(-len(by_position) // _MOST_POSITIONS))
    starts = range(0, len(by_position), width)
    return {"width": width, "times_floor": [finite(max(by_position[at : at + width])) for at in starts]}


def _faults_document(found: Adequacy) -> dict[str, object]:
    return {
        "applicable": found.applicable,
        "killed": len(found.killed) + len(found.loud),
        "loud": len(found.loud),
        "equivalent": [{"fault": one.mutant.name, "why": one.why} for one in found.equivalent],
        "survived": [
            {
                "fault": one.mutant.name,
                "field": one.mutant.fault.field,
                "probe": one.probe,
                "times_floor": finite(one.times_floor),
            }
            for one in found.survived
        ],
        "score": found.score,
        "seen": [_seen_document(one) for one in found.killed] + [_refused_document(one) for one in found.loud],
    }


def _seen_document(one: Trial) -> dict[str, object]:
    return {
        "fault": one.mutant.name,
        "field": one.mutant.fault.field,
        "probe": one.probe,
        "times_floor": finite(one.times_floor),
        "loud": False,
    }


def _refused_document(one: Spared) -> dict[str, object]:
    return {
        "fault": one.mutant.name,
        "field": one.mutant.fault.field,
        "probe": None,
        "times_floor": None,
        "loud": True,
    }


def _diagnosis_document(diagnosis: Diagnosis) -> list[dict[str, object]]:
    """An entry for each mistake, best explanation first; those of one explanation name each other."""
    return [
        {
            "fault": one.fault.id,
            "field": one.fault.field,
            "declared": one.slip.declared,
            "behaves_as": one.slip.behaves_as,
            "layers": None if one.layers is None else sorted(one.layers),
            "times_floor": finite(explanation.times_floor),
            "explains": explanation.text,
            "of": diagnosis.of,
            "together_with": [other.fault.id for other in explanation.mutants if other is not one],
            "mend": one.fault.mend,
        }
        for explanation in diagnosis.found
        for one in explanation.mutants
    ]


def _blockwise_document(found: Blockwise) -> dict[str, object]:
    return {
        "probe": found.probe,
        "passed": found.passed,
        "bound": found.bound,
        "layers": list(found.layers),
        "not_judged": list(found.unfed),
        "first": None if found.first is None else found.first.point,
        "points": {point: finite(times) for point, times in found.points.items()},
    }
