"""Designs that no shipped spec has: what the language can combine must all be printed, formatted and run."""

from __future__ import annotations

from archc.architecture import Architecture, compile_text

BASE = """
archc: 1
name: combination
vocab_size: 211
hidden_size: 72
context: 64
dtype: float32
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 3.0e-3}
position: {kind: rope, base: 5300}
attention: {heads: 6, kv_heads: 2, head_dim: 16}
ffn: {kind: gated, activation: silu, width: 100}
layers: 2
"""
YARN = "{kind: yarn, factor: 3, original_context: 30, beta_fast: 5, beta_slow: 0.5}"
LLAMA3 = "{kind: llama3, factor: 5, original_context: 24, low_freq_factor: 0.7, high_freq_factor: 3.1}"
DYNAMIC = "{kind: dynamic, factor: 3, original_context: 100}"
MOE = "{kind: moe, experts: 5, top_k: 2, width: 44, activation: silu, router: {score: softmax, renormalize: true}}"
SHARED = (
    "{kind: moe, experts: 7, top_k: 3, width: 44, activation: gelu_tanh, shared: {width: 60, gate: sigmoid}, "
    "router: {score: sigmoid, order: top_k_then_score, renormalize: true, scale: 2.5}}"
)


def longrope(original_context: int) -> str:
    """LongRoPE for heads of 16 channels."""
    divisors = ", ".join(str(1 + pair / 4) for pair in range(8))
    return (
        f"{{kind: longrope, original_context: {original_context}, factor: 3.7, "
        f"short_factors: [{divisors}], long_factors: [{divisors}]}}"
    )


def layers(pattern: str, **kinds: str) -> str:
    """Layers of several kinds, as an override."""
    counted = [(int(term.split("*")[0]) if "*" in term else 1) for term in pattern.split(",")]
    listed = ", ".join(f"{name}: {fields or 'null'}" for name, fields in kinds.items())
    return f'layers={{count: {sum(counted)}, kinds: {{{listed}}}, pattern: "{pattern}"}}'


COMBINATIONS: dict[str, tuple[str, ...]] = {
    "no-positions": ("position=null",),
    "learned": ("position={kind: learned}",),
    "one-head": ("attention={heads: 1, kv_heads: 1, head_dim: 30}",),
    "multi-query": ("attention.kv_heads=1",),
    "multi-head": ("attention.kv_heads=6",),
    "interleaved": ("position.pairing=interleaved",),
    "interleaved-partial": ("position.pairing=interleaved", "position.partial=0.5"),
    "half-partial": ("position.partial=0.5",),
    "dynamic": (f"position.scaling={DYNAMIC}",),
    "longrope-short": (f"position.scaling={longrope(64)}",),
    "attention-factor": (f"position.scaling={YARN}", "position.scaling.attention_factor=1.3"),
    "yarn-without-factor": (f"position.scaling={YARN}", "position.scaling.attention_factor=1"),
    "tiled": ("attention.grouping=tiled",),
    "tiled-softcap": ("attention.grouping=tiled", "attention.softcap=20"),
    "softcap-multi-head": ("attention.kv_heads=6", "attention.softcap=20"),
    "some-biases": ("attention.bias=[q, o]",),
    "window-of-one": ("attention.window=1",),
    "window-and-table": ("attention.window=5", "position={kind: learned}"),
    "qk-width-before": ("attention.qk_norm={over: width}",),
    "qk-width-after": ("attention.qk_norm={over: width, order: after_rope}",),
    "qk-head-after": ("attention.qk_norm={over: head, order: after_rope, eps: 1.0e-6}",),
    "qk-after-nothing": ("attention.qk_norm={over: width, order: after_rope}", "position=null"),
    "qk-layernorm": ("attention.qk_norm={over: head, kind: layernorm, bias: true, weight: one_plus}",),
    "qk-weightless": ("attention.qk_norm={over: head, weight: none, eps: 1.0e-6}",),
    "post": ("norm.placement=post",),
    "sandwich": ("norm.placement=sandwich",),
    "parallel": ("norm.placement=parallel",),
    "parallel-scaled": ("norm.placement=parallel", "residual={stream: 0.9, branch: 1.3}"),
    "residual": ("residual={stream: 0.9, branch: 1.3}",),
    "residual-branch": ("residual.branch=0.22",),
    "layernorm": ("norm.kind=layernorm",),
    "layernorm-one-plus": ("norm={kind: layernorm, weight: one_plus, bias: true}",),
    "layernorm-weightless": ("norm={kind: layernorm, weight: none, placement: sandwich}",),
    "layernorm-bias-alone": ("norm={kind: layernorm, weight: none, bias: true}",),
    "rmsnorm-biased": ("norm.bias=true",),
    "rmsnorm-one-plus-biased": ("norm={weight: one_plus, bias: true}",),
    "rmsnorm-weightless": ("norm.weight=none",),
    "mlp": ("ffn={kind: mlp, activation: relu2, width: 90, bias: true}",),
    "gated-biased": ("ffn={kind: gated, activation: gelu, width: 90, bias: true}",),
    "experts": (f"ffn={MOE}",),
    "experts-one": (f"ffn={MOE}", "ffn.top_k=1"),
    "experts-all": (f"ffn={MOE}", "ffn.top_k=5"),
    "experts-plain": (f"ffn={MOE}", "ffn.gated=false", "ffn.activation=relu2"),
    "experts-shared": (f"ffn={SHARED}",),
    "experts-shared-plain": (f"ffn={SHARED}", "ffn.gated=false", "ffn.shared.gate=none"),
    "experts-parallel": (f"ffn={SHARED}", "norm.placement=parallel"),
    "sigmoid-score-first": (f"ffn={MOE}", "ffn.router={score: sigmoid, renormalize: false}"),
    "tied": ("embedding.tied=true",),
    "tied-bias": ("embedding.tied=true", "logits={bias: true, scale: 0.3, softcap: 20}"),
    "untied-bias": ("logits={bias: true, scale: 0.3}", "embedding.scale=sqrt(hidden_size)"),
    "logits-softcap": ("logits.softcap=20", "embedding.scale=3.7"),
    "nope-every-other": (layers("roped, bare, roped", roped="", bare="{position: null}"),),
    "nope-norms": (
        layers("roped, bare", roped="", bare="{position: null, attention: {qk_norm: {over: head}}}"),
        "attention.qk_norm={over: width, order: after_rope}",
    ),
    "heads-per-kind": (
        layers(
            "2*local, global, local",
            local="{attention: {window: 5}, position: {base: 700}}",
            **{"global": "{attention: {kv_heads: 3, head_dim: 24}}"},
        ),
        "attention.qk_norm={over: head}",
    ),
    "heads-per-kind-capped": (
        layers("local, global", local="{attention: {kv_heads: 6}}", **{"global": "{attention: {grouping: tiled}}"}),
        "attention.softcap=20",
    ),
    "pairing-per-kind": (
        layers("a, b, c", a="", b="{position: {pairing: interleaved}}", c="{position: {partial: 0.5}}"),
    ),
    "scaling-per-kind": (
        layers(
            "plain, linear, llama3, yarn, dynamic, longrope",
            plain="",
            linear="{position: {scaling: {kind: linear, factor: 2}}}",
            llama3=f"{{position: {{scaling: {LLAMA3}}}}}",
            yarn=f"{{position: {{scaling: {YARN}, base: 700}}}}",
            dynamic=f"{{position: {{scaling: {DYNAMIC}}}}}",
            longrope=f"{{position: {{scaling: {longrope(64)}}}}}",
        ),
    ),
    "same-scaling-per-kind": (
        layers("local, global", local="{position: {base: 700}}", **{"global": ""}),
        f"position.scaling={YARN}",
    ),
    "dense-and-experts": (
        layers("dense, 2*sparse", dense="{ffn: {kind: gated, width: 100}}", sparse=""),
        f"ffn={SHARED}",
    ),
    "two-mixtures": (
        layers("few, many, few", few="{ffn: {experts: 4, top_k: 1}}", many="{ffn: {experts: 9, width: 28}}"),
        f"ffn={SHARED}",
    ),
    "mixtures-and-dense": (
        layers("few, many, dense", few="{ffn: {experts: 4}}", many="", dense="{ffn: {kind: mlp, width: 90}}"),
        f"ffn={MOE}",
    ),
    "two-feed-forwards": (layers("wide, narrow", wide="{ffn: {width: 140}}", narrow="{ffn: {activation: relu}}"),),
    "placement-per-kind": (
        layers(
            "pre, post, both, beside",
            pre="",
            post="{norm: {placement: post, eps: 1.0e-4}}",
            both="{norm: {placement: sandwich, kind: layernorm, eps: 1.0e-6}, residual: {branch: 0.5}}",
            beside="{norm: {placement: parallel, weight: one_plus}}",
        ),
    ),
    "names-that-are-keywords": (
        layers(
            "class, for, lambda",
            **{
                "class": "{attention: {window: 5}}",
                "for": "{position: {base: 700, pairing: interleaved}}",
                "lambda": "{ffn: {kind: mlp, width: 90}}",
            },
        ),
    ),
    "names-of-other-things": (
        layers(
            "model, cache, tensor, experts, rope, head, none",
            model="",
            cache="{attention: {window: 5}}",
            tensor="{position: {base: 700}}",
            experts=f"{{ffn: {MOE}}}",
            rope="{position: {partial: 0.5}}",
            head="{attention: {head_dim: 24}}",
            none="{position: null}",
        ),
    ),
    "names-that-collide": (
        layers(
            "a_1, a1, a__1, a_",
            a_1="{attention: {heads: 8}}",
            a1="{attention: {heads: 4}}",
            a__1="{ffn: {width: 60}}",
            a_="{ffn: {kind: mlp, width: 60}}",
        ),
    ),
    "names-that-collide-as-classes": (  # A1Attention twice
        layers(
            "a_1, a1, a_2", a_1="{attention: {heads: 4}}", a1="{attention: {heads: 8}}", a_2="{attention: {heads: 2}}"
        ),
    ),
    "names-that-collide-as-constants": (  # x_ + kv_heads, x_kv_ + heads
        layers(
            "x, kv, x_kv", x="{attention: {heads: 4}}", kv="{attention: {heads: 8}}", x_kv="{attention: {heads: 2}}"
        ),
    ),
    "names-that-collide-as-sums": (
        layers(
            "a+b, a_b, b", a="{attention: {window: 5}}", b="{position: {base: 700}}", a_b="{attention: {window: 9}}"
        ),
    ),
    "sums": (
        layers(
            "chunked+dense, chunked+moe, 2*nope+dense, nope+moe",
            chunked="{attention: {window: 5}}",
            nope="{position: null}",
            dense="",
            moe=f"{{ffn: {MOE}}}",
        ),
    ),
    "long-names": (
        layers(
            "2*" + "a" * 40 + ", " + "b" * 40,
            **{"a" * 40: "{attention: {window: 5, kv_heads: 6}}", "b" * 40: "{position: {base: 700}}"},
        ),
    ),
    "long-sums": (
        layers(
            "+".join(("a" * 40, "b" * 40, "c" * 40)) + ", " + "c" * 40,
            **{"a" * 40: "{attention: {window: 5}}", "b" * 40: "{position: null}", "c" * 40: ""},
        ),
    ),
    "prefixes-of-twelve": (
        layers(
            "abcdefghijkl, bcdefghijklm",
            abcdefghijkl=f"{{ffn: {SHARED}, position: {{partial: 0.5, scaling: {LLAMA3}}}}}",
            bcdefghijklm=f"{{ffn: {SHARED}, position: {{scaling: {YARN}}}, attention: {{grouping: tiled, window: 9}}}}",
        ),
        "attention.softcap=20",
        "attention.qk_norm={over: width, kind: layernorm, eps: 1.2345678e-06, bias: false}",
        "layers.kinds.bcdefghijklm.ffn.experts=9",
        "norm={kind: layernorm, weight: none, placement: sandwich}",
    ),
    "prefixes-of-twelve-tables": (
        layers(
            "abcdefghijkl, bcdefghijklm",
            abcdefghijkl=f"{{position: {{scaling: {longrope(64)}}}}}",
            bcdefghijklm=f"{{position: {{scaling: {DYNAMIC}, pairing: interleaved}}, attention: {{head_dim: 24}}}}",
        ),
        "attention.grouping=tiled",
        "attention.qk_norm={over: head, kind: layernorm, eps: 1.2345678e-06, weight: none}",
    ),
    "many-kinds": (
        layers(
            ", ".join(f"{count}*kind_{count}" for count in range(1, 13)),
            **{f"kind_{count}": f"{{attention: {{window: {count}}}}}" for count in range(1, 13)},
        ),
    ),
}


def combination(name: str) -> Architecture:
    """The Architecture of that combination."""
    return compile_text(BASE, name, COMBINATIONS[name]).architecture
