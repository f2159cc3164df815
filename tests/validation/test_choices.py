"""Choices of experts: a near tie may be taken either way, and nothing else is explained by that."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from archc.architecture import Architecture, compile_text
from archc.render.validation import print_verdict
from archc.validation.choices import TIE_MARGIN, Flip
from archc.validation.gate import GateResult, run_gate
from archc.validation.parity import Baseline, judge, measure
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.reference import Reference, Run
from tests.families.ugly import save
from tests.families.zoo import CASES
from tests.tiny import BY_NAME, Tiny, _base, _spec

Checkpoint = Callable[[str], Path]
PROBE = Probe("p", "a test", torch.randint(0, 211, (2, 40), generator=torch.Generator().manual_seed(5)))
IN_PIECES = Probe("c", "a test", PROBE.input_ids[:1], chunks=(16, 1, 1, 9, 13))


def measured(reference: Reference, probe: Probe) -> Baseline:
    (baseline,), _ = measure(reference, [probe], lambda _step: None)
    return baseline


@pytest.fixture
def tied(checkpoint: Checkpoint) -> Reference:
    """Two experts of the second layer have the same router row: their scores tie on every token."""
    reference = Reference(checkpoint("mixtral"))
    with torch.no_grad():
        router = reference.model.model.layers[1].mlp.gate.weight
        router[2] = router[1] * (1 + 2**-23)
    return reference


def is_tied(baseline: Baseline, flip: Flip) -> bool:
    place = (flip.row, flip.token, flip.group)
    margin, noise = baseline.choices.calls[flip.call].margin[place], baseline.noise.per_call[flip.call][place]
    return bool(margin <= TIE_MARGIN * noise)


def flips(baseline: Baseline, near: bool) -> list[Flip]:
    rows, tokens = baseline.probe.input_ids.shape
    every = (
        Flip(call, row, token, 0)
        for call in range(len(baseline.choices.calls))
        for row in range(rows)
        for token in range(tokens)
    )
    return [flip for flip in every if is_tied(baseline, flip) == near]


def test_every_choice_of_every_layer_is_seen(checkpoint: Checkpoint) -> None:
    """Against the routers' own outputs: layers 0 and 2 of this qwen3_moe have one, for 3 of 7 experts."""
    reference = Reference(checkpoint("qwen3_moe"))
    taken: list[Tensor] = []
    for layer in (0, 2):
        gate = reference.model.model.layers[layer].mlp.gate
        gate.register_forward_hook(lambda _module, _inputs, out: taken.append(out[2]))
    run = reference.run(PROBE)
    assert len(run.choices.calls) == 2
    for call, indices in zip(run.choices.calls, taken[-2:], strict=True):
        assert torch.equal(call.taken.view(80, 3), indices)
        assert call.margin.shape == (2, 40, 1)
        assert bool((call.margin >= 0).all())
    assert Reference(checkpoint("llama-default")).run(PROBE).choices.calls == []


@pytest.fixture
def one_after_another(tmp_path: Path) -> Reference:
    """Its router takes the best by `max`, twice, and weighs it among those that are not far behind."""
    save(next(case for case in CASES if case.name == "phimoe-window"), tmp_path)
    return Reference(tmp_path)


def test_the_best_and_those_beyond_a_bound_are_choices(one_after_another: Reference) -> None:
    given: list[tuple[Tensor, ...]] = []
    router = one_after_another.model.model.layers[1].mlp.router
    router.register_forward_hook(lambda _module, _inputs, out: given.append(out))
    best, beyond, second, _ = one_after_another.run(PROBE).choices.calls[4:8]
    logits, _, taken = given[-1]
    assert torch.equal(torch.cat((best.taken, second.taken), -1).view(80, 2), taken)
    largest = logits.amax(-1, keepdim=True)
    behind = (largest - logits) / logits.abs().clamp(min=largest)
    assert torch.equal(beyond.taken.view(80, -1).bool(), behind > 2 * 0.2)
    torch.testing.assert_close(beyond.margin.view(80, -1), 2 * (behind - 2 * 0.2).abs())


def holds_what_is_pinned(reference: Reference, router: str, probe: Probe) -> None:
    """Routers with all signs turned choose otherwise, unless their choices are pinned."""
    base = reference.run(probe)
    with torch.no_grad():
        for layer in reference.model.model.layers:
            layer.mlp.get_submodule(router).weight.neg_()
    free = reference.run(probe)
    held = reference.run(probe, base.choices)
    for before, after, pinned in zip(base.choices.calls, free.choices.calls, held.choices.calls, strict=True):
        assert not torch.equal(before.taken, after.taken)
        assert torch.equal(before.taken, pinned.taken)


def test_they_are_pinned_too(one_after_another: Reference) -> None:
    holds_what_is_pinned(one_after_another, "router", PROBE)


@pytest.mark.parametrize("probe", [PROBE, IN_PIECES], ids=["whole", "in pieces"])
def test_pinned_choices_hold_under_any_change(probe: Probe, checkpoint: Checkpoint) -> None:
    reference = Reference(checkpoint("mixtral"))
    base = reference.run(probe)
    again = reference.run(probe, base.choices)
    assert torch.equal(again.logits, base.logits)
    holds_what_is_pinned(reference, "gate", probe)


@pytest.mark.parametrize("probe", [PROBE, IN_PIECES], ids=["whole", "in pieces"])
def test_a_near_tie_taken_the_other_way_is_explained(probe: Probe, tied: Reference) -> None:
    baseline = measured(tied, probe)
    found = flips(baseline, near=True)
    assert found
    for flip in (found[0], found[len(found) // 2]):
        port = tied.run(probe, baseline.choices, flip).logits
        result = judge(tied, baseline, port)
        assert result.passed
        assert result.flips == (flip,)
    assert judge(tied, baseline, baseline.logits).flips == ()


def test_two_flips_are_explained_one_after_the_other(tied: Reference) -> None:
    baseline = measured(tied, PROBE)
    in_row = [[flip for flip in flips(baseline, near=True) if flip.row == row] for row in (0, 1)]
    first = tied.run(PROBE, baseline.choices, in_row[0][0])
    second = tied.run(PROBE, first.choices, in_row[1][-1])
    result = judge(tied, baseline, second.logits)
    assert result.passed
    assert set(result.flips) == {in_row[0][0], in_row[1][-1]}


def test_two_ties_of_one_token_may_be_flipped_at_once(tied: Reference) -> None:
    """Here every layer's scores tie. The twins: a third flip, and logits that no flip gives."""
    with torch.no_grad():
        for layer in (0, 2):
            router = tied.model.model.layers[layer].mlp.gate.weight
            router[2] = router[1] * (1 + 2**-23)
    baseline = measured(tied, PROBE)
    found = (flipped_in_turn(tied, baseline, row, token) for row in range(2) for token in range(40))
    flips_of_one, runs = next(one for one in found if len(one[0]) == 3)
    result = judge(tied, baseline, runs[1].logits)
    assert result.passed
    assert result.flips == flips_of_one[:2]
    assert not judge(tied, baseline, runs[2].logits).passed
    assert not judge(tied, baseline, runs[1].logits * 1.001).passed


def flipped_in_turn(
    reference: Reference, baseline: Baseline, row: int, token: int
) -> tuple[tuple[Flip, ...], list[Run]]:
    """The near ties of a token taken the other way, layer by layer, and the reference after each."""
    taken: list[Flip] = []
    runs: list[Run] = []
    for call in range(3):
        choices = runs[-1].choices if runs else baseline.choices
        near = (flip for flip in baseline.noise.near_ties(choices, row, token) if flip.call == call)
        if (flip := next(near, None)) is not None:
            taken.append(flip)
            runs.append(reference.run(PROBE, choices, flip))
    return tuple(taken), runs


def test_another_choice_without_a_tie_fails(tied: Reference) -> None:
    """The first one right behind explained flips too: what is judged does not end at a near tie."""
    baseline = measured(tied, PROBE)
    wrong = flips(baseline, near=False)
    for flip in (wrong[0], wrong[-1]):
        assert not judge(tied, baseline, tied.run(PROBE, baseline.choices, flip).logits).passed
    near = flips(baseline, near=True)[0]
    explained = tied.run(PROBE, baseline.choices, near)
    after = next(flip for flip in wrong if (flip.row, flip.call) == (near.row, near.call) and flip.token > near.token)
    assert not judge(tied, baseline, tied.run(PROBE, explained.choices, after).logits).passed


def test_a_mistake_behind_a_near_tie_is_seen(tied: Reference) -> None:
    """Every token of the second layer ties: nothing may hide behind that."""
    baseline = measured(tied, PROBE)
    port = baseline.logits.clone()
    port[0, 30:, ::2] += 20 * baseline.floor.max_abs
    assert not judge(tied, baseline, port).passed


def mixture(layers: int, experts: int, window: int) -> Tiny:
    """A mixtral of realistic depth and number of experts, and tiny widths."""
    config = _base(
        num_local_experts=experts, num_experts_per_tok=4, sliding_window=window, num_hidden_layers=layers,
        hidden_size=24, intermediate_size=8, num_attention_heads=4, head_dim=8,
    )  # fmt: skip
    spec = _spec(
        attention=f"{{heads: 4, kv_heads: 2, head_dim: 8, window: {window}}}",
        ffn=f"{{kind: moe, experts: {experts}, top_k: 4, width: 8, activation: silu, "
        "router: {score: softmax, renormalize: true}}",
        layers=str(layers),
    )
    return Tiny("mixture", "mixtral", config, spec)


def gate(
    tiny: Tiny,
    folder: Path,
    *overrides: str,
    open_port: Callable[[Architecture, Path], GeneratedPort] = GeneratedPort,
) -> GateResult:
    return run_gate(compile_text(tiny.text(), "m", overrides), folder, lambda _step: None, open_port=open_port)


SEEDS = [pytest.param(0, id="0"), *(pytest.param(seed, id=str(seed), marks=pytest.mark.slow) for seed in range(1, 6))]


@pytest.mark.parametrize("seed", SEEDS)
def test_many_layers_and_experts(seed: int, tmp_path: Path) -> None:
    """12 layers of 64 experts, where a hundred of 512 positions are near ties: a right spec passes, and a window
    of 200 for 150, which shows from position 151 on, fails on the probe that crosses it."""
    tiny = mixture(12, 64, 150)
    tiny.save(tmp_path, seed)
    right = gate(tiny, tmp_path)
    assert right.passed
    long = next(probe for probe in right.probes if probe.probe.tokens == 512)
    assert int(long.tied.sum()) > 20
    wrong = gate(tiny, tmp_path, "attention.window=200")
    assert not next(probe for probe in wrong.probes if probe.probe.tokens == 512).passed


@pytest.fixture
def tied_folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    """The checkpoint of `tied`."""
    shutil.copytree(checkpoint("mixtral"), tmp_path / "tied")
    file = tmp_path / "tied" / "model.safetensors"
    weights = load_file(file)
    router = next(weight for name, weight in weights.items() if name.endswith("gate.weight") and ".1." in name)
    router[2] = router[1] * (1 + 2**-23)
    save_file(weights, file, metadata={"format": "pt"})
    return tmp_path / "tied"


class Noisy(GeneratedPort):
    """Its weights are off by a few units in the last place: within the bound, and enough to flip near ties."""

    def __init__(self, architecture: Architecture, folder: Path) -> None:
        super().__init__(architecture, folder)
        generator = torch.Generator().manual_seed(77)
        with torch.no_grad():
            for weight in self.model.parameters():
                weight.mul_(1 + (torch.randint(0, 2, weight.shape, generator=generator) * 2 - 1) * 2**-23)


def test_a_port_that_flips_passes_and_says_so(tied_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = gate(BY_NAME["mixtral"], tied_folder, open_port=Noisy)
    assert result.passed
    assert sum(len(probe.flips) for probe in result.probes) > 3
    print_verdict(result)
    assert "of a router taken the other way" in capsys.readouterr().out


@pytest.mark.parametrize("override", ["ffn.router.scale=1.001", "norm.eps=2.9e-3", "position.base=5400"])
def test_a_mistake_among_flips_fails(override: str, tied_folder: Path) -> None:
    assert not gate(BY_NAME["mixtral"], tied_folder, override, open_port=Noisy).passed
