"""The gate on real weights: SmolLM2-135M passes, and each of six one-field mistakes fails by the probes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from archc import resources
from archc.architecture import compile_spec
from archc.checkpoints.cache import checkpoint_folder
from archc.validation.parity import Baseline, judge, measure
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe, derive_probes
from archc.validation.reference import Reference
from archc.validation.text import read_tokens, text_loss

WEIGHTS = checkpoint_folder("smollm2-135m")
TEXT = resources.folder("validators") / "texts" / "ferry.txt"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("smollm2"),
    pytest.mark.skipif(not WEIGHTS.exists(), reason="needs `archc fetch smollm2-135m`"),
]


def validate(tmp_path: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    file = tmp_path / "result.json"
    command = [sys.executable, "-m", "archc", "validate", "smollm2-135m", *options, "--json", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, json.loads(file.read_text()), done.stdout


def test_real_weights_pass(tmp_path: Path) -> None:
    code, result, out = validate(tmp_path)
    assert code == 0
    assert result["passed"] is True
    assert all(probe["times_floor"] <= 8 for probe in result["probes"])
    size = next(one for one in result["invariants"] if one["name"] == "cache size")
    assert size["figure"] == 16 * 11520
    kept = {one["name"] for one in result["invariants"] if one["passed"]}
    assert {"shift invariance", "grouped heads", "padded decoding", "batch independence", "right padding"} <= kept
    assert result["static"] == result["norm_weights"] == []
    for word in ("reference", "port", "probe", "floor", "deviation", "PASS"):
        assert word in out


def test_a_wrong_field_fails_with_exit_code_1(tmp_path: Path) -> None:
    code, result, out = validate(tmp_path, "--set", "norm.eps=1e-6")
    assert code == 1
    assert result["passed"] is False
    assert not any(result["manifest"].values())
    assert result["first_divergence"]["layer"] == 0
    assert result["text"]["name"] == "ferry.txt"
    assert len(result["text"]["sha256"]) == 64
    assert "FAIL" in out


@dataclass(frozen=True)
class Measured:
    """The reference and its floor, measured once for all mistakes."""

    reference: Reference
    baselines: list[Baseline]


@pytest.fixture(scope="module")
def measured() -> Measured:
    reference = Reference(WEIGHTS)
    probes, _ = derive_probes(compile_spec("smollm2-135m").architecture)
    short = [probe for probe in probes if probe.tokens <= 64]
    return Measured(reference, measure(reference, short, lambda _step: None)[0])


# The published effect on the loss: its sign and rough size. Of the right field's twin, nothing.
@pytest.mark.parametrize(
    ("override", "least", "most"),
    [
        ("position.pairing=half", -1e-5, 1e-5),
        ("position.pairing=interleaved", 0.3, 1.5),
        ("attention.grouping=tiled", 1.0, 5.0),
        ("norm.kind=layernorm", 0.002, 0.08),
        ("norm.eps=1e-6", -0.001, 0.001),
        ("ffn.activation=gelu", 0.08, 0.5),
        ("position.base=10000", 0.005, 0.15),
    ],
)
def test_one_wrong_field(measured: Measured, override: str, least: float, most: float) -> None:
    right = override == "position.pairing=half"
    architecture = compile_spec("smollm2-135m", [override]).architecture
    port = GeneratedPort(architecture, WEIGHTS)
    results = [judge(measured.reference, baseline, port.logits(baseline.probe)) for baseline in measured.baselines]
    # Far positions have a floor of their own, under which the smallest mistakes hide: one probe that sees is enough.
    failed = [result.probe.name for result in results if not result.passed]
    assert bool(failed) != right, failed
    tokens = read_tokens(architecture, WEIGHTS, TEXT)
    assert tokens is not None
    loss = text_loss(measured.reference, port, replace(tokens, ids=tokens.ids[:256]))
    assert loss is not None
    assert least <= loss.change <= most


def test_the_loss_is_the_same_at_any_offset() -> None:
    """Rotations know distances alone: the published loss does not change 500 or 5,000 positions further on."""
    architecture = compile_spec("smollm2-135m").architecture
    tokens = read_tokens(architecture, WEIGHTS, TEXT)
    assert tokens is not None
    ids = torch.tensor([tokens.ids[:128]])
    port = GeneratedPort(architecture, WEIGHTS)
    places = torch.arange(ids.shape[1])[None]
    probes = [Probe("", "", ids, places + offset, torch.ones_like(ids)) for offset in (0, 500, 5000)]
    losses = [float(F.cross_entropy(port.logits(probe)[0, :-1], ids[0, 1:])) for probe in probes]
    assert losses == pytest.approx([losses[0]] * 3, abs=1e-4)
    scattered = port.logits(replace(probes[0], position_ids=places * 2))
    assert abs(float(F.cross_entropy(scattered[0, :-1], ids[0, 1:])) - losses[0]) > 1e-2
