"""Every port of examples/faulty_transformers fails, but for those that are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archc.architecture import compile_text
from archc.validation.gate import probes_for
from archc.validation.parity import Baseline, ProbeResult, judge, measure
from archc.validation.python_port import find_factory, open_python_port
from archc.validation.reference import Reference
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
FILE = Path(__file__).parents[2] / "examples" / "faulty_transformers" / "port.py"
# The probes that must see what is right everywhere else.
SEEN_BY = {"restarts": {"cache", "distant positions", "beyond the context"}, "reads_padding": {"left-padded batch"}}


@pytest.fixture(scope="module")
def measured(checkpoint: Checkpoint) -> tuple[Reference, list[Baseline]]:
    reference = Reference(checkpoint("llama-default"))
    architecture = compile_text(BY_NAME["llama-default"].text()).architecture
    probes, _, _ = probes_for(architecture, reference)
    return reference, measure(reference, probes, lambda _step: None)[0]


def names(which: str) -> list[str]:
    functions: Any = find_factory(f"{FILE}:clean").__globals__[which]
    return [function.__name__ for function in functions]


def judged(name: str, folder: Path, measured: tuple[Reference, list[Baseline]]) -> list[ProbeResult]:
    architecture = compile_text(BY_NAME["llama-default"].text()).architecture
    port = open_python_port(f"{FILE}:{name}")(architecture, folder)
    assert port.points(measured[1][0].probe) is not None
    return [judge(measured[0], baseline, port.logits(baseline.probe)) for baseline in measured[1]]


@pytest.mark.parametrize("name", names("FAULTS"))
def test_a_mistake_is_seen(name: str, checkpoint: Checkpoint, measured: tuple[Reference, list[Baseline]]) -> None:
    failed = {result.probe.name for result in judged(name, checkpoint("llama-default"), measured) if not result.passed}
    assert failed
    assert failed <= SEEN_BY.get(name, failed)


@pytest.mark.parametrize("name", names("RIGHT"))
def test_what_is_right_passes(name: str, checkpoint: Checkpoint, measured: tuple[Reference, list[Baseline]]) -> None:
    assert all(result.passed for result in judged(name, checkpoint("llama-default"), measured))


def test_the_shortest_wrong_port_fails(checkpoint: Checkpoint, measured: tuple[Reference, list[Baseline]]) -> None:
    architecture = compile_text(BY_NAME["llama-default"].text()).architecture
    port = open_python_port(f"{FILE.parents[1] / 'wrong_activation.py'}:load")(
        architecture, checkpoint("llama-default")
    )
    reference, baselines = measured
    assert not any(judge(reference, one, port.logits(one.probe)).passed for one in baselines)
