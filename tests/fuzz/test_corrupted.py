"""Whatever is wrong with a spec or a config, archc says so: never a traceback, never a number that is none."""

from __future__ import annotations

import copy
import json
import math
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from archc import resources
from archc.analysis import build_report
from archc.architecture import compile_text
from archc.errors import ArchcError
from archc.importing.convert import convert
from archc.parts.base import Fields
from archc.parts.kinds import KINDS, fields_of
from archc.spec.language import Header
from archc.spec.twins import twin
from tests.cli.runner import archc
from tests.families.zoo import CASES
from tests.fuzz.corruption import SPOILERS, VALUES, places, spoiled, spoiled_config
from tests.fuzz.strategies import section
from tests.fuzz.test_specs import fuzzed

SPECS = sorted(resources.folder("specs").rglob("*.yaml"))
CONFIGS = sorted((Path(__file__).parents[1] / "specs" / "configs").glob("*.json"))
EACH, BATCHES, BATCH = 230, 8, 250
SECONDS = 30
MODELS = [
    Header,
    *(fields_of(place, kind) for place, kinds in KINDS.items() for kind in kinds if place != "scaling"),
]
"""A scaling is an alternative of position.scaling: it is never read by itself."""


class HangError(BaseException):
    """An example takes too long. No Exception: nothing may catch it as a fault of the config."""


@contextmanager
def limited() -> Iterator[None]:
    """Ends what takes longer than any spec or config should."""

    def end(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def outcome(make: Callable[[], str]) -> str:
    """How sizing the spec that `make` gives ends: sized, or refused with something to read."""
    try:
        with limited():
            compiled = compile_text(make())
            json.dumps(build_report(compiled.architecture, layers=True), allow_nan=False)
    except ArchcError as error:
        return "refused" if error.exit_code in (1, 2, 3) and str(error).strip() else "refused without a word"
    assert all(map(math.isfinite, numbers(msgspec.to_builtins(compiled.loaded.spec))))
    return "sized"


def numbers(value: Any) -> Iterator[float]:
    """All numbers in nested values."""
    if isinstance(value, dict | list | tuple):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from numbers(inner)
    elif isinstance(value, float):
        yield value


def spec_text(spoiler: Any, number: int) -> str:
    """The corrupted spec of that number."""
    random = Random(f"{spoiler.__name__} {number}")
    return spoiled(random.choice(SPECS).read_text(encoding="utf-8"), spoiler, random)


def config_of(number: int) -> dict[str, Any]:
    """The corrupted config of that number: mostly a tiny one of any model type, which is read quickly."""
    random = Random(f"config {number}")
    if number % 10 == 0:
        return spoiled_config(json.loads(random.choice(CONFIGS).read_text(encoding="utf-8")), random)
    return spoiled_config(random.choice(CASES).config_dict(), random)


def test_two_thousand_of_each_are_corrupted() -> None:
    assert EACH * len(SPOILERS) >= 2000
    assert BATCHES * BATCH >= 2000


@pytest.mark.slow
@pytest.mark.parametrize("spoiler", SPOILERS, ids=lambda spoiler: spoiler.__name__)
def test_a_corrupted_spec_is_refused_or_sized(spoiler: Any) -> None:
    ended: Counter[str] = Counter()
    for number in range(EACH):
        text = spec_text(spoiler, number)
        try:
            ended[outcome(lambda text=text: text)] += 1  # type: ignore[misc]
        except BaseException as error:
            error.add_note(f"{spoiler.__name__} {number}:\n{text}")
            raise
    assert set(ended) == {"refused", "sized"}
    assert ended["refused"] > ended["sized"] > 0, "a corruption should mostly matter, and not always"


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(BATCHES))
def test_a_corrupted_config_is_refused_or_sized(batch: int) -> None:
    ended: Counter[str] = Counter()
    for number in range(batch * BATCH, (batch + 1) * BATCH):
        config = config_of(number)
        try:
            ended[outcome(lambda config=config: convert(config, "fuzz").text)] += 1  # type: ignore[misc]
        except BaseException as error:
            error.add_note(f"config {number}: {config!r}")
            raise
    assert set(ended) == {"refused", "sized"}


@pytest.mark.slow
@pytest.mark.parametrize("command", ["report", "check"])
def test_the_command_line_ends_with_a_code_and_no_traceback(command: str, tmp_path: Path) -> None:
    codes: Counter[int] = Counter()
    for number, spoiler in enumerate(SPOILERS * 6):
        spec, config = tmp_path / f"{number}.yaml", tmp_path / f"{number}.json"
        spec.write_text(spec_text(spoiler, number), encoding="utf-8", errors="surrogatepass")
        config.write_text(json.dumps(config_of(number)), encoding="utf-8")
        for file in (spec, config):
            with limited():
                done = archc(command, str(file))
            assert done.code in (0, 1, 2, 3)
            assert "Traceback" not in done.err
            assert "this is a bug" not in done.err
            assert done.err or not done.code
            codes[done.code] += 1
    assert set(codes) >= {0, 1}


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf", "1e309", "1e-400"])
@pytest.mark.parametrize("key", ["norm.eps", "position.base", "attention.scale", "published.params.total.value"])
def test_what_is_no_number_reaches_no_field(key: str, number: str) -> None:
    with pytest.raises(ArchcError, match="E007"):
        compile_text(SPECS[0].read_text(encoding="utf-8"), overrides=[f"{key}={number}"])


# ---------------------------------------------------------------- msgspec and pydantic

READABLE = [value for value in VALUES if not isinstance(value, float) or math.isfinite(value)]
READABLE = [value for value in READABLE if not isinstance(value, int) or -(2**63) <= value < 2**63]
"""What a spec can hold: reading one refuses other numbers."""


def accepts(model: type[Fields], tree: Any) -> tuple[bool, bool]:
    """Whether msgspec takes a section, and whether its pydantic twin does."""
    try:
        msgspec.convert(tree, model)
        fast = True
    except msgspec.ValidationError:
        fast = False
    try:
        twin(model).model_validate(tree)
    except ValidationError:
        return fast, False
    return fast, True


@pytest.mark.slow
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_msgspec_and_its_twin_agree(model: type[Fields]) -> None:
    seen: Counter[bool] = Counter()

    @settings(fuzzed, max_examples=40)
    @given(section(model), st.integers(0, 2**32))
    def check(tree: dict[str, Any], seed: int) -> None:
        random = Random(seed)
        tree = {**tree, "layers": 2, "archc": 1, "name": "a", "norm": NORM} if model is Header else tree
        for wrong in (tree, replaced(tree, random), replaced(tree, random)):
            fast, slow = accepts(model, wrong)
            assert fast == slow, wrong
            seen[fast] += 1

    check()
    assert seen[True] >= 40
    assert seen[False]


NORM = {"kind": "rmsnorm", "eps": 1e-6}


def replaced(tree: dict[str, Any], random: Random) -> dict[str, Any]:
    """A section with one value replaced, dropped or added."""
    tree = copy.deepcopy(tree)
    if not tree or random.random() < 0.1:
        return {**tree, random.choice(["stray", "kind", "width"]): random.choice(READABLE)}
    place, key = random.choice(list(places(tree)))
    if random.random() < 0.2:
        del place[key]
    else:
        place[key] = copy.deepcopy(random.choice(READABLE))
    return tree


def test_a_disagreement_would_be_seen() -> None:
    class Loose(Fields, frozen=True, kw_only=True):
        size: int | None = None

    class Other(Fields, frozen=True, kw_only=True):
        size: str | None = None

    assert accepts(Loose, {"size": 3}) == (True, True)
    twins = twin(Other)
    with pytest.raises(ValidationError):
        twins.model_validate({"size": 3})


def test_a_hang_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.fuzz.test_corrupted.SECONDS", 1)

    def forever() -> str:
        while True:
            pass

    with pytest.raises(HangError):
        outcome(forever)
