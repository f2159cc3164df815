"""Every family's parameters and cache, from its config alone, against Hugging Face's own classes."""

from __future__ import annotations

import pytest

from archc.analysis import build_report
from archc.architecture import compile_text
from archc.families import known_families
from archc.importing.convert import convert
from archc.importing.resolve import UnknownModelError
from tests.families.zoo import CASES, reference_cache, reference_params
from tests.families.zoo_case import Case

# Classes make weights of no elements where a config asks for no shared expert.
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
TOKENS = 40
# Families that are refused, and a word of the reason.
REFUSED = {"blt": "four models"}
IMPORTABLE = [case for case in CASES if case.model_type not in REFUSED]


def named(case: Case) -> str:
    return case.name


def test_every_family_is_importable_or_refused_by_name() -> None:
    assert {case.model_type for case in IMPORTABLE} <= set(known_families())


@pytest.mark.parametrize("case", [case for case in CASES if case.model_type in REFUSED], ids=named)
def test_refusals(case: Case) -> None:
    with pytest.raises(UnknownModelError, match=REFUSED[case.model_type]):
        convert(case.config_dict(), case.name)


@pytest.mark.parametrize("case", IMPORTABLE, ids=named)
def test_parameters(case: Case) -> None:
    report = build_report(compile_text(convert(case.config_dict(), case.name).text).architecture)
    parameters, buffers = reference_params(case)
    assert report["params"]["total"] == parameters
    assert report["params"]["stored_buffers"] == buffers


@pytest.mark.parametrize("case", IMPORTABLE, ids=named)
def test_cache(case: Case) -> None:
    reference = reference_cache(case, TOKENS)
    if reference is None:
        pytest.skip("the class returns no cache")
    report = build_report(compile_text(convert(case.config_dict(), case.name).text).architecture, context=TOKENS)
    assert report["kv_cache"]["reference_elements_at_context"] == reference.elements
