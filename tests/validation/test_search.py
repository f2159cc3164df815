"""The search for what is behind a failing port: pairs, single layers, unusual numbers; and what must not be named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM

from archc.architecture import compile_text
from archc.faults.catalogue import CATALOGUE
from archc.render.validation import print_verdict
from archc.render.validation_json import gate_document
from archc.validation.gate import GateResult, run_gate
from archc.validation.python_port import PythonPort
from tests.tiny import BY_NAME
from tests.validation.conftest import Checkpoint

NAME = "llama-biased"
Plant = Callable[[Any], None]


class Opaque:
    """A port that shows nothing but its logits."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def __call__(
        self,
        input_ids: Tensor,
        position_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        cache: Any = None,
        use_cache: bool | None = None,
    ) -> Any:
        more = {"cache": cache, "use_cache": use_cache}
        return self.model(input_ids, position_ids=position_ids, attention_mask=attention_mask, **more)


def gate(folder: Path, *plants: Plant, opaque: bool = False) -> GateResult:
    def load(weights: Path, _dtype: torch.dtype) -> Any:
        model = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.float32, attn_implementation="eager").eval()
        for plant in plants:
            plant(model)
        return Opaque(model) if opaque else model

    return run_gate(
        compile_text(BY_NAME[NAME].text()),
        folder,
        lambda _step: None,
        open_port=lambda architecture, place: PythonPort("port", load, place, architecture),
        catalogue=CATALOGUE,
    )


def diagnosis(result: GateResult) -> list[dict[str, Any]]:
    found: Any = gate_document(result)["diagnosis"]
    assert isinstance(found, list)
    return found


def base(value: float) -> Plant:
    def plant(model: Any) -> None:
        turning = model.model.rotary_emb
        channels = 2 * turning.inv_freq.numel()
        turning.inv_freq = value ** (-torch.arange(0, channels, 2).float() / channels)

    return plant


def gelu(*layers: int) -> Plant:
    def plant(model: Any) -> None:
        for number, layer in enumerate(model.model.layers):
            if not layers or number in layers:
                layer.mlp.act_fn = nn.GELU()

    return plant


def scale(factor: float) -> Plant:
    def plant(model: Any) -> None:
        for layer in model.model.layers:
            layer.self_attn.scaling *= factor

    return plant


def eps(value: float) -> Plant:
    def plant(model: Any) -> None:
        for module in model.modules():
            if hasattr(module, "variance_epsilon"):
                module.variance_epsilon = value

    return plant


def stretched(model: Any) -> None:
    with torch.no_grad():
        model.model.layers[1].self_attn.q_proj.weight[::2] *= 1.3


@pytest.mark.parametrize("opaque", [False, True], ids=["traced", "opaque"])
@pytest.mark.parametrize(
    ("plants", "expected"),
    [
        ((base(10_000), gelu()), ["ffn.activation = gelu", "position.base = 10000"]),
        ((gelu(1),), ["ffn.activation = gelu"]),
        ((gelu(0, 2),), ["ffn.activation = gelu"]),
        ((base(7_777),), ["position.base = 7777"]),
        ((scale(0.83),), ["attention.scale = 0.2075"]),
    ],
    ids=["a pair", "one layer", "two layers", "an unusual base", "an unusual scale"],
)
def test_what_is_behind_a_port_is_named(
    plants: tuple[Plant, ...], expected: list[str], opaque: bool, checkpoint: Checkpoint
) -> None:
    result = gate(checkpoint(NAME), *plants, opaque=opaque)
    assert result.diagnosis is not None
    assert sorted(one.name for one in result.diagnosis.found[0].mutants) == expected


SEVERAL = (eps(0.02), base(10_000), scale(0.83), gelu())
NAMED = ["norm.eps = 0.02", "position.base = 10000", "attention.scale = 0.2075", "ffn.activation = gelu"]


def test_several_mistakes_are_named_in_the_order_in_which_they_act(
    checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two of the numbers are none that the catalogue has."""
    result = gate(checkpoint(NAME), *SEVERAL)
    assert result.diagnosis is not None
    assert [one.name for one in result.diagnosis.found[0].mutants] == NAMED
    found = diagnosis(result)
    assert [one["field"] for one in found] == [name.partition(" ")[0] for name in NAMED]
    assert len(found[0]["together_with"]) == 3
    assert found[0]["times_floor"] < 8
    print_verdict(result)
    printed = capsys.readouterr().out.partition("the port behaves exactly as with 4 mistakes together:\n")[2]
    for words in NAMED:
        assert f"    {words} (declared: " in printed


def test_several_wrong_fields_of_a_spec_are_named(checkpoint: Checkpoint) -> None:
    wrong = ["norm.eps=0.02", "position.base=10000", "ffn.activation=gelu"]
    compiled = compile_text(BY_NAME[NAME].text(), overrides=wrong)
    result = run_gate(compiled, checkpoint(NAME), lambda _step: None, catalogue=CATALOGUE)
    found = [(one["of"], one["field"], one["behaves_as"]) for one in diagnosis(result)]
    assert found == [
        ("reference", "norm.eps", "0.003"),
        ("reference", "position.base", "5300"),
        ("reference", "ffn.activation", "silu"),
    ]


@pytest.mark.slow
def test_what_hides_behind_several_mistakes_is_not_named(checkpoint: Checkpoint) -> None:
    """A chain that does not explain everything names nothing, but says how far it leads; blind, nobody can say."""
    result = gate(checkpoint(NAME), eps(0.02), gelu(), stretched)
    assert result.diagnosis is not None
    assert not result.diagnosis.found
    partly = "norm.eps = 0.02 (declared: 0.003), everywhere and ffn.activation = gelu (declared: silu), everywhere"
    assert result.diagnosis.note.endswith(f"; up to layers.1.mixer.q, it behaves as with {partly}")
    blind = gate(checkpoint(NAME), eps(0.02), gelu(), stretched, opaque=True)
    assert blind.diagnosis is not None
    assert not blind.diagnosis.found
    assert "up to" not in blind.diagnosis.note


@pytest.mark.parametrize("layers", [(1,), (0, 2)])
def test_layers_are_named(layers: tuple[int, ...], checkpoint: Checkpoint) -> None:
    [found] = diagnosis(gate(checkpoint(NAME), gelu(*layers)))
    assert (found["layers"], found["behaves_as"], found["declared"]) == (list(layers), "gelu", "silu")
    assert "only" in found["explains"]


@pytest.mark.slow
@pytest.mark.parametrize("opaque", [False, True], ids=["traced", "opaque"])
def test_what_explains_nothing_is_not_named(opaque: bool, checkpoint: Checkpoint) -> None:
    result = gate(checkpoint(NAME), stretched, opaque=opaque)
    assert result.diagnosis is not None
    assert not result.diagnosis.found
    assert result.diagnosis.note == "no mistake of the catalogue, and no pair of them, explains what the port gives"


@pytest.mark.slow
def test_a_port_that_works_in_16_bits_is_told_so(checkpoint: Checkpoint) -> None:
    result = gate(checkpoint(NAME), lambda model: model.bfloat16())
    assert not result.passed
    assert result.diagnosis is not None
    assert not result.diagnosis.found
    assert result.diagnosis.note.endswith("the port deviates as much as the model does in bfloat16")


def test_where_the_spec_is_wrong_the_reference_is_explained(checkpoint: Checkpoint) -> None:
    compiled = compile_text(BY_NAME[NAME].text(), overrides=["position.pairing=interleaved"])
    result = run_gate(compiled, checkpoint(NAME), lambda _step: None, catalogue=CATALOGUE)
    assert result.diagnosis is not None
    assert result.diagnosis.of == "reference"
    [found] = diagnosis(result)
    assert (found["field"], found["declared"], found["behaves_as"]) == ("position.pairing", "interleaved", "half")


def test_logits_that_are_off_by_one_number_per_position_pass(checkpoint: Checkpoint) -> None:
    class Shifted(nn.Module):
        def __init__(self, model: Any, one: bool) -> None:
            super().__init__()
            self.model, self.one = model, one

        def forward(self, input_ids: Tensor, position_ids: Tensor | None = None) -> Tensor:
            logits: Tensor = self.model(input_ids, position_ids=position_ids).logits
            return logits + 3 if self.one else logits + 3 * torch.linspace(0, 1, logits.shape[-1])

    def run(one: bool) -> GateResult:
        def load(weights: Path, dtype: torch.dtype) -> Any:
            return Shifted(AutoModelForCausalLM.from_pretrained(weights, dtype=dtype).eval(), one)

        compiled = compile_text(BY_NAME[NAME].text())
        opened = lambda _architecture, place: PythonPort("port", load, place)  # noqa: E731
        return run_gate(compiled, checkpoint(NAME), lambda _step: None, open_port=opened)

    right, wrong = run(True), run(False)
    assert right.passed
    assert all(one.shifted for one in right.probes)
    assert not wrong.passed
