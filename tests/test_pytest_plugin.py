"""The pytest plugin, run on test files of their own."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from transformers.utils import logging

from archc.faults import catalogue
from tests.test_imports import ROOT, run_watched
from tests.tiny import BY_NAME

pytest_plugins = ["pytester"]

# An installation from before the plugin does not know it yet.
INSTALLED = any(point.value == "archc.pytest_plugin" for point in entry_points(group="pytest11"))
PLUGIN = () if INSTALLED else ("-p", "archc.pytest_plugin")
PORTS = """
import torch
import transformers


def load(weights, dtype):
    return transformers.AutoModelForCausalLM.from_pretrained(
        weights, dtype=dtype, attn_implementation="eager"
    ).eval()


def scaled(weights, dtype):
    model = load(weights, dtype)
    return lambda input_ids: model(input_ids).logits * 1.001
"""


@pytest.fixture(autouse=True)
def few_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that looks for few mistakes is a quick one."""
    few = tuple(one for one in catalogue.CATALOGUE if one.id in {"position.pairing", "cache.positions"})
    monkeypatch.setattr(catalogue, "CATALOGUE", few)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import_module("archc.validation.gate")  # the sessions in the tests then find it imported
    logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("weights")
    BY_NAME["llama-default"].save(folder)
    return folder


def run(pytester: pytest.Pytester, weights: Path, body: str) -> pytest.RunResult:
    """Run a file with one test, in which SPEC and WEIGHTS are known."""
    pytester.path.joinpath("spec.yaml").write_text(BY_NAME["llama-default"].text())
    pytester.path.joinpath("ports.py").write_text(PORTS)
    pytester.makepyfile(f"import torch\n\nimport ports\n\nSPEC, WEIGHTS = 'spec.yaml', {str(weights)!r}\n\n\n{body}")
    return pytester.runpytest_inprocess(*PLUGIN, "-p", "no:cacheprovider", "--color=no")


HOLDING = (
    "None",
    "'ports.py:load'",
    "ports.load",
    "ports.load(WEIGHTS, torch.float32)",
    "lambda input_ids, m=ports.load(WEIGHTS, torch.float32): m(input_ids).logits",
)
FAILING = ("'ports.py:scaled'",)


def one_test_each(ports: tuple[str, ...]) -> str:
    """A test for each port, with what makes the port as it stands in the file."""
    return "\n\n".join(
        f"def test_{number}(archc_validate):\n"
        f"    result = archc_validate(SPEC, port={port}, weights=WEIGHTS)\n"
        "    assert result.passed and result.probes\n"
        for number, port in enumerate(ports)
    )


@pytest.mark.slow
def test_ports_of_all_kinds_that_hold(pytester: pytest.Pytester, weights: Path) -> None:
    run(pytester, weights, one_test_each(HOLDING)).assert_outcomes(passed=len(HOLDING))


@pytest.mark.slow
def test_ports_that_do_not_hold_fail_their_tests_in_few_lines(pytester: pytest.Pytester, weights: Path) -> None:
    """A factor of all logits leaves the likeliest token as it is, and the port is wrong all the same."""
    result = run(pytester, weights, one_test_each(FAILING))
    result.assert_outcomes(failed=len(FAILING))
    for port in FAILING:
        result.stdout.fnmatch_lines(
            [
                f">*archc_validate(SPEC, port={port}, weights=WEIGHTS)",
                "E*Failed: llama-default: FAIL: * probes beyond 8 times the noise floor, by up to *",
            ]
        )
    assert "pytest_plugin.py" not in result.stdout.str(), "the failure is shown in the test"


@pytest.mark.slow
def test_overrides_and_strict(pytester: pytest.Pytester, weights: Path) -> None:
    body = (
        "def test_overrides(archc_validate):\n"
        "    archc_validate(SPEC, weights=WEIGHTS, overrides=['position.base=5400'])\n\n\n"
        "def test_strict(archc_validate):\n"
        "    function = ports.load(WEIGHTS, torch.float32)\n"
        "    archc_validate(SPEC, weights=WEIGHTS, port=lambda input_ids: function(input_ids).logits, strict=True)\n"
    )
    result = run(pytester, weights, body)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["E*llama-default: FAIL: every probe holds, but * (--strict)", "E*a port with cache.positions*"]
    )


def test_what_keeps_it_from_a_verdict_fails_the_test(pytester: pytest.Pytester, weights: Path) -> None:
    body = (
        "def test_weights(archc_validate):\n    archc_validate(SPEC, weights='absent')\n\n\n"
        "def test_port(archc_validate):\n    archc_validate(SPEC, port='ports.py:lod', weights=WEIGHTS)\n\n\n"
        "def test_target(archc_validate):\n    archc_validate('no-such-spec')\n\n\n"
        "def test_dtype(archc_validate):\n    archc_validate(SPEC, weights=WEIGHTS, dtype='int4')\n"
    )
    result = run(pytester, weights, body)
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines(
        [
            "E*Failed: archc validate spec.yaml has no verdict: absent does not exist; *",
            "E*Failed: archc validate spec.yaml has no verdict: ports.py has no function lod; *",
            "E*Failed: archc validate no-such-spec has no verdict: no spec 'no-such-spec'*",
            "E*Failed: archc validate spec.yaml has no verdict: 'int4' is no type to validate in; *",
        ]
    )


def test_the_plugin_is_found_by_pytest() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.pytest11]\narchc = "archc.pytest_plugin"\n' in pyproject


def test_loading_it_is_cheap() -> None:
    """pytest loads it in every session, also where no test of it is."""
    watched = ("numpy", "torch", "transformers", "msgspec", "yaml", "jinja2", "rich", "archc.validation", "archc.spec")
    found, done = run_watched("import pytest; import archc.pytest_plugin", watched=watched)
    assert done.returncode == 0, done.stderr
    assert found == []
