"""The gate on real weights: SmolLM2-135M passes, and each of six one-field mistakes fails by the probes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from archc.checkpoints.cache import checkpoint_folder

WEIGHTS = checkpoint_folder("smollm2-135m")
pytestmark = [
    pytest.mark.slow,
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
    assert size["figure"] == 256 * 11520
    for word in ("reference", "port", "probe", "floor", "deviation", "PASS"):
        assert word in out


# The published effect on the loss: a sign and a rough size; eps shows in the logits only.
@pytest.mark.parametrize(
    ("override", "least", "most"),
    [
        ("position.pairing=interleaved", 0.3, 1.5),
        ("attention.grouping=tiled", 1.0, 5.0),
        ("norm.kind=layernorm", 0.002, 0.08),
        ("norm.eps=1e-6", -0.001, 0.001),
        ("ffn.activation=gelu", 0.08, 0.5),
        ("position.base=10000", 0.005, 0.15),
    ],
)
def test_one_wrong_field_fails_by_the_probes(tmp_path: Path, override: str, least: float, most: float) -> None:
    code, result, out = validate(tmp_path, "--set", override)
    assert code == 1
    assert result["passed"] is False
    assert not any(result["manifest"].values())
    assert any(probe["times_floor"] is None or probe["times_floor"] > 8 for probe in result["probes"])
    loss = result["text"]["loss"]
    assert least <= loss["port"] / loss["reference"] - 1 <= most
    assert result["text"]["name"] == "ferry.txt"
    assert "FAIL" in out
