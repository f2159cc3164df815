"""The quick level: what it still catches, what it cannot, and that it says so."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from torch import Tensor

from archc.architecture import compile_text
from archc.faults.base import Fault
from archc.faults.catalogue import CATALOGUE
from archc.render.validation_json import gate_document
from archc.validation.gate import GateResult, Level, run_gate
from archc.validation.ports import GeneratedPort, OpenPort
from archc.validation.probes import Probe
from tests.cli.runner import archc
from tests.tiny import BY_NAME, TINY

Checkpoint = Callable[[str], Path]


def gate(
    name: str,
    folder: Path,
    *overrides: str,
    quick: bool = True,
    open_port: OpenPort = GeneratedPort,
    catalogue: Sequence[Fault] = CATALOGUE,
) -> GateResult:
    compiled = compile_text(BY_NAME[name].text(), name, overrides)
    return run_gate(compiled, folder, lambda _step: None, open_port=open_port, catalogue=catalogue, level=Level(quick))


class BlindToPadding(GeneratedPort):
    """Padding is read like any token."""

    def stream(self, probe: Probe) -> Iterator[Tensor]:
        yield from super().stream(replace(probe, attention_mask=None))


class ForgetsItsCache(GeneratedPort):
    """Every piece is taken for the start of an input."""

    def stream(self, probe: Probe) -> Iterator[Tensor]:
        for piece in probe.steps() if probe.chunks is not None else [probe]:
            yield from super().stream(piece)


@pytest.mark.parametrize("name", [tiny.name for tiny in TINY])
def test_a_clean_port_passes_and_what_is_left_out_is_said(name: str, checkpoint: Checkpoint) -> None:
    result = gate(name, checkpoint(name))
    document = gate_document(result)
    assert result.passed
    assert not result.strictly_passed
    assert {probe.probe.name for probe in result.probes} == {"8 tokens", "64 tokens"}
    assert (result.adequacy, result.diagnosis, result.text) == (None, None, None)
    [unseen] = [one for one in result.blind if one.field == "quick"]
    everything = gate(name, checkpoint(name), quick=False, catalogue=()).probes
    for left_out in {one.probe.name for one in everything} - {"8 tokens", "64 tokens"} | {"what mistakes would have"}:
        assert left_out in unseen.why
    assert {"left-padded batch", "cache"} < {one.probe.name for one in everything}
    assert document["level"] == "quick"
    assert document["faults"] is None
    assert f"on 2 of {result.planned} probes" in str(document["verdict"])


@pytest.mark.parametrize(
    ("name", "override"),
    [
        ("gpt2", "ffn.activation=gelu"),
        ("gpt2", "norm.kind=rmsnorm"),
        ("llama-default", "position.pairing=interleaved"),
        ("llama-default", "attention.grouping=tiled"),
        ("llama-default", "position.base=5400"),
        ("llama-default", "norm.eps=2.9e-3"),
        ("llama-default", "attention.scale=0.26"),
        ("llama-default", "logits.scale=1.001"),
        ("mistral-window", "attention.window=8"),
        ("gemma2", "attention.softcap=49"),
        ("qwen3_moe", "ffn.router.renormalize=true"),
    ],
)
def test_a_wrong_field_fails(name: str, override: str, checkpoint: Checkpoint) -> None:
    assert any(not probe.passed for probe in gate(name, checkpoint(name), override).probes)


def test_a_cache_that_is_not_used_fails(checkpoint: Checkpoint) -> None:
    result = gate("llama-default", checkpoint("llama-default"), open_port=ForgetsItsCache)
    assert [one.name for one in result.invariants if not one.passed] == ["cache equivalence"]
    assert not result.passed


def test_padding_takes_the_full_level(checkpoint: Checkpoint) -> None:
    """What the quick level leaves out it does not see, and the level that looks there does."""
    folder = checkpoint("llama-default")
    quick = gate("llama-default", folder, open_port=BlindToPadding)
    assert quick.passed
    assert any("left-padded batch" in one.why for one in quick.blind)
    full = gate("llama-default", folder, quick=False, open_port=BlindToPadding)
    assert not full.passed
    assert gate_document(full)["level"] == "full"
    assert not any(one.field == "quick" for one in full.blind)


def test_the_command(checkpoint: Checkpoint, tmp_path: Path) -> None:
    spec = tmp_path / "spec.yaml"
    spec.write_text(BY_NAME["llama-default"].text())
    target = ("validate", str(spec), "--weights", str(checkpoint("llama-default")))
    done = archc(*target, "--quick")
    assert done.code == 0
    assert "not seen: quick" in done.out
    assert json.loads(archc(*target, "--quick", "--json").out)["level"] == "quick"
    assert archc(*target, "--quick", "--set", "position.base=5400").code == 1


def test_quick_is_not_strict(tmp_path: Path) -> None:
    done = archc("validate", "gpt2", "--weights", str(tmp_path), "--quick", "--strict")
    assert done.code == 2
    assert "leave one of them out" in done.err
