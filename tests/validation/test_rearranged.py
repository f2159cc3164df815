"""Weights arranged otherwise, as transformers computes with them, and ports that know the old arrangement."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from archc.architecture import Architecture, compile_text
from archc.validation import rewritten
from archc.validation.gate import GateResult, run_gate
from archc.validation.ports import GeneratedPort
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


class FavoursTheFirstExpert(GeneratedPort):
    """What the first expert gives is a hundredth too large, whichever expert that is."""

    def __init__(self, architecture: Architecture, folder: Path) -> None:
        super().__init__(architecture, folder)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                if parameter.ndim == 3 and name.endswith("down"):
                    parameter[0] *= 1.01


class KnowsItsHeads(GeneratedPort):
    """Made for one checkpoint, whatever its folder says."""

    def __init__(self, architecture: Architecture, folder: Path) -> None:
        super().__init__(compile_text(BY_NAME["llama-default"].text()).architecture, folder)
        del architecture


def gate(name: str, folder: Path, *overrides: str, port: Any = GeneratedPort) -> GateResult:
    compiled = compile_text(BY_NAME[name].text(), overrides=overrides)
    return run_gate(compiled, folder, lambda _step: None, open_port=port)


def kept(result: GateResult) -> dict[str, bool]:
    found = {one.name: one.passed for one in result.invariants}
    return {name: found[name] for name in ("grouped heads", "expert order") if name in found}


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("llama-default", {"grouped heads"}),
        ("llama-biased", {"grouped heads"}),
        ("olmo2", {"grouped heads"}),  # a norm over all channels of its keys
        ("qwen3_moe", {"grouped heads", "expert order"}),
        ("mixtral", {"grouped heads", "expert order"}),
        ("gpt2", set()),
    ],
)
def test_a_clean_port_computes_the_same(name: str, names: set[str], checkpoint: Checkpoint) -> None:
    result = gate(name, checkpoint(name))
    assert result.passed
    assert kept(result) == dict.fromkeys(names, True)
    assert not {blind.field for blind in result.blind} & {"grouped heads", "expert order"}


def test_heads_that_share_other_keys_are_no_longer_told_apart(checkpoint: Checkpoint) -> None:
    """With a key head for every query head, the order of groups is no longer a question."""
    assert kept(gate("llama-default", checkpoint("llama-default"), "attention.grouping=tiled")) == {
        "grouped heads": False
    }


def test_an_expert_known_by_its_number_is_found(checkpoint: Checkpoint) -> None:
    result = gate("mixtral", checkpoint("mixtral"), port=FavoursTheFirstExpert)
    assert kept(result) == {"grouped heads": True, "expert order": False}


def test_a_port_that_cannot_load_them_is_not_judged(checkpoint: Checkpoint) -> None:
    result = gate("llama-default", checkpoint("llama-default"), port=KnowsItsHeads)
    assert result.passed
    [why] = [blind.why for blind in result.blind if blind.field == "grouped heads"]
    assert "cannot run the rearranged weights" in why


def test_fused_keys_and_large_checkpoints_are_said(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    whys = {blind.field: blind.why for blind in gate("phi3-longrope", checkpoint("phi3-longrope")).blind}
    assert "stored with others" in whys["grouped heads"]
    monkeypatch.setattr(rewritten, "LARGEST", 1000)
    whys = {blind.field: blind.why for blind in gate("mixtral", checkpoint("mixtral")).blind}
    assert "are copied" in whys["grouped heads"]
    assert "are copied" in whys["expert order"]
