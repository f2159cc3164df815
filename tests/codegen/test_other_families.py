"""What no family of archc uses yet, against models of transformers that do: their weights are handed over by name.

Parallel branches, neighbouring pairs, layers without positions, residual multipliers, shared experts, sigmoid
routers, heads with a bias: fields that the language has and the tiny checkpoints of tests/tiny.py do not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor

from archc.architecture import compile_text
from archc.codegen import generate
from tests.codegen.comparisons import COMPARISONS, Generated, HuggingFace
from tests.codegen.support import import_text
from tests.noise import BOUND, measure
from tests.tiny import BY_NAME, Tiny

BASE = BY_NAME["llama-default"].config
ROPE = {"rope_type": "default", "rope_theta": 5300.0}
HALF_ROPE = ROPE | {"partial_rotary_factor": 0.5}

# What transformers calls a module, and what a generated model does.
NAMES = {
    "model.embed_tokens.": "embedding.",
    "transformer.wte.": "embedding.",
    "model.layers.": "layers.",
    "transformer.h.": "layers.",
    "model.norm.": "final_norm.",
    "model.final_layernorm.": "final_norm.",
    "transformer.ln_f.": "final_norm.",
    "lm_head.": "head.",
    ".self_attn.": ".attention.",
    ".attn.": ".attention.",
    ".q_proj.": ".q.",
    ".k_proj.": ".k.",
    ".v_proj.": ".v.",
    ".o_proj.": ".o.",
    ".out_proj.": ".o.",
    ".dense.": ".o.",
    ".query_layernorm.": ".q_norm.",
    ".key_layernorm.": ".k_norm.",
    ".input_layernorm.": ".attention_norm.",
    ".ln_1.": ".attention_norm.",
    ".post_attention_layernorm.": ".ffn_norm.",
    ".mlp.gate.": ".ffn.router.",
    ".mlp.experts.": ".ffn.",
    ".mlp.shared_expert_gate.": ".ffn.shared_gate.",
    ".mlp.shared_expert.": ".ffn.shared.",
    ".mlp.shared_experts.": ".ffn.shared.",
    ".mlp.": ".ffn.",
    ".gate_proj.": ".gate.",
    ".up_proj.": ".up.",
    ".down_proj.": ".down.",
    ".fc1.": ".up.",
    ".fc_in.": ".up.",
    ".fc2.": ".down.",
    ".fc_out.": ".down.",
}


@dataclass(frozen=True)
class Other:
    """A config of a model type, the spec that declares it, and fields whose change must be seen."""

    config: dict[str, Any]
    spec: dict[str, str]
    faults: tuple[str, ...]
    one_plus: bool = False


OTHERS = {
    "granite": Other(
        BASE
        | {
            "embedding_multiplier": 3.1,
            "attention_multiplier": 0.2,
            "residual_multiplier": 0.37,
            "logits_scaling": 1.6,
        },
        {
            "embedding": "{tied: false, scale: 3.1}",
            "attention": "{heads: 6, kv_heads: 2, head_dim: 16, scale: 0.2}",
            "residual": "{branch: 0.37}",
            "logits": "{scale: 0.625}",
        },
        ("residual.branch=0.38", "residual.stream=0.37", "logits.scale=1.6", "embedding.scale=3"),
    ),
    "phi": Other(
        BASE | {"layer_norm_eps": 3e-3, "hidden_act": "gelu_new", "rope_parameters": HALF_ROPE},
        {
            "norm": "{kind: layernorm, eps: 3.0e-3, bias: true, placement: parallel}",
            "position": "{kind: rope, base: 5300, partial: 0.5}",
            "attention": "{heads: 6, kv_heads: 2, head_dim: 16, bias: all}",
            "ffn": "{kind: mlp, activation: gelu_tanh, width: 100, bias: true}",
            "logits": "{bias: true}",
        },
        ("position.partial=1", "ffn.activation=gelu", "norm.eps=1e-3"),
    ),
    "gptj": Other(
        {
            "vocab_size": 211,
            "n_positions": 96,
            "n_embd": 72,
            "n_layer": 3,
            "n_head": 6,
            "n_inner": 100,
            "rotary_dim": 8,
            "layer_norm_epsilon": 3e-3,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        {
            "norm": "{kind: layernorm, eps: 3.0e-3, bias: true, placement: parallel}",
            "position": "{kind: rope, base: 10000, pairing: interleaved, partial: 0.67}",
            "attention": "{heads: 6}",
            "ffn": "{kind: mlp, activation: gelu_tanh, width: 100, bias: true}",
            "logits": "{bias: true}",
        },
        ("position.pairing=half", "position.base=10100"),
    ),
    "cohere": Other(
        BASE | {"layer_norm_eps": 3e-3, "logit_scale": 0.3, "tie_word_embeddings": True},
        {
            "embedding": "{tied: true}",
            "norm": "{kind: layernorm, eps: 3.0e-3, placement: parallel}",
            "position": "{kind: rope, base: 5300, pairing: interleaved}",
            "logits": "{scale: 0.3}",
        },
        ("position.pairing=half", "logits.scale=0.31", "norm.kind=rmsnorm"),
    ),
    "nemotron": Other(
        BASE | {"norm_eps": 3e-3, "hidden_act": "relu2", "rope_parameters": HALF_ROPE},
        {
            "norm": "{kind: layernorm, eps: 3.0e-3, weight: one_plus, bias: true}",
            "position": "{kind: rope, base: 5300, partial: 0.5}",
            "ffn": "{kind: mlp, activation: relu2, width: 100}",
        },
        ("norm.weight=plain", "ffn.activation=relu", "position.partial=0.75"),
        one_plus=True,
    ),
    "smollm3": Other(
        BASE | {"no_rope_layers": [1, 0, 1], "no_rope_layer_interval": 2},
        {"layers": '{count: 3, kinds: {roped: null, bare: {position: null}}, pattern: "roped, bare, roped"}'},
        ('layers.pattern="roped, roped, bare"', "layers.kinds.bare.position={kind: rope, base: 5300}"),
    ),
    "hunyuan_v1_dense": Other(
        BASE,
        {"attention": "{heads: 6, kv_heads: 2, head_dim: 16, qk_norm: {over: head, order: after_rope}}"},
        ("attention.qk_norm.order=before_rope",),
    ),
    "olmoe": Other(
        BASE | {"num_experts": 7, "num_experts_per_tok": 3, "norm_topk_prob": False, "head_dim": 12},
        {
            "attention": "{heads: 6, kv_heads: 2, head_dim: 12, qk_norm: {over: width}}",
            "ffn": "{kind: moe, experts: 7, top_k: 3, width: 100, activation: silu, "
            "router: {score: softmax, renormalize: false}}",
        },
        ("ffn.router.renormalize=true", "attention.qk_norm.order=after_rope"),
    ),
    "qwen2_moe": Other(
        BASE
        | {
            "num_experts": 7,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 44,
            "shared_expert_intermediate_size": 60,
            "norm_topk_prob": False,
        },
        {
            "attention": "{heads: 6, kv_heads: 2, head_dim: 16, bias: [q, k, v]}",
            "ffn": "{kind: moe, experts: 7, top_k: 3, width: 44, activation: silu, "
            "router: {score: softmax, renormalize: false}, shared: {width: 60, gate: sigmoid}}",
        },
        ("ffn.router.renormalize=true", "ffn.router.scale=1.01"),
    ),
    "glm4_moe": Other(
        BASE
        | {
            "n_routed_experts": 7,
            "num_experts_per_tok": 3,
            "moe_intermediate_size": 44,
            "n_shared_experts": 2,
            "first_k_dense_replace": 1,
            "norm_topk_prob": True,
            "routed_scaling_factor": 2.3,
            "rope_parameters": HALF_ROPE,
        },
        {
            "position": "{kind: rope, base: 5300, partial: 0.5}",
            "ffn": "{kind: moe, experts: 7, top_k: 3, width: 44, activation: silu, "
            "router: {score: sigmoid, renormalize: true, scale: 2.3}, shared: {width: 88}}",
            "layers": "{count: 3, kinds: {dense: {ffn: {kind: gated, width: 100}}, sparse: null}, "
            "pattern: 'dense, 2*sparse'}",
        },
        ("ffn.router.score=softmax", "ffn.router.renormalize=false", "ffn.router.scale=2.2", "ffn.top_k=2"),
    ),
}
DEFAULTS = {
    "embedding": "{tied: false}",
    "norm": "{kind: rmsnorm, eps: 3.0e-3}",
    "position": "{kind: rope, base: 5300}",
    "attention": "{heads: 6, kv_heads: 2, head_dim: 16}",
    "ffn": "{kind: gated, activation: silu, width: 100}",
    "layers": "3",
}


def weights(hf: Any) -> dict[str, Tensor]:
    """The weights of transformers' model under the names of a generated one."""
    found: dict[str, Tensor] = {}
    for stored, tensor in hf.state_dict().items():
        name = reduce(lambda name, pair: name.replace(*pair), NAMES.items(), stored)
        stem, _, last = name.rpartition(".")
        if last == "gate_up_proj":  # experts stacked, gate and up on one another
            found[f"{stem}.gate"], found[f"{stem}.up"] = tensor.chunk(2, dim=1)
        elif last == "down_proj":
            found[f"{stem}.down"] = tensor
        else:
            found[name] = tensor
    return found


def port(name: str, hf: Any, folder: Path, *overrides: str) -> Generated:
    """The generated model of the spec with overrides, with transformers' weights."""
    header = {"archc": "1", "name": name, "vocab_size": "211", "hidden_size": "72", "context": "96", "dtype": "float32"}
    text = "".join(f"{key}: {value}\n" for key, value in (header | DEFAULTS | OTHERS[name].spec).items())
    architecture = compile_text(text, name, overrides).architecture
    model = import_text(generate(architecture), folder).Model().eval()
    given = weights(hf)
    if "layers.0.norm.weight" in model.state_dict():
        given = {name.replace(".attention_norm.", ".norm."): tensor for name, tensor in given.items()}
    unused = given.keys() - model.state_dict().keys()
    assert all(name == "head.weight" or name.endswith("e_score_correction_bias") for name in unused)
    model.load_state_dict({name: given[name] for name in model.state_dict()})
    return Generated(model, architecture)


def reference(name: str) -> Any:
    """Transformers' model, with weights that hide nothing."""
    return Tiny(name, name, OTHERS[name].config, "", one_plus=OTHERS[name].one_plus).model()


@pytest.mark.parametrize("comparison", ["full", "cached", "left_padded"])
@pytest.mark.parametrize("name", OTHERS)
def test_agrees_with_hugging_face(tmp_path: Path, name: str, comparison: str) -> None:
    compare, hf = COMPARISONS[comparison], reference(name)
    measured = measure(hf, lambda model: compare(HuggingFace(model)))
    assert measured.deviation(compare(port(name, hf, tmp_path))) < BOUND


@pytest.mark.parametrize(("name", "override"), [(name, fault) for name in OTHERS for fault in OTHERS[name].faults])
def test_a_wrong_field_is_seen(tmp_path: Path, name: str, override: str) -> None:
    compare, hf = COMPARISONS["full"], reference(name)
    measured = measure(hf, lambda model: compare(HuggingFace(model)))
    assert measured.deviation(compare(port(name, hf, tmp_path, override))) > BOUND
