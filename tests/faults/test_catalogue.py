"""The catalogue: every entry is complete, and every architecture fault is planted somewhere or loud."""

from __future__ import annotations

import pytest

from archc.architecture import compile_text
from archc.cli.fields import known_paths
from archc.faults.base import Fault, Faulty
from archc.faults.catalogue import CATALOGUE
from archc.validation.workshop import Mutant, Unmade
from tests.faults.planting import find_bench
from tests.faults.tables import ARCHITECTURE, LAYOUT_AND_RUNTIME, UNNAMED
from tests.tiny import TINY, Tiny

LOUD = {"attention.head_dim": "llama-default", "ffn.kind.schedule": "qwen3_moe", "embedding.tied.not": "gemma2"}
"""Faults that show when weights are loaded, each with a checkpoint on which it does."""


@pytest.mark.parametrize("fault", CATALOGUE, ids=lambda fault: fault.id)
def test_an_entry_is_complete(fault: Fault) -> None:
    assert fault.kind != "architecture" or fault.field in known_paths()
    assert fault.wrong.endswith(".")
    assert fault.when
    assert fault.mend
    assert not fault.mend.endswith(".")
    assert not fault.when.endswith(".")
    assert all(report.count("#") == 1 for report in fault.seen)


def test_ids_are_unique_and_begin_with_their_field() -> None:
    ids = [fault.id for fault in CATALOGUE]
    assert len(ids) == len(set(ids))
    own = [fault for fault in CATALOGUE if fault.kind == "architecture" and fault.field != "position"]
    assert not [fault.id for fault in own if not f"{fault.id}.".startswith(f"{fault.field}.")]


def test_every_architecture_fault_is_planted_or_loud() -> None:
    faults = {fault.id for fault in CATALOGUE if fault.kind == "architecture"}
    planted = {planting.fault for planting in ARCHITECTURE}
    assert planted <= faults
    assert faults - planted == {fault.id for fault in CATALOGUE if fault.kind == "architecture" and fault.loud}


@pytest.mark.parametrize(("fault", "case"), LOUD.items())
def test_a_loud_fault_is_refused_when_weights_are_loaded(fault: str, case: str) -> None:
    bench = find_bench(case)
    [entry] = [one for one in CATALOGUE if one.id == fault]
    slips = list(entry.slips(bench.compiled.architecture))
    assert slips
    for slip in slips:
        made = bench.workshop.make(Mutant(entry, slip))
        assert isinstance(made, Unmade)
        assert made.loud


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.name)
def test_no_slip_is_the_spec_itself(tiny: Tiny) -> None:
    """Every slip changes something, has its own words, and says truly in which layers it can be."""
    architecture = compile_text(tiny.text()).architecture
    for fault in CATALOGUE:
        slips = list(fault.slips(architecture))
        words = [slip.behaves_as for slip in slips]
        assert len(words) == len(set(words)), fault.id
        assert not [slip for slip in slips if slip.behaves_as == slip.declared], fault.id
        assert all(0 <= layer < len(architecture.layers) for slip in slips for layer in slip.layers), fault.id


def test_exceptions_are_few_and_exist() -> None:
    named = {str(planting) for planting in (*ARCHITECTURE, *LAYOUT_AND_RUNTIME)}
    assert set(UNNAMED) <= named
    assert len(UNNAMED) <= 0.05 * len(named)


def test_mistakes_in_some_layers_make_kinds_of_their_own() -> None:
    """One layer of three that share a kind: the generated module must not give it to all of them."""
    bench = find_bench("llama-default")
    [base] = [fault for fault in CATALOGUE if fault.id == "position.base"]
    slip = next(iter(base.slips(bench.compiled.architecture)))

    changed = slip.change(Faulty(bench.compiled.architecture), frozenset({1})).architecture.layers
    assert [layer.kind for layer in changed].count(changed[0].kind) == 2
    assert changed[1].kind != changed[0].kind
