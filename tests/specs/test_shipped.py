"""The shipped specs: they compile without complaint, are named as their files are, and have the published sizes."""

import re
from typing import Any

import pytest
from msgspec.structs import replace

from archc import resources
from archc.analysis import build_report, compare_claims
from archc.architecture import Architecture, compile_spec, compile_text
from archc.spec.diagnostics import Level, SpecError
from archc.spec.load import shipped_names
from tests.layers import attention_of, feed_forward_of

NAMES = shipped_names()

# Counted by others: checkpoints of these models, and a trained ladder of small ones.
PUBLISHED_SIZES = {
    "gpt2": 124_439_808,
    "smollm2-135m": 134_515_008,
    "llama2-7b": 6_738_415_616,
    "llama3-8b": 8_030_261_248,
    "llama3.1-8b": 8_030_261_248,
    "ladder/gpt2-style": 28_923_904,
    "ladder/rmsnorm": 28_921_600,
    "ladder/rope": 28_891_136,
    "ladder/swiglu": 28_916_736,
    "ladder/gqa": 28_529_152,
    "ladder/modern": 28_484_352,
}
# Published rounded: total and active parameters, in billions, and the relative tolerance.
ROUNDED_SIZES = {
    "llama2-70b": (68.98, 68.98, 0.001),
    "llama3.1-405b": (405.85, 405.85, 0.002),
    "mixtral-8x7b": (46.70, 12.88, 0.005),
    "qwen3-0.6b": (0.59605, 0.59605, 0.001),
    "qwen3-30b-a3b": (30.53, 3.35, 0.005),
    "qwen3-235b-a22b": (235.09, 22.19, 0.002),
    "gemma3-270m": (0.270, 0.270, 0.01),
    "recipe-7b/vanilla": (7.0, 7.0, 0.01),
    "recipe-7b/modern": (6.2, 6.2, 0.01),
}
# As published: a gated feed-forward four times as wide as the stream, which is worth a word.
WIDE = {
    "gemma2-9b",
    "gemma3-27b",
    "gemma4-e2b",
    "kimi-linear-48b",
    "laguna-xs.2",
    "lfm2-1.2b",
    "mimo-v2-flash",
    "zamba2-7b",
}
# What one rung of the ladder changes in the first one. The shift of a norm and the biases of a feed-forward go with it.
RUNGS = {
    "rmsnorm": {"norm"},
    "rope": {"position"},
    "swiglu": {"ffn"},
    "gqa": {"attention"},
    "modern": {"norm", "position", "ffn", "attention"},
}


def total(architecture: Architecture) -> int:
    return sum(tensor.size for tensor in architecture.tensors())


def active(architecture: Architecture) -> int:
    return sum(tensor.active_size for tensor in architecture.tensors())


@pytest.mark.parametrize("name", NAMES)
def test_compiles_without_complaint(name: str) -> None:
    found = compile_spec(name).diagnostics
    assert [one.code for one in found if one.level is not Level.NOTE] == (["W401"] if name in WIDE else [])


@pytest.mark.parametrize("name", NAMES)
def test_is_named_as_its_file(name: str) -> None:
    assert compile_spec(name).architecture.name == name


@pytest.mark.parametrize("name", NAMES)
def test_opens_with_what_it_is(name: str) -> None:
    text = (resources.folder("specs") / f"{name}.yaml").read_text(encoding="utf-8")
    assert re.match(r"# \w.*(\n# .*)?(?<=\.)\narchc: 1\n", text)


@pytest.mark.parametrize("name", NAMES)
def test_claims_its_size(name: str) -> None:
    assert any(claim.key == "params.total" for claim in compile_spec(name).architecture.claims)


@pytest.mark.parametrize(("name", "size"), PUBLISHED_SIZES.items())
def test_size_is_the_published_integer(name: str, size: int) -> None:
    assert total(compile_spec(name).architecture) == size


@pytest.mark.parametrize(("name", "size"), PUBLISHED_SIZES.items())
def test_one_more_channel_is_another_size(name: str, size: int) -> None:
    width = feed_forward_of(compile_spec(name).architecture.layers[0]).width
    assert total(compile_spec(name, [f"ffn.width={width + 1}"]).architecture) != size


@pytest.mark.parametrize(("name", "figures"), ROUNDED_SIZES.items())
def test_size_is_near_the_published_figure(name: str, figures: tuple[float, float, float]) -> None:
    billions, active_billions, within = figures
    architecture = compile_spec(name).architecture
    assert total(architecture) == pytest.approx(billions * 1e9, rel=within)
    assert active(architecture) == pytest.approx(active_billions * 1e9, rel=within)


@pytest.mark.parametrize("name", NAMES)
def test_every_claim_holds(name: str) -> None:
    architecture = compile_spec(name).architecture
    results = compare_claims(architecture.claims, build_report(architecture))
    assert [result.sentence() for result in results if not result.holds] == []


@pytest.mark.parametrize(
    ("name", "change", "key"),
    [
        ("mixtral-8x7b", "ffn.top_k=1", "params.active"),
        ("mistral-7b", "attention.window=null", "kv_cache.bytes_at_context"),
        ("llama3.1-8b", "attention.kv_heads=16", "kv_cache.bytes_per_token"),
        ("qwen3-30b-a3b", "ffn.experts=127", "params.total_without_embeddings"),
        ("gemma3-270m", "vocab_size=256000", "params.embedding"),
        ("gpt2", "attention.head_dim=32", "kv_cache.elements_per_token"),
    ],
)
def test_a_claim_does_not_hold_for_another_model(name: str, change: str, key: str) -> None:
    architecture = compile_spec(name, [change]).architecture
    results = {result.key: result for result in compare_claims(architecture.claims, build_report(architecture))}
    assert not results[key].holds


@pytest.mark.parametrize(("rung", "swapped"), RUNGS.items())
def test_a_rung_swaps_what_it_is_named_for(rung: str, swapped: set[str]) -> None:
    first = compile_spec("ladder/gpt2-style").loaded
    other = compile_spec(f"ladder/{rung}").loaded
    (before,), (after,) = first.spec.kinds.values(), other.spec.kinds.values()
    (one, two), (other_one, other_two) = before.branches, after.branches
    found = {
        "norm": one.norm != other_one.norm,
        "position": one.position != other_one.position,
        "attention": one.parts != other_one.parts,
        "ffn": two.parts != other_two.parts,
        "residual": one.residual != other_one.residual,
    }
    assert {name for name, differs in found.items() if differs} == swapped
    alike: dict[str, Any] = {"name": "", "norm": None, "published": {}}
    assert replace(first.spec.header, **alike) == replace(other.spec.header, **alike)


def test_shared_heads_copied_out_to_nine() -> None:
    """SmolLM2 with 3 key/value heads copied out to 9 has 147.8 M parameters and three times the cache."""
    architecture = compile_spec("smollm2-135m", ["attention.kv_heads=9"]).architecture
    assert round(total(architecture) / 1e6, 1) == 147.8
    assert cache_per_token(architecture) == 34_560


@pytest.mark.parametrize(
    ("name", "elements"), [("gpt2", 18_432), ("smollm2-135m", 11_520), ("llama3-8b", 65_536), ("llama2-7b", 262_144)]
)
def test_cache_per_token_is_the_published_figure(name: str, elements: int) -> None:
    assert cache_per_token(compile_spec(name).architecture) == elements


def cache_per_token(architecture: Architecture) -> int:
    return sum(int(cache.growth) for part in architecture.parts() for cache in part.caches())


def test_gemma_looks_back_through_windows_in_fifteen_of_eighteen_layers() -> None:
    layers = compile_spec("gemma3-270m").architecture.layers
    assert [attention_of(layer).window for layer in layers] == [512, 512, 512, 512, 512, None] * 3
    bases = [rope.base for layer in layers if (rope := attention_of(layer).rope)]
    assert bases == [10_000, 10_000, 10_000, 10_000, 10_000, 1_000_000] * 3


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_spec_with_a_wrong_key_is_refused(name: str) -> None:
    text = (resources.folder("specs") / f"{name}.yaml").read_text(encoding="utf-8")
    with pytest.raises(SpecError, match="unknown key 'hiden_size'"):
        compile_text(text.replace("hidden_size:", "hiden_size:", 1))
