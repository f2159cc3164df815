"""Twists of dense models: sizes counted by hand, and figures that transformers and torch give."""

from __future__ import annotations

from math import pi

import pytest
import torch
from torch import nn
from transformers import AutoConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.hunyuan_v1_dense.modeling_hunyuan_v1_dense import HunYuanDenseV1RotaryEmbedding

from archc.analysis.flops import AllKeys
from archc.analysis.report import Report, build_report
from archc.architecture import Architecture, compile_text
from archc.codegen import UngeneratedError, generate
from archc.importing.convert import convert
from archc.importing.resolve import UnknownModelError
from archc.parts.attention import Attention
from archc.parts.attention_sections import QueryScaleFields
from archc.spec.diagnostics import SpecError

# Per layer: q 10 → 16 (4 heads of 4), k and v 8 each (2 heads), o back to 10; three matrices of 10 × 6; two norms.
WIDTH, HEADS, KV_HEADS, HEAD_DIM, CONTEXT = 10, 4, 2, 4, 16
SPEC = """\
archc: 1
name: twisted
vocab_size: 20
hidden_size: 10
context: 16
dtype: bfloat16
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-5}
position: {kind: rope, base: 10000}
attention: {heads: 4, kv_heads: 2, head_dim: 4}
ffn: {kind: gated, activation: silu, width: 6}
layers: 1
"""
FFN = 3 * WIDTH * 6
PLAIN = 20 * WIDTH + WIDTH * 16 + 2 * WIDTH * 8 + 16 * WIDTH + FFN + 3 * WIDTH


def built(*changes: str) -> Architecture:
    return compile_text(SPEC, overrides=changes).architecture


def sized(*changes: str) -> Report:
    return build_report(built(*changes), context=CONTEXT)


def codes(*changes: str) -> set[str]:
    with pytest.raises(SpecError) as caught:
        built(*changes)
    return {diagnostic.code for diagnostic in caught.value.diagnostics}


def test_plain() -> None:
    assert sized()["params"]["total"] == PLAIN


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ("attention.output_norm=true", HEADS * HEAD_DIM),
        ("attention.differential=true", 4 * HEAD_DIM),
        ("attention.sinks=sigmoid", HEADS),
        ("attention.dynamic_mask={keep: 3}", KV_HEADS + KV_HEADS * KV_HEADS * HEAD_DIM),
        ("attention.dynamic_mask={keep: 3, bias: true}", 2 * KV_HEADS + KV_HEADS * KV_HEADS * HEAD_DIM),
        ("attention.query_scale={form: steps, strength: 0.1, length: 8}", 0),
        ("ffn.inner_norm=true", 6),
        ("ffn.activation=xielu", 2),
        ("residual.learned=stream", 2 * WIDTH),
        ("residual.layer_scalar=true", 0),
        ("embedding.norm=true", WIDTH),
        ("embedding.segments=3", 3 * WIDTH),
        ("logits.transform={activation: gelu, bias: true}", WIDTH * WIDTH + 2 * WIDTH),
        ("logits.bias=true", 20),
        ("position.direction=backward", 0),
    ],
)
def test_what_a_twist_adds(change: str, more: int) -> None:
    assert sized(change)["params"]["total"] == PLAIN + more


def test_buffers_beside_the_parameters() -> None:
    """Two constants of xIELU, and a number for a layer's output."""
    assert sized()["params"]["stored_buffers"] == 0
    assert sized("ffn.activation=xielu")["params"]["stored_buffers"] == 2
    assert sized("residual.layer_scalar=true")["params"]["stored_buffers"] == 1


def test_a_head_of_fewer_tokens() -> None:
    untied = sized("embedding.tied=false")["params"]
    assert untied["head"] == 20 * WIDTH
    assert sized("embedding.tied=false", "logits.vocab_size=7")["params"]["head"] == 7 * WIDTH


def test_an_adaptive_head_is_as_large_as_torchs() -> None:
    reference = nn.AdaptiveLogSoftmaxWithLoss(WIDTH, 20, cutoffs=[4, 9], div_value=2.0, head_bias=True)
    size = sum(parameter.numel() for parameter in reference.parameters())
    adaptive = "logits.adaptive={frequent: 4, clusters: [5, 11], division: 2}"
    params = sized("embedding.tied=false", "logits.bias=true", adaptive)["params"]
    assert params["head"] == size
    other = sized("embedding.tied=false", "logits.bias=true", adaptive.replace("division: 2", "division: 3"))["params"]
    assert other["head"] != size


@pytest.mark.parametrize(
    ("change", "square"),
    [
        ("attention.differential=false", 2 * HEADS * (HEAD_DIM + HEAD_DIM)),
        ("attention.differential=true", 2 * HEADS * (HEAD_DIM + 2 * HEAD_DIM)),
    ],
)
def test_differential_maps_weigh_the_values_of_both_heads(change: str, square: int) -> None:
    (mixer, _) = built(change).layers[0].parts()
    assert mixer.mixing_flops(AllKeys(1)) == square


def test_a_dynamic_mask_bounds_the_keys() -> None:
    """The last token meets 3 of 16 keys, and every token projects 8 numbers onto 2."""
    plain, masked = sized()["flops"], sized("attention.dynamic_mask={keep: 3}")["flops"]
    spared = 2 * HEADS * 2 * HEAD_DIM * (CONTEXT - 3)
    projected = 2 * KV_HEADS * KV_HEADS * HEAD_DIM
    assert masked["decode_per_token"] == plain["decode_per_token"] - spared + projected


def test_product_keys_by_hand() -> None:
    """50 experts on 7 × 7 keys: rows for 7 and 7, of the width of the stream, and two rows of each expert."""
    pool = "ffn={kind: product_keys, activation: silu, width: 6, experts: 50, top_k: 5}"
    report = sized(pool)
    router = 14 * WIDTH
    assert report["params"]["total"] == PLAIN + router + 2 * 50 * WIDTH
    assert report["params"]["active"] == PLAIN + router + 2 * 5 * WIDTH
    assert report["params"]["router"] == router
    (_, ffn) = built(pool).layers[0].parts()
    assert ffn.linear_flops() == 2 * (FFN + router + 2 * 5 * WIDTH)
    assert codes(pool.replace("top_k: 5", "top_k: 50")) == {"E204"}


def test_a_copied_cache_is_larger_in_the_reference_alone() -> None:
    rows = KV_HEADS * 2 * HEAD_DIM * CONTEXT
    plain, copied = sized()["kv_cache"], sized("attention.reference_heads=heads")["kv_cache"]
    assert plain["reference_elements_at_context"] == rows
    assert copied["reference_elements_at_context"] == 2 * rows
    assert copied["bytes_at_context"] == plain["bytes_at_context"]


def test_heads_pair_up_for_differential_attention() -> None:
    assert codes("attention.differential=true", "attention.kv_heads=1") == {"E201"}


def test_an_ntk_alpha_base_turns_as_transformers_does() -> None:
    config = AutoConfig.for_model(
        "hunyuan_v1_dense",
        head_dim=16,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "alpha": 1000.0, "factor": 1.0},
    )
    reference, _ = HunYuanDenseV1RotaryEmbedding.compute_ntk_alpha_rope_parameters(config)
    assert frequencies("position.scaling={kind: ntk_alpha, alpha: 1000}", 16) == pytest.approx(reference.tolist())
    assert frequencies("position.scaling={kind: ntk_alpha, alpha: 10}", 16) != pytest.approx(reference.tolist())


@pytest.mark.parametrize("share", [0.25, 0.3, 1.0])
def test_proportional_pairs_turn_as_in_transformers(share: float) -> None:
    config = AutoConfig.for_model(
        "llama",
        head_dim=32,
        rope_parameters={
            "rope_type": "proportional",
            "rope_theta": 10000.0,
            "partial_rotary_factor": share,
            "factor": 4.0,
        },
    )
    reference, _ = ROPE_INIT_FUNCTIONS["proportional"](config, torch.device("cpu"))
    found = frequencies(f"position.scaling={{kind: proportional, share: {share}, factor: 4}}", 32)
    assert found == pytest.approx(reference.tolist())


def frequencies(change: str, head_dim: int) -> list[float]:
    mixer = built(change, f"attention.head_dim={head_dim}").layers[0].mixer
    assert mixer is not None
    assert mixer.rope is not None
    return mixer.rope.frequencies()


def test_pairs_that_stand_still_have_no_period() -> None:
    """Of 16 pairs of 32 channels, 4 turn; the slowest of them by 10000^(-6/32)."""
    rope = sized("position.scaling={kind: proportional, share: 0.25}", "attention.head_dim=32")["rope"]
    assert rope["pairs"] == 4
    assert rope["slowest_period"] == pytest.approx(2 * pi * 10000 ** (6 / 32))
    assert codes("position.scaling={kind: proportional, share: 0.25}") == {"E206"}  # half a pair of 4 channels


@pytest.mark.parametrize(
    "change",
    [
        "attention.sinks=projected",
        "norm.gate_rank=4",
        "residual.target=layer_end",
    ],
)
def test_what_cannot_be_printed_is_refused_by_name(change: str) -> None:
    with pytest.raises(UngeneratedError, match=change.partition("=")[0]):
        generate(built(change))
    generate(built())


def test_a_config_states_its_temperature() -> None:
    """ministral3: 1 + 0.1·ln(1 + floor(p / 16384)), from the class's default rope_parameters."""
    text = convert({"model_type": "ministral3"}, "ministral3").text
    part = compile_text(text).architecture.layers[0].mixer
    assert isinstance(part, Attention)
    assert part.query_scale == QueryScaleFields(form="steps", strength=0.1, length=16384)


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"model_type": "falcon", "multi_query": False, "num_kv_heads": 8}, "num_kv_heads"),
        ({"model_type": "bitnet", "head_dim": 64}, "hidden_size"),
    ],
)
def test_configs_that_their_class_cannot_run_are_refused(config: dict[str, object], why: str) -> None:
    with pytest.raises(UnknownModelError, match=why):
        convert(config, "broken")


def test_a_table_of_a_single_distance_is_refused() -> None:
    """Its class adds the one number to all keys, and so tells no distances apart."""
    with pytest.raises(UnknownModelError, match="max_seq_len is 1"):
        convert({"model_type": "mpt", "max_seq_len": 1}, "short")
    convert({"model_type": "mpt", "max_seq_len": 2}, "short")


def test_distances_that_count_twice_are_undeclared() -> None:
    """falcon adds alibi with its mask and with its scores (models/falcon/modeling_falcon.py, FalconModel.forward)."""
    (text,) = compile_text(convert({"model_type": "falcon", "alibi": True}, "twice").text).architecture.undeclared
    assert "bfloat16" in text
    assert "twice" in text
    assert not compile_text(convert({"model_type": "falcon"}, "once").text).architecture.undeclared


def test_a_tied_head_scores_every_token() -> None:
    """apertus1p5 ties its head to the whole embedding, also where the config names fewer tokens."""
    config = {"model_type": "apertus1p5_text", "vocab_size": 90, "output_vocab_size": 70, "hidden_size": 64}
    for tied, scored in ((True, 90), (False, 70)):
        text = convert({**config, "tie_word_embeddings": tied}, "scored").text
        assert compile_text(text).architecture.head.vocab_size == scored
