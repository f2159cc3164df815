"""The zoo itself: every family is in it, every config is one its class reads, and the readers of sizes can be wrong."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn
from transformers import PreTrainedConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from tests.families import zoo
from tests.families.zoo_case import Case

# Written out, so that a table that loses a family is noticed.
_FAMILY_NAMES = """
    arcee biogpt cwm ernie4_5 exaone gpt-sw3 gpt2 gpt_bigcode gpt_neo gpt_neox gpt_neox_japanese gptj helium internlm3
    iquestcoder jais2 llama ministral mistral nemotron olmo openai-gpt opt persimmon phi phi3 qwen2 qwen3 seed_oss
    smollm3 stablelm starcoder2 xglm

    apertus apertus1p5_text bitnet bloom codegen cohere cohere2 cohere_compass_text ctrl diffllama doge exaone4 falcon
    gemma gemma2 gemma3_text gemma4_unified_text glm glm4 granite granite_swa hunyuan_v1_dense hyperclovax ministral3
    modernbert-decoder mpt nanochat olmo2 olmo3 vaultgemma xlm

    afmoe aria_text beam cohere2_moe dbrx dots1 ernie4_5_moe exaone_moe flex_olmo flint glm4_moe gpt_oss granitemoe
    granitemoe_swa granitemoeshared hunyuan_v1_moe hy_v3 jetmoe kolibri1 laguna llama4_text mellum mimo_v2_flash
    minimax_m2 mixtral olmoe phimoe qwen2_moe qwen3_moe sarvam_moe solar_open

    axk1 axk2 deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4 dots3_note_text glm4_moe_lite glm_moe_dsa hy_v4
    longcat_flash minicpm3 minimax_m3_vl_text sarvam_mla youtu

    bailing_hybrid bamba falcon_h1 falcon_mamba granitemoehybrid jamba kimi_linear lara_mini lfm2 lfm2_moe lfm3 mamba
    mamba2 minimax nemotron_h olmo_hybrid qwen3_5_moe_text qwen3_5_text qwen3_next recurrent_gemma rwkv xlstm zamba
    zamba2

    blt cpmant dory gemma3n_text gemma4_text hrm_text inkling2_loop_text inkling2_text inkling_text qwen4_exp_text
    reformer zaya
    """
FAMILIES = set(_FAMILY_NAMES.split())
# Keys of published configs that are no fields of the class: read with getattr, or folded into a field.
READ_ANYWAY = {
    "cohere2": {"head_dim"},
    "cohere_compass_text": {"head_dim"},
    "deepseek_v3": {"num_nextn_predict_layers"},
    "deepseek_v4": {"compress_ratios", "num_hash_layers", "qk_rope_head_dim"},
    "dots1": {"head_dim"},
    "dots3_note_text": {
        *("first_k_dense_replace", "moe_shared_expert_intermediate_size", "use_dsa", "use_sliding_window"),
        *("swa_head_dim", "swa_kv_lora_rank", "swa_num_attention_heads", "swa_num_key_value_heads", "swa_q_lora_rank"),
        *("swa_qk_nope_head_dim", "swa_v_head_dim"),
    },
    "ernie4_5_moe": {"head_dim"},
    "exaone4": {"head_dim"},
    "exaone_moe": {"head_dim"},
    "falcon_h1": {"head_dim"},
    "gemma4_text": {"global_head_dim", "num_global_key_value_heads", "per_layer_config"},
    "gemma4_unified_text": {"global_head_dim", "num_global_key_value_heads"},
    "glm4_moe": {"head_dim", "num_nextn_predict_layers"},
    "glm_moe_dsa": {"index_skip_topk_offset", "index_topk_freq"},
    "inkling_text": {"dense_intermediate_size", "dense_mlp_idx"},
    "kimi_linear": {"first_k_dense_replace", "linear_attn_config", "moe_layer_freq"},
    "lfm2": {"block_ff_dim", "tie_embedding"},
    "llama": {"original_max_position_embeddings"},
    "mamba": {"intermediate_size"},
    "minimax_m3_vl_text": {"moe_layer_freq", "sparse_attention_config"},
    "nemotron_h": {"hybrid_override_pattern"},
    "phi3": {"layer_types"},
    "qwen3_moe": {"head_dim"},
    "starcoder2": {"layer_types"},
    "xlm": {"asm_cutoffs", "asm_div_value"},
}


def test_every_family_is_in_the_zoo() -> None:
    assert {case.model_type for case in zoo.CASES} == FAMILIES
    assert len(FAMILIES) == 146


def test_no_two_cases_share_a_name_or_a_config() -> None:
    names = [case.name for case in zoo.CASES]
    assert len(names) == len(set(names))
    contents = [repr(sorted(case.config_dict().items())) for case in zoo.CASES]
    assert len(contents) == len(set(contents))


@pytest.mark.parametrize("case", zoo.CASES, ids=lambda case: case.name)
def test_the_config_class_takes_the_case(case: Case) -> None:
    config_class = CONFIG_MAPPING[case.model_type]
    assert isinstance(case.hf_config(), config_class)
    renamed = getattr(config_class, "attribute_map", {})
    known = {*config_class.__dataclass_fields__, *renamed, *renamed.values()}
    assert set(case.config) - known <= READ_ANYWAY.get(case.model_type, set())


def test_what_is_read_off_a_model_is_what_it_has() -> None:
    class Small(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(3, 5)
            self.second = nn.Linear(3, 5, bias=False)
            self.second.weight = self.first.weight
            self.register_buffer("stored", torch.zeros(7))
            self.register_buffer("computed", torch.zeros(11), persistent=False)

    assert [(name, buffer.numel()) for name, buffer in zoo.stored_buffers(Small())] == [("stored", 7)]
    assert sum(parameter.numel() for parameter in Small().parameters()) == 3 * 5 + 5


def test_llama_is_counted_by_hand() -> None:
    case = next(case for case in zoo.CASES if case.name == "llama")
    attention = 60 * 6 * 14 + 2 * 60 * 2 * 14 + 6 * 14 * 60
    layer = attention + 3 * 60 * 92 + 2 * 60
    assert zoo.reference_params(case) == (2 * 211 * 60 + 3 * layer + 60, 0)
    cache = zoo.reference_cache(case)
    assert cache is not None
    assert cache.elements == 3 * 2 * 2 * 14 * 40
    assert [(held.layer, held.shape) for held in cache.held] == [(i // 2, (1, 2, 40, 14)) for i in range(6)]


def test_a_walk_counts_each_tensor_once_and_leaves_the_counters_apart() -> None:
    @dataclasses.dataclass
    class Layer:
        keys: torch.Tensor
        values: torch.Tensor
        length: torch.Tensor
        config: PreTrainedConfig

    same = torch.zeros(1, 2, 3)
    layers = [
        Layer(same, same, torch.tensor(3), PreTrainedConfig()),
        Layer(same + 1, same[:, 1:], same[:0], PreTrainedConfig()),
    ]
    walked = zoo.walk_cache({"layers": layers})
    assert [(held.layer, held.attribute, held.shape) for held in walked.held] == [
        (0, "layers.keys", (1, 2, 3)),
        (1, "layers.keys", (1, 2, 3)),
        (1, "layers.values", (1, 1, 3)),
    ]
    assert walked.elements == 6 + 6 + 3
    assert [(held.layer, held.attribute) for held in walked.integers] == [(0, "layers.length")]
