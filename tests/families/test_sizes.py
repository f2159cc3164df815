"""Every family's parameters and cache, from its config alone, against Hugging Face's own classes."""

from __future__ import annotations

import pytest

from archc.analysis import build_report
from archc.architecture import compile_text
from archc.families import known_families
from archc.importing.convert import convert
from tests.families.zoo import CASES, reference_cache, reference_params
from tests.families.zoo_case import Case

TOKENS = 40
IMPORTABLE = [case for case in CASES if case.model_type in known_families()]


def named(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", IMPORTABLE, ids=named)
def test_parameters(case: Case) -> None:
    report = build_report(compile_text(convert(case.config_dict(), case.name).text).architecture)
    parameters, _ = reference_params(case)
    assert report["params"]["total"] == parameters


@pytest.mark.parametrize("case", IMPORTABLE, ids=named)
def test_cache(case: Case) -> None:
    reference = reference_cache(case, TOKENS)
    if reference is None:
        pytest.skip("the class returns no cache")
    report = build_report(compile_text(convert(case.config_dict(), case.name).text).architecture, context=TOKENS)
    assert report["kv_cache"]["reference_elements_at_context"] == reference.elements
