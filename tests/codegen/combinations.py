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
LONG_FACTORS = "long_factors: [1.5, 2, 2.5, 3, 4, 5, 6, 7]"
MOE = "{kind: moe, experts: 5, top_k: 2, width: 44, activation: silu, router: {score: softmax, renormalize: true}}"
SHARED = (
    "{kind: moe, experts: 7, top_k: 3, width: 44, activation: gelu_tanh, shared: {width: 60, gate: sigmoid}, "
    "router: {score: sigmoid, order: top_k_then_score, renormalize: true, scale: 2.5}}"
)


GROUPS = "groups: {count: 3, chosen: 2, score: top2_sum}"
SUM = "renormalize: true, renormalize_eps: 0.1, renormalize_floor: 0.5"
GLU = "{limit: 1.5, slope: 1.7, gate_softcap: 2, up_softcap: 3, up_shift: 0.5, float32: true}"
FACTORS = "{gate: 1.7, output: 0.8, learned: 5, learned_output: true}"
ROUTED = (
    "{kind: routed, experts: 5, top_k: 3, kv_heads: 2, head_dim: 16, bias: true, "
    "router: {score: softmax, order: top_k_then_score, renormalize: false}}"
)
LATENT = "{kind: mla, heads: 3, q_rank: 34, kv_rank: 26, nope_dim: 18, rope_dim: 8, value_dim: 22}"
LATENT_WITH_ALL = (
    "{kind: mla, heads: 3, q_rank: 34, kv_rank: 26, nope_dim: 18, rope_dim: 8, value_dim: 22, scale: 0.3, window: 9, "
    "bias: [q_down, q_up, kv_down, kv_up, o], latent_norm: {eps: 1.0e-6}, rope_key_norm: {kind: layernorm, bias: true},"
    " q_latent_scale: 1.4, kv_latent_scale: 0.8, q_latent: normed_and_raw, "
    "gate: {over: element, score: softplus, bias: true, source: latent}}"
)
LATENT_DIRECT = (
    "{kind: mla, heads: 3, kv_rank: 26, nope_dim: 18, rope_dim: 8, value_dim: 22, bias: [q, o], "
    "gate: {over: head, score: sigmoid}}"
)


def longrope(original_context: int, *more: str) -> str:
    """LongRoPE for heads of 16 channels, with one table unless `more` has another."""
    divisors = ", ".join(str(1 + pair / 4) for pair in range(8))
    fields = [f"short_factors: [{divisors}]", *more]
    if not any(field.startswith("long_factors") for field in more):
        fields.append(f"long_factors: [{divisors}]")
    return f"{{kind: longrope, original_context: {original_context}, factor: 3.7, {', '.join(fields)}}}"


def layers(pattern: str, **kinds: str) -> str:
    """Layers of several kinds, as an override."""
    counted = [(int(term.split("*")[0]) if "*" in term else 1) for term in pattern.split(",")]
    listed = ", ".join(f"{name}: {fields or 'null'}" for name, fields in kinds.items())
    return f'layers={{count: {sum(counted)}, kinds: {{{listed}}}, pattern: "{pattern}"}}'


COMBINATIONS: dict[str, tuple[str, ...]] = {
    "no-positions": ("position=null",),
    "learned": ("position={kind: learned}",),
    "learned-from-the-third": ("position={kind: learned, offset: 2}", "embedding={tied: true, norm: true}"),
    "sinusoidal": ("position={kind: sinusoidal}",),
    "sinusoidal-blocks": (
        "position={kind: sinusoidal, offset: 2, layout: blocks, slowest: exact}",
        "embedding.scale=sqrt(hidden_size)",
        "embedding.scale_rounded=false",
    ),
    "backward": ("position.direction=backward",),
    "backward-interleaved": ("position={pairing: interleaved, direction: backward, partial: 0.5}",),
    "ntk-alpha": ("position.scaling={kind: ntk_alpha, alpha: 7}",),
    "proportional": ("position.scaling={kind: proportional, share: 0.4, factor: 3}",),
    "proportional-whole": ("position.scaling={kind: proportional}",),
    "longrope-one-table": (f"position.scaling={longrope(64, 'long_attention_factor: 1.3')}",),
    "llama3-without-blend": (f"position.scaling={LLAMA3}", "position.scaling.low_freq_factor=3.1"),
    "one-head": ("attention={heads: 1, kv_heads: 1, head_dim: 30}",),
    "multi-query": ("attention.kv_heads=1",),
    "multi-head": ("attention.kv_heads=6",),
    "interleaved": ("position.pairing=interleaved",),
    "interleaved-partial": ("position.pairing=interleaved", "position.partial=0.5"),
    "half-partial": ("position.partial=0.5",),
    "dynamic": (f"position.scaling={DYNAMIC}",),
    "longrope-short": (f"position.scaling={longrope(64, LONG_FACTORS)}",),
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
    "parallel-separate": ("norm.placement=parallel_separate", "residual={stream: 0.9, branch: 1.3}"),
    "parallel-normed": ("norm.placement=parallel", "residual={carries: normed, branch: 0.8, layer_scalar: true}"),
    "post-sum": ("norm.placement=post_sum", "norm.kind=layernorm", "residual.branch=0.7", "final_norm=false"),
    "carries-normed": ("residual={carries: normed, stream: 0.9}", "norm.placement=sandwich"),
    "by-depth": ("residual={by_depth: true, stream: 0.9, branch: 1.3}", "norm.placement=sandwich"),
    "learned-stream": ("residual={learned: stream, branch: 1.3, by_depth: true}",),
    "learned-both": ("residual={learned: both, learned_scale: 2.5, layer_scalar: true}", "norm.placement=post_sum"),
    "learned-rate": ("residual={learned: rate, learned_scale: 2.5, carries: normed}",),
    "float32-stream": ("residual={float32: true, learned: both}",),
    "parallel-float32": ("residual.float32=true", "norm.placement=parallel", "norm.kind=layernorm", "final_norm=false"),
    "feed-forward-first": ("block=[{ffn: {}}, {attention: {}}]",),
    "without-norms": (
        "block=[{attention: {}, norm: null}, {ffn: {}, norm: null}]",
        "final_norm=false",
        "residual.branch=0.5",
    ),
    "norms-of-their-own": (
        layers(
            "first, other",
            first="{block: [{attention: {}, norm: null}, {ffn: {}, norm: {eps: 1.0e-6}}]}",
            other="{block: [{attention: {}, norm: {placement: post_sum}}, {ffn: {}, norm: {placement: sandwich}}]}",
        ),
    ),
    "sums-of-their-own": (
        "block=[{attention: {}, residual: {learned: rate}}, {ffn: {}, residual: {learned: stream, learned_scale: 3}}]",
        "residual.layer_scalar=true",
    ),
    "single-branches": (
        layers(
            "mixing, feeding, turning, feeding",
            mixing="{ffn: null, position: null}",
            feeding="{attention: null}",
            turning="{ffn: null, attention: {window: 5}}",
        ),
        "residual.by_depth=true",
    ),
    "single-experts": (layers("mixing, feeding", mixing="{ffn: null}", feeding="{attention: null}"), f"ffn={MOE}"),
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
    "grouped-buffer": (f"ffn={MOE}", "ffn.experts=6", f"ffn.router={{correction: buffer, {GROUPS}, {SUM}}}"),
    "grouped-zero": (f"ffn={MOE}", "ffn.experts=6", f"ffn.router={{{GROUPS[:-1]}, others: zero}}, float32: true}}"),
    "grouped-logits": (
        f"ffn={MOE}",
        "ffn.experts=6",
        "ffn.router={order: top_k_then_score, correction: parameter, groups: {count: 3, chosen: 2, score: max}}",
    ),
    "sum-in-float32": (f"ffn={MOE}", f"ffn.router={{{SUM}, renormalize_power: 3, float32: true, bias: true}}"),
    "router-with-all": (f"ffn={MOE}", "ffn.router={norm: true, softcap: 3, expert_scale: true, learned_scale: true}"),
    "root-of-softplus": (f"ffn={MOE}", "ffn.router={score: sqrt_softplus, weighs: input, float32: true}"),
    "sparsemixer": (f"ffn={MOE}", "ffn.router={order: sparsemixer, jitter: 0.4, scale: 2}"),
    "sparsemixer-without-jitter": (f"ffn={MOE}", "ffn.router={order: sparsemixer, renormalize: true}"),
    "experts-biased": (f"ffn={MOE}", "ffn.bias=experts", "ffn.activation=gelu_tanh"),
    "experts-biased-plain": (f"ffn={MOE}", "ffn.bias=experts", "ffn.activation=gelu_tanh", "ffn.gated=false"),
    "experts-bias-on-sum": (f"ffn={SHARED}", "ffn.bias=sum", "ffn.shared={bias: true, combine: average}"),
    "glu-of-experts": (f"ffn={SHARED}", f"ffn.glu={GLU}", f"ffn.shared.glu={GLU}", "ffn.activation=silu"),
    "glu-in-float32": (f"ffn={SHARED}", "ffn.glu={float32: true}", "ffn.bias=experts"),
    "glu": (f"ffn.glu={GLU}",),
    "glu-late-limit": ("ffn.glu={limit: 1.5, limited: after_activation, float32: true}", "ffn.activation=relu"),
    "inner-norm": ("ffn.inner_norm=true", "norm.kind=layernorm"),
    "inner-norm-plain": ("ffn={kind: mlp, activation: gelu_tanh, width: 90, bias: true, inner_norm: true}",),
    "factors": (f"ffn.factors={FACTORS}", f"ffn.glu={GLU}", "ffn.inner_norm=true"),
    "xielu": ("ffn={kind: mlp, activation: xielu, width: 90}",),
    "xielu-gated": ("ffn.activation=xielu", "ffn.glu={limit: 2, up_softcap: 3, up_shift: 0.5}"),
    "routed-attention": (f"attention={ROUTED}",),
    "routed-attention-one": (
        f"attention={ROUTED}",
        "attention.top_k=1",
        "attention.router.score=sigmoid",
        "position=null",
        f"ffn={MOE}",
    ),
    "routed-attention-and-experts": (
        f"attention={ROUTED}",
        f"ffn={MOE}",
        f"attention.router={{correction: buffer, groups: {{count: 5, chosen: 3, score: max}}, float32: true, {SUM}}}",
    ),
    "routed-attention-balanced": (f"attention={ROUTED}", f"ffn={MOE}", "ffn.top_k=3", "norm.placement=parallel"),
    "routed-query": (
        layers("query, abcdefghijkl", query=f"{{attention: {ROUTED}}}", abcdefghijkl=f"{{ffn: {MOE}}}"),
        "ffn.activation=gelu",
    ),
    "prefixes-of-twelve-routers": (
        layers(
            "abcdefghijkl, bcdefghijklm",
            abcdefghijkl="{}",
            bcdefghijklm=f"{{attention: {ROUTED}, ffn: {{router: {{float32: true}}, glu: {{limit: 2}}}}}}",
        ),
        f"ffn={MOE}",
        "ffn.experts=6",
        "ffn.shared={width: 30}",
        f"ffn.shared.glu={GLU}",
        f"ffn.router={{correction: parameter, softcap: 3, norm: true, renormalize_power: 2, {SUM}, {GROUPS}}}",
        "layers.kinds.bcdefghijklm.attention.router={correction: parameter, renormalize_power: 3, softcap: 2}",
        f"layers.kinds.bcdefghijklm.attention.router={{{SUM}, groups: {{count: 5, chosen: 3, score: max}}}}",
    ),
    "narrow": ("embedding={tied: false, width: 20}", "logits.bias=true"),
    "narrow-tied": ("embedding={tied: true, width: 20, scale: 3.7}", "logits={bias: true, vocab_size: 190}"),
    "norm-and-affine": ("embedding={tied: false, norm: true, affine: true, scale: 3.7}",),
    "transform": ("logits={transform: {activation: gelu, bias: true}, bias: true, vocab_size: 180}",),
    "learned-logit-scale": ("logits={learned_scale: 40, float32: true, softcap: 20, given: 200}",),
    "scaled-input": ("embedding={tied: true, width: 20}", "logits={bias: true, scale: 0.3, scaled: input}"),
    "given": ("logits.given=150", "embedding.tied=true"),
    "tied": ("embedding.tied=true",),
    "tied-bias": ("embedding.tied=true", "logits={bias: true, scale: 0.3, softcap: 20}"),
    "untied-bias": ("logits={bias: true, scale: 0.3}", "embedding.scale=sqrt(hidden_size)"),
    "logits-softcap": ("logits.softcap=20", "embedding.scale=3.7"),
    "latent": (f"attention={LATENT}", "position.pairing=interleaved"),
    "latent-direct": (f"attention={LATENT_DIRECT}", "position.partial=0.5"),
    "latent-without-positions": (f"attention={LATENT_DIRECT}", "position=null"),
    "latent-with-all": (f"attention={LATENT_WITH_ALL}", f"position.scaling={YARN}"),
    "latent-per-kind": (
        layers("near, far", near="{attention: {window: 5}, position: {base: 700}}", far=""),
        f"attention={LATENT}",
    ),
    "latent-beside-heads": (
        layers("narrow, wide", narrow=f"{{attention: {LATENT}}}", wide="{attention: {kind: gqa}}"),
        "attention={heads: 6, kv_heads: 2, head_dim: 16}",
    ),
    "sinks": ("attention.sinks=column", "attention.window=9"),
    "sinks-sigmoid": ("attention.sinks=sigmoid", "attention.softcap=20", "attention.grouping=tiled"),
    "sinks-per-kind": (layers("none, column", none="", column="{attention: {sinks: column, kv_heads: 3}}"),),
    "gate-head": ("attention.gate={over: head, score: softplus, bias: true}", "attention.value_dim=10"),
    "gate-head-biased": ("attention.gate={over: head, head_bias: true}", "attention.sinks=sigmoid"),
    "gate-element": ("attention.gate={over: element, bias: true, head_bias: true}", "attention.output_norm=true"),
    "values-narrow": ("attention={value_dim: 10, value_scale: 0.7, bias: all, output_norm: true, v_norm: true}",),
    "values-wide": ("attention={value_dim: 24, grouping: tiled, clip: 0.9, v_norm: true, softcap: 20}",),
    "values-keys": ("attention={values: keys, v_norm: true, bias: all, qk_norm: {over: head}}",),
    "values-keys-width": ("attention={values: keys, clip: 1.1, qk_norm: {over: width}}",),
    "values-keys-width-after": ("attention={values: keys, qk_norm: {over: width, order: after_rope}}",),
    "clipped": ("attention.clip=0.9", "attention.qk_norm={over: width}"),
    "alibi": ("position={kind: alibi}",),
    "alibi-scaled": ("position={kind: alibi, scaled: true, max_bias: 5}", "attention={heads: 8, window: 9}"),
    "alibi-and-sinks": ("position={kind: alibi}", "attention={heads: 1, kv_heads: 1, head_dim: 30, sinks: column}"),
    "alibi-per-kind": (
        layers(
            "near, far, turned",
            near="{position: {kind: alibi}, attention: {heads: 4}}",
            far="{position: {kind: alibi, max_bias: 3}, attention: {kv_heads: 6}}",
            turned="",
        ),
    ),
    "alibi-alike": (layers("near, far", near="{attention: {window: 5}}", far=""), "position={kind: alibi}"),
    "chunked": ("attention.chunk=7",),
    "chunked-per-kind": (
        layers("short, long, whole", short="{attention: {chunk: 5}}", long="{attention: {chunk: 9}}", whole=""),
    ),
    "query-steps": ("attention.query_scale={form: steps, strength: 0.7, length: 6}",),
    "query-beyond": ("attention.query_scale={form: beyond, strength: 0.7, length: 6, first: 1, counts: columns}",),
    "query-power": (
        "attention.query_scale={form: power, strength: 0.7, length: 6, counts: columns}",
        "attention.softcap=20",
        "attention.qk_norm={over: head, order: after_rope}",
    ),
    "query-per-kind": (
        layers(
            "steps, power, none",
            steps="{attention: {query_scale: {form: steps, strength: 0.7, length: 6, first: 1}}}",
            power="{attention: {query_scale: {form: power, strength: 0.7, length: 6}}, position: null}",
            none="",
        ),
    ),
    "each-head": ("attention.qk_norm={over: each_head}",),
    "each-head-one-plus": ("attention.qk_norm={over: each_head, weight: one_plus, bias: true, order: after_rope}",),
    "each-head-layernorm": ("attention.qk_norm={over: each_head, kind: layernorm}", "attention.kv_heads=1"),
    "each-head-layernorm-biased": ("attention.qk_norm={over: each_head, kind: layernorm, bias: true}",),
    "each-head-layernorm-one-plus": (
        "attention.qk_norm={over: each_head, kind: layernorm, weight: one_plus, bias: true}",
    ),
    "each-head-shift-alone": ("attention.qk_norm={over: each_head, weight: none, bias: true}",),
    "attention-factors": ("attention.factors={input: 1.2, key: 0.8, output: 0.7}", "attention.gate={over: head}"),
    "attention-key-factor": ("attention.factors={key: 0.8}", "attention={values: keys, qk_norm: {over: width}}"),
    "scale-per-layer": (
        layers(
            "a, b, c, a",
            a="{attention: {scale: 0.4}}",
            b="{attention: {scale: 0.2}}",
            c="{attention: {scale: 0.1, window: 5}}",
        ),
    ),
    "scale-per-layer-explicit": (
        layers("a, b", a="{attention: {scale: 0.4}}", b="{attention: {scale: 0.2}}"),
        "attention={softcap: 20, sinks: column}",
    ),
    "differential": ("attention.differential=true", "attention.bias=all", "attention.window=9"),
    "differential-per-kind": (
        layers("one, two", one="{attention: {heads: 4, kv_heads: 4}}", two="{position: null}"),
        "attention.differential=true",
    ),
    "dynamic-mask": ("attention.dynamic_mask={keep: 7}", "attention.qk_norm={over: head}"),
    "dynamic-mask-tiled": (
        "attention.dynamic_mask={keep: 7, bias: true}",
        "attention.grouping=tiled",
        "attention.softcap=20",
        "attention.value_dim=24",
    ),
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
    "prefixes-of-twelve-attention": (
        layers(
            "abcdefghijkl, bcdefghijklm, cdefghijklmn",
            abcdefghijkl="{attention: {sinks: sigmoid, softcap: 20, value_dim: 24, output_norm: true, v_norm: true}}",
            bcdefghijklm="{attention: {sinks: column, grouping: tiled, chunk: 9}, position: {kind: alibi}}",
            cdefghijklmn="{attention: {values: keys, qk_norm: {order: after_rope}, heads: 4}, position: {kind: alibi}}",
        ),
        "attention={clip: 1.1, value_scale: 0.7, factors: {input: 1.2, key: 0.8, output: 0.7}}",
        "attention.gate={over: element, score: softplus, bias: true, head_bias: true}",
        "attention.qk_norm={over: width, kind: layernorm, eps: 1.2345678e-06}",
        "attention.query_scale={form: beyond, strength: 0.7, length: 6, first: 1}",
        "layers.kinds.bcdefghijklm.attention.query_scale={form: steps, length: 7, counts: columns}",
        "layers.kinds.cdefghijklmn.attention.query_scale.form=power",
        "layers.kinds.cdefghijklmn.position.max_bias=5",
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
