"""Every figure on the page is what `archc report --json` says of the spec that the page writes of itself."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from archc.analysis import build_report
from archc.architecture import compile_spec
from archc.spec.load import shipped_names
from tests.explorer.browser import Watched, watched
from tests.explorer.compared import Screen, held, move, read, wrong_figures

Opener = Callable[..., Watched]
# Each with something that others lack: learned tables, ALiBi, windows, chunks, latents, states, experts, shared caches.
FEW = ["gpt2", "llama3.1-8b", "gemma3-1b", "deepseek-v3", "falcon-h1-0.5b", "mamba-2.8b", "bloom-176b", "gpt-oss-20b"]
STATES = 10
MOVES = 3
BESIDE = ["llama3-8b", "deepseek-v2-lite", "jamba1.5-mini"]


def report_of(spec: str, screen: Screen, context: int | None = None) -> object:
    changes = [] if context is None else [f"context={context}"]
    return json.loads(json.dumps(build_report(compile_spec(spec, changes).architecture, **screen.sizes)))


@pytest.mark.parametrize("spec", FEW)
def test_as_declared(open_page: Opener, tmp_path: Path, spec: str) -> None:
    one = open_page(f"#spec={spec}")
    screen = read(one.page)
    assert held(screen, tmp_path) == []
    assert wrong_figures(screen.of("1"), report_of(spec, screen)) == []
    assert screen.command == f"archc generate {spec} -o model.py"


@pytest.mark.parametrize("beside", BESIDE)
def test_model_beside(open_page: Opener, tmp_path: Path, beside: str) -> None:
    one = open_page(f"#spec=qwen3-0.6b&beside={beside}&context=3000&batch=3&kv_dtype=float8")
    screen = read(one.page)
    assert held(screen, tmp_path) == []
    assert len(screen.of("2")) > 30
    assert wrong_figures(screen.of("2"), report_of(beside, screen, 3000)) == []


def test_model_with_a_table_beside(open_page: Opener) -> None:
    """Its table of positions is part of it: at a context of another model it would be another model."""
    screen = read(open_page("#spec=llama3-8b&beside=gpt2&batch=3").page)
    assert wrong_figures(screen.of("2"), report_of("gpt2", screen)) == []
    assert ("kv_cache.context", 1024) in screen.of("2")


def test_nobody_trained_a_model_for_what_is_set_here(open_page: Opener) -> None:
    """A context that a slider, or the model beside, asks for is none that a model was trained for."""
    beside = open_page("#spec=deepseek-v3&beside=llama3-8b").page.locator(".reach")
    assert "llama3-8b was trained for 8,192: 163,840 is beyond." in beside.inner_text()
    moved = open_page("#spec=llama3-8b&context=30000").page
    assert "as set here; trained for 8,192" in moved.locator("#headline").inner_text()
    declared = open_page("#spec=llama3-8b").page
    assert "as trained" in declared.locator("#headline").inner_text()
    assert "was trained for 8,192." in declared.locator(".reach").inner_text()


def test_one_altered_figure_is_noticed(open_page: Opener, tmp_path: Path) -> None:
    """The twin: one digit, one key that the report lacks, one figure taken away, one finding made up."""
    norm = "document.querySelector(\"[data-key='params.norm']\")"
    share = "document.querySelector(\"[data-key='block.ffn_share']\")"
    made_up = "Object.assign(document.createElement('p'), {textContent: 'x'})"
    alterations = {
        "params.norm: the page has 38401": f"() => ({norm}.dataset.value = '38401')",
        "params.nrom": f"() => ({norm}.dataset.key = 'params.nrom')",
        "block.ffn_share is not shown": f"() => {share}.remove()",
        "W999": f"() => {{ const one = {made_up}; one.dataset.code = 'W999'; "
        "document.querySelector('#findings').append(one); }",
    }
    for told, alteration in alterations.items():
        one = open_page()
        assert held(read(one.page), tmp_path) == []
        one.page.evaluate(alteration)
        wrong = held(read(one.page), tmp_path)
        assert wrong, told
        assert told in " ".join(wrong)


def test_figures_that_should_not_be_there_are_noticed(open_page: Opener, tmp_path: Path) -> None:
    """A page that goes on showing figures of a design that archc refuses does not pass."""
    screen = read(open_page().page)
    spec = screen.spec.replace("heads: 12", "heads: 12, kv_heads: 5")
    broken = Screen(screen.figures, screen.findings, spec, screen.command, screen.sizes)
    assert any("archc refuses" in line for line in held(broken, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("spec", shipped_names())
def test_wherever_the_controls_lead(browser: Browser, url: str, tmp_path: Path, spec: str) -> None:
    """From every shipped spec, ten states that a few controls moved at random lead to."""
    chance = random.Random(spec)
    wrong = []
    with watched(browser, url) as one:
        one.go()
        for state in range(STATES):
            one.page.evaluate("(to) => (location.hash = to)", f"#spec={spec}&state={state}")
            one.rested()
            done = [move(one, chance) for _ in range(MOVES)]
            wrong += [f"after {', '.join(done)}: {line}" for line in held(read(one.page), tmp_path)]
    assert wrong == []
