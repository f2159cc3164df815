"""Random specs of several families: what is exported imports as the spec, and states its numbers."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from archc.architecture import compile_text
from archc.exporting.convert import as_text, export
from archc.exporting.outline import same_model
from archc.importing.convert import convert

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SIZES = st.integers(1, 4000)
EPS = st.floats(1e-12, 1e-2)
BASE = st.floats(2, 1e9)


@st.composite
def shapes(draw: st.DrawFn, *, head_dim: bool = True) -> dict[str, Any]:
    kv_heads = draw(st.integers(1, 6))
    heads = kv_heads * draw(st.integers(1, 4))
    each = 2 * draw(st.integers(1, 40))
    found = {"heads": heads, "kv_heads": kv_heads, "head_dim": each}
    # transformers' classes want hidden_size to be a multiple of the heads, whatever head_dim says
    hidden = heads * (draw(st.integers(1, 40)) if head_dim else each)
    return {"attention": found, "hidden_size": hidden}


def spec(name: str, shape: dict[str, Any], **sections: Any) -> str:
    whole = {
        "archc": 1,
        "name": "random",
        "family": name,
        "vocab_size": 300,
        "context": 500,
        "dtype": "bfloat16",
        "embedding": {"tied": False},
        "layers": 3,
        **sections,
        "hidden_size": shape["hidden_size"],
        "attention": {**shape["attention"], **sections.get("attention", {})},
    }
    return json.dumps(whole)


def there_and_back(text: str) -> dict[str, Any]:
    compiled = compile_text(text)
    config: dict[str, Any] = json.loads(as_text(export(compiled)))
    assert same_model(compile_text(convert(config, "again").text).architecture, compiled.architecture)
    return config


@QUICK
@given(shapes(), EPS, BASE, SIZES, st.sampled_from(["silu", "gelu", "relu2"]), st.booleans())
def test_llama(shape: dict[str, Any], eps: float, base: float, width: int, activation: str, biased: bool) -> None:
    config = there_and_back(
        spec(
            "llama",
            {**shape, "attention": {**shape["attention"], "bias": "all" if biased else "none"}},
            norm={"kind": "rmsnorm", "eps": eps, "placement": "pre"},
            position={"kind": "rope", "base": base},
            ffn={"kind": "gated", "activation": activation, "width": width},
            embedding={"tied": biased},
        )
    )
    assert (config["rms_norm_eps"], config["rope_parameters"]["rope_theta"]) == (eps, base)
    assert (config["intermediate_size"], config["attention_bias"]) == (width, biased)


@QUICK
@given(shapes(), EPS, st.integers(1, 400), st.floats(0.001, 50), st.floats(0.1, 1000), st.integers(1, 7))
def test_gemma2(shape: dict[str, Any], eps: float, window: int, scale: float, cap: float, near: int) -> None:
    kinds = {"near": {"attention": {"window": window}}, "far": {}}
    there_and_back(
        spec(
            "gemma2",
            {**shape, "attention": {**shape["attention"], "scale": round(scale**-2) ** -0.5 if scale < 0.7 else 0.5}},
            norm={"kind": "rmsnorm", "eps": eps, "placement": "sandwich", "weight": "one_plus"},
            embedding={"tied": True, "scale": "sqrt(hidden_size)"},
            position={"kind": "rope", "base": 10000},
            ffn={"kind": "gated", "activation": "gelu_tanh", "width": 90},
            logits={"softcap": cap},
            layers={"count": near + 1, "kinds": kinds, "pattern": f"{near}*near, far"},
        )
    )


@QUICK
@given(shapes(), BASE, st.integers(1, 64), SIZES, st.booleans())
def test_qwen3_moe(shape: dict[str, Any], base: float, experts: int, width: int, renormalize: bool) -> None:
    router = {"score": "softmax", "renormalize": renormalize}
    moe = {"kind": "moe", "experts": experts, "top_k": 1 + experts // 3, "width": width, "activation": "silu"}
    there_and_back(
        spec(
            "qwen3_moe",
            {**shape, "attention": {**shape["attention"], "qk_norm": {"over": "head"}}},
            norm={"kind": "rmsnorm", "eps": 1e-6, "placement": "pre"},
            position={"kind": "rope", "base": base},
            ffn={**moe, "router": router},
        )
    )


@QUICK
@given(shapes(), EPS, st.integers(1, 300) | st.none(), SIZES, st.integers(1, 32))
def test_mixtral(shape: dict[str, Any], eps: float, window: int | None, width: int, experts: int) -> None:
    moe = {"kind": "moe", "experts": experts, "top_k": experts, "width": width, "activation": "silu"}
    attention = {**shape["attention"], **({"window": window} if window else {})}
    there_and_back(
        spec(
            "mixtral",
            {**shape, "attention": attention},
            norm={"kind": "rmsnorm", "eps": eps, "placement": "pre"},
            position={"kind": "rope", "base": 1e6},
            ffn={**moe, "router": {"score": "softmax", "renormalize": True}},
        )
    )


@QUICK
@given(shapes(head_dim=False), EPS, SIZES, st.integers(1, 40))
def test_gpt2(shape: dict[str, Any], eps: float, width: int, layers: int) -> None:
    heads = {"heads": shape["attention"]["heads"], "bias": "all"}
    config = there_and_back(
        spec(
            "gpt2",
            {"hidden_size": shape["hidden_size"], "attention": heads},
            norm={"kind": "layernorm", "eps": eps, "placement": "pre", "bias": True},
            position={"kind": "learned"},
            ffn={"kind": "mlp", "activation": "gelu_tanh", "width": width, "bias": True},
            layers=layers,
        )
    )
    assert (config["n_layer"], config["n_embd"], config["layer_norm_epsilon"]) == (layers, shape["hidden_size"], eps)


@QUICK
@given(shapes(head_dim=False), st.lists(st.floats(1, 60), min_size=2, max_size=2), BASE)
def test_phi3(shape: dict[str, Any], values: list[float], base: float) -> None:
    pairs = shape["attention"]["head_dim"] // 2
    short, long = ([value] * pairs for value in sorted(values))
    scaling = {"kind": "longrope", "short_factors": short, "long_factors": long, "original_context": 64}
    config = there_and_back(
        spec(
            "phi3",
            shape,
            norm={"kind": "rmsnorm", "eps": 1e-5, "placement": "pre"},
            position={"kind": "rope", "base": base, "scaling": scaling},
            ffn={"kind": "gated", "activation": "silu", "width": 90},
        )
    )
    assert config["rope_parameters"]["long_factor"] == long
