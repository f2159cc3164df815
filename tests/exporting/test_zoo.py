"""One model of every family that imports: exported, it has Hugging Face's own parameter count and imports the same."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM

from archc.architecture import compile_spec, compile_text
from archc.exporting.convert import as_text, export
from archc.exporting.outline import same_model
from archc.families import family, known_families
from archc.importing.convert import convert
from tests.families.zoo import CASES, reference_params
from tests.families.zoo_case import Case

IMPORTED = [case for case in CASES if case.model_type in known_families() and family(case.model_type).config]
FIRST = list({case.model_type: case for case in reversed(IMPORTED)}.values())
GENERATED = [case for case in IMPORTED if family(case.model_type).rules and case not in FIRST]


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")  # shared experts of no width
@pytest.mark.parametrize("case", [*FIRST, *GENERATED], ids=lambda case: case.name)
def test_there_and_back(case: Case, tmp_path: Path) -> None:
    spec = compile_text(convert(case.config_dict(), "case").text)
    (tmp_path / "config.json").write_text(as_text(export(spec)))
    assert same_model(compile_spec(str(tmp_path)).architecture, spec.architecture)
    loaded = AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(loaded)
    assert sum(parameter.numel() for parameter in model.parameters()) == reference_params(case)[0]
