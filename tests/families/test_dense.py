"""Facts of plain dense families, worked out by hand from their papers' or transformers' shapes."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any

import pytest

from archc.analysis import build_report
from archc.architecture import compile_text
from archc.architecture.model import Architecture
from archc.families.common import share
from archc.importing.convert import convert
from archc.parts.attention import Attention


def spec_of(config: dict[str, Any]) -> Architecture:
    return compile_text(convert(config, "tiny").text).architecture


def mixers(spec: Architecture) -> list[Attention]:
    found = [layer.mixer for layer in spec.layers]
    assert all(isinstance(mixer, Attention) for mixer in found)
    return [mixer for mixer in found if isinstance(mixer, Attention)]


GPT_NEO: dict[str, Any] = {
    "model_type": "gpt_neo",
    "vocab_size": 211,
    "hidden_size": 60,
    "num_layers": 4,
    "num_heads": 5,
    "window_size": 7,
    "max_position_embeddings": 173,
    "attention_types": [[["global", "local"], 2]],
}


def test_a_window_by_mask_needs_its_rows_and_keeps_them_all() -> None:
    cache = build_report(spec_of(GPT_NEO), context=40)["kv_cache"]
    # Two layers of 2 × 60 fp32 numbers for 40 positions, two for the last 7; the reference keeps 40 in all four.
    assert cache["bytes_at_context"] == 4 * (2 * 120 * 40 + 2 * 120 * 7)
    assert cache["reference_elements_at_context"] == 4 * 120 * 40


def test_logits_of_attention_are_not_scaled() -> None:
    assert [mixer.scale for mixer in mixers(spec_of(GPT_NEO))] == [1.0] * 4


def test_gpt2_scales_by_depth_where_it_is_told_to() -> None:
    config = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 3, "scale_attn_by_inverse_layer_idx": True}
    assert [mixer.scale for mixer in mixers(spec_of(config))] == pytest.approx([1 / 4, 1 / 8, 1 / 12])
    unscaled = mixers(spec_of({**config, "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": False}))
    assert [mixer.scale for mixer in unscaled] == [1.0] * 3


OPT: dict[str, Any] = {
    "model_type": "opt",
    "vocab_size": 211,
    "hidden_size": 60,
    "ffn_dim": 92,
    "num_hidden_layers": 1,
    "num_attention_heads": 5,
    "max_position_embeddings": 173,
    "word_embed_proj_dim": 36,
    "do_layer_norm_before": False,
}


def test_a_narrow_embedding_is_led_in_and_out_and_norms_stand_on_the_stream() -> None:
    spec = spec_of(OPT)
    attention = 4 * (60 * 60 + 60)
    feed_forward = 2 * 60 * 92 + 92 + 60
    ends = 211 * 36 + (173 + 2) * 60 + 2 * 36 * 60
    assert build_report(spec)["params"]["total"] == ends + attention + feed_forward + 2 * 2 * 60
    assert spec.final_norm is None
    assert [(b.pre_norm is None, b.post_norm is None, b.norm_on_sum) for b in spec.layers[0].branches] == [
        (True, False, True),
        (True, False, True),
    ]


def test_the_other_order_has_a_final_norm_and_no_norm_on_the_stream() -> None:
    spec = spec_of({**OPT, "do_layer_norm_before": True})
    assert spec.final_norm is not None
    assert not any(branch.norm_on_sum for branch in spec.layers[0].branches)


def test_sines_are_no_parameters() -> None:
    sizes = {"vocab_size": 211, "num_layers": 1, "d_model": 60, "ffn_dim": 92, "attention_heads": 5}
    spec = spec_of({"model_type": "xglm", **sizes, "max_position_embeddings": 173})
    assert build_report(spec)["params"]["position"] == 0
    assert spec.embedding.scale == sqrt(60)


def test_one_bias_behind_the_last_attention() -> None:
    spec = spec_of(
        {"model_type": "gpt_neox_japanese", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 3}
    )
    assert [mixer.biased for mixer in mixers(spec)] == [(), (), ("o",)]


def test_a_norm_for_each_head() -> None:
    config = {"model_type": "stablelm", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2}
    spec = spec_of({**config, "num_hidden_layers": 1, "qk_layernorm": True})
    shapes = {tensor.name: tensor.shape for tensor in spec.tensors() if "_norm.weight" in tensor.name}
    assert shapes["layers.0.attention.q_norm.weight"] == (4, 16)
    assert shapes["layers.0.attention.k_norm.weight"] == (2, 16)


def test_every_third_layer_without_positions() -> None:
    config = {"model_type": "smollm3", "num_hidden_layers": 6, "no_rope_layer_interval": 3}
    assert [mixer.rope is None for mixer in mixers(spec_of(config))] == [False, False, True] * 2


@pytest.mark.parametrize("whole", [1, 6, 14, 49, 96, 128, 320])
def test_a_share_gives_its_channels_back(whole: int) -> None:
    for part in range(1, whole + 1):
        assert int(whole * share(part, whole)) == part
        assert share(part, whole) == pytest.approx(float(Fraction(part, whole)))
