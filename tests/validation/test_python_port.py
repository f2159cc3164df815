"""A port of the user's own: found by name, asked only what its signature takes, and blamed for its own errors."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from archc.architecture import compile_text
from archc.errors import IncompleteError, UsageError
from archc.render.validation import print_verdict
from archc.validation.gate import GateResult, run_gate
from archc.validation.python_port import find_factory, open_python_port
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
LOAD = """
import torch
from transformers import AutoModelForCausalLM


def clean(weights, dtype):
    return AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager").eval()


def wrong(weights, dtype):
    model = clean(weights, dtype)
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight[::2] *= 1.001
    return model


def logits_only(weights, dtype):
    model = clean(weights, dtype)
    return lambda input_ids: model(input_ids).logits


def wrong_logits_only(weights, dtype):
    model = wrong(weights, dtype)
    return lambda input_ids: model(input_ids).logits


def compiled(weights, dtype):
    return torch.compile(clean(weights, dtype), backend="eager")


def hiding(weights, dtype):
    model = clean(weights, dtype)
    return lambda input_ids, **more: model(input_ids, **more)


def in_place(weights, dtype):
    from beside import Kept

    return Kept(clean(weights, dtype))


def no_function(weights, dtype):
    return 7


def crashes(weights, dtype):
    def forward(input_ids):
        raise RuntimeError("out of ideas")

    return forward


def flat(weights, dtype):
    return lambda input_ids: torch.zeros(3)
"""

BESIDE = """
from transformers import DynamicCache


class Kept:
    \"\"\"A port that writes into a cache that it is given.\"\"\"

    def __init__(self, model):
        self.model = model

    def new_cache(self, batch, max_length):
        return DynamicCache(config=self.model.config)

    def __call__(self, input_ids, position_ids=None, attention_mask=None, cache=None):
        given = {} if cache is None else {"cache": cache}
        return self.model(input_ids, position_ids=position_ids, attention_mask=attention_mask, **given).logits
"""


@pytest.fixture(scope="module")
def ports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("ports") / "own_port.py"
    file.write_text(textwrap.dedent(LOAD))
    (file.parent / "beside.py").write_text(textwrap.dedent(BESIDE))
    return file


def gate(place: str, folder: Path, name: str = "llama-default") -> GateResult:
    opened = open_python_port(place)
    return run_gate(compile_text(BY_NAME[name].text()), folder, lambda _step: None, open_port=opened)


@pytest.mark.parametrize("name", ["llama-default", "llama-dynamic", "mixtral"])
def test_the_reference_itself_passes(name: str, ports: Path, checkpoint: Checkpoint) -> None:
    result = gate(f"{ports}:clean", checkpoint(name), name)
    assert result.passed
    assert {probe.probe.name for probe in result.probes} >= {"64 tokens", "cache", "left-padded batch"}
    assert (result.port_kind, result.port_name) == ("python", f"{ports}:clean")


def test_a_thousandth_on_every_other_row_of_one_matrix_fails_and_is_placed(ports: Path, checkpoint: Checkpoint) -> None:
    result = gate(f"{ports}:wrong", checkpoint("llama-default"))
    assert not result.passed
    assert result.divergence is not None
    assert result.divergence.point == "layers.1.ffn.out"


def test_a_function_of_ids_alone_is_held_to_what_it_can_do(
    ports: Path, checkpoint: Checkpoint, capsys: pytest.CaptureFixture[str]
) -> None:
    result = gate(f"{ports}:logits_only", checkpoint("llama-default"))
    assert result.passed
    assert {probe.probe.name for probe in result.probes} == {"8 tokens", "64 tokens", "512 tokens"}
    unseen = {blind.field: blind.why for blind in result.blind}
    assert "takes no cache" in unseen["cache"]
    assert "takes no position_ids" in unseen["distant positions"]
    assert "takes no attention_mask" in unseen["left-padded batch"]
    print_verdict(result)
    assert "on 3 of 8 probes;" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["compiled", "in_place"])
def test_other_forms_of_ports_lose_no_probe(name: str, ports: Path, checkpoint: Checkpoint) -> None:
    result = gate(f"{ports}:{name}", checkpoint("llama-default"))
    assert result.passed
    assert {probe.probe.name for probe in result.probes} >= {"cache", "left-padded batch", "distant positions"}


def test_what_hides_behind_keywords_is_said_to(ports: Path, checkpoint: Checkpoint) -> None:
    result = gate(f"{ports}:hiding", checkpoint("llama-default"))
    why = {blind.field: blind.why for blind in result.blind}
    assert "does not name attention_mask, behind its **keywords" in why["left-padded batch"]


def test_it_can_fail_too(ports: Path, checkpoint: Checkpoint) -> None:
    result = gate(f"{ports}:wrong_logits_only", checkpoint("llama-default"))
    assert not result.passed
    assert result.divergence is not None
    assert result.divergence.point == "logits"


@pytest.mark.parametrize(
    ("name", "words"),
    [("no_function", "is a int"), ("crashes", "cannot run: RuntimeError: out of ideas"), ("flat", "returns no logits")],
)
def test_its_own_errors_are_its_own(name: str, words: str, ports: Path, checkpoint: Checkpoint) -> None:
    with pytest.raises(IncompleteError, match=words):
        gate(f"{ports}:{name}", checkpoint("llama-default"))


def test_an_error_is_told_whole_with_the_line_that_raised_it(checkpoint: Checkpoint, tmp_path: Path) -> None:
    port = tmp_path / "loads.py"
    port.write_text("import torch\ndef load(weights, dtype):\n    torch.nn.Linear(2, 3).load_state_dict({})\n")
    with pytest.raises(IncompleteError, match="loading state_dict for Linear; mend the port") as raised:
        gate(f"{port}:load", checkpoint("llama-default"))
    missing, line = raised.value.detail.splitlines()
    assert missing == 'Missing key(s) in state_dict: "weight", "bias".'
    assert line == "loads.py:3, in load: torch.nn.Linear(2, 3).load_state_dict({})"


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("own_port", "names no port"),
        ("nowhere.py:load", "there is no file"),
        ("json:load_everything", "has no function"),
    ],
)
def test_places_without_a_port(place: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        find_factory(place)


def test_a_package_that_is_not_there() -> None:
    with pytest.raises(IncompleteError, match="cannot be imported"):
        find_factory("no_such_package_at_all:load")
