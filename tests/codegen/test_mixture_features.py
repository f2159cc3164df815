"""Routers, experts and feed-forwards of generated modules, part by part, against transformers' own modules.

Both sides get the same weights and the same inputs. A field that is declared otherwise must be seen.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from transformers import JetMoeConfig
from transformers.activations import XIELUActivation
from transformers.models.jetmoe.modeling_jetmoe import JetMoeAttention, load_balancing_loss_func

from archc.codegen import UngeneratedError, generate
from archc.spec.diagnostics import SpecError
from tests.codegen.mixture_truths import DENSE, MIXTURES
from tests.codegen.mixtures import EXPERTS, FFN, TOP_K, WIDTH, compiled, filled, inputs, moe
from tests.codegen.support import import_text
from tests.noise import BOUND, measure

TRUTHS = MIXTURES | DENSE
PLAIN = moe("score: softmax, renormalize: false")
GROUPED = "groups={count: 3, chosen: 2, score: max}"
FAULTS = [(name, fault) for name, truth in TRUTHS.items() for fault in truth.faults]


def deviation(folder: Path, name: str, *overrides: str) -> float:
    truth, x = TRUTHS[name], inputs()
    hf = truth.module()
    measured = measure(hf, lambda module: {"y": truth.run(module, x)})
    port = truth.port(folder, hf, *overrides)
    return measured.deviation({"y": (port(x, None) if name in MIXTURES else port(x)).detach()})


@pytest.mark.parametrize("name", TRUTHS)
def test_it_is_that_of_transformers(tmp_path: Path, name: str) -> None:
    assert deviation(tmp_path, name) < BOUND


@pytest.mark.parametrize(("name", "fault"), FAULTS)
def test_a_wrong_field_is_seen(tmp_path: Path, name: str, fault: str) -> None:
    assert deviation(tmp_path, name, fault) > BOUND


def many(seed: int = 5) -> Tensor:
    """Enough tokens that some of them are nearly tied between two experts."""
    return torch.randn(4, 400, WIDTH, generator=torch.Generator().manual_seed(seed)).bfloat16()


def in_both(folder: Path, name: str, *overrides: str) -> tuple[Tensor, Tensor]:
    """What transformers makes of many tokens in 16 bits, and what the port does."""
    truth, x = TRUTHS[name], many()
    hf = truth.module().bfloat16()
    port = truth.port(folder, hf, *overrides).bfloat16()
    with torch.no_grad():
        return truth.run(hf, x).float(), (port(x, None) if name in MIXTURES else port(x)).float()


@pytest.mark.parametrize(
    ("name", "otherwise"),
    [
        ("sigmoid, corrected, grouped", "ffn.router.float32=false"),
        ("corrected logits", "ffn.router.float32=false"),
        ("corrected, floored", "ffn.router.float32=false"),
        ("capped logits", "ffn.router.float32=true"),
        ("weighed inputs", "ffn.router.float32=true"),
    ],
)
def test_tokens_near_a_tie_go_where_they_go_in_transformers(tmp_path: Path, name: str, otherwise: str) -> None:
    """In 16 bits, that is; and a router of another precision sends some of them elsewhere."""
    for overrides, all_agree in (((), True), ((otherwise,), False)):
        theirs, ours = in_both(tmp_path, name, *overrides)
        apart = (ours - theirs).abs().amax(-1) > 0.03 * theirs.abs().amax(-1)
        assert apart.any().item() != all_agree


@pytest.mark.parametrize(("overrides", "agree"), [([], True), (["ffn.glu.float32=false"], False)])
def test_a_product_in_float32_is_rounded_once(tmp_path: Path, overrides: list[str], agree: bool) -> None:
    theirs, ours = in_both(tmp_path, "product of a dense one in float32", *overrides)
    assert torch.equal(ours, theirs) == agree


def in_16_bits(folder: Path, ffn: str) -> dict[str, torch.dtype]:
    """The types of what a model with such a feed-forward holds that was loaded in 16 bits, where values are exact."""
    module = import_text(generate(compiled(ffn)), folder)
    stored = filled(module.Model(), 0.0).state_dict()
    save_file(stored, folder / "model.safetensors")
    loaded = module.Model.from_pretrained(folder, torch.bfloat16).state_dict()
    assert all(torch.equal(tensor, stored[name].to(tensor.dtype)) for name, tensor in loaded.items())
    return {name.removeprefix("layers.0.ffn."): tensor.dtype for name, tensor in loaded.items()}


def test_routers_stay_in_float32(tmp_path: Path) -> None:
    types = in_16_bits(tmp_path, MIXTURES["sigmoid, corrected, grouped"].ffn)
    assert {name for name, kind in types.items() if kind == torch.float32} == {"router.weight", "correction"}


def test_other_routers_do_not(tmp_path: Path) -> None:
    types = in_16_bits(tmp_path, MIXTURES["capped logits"].ffn)
    assert {name for name, kind in types.items() if kind == torch.float32} == {"correction"}
    types = in_16_bits(tmp_path, MIXTURES["gated shared"].ffn)
    assert set(types.values()) == {torch.bfloat16}


def test_the_loss_looks_at_capped_logits(tmp_path: Path) -> None:
    truth, x = MIXTURES["capped logits"], inputs()
    hf = truth.module()
    routing: list[Tensor] = []
    truth.port(tmp_path, hf)(x, routing)
    logits, _, _ = hf.gate(x.flatten(0, 1))
    assert torch.allclose(routing[0], logits, atol=1e-6)
    assert not torch.allclose(routing[0], x.flatten(0, 1) @ hf.gate.weight.T, atol=1e-3)


ROUTED = (
    "attention={kind: routed, experts: 7, top_k: 3, kv_heads: 2, head_dim: 14, bias: true, "
    "router: {score: softmax, order: top_k_then_score, renormalize: false}}"
)


def routed_attention(folder: Path, *overrides: str) -> Any:
    return import_text(generate(compiled(PLAIN, ROUTED, "position=null", *overrides)), folder)


def test_both_mixtures_of_a_layer_are_balanced_together(tmp_path: Path) -> None:
    """JetMoE's loss takes one average over the routers of attention and of feed-forward."""
    model = filled(routed_attention(tmp_path, "ffn.experts=7", "ffn.top_k=3").Model(), 0.0)
    ids, routing = torch.arange(40)[None], list[Tensor]()
    model.hidden(ids, routing=routing)
    assert len(routing) == 2
    theirs = load_balancing_loss_func(tuple(routing), 7, 3)
    ours = model.loss(ids, ids, balance_loss=1.0) - model.loss(ids, ids)
    assert torch.allclose(ours, theirs, rtol=1e-4)
    apart = torch.stack([load_balancing_loss_func((logits,), 7, 3) for logits in routing]).mean()
    assert not torch.allclose(apart, theirs, rtol=1e-4)


def test_mixtures_of_other_sizes_are_balanced_apart(tmp_path: Path) -> None:
    module = routed_attention(tmp_path)
    routing: list[tuple[Tensor, int]] = []
    filled(module.Model(), 0.0).hidden(torch.arange(40)[None], routing=routing)
    assert [(logits.shape[-1], top_k) for logits, top_k in routing] == [(7, 3), (EXPERTS, TOP_K)]
    for logits, top_k in routing:
        theirs = load_balancing_loss_func((logits,), logits.shape[-1], top_k)
        assert torch.allclose(module.load_balance(logits, top_k), theirs)
        assert not torch.allclose(module.load_balance(logits, top_k - 1), theirs)


def jetmoe() -> Any:
    """JetMoE's attention, and what it makes of the inputs without turning anything."""
    config = JetMoeConfig(
        hidden_size=WIDTH, num_key_value_heads=2, kv_channels=14, num_local_experts=7, num_experts_per_tok=3
    )
    config._attn_implementation = "eager"
    return filled(JetMoeAttention(config, 0), 0.0)


def attended(hf: Any) -> dict[str, Tensor]:
    x = inputs()
    mask = torch.full((9, 9), -torch.inf).triu(1)[None, None]
    still = torch.ones(1, 9, 14), torch.zeros(1, 9, 14)
    with torch.no_grad():
        return {"y": hf(x, attention_mask=mask, position_embeddings=still)[0]}


def attended_by_port(folder: Path, hf: Any, *overrides: str) -> dict[str, Tensor]:
    port = routed_attention(folder, *overrides).RoutedAttention(0)
    stored = hf.state_dict()
    keys, values = stored["kv_proj.weight"].chunk(2)
    given = {
        "router.weight": stored["experts.router.layer.weight"],
        "q": stored["experts.input_linear.weight"],
        "o": stored["experts.output_linear.weight"],
        "bias": stored["experts.bias"],
        "k.weight": keys,
        "v.weight": values,
    }
    port.load_state_dict({name: given[name] for name in port.state_dict()})
    seen = torch.ones(9, 9, dtype=torch.bool).tril()[None, None]
    with torch.no_grad():
        return {"y": port(inputs(), seen, None, None)}


def test_a_mixture_of_attention_is_that_of_transformers(tmp_path: Path) -> None:
    hf = jetmoe()
    assert measure(hf, attended).deviation(attended_by_port(tmp_path, hf)) < BOUND


@pytest.mark.parametrize(
    "fault",
    ["attention.top_k=2", "attention.bias=false", "attention.router.score=sigmoid", "attention.router.scale=1.1"],
)
def test_a_wrong_mixture_of_attention_is_seen(tmp_path: Path, fault: str) -> None:
    hf = jetmoe()
    assert measure(hf, attended).deviation(attended_by_port(tmp_path, hf, fault)) > BOUND


@pytest.mark.parametrize(("learned", "agrees"), [(4.0, True), (5.0, False)])
def test_learned_factors_multiply_both_halves(tmp_path: Path, learned: float, agrees: bool) -> None:
    section = f"{{kind: gated, width: {FFN}, activation: silu, factors: {{learned: {learned}}}}}"
    port = filled(import_text(generate(compiled(section)), tmp_path).FeedForward(), 0.0)
    x = inputs()
    gate = x @ port.gate.weight.T * port.gate_factor * 4
    up = x @ port.up.weight.T * port.up_factor * 4
    by_hand = (gate * gate.sigmoid() * up) @ port.down.weight.T
    assert torch.allclose(port(x), by_hand, atol=1e-4) == agrees


def test_an_activation_with_slopes_begins_as_that_of_transformers(tmp_path: Path) -> None:
    ours = import_text(generate(compiled(DENSE["learned slopes"].ffn)), tmp_path).XIELU().state_dict()
    theirs = XIELUActivation(dtype=torch.float32).state_dict()
    assert ours.keys() == theirs.keys()
    assert all(torch.allclose(ours[name], theirs[name]) for name in theirs)
    assert not torch.allclose(ours["alpha_p"], theirs["alpha_n"])


def test_fresh_biases_of_experts_are_zero(tmp_path: Path) -> None:
    module = import_text(generate(compiled(MIXTURES["biases and a limited product"].ffn)), tmp_path)
    fresh = {name: tensor.abs().max() for name, tensor in module.Model().state_dict().items() if ".ffn." in name}
    assert {name for name, size in fresh.items() if size == 0} == {
        f"layers.0.ffn.{name}" for name in ("router.bias", "gate_bias", "up_bias", "down_bias")
    }


def test_nothing_trains_a_correction(tmp_path: Path) -> None:
    model = import_text(generate(compiled(MIXTURES["corrected, floored"].ffn)), tmp_path).Model()
    model.loss(torch.arange(20)[None], torch.arange(20)[None]).backward()
    without = {name for name, parameter in model.named_parameters() if parameter.grad is None}
    assert without == {"layers.0.ffn.correction"}


@pytest.mark.parametrize(
    ("overrides", "code", "field"),
    [
        (["ffn.router.renormalize_eps=0.1"], "E211", "ffn.router.renormalize_eps"),
        (["ffn.router.renormalize_floor=0.1"], "E211", "ffn.router.renormalize_floor"),
        (["ffn.router.renormalize_power=2"], "E211", "ffn.router.renormalize_power"),
        (["ffn.router.jitter=0.1"], "E211", "ffn.router.jitter"),
        (["ffn.router.order=sparsemixer", "ffn.router.correction=buffer"], "E211", "ffn.router.correction"),
        (["ffn.router.order=sparsemixer", f"ffn.router.{GROUPED}"], "E211", "ffn.router.groups"),
        (["ffn.router.order=sparsemixer", "ffn.router.score=sigmoid"], "E211", "ffn.router.score"),
        (
            ["ffn.router.order=top_k_then_score", f"ffn.router.{GROUPED[:-1]}, others: zero}}"],
            "E211",
            "ffn.router.groups.others",
        ),
        (["ffn.router.groups={count: 12, chosen: 9, score: top2_sum}"], "E204", "ffn.router.groups.score"),
        (["ffn.glu={limited: after_activation}"], "E211", "ffn.glu.limited"),
        (["ffn.glu={slope: 2}", "ffn.activation=relu"], "E211", "ffn.glu.slope"),
        (["ffn.glu={gate_softcap: 2}", "ffn.activation=relu"], "E211", "ffn.glu.gate_softcap"),
        (["ffn.glu={limit: 2}", "ffn.gated=false"], "E211", "ffn.glu"),
        (["ffn.shared={width: 3, glu: {limit: 2}}", "ffn.gated=false"], "E211", "ffn.shared.glu"),
        (["ffn={kind: gated, width: 8, activation: xielu, glu: {slope: 2}}"], "E211", "ffn.glu.slope"),
        ([ROUTED, "position={kind: alibi}"], "E211", "position.kind"),
        ([ROUTED, "attention.router.jitter=0.1"], "E211", "attention.router.jitter"),
        (
            [ROUTED, "attention.router.groups={count: 3, chosen: 1, score: max}"],
            "E204",
            "attention.router.groups.count",
        ),
    ],
)
def test_a_field_that_speaks_of_nothing_is_refused(overrides: list[str], code: str, field: str) -> None:
    with pytest.raises(SpecError) as refused:
        compiled(PLAIN, *overrides)
    assert [(found.code, found.path) for found in refused.value.diagnostics] == [(code, field)]


@pytest.mark.parametrize(
    "overrides",
    [
        ["ffn.router={renormalize: true, renormalize_eps: 0.1, renormalize_floor: 0.1, renormalize_power: 2}"],
        ["ffn.router={order: sparsemixer, jitter: 0.1}"],
        [f"ffn.router.{GROUPED[:-1]}, others: zero}}"],
        ["ffn.glu={limit: 2, limited: after_activation, slope: 2, gate_softcap: 2}"],
        ["ffn.glu={limit: 2}", "ffn.activation=relu"],
        [ROUTED, "position.pairing=interleaved"],
    ],
)
def test_what_there_is_can_be_spoken_of(overrides: list[str]) -> None:
    assert generate(compiled(PLAIN, *overrides))


@pytest.mark.parametrize("section", ["glu", "factors"])
def test_an_empty_section_says_nothing(section: str) -> None:
    plain = "{kind: gated, width: 10, activation: silu}"
    assert compiled(plain, f"ffn.{section}={{}}") == compiled(plain)
    assert compiled(plain, f"ffn.{section}={ {'glu': '{slope: 2}', 'factors': '{gate: 2}'}[section] }") != compiled(
        plain
    )


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ([ROUTED, "attention.router.weighs=input"], "attention.router.weighs"),
        ([ROUTED, "attention.router.table=61"], "attention.router.table"),
        (["ffn.router.network={width: 4}"], "ffn.router.network"),
        (["ffn.glu={sparsity: 0.9}"], "ffn.glu.sparsity"),
    ],
)
def test_what_is_not_printed_is_named(overrides: list[str], named: str) -> None:
    with pytest.raises(UngeneratedError, match=named):
        generate(compiled(PLAIN, *overrides))
