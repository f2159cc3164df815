"""The ports in examples/ are right."""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from archc.architecture import compile_spec, compile_text
from archc.checkpoints.cache import checkpoint_folder
from archc.cli.port_options import ChosenPort
from archc.validation.gate import GateResult, run_gate
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
NUMPY = f"{shlex.quote(sys.executable)} {shlex.quote(str(EXAMPLES / 'numpy_port' / 'port.py'))}"
JAX = f"{EXAMPLES / 'jax_port' / 'port.py'}:load"
PORTS = [
    pytest.param(ChosenPort(None, f"{NUMPY} {{weights}} {{probes}} {{out}}", None, 300), id="numpy"),
    pytest.param(
        ChosenPort(JAX, None, None, 300),
        id="jax",
        marks=pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="needs jax: pip install jax"),
    ),
]
SMOLLM2 = checkpoint_folder("smollm2-135m")


def gate(port: ChosenPort, folder: Path, name: str = "llama-default") -> GateResult:
    compiled = compile_spec("tiny") if name == "tiny" else compile_text(BY_NAME[name].text())
    return run_gate(compiled, folder, lambda _step: None, open_port=port.opener())


# tiny has windows, biases, norms on heads and a scaled rope; the other none of these.
@pytest.mark.parametrize("name", ["llama-default", "tiny"])
@pytest.mark.parametrize("port", PORTS)
def test_it_passes_every_probe(port: ChosenPort, name: str, checkpoint: Checkpoint) -> None:
    result = gate(port, ROOT / "validators" / "weights" / "tiny" if name == "tiny" else checkpoint(name), name)
    assert result.passed
    assert len(result.probes) == result.planned
    assert "cache equivalence" in {invariant.name for invariant in result.invariants}


@pytest.mark.parametrize("port", PORTS)
def test_on_another_base_it_fails(port: ChosenPort, checkpoint: Checkpoint, tmp_path: Path) -> None:
    """Its twin: the same port, told by its config.json to turn a little faster than the reference does."""
    original = checkpoint("llama-default")
    config = json.loads((original / "config.json").read_text())
    config["rope_parameters"]["rope_theta"] -= 1
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").symlink_to(original / "model.safetensors")
    compiled = compile_text(BY_NAME["llama-default"].text())
    elsewhere = port.opener()
    result = run_gate(
        compiled,
        original,
        lambda _step: None,
        open_port=lambda architecture, _folder: elsewhere(architecture, tmp_path),
    )
    assert not result.passed


def test_the_port_in_the_guide_runs_what_it_can(checkpoint: Checkpoint, tmp_path: Path) -> None:
    guide = (EXAMPLES.parent / "docs" / "ports.md").read_text()
    (tmp_path / "port.py").write_text(re.findall(r"```python\n(.*?)```", guide, re.DOTALL)[0])
    shutil.copy(EXAMPLES / "numpy_port" / "port.py", tmp_path / "numpy_port.py")
    (tmp_path / "my_model.py").write_text(
        "from pathlib import Path\nimport numpy_port\n\n\ndef Model(weights):\n"
        "    model = numpy_port.Llama(Path(weights))\n    return lambda ids: model(ids, None, None, {})\n"
    )
    line = shlex.join([sys.executable, str(tmp_path / "port.py")]) + " {weights} {probes} {out}"
    result = gate(ChosenPort(None, line, None, 300), checkpoint("llama-default"))
    assert result.passed
    assert {probe.probe.name for probe in result.probes} == {"8 tokens", "64 tokens", "512 tokens"}


@pytest.mark.slow
@pytest.mark.xdist_group("smollm2")
@pytest.mark.skipif(not SMOLLM2.exists(), reason="needs `archc fetch smollm2-135m`")
@pytest.mark.parametrize("port", PORTS)
def test_it_passes_on_real_weights(port: ChosenPort) -> None:
    result = run_gate(compile_spec("smollm2-135m"), SMOLLM2, lambda _step: None, open_port=port.opener())
    assert result.passed
    assert max(probe.times_floor for probe in result.probes) < 4
