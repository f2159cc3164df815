"""Every figure on the page is what `archc report --json` says of the spec that the page writes of itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from archc.spec.load import shipped_names
from tests.cli.runner import archc
from tests.explorer.browser import Watched, watched
from tests.explorer.compared import held, move, read, wrong_figures

Opener = Callable[..., Watched]
# Each with something that others lack: learned tables, ALiBi, windows, chunks, latents, states, experts, shared caches.
FEW = ["gpt2", "llama3.1-8b", "gemma3-1b", "deepseek-v3", "falcon-h1-0.5b", "mamba-2.8b", "bloom-176b", "gpt-oss-20b"]
STATES = 10
MOVES = 3
BESIDE = ["llama3-8b", "deepseek-v2-lite", "jamba1.5-mini"]


def report_of(spec: str, *options: str) -> Any:
    return archc("report", spec, *options, "--json").json


@pytest.mark.parametrize("spec", FEW)
def test_as_declared(open_page: Opener, tmp_path: Path, spec: str) -> None:
    one = open_page(f"#spec={spec}")
    screen = read(one.page)
    assert held(screen, tmp_path) == []
    assert wrong_figures(screen.of("1"), report_of(spec)) == []
    assert screen.command == f"archc generate {spec} -o model.py"
    assert screen.reporting == f"archc report {spec}"


@pytest.mark.parametrize("beside", BESIDE)
def test_model_beside(open_page: Opener, tmp_path: Path, beside: str) -> None:
    one = open_page(f"#spec=qwen3-0.6b&beside={beside}&length=3000&batch=3&kv_dtype=float8")
    screen = read(one.page)
    assert (
        screen.reporting == "archc report qwen3-0.6b --context 3000 --batch 3 --kv-dtype float8 --state-dtype bfloat16"
    )
    assert held(screen, tmp_path) == []
    assert len(screen.of("2")) > 30
    types = ("--dtype", "bfloat16", *screen.options)  # those of the first model
    assert wrong_figures(screen.of("2"), report_of(beside, *types)) == []


def test_model_with_a_table_beside(open_page: Opener) -> None:
    """Beyond its table of positions there is none to show, so it stands at the end of it."""
    one = open_page("#spec=llama3-8b&beside=gpt2&batch=3")
    types = ("--batch", "3", "--dtype", "bfloat16", "--kv-dtype", "bfloat16")
    assert wrong_figures(read(one.page).of("2"), report_of("gpt2", *types)) == []
    assert "as its table of positions allows" in one.page.locator("#second-hint").inner_text()
    one.go("#spec=llama3-8b&beside=gpt2&length=500")
    assert wrong_figures(read(one.page).of("2"), report_of("gpt2", "--context", "500", *types[2:])) == []


def test_the_context_in_use_is_no_part_of_a_model(open_page: Opener, tmp_path: Path) -> None:
    """It sizes the cache. What a model was trained for, and what it is, stay; beyond a table there is nothing."""
    one = open_page("#spec=llama3-8b&length=30000")
    screen = read(one.page)
    assert held(screen, tmp_path) == []
    assert screen.reporting == "archc report llama3-8b --context 30000"
    assert ("limits.trained_context", 8192) in screen.of("1")
    assert "llama3-8b was trained for 8,192: 30,000 is beyond." in one.page.locator(".reach").inner_text()
    one.go("#spec=gpt2&length=30000")
    assert read(one.page).reporting == "archc report gpt2"
    assert held(read(one.page), tmp_path) == []


def test_rows_of_a_table_are_part_of_a_model(open_page: Opener, tmp_path: Path) -> None:
    """They are parameters, and the end of what can be used; where positions turn there is no such slider."""
    one = open_page("#spec=gpt2&context=2048")
    screen = read(one.page)
    assert held(screen, tmp_path) == []
    assert ("params.total", 124439808 + 1024 * 768) in screen.of("1")
    assert "context: 2048" in screen.spec
    one.go("#spec=gpt2&context=512&length=1000")
    assert ("kv_cache.context", 512) in read(one.page).of("1")
    one.go("#spec=gpt2&context=2048&switch.positions=rope")
    assert one.page.get_by_label("Rows of the position table", exact=True).count() == 0
    assert "context: 1024" in read(one.page).spec
    assert held(read(one.page), tmp_path) == []


def test_one_altered_figure_is_noticed(open_page: Opener, tmp_path: Path) -> None:
    """The twin: one digit, one key that the report lacks, one figure taken away, one finding made up."""
    norm = "document.querySelector(\"[data-key='params.norm']\")"
    share = "document.querySelector(\"[data-key='block.ffn_share']\")"
    made_up = "Object.assign(document.createElement('p'), {textContent: 'x'})"
    alterations = {
        "params.norm: the page has 38401": f"() => ({norm}.dataset.value = '38401')",
        "params.nrom": f"() => ({norm}.dataset.key = 'params.nrom')",
        "block.ffn_share is not shown": f"() => {share}.remove()",
        "kv_cache.batch": "() => (document.querySelector('#report-command').textContent += ' --batch 2')",
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
    broken = replace(screen, spec=spec)
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
