"""Random valid specs are sized, whatever they combine; what can be generated has as many parameters as the report says.

Outside truth: sums that have to hold in any model, and torch's own count of the parameters of the generated module.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from types import ModuleType
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, reject, settings

from archc.analysis import build_report
from archc.architecture import Architecture, compile_text
from archc.codegen import UngeneratedError, generate
from archc.spec.diagnostics import SpecError
from tests.fuzz.strategies import Tree, every_kind, forcing, plain_specs, specs

KINDS = every_kind()
EACH = 36
"""Valid specs that have a section of each kind."""
GENERATED = 300

PARTS = ("embedding", "head", "attention", "ffn", "router", "norm", "position", "other")

fuzzed = settings(
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate, Phase.shrink),
    suppress_health_check=list(HealthCheck),
)


def compiled(tree: Tree) -> Architecture:
    """The Architecture of a drawn spec; one that archc refuses does not count."""
    try:
        return compile_text(json.dumps(tree)).architecture
    except SpecError:
        reject()


def check_sums(report: Any, doubled: Any) -> None:
    """What holds for the sizes of any model; `doubled` is the report for twice the batch."""
    params, cache = report["params"], report["kv_cache"]
    assert sum(params[part] for part in PARTS) == params["total"]
    assert all(params[part] >= 0 for part in PARTS)
    assert 0 < params["active"] <= params["total"]
    assert params["total_without_embeddings"] <= params["total"]
    assert cache["reference_elements_at_context"] >= 0
    assert cache["bytes_at_context_reserved"] >= cache["bytes_at_context"] >= 0
    assert doubled["kv_cache"]["bytes_at_context"] == 2 * cache["bytes_at_context"]
    for kind in cache["by_kind"].values():
        per_token = kind["elements_per_token"] + kind["window_elements_per_token"]
        assert 0 <= kind["elements_at_context"] <= (per_token * cache["context"] + kind["fixed_elements"]) * (1 + 1e-9)
    assert all(math.isfinite(number) and number >= 0 for number in numbers(report["flops"]))
    assert sum(row["params"] for row in report["layer_table"]) >= params["attention"] + params["ffn"]


def numbers(value: Any) -> list[float]:
    """All numbers in a report's section."""
    if isinstance(value, dict):
        return [number for inner in value.values() for number in numbers(inner)]
    return [value] if isinstance(value, int | float) and not isinstance(value, bool) else []


def test_two_thousand_specs_are_drawn() -> None:
    assert EACH * len(KINDS) >= 2000


@pytest.mark.slow
@pytest.mark.parametrize(("place", "kind"), KINDS, ids=lambda word: word)
def test_random_specs_are_sized(place: str, kind: str) -> None:
    sized = 0

    @settings(fuzzed, max_examples=EACH)
    @given(specs(forcing(place, kind)))
    def check(tree: Tree) -> None:
        nonlocal sized
        architecture = compiled(tree)
        report = build_report(architecture, layers=True, fits=2**36)
        check_sums(report, build_report(architecture, batch=2))
        json.dumps(report, allow_nan=False)
        sized += 1

    check()
    assert sized >= EACH, "too many of the drawn specs are refused"


def count_generated(source: str) -> int:
    """The parameters of a generated module, as torch counts them; no memory is used for them."""
    module = ModuleType("fuzz_generated")
    sys.modules[module.__name__] = module  # where dataclasses look up annotations
    exec(compile(source, module.__name__, "exec"), module.__dict__)
    with torch.device("meta"):
        model = module.Model()
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.slow
def test_generated_modules_have_the_parameters_of_the_report() -> None:
    ended: Counter[str] = Counter()

    @settings(fuzzed, max_examples=GENERATED)
    @given(plain_specs())
    def check(tree: Tree) -> None:
        architecture = compiled(tree)
        try:
            source = generate(architecture)
        except UngeneratedError:
            ended["refused"] += 1
            reject()
        report = build_report(architecture)
        assert count_generated(source) == report["params"]["total"]
        ended["generated"] += 1
        ended["with experts"] += "moe" in report

    check()
    assert ended["generated"] >= GENERATED
    assert ended["refused"] < ended["generated"], "most plain designs can be generated"
    assert ended["with experts"] >= GENERATED / 10


def test_a_miscounted_module_is_seen() -> None:
    spec = forged()
    architecture = compile_text(json.dumps(spec)).architecture
    wider = compile_text(json.dumps({**spec, "ffn": {**spec["ffn"], "width": 25}})).architecture
    assert count_generated(generate(architecture)) == build_report(architecture)["params"]["total"]
    assert count_generated(generate(wider)) != build_report(architecture)["params"]["total"]


@pytest.mark.parametrize("part", [*PARTS, "total"])
def test_a_wrong_sum_is_seen(part: str) -> None:
    architecture = compile_text(json.dumps(forged())).architecture
    report, doubled = build_report(architecture, layers=True), build_report(architecture, batch=2)
    check_sums(report, doubled)
    report["params"][part] += 1  # type: ignore[literal-required]
    with pytest.raises(AssertionError):
        check_sums(report, doubled)


def forged() -> Tree:
    """A spec to be changed."""
    return {
        "archc": 1,
        "name": "forged",
        "vocab_size": 40,
        "hidden_size": 24,
        "context": 16,
        "dtype": "float32",
        "embedding": {"tied": False},
        "norm": {"kind": "rmsnorm", "eps": 1e-6},
        "position": {"kind": "rope", "base": 100.0},
        "attention": {"heads": 4, "kv_heads": 2},
        "ffn": {"kind": "gated", "activation": "silu", "width": 24},
        "layers": 2,
    }
