"""The page writes numbers as the terminal does, digit for digit."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from importlib.resources import files

import pytest
from playwright.sync_api import Browser, Page

from archc.render import units

PAIRS: list[tuple[str, Callable[[float], str]]] = [
    ("decimalBytes", units.decimal_bytes),
    ("binaryBytes", units.binary_bytes),
    ("shortCount", units.short_count),
    ("operations", units.operations),
    ("exact", units.exact),
]
EDGES = [0, 1, 999, 1000, 1023, 1024, 999_949, 999_950, 999_999, 1_000_000, 131_072, 512_500, 100_050, 2**53, 10**18]


@pytest.fixture(scope="module")
def scripts(browser: Browser) -> Iterator[Page]:
    page = browser.new_page()
    page.add_script_tag(content=(files("archc.explorer") / "assets" / "units.js").read_text(encoding="utf-8"))
    yield page
    page.close()


def counts() -> list[int]:
    chance = random.Random(7)
    return [*EDGES, *(chance.randrange(10 ** chance.randrange(1, 18)) for _ in range(1500))]


@pytest.mark.parametrize(("name", "told"), PAIRS, ids=[name for name, _ in PAIRS])
def test_counts(scripts: Page, name: str, told: Callable[[float], str]) -> None:
    numbers = counts()
    # As text: a number on its way through the browser's protocol would be rounded, as BigInt it is not.
    found = scripts.evaluate(f"(all) => all.map((one) => {name}(BigInt(one)))", [str(number) for number in numbers])
    assert found == [told(number) for number in numbers]


def test_shares_and_periods(scripts: Page) -> None:
    chance = random.Random(8)
    shares = [0.0, 1.0, 0.1225, 0.00125, *(chance.random() for _ in range(1000))]
    assert scripts.evaluate("(all) => all.map(percent)", shares) == [units.percent(share) for share in shares]
    periods = [6.283185307179586, 0.5, *(10 ** chance.uniform(-1, 9) for _ in range(1000))]
    assert scripts.evaluate("(all) => all.map(exact)", periods) == [units.exact(period) for period in periods]


def test_a_plain_rounding_would_differ(scripts: Page) -> None:
    """Half to even is seen: 131.25 has 131.2 in Python, and 131.3 with toPrecision."""
    assert scripts.evaluate("(131.25).toPrecision(4)") == "131.3"
    assert scripts.evaluate("significant(131.25, 4)") == f"{131.25:.4g}" == "131.2"


@pytest.mark.parametrize("value", ["1", "0.1", '"a\\"<b"', "null", "true", '["layernorm"]', "1e+21"])
def test_values_as_json(scripts: Page, value: str) -> None:
    assert scripts.evaluate("(text) => asJson(JSON.parse(text))", value) == value
