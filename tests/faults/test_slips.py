"""Layout and runtime faults: their entries are complete, and each of their ways can be made and is no correct port."""

from __future__ import annotations

import functools
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from archc.architecture import compile_text
from archc.architecture.model import Architecture
from archc.cli.fields import meanings
from archc.faults.base import Edit, Fault, Faulty
from archc.faults.catalogue import CATALOGUE
from archc.faults.code import code_slips, way
from archc.importing.convert import import_spec
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe, derive_probes
from archc.validation.workshop import Mutant, Unmade, Workshop
from tests.families import ugly
from tests.families.zoo import CASES
from tests.families.zoo_case import Case
from tests.faults.planting import MORE
from tests.faults.tables import LAYOUT_AND_RUNTIME
from tests.tiny import BY_NAME

HERE = [fault for fault in CATALOGUE if fault.kind != "architecture"]
MODELS = (
    "llama-default",
    "qwen3",
    "llama-biased",
    "gpt2",
    "phi3-partial",
    "gemma2",
    "mistral-window",
    "llama-dynamic",
    "llama-longrope",
    "qwen3_moe",
    "llama-float32-stream",
    "zoo/deepseek_v3",
    "zoo/gpt_neox",
    "zoo/gpt_oss",
    "zoo/llama4_text",
    "zoo/bloom",
    "zoo/apertus",
    "zoo/jetmoe",
    "zoo/beam",
    "llama-deep",
    "llama-pairs",
)
"""Between them, they can have every fault."""
UNPLANTED = {
    "cache.chunk": "transformers' cache drops the keys of earlier chunks, which the mistake would let queries see",
}
"""Faults that are planted into no transformers model, beside those of types, which show in 16 bits alone."""
_SEEN = re.compile(r"[\w.-]+/[\w.-]+#\d+")
_DIFFERENT = 1e-6


@dataclass(frozen=True)
class Bench:
    """A tiny model, and its correct ports in 64 and in 16 bits."""

    architecture: Architecture
    probes: tuple[Probe, ...]
    workshop: Workshop

    @functools.cache  # noqa: B019  # benches live as long as the tests
    def clean(self, probe: str, rounded: bool) -> Tensor:
        """Logits of the correct port."""
        port = self.port((), rounded)
        assert isinstance(port, GeneratedPort)
        return port.logits(self.probe(probe))

    def probe(self, name: str) -> Probe:
        """A probe by its name."""
        return next(probe for probe in self.probes if probe.name == name)

    def port(self, mutants: tuple[Mutant, ...], rounded: bool) -> GeneratedPort | Unmade:
        """A port with mistakes."""
        return self.workshop.make(*mutants, dtype=torch.bfloat16 if rounded else torch.float64)

    def shows(self, mutant: Mutant, rounded: bool) -> bool:
        """Whether a mistake shows on the probes that its fault names, or on any where it names none."""
        port = self.port((mutant,), rounded)
        assert isinstance(port, GeneratedPort), f"{mutant.name}: {port}"
        for probe in self.probes:
            if not mutant.fault.probes or probe.name in mutant.fault.probes:
                apart = (port.logits(probe) - self.clean(probe.name, rounded))[probe.real].abs().max()
                if not apart <= _DIFFERENT:
                    return True
        return False


@functools.cache
def bench(name: str) -> Bench:
    """The bench of a model, made at its first use."""
    folder = Path(_scratch().name, name.replace("/", "-"))
    if name == "llama-float32-stream":
        BY_NAME["llama-default"].save(folder)
        text = BY_NAME["llama-default"].text() + "residual: {float32: true}\n"
    elif name in BY_NAME:
        BY_NAME[name].save(folder)
        text = BY_NAME[name].text()
    else:
        ugly.save(ugly.uglier(_case(name)), folder)
        text = import_spec(str(folder)).text
    architecture = compile_text(text, name).architecture
    probes, _ = derive_probes(architecture)
    return Bench(architecture, tuple(probes), Workshop(architecture, GeneratedPort(architecture, folder)))


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def _case(name: str) -> Case:
    return MORE.get(name) or next(case for case in CASES if f"zoo/{case.name}" == name)


def _about_types(fault: Fault) -> bool:
    return fault.same_when == "the model runs in 32 bits"


def test_every_fault_is_planted_or_cannot_be() -> None:
    planted = {planting.fault for planting in LAYOUT_AND_RUNTIME}
    assert {fault.id for fault in HERE if not _about_types(fault)} == planted | UNPLANTED.keys()


@pytest.mark.parametrize("fault", HERE, ids=lambda fault: fault.id)
def test_entries_are_complete(fault: Fault) -> None:
    assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)*", fault.id)
    assert fault.wrong.endswith(".")
    assert fault.when
    assert fault.mend
    assert meanings(fault.field) or fault.field in {other.id for other in CATALOGUE}
    assert all(_SEEN.fullmatch(report) for report in fault.seen)


@pytest.mark.parametrize("fault", HERE, ids=lambda fault: fault.id)
def test_every_way_can_be_made_and_shows(fault: Fault) -> None:
    hidden: dict[str, list[str]] = {}
    shown: set[str] = set()
    for name in MODELS:
        for slip in fault.slips(bench(name).architecture):
            way = re.sub(r"\d+", "N", slip.behaves_as)
            if way not in shown:
                if bench(name).shows(Mutant(fault, slip), _about_types(fault)):
                    shown.add(way)
                else:
                    hidden.setdefault(way, []).append(name)
    assert shown
    assert hidden.keys() <= shown


@pytest.mark.parametrize("fault", [fault for fault in HERE if _about_types(fault)], ids=lambda fault: fault.id)
def test_types_change_nothing_in_32_bits(fault: Fault) -> None:
    models = (bench(name) for name in MODELS)
    one, slip = next((one, slip) for one in models for slip in fault.slips(one.architecture))
    port = one.workshop.make(Mutant(fault, slip), dtype=torch.float32)
    clean = one.workshop.make(dtype=torch.float32)
    assert isinstance(port, GeneratedPort)
    assert isinstance(clean, GeneratedPort)
    probe = one.probe("64 tokens")
    assert torch.equal(port.logits(probe), clean.logits(probe))


def test_a_way_without_a_place_is_not_made() -> None:
    none = Fault("x", "x", "runtime", "x", "x", "x", code_slips("here", way("there", (r"no such statement", ""))))
    [slip] = none.slips(bench("llama-default").architecture)
    made = bench("llama-default").workshop.make(Mutant(none, slip))
    assert isinstance(made, Unmade)
    assert not made.loud


def test_a_way_that_changes_nothing_does_not_show() -> None:
    same = Fault("x", "x", "runtime", "x", "x", "x", code_slips("here", way("there", (r"(^import torch$)", r"\1  #"))))
    [slip] = same.slips(bench("llama-default").architecture)
    assert not bench("llama-default").shows(Mutant(same, slip), rounded=False)


def test_a_layout_in_some_layers_leaves_the_others() -> None:
    """The change is asked for by the numbers of layers, and touches no tensor of another one."""
    one = bench("llama-default")
    fault = next(fault for fault in CATALOGUE if fault.id == "layout.kv_order")
    [slip] = fault.slips(one.architecture)
    assert slip.layers == (0, 1, 2)
    weights = dict(GeneratedPort(one.architecture, Path(_scratch().name, "llama-default")).model.state_dict())
    [change] = slip.change(Faulty(one.architecture), frozenset({1})).weights
    changed = {name for name, tensor in change(weights).items() if tensor is not weights[name]}
    assert changed == {"layers.1.attention.k.weight", "layers.1.attention.v.weight"}


def test_an_edit_says_when_there_is_nothing_to_change() -> None:
    assert Edit(r"^b$", "c").apply("a\nb\n") == "a\nc\n"
    assert Edit(r"^b$", "c").apply("a\n") is None
