"""References that contradict themselves: what they do not keep is not asked of a port, and a port may be better."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from archc.architecture import compile_text
from archc.architecture.model import Architecture
from archc.errors import IncompleteError
from archc.validation import gate as gate_module
from archc.validation.gate import GateResult, run_gate
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.reference import Reference
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


class SeesPadding(Reference):
    """A reference whose rows see the padding before them."""

    def _forward(self, **inputs: Any) -> Any:
        if "attention_mask" in inputs:
            inputs["attention_mask"] = torch.ones_like(inputs["attention_mask"])
        return super()._forward(**inputs)


class StepsOtherwise(Reference):
    """A reference that forgets its last position at every step through the cache."""

    def _forward(self, **inputs: Any) -> Any:
        for name in ("cache", "past_key_values"):
            if inputs.get(name) is not None:
                inputs[name].crop(-1)
        return super()._forward(**inputs)


class CannotStep(Reference):
    """A reference that trips over what it has kept."""

    def _forward(self, **inputs: Any) -> Any:
        if any(inputs.get(name) is not None for name in ("cache", "past_key_values")):
            raise IncompleteError("a mask of another size", "")
        return super()._forward(**inputs)


class CopiesPadding(GeneratedPort):
    """A port that sees padding too."""

    def logits(self, probe: Probe) -> Tensor:
        if probe.attention_mask is None:
            return super().logits(probe)
        with torch.no_grad():
            found: Tensor = self.model(probe.input_ids, probe.position_ids)
        return found


class WrongInPadding(GeneratedPort):
    """A port that is wrong in a padded batch, in a way of its own."""

    def logits(self, probe: Probe) -> Tensor:
        found = super().logits(probe)
        return found if probe.attention_mask is None or bool(probe.real.all()) else found * 1.01


class WrongInSteps(GeneratedPort):
    """A port that is wrong in its steps, in a way of its own."""

    def logits(self, probe: Probe) -> Tensor:
        found = super().logits(probe)
        return found if probe.chunks is None else found * 1.01


@pytest.fixture
def run(checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch) -> Callable[..., GateResult]:
    def gate(
        reference: type[Reference], port: Callable[[Architecture, Path], GeneratedPort], name: str = "llama-default"
    ) -> GateResult:
        monkeypatch.setattr(gate_module, "Reference", reference)
        compiled = compile_text(BY_NAME[name].text())
        return run_gate(compiled, checkpoint(name), lambda _step: None, open_port=port)

    return gate


def unseen(result: GateResult) -> set[str]:
    return {blind.field for blind in result.blind}


def test_a_port_may_mask_padding_that_the_reference_sees(run: Callable[..., GateResult]) -> None:
    result = run(SeesPadding, GeneratedPort)
    assert result.passed
    assert "left-padded batch" in unseen(result)


def test_or_do_as_the_reference_does(run: Callable[..., GateResult]) -> None:
    result = run(SeesPadding, CopiesPadding)
    assert result.passed
    assert "padding independence" in unseen(result)


def test_but_nothing_else(run: Callable[..., GateResult]) -> None:
    assert not run(SeesPadding, WrongInPadding).passed
    assert not run(Reference, CopiesPadding).passed


def test_steps_may_agree_with_the_full_pass(run: Callable[..., GateResult]) -> None:
    result = run(StepsOtherwise, GeneratedPort)
    assert result.passed
    assert result.steps_against_whole
    assert result.disagreement is not None
    assert result.disagreement > 8


def test_but_with_nothing_else(run: Callable[..., GateResult]) -> None:
    assert not run(StepsOtherwise, WrongInSteps).passed
    assert not run(Reference, WrongInSteps).passed


def test_steps_are_held_against_the_full_pass_of_a_reference_that_cannot_decode(run: Callable[..., GateResult]) -> None:
    assert run(CannotStep, GeneratedPort).steps_against_whole
    assert run(CannotStep, GeneratedPort).passed
    assert not run(CannotStep, WrongInSteps).passed


def test_but_not_where_rotations_by_the_length_make_them_two_functions(run: Callable[..., GateResult]) -> None:
    result = run(CannotStep, GeneratedPort, "llama-longrope")
    assert result.passed
    assert unseen(result) == {"cache"}
    assert unseen(run(Reference, GeneratedPort, "llama-longrope")) == set()
