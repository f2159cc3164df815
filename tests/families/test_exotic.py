"""Streams, passes and per-layer vectors: sizes counted by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from archc.analysis.report import build_report
from archc.architecture import Architecture, compile_text
from archc.importing.convert import convert
from archc.importing.resolve import UnknownModelError
from archc.parts.caches import FullCache, LatentCache, MaskedCache, ReachCache
from archc.spec.diagnostics import SpecError

D, V = 8, 20
HEADER = {
    "archc": 1,
    "name": "exotic",
    "vocab_size": V,
    "hidden_size": D,
    "context": 64,
    "dtype": "bfloat16",
    "embedding": {"tied": True},
    "norm": {"kind": "rmsnorm", "eps": 1e-5},
    "position": {"kind": "none"},
    "layers": 1,
}
ATTENTION = {"heads": 2, "kv_heads": 1, "head_dim": 4}
ATTENTION_SIZE = 4 * D * 4 + 2 * D * 4
FFN = {"kind": "mlp", "width": 5, "activation": "gelu"}
FFN_SIZE = 2 * D * 5
NORM = D


def built(**sections: Any) -> Architecture:
    return compile_text(json.dumps({**HEADER, **sections})).architecture


def total(architecture: Architecture) -> int:
    """Parameters without the token table."""
    return build_report(architecture, context=10)["params"]["total"] - V * D


def test_every_layer_is_given_a_vector_of_each_token() -> None:
    block = [{"ffn": FFN}, {"ffn": {"kind": "token_row", "activation": "gelu"}, "norm": {"placement": "post"}}]
    embedding = {"tied": True, "per_layer": {"width": 3, "rows": 11}}
    found = built(embedding=embedding, block=block, layers=2)
    table, projection, shared_norm = 11 * 2 * 3, 2 * 3 * D, 3
    layer = NORM + FFN_SIZE + 2 * 3 * D + NORM
    assert total(found) == table + projection + shared_norm + 2 * layer + NORM
    params = build_report(found, context=10)["params"]
    assert params["embedding"] == V * D + table


def test_a_vector_that_is_not_there_cannot_be_read() -> None:
    with pytest.raises(SpecError, match="per_layer"):
        built(block=[{"ffn": {"kind": "token_row", "activation": "gelu"}}])


@pytest.mark.parametrize(
    ("streams", "branch", "layer", "model"),
    [
        # of three streams: router, its norm, guesses, corrections, a vector; matrices for two streams at both ends
        ({"kind": "altup", "count": 3}, 0, 3 * D + D + 9 * 3 + 3 * 3 + D, 4 * D * D),
        # a norm of three streams, a gate of rank 2, writing; at the end no writing
        ({"kind": "gated", "count": 3, "rank": 2}, 3 * D * (1 + 2 + 2 + 3), 0, 3 * D * (1 + 2 + 2)),
        # a query
        ({"kind": "depths", "layers": 2}, D, 0, D),
        # the final norm is twice as wide
        ({"kind": "reversible"}, 0, 0, NORM + V * 2 * D),
    ],
)
def test_parameters_of_streams(streams: dict[str, Any], branch: int, layer: int, model: int) -> None:
    sections = {"attention": ATTENTION, "ffn": FFN, "layers": 3, "embedding": {"tied": streams["kind"] != "reversible"}}
    alone, together = built(**{**sections, "embedding": {"tied": True}}), built(**sections, streams=streams)
    assert total(together) - total(alone) == 3 * (2 * branch + layer) + model


def test_three_inputs_are_mixed_apart() -> None:
    streams = {"kind": "depths", "layers": 2}
    one = built(attention=ATTENTION, ffn=FFN, streams=streams)
    three = built(attention={**ATTENTION, "inputs": "three"}, ffn=FFN, streams=streams)
    assert total(three) - total(one) == 2 * D + 2 * NORM


def test_what_reads_one_stream_cannot_read_all() -> None:
    with pytest.raises(SpecError, match="reads streams"):
        built(streams={"kind": "gated", "count": 3, "rank": 2}, block=[{"attention": ATTENTION, "reads": "streams"}])


def band(kv: str) -> Architecture:
    """Two passes through a layer, of which the first keeps its keys and values or does not."""

    def layer(**attention: Any) -> dict[str, Any]:
        branches = [{"attention": {**ATTENTION, **attention}, "shared": "a"}, {"ffn": FFN, "shared": "b"}]
        return {"block": branches}

    layers = {"count": 2, "kinds": {"first": layer(kv=kv), "last": layer()}, "pattern": "first, last"}
    return built(passes={"kind": "restart", "first": 0, "layers": 1, "times": 2}, layers=layers)


def test_a_pass_costs_operations_and_cache_but_no_parameters() -> None:
    kept, not_kept = band("own"), band("not_kept")
    assert total(kept) == total(not_kept) == 2 * NORM + ATTENTION_SIZE + FFN_SIZE + NORM
    caches = [build_report(found, context=10)["kv_cache"]["bytes_at_context"] for found in (kept, not_kept)]
    assert caches == [2 * 10 * 2 * 4 * 2, 10 * 2 * 4 * 2]
    flops = [build_report(found, context=10)["flops"]["forward_per_token"] for found in (kept, not_kept)]
    once = build_report(built(attention=ATTENTION, ffn=FFN), context=10)["flops"]["forward_per_token"]
    head = 2 * V * D
    assert flops == [2 * (once - head) + head] * 2


def test_caches_of_convolved_and_bucketed_attention() -> None:
    convolved = {"kind": "convolved", **ATTENTION, "channel_kernel": 3, "head_kernel": 2}
    (part,) = built(attention=convolved, ffn=None).parts()
    assert part.caches() == (FullCache(2 * 4), ReachCache(12, 3), ReachCache(2, 1))
    bucketed = {"kind": "bucketed", "heads": 2, "head_dim": 4, "chunk": 5}
    for sorted_by, cache in (("hash", LatentCache(D)), ("position", MaskedCache(D, 10))):
        (part,) = built(attention={**bucketed, "sorted_by": sorted_by}, ffn=None).parts()
        assert part.caches() == (cache,)


def test_biases_by_bucket_are_one_table() -> None:
    position = {"kind": "buckets", "buckets": 6, "max_distance": 9, "segments": 3}
    plain, biased = (built(attention=ATTENTION, ffn=FFN, layers=3, position=p) for p in (HEADER["position"], position))
    assert total(biased) - total(plain) == (6 + 3 * 3) * 2


def test_gemma_4_26b_a4b() -> None:
    """26 B parameters of which 4 B are active, as its name says."""
    moe = {"enable_moe_block": True, "num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704}
    sizes = {"hidden_size": 2816, "intermediate_size": 2112, "num_attention_heads": 16, "num_key_value_heads": 8}
    full = {"attention_k_eq_v": True, "num_global_key_value_heads": 2, "hidden_size_per_layer_input": 0}
    config = {"model_type": "gemma4_text", "num_hidden_layers": 30, **moe, **sizes, **full}
    params = build_report(compile_text(convert(config, "gemma").text).architecture, context=10)["params"]
    assert round(params["total"] / 1e9) in (25, 26)
    assert 3.5e9 < params["active"] < 4.5e9


def test_blt_is_refused_with_the_reason() -> None:
    with pytest.raises(UnknownModelError, match="patch of bytes"):
        convert({"model_type": "blt"}, "blt")
