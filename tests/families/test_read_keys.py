"""What a key of a config changes in Hugging Face's model it changes in the spec, and what it does not, it does not.

The weights are the same before and after; a key is read where logits differ.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

from archc.analysis import build_report
from archc.architecture import compile_text
from archc.architecture.model import Architecture
from archc.importing.convert import convert
from tests.families.zoo import CASES, cpu_model, meta_model
from tests.families.zoo_case import Case, rope

_HALF = {"rope_parameters": rope(10000.0, partial_rotary_factor=0.5)}
_TURNING = {"head_dim": 12, "rope_parameters": rope(10000.0, partial_rotary_factor=1.0)}
IGNORED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("llama", _TURNING, _HALF),
    ("qwen3", _TURNING, _HALF),
    ("cohere2", _TURNING, _HALF),
    ("mixtral", _TURNING, _HALF),
    ("gemma3_text", {}, {"attn_logit_softcapping": 0.5}),
    ("phimoe", {}, {"num_experts_per_tok": 3}),
]
READ: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("glm", _TURNING, _HALF),
    ("nemotron", _TURNING, _HALF),
    ("minimax_m2", _TURNING, _HALF),
    ("gemma2", {}, {"attn_logit_softcapping": 0.5}),
    ("aria_text", {}, {"hidden_act": "gelu"}),
    ("qwen3_moe", {}, {"num_experts_per_tok": 3}),
]


def _case(model_type: str, changes: dict[str, Any]) -> Case:
    base = next(case for case in CASES if case.model_type == model_type)
    return Case("changed", model_type, {**base.config, **changes})


def _architecture(config: dict[str, Any]) -> Architecture:
    """What the spec of a config says, however it is written."""
    return compile_text(convert(config, "tiny").text).architecture


@torch.no_grad()
def _logits(case: Case) -> torch.Tensor:
    model = cpu_model(case)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():  # larger than the class makes them, so that what is small counts
        parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    logits = model(input_ids=torch.randint(16, 180, (1, 24), generator=generator)).logits
    assert isinstance(logits, torch.Tensor)
    return logits


@pytest.mark.parametrize(("model_type", "base", "change"), IGNORED)
def test_a_key_that_the_class_does_not_read_changes_nothing(
    model_type: str, base: dict[str, Any], change: dict[str, Any]
) -> None:
    before, after = _case(model_type, base), _case(model_type, {**base, **change})
    assert torch.equal(_logits(before), _logits(after))
    assert _architecture(before.config_dict()) == _architecture(after.config_dict())


@pytest.mark.parametrize(("model_type", "base", "change"), READ)
def test_a_key_that_the_class_reads_changes_the_spec(
    model_type: str, base: dict[str, Any], change: dict[str, Any]
) -> None:
    before, after = _case(model_type, base), _case(model_type, {**base, **change})
    assert not torch.equal(_logits(before), _logits(after))
    assert _architecture(before.config_dict()) != _architecture(after.config_dict())


@pytest.mark.parametrize(
    ("model_type", "key"), [("jetmoe", "rms_norm_eps"), ("ctrl", "layer_norm_epsilon"), ("llama", "rms_norm_eps")]
)
def test_the_eps_of_every_norm_is_that_of_its_module(model_type: str, key: str) -> None:
    case = _case(model_type, {key: 0.5})
    modules = {name: module for name, module in meta_model(case).named_modules() if "norm" in name}
    stated = {
        name: float(getattr(module, "variance_epsilon", getattr(module, "eps", 0.0)))
        for name, module in modules.items()
    }
    layers = {eps for name, eps in stated.items() if ".0." in name}
    assert len(layers) == 1
    found = _architecture(case.config_dict())
    assert {branch.pre_norm.eps for branch in found.layers[0].branches if branch.pre_norm} == layers
    assert found.final_norm is not None
    assert found.final_norm.eps == 0.5


@pytest.mark.parametrize("tied", [False, True])
def test_a_wrapper_that_holds_the_whole_text_model_leaves_its_head_to_it(tied: bool) -> None:
    text = {**_case("llama4_text", {"tie_word_embeddings": tied}).config, "model_type": "llama4_text"}
    config = {"model_type": "llama4", "tie_word_embeddings": not tied, "text_config": text}
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(CONFIG_MAPPING["llama4"].from_dict(config))
    report = build_report(_architecture(config))
    assert report["params"]["total"] == sum(parameter.numel() for parameter in model.parameters())
