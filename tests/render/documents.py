"""Validation JSON made by hand, with every key that a report may read."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_PASSING: dict[str, Any] = {
    "passed": True,
    "passed_strictly": False,
    "verdict": "at most 0.85 times the noise floor on every probe; the bound is 8",
    "verdict_strictly": "every probe holds, but 1 mistake would go unseen and 1 thing not seen (--strict)",
    "level": "full",
    "bound": 8.0,
    "reference": {
        "kind": "transformers",
        "version": "transformers 5.24.0",
        "dtype": "float32",
        "dequantised": None,
    },
    "port": {"kind": "python", "name": "/home/someone/port.py:load"},
    "spec": {"name": "tiny", "sha256": "ab" * 32},
    "platform": {"python": "3.11.7", "machine": "x86_64"},
    "probes": [
        {
            "name": name,
            "purpose": "heads, positions, norms and activations",
            "tokens": tokens,
            "floor": {"max_abs": 3.1e-05, "rms": 2.6e-06},
            "deviation": {"max_abs": 2.3e-05, "rms": 2.0e-06, "kl": 0.0, "top1": 1.0},
            "times_floor": 0.85,
            "passed": True,
            "flips": 0,
            "by_position": {"width": 4, "times_floor": [0.25, 0.75]},
        }
        for name, tokens in (("8 tokens", 8), ("64 tokens", 64))
    ],
    "first_divergence": None,
    "divergence_note": None,
    "blockwise": None,
    "fields": {
        "observed": ["attention.heads", "position.pairing"],
        "blind": [{"field": "norm.eps", "why": "below the last digit on these weights", "declared": True}],
    },
    "faults": {
        "applicable": 12,
        "killed": 10,
        "loud": 1,
        "equivalent": [{"fault": "attention.grouping", "why": "one query head for every key/value head"}],
        "survived": [
            {"fault": "position.base = 10000", "field": "position.base", "probe": "64 tokens", "times_floor": 2.5}
        ],
        "score": 10 / 11,
        "seen": [
            {
                "fault": "position.pairing = interleaved",
                "field": "position.pairing",
                "probe": "8 tokens",
                "times_floor": 61.5,
                "loud": False,
            },
            {
                "fault": "attention.heads = 4",
                "field": "attention.heads",
                "probe": None,
                "times_floor": None,
                "loud": True,
            },
        ],
    },
    "diagnosis": [],
    "diagnosis_note": None,
    "static": [],
    "norm_weights": [],
    "invariants": [
        {"name": "causality", "passed": True, "figure": 0.0, "unit": "times the floor", "detail": ""},
        {"name": "cache size", "passed": True, "figure": 0.0, "unit": "cached numbers", "detail": "6 declared"},
    ],
    "manifest": {"missing": [], "unexpected": [], "wrong_shape": [], "unread": ["lm_head.weight"]},
    "text": None,
    "stream": None,
    "seconds": {"load": 2.5, "reference": 1.25, "port": 0.25, "total": 4.0},
    "peak_memory_bytes": 446111744,
}


def passing() -> dict[str, Any]:
    """A port that holds, of a gate that does not see everything."""
    return deepcopy(_PASSING)


def flawless() -> dict[str, Any]:
    """A port that holds, of a gate that sees everything."""
    document = passing()
    document |= {"passed_strictly": True, "verdict_strictly": document["verdict"]}
    document["fields"]["blind"] = document["faults"]["survived"] = []
    return document


def failing() -> dict[str, Any]:
    """A port with interleaved pairing in two layers: its deviation is not even finite on the longer probe."""
    document = passing()
    document |= {
        "passed": False,
        "verdict": "1 of 2 probes beyond 8 times the noise floor, by up to ∞ times; broken: cache size",
        "verdict_strictly": "1 of 2 probes beyond 8 times the noise floor, by up to ∞ times; broken: cache size",
        "first_divergence": {"layer": 1, "point": "layers.1.out", "times_floor": 143.2},
        "diagnosis": [
            {
                "fault": "position.pairing",
                "field": "position.pairing",
                "declared": "half",
                "behaves_as": "interleaved",
                "layers": [1, 2],
                "times_floor": 0.6,
                "explains": "position.pairing = interleaved (declared: half), on layers 1, 2 only",
                "of": "port",
                "together_with": [],
                "mend": "rotate the pairs (i, i + d/2)",
            },
            {
                "fault": "position.base",
                "field": "position.base",
                "declared": "5300",
                "behaves_as": "10000",
                "layers": None,
                "times_floor": 4.2,
                "explains": "position.base = 10000 (declared: 5300)",
                "of": "port",
                "together_with": [],
                "mend": "take the base from the config",
            },
        ],
    }
    document["probes"][1] |= {
        "deviation": {"max_abs": None, "rms": None, "kl": None, "top1": 0.5},
        "times_floor": None,
        "passed": False,
        "by_position": {"width": 4, "times_floor": [7.5, None]},
    }
    document["invariants"][1] |= {"passed": False, "figure": 192.0, "detail": "1,344 declared, 1,152 in the reference"}
    document["static"] = [
        {"field": "norm.eps", "layers": None, "declared": 1e-05, "config": 1e-06, "stated": True},
        {"field": "position.base", "layers": [1, 2], "declared": 5300, "config": None, "stated": False},
    ]
    document["norm_weights"] = [
        {"tensors": "model.norm.weight", "declared": "plain", "mean": 0.02, "looks": "one_plus"}
    ]
    return document


def hidden() -> dict[str, Any]:
    """A port in 16 bits whose logits hide what layer 2 alone shows."""
    document = passing()
    sentence = "the logits hide it, but layer 2 computes something else"
    document |= {"passed": False, "verdict": sentence, "verdict_strictly": sentence, "faults": None}
    document["blockwise"] = {
        "probe": "64 tokens",
        "passed": False,
        "bound": 4.0,
        "layers": [2],
        "not_judged": [],
        "first": "layers.2.mixer.q",
        "points": {"layers.1.out": 0.9, "layers.2.mixer.q": 31.5, "layers.2.out": None},
    }
    return document


def unloadable() -> dict[str, Any]:
    """A checkpoint that does not hold what the spec declares, so that nothing was run."""
    document = passing()
    shapes = [
        {"name": f"model.layers.{n}.self_attn.k_proj.weight", "declared": [48, 72], "stored": [32, 72]}
        for n in range(3)
    ]
    document |= {
        "passed": False,
        "verdict": "the checkpoint does not hold what the spec declares; nothing was run",
        "verdict_strictly": "the checkpoint does not hold what the spec declares; nothing was run",
        "reference": {"kind": "transformers", "version": None, "dtype": "float32", "dequantised": None},
        "port": {"kind": None, "name": None},
        "probes": [],
        "invariants": [],
        "fields": {"observed": None, "blind": []},
        "faults": None,
        "static": None,
        "manifest": {
            "missing": ["model.layers.0.self_attn.q_proj.bias", "model.layers.1.self_attn.q_proj.bias"],
            "unexpected": ["model.extra.weight"],
            "wrong_shape": shapes,
            "unread": [],
        },
        "seconds": {"total": 0.1},
    }
    return document


def sensitivity() -> dict[str, Any]:
    """Sensitivity JSON: a costly mistake, one that lowers the loss, one that hides, one that raises, and no mistake."""
    figures = ("loss", "loss_change", "kl", "top1", "max_abs", "times_floor")
    rows = [
        ("norm.eps", "1e-05", "1e-06", "killed", None, (1.594, -1.5e-05, 7e-08, 1.0, 0.005, 108.5)),
        ("attention.grouping", "interleaved", "tiled", "killed", None, (3.583, 1.2479, 2.35, 0.3, 12.0, 400596.0)),
        ("norm.weight.final", "plain", "none", "killed", None, (1.54, -0.0339, 0.047, 0.96, 9.0, 276828.0)),
        ("attention.head_dim", "24", "16", "loud", "q.weight is stored as [144, 96]", (None,) * 6),
    ]
    return {
        "spec": "tiny",
        "reference": {"kind": "transformers", "version": "transformers 5.24.0", "dtype": "float32"},
        "text": {"name": "ferry.txt", "sha256": "29" * 32, "tokens": 256},
        "loss": 1.5939,
        "faults": [
            {
                "fault": fault,
                "name": f"{fault} = {behaves_as}",
                "field": fault,
                "kind": "architecture",
                "declared": declared,
                "behaves_as": behaves_as,
                "silent": gate != "loud",
                "gate": gate,
                "probe": None if gate == "loud" else "8 tokens",
                "why": why,
                **dict(zip(figures, cost, strict=True)),
            }
            for fault, declared, behaves_as, gate, why, cost in rows
        ],
        "controls": [
            {"change": "all positions + 500", **dict(zip(figures, (1.594, 0.0, 0.0, 1.0, 0.0001, 2.95), strict=True))}
        ],
    }
