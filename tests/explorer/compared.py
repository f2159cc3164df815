"""What stands on the page, held against what archc says of the spec that the page writes of itself."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from archc.cli.check import check
from tests.cli.runner import archc
from tests.explorer.browser import Watched

READ = """() => ({
  figures: [...document.querySelectorAll("[data-key]")].map((one) =>
    [one.dataset.model, one.dataset.key, one.dataset.value, one.textContent]),
  findings: [...document.querySelectorAll("#findings [data-code]")].map((one) => one.dataset.code),
  spec: document.querySelector("#spec-source").textContent,
  command: document.querySelector("#command").textContent,
  reporting: document.querySelector("#report-command").textContent,
})"""
ABSENT = object()
WRITTEN = "my-model.yaml"
# What the page says in other ways than figure by figure: as a drawing, or in the playground of rotary positions.
ELSEWHERE = {
    *("name", "family", "mixers", "norms", "positions", "layer_kinds", "notes", "undeclared"),
    *("rope.attention_factor", "rope.by_kind"),
    *("weights.conventions", "flops.conventions"),
}


@dataclass(frozen=True)
class Screen:
    """What can be read on the page."""

    figures: list[tuple[str, str, str, str]]
    """Which model, the key in the report, the exact value as JSON, and what a reader sees."""
    findings: list[str]
    spec: str
    command: str
    reporting: str
    """The command that prints the figures."""

    @property
    def options(self) -> list[str]:
        """What the command asks for, behind the spec."""
        return shlex.split(self.reporting)[3:]

    def of(self, model: str) -> list[tuple[str, Any]]:
        """Keys and values of one model."""
        return [(key, json.loads(value)) for which, key, value, _ in self.figures if which == model]


def read(page: Page) -> Screen:
    """The page as it is now."""
    found = page.evaluate(READ)
    figures = [tuple(figure) for figure in found["figures"]]
    return Screen(figures, found["findings"], found["spec"], found["command"], found["reporting"])


def at(report: Any, key: str) -> Any:
    """What a report has under a dotted key, in which a name may hold dots itself; ABSENT where it has nothing."""
    if not key:
        return report
    if not isinstance(report, dict):
        return ABSENT
    names = key.split(".")
    for size in range(1, len(names) + 1):
        name = ".".join(names[:size])
        if name in report and (found := at(report[name], ".".join(names[size:]))) is not ABSENT:
            return found
    return ABSENT


def wrong_figures(shown: list[tuple[str, Any]], report: Any) -> list[str]:
    """Every figure that is another than the report's, exactly."""
    found = []
    for key, value in shown:
        expected = at(report, key)
        if value != expected or isinstance(value, bool) != isinstance(expected, bool):
            found.append(f"{key}: the page has {value!r}, the report {'nothing' if expected is ABSENT else expected!r}")
    return found


def missing_figures(shown: list[tuple[str, Any]], report: dict[str, Any]) -> list[str]:
    """Every figure of the report that the page does not show, but those that go without saying.

    That is what is zero, and what is active where everything is.
    """
    keys = {key for key, _ in shown}
    dense = report["params"]["active"] == report["params"]["total"]
    saying = [key for key, value in leaves(report) if value not in (0, None) and not (dense and "params.active" in key)]
    return [key for key in saying if key not in keys]


def leaves(report: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values of what a report holds."""
    for name, value in report.items():
        path = f"{key}.{name}" if key else name
        if path in ELSEWHERE:
            continue
        if isinstance(value, dict):
            yield from leaves(value, path)
        else:
            yield path, value


def held(screen: Screen, folder: Path) -> list[str]:
    """Everything in which the first model on the page differs from what archc says of its spec, asked as it says."""
    wrong = wrong_findings(screen, folder)
    shown = screen.of("1")
    done = archc("report", str(folder / WRITTEN), *screen.options, "--json")
    if done.code:
        return [*wrong, *([f"the page has figures, and archc refuses: {done.err}"] if shown else [])]
    report = done.json
    if not shown:
        return [*wrong, f"the page has no figures, and says {screen.findings}"]
    return [*wrong, *wrong_figures(shown, report), *(f"{key} is not shown" for key in missing_figures(shown, report))]


def wrong_findings(screen: Screen, folder: Path) -> list[str]:
    """In what the findings differ from those of `archc check`. (That a size is out of reach is no finding there.)"""
    path = folder / WRITTEN
    path.write_text(screen.spec, encoding="utf-8")
    expected = sorted({diagnostic.code for diagnostic in check(str(path)).diagnostics})
    found = sorted({code for code in screen.findings if code[1:].isdigit()})
    return [] if found == expected else [f"findings: the page has {found}, archc check {expected}"]


def move(one: Watched, chance: random.Random) -> str:
    """Move one control at random, as a hand would. Returns what was done."""
    page = one.page
    kind = chance.choice(["switch", "number", "number", "range", "type"])
    if kind == "switch":
        inputs = page.locator("#switches input:not(:disabled):not(:checked)")
        if not (count := inputs.count()):
            return "no switch"
        chosen = inputs.nth(chance.randrange(count))
        done = f"{chosen.get_attribute('name')} {chosen.get_attribute('value')}"
        chosen.check()
    elif kind == "type":
        chosen = page.locator("#use select").nth(chance.randrange(3))
        values = chosen.locator("option").evaluate_all("(all) => all.map((one) => one.value)")
        done = f"{chosen.get_attribute('id')} {chosen.select_option(chance.choice(values))[0]}"
    else:
        done = _slide(page, kind, chance)
    one.drawn()
    return done


def _slide(page: Page, kind: str, chance: random.Random) -> str:
    sliders = page.locator(f"#design .slider input[type={kind}]")
    chosen = sliders.nth(chance.randrange(sliders.count()))
    low, high = int(chosen.get_attribute("min") or 0), int(chosen.get_attribute("max") or 0)
    # Large numbers as often as small ones; typed ones need not be round.
    value = (
        chance.randint(low, high) if kind == "range" else round(max(1, low) * (high / max(1, low)) ** chance.random())
    )
    chosen.fill(str(value))
    if kind == "number":
        chosen.press("Enter")
    return f"{chosen.get_attribute('id')} {value}"
