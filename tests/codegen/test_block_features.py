"""Norms and sums of a layer: by hand, as the language says it, and against functions of transformers.

A block is run inside its model; what its parts give is put together again here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn
from transformers.models.beam.modeling_beam import depth_scaled_residual_add
from transformers.models.zaya.modeling_zaya import ZayaResidualScaling

from archc.architecture import compile_text
from archc.codegen import generate
from archc.spec.diagnostics import SpecError
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from tests.codegen.combinations import BASE, layers
from tests.codegen.support import import_text, random_ids
from tests.codegen.test_combinations import ugly

Run = Callable[[Tensor], Tensor]
TIGHT, FAR = 1e-6, 1e-3
PLAIN_BLOCK = "block=[{attention: {}}, {ffn: {}}]"
BEFORE_EACH = ("norm.placement=parallel_separate",)


@dataclass(frozen=True)
class Seen:
    """A block as its model ran it: what it was given, what it gave, and its parts under the same circumstances."""

    block: nn.Module
    number: int
    x: Tensor
    output: Tensor
    given: tuple[Any, ...]

    def a(self, y: Tensor) -> Tensor:
        return self.of("attention", y, *self.given)

    def f(self, y: Tensor) -> Tensor:
        return self.of("ffn", y)

    def of(self, name: str, *given: Any) -> Tensor:
        """What a module of the block gives."""
        found: Tensor = self.block.get_submodule(name)(*given)
        return found

    def has(self, name: str) -> Tensor:
        """What a module of the block has learned."""
        return self.block.get_parameter(name)


def module(folder: Path, *overrides: str) -> Any:
    return import_text(generate(compile_text(BASE, overrides=overrides).architecture), folder)


def ugly_with_buffers(model: Any) -> Any:
    ugly(model)
    for number, buffer in enumerate(model.buffers()):
        buffer.fill_(1.3 + number / 7)
    return model


def blocks(model: Any) -> list[Seen]:
    """Every block of a model, run on ids."""
    found: list[Seen] = []
    for number, block in enumerate(model.layers):
        block.register_forward_hook(
            lambda block, inputs, output, number=number: found.append(
                Seen(block, number, inputs[0], output, inputs[1:])
            )
        )
    with torch.no_grad():
        model(random_ids(2, 13))
    return found


# ---------------------------------------------------------------- by hand


def pre(s: Seen) -> Tensor:
    x = s.x + s.a(s.of("attention_norm", s.x))
    return x + s.f(s.of("ffn_norm", x))


def post(s: Seen) -> Tensor:
    x = s.x + s.of("attention_post_norm", s.a(s.x))
    return x + s.of("ffn_post_norm", s.f(x))


def sandwich(s: Seen) -> Tensor:
    x = s.x + s.of("attention_post_norm", s.a(s.of("attention_norm", s.x)))
    return x + s.of("ffn_post_norm", s.f(s.of("ffn_norm", x)))


def post_sum(s: Seen) -> Tensor:
    x = s.of("attention_post_norm", s.x + s.a(s.x))
    return s.of("ffn_post_norm", x + s.f(x))


def post_sum_weighed(s: Seen) -> Tensor:
    x = s.of("attention_post_norm", 0.9 * s.x + 1.3 * s.a(s.x))
    return s.of("ffn_post_norm", 0.9 * x + 1.3 * s.f(x))


def parallel(s: Seen) -> Tensor:
    y = s.of("norm", s.x)
    return s.x + s.a(y) + s.f(y)


def parallel_normed(s: Seen) -> Tensor:
    y = s.of("norm", s.x)
    return y + 0.8 * s.a(y) + 0.8 * s.f(y)


def parallel_separate(s: Seen) -> Tensor:
    return s.x + s.a(s.of("attention_norm", s.x)) + s.f(s.of("ffn_norm", s.x))


def parallel_separate_weighed(s: Seen) -> Tensor:
    return 0.9 * s.x + 1.3 * (s.a(s.of("attention_norm", s.x)) + s.f(s.of("ffn_norm", s.x)))


def carries_normed(s: Seen) -> Tensor:
    y = s.of("attention_norm", s.x)
    x = y + s.a(y)
    y = s.of("ffn_norm", x)
    return y + s.f(y)


def attention_carries_normed(s: Seen) -> Tensor:
    y = s.of("attention_norm", s.x)
    x = y + s.a(y)
    return x + s.f(s.of("ffn_norm", x))


def by_depth(s: Seen) -> Tensor:
    n = 2 * s.number + 2  # the embedding and both branches of every earlier layer have been written before
    x = math.sqrt((n - 1) / n) * s.x + s.a(s.of("attention_norm", s.x)) / math.sqrt(n)
    return math.sqrt(n / (n + 1)) * x + s.f(s.of("ffn_norm", x)) / math.sqrt(n + 1)


def by_depth_weighed(s: Seen) -> Tensor:
    n = 2 * s.number + 2
    x = 0.9 * math.sqrt((n - 1) / n) * s.x + 1.3 * s.a(s.of("attention_norm", s.x)) / math.sqrt(n)
    return 0.9 * math.sqrt(n / (n + 1)) * x + 1.3 * s.f(s.of("ffn_norm", x)) / math.sqrt(n + 1)


def learned_stream(s: Seen) -> Tensor:
    x = s.has("attention_residual.weight") * s.x + s.a(s.of("attention_norm", s.x))
    return s.has("ffn_residual.weight") * x + s.f(s.of("ffn_norm", x))


def learned_stream_scaled(s: Seen) -> Tensor:
    x = 2.5 * s.has("attention_residual.weight") * 0.9 * s.x + 1.3 * s.a(s.of("attention_norm", s.x))
    return 2.5 * s.has("ffn_residual.weight") * 0.9 * x + 1.3 * s.f(s.of("ffn_norm", x))


def learned_both(s: Seen, scale: float = 1) -> Tensor:
    def added(r: str, x: Tensor, y: Tensor) -> Tensor:
        x = (x + scale * s.has(f"{r}.stream_shift")) * scale * s.has(f"{r}.stream_factor")
        return x + (y + scale * s.has(f"{r}.branch_shift")) * scale * s.has(f"{r}.branch_factor")

    x = added("attention_residual", s.x, s.a(s.of("attention_norm", s.x)))
    return added("ffn_residual", x, s.f(s.of("ffn_norm", x)))


def learned_both_scaled(s: Seen) -> Tensor:
    return learned_both(s, 2.5)


def learned_rate(s: Seen, scale: float = 1) -> Tensor:
    y = s.a(s.of("attention_norm", s.x))
    x = s.x + abs(s.has("attention_residual.rate") * scale) * (y - s.x)
    return x + abs(s.has("ffn_residual.rate") * scale) * (s.f(s.of("ffn_norm", x)) - x)


def learned_rate_scaled(s: Seen) -> Tensor:
    return learned_rate(s, 2.5)


def rate_from_normed(s: Seen) -> Tensor:
    y = s.of("attention_norm", s.x)
    x = y + abs(s.has("attention_residual.rate")) * (s.a(y) - y)
    y = s.of("ffn_norm", x)
    return y + abs(s.has("ffn_residual.rate")) * (s.f(y) - y)


def learned_then_normed(s: Seen) -> Tensor:
    x = s.of("attention_post_norm", s.has("attention_residual.weight") * s.x + s.a(s.x))
    return s.of("ffn_post_norm", s.has("ffn_residual.weight") * x + s.f(x))


def scaled(s: Seen) -> Tensor:
    return pre(s) * s.block.get_buffer("scalar")


def feed_forward_first(s: Seen) -> Tensor:
    x = s.x + s.f(s.of("ffn_norm", s.x))
    return x + s.a(s.of("attention_norm", x))


def none_before_attention(s: Seen) -> Tensor:
    x = s.x + s.a(s.x)
    return x + s.f(s.of("ffn_norm", x))


def pre_then_sandwich(s: Seen) -> Tensor:
    x = s.x + s.a(s.of("attention_norm", s.x))
    return x + s.of("ffn_post_norm", s.f(s.of("ffn_norm", x)))


def no_norms(s: Seen) -> Tensor:
    x = s.x + s.a(s.x)
    return x + s.f(x)


def attention_alone(s: Seen) -> Tensor:
    return s.x + s.a(s.of("attention_norm", s.x))


def attention_beside_nothing(s: Seen) -> Tensor:
    return s.has("attention_residual.weight") * s.x + s.a(s.of("norm", s.x))


def feed_forward_alone(s: Seen) -> Tensor:
    return s.x + s.f(s.of("ffn_norm", s.x))


HAND: dict[Callable[[Seen], Tensor], tuple[str, ...]] = {
    pre: (),
    post: ("norm.placement=post",),
    sandwich: ("norm.placement=sandwich",),
    post_sum: ("norm.placement=post_sum",),
    post_sum_weighed: ("norm.placement=post_sum", "residual={stream: 0.9, branch: 1.3}"),
    parallel: ("norm.placement=parallel",),
    parallel_normed: ("norm.placement=parallel", "residual={carries: normed, branch: 0.8}"),
    parallel_separate: BEFORE_EACH,
    parallel_separate_weighed: (*BEFORE_EACH, "residual={stream: 0.9, branch: 1.3}"),
    carries_normed: ("residual.carries=normed",),
    attention_carries_normed: ("block=[{attention: {}, residual: {carries: normed}}, {ffn: {}}]",),
    by_depth: ("residual.by_depth=true",),
    by_depth_weighed: ("residual={by_depth: true, stream: 0.9, branch: 1.3}",),
    learned_stream: ("residual.learned=stream",),
    learned_stream_scaled: ("residual={learned: stream, learned_scale: 2.5, stream: 0.9, branch: 1.3}",),
    learned_both: ("residual.learned=both",),
    learned_both_scaled: ("residual={learned: both, learned_scale: 2.5}",),
    learned_rate: ("residual.learned=rate",),
    learned_rate_scaled: ("residual={learned: rate, learned_scale: 2.5}",),
    rate_from_normed: ("residual={learned: rate, carries: normed}",),
    learned_then_normed: ("residual.learned=stream", "norm.placement=post_sum"),
    scaled: ("residual.layer_scalar=true",),
    feed_forward_first: ("block=[{ffn: {}}, {attention: {}}]",),
    none_before_attention: ("block=[{attention: {}, norm: null}, {ffn: {}}]",),
    pre_then_sandwich: ("block=[{attention: {}}, {ffn: {}, norm: {placement: sandwich}}]",),
    no_norms: ("block=[{attention: {}, norm: null}, {ffn: {}, norm: null}]",),
    attention_alone: ("ffn=null",),
    attention_beside_nothing: ("ffn=null", "norm.placement=parallel", "residual.learned=stream"),
    feed_forward_alone: (layers("mixing, feeding", mixing="{ffn: null}", feeding="{attention: null}"),),
}


def distance(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max() / b.abs().max())


@pytest.mark.parametrize("hand", HAND, ids=lambda hand: hand.__name__)
def test_a_block_adds_as_it_is_told(tmp_path: Path, hand: Callable[[Seen], Tensor]) -> None:
    """By hand, and by none of the other hands that find the modules they need."""
    seen = blocks(ugly_with_buffers(module(tmp_path, *HAND[hand]).Model()))
    seen = [one for one in seen if hand is not feed_forward_alone or hasattr(one.block, "ffn")]
    others = 0
    for one in seen:
        with torch.no_grad():
            assert distance(hand(one), one.output) < TIGHT
            for other in HAND:
                if other is not hand and _has(one.block, other):
                    assert distance(other(one), one.output) > FAR, other.__name__
                    others += 1
    assert others or hand in (attention_alone, attention_beside_nothing, feed_forward_alone, no_norms)


def _has(block: Any, hand: Callable[[Seen], Tensor]) -> bool:
    """Whether a block has what the formula of a hand names."""
    tensors = list(compile_text(BASE, overrides=HAND[hand]).architecture.tensors())
    own = {tensor.name.split(".")[2] for tensor in tensors if tensor.name.startswith("layers.")}
    learned = {tensor.name.partition("_residual.")[2] for tensor in tensors if "_residual." in tensor.name}
    if not all(hasattr(block, name) for name in own):
        return False
    return all(hasattr(block.attention_residual, name) for name in learned)


def test_with_depth_all_that_is_written_weighs_alike(tmp_path: Path) -> None:
    """The stream behind n that have written to it is their sum over the root of n."""
    model = ugly(module(tmp_path, "residual.by_depth=true", "norm.placement=sandwich", "layers=3").Model())
    written: list[Tensor] = []
    for layer in model.layers:
        for name in ("attention_post_norm", "ffn_post_norm"):
            getattr(layer, name).register_forward_hook(lambda _module, _inputs, output: written.append(output))
    seen = blocks(model)
    total = seen[0].x + torch.stack(written).sum(0)
    assert distance(total / math.sqrt(7), seen[-1].output) < TIGHT
    assert distance(total / math.sqrt(6), seen[-1].output) > FAR


# ---------------------------------------------------------------- against transformers


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_depth_weighs_as_in_transformers(tmp_path: Path, dtype: torch.dtype) -> None:
    weighed = module(tmp_path, "residual.by_depth=true").weighed_by_depth
    x, y = torch.randn(2, 3, 5, 72).to(dtype)
    for n in range(2, 20):
        theirs = depth_scaled_residual_add(y, x, n)
        assert torch.equal(sum(weighed(x, y, n)), theirs)
        assert not torch.equal(sum(weighed(x, y, n + 1)), theirs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_both_are_shifted_and_scaled_as_in_transformers(tmp_path: Path, dtype: torch.dtype) -> None:
    """A stream in float32, weights and branch in another type."""
    ours = ugly(module(tmp_path, "residual={learned: both, float32: true}").WeighedSum()).to(dtype)
    theirs = ZayaResidualScaling(72).to(dtype)
    with torch.no_grad():
        theirs.residual_bias.copy_(ours.stream_shift)
        theirs.residual_scale.copy_(ours.stream_factor)
        theirs.hidden_states_bias.copy_(ours.branch_shift)
        theirs.hidden_states_scale.copy_(ours.branch_factor)
        x, y = torch.randn(3, 5, 72), torch.randn(3, 5, 72).to(dtype)
        assert ours(x, y).dtype == torch.float32
        assert torch.equal(ours(x, y), theirs(y, x))
        assert not torch.equal(ours(y, x), theirs(y, x))


def test_a_rate_starts_small_whatever_it_is_stored_as(tmp_path: Path) -> None:
    for scale in (1.0, 2.5):
        model = module(tmp_path, f"residual={{learned: rate, learned_scale: {scale}}}").Model()
        rate = model.layers[0].attention_residual.rate
        assert torch.allclose(rate * scale, torch.full((72,), 0.05))
        model.loss(random_ids(2, 9), random_ids(2, 9)).backward()
        assert rate.grad.abs().min() > 0


# ---------------------------------------------------------------- a stream in float32


@pytest.mark.parametrize("kept", [True, False])
def test_a_stream_in_float32_is_rounded_only_where_it_is_read(tmp_path: Path, kept: bool) -> None:
    model = ugly(module(tmp_path, f"residual.float32={str(kept).lower()}").Model()).to(torch.bfloat16)
    for one in blocks(model):
        assert {one.x.dtype, one.output.dtype} == ({torch.float32} if kept else {torch.bfloat16})
        with torch.no_grad():
            x = one.x.float() + one.a(one.of("attention_norm", one.x.bfloat16()))
            by_hand = x + one.f(one.of("ffn_norm", x.bfloat16()))
        assert (distance(by_hand, one.output.float()) < TIGHT) is kept


@pytest.mark.parametrize("placement", ["parallel", "parallel_separate", "post"])
def test_a_stream_in_float32_meets_every_norm(tmp_path: Path, placement: str) -> None:
    """LayerNorms of torch take no other type than that of their weights."""
    overrides = (f"norm={{kind: layernorm, placement: {placement}}}", "residual.float32=true")
    model = ugly(module(tmp_path, *overrides).Model())
    ids = random_ids(2, 13)
    with torch.no_grad():
        whole = model(ids)
        half = model.to(torch.bfloat16)(ids)
    assert half.dtype == torch.bfloat16
    assert 1e-4 < distance(half.float(), whole) < 0.1


# ---------------------------------------------------------------- the end of the stream


def test_without_a_final_norm_the_head_reads_the_last_layer(tmp_path: Path) -> None:
    ids = random_ids(2, 13)
    for final_norm in (True, False):
        overrides = (f"final_norm={str(final_norm).lower()}", "norm.placement=post_sum")
        architecture = compile_text(BASE, overrides=overrides).architecture
        model = ugly(import_text(generate(architecture), tmp_path).Model())
        save_file(model.state_dict(), tmp_path / "model.safetensors")
        points = GeneratedPort(architecture, tmp_path).points(Probe("some", "ids", ids))
        assert hasattr(model, "final_norm") is ("final_norm" in points) is final_norm
        last = points[f"layers.{len(model.layers) - 1}.out"]
        with torch.no_grad():
            assert torch.equal(points.get("final_norm", last), model.hidden(ids))
            assert torch.equal(last, model.hidden(ids)) is not final_norm


def test_a_stored_number_is_loaded_and_not_trained(tmp_path: Path) -> None:
    made = module(tmp_path, "residual.layer_scalar=true")
    model = ugly_with_buffers(made.Model())
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    loaded = made.Model.from_pretrained(tmp_path, torch.bfloat16)
    assert [float(layer.scalar) for layer in loaded.layers] == [1.296875, 1.4453125]
    assert [name for name, _ in loaded.named_parameters() if "scalar" in name] == []
    save_file(dict(model.named_parameters()), tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="scalar"):
        made.Model.from_pretrained(tmp_path)


def test_layers_without_attention_keep_nothing(tmp_path: Path) -> None:
    kinds = layers("mixing, feeding, mixing", mixing="{ffn: null}", feeding="{attention: null}")
    model = module(tmp_path, kinds).Model()
    cache = model.new_cache(2, 13)
    assert [keys.numel() for keys in cache.keys] == [2 * 2 * 16 * 13, 0, 2 * 2 * 16 * 13]
    assert not hasattr(model.layers[1], "attention")
    assert not hasattr(model.layers[0], "ffn")


# ---------------------------------------------------------------- words


WORDS = {
    (): "- RMSNorm (eps 0.003) before each branch\n",
    BEFORE_EACH: "- RMSNorm (eps 0.003) before each branch; attention and feed-forward run side by side\n",
    ("norm.placement=post_sum",): "on the sum of the stream and each branch's output, none before\n",
    HAND[none_before_attention]: "- no norm around attention; RMSNorm (eps 0.003) before feed-forward\n",
    HAND[pre_then_sandwich]: "before attention; RMSNorm (eps 0.003) before feed-forward and on its output\n",
    HAND[attention_carries_normed]: "- what goes on beside attention is its normed input\n",
    ("residual.by_depth=true",): "- at every branch, the n-th thing written to the stream counts 1/sqrt(n)",
    ("residual.learned=stream",): "- a learned number per channel multiplies the stream at every branch\n",
    ("residual.learned=both",): "are shifted and scaled by learned numbers per channel\n",
    ("residual.learned=rate",): "- the stream moves towards the output of every branch at a learned rate per channel\n",
    ("residual.layer_scalar=true",): "- a stored number multiplies the stream at the end of a layer\n",
    ("residual.float32=true",): "- the stream is kept in float32 whatever the type of the weights\n",
    ("final_norm=false",): "- no norm before the head\n",
}


@pytest.mark.parametrize("overrides", WORDS)
def test_the_header_says_what_is_unusual(overrides: tuple[str, ...]) -> None:
    """And only of the model of which it is so."""
    for others in WORDS:
        text = generate(compile_text(BASE, overrides=others).architecture).split('"""')[1]
        said = " ".join(WORDS[overrides].split()) in " ".join(text.split()) + " "
        assert said is (others == overrides) or (overrides == () and "RMSNorm (eps 0.003) before each branch" in text)


# ---------------------------------------------------------------- what contradicts itself


@pytest.mark.parametrize(
    ("overrides", "twin"),
    [
        (("norm.placement=parallel", "block=[{attention: {}}, {ffn: {}, norm: {placement: pre}}]"), PLAIN_BLOCK),
        (("block=[{attention: {}}, {ffn: {}, norm: {placement: parallel}}]",), "norm.placement=parallel"),
        (("norm.placement=parallel", "block=[{attention: {}}, {ffn: {}, norm: {eps: 1.0e-6}}]"), "norm.eps=1.0e-6"),
        (("norm.placement=parallel", "block=[{attention: {}}, {ffn: {}, norm: null}]"), PLAIN_BLOCK),
        ((*BEFORE_EACH, "block=[{attention: {}}, {ffn: {}, residual: {branch: 0.5}}]"), "residual.branch=0.5"),
        ((*BEFORE_EACH, "residual.learned=stream"), "norm.placement=pre"),
        ((*BEFORE_EACH, "residual.by_depth=true"), "norm.placement=sandwich"),
        ((*BEFORE_EACH, "residual.carries=normed"), "norm.placement=parallel"),
        (("norm.placement=post", "residual.carries=normed"), "norm.placement=sandwich"),
        (("norm.placement=post_sum", "residual.carries=normed"), "norm.placement=pre"),
        (("block=[{attention: {}, norm: null}, {ffn: {}}]", "residual.carries=normed"), PLAIN_BLOCK),
        (("residual={learned: rate, stream: 0.5}",), "residual.learned=stream"),
        (("residual={learned: rate, branch: 0.5}",), "residual.branch=1"),
        (("residual={learned: rate, by_depth: true}",), "residual.by_depth=false"),
    ],
)
def test_what_cannot_be_added_is_refused(overrides: tuple[str, ...], twin: str) -> None:
    """By name; the twin states one field otherwise, and is well."""
    with pytest.raises(SpecError) as refused:
        compile_text(BASE, overrides=overrides)
    assert {problem.code for problem in refused.value.diagnostics} == {"E213"}
    generate(compile_text(BASE, overrides=(*overrides, twin)).architecture)


def test_a_branch_without_a_norm_may_stand_beside_one_that_has_its_own(tmp_path: Path) -> None:
    overrides = (*BEFORE_EACH, "block=[{attention: {}, norm: null}, {ffn: {}}]")
    for one in blocks(ugly(module(tmp_path, *overrides).Model())):
        with torch.no_grad():
            assert distance(one.x + one.a(one.x) + one.f(one.of("ffn_norm", one.x)), one.output) < TIGHT
            assert distance(none_before_attention(one), one.output) > FAR
