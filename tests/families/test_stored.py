"""Rules of storage against what each family's own class saves: every name and every shape, of every variant."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from transformers.utils import logging

from archc.architecture import compile_text
from archc.checkpoints.headers import read_checkpoint
from archc.families import family
from archc.importing.convert import convert
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
