"""Every generated model computes what Hugging Face's does, and one with a single wrong field does not.

Both are held to the same measure: how far Hugging Face's own results move when each of its weights moves by one
unit in the last place (tests/noise.py).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

from archc.checkpoints.manifest import UnstorableError
from tests.codegen.comparisons import (
    COMPARISONS,
    LENGTHS,
    TOKENS,
    Generated,
    HuggingFace,
    cached,
    full,
    padding,
)
from tests.codegen.conftest import Cases
from tests.codegen.support import Case, random_ids
from tests.noise import BOUND, Measured, measure
from tests.tiny import TINY

NAMES = [tiny.name for tiny in TINY]
WITH_TABLE = {"gpt2"}  # positions beyond the table do not exist
# Keys in the cache were turned at the frequencies of a shorter input: the cache and the full pass differ by design.
LENGTH_DEPENDENT = {"llama-dynamic", "llama-longrope", "phi3-longrope"}
STEADY = [name for name in NAMES if name not in LENGTH_DEPENDENT]
WITH_GRADIENTS = {"gpt2", "llama-biased", "qwen3_moe", "gemma2"}

Reference = Callable[[str, str], Measured]


@pytest.fixture(scope="session")
def reference(cases: Cases) -> Reference:
    """`reference("gpt2", "full")`: what Hugging Face's model returns in that comparison, with its floors."""

    @cache
    def measured(name: str, comparison: str) -> Measured:
        return measure(cases(name).hf, lambda hf: COMPARISONS[comparison](HuggingFace(hf)))

    return measured


def port(case: Case, *overrides: str) -> Generated:
    return Generated(case.port(*overrides), case.architecture)


def pairs() -> list[tuple[str, str]]:
    found = [(name, comparison) for comparison in COMPARISONS for name in NAMES]
    found = [(name, comparison) for name, comparison in found if comparison != "gradients" or name in WITH_GRADIENTS]
    return [(name, comparison) for name, comparison in found if comparison != "distant" or name not in WITH_TABLE]


@pytest.mark.parametrize(("name", "comparison"), pairs())
def test_agrees_with_hugging_face(cases: Cases, reference: Reference, name: str, comparison: str) -> None:
    ours = COMPARISONS[comparison](port(cases(name)))
    assert reference(name, comparison).deviation(ours) < BOUND


@pytest.mark.parametrize("name", STEADY)
def test_pieces_through_the_cache_equal_the_full_pass(cases: Cases, reference: Reference, name: str) -> None:
    pieces = torch.cat(list(cached(port(cases(name))).values()), dim=1)
    assert reference(name, "full").deviation({"logits": pieces}) < BOUND


@pytest.mark.parametrize("name", sorted(LENGTH_DEPENDENT))
def test_where_frequencies_follow_the_length_they_do_not(cases: Cases, reference: Reference, name: str) -> None:
    """So does Hugging Face, step by step: `cached` compares that."""
    pieces = torch.cat(list(cached(port(cases(name))).values()), dim=1)
    assert reference(name, "full").deviation({"logits": pieces}) > BOUND


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
@pytest.mark.parametrize("name", STEADY)
def test_padded_rows_equal_single_runs(cases: Cases, name: str, left: bool) -> None:
    """The generated model works its positions out from the mask alone."""
    ids, mask, _ = padding(left=left)
    rows = [row[keep.bool()][None] for row, keep in zip(ids, mask, strict=True)]
    assert [row.shape[1] for row in rows] == list(LENGTHS)

    single = measure(cases(name).hf, lambda hf: {str(n): HuggingFace(hf).logits(row)[0] for n, row in enumerate(rows)})
    batch = port(cases(name)).logits(ids, mask=mask)
    assert single.deviation({str(n): batch[n, mask[n].bool()] for n in range(len(rows))}) < BOUND


@pytest.mark.parametrize("name", ["gpt2", "llama-default", "qwen3_moe", "gemma3_text"])
def test_agrees_in_bfloat16(cases: Cases, name: str) -> None:
    """Sums are taken and rounded at the same places."""
    case = cases(name)
    measured = measure(copy.deepcopy(case.hf).to(torch.bfloat16), lambda hf: full(HuggingFace(hf)))
    model = case.module.Model.from_pretrained(case.folder, dtype=torch.bfloat16)
    ours = full(Generated(model, case.architecture))
    assert ours["logits"].dtype == torch.bfloat16
    assert measured.deviation(ours) < BOUND


# ---------------------------------------------------------------- twins that must fail: one wrong field

FAULTS = {
    "gpt2": ("norm.eps=1e-3", "norm.kind=rmsnorm", "ffn.activation=gelu", "attention.scale=0.28"),
    "llama-default": (
        "position.pairing=interleaved",
        "position.base=5400",
        "position=null",
        "position.scaling={kind: linear, factor: 1.1}",
        "attention.grouping=tiled",
        "attention.scale=0.26",
        "attention.window=38",
        "attention.softcap=50",
        "norm.eps=1e-3",
        "norm.kind=layernorm",
        "norm.weight=one_plus",
        "ffn.activation=gelu",
        "ffn.activation=gelu_tanh",
        "ffn.activation=relu",
        "ffn.activation=relu2",
        "embedding.scale=1.01",
        "residual.stream=1.01",
        "residual.branch=0.99",
        "logits.scale=1.01",
        "logits.softcap=30",
        "embedding.tied=true",  # the stored head is then not read
    ),
    "llama-linear": ("position.scaling.factor=2.9", "position.scaling=null"),
    "llama-dynamic": ("position.scaling.factor=2.9", "position.scaling.original_context=21"),
    "llama-llama3": (
        "position.scaling.factor=4.8",
        "position.scaling.original_context=25",
        "position.scaling.low_freq_factor=0.8",
        "position.scaling.high_freq_factor=3",
    ),
    # The ramp begins and ends at whole pairs: only what moves an end to another pair changes anything.
    "llama-yarn": (
        "position.scaling.factor=2.9",
        "position.scaling.original_context=240",
        "position.scaling.beta_fast=3",
        "position.scaling.beta_slow=0.4",
        "position.scaling.truncate=false",
        "position.scaling.attention_factor=1",
    ),
    "llama-yarn-mscale": (
        "position.scaling.original_context=210",
        "position.scaling.beta_fast=4.8",
        "position.scaling.beta_slow=0.55",
        "position.scaling.mscale=0.9",
        "position.scaling.mscale_all_dim=1.6",
        "position.scaling.mscale=null",
        "position.scaling.truncate=true",
    ),
    "llama-longrope": (
        "position.scaling.factor=3.6",
        "position.scaling.attention_factor=1",
        "position.scaling.original_context=40",
        "position.scaling.long_factors=[1.2, 1.7, 2.6, 3.3, 4.8, 7.1, 9.9, 11]",
    ),
    "mistral-window": ("attention.window=6", "attention.window=8", "attention.window=null"),
    "qwen2": ("attention.grouping=tiled",),
    "qwen3": (
        "attention.qk_norm.order=after_rope",
        "attention.qk_norm.eps=1e-3",
        "attention.qk_norm.weight=one_plus",
        "attention.qk_norm.kind=layernorm",
    ),
    "qwen3_moe": (
        "ffn.router.renormalize=true",
        "ffn.router.order=top_k_then_score",
        "ffn.router.score=sigmoid",
        "ffn.router.scale=1.01",
        "ffn.top_k=2",
        "ffn.activation=gelu",
    ),
    "qwen3_moe-renormalised": ("ffn.router.renormalize=false", "ffn.router.score=sigmoid"),
    "mixtral": ("ffn.router.renormalize=false", "ffn.top_k=1"),
    "gemma": (
        "embedding.scale=8.4",
        "embedding.scale=null",
        "norm.weight=plain",
        "norm.eps=1e-3",
        "ffn.activation=gelu",
    ),
    "gemma2": (
        "attention.softcap=1.8",
        "attention.softcap=null",
        "attention.scale=0.25",
        "attention.grouping=tiled",
        "logits.softcap=2.4",
        "logits.softcap=null",
        "layers.kinds.local.attention.window=6",
        "layers.kinds.local.attention.window=8",
        "layers.pattern=local, local, global",
    ),
    "gemma3_text": (
        "layers.kinds.local.position.base=5300",
        "layers.kinds.local.position.scaling={kind: linear, factor: 3}",
        "layers.kinds.local.attention.window=8",
        "position.base=5400",
        "position.scaling.factor=2.9",
        "attention.qk_norm.weight=plain",
        "attention.scale=0.25",
    ),
    "phi3-partial": ("position.partial=0.9", "position.partial=1", "position.pairing=interleaved"),
    "phi3-longrope": ("context=97", "attention.window=12"),  # the context sets the attention factor
    "olmo2": ("attention.qk_norm.order=after_rope",),
}
OTHER_FAULTS = (
    ("short", "llama-longrope", "position.scaling.short_factors=[1, 1.1, 1.25, 1.3, 1.45, 1.6, 1.7, 1.8]"),
    ("cached", "mistral-window", "attention.window=8"),
    ("cached", "llama-dynamic", "position.scaling.factor=2.9"),
    ("cached", "gemma2", "attention.softcap=1.8"),
    ("left_padded", "phi3-longrope", "attention.window=10"),
    ("left_padded", "gpt2", "norm.eps=1e-3"),
    ("right_padded", "phi3-longrope", "attention.window=10"),
    ("right_padded", "qwen3", "attention.qk_norm.eps=1e-3"),
    ("cached_left_padded", "gemma3_text", "layers.kinds.local.attention.window=6"),
    ("gaps", "gpt2", "ffn.activation=gelu"),
    ("gaps", "llama-default", "position.base=5301"),
    ("distant", "llama-default", "position.base=5301"),
    ("distant", "llama-llama3", "position.scaling.low_freq_factor=0.8"),
    ("losses", "gemma", "ffn.activation=gelu"),
    ("losses", "qwen3_moe", "ffn.top_k=2"),
    ("gradients", "gpt2", "norm.eps=1e-3"),
    ("gradients", "llama-biased", "norm.eps=1e-3"),
    ("gradients", "qwen3_moe", "ffn.router.renormalize=true"),
    ("gradients", "gemma2", "attention.softcap=1.8"),
)


def faults() -> list[tuple[str, str, str]]:
    in_the_full_pass = [("full", name, override) for name, overrides in FAULTS.items() for override in overrides]
    return [*in_the_full_pass, *OTHER_FAULTS]


@pytest.mark.parametrize(("comparison", "name", "override"), faults())
def test_a_wrong_field_is_seen(cases: Cases, reference: Reference, comparison: str, name: str, override: str) -> None:
    ours = COMPARISONS[comparison](port(cases(name), override))
    assert reference(name, comparison).deviation(ours) > BOUND


def borrowed(case: Case, names: dict[str, str], *overrides: str) -> Generated:
    """A model of another spec, filled from the right one's weights: where a name differs, `names` says whose."""
    model = case.variant("family=null", *overrides).Model()
    weights = case.port().state_dict()
    filled = {}
    for name, wanted in model.state_dict().items():
        weight = weights[".".join(names.get(word, word) for word in name.split("."))]
        filled[name] = weight.repeat(len(wanted) // len(weight)) if weight.ndim == 1 else weight
    model.load_state_dict(filled)
    return Generated(model.eval(), case.architecture)


AFTER = {"attention_post_norm": "attention_norm", "ffn_post_norm": "ffn_norm"}
BEFORE = {ours: theirs for theirs, ours in AFTER.items()}


@pytest.mark.parametrize(
    ("name", "override", "names"),
    [
        ("llama-default", "norm.placement=post", AFTER),
        ("llama-default", "norm.placement=parallel", {"norm": "attention_norm"}),
        ("gemma2", "norm.placement=pre", {}),
        ("gemma2", "norm.placement=post", {}),
        ("olmo2", "norm.placement=pre", BEFORE),
        ("qwen3", "attention.qk_norm.over=width", {}),
    ],
)
def test_norms_in_other_places_are_seen(
    cases: Cases, reference: Reference, name: str, override: str, names: dict[str, str]
) -> None:
    """No checkpoint loads with these: the weights are handed over by name, repeated where a norm has more of them."""
    assert reference(name, "full").deviation(full(borrowed(cases(name), names, override))) > BOUND
    assert reference(name, "full").deviation(full(borrowed(cases(name), {}))) < BOUND


@pytest.mark.parametrize(
    ("name", "override", "words"),
    [
        ("gpt2", "position=null", "transformer.wpe.weight is stored, but has no place"),
        ("gpt2", "norm.bias=false", "transformer.h.0.ln_1.bias is stored, but has no place"),
        ("qwen2", "attention.bias=none", "model.layers.0.self_attn.k_proj.bias is stored, but has no place"),
        ("llama-default", "attention.bias=all", "the checkpoint lacks model.layers.0.self_attn.q_proj.bias, "),
        (
            "llama-default",
            "attention.kv_heads=3",
            r"model.layers.0.self_attn.k_proj.weight has the shape \[32, 72\], not \[48, 72\]",
        ),
        ("llama-default", "norm.weight=none", "model.layers.0.input_layernorm.weight is stored, but has no place"),
        ("llama-default", "layers=2", "model.layers.2.input_layernorm.weight is stored, but has no place"),
        ("llama-default", "layers=4", "the checkpoint lacks model.layers.3.self_attn.q_proj.weight, "),
        ("llama-biased", "embedding.tied=false", "the checkpoint lacks lm_head.weight"),
        (
            "qwen3",
            "attention.qk_norm.over=width",
            r"model.layers.0.self_attn.k_norm.weight has the shape \[16\], not \[32\]",
        ),
        (
            "qwen3_moe",
            "layers.pattern=dense, sparse, sparse",
            "model.layers.0.mlp.experts.0.down_proj.weight is stored",
        ),
        ("qwen3_moe", "ffn.experts=6", "model.layers.0.mlp.experts.6.down_proj.weight is stored, but has no place"),
        ("qwen3_moe", "ffn.experts=8", r"model.layers.0.mlp.gate.weight has the shape \[7, 72\], not \[8, 72\]"),
    ],
)
def test_a_field_that_changes_tensors_is_refused(cases: Cases, name: str, override: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        cases(name).port(override)


@pytest.mark.parametrize("override", ["norm.placement=post", "attention.qk_norm={over: head}"])
def test_a_tensor_that_the_family_cannot_store_is_refused(cases: Cases, override: str) -> None:
    with pytest.raises(UnstorableError, match="the family llama stores no layers"):
        cases("llama-default").port(override)


# ---------------------------------------------------------------- twins that must fail: wrong use of a right model


@dataclass(frozen=True)
class Unmasked(Generated):
    """Looks at padding."""

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        return super().logits(ids, positions, None, cache)


@dataclass(frozen=True)
class CountsPadding(Generated):
    """Positions are columns."""

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        past = 0 if cache is None else cache.length
        return super().logits(ids, past + torch.arange(ids.shape[1])[None], mask, cache)


@dataclass(frozen=True)
class Forgetful(Generated):
    """Every piece is a new document."""

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        return super().logits(ids, positions, mask, None)


@dataclass(frozen=True)
class Late(Generated):
    """Every piece but the first is one position late."""

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        late = cache.length + 1 if cache.length else 0
        return super().logits(ids, late + torch.arange(ids.shape[1])[None], mask, cache)


@pytest.mark.parametrize(
    ("kind", "comparison", "name"),
    [
        (Unmasked, "left_padded", "llama-default"),
        (Unmasked, "cached_left_padded", "gpt2"),
        (CountsPadding, "left_padded", "gpt2"),
        (CountsPadding, "cached_left_padded", "gpt2"),
        (CountsPadding, "gaps", "gpt2"),
        (CountsPadding, "distant", "llama-default"),
        (Forgetful, "cached", "llama-default"),
        (Late, "cached", "gpt2"),
        (Late, "cached", "gemma3_text"),
    ],
)
def test_wrong_use_is_seen(
    cases: Cases, reference: Reference, kind: type[Generated], comparison: str, name: str
) -> None:
    right = port(cases(name))
    ours = COMPARISONS[comparison](kind(right.model, right.architecture))
    assert reference(name, comparison).deviation(ours) > BOUND


def test_right_padding_hides_nothing_from_the_tokens_before_it(cases: Cases, reference: Reference) -> None:
    """Why `Unmasked` has no row above for padding on the right: no token there looks at it."""
    right = port(cases("llama-default"))
    ours = COMPARISONS["right_padded"](Unmasked(right.model, right.architecture))
    assert reference("llama-default", "right_padded").deviation(ours) < BOUND


@pytest.mark.parametrize(
    ("missing", "name"), [("loss and z", "gemma"), ("loss and balance", "mixtral"), ("loss and balance", "qwen3_moe")]
)
def test_a_missing_term_of_the_loss_is_seen(cases: Cases, reference: Reference, missing: str, name: str) -> None:
    ours = COMPARISONS["losses"](port(cases(name)))
    assert reference(name, "losses").deviation({**ours, missing: ours["loss"]}) > BOUND


def test_labels_that_are_not_left_out_are_seen(cases: Cases, reference: Reference) -> None:
    right = port(cases("llama-default"))
    ids = random_ids(2, TOKENS)
    assert reference("llama-default", "losses").deviation(right.losses(ids, ids)) > BOUND


# ---------------------------------------------------------------- what looks like a fault and is none


@pytest.mark.parametrize("name", ["qwen3_moe-renormalised", "mixtral"])
def test_scoring_order_does_not_matter_once_renormalised(cases: Cases, reference: Reference, name: str) -> None:
    ours = full(port(cases(name), "ffn.router.order=top_k_then_score"))
    assert reference(name, "full").deviation(ours) < BOUND


def swap(weight: Tensor, a: int, b: int) -> None:
    """Regroups the rows of a weight, of which there are a · b · c: row (i, j, k) becomes row (j, i, k)."""
    weight.copy_(weight.view(a, b, -1, weight.shape[1]).transpose(0, 1).reshape(weight.shape))


@torch.no_grad()
def test_interleaved_pairs_of_permuted_channels_are_half_pairs(cases: Cases, reference: Reference) -> None:
    """Channel i + 8·b of a head, with its pair on the other half, becomes channel 2·i + b."""
    ours = port(cases("llama-default"), "position.pairing=interleaved")
    for layer in ours.model.layers:
        for projection in (layer.attention.q, layer.attention.k):
            for head in projection.weight.split(16):
                swap(head, 2, 8)
    assert reference("llama-default", "full").deviation(full(ours)) < BOUND


@torch.no_grad()
def test_tiled_groups_of_permuted_heads_are_neighbours(cases: Cases, reference: Reference) -> None:
    """Query head g of the group of key/value head k, 3·k + g, becomes head 2·g + k."""
    ours = port(cases("llama-default"), "attention.grouping=tiled")
    for layer in ours.model.layers:
        swap(layer.attention.q.weight, 2, 3)
        swap(layer.attention.o.weight.T, 2, 3)
    assert reference("llama-default", "full").deviation(full(ours)) < BOUND


@torch.no_grad()
def test_a_scale_may_be_folded_into_the_queries(cases: Cases, reference: Reference) -> None:
    ours = port(cases("llama-default"), "attention.scale=1")
    for layer in ours.model.layers:
        layer.attention.q.weight.mul_(16**-0.5)
    assert reference("llama-default", "full").deviation(full(ours)) < BOUND
