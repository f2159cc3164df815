"""Latent and differential attention and the dynamic mask, layer by layer: against classes of transformers, and by hand.

A generated layer is given what a layer of transformers reads, and has to put out the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import DynamicCache

from archc.architecture import Architecture, compile_text
from archc.codegen import UngeneratedError, generate
from archc.parts.latent import LatentAttention
from archc.parts.norm import Norm
from archc.spec.diagnostics import SpecError
from tests.codegen.combinations import BASE, LATENT, LATENT_DIRECT, LATENT_WITH_ALL, YARN
from tests.codegen.support import import_text, random_ids
from tests.families.ugly import ugly_model
from tests.families.zoo import CASES

TOKENS = 30
TIGHT, FAR = 2e-5, 1e-3
SIZE = ("hidden_size=60", "norm={kind: rmsnorm, eps: 0.002}")
SHAPE = "heads: 3, kv_rank: 26, nope_dim: 18, rope_dim: 8, value_dim: 22"
RANKED = f"kind: mla, q_rank: 34, {SHAPE}"
DIRECT = f"kind: mla, {SHAPE}"
INTERLEAVED = "position={kind: rope, base: 5300, pairing: interleaved}"
GROUPED = "heads: 6, kv_heads: 2"
_LATENT_NAMES = {
    "q_proj": "q",
    "q_a_proj": "q_down",
    "q_a_layernorm": "q_norm",
    "q_b_proj": "q_up",
    "kv_a_proj_with_mqa": "kv_down",
    "kv_a_layernorm": "kv_norm",
    "kv_b_proj": "kv_up",
    "k_rope_only_layernorm": "k_norm",
    "g_proj": "gate",
    "o_proj": "o",
}
_NAMES = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "o_proj": "o", "A": "mask_strength", "dt_proj": "mask"}


@dataclass(frozen=True)
class Twin:
    """An attention of transformers, the fields that declare it, and fields that declare another with its tensors."""

    zoo: str
    attention: str
    wrong: str
    position: str = INTERLEAVED
    layer: int = 0
    config: Mapping[str, Any] = field(default_factory=dict)

    def spec(self, *more: str) -> Architecture:
        """The design, with as many layers as it takes."""
        own = (*SIZE, self.position, f"attention={{{self.attention}}}", f"layers={self.layer + 1}", *more)
        return compile_text(BASE, overrides=own).architecture


THETA = {"rope_parameters": {"rope_type": "default", "rope_theta": 5300.0}, "rms_norm_eps": 0.002}
YARNED = {
    "rope_parameters": {
        "rope_type": "yarn",
        "rope_theta": 5300.0,
        "factor": 4.0,
        "original_max_position_embeddings": 11,
        "mscale": 0.7,
        "mscale_all_dim": 1.6,
    },
    "rms_norm_eps": 0.002,
}
SCALING = "scaling: {kind: yarn, factor: 4, original_context: 16, mscale: 0.7, mscale_all_dim: 1.6}"
TWINS = {
    "yarn": Twin(
        "deepseek_v3-direct",
        f"{DIRECT}, bias: [kv_down, o], latent_norm: {{eps: 1.0e-6}}",
        "attention.scale=0.196",
        f"position={{kind: rope, base: 5300, pairing: interleaved, {SCALING.replace('16', '11')}}}",
        config=YARNED,
    ),
    "gate-of-a-head-and-scales": Twin(
        "dots3_note_text-full",
        f"{RANKED}, bias: [q_down, kv_down, o], gate: {{over: head}}, rope_key_norm: {{}}, "
        f"q_latent_scale: {(60 / 34) ** 0.5}, kv_latent_scale: {(60 / 26) ** 0.5}",
        "attention.kv_latent_scale=1",
        config=THETA,
    ),
    "no-positions": Twin(
        "kimi_linear-query_rank",
        f"{RANKED.replace('heads: 3', 'heads: 6')}, latent_norm: {{eps: 1.0e-6}}",
        "position={kind: rope, base: 5300}",
        "position=null",
        config={"rms_norm_eps": 0.002},
    ),
    "pairs-in-depth": Twin(
        "diffllama-bias", f"{GROUPED}, head_dim: 14, bias: all, differential: true", "layers=2",
        "position={kind: rope, base: 5300}", layer=2, config=THETA,
    ),
    "dynamic-mask": Twin(
        "doge-bias",
        f"{GROUPED}, head_dim: 10, bias: all, qk_norm: {{over: head}}, dynamic_mask: {{keep: 7, bias: true}}",
        "attention.dynamic_mask.keep=8",
        "position={kind: rope, base: 5300}",
        config={**THETA, "keep_window_size": 7},
    ),
    "dynamic-mask-with-a-window": Twin(
        "doge",
        f"{GROUPED}, head_dim: 10, window: 9, qk_norm: {{over: head}}, dynamic_mask: {{keep: 4}}",
        "attention.window=10",
        "position={kind: rope, base: 5300}",
        config={**THETA, "keep_window_size": 4, "sliding_window": 9},
    ),
}  # fmt: skip


def hf_attention(twin: Twin) -> tuple[nn.Module, Tensor, Tensor]:
    """The attention, what it reads in a pass over TOKENS tokens, and what it puts out."""
    (case,) = (case for case in CASES if case.name == twin.zoo)
    model = ugly_model(replace(case, config={**case.config, **twin.config}))
    attentions = [module for name, module in model.named_modules() if name.endswith("self_attn")]
    mixer = attentions[twin.layer] if twin.zoo != "kimi_linear-query_rank" else _latent_of(attentions)
    seen: dict[str, Tensor] = {}

    def keep(_module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any) -> None:
        seen["x"] = kwargs["hidden_states"] if "hidden_states" in kwargs else args[0]
        seen["y"] = output[0]

    mixer.register_forward_hook(keep, with_kwargs=True)
    with torch.no_grad():
        model(random_ids(2, TOKENS), use_cache=False)
    return mixer, seen["x"], seen["y"]


def _latent_of(mixers: list[nn.Module]) -> nn.Module:
    return next(mixer for mixer in mixers if hasattr(mixer, "kv_b_proj"))


def generated(architecture: Architecture, folder: Path, weights: Mapping[str, Tensor]) -> Any:
    """A generated model whose last attention has these weights."""
    model = import_text(generate(architecture), folder).Model().eval()
    model.layers[-1].attention.load_state_dict(weights)
    return model


def output(model: Any, x: Tensor, layer: int = -1, cache: Any = None) -> Tensor:
    """What an attention of a generated model puts out, given x."""
    mixer, seen = model.layers[layer].attention, list[Tensor]()
    hooks = [
        mixer.register_forward_pre_hook(lambda _module, args: (x, *args[1:])),
        mixer.register_forward_hook(lambda _module, _args, y: seen.append(y)),
    ]
    with torch.no_grad():
        model(random_ids(len(x), x.shape[1]), cache=cache)
    for hook in hooks:
        hook.remove()
    return seen[0]


def renamed(mixer: nn.Module) -> dict[str, Tensor]:
    """The weights of an attention of transformers, under our names."""
    names = _LATENT_NAMES if hasattr(mixer, "kv_b_proj") else _NAMES
    found = {}
    for name, tensor in mixer.state_dict().items():
        head, _, tail = name.partition(".")
        found[".".join(filter(None, (names.get(head, head), tail)))] = tensor
    return found


@pytest.mark.parametrize("name", TWINS)
def test_it_is_the_attention_of_transformers(tmp_path: Path, name: str) -> None:
    twin = TWINS[name]
    mixer, x, y = hf_attention(twin)
    scale = y.abs().max()
    ours = output(generated(twin.spec(), tmp_path, renamed(mixer)), x)
    assert (ours - y).abs().max() < TIGHT * scale
    wrong = output(generated(twin.spec(twin.wrong), tmp_path, renamed(mixer)), x)
    assert (wrong - y).abs().max() > FAR * scale


def test_gate_and_queries_of_both_latents(tmp_path: Path) -> None:
    """axk2 projects queries and gates of a head together; an indexer that keeps all tokens leaves none out."""
    twin = Twin(
        "axk2",
        f"{RANKED}, latent_norm: {{eps: 1.0e-6}}, q_latent: normed_and_raw, gate: {{over: element, source: latent}}",
        "attention.gate.score=softplus",
        config={**THETA, "index_topk": 64},
    )
    mixer, x, y = hf_attention(twin)
    weights = {name: tensor for name, tensor in renamed(mixer).items() if not name.startswith("indexer.")}
    together = torch.unflatten(weights.pop("q_gate_proj.weight"), 0, (3, -1))
    weights["q_up.weight"], weights["gate.weight"] = together[:, :26].flatten(0, 1), together[:, 26:].flatten(0, 1)
    ours = output(generated(twin.spec(), tmp_path, weights), x)
    assert (ours - y).abs().max() < TIGHT * y.abs().max()
    for wrong in (twin.wrong, "attention.gate.source=latent", "position.pairing=half"):
        other = output(generated(twin.spec(wrong), tmp_path, weights), x)
        assert ((other - y).abs().max() > FAR * y.abs().max()) == (wrong != "attention.gate.source=latent")


def by_hand(part: LatentAttention, weights: Mapping[str, Tensor], x_TD: Tensor) -> Tensor:
    """Latent attention in double precision, with queries that meet the latents themselves (DeepSeek-V2, 2.1.2)."""
    f, w = part.fields, {name: tensor.double() for name, tensor in weights.items()}
    tokens, x_TD = len(x_TD), x_TD.double()

    def linear(name: str, x: Tensor) -> Tensor:
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", torch.zeros(()))

    def normed(name: str, norm: Norm | None, x: Tensor) -> Tensor:
        assert norm is not None
        if norm.kind == "layernorm":
            x = x - x.mean(-1, keepdim=True)
        x = x / (x.square().mean(-1, keepdim=True) + norm.eps).sqrt()
        return x * w[f"{name}.weight"] + w.get(f"{name}.bias", torch.zeros(()))

    def turned(x_TC: Tensor) -> Tensor:
        if part.rope is None:
            return x_TC
        rotary, rest = x_TC.tensor_split([part.rope.rotary_dim], dim=-1)
        interleaved = part.rope.pairing == "interleaved"
        pairs = torch.unflatten(rotary, -1, (-1, 2) if interleaved else (2, -1)).movedim(-1 if interleaved else -2, 0)
        angles = torch.arange(tokens).double()[:, None] * torch.tensor(part.rope.frequencies()).double()
        both = torch.complex(*pairs) * torch.polar(torch.full_like(angles, part.rope.attention_factor), angles)
        back = torch.stack((both.real, both.imag), dim=-1 if interleaved else -2).flatten(-2)
        return torch.cat((back, rest), dim=-1)

    queried = x_TD
    if f.q_rank is not None:
        raw = linear("q_down", x_TD)
        queried = normed("q_norm", part.q_norm, raw) * (f.q_latent_scale or 1)
        queried = torch.cat((queried, raw), dim=-1) if f.q_latent == "normed_and_raw" else queried
    q_THC = torch.unflatten(linear("q" if f.q_rank is None else "q_up", queried), -1, (f.heads, -1))
    latent, key = linear("kv_down", x_TD).tensor_split([f.kv_rank], dim=-1)
    latent = normed("kv_norm", part.kv_norm, latent) * (f.kv_latent_scale or 1)
    key = turned(normed("k_norm", part.rope_key_norm, key) if part.rope_key_norm else key)
    up_HCR = torch.unflatten(w["kv_up.weight"], 0, (f.heads, -1))
    zeros = torch.zeros(f.heads * up_HCR.shape[1]).double()
    bias_HC = torch.unflatten(w.get("kv_up.bias", zeros), 0, (f.heads, -1))
    seen = torch.ones(tokens, tokens).tril().bool()
    seen = seen.triu(1 - f.window) if f.window else seen
    gate = torch.ones(tokens, f.heads)
    if f.gate:
        gate = linear("gate", queried if f.gate.source == "latent" else x_TD)
        gate = F.softplus(gate) if f.gate.score == "softplus" else gate.sigmoid()
    gate_THC = torch.unflatten(gate, -1, (f.heads, -1))
    heads = []
    for h in range(f.heads):
        q = q_THC[:, h, : f.nope_dim]
        scores = (q @ up_HCR[h, : f.nope_dim]) @ latent.T + (q @ bias_HC[h, : f.nope_dim])[:, None]
        scores = scores + turned(q_THC[:, h, f.nope_dim :]) @ key.T
        share = (scores * part.scale).masked_fill(~seen, -torch.inf).softmax(-1)
        values = share @ latent @ up_HCR[h, f.nope_dim :].T + bias_HC[h, f.nope_dim :]
        heads.append(values * gate_THC[:, h])
    return linear("o", torch.cat(heads, dim=-1))


HANDMADE = {
    "plain": ((f"attention={LATENT}",), ("position.pairing=interleaved", "position.base=700")),
    "direct": ((f"attention={LATENT_DIRECT}", "position.partial=0.5"), ("attention.gate.score=softplus",)),
    "all": (
        (f"attention={LATENT_WITH_ALL}", f"position.scaling={YARN}"),
        (
            *("attention.window=10", "attention.scale=0.31", "attention.q_latent_scale=1.5"),
            *("attention.kv_latent_scale=null", "attention.latent_norm.eps=0.1", "attention.gate.score=sigmoid"),
            *("attention.rope_key_norm.eps=0.1", "position.scaling=null"),
        ),
    ),
}


@pytest.mark.parametrize("name", HANDMADE)
def test_by_hand(tmp_path: Path, name: str) -> None:
    overrides, wrong = HANDMADE[name]
    architecture = compile_text(BASE, overrides=overrides).architecture
    part = architecture.layers[0].mixer
    assert isinstance(part, LatentAttention)
    generator = torch.Generator().manual_seed(0)
    weights = {
        tensor.name: torch.randn(tensor.shape, generator=generator) * tensor.shape[-1] ** -0.5
        + (tensor.group == "norm")
        for tensor in part.tensors()
    }
    x_BTD = torch.randn(2, TOKENS, 72, generator=generator)
    expected = torch.stack([by_hand(part, weights, x_TD) for x_TD in x_BTD])
    scale = expected.abs().max()
    assert (output(generated(architecture, tmp_path, weights), x_BTD) - expected).abs().max() < TIGHT * scale
    for change in wrong:
        other = generated(compile_text(BASE, overrides=(*overrides, change)).architecture, tmp_path, weights)
        assert (output(other, x_BTD) - expected).abs().max() > FAR * scale, change


def test_the_cache_holds_what_transformers_holds(tmp_path: Path) -> None:
    """The normed latent and the turned key of every position, and nothing else."""
    twin = TWINS["yarn"]
    (case,) = (case for case in CASES if case.name == twin.zoo)
    hf = ugly_model(replace(case, config={**case.config, **twin.config}))
    theirs = DynamicCache(config=hf.config)
    with torch.no_grad():
        hf(random_ids(2, TOKENS), use_cache=True, cache=theirs)
    mixer, x, _ = hf_attention(twin)
    model = generated(twin.spec(), tmp_path, renamed(mixer))
    ours = model.new_cache(2, TOKENS)
    output(model, x, cache=ours)
    latents, keys = theirs.layers[0].keys, theirs.layers[0].values
    # Transformers leaves the pairs of a key apart.
    our_keys = torch.unflatten(ours.keys[0], -1, (-1, 2)).mT.flatten(-2)
    assert (ours.latents[0] - latents).abs().max() < TIGHT * latents.abs().max()
    assert (our_keys - keys).abs().max() < TIGHT * keys.abs().max()
    assert (ours.keys[0] - keys).abs().max() > FAR * keys.abs().max()
    (declared,) = (cache for part in twin.spec().layers[0].parts() for cache in part.caches())
    assert ours.latents[0].numel() + ours.keys[0].numel() == 2 * declared.held(TOKENS)


def test_pieces_of_one_pair_and_of_many(tmp_path: Path) -> None:
    """Two heads are one pair: the difference of two softmax maps over both values, normed, by hand."""
    spec = (*SIZE, "attention={heads: 2, kv_heads: 2, head_dim: 30, differential: true}", "position=null", "layers=1")
    model = import_text(generate(compile_text(BASE, overrides=spec).architecture), tmp_path).Model().double().eval()
    mixer, x_TD = model.layers[0].attention, torch.randn(TOKENS, 60, dtype=torch.double)
    q, k, v = (F.linear(x_TD, getattr(mixer, name).weight).chunk(2, dim=-1) for name in ("q", "k", "v"))
    hidden = torch.ones(TOKENS, TOKENS).triu(1).bool()
    first, second = (
        (a @ b.T * 30**-0.5).masked_fill(hidden, -torch.inf).softmax(-1) for a, b in zip(q, k, strict=True)
    )
    dots = [torch.exp(getattr(mixer, f"lambda_q{n}") @ getattr(mixer, f"lambda_k{n}")) for n in (1, 2)]
    expected = (first - (dots[0] - dots[1] + 0.2) * second) @ torch.cat(v, dim=-1)
    expected = 0.8 * expected / (expected.square().mean(-1, keepdim=True) + 0.002).sqrt()
    expected = F.linear(expected, mixer.o.weight)
    (ours,) = output(model, x_TD[None])
    assert (ours - expected).abs().max() < TIGHT * expected.abs().max()


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ((f"attention={LATENT}", "attention.sinks=column"), "attention.sinks"),
        ((f"attention={LATENT}", "attention.latent_norm.kind=l2"), "norm.kind: l2"),
        (("attention.differential=true", "attention.softcap=20"), "attention.differential with softcap"),
        (("attention.differential=true", "attention.grouping=tiled"), "attention.differential with grouping"),
        (("attention.differential=true", "attention.value_dim=8"), "attention.differential with value_dim"),
        (
            ("attention.differential=true", "attention.dynamic_mask={keep: 3}"),
            "attention.differential with dynamic_mask",
        ),
    ],
)
def test_what_cannot_be_printed_together_is_refused(overrides: tuple[str, ...], named: str) -> None:
    with pytest.raises(UngeneratedError, match=named):
        generate(compile_text(BASE, overrides=overrides).architecture)
    generate(compile_text(BASE, overrides=overrides[:1]).architecture)


@pytest.mark.parametrize("kind", ["alibi", "buckets, buckets: 8, max_distance: 20"])
def test_latents_have_no_place_for_biases_by_distance(kind: str) -> None:
    with pytest.raises(SpecError) as caught:
        compile_text(BASE, overrides=(f"attention={LATENT}", f"position={{kind: {kind}}}"))
    assert [diagnostic.code for diagnostic in caught.value.diagnostics] == ["E211"]
    compile_text(BASE, overrides=(f"position={{kind: {kind}}}",))
