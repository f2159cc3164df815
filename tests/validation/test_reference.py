"""The reference: exact restoration, refusals, and transformers' own cache."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from archc.errors import IncompleteError
from archc.validation.probes import Probe
from archc.validation.reference import Reference
from tests.families.ugly import save
from tests.families.zoo import CASES

Checkpoint = Callable[[str], Path]


def copy(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def test_every_change_is_undone_to_the_last_bit(checkpoint: Checkpoint) -> None:
    reference = Reference(checkpoint("gemma3_text"))
    state = {name: value.clone() for name, value in reference.model.named_parameters()}
    buffers = {name: value.clone() for name, value in reference.model.named_buffers()}
    for change in (reference.nudged(3), reference.fused_attention(), reference.wider_arithmetic()):
        with change:
            pass
    for name, value in (*reference.model.named_parameters(), *reference.model.named_buffers()):
        assert torch.equal(value, (state | buffers)[name]), name
    assert reference.model.config._attn_implementation == "eager"


def test_a_nudge_moves_every_number_but_zeros_by_one_ulp(checkpoint: Checkpoint) -> None:
    reference = Reference(checkpoint("llama-default"))
    weight = reference.model.model.layers[0].mlp.up_proj.weight
    with torch.no_grad():
        weight[0, 0] = 0.0
        weight[0, 1] = -0.0  # one step from the bits of NaN
    before = weight.detach().clone()
    with reference.nudged(0):
        up, down = (torch.nextafter(before, torch.full_like(before, end)) for end in (torch.inf, -torch.inf))
        assert bool(((weight == up) | (weight == down))[before != 0].all())
        assert weight[0, 0] == 0
        assert weight[0, 1] == 0
        assert 0.3 < float((weight == up).float().mean()) < 0.7


def test_a_nudge_leaves_masks_alone_and_moves_tables(checkpoint: Checkpoint, tmp_path: Path) -> None:
    """openai-gpt multiplies scores by its mask and adds -10,000 times what is left of 1: a moved 1 would be seen."""
    save(next(case for case in CASES if case.name == "openai-gpt"), tmp_path)
    masked, turned = Reference(tmp_path), Reference(checkpoint("llama-default"))
    mask = masked.model.transformer.h[0].attn.bias
    table = turned.model.model.rotary_emb.inv_freq
    before = mask.clone(), table.clone()
    assert set(mask.unique().tolist()) == {0, 1}
    with masked.nudged(0), turned.nudged(0):
        assert torch.equal(mask, before[0])
        assert bool((table != before[1]).all())


@pytest.mark.parametrize(("name", "tokens"), [("llama-default", 40), ("mistral-window", 40), ("gemma3_text", 40)])
def test_the_declared_cache_is_transformers_own(name: str, tokens: int, checkpoint: Checkpoint) -> None:
    """Full layers hold every position, sliding ones window - 1: 2 x 2 heads x 16 channels each."""
    rows = {"llama-default": 3 * tokens, "mistral-window": 3 * 6, "gemma3_text": tokens + 2 * 6}[name]
    held = Reference(checkpoint(name)).cached(tokens)
    assert held is not None
    assert held.elements == rows * 2 * 2 * 16
    windows = {"llama-default": (None,) * 3, "mistral-window": (7,) * 3, "gemma3_text": (7, None, 7)}
    assert held.windows == windows[name]


def test_outputs_have_names_whatever_the_config_asks_for(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = copy(checkpoint("llama-default"), tmp_path / "tuples")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"return_dict": False}))
    probe = Probe("8 tokens", "", torch.arange(8)[None])
    assert torch.equal(Reference(folder).logits(probe), Reference(checkpoint("llama-default")).logits(probe))


def test_a_quantised_checkpoint_is_refused(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = copy(checkpoint("llama-default"), tmp_path / "quantised")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "fp8"}}))
    with pytest.raises(IncompleteError, match="quantised"):
        Reference(folder)


def test_custom_code_is_never_run(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = copy(checkpoint("llama-default"), tmp_path / "custom")
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "mystery", "auto_map": {"AutoModelForCausalLM": "evil.Model", "AutoConfig": "evil.Config"}}
    (folder / "config.json").write_text(json.dumps(config | own))
    (folder / "evil.py").write_text("raise SystemExit('this code ran')")
    with pytest.raises(IncompleteError, match="transformers cannot load"):
        Reference(folder)


def test_weights_that_transformers_would_invent_are_no_reference(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = copy(checkpoint("llama-default"), tmp_path / "short")
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(IncompleteError, match=r"layers\.1\.mlp\.up_proj"):
        Reference(folder)


def test_the_cached_run_is_the_full_pass(checkpoint: Checkpoint) -> None:
    reference = Reference(checkpoint("qwen2"))
    ids = torch.randint(0, 211, (1, 20), generator=torch.Generator().manual_seed(1))
    whole = reference.logits(Probe("p", "", ids))
    pieces = reference.logits(Probe("p", "", ids, chunks=(7, 1, 1, 11)))
    assert torch.allclose(whole, pieces, atol=1e-4)
    with pytest.raises(AssertionError):
        assert torch.allclose(whole[:, :-1], pieces[:, 1:], atol=1e-4)


def test_the_row_of_the_padding_token_is_that_of_the_checkpoint(tmp_path: Path) -> None:
    """Its class empties it when it loads: transformers 5.24, models/youtu/modeling_youtu.py, _init_weights."""
    save(next(case for case in CASES if case.name == "youtu-padded"), tmp_path)
    stored = load_file(tmp_path / "model.safetensors")["model.embed_tokens.weight"]
    assert not AutoModelForCausalLM.from_pretrained(tmp_path).model.embed_tokens.weight[7].any()
    model = Reference(tmp_path).model
    assert torch.equal(model.model.embed_tokens.weight, stored)
    assert model.lm_head.weight is model.model.embed_tokens.weight
