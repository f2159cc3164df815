"""Parameters: against published counts, against Hugging Face's classes, and counted by hand."""

import pytest

from archc.analysis import build_report
from archc.analysis.claims import figure
from archc.architecture import compile_spec, compile_text
from tests.analysis.specs import ATTENTION, FFN, MIXTURE, NORMS, PLAIN, WINDOWED
from tests.tiny import TINY, Tiny

# Spec and changes, key, figure, relative tolerance, and who says so.
PUBLISHED = [
    ("gpt2", "params.total", 124_439_808, 0.0, "openai-community/gpt2, counted from the checkpoint"),
    ("smollm2-135m", "params.total", 134_515_008, 0.0, "SmolLM2 model card: 135M; counted from the checkpoint"),
    ("smollm2-135m attention.kv_heads=9", "params.total", 147.8e6, 0.001, "heads copied out on the trained model"),
    ("llama3-8b", "params.total", 8_030_261_248, 0.0, "Llama 3 model card: 8.03B"),
    ("mixtral-8x7b", "params.total", 46.70e9, 0.002, "Jiang et al. 2024: 47B"),
    ("mixtral-8x7b", "params.active", 12.88e9, 0.005, "Jiang et al. 2024: 13B active"),
    ("qwen3-30b-a3b", "params.active", 3.35e9, 0.005, "Qwen3 model card: 3.3B activated"),
    ("qwen3-30b-a3b", "moe.expert_share", 0.95, 0.01, "Qwen3 technical report: 128 experts of 768 in 48 layers"),
    ("qwen3-30b-a3b", "params.total_without_embeddings", 29.9e9, 0.002, "Qwen3 model card: 29.9B non-embedding"),
    ("qwen3-0.6b", "params.total_without_embeddings", 0.44e9, 0.01, "Qwen3 model card: 0.44B non-embedding"),
    ("llama3-8b", "block.ffn_share", 176_160_768 / 218_112_000, 1e-9, "3·4096·14336 of a block, by hand"),
    ("smollm2-135m", "block.ffn_share", 0.75, 0.005, "3·576·1536 of a block, by hand"),
    ("gpt2", "block.ffn_share", 2 / 3, 0.01, "8d² of 12d²"),
    ("llama3-8b attention.kv_heads=32", "block.ffn_share", 0.724, 0.005, "the same with full heads, by hand"),
]


@pytest.mark.parametrize(("target", "key", "value", "within", "source"), PUBLISHED)
def test_published_figure(target: str, key: str, value: float, within: float, source: str) -> None:
    name, *changes = target.split()
    derived = figure(build_report(compile_spec(name, changes).architecture), key)
    assert derived == pytest.approx(value, rel=within, abs=0), source


def test_share_of_blocks_is_not_that_of_the_model() -> None:
    """The twin of the shares above: with the ends in the whole they would not hold."""
    report = build_report(compile_spec("llama3-8b").architecture)
    assert report["params"]["ffn"] / report["params"]["total"] == pytest.approx(0.702, abs=0.001)
    assert report["block"]["ffn_share"] > 0.8


@pytest.mark.parametrize("tiny", TINY, ids=lambda tiny: tiny.name)
def test_counts_what_transformers_counts(tiny: Tiny) -> None:
    model = tiny.model()
    stored = {name: weight.numel() for name, weight in model.named_parameters()}
    params = build_report(compile_text(tiny.text()).architecture)["params"]
    assert params["total"] == model.num_parameters()
    assert params["embedding"] == model.get_input_embeddings().weight.numel()
    assert params["norm"] == sum(size for name, size in stored.items() if "norm" in name or "ln_" in name)
    assert params["head"] == stored.get("lm_head.weight", 0)


def test_by_hand() -> None:
    params = build_report(compile_text(PLAIN).architecture)["params"]
    assert params == {
        "total": 2 * 20 * 10 + 2 * (ATTENTION + FFN + NORMS) + 10,
        "active": 2 * 20 * 10 + 2 * (ATTENTION + FFN + NORMS) + 10,
        "total_without_embeddings": 2 * (ATTENTION + FFN + NORMS) + 10,
        "active_without_embeddings": 2 * (ATTENTION + FFN + NORMS) + 10,
        "embedding": 200,
        "head": 200,
        "attention": 2 * ATTENTION,
        "ffn": 2 * FFN,
        "router": 0,
        "norm": 2 * NORMS + 10,
        "position": 0,
        "other": 0,
        "stored_buffers": 0,
    }


def test_block_shares_by_hand() -> None:
    whole = ATTENTION + FFN + NORMS
    assert build_report(compile_text(PLAIN).architecture)["block"] == {
        "ffn_share": FFN / whole,
        "attention_share": ATTENTION / whole,
    }


def test_routers_belong_to_the_feed_forward() -> None:
    second_stage = 5 * FFN + 5 * 10
    share = build_report(compile_text(MIXTURE).architecture)["block"]["ffn_share"]
    assert share == second_stage / (ATTENTION + second_stage + NORMS)


def test_a_tied_head_counts_once() -> None:
    untied = build_report(compile_text(PLAIN).architecture)["params"]
    tied = build_report(compile_text(PLAIN, overrides=["embedding.tied=true"]).architecture)["params"]
    assert (untied["head"], tied["head"]) == (200, 0)
    assert untied["total"] - tied["total"] == 200


def test_experts_by_hand() -> None:
    report = build_report(compile_text(MIXTURE).architecture)
    params, moe = report["params"], report["moe"]
    assert moe == {
        "experts": 5,
        "top_k": 2,
        "expert_params": 2 * 5 * FFN,
        "params_per_expert": FFN,
        "expert_share": 2 * 5 * FFN / params["total"],
    }
    assert params["router"] == 2 * 5 * 10
    assert params["total"] - params["active"] == 2 * 3 * FFN  # three of five experts rest, in both layers


def test_a_shared_expert_is_always_active() -> None:
    shared = MIXTURE.replace("activation: silu, router", "activation: silu, shared: {width: 4}, router")
    params = build_report(compile_text(shared).architecture)["params"]
    moe = build_report(compile_text(shared).architecture)["moe"]
    assert params["ffn"] == 2 * (5 * FFN + 3 * 10 * 4)
    assert params["total"] - params["active"] == 2 * 3 * FFN
    assert moe["expert_params"] == 2 * 5 * FFN


def test_a_dense_model_has_no_experts() -> None:
    assert "moe" not in build_report(compile_text(PLAIN).architecture)


def test_a_learned_table_of_positions_is_counted_apart() -> None:
    learned = compile_text(PLAIN.replace("{kind: rope, base: 10000}", "{kind: learned}")).architecture
    params = build_report(learned)["params"]
    assert params["position"] == 16 * 10
    assert params["total_without_embeddings"] == 2 * (ATTENTION + FFN + NORMS) + 10


@pytest.mark.parametrize("text", [PLAIN, MIXTURE, WINDOWED])
def test_groups_add_up(text: str) -> None:
    params = build_report(compile_text(text).architecture)["params"]
    groups = ("embedding", "head", "attention", "ffn", "router", "norm", "position", "other")
    assert sum(params[group] for group in groups) == params["total"]  # type: ignore[literal-required]
