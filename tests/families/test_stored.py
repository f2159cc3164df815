"""Rules of storage against what each family's own class saves: every name and every shape, of every variant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers.utils import logging

from archc.architecture import compile_text
from archc.checkpoints.headers import read_checkpoint
from archc.errors import IncompleteError
from archc.families import family
from archc.importing.convert import convert
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.static import compare_manifest
from tests.families.zoo import CASES, cpu_model
from tests.families.zoo_case import Case

STORED = [case for case in CASES if family(case.model_type).rules]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # shared experts of no width
@pytest.mark.parametrize("case", STORED, ids=lambda case: case.name)
def test_what_the_class_saves_is_what_is_declared(case: Case, tmp_path: Path) -> None:
    logging.disable_progress_bar()
    model: Any = cpu_model(case)
    model.save_pretrained(tmp_path)
    text, stored = convert(case.config_dict(), case.name).text, read_checkpoint(tmp_path)
    architecture = compile_text(text).architecture
    found = compare_manifest(architecture, stored)
    assert (found.missing, found.unexpected, found.wrong_shape) == ((), (), ())

    # The twins: another vocabulary, a tensor that is gone, and shapes with one more axis.
    assert compare_manifest(
        compile_text(text, overrides=("vocab_size=1000", "logits.adaptive=null")).architecture, stored
    ).wrong_shape
    read = sorted(stored.keys() - set(found.unread))
    assert compare_manifest(architecture, {name: stored[name] for name in read[1:]}).missing
    deeper = {name: replace(tensor, shape=(*tensor.shape, 1)) for name, tensor in stored.items()}
    assert sorted(wrong.name for wrong in compare_manifest(architecture, deeper).wrong_shape) == read


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


def test_a_released_checkpoint_may_hold_more_than_its_class_reads_and_less(tmp_path: Path) -> None:
    """axk1: norms of dense layers, too, and no corrections, which its class takes for zeros (modeling_axk1.py)."""
    logging.disable_progress_bar()
    case = _case("axk1")
    saved: Any = cpu_model(case)
    saved.save_pretrained(tmp_path)
    architecture = compile_text(convert(case.config_dict(), case.name).text).architecture
    probe = Probe("p", "a test", torch.arange(24)[None])
    expected = GeneratedPort(architecture, tmp_path).logits(probe)
    weights = load_file(tmp_path / "model.safetensors")
    corrections = [name for name in weights if name.endswith("e_score_correction_bias")]
    assert [float(weights.pop(name).abs().max()) for name in corrections] == [0, 0]
    dense, sparse = (f"model.layers.{layer}.post_mlp_layernorm.weight" for layer in (0, 1))
    weights[dense] = torch.full((60,), 7.0)
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    stored = read_checkpoint(tmp_path)
    found = compare_manifest(architecture, stored)
    assert found.passed
    assert found.unread == (dense,)
    assert torch.equal(GeneratedPort(architecture, tmp_path).logits(probe), expected)

    # The twins: what is read must be there.
    for needed in (sparse, "model.layers.1.mlp.gate.weight"):
        less = {name: tensor for name, tensor in stored.items() if name != needed}
        assert compare_manifest(architecture, less).missing == (needed,)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_matrices_of_no_width_are_left_out_and_no_others(tmp_path: Path) -> None:
    logging.disable_progress_bar()
    unshared = compile_text(convert(_case("deepseek_v3-unshared").config_dict(), "unshared").text).architecture
    for name, allowed in (("deepseek_v3-unshared", True), ("deepseek_v3", False)):
        saved: Any = cpu_model(_case(name))
        saved.save_pretrained(tmp_path / name)
        found = compare_manifest(unshared, read_checkpoint(tmp_path / name))
        beside = found.unread if allowed else found.unexpected
        assert found.passed == allowed
        assert len(beside) == 2 * 3
        assert all(".shared_experts." in one for one in beside)
    with pytest.raises(IncompleteError, match=r"shared_experts.* is stored, but has no place"):
        GeneratedPort(unshared, tmp_path / "deepseek_v3")
