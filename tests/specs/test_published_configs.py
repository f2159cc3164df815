"""Every shipped spec with a family against the published config.json of its source.

Both ways: transformers' own class counts the spec's parameters, and importing the config gives the spec's model.
"""

from typing import Any

import pytest
from msgspec.structs import replace

from archc.analysis import build_report
from archc.architecture import Architecture, compile_spec, compile_text
from archc.architecture.model import Layer
from archc.importing.convert import convert
from archc.spec.load import shipped_names
from tests.specs.published import NAMES, published, reference_total

MIXERS = {
    "gqa",
    "mla",
    "routed",
    "compressed",
    "mamba",
    "mamba2",
    "gated_delta",
    "kda",
    "lightning",
    "rg_lru",
    "short_conv",
    "rwkv",
    "mlstm",
}
CACHES = {"full", "latent", "index", "sliding", "chunked", "compressed", "convolution", "state"}

# One key of a published config, and another value: what is imported is no longer what is shipped.
CHANGES: list[tuple[str, str, Any]] = [
    ("bloom-176b", "apply_residual_connection_post_layernorm", True),
    ("codestral-mamba", "n_groups", 4),
    ("command-r7b", "sliding_window_pattern", 8),
    ("deepseek-v3", "routed_scaling_factor", 1.0),
    ("deepseek-v3", "topk_group", 8),
    ("deepseek-v4-flash", "hc_mult", 2),
    ("falcon-7b", "parallel_attn", False),
    ("falcon-h1-0.5b", "key_multiplier", 1.0),
    ("gemma2-9b", "attn_logit_softcapping", None),
    ("gemma3-1b", "sliding_window_pattern", 5),
    ("gemma3-27b", "query_pre_attn_scalar", 128),
    ("gemma4-26b-a4b", "attention_k_eq_v", False),
    ("gemma4-e2b", "num_kv_shared_layers", 10),
    ("glm4.5-air", "partial_rotary_factor", 0.25),
    ("glm5", "index_topk", 1024),
    ("gpt-j-6b", "rotary_dim", 32),
    ("gpt-oss-20b", "swiglu_limit", 6.0),
    ("granite3.1-1b", "logits_scaling", 1.0),
    ("jamba1.5-mini", "expert_layer_offset", 0),
    ("jetmoe-8b", "num_experts_per_tok", 1),
    ("kimi-k2.6", "norm_topk_prob", False),
    ("kimi-linear-48b", "routed_scaling_factor", 1.0),
    ("laguna-xs.2", "gating", False),
    ("lfm2-1.2b", "full_attn_idxs", [2, 5, 8, 10, 12]),
    ("llama3.2-3b", "rope_theta", 10000.0),
    ("llama4-scout", "attention_chunk_size", 4096),
    ("mamba-2.8b", "state_size", 32),
    ("mimo-v2-flash", "attention_value_scale", 1.0),
    ("minimax-m2.5", "rotary_dim", 128),
    ("minimax-text-01", "mlp_alpha_factor", 1),
    ("mistral-nemo", "head_dim", 160),
    ("nemotron3-nano", "num_experts_per_tok", 8),
    ("nemotron3-super", "moe_latent_size", 2048),
    ("olmo3-32b", "sliding_window", 2048),
    ("opt-6.7b", "do_layer_norm_before", False),
    ("phi3-mini", "sliding_window", None),
    ("pythia-6.9b", "use_parallel_residual", False),
    ("qwen3-next-80b", "full_attention_interval", 3),
    ("qwen3.5-397b-a17b", "linear_num_value_heads", 32),
    ("recurrentgemma-2b", "attention_window_size", 1024),
    ("rwkv4-7b", "rescale_every", 0),
    ("smollm3-3b", "no_rope_layer_interval", 3),
    ("starcoder2-3b", "use_bias", False),
    ("xlstm-7b", "gate_soft_cap", 30.0),
    ("zamba2-7b", "num_mem_blocks", 1),
]


def imported(config: dict[str, Any], name: str) -> Architecture:
    return compile_text(convert(config, name).text).architecture


def bare(architecture: Architecture) -> Architecture:
    """Without what a spec is free to name: itself, its kinds of layer, and branches that depths share."""
    shared: dict[str, str] = {}
    layers: dict[int, Layer] = {}
    for layer in architecture.layers:
        if id(layer) not in layers:
            branches = tuple(
                replace(one, shared=shared.setdefault(one.shared, str(len(shared)))) if one.shared else one
                for one in layer.branches
            )
            layers[id(layer)] = replace(layer, kind="", branches=branches)
    renamed = tuple(layers[id(layer)] for layer in architecture.layers)
    return replace(architecture, name="", source=None, claims=(), layers=renamed)


def total(architecture: Architecture) -> int:
    return build_report(architecture)["params"]["total"]


def test_every_spec_with_a_family_has_a_published_config() -> None:
    """But for the model that archc trained itself."""
    assert [name for name in shipped_names() if compile_spec(name).architecture.family and name != "tiny"] == NAMES


def test_specs_of_at_least_sixty_published_models() -> None:
    assert len(NAMES) >= 60


@pytest.mark.parametrize("name", NAMES)
def test_spec_says_where_it_is_from(name: str) -> None:
    source = compile_spec(name).architecture.source
    assert source is not None
    assert source.count("/") == 1 or name == "gpt2"


@pytest.mark.parametrize("name", NAMES)
def test_spec_has_the_parameters_that_transformers_builds(name: str) -> None:
    spec = compile_spec(name).architecture
    assert spec.family == published(name)["model_type"]
    assert total(spec) == reference_total(name)


@pytest.mark.parametrize("name", NAMES)
def test_spec_of_one_more_token_has_other_parameters(name: str) -> None:
    vocab_size = compile_spec(name).architecture.vocab_size
    assert total(compile_spec(name, [f"vocab_size={vocab_size + 1}"]).architecture) != reference_total(name)


@pytest.mark.parametrize("name", NAMES)
def test_importing_the_published_config_gives_the_spec(name: str) -> None:
    spec, found = compile_spec(name).architecture, imported(published(name), name)
    assert bare(found) == bare(spec)
    ours, theirs = build_report(spec, layers=True), build_report(found, layers=True)
    assert (theirs["params"], theirs["kv_cache"], theirs["flops"]) == (ours["params"], ours["kv_cache"], ours["flops"])


@pytest.mark.parametrize(("name", "key", "value"), CHANGES)
def test_importing_another_config_gives_another_model(name: str, key: str, value: object) -> None:
    config = published(name)
    assert config.get(key) != value
    assert bare(imported({**config, key: value}, name)) != bare(compile_spec(name).architecture)


def test_importing_leaves_the_config_as_it_was() -> None:
    config = published("kimi-k2.6")
    convert(config, "kimi")
    assert config == published("kimi-k2.6")


def test_every_kind_of_mixer_and_cache_is_shipped() -> None:
    architectures = [compile_spec(name).architecture for name in NAMES]
    found = {part.kind for one in architectures for layer, _ in one.distinct for part in layer.parts()}
    assert found >= MIXERS
    assert {kind for one in architectures for kind in build_report(one)["kv_cache"]["by_kind"]} >= CACHES
