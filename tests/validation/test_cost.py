"""What a run of the gate may cost, counted in tokens, passes and copies: seconds depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from archc.architecture import compile_text
from archc.faults.catalogue import CATALOGUE
from archc.validation import adequacy
from archc.validation.adequacy import Bench, try_mutants
from archc.validation.parity import BOUND, NUDGES, measure, times_floor
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe, derive_probes
from archc.validation.reference import Reference
from archc.validation.workshop import Mutant, Workshop, mutants_of
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


@contextmanager
def counted(model: Any) -> Iterator[list[int]]:
    """The tokens of every forward pass of a model, padding included."""
    passes: list[int] = []

    def count(_module: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        passes.append((args[0] if args else kwargs["input_ids"]).numel())

    handle = model.register_forward_pre_hook(count, with_kwargs=True)
    try:
        yield passes
    finally:
        handle.remove()


def probes_of(name: str, reference: Reference) -> list[Probe]:
    derived, _ = derive_probes(compile_text(BY_NAME[name].text()).architecture, avoid=reference.padding)
    return [probe for probe in derived if reference.refusal(probe) is None]


def test_a_long_probe_runs_twice_and_a_short_prompt_six_times(checkpoint: Checkpoint) -> None:
    """Once as it is, then with moved weights, and short prompts in other arithmetic; in 64 bits nothing long."""
    reference = Reference(checkpoint("llama-default"))
    probes = probes_of("llama-default", reference)
    with counted(reference.model) as passes:
        measure(reference, [one for one in probes if one.position_ids is None], lambda _step: None)
    assert passes.count(512) == 2
    assert passes.count(8) == 1 + NUDGES + 2
    assert passes.count(64) == 1 + 1 + 2
    with counted(reference.model) as passes:
        measure(reference, probes, lambda _step: None)
    assert sum(passes) < 2.6 * sum(probe.input_ids.numel() for probe in probes)


def test_a_quick_floor_is_one_more_pass(checkpoint: Checkpoint) -> None:
    reference = Reference(checkpoint("llama-default"))
    probes = [probe for probe in probes_of("llama-default", reference) if probe.name in {"8 tokens", "64 tokens"}]
    with counted(reference.model) as passes:
        _, runs = measure(reference, probes, lambda _step: None, quick=True)
    assert (passes.count(8), passes.count(64)) == (2, 2)
    assert [run.name for run in runs] == ["one unit in the last place"]


def test_near_ties_take_several_runs_at_any_length(checkpoint: Checkpoint) -> None:
    """How far noise moves the margin of a choice is the most of several draws."""
    reference = Reference(checkpoint("qwen3_moe"))
    [probe] = [one for one in probes_of("qwen3_moe", reference) if one.name == "64 tokens"]
    with counted(reference.model) as passes:
        measure(reference, [probe], lambda _step: None, quick=True)
    assert passes.count(64) == 1 + NUDGES


def test_only_what_remembers_is_run_again_to_forget(checkpoint: Checkpoint) -> None:
    """Dynamic scaling keeps the frequencies of the longest input so far; other models keep nothing."""
    long, short = (Probe(f"{n} tokens", "", torch.arange(n)[None] % 200) for n in (200, 8))
    plain, dynamic = Reference(checkpoint("llama-default")), Reference(checkpoint("llama-dynamic"))
    before = plain.run(short).logits, dynamic.run(short).logits
    with counted(plain.model) as passes, counted(dynamic.model) as more:
        for reference in (plain, dynamic):
            reference.run(long)
        after = plain.run(short).logits, dynamic.run(short).logits
    assert passes == [200, 8]
    assert more == [200, 1, 8]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


@pytest.fixture(scope="module")
def bench(checkpoint: Checkpoint) -> Bench:
    folder, architecture = checkpoint("llama-default"), compile_text(BY_NAME["llama-default"].text()).architecture
    reference = Reference(folder)
    baselines, _ = measure(reference, probes_of("llama-default", reference), lambda _step: None)
    return Bench(reference, baselines, Workshop(architecture, GeneratedPort(architecture, folder)), lambda _step: None)


def mutants(bench: Bench) -> list[Mutant]:
    return mutants_of(bench.workshop.clean.architecture, CATALOGUE)


def test_mutants_share_the_weights_of_the_right_model(bench: Bench) -> None:
    """Only what a mistake in reading changes is new: of all mutants together, less than three models."""
    right = bench.workshop.correct.model.state_dict()
    own = {tensor.data_ptr() for tensor in right.values()}
    new = {}
    for mutant in mutants(bench):
        port = bench.workshop.make(mutant)
        if isinstance(port, GeneratedPort):
            held = port.model.state_dict()
            assert all(one.device.type == "cpu" for one in held.values())
            new[mutant.name] = sum(one.numel() for one in held.values() if one.data_ptr() not in own)
            if mutant.fault.kind != "layout":
                assert new[mutant.name] == 0, mutant.name
    assert any(new.values()), "no mistake reads weights otherwise: the count counts nothing"
    assert sum(new.values()) < 3 * sum(tensor.numel() for tensor in right.values())


def test_mutants_draw_no_weights(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(*_args: Any, **_kwargs: Any) -> Tensor:
        raise AssertionError("weights were drawn")

    monkeypatch.setattr(torch.nn.init, "kaiming_uniform_", drawn)
    assert isinstance(bench.workshop.make(mutants(bench)[0]), GeneratedPort)
    with pytest.raises(AssertionError, match="drawn"):
        torch.nn.Linear(2, 2)


def test_most_mutants_cost_a_short_prompt(bench: Bench) -> None:
    given: list[int] = []
    stream = GeneratedPort.stream

    def counting(port: GeneratedPort, probe: Probe) -> Iterator[Tensor]:
        for piece in stream(port, probe):
            given.append(piece.shape[0] * piece.shape[1])
            yield piece

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GeneratedPort, "stream", counting)
        found = try_mutants(bench, mutants(bench), thorough=False)
    assert found.killed
    assert sum(given) < 32 * found.applicable, "tokens, on average"


def test_a_piece_that_gives_a_mutant_away_is_enough_and_no_more_than_the_whole_would(bench: Bench) -> None:
    [cached] = [one for one in bench.baselines if one.probe.chunks is not None]
    shorter = 0
    for mutant in mutants(bench):
        if cached.probe.name not in mutant.fault.probes:
            continue
        port = bench.workshop.make(mutant)
        assert isinstance(port, GeneratedPort)
        logits, times = adequacy._against(bench.reference, cached, port)
        whole = times_floor(bench.reference, cached, port.logits(cached.probe))
        assert (times > BOUND) == (whole > BOUND), mutant.name
        shorter += logits.shape[1] < cached.probe.tokens
    assert shorter
    right, times = adequacy._against(bench.reference, cached, bench.workshop.correct)
    assert right.shape[1] == cached.probe.tokens
    assert times <= BOUND
