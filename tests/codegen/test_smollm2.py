"""The generated module on a real model: SmolLM2-135M's own weights, fetched beforehand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForCausalLM, DynamicCache

from archc.architecture import compile_spec
from archc.checkpoints.cache import checkpoint_folder
from archc.codegen import generate
from tests.codegen.support import import_text, parameters
from tests.noise import BOUND, measure

NAME = "smollm2-135m"
# The first thing to know about the history of lighthouses is
PROMPT = [504, 808, 2775, 288, 699, 563, 260, 1463, 282, 303, 11935, 10483, 314]

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("smollm2")]


@pytest.fixture(scope="module")
def folder() -> Path:
    found = checkpoint_folder(NAME)
    if not (found / "model.safetensors").is_file():
        pytest.skip(f"needs the weights of {NAME} in {found}: archc fetch {NAME}")
    return found


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """`build(folder, *overrides)`: the generated model of the spec with overrides, with the weights of a folder."""

    def model(folder: Path, *overrides: str) -> Any:
        text = generate(compile_spec(NAME, overrides).architecture)
        return import_text(text, tmp_path_factory.mktemp("module")).Model.from_pretrained(folder)

    return model


@pytest.fixture(scope="module")
def model(folder: Path, build: Callable[..., Any]) -> Any:
    return build(folder)


@pytest.fixture(scope="module")
def hf(folder: Path) -> Any:
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()


@torch.inference_mode()
def uncached(model: Any, ids: Tensor, new_tokens: int) -> Tensor:
    for _ in range(new_tokens):
        ids = torch.cat((ids, model.logits(model.hidden(ids)[:, -1:]).argmax(-1)), dim=1)
    return ids


def test_computes_what_hugging_face_does(model: Any, hf: Any) -> None:
    ids = torch.tensor([PROMPT])

    def logits(model: Any) -> dict[str, Tensor]:
        with torch.no_grad():
            return {"logits": model(ids).logits}

    measured = measure(hf, logits)
    with torch.no_grad():
        assert measured.deviation({"logits": model(ids)}) < BOUND


@pytest.mark.parametrize("new_tokens", [16, 100])
def test_the_cache_changes_no_token(model: Any, new_tokens: int) -> None:
    prompt = torch.tensor([PROMPT])
    assert torch.equal(model.generate(prompt, new_tokens), uncached(model, prompt, new_tokens))


def test_the_cache_changes_no_token_of_500(model: Any) -> None:
    """Each is what the model without a cache finds likeliest after those before it, all asked in one pass."""
    ids = model.generate(torch.tensor([PROMPT]), 500)
    assert ids.shape == (1, len(PROMPT) + 500)
    with torch.no_grad():
        likeliest = model(ids[:, :-1]).argmax(-1)
    assert torch.equal(ids[:, len(PROMPT) :], likeliest[:, len(PROMPT) - 1 :])


def test_the_cache_holds_what_transformers_holds(model: Any, hf: Any) -> None:
    """11,520 numbers per token: 2 × 30 layers × 3 key/value heads × 64 channels."""
    ids = torch.tensor([(PROMPT * 20)[:256]])
    ours, theirs = model.new_cache(1, 256), DynamicCache(config=hf.config)
    with torch.no_grad():
        model(ids, cache=ours)
        hf(ids, cache=theirs)
    held = sum(layer.keys.numel() + layer.values.numel() for layer in theirs.layers)
    assert held == 256 * 11_520
    assert sum(tensor.numel() for tensor in (*ours.keys, *ours.values)) == held
    for mine, layer in zip(ours.keys, theirs.layers, strict=True):
        assert mine.shape == layer.keys.shape


def test_key_value_heads_may_be_written_out(
    model: Any, folder: Path, build: Callable[..., Any], tmp_path: Path
) -> None:
    """Each of the 3 key/value heads, given to its 3 query heads one by one, computes the very same numbers."""
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in tensors.items():
        if name.endswith(("k_proj.weight", "v_proj.weight")):
            tensors[name] = tensor.view(3, 64, 576).repeat_interleave(3, dim=0).reshape(576, 576)
    save_file(tensors, tmp_path / "model.safetensors")
    full = build(tmp_path, "attention.kv_heads=9")
    assert parameters(full) == 147_786_048
    assert parameters(full) - parameters(model) == 30 * 2 * (576 - 192) * 576
    ids = torch.tensor([PROMPT * 6])
    with torch.no_grad():
        assert torch.equal(full(ids), model(ids))

    other = build(folder, "attention.grouping=tiled")  # what the heads would compute in another order
    with torch.no_grad():
        assert not torch.equal(other(ids), model(ids))
