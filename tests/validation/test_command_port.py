"""A port that is a command: run once for all probes, believed in nothing, and blamed for its own errors."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from archc.architecture import compile_text
from archc.errors import IncompleteError, UsageError
from archc.validation.command_port import CommandPort, open_command_port, parse_command
from archc.validation.gate import GateResult, run_gate
from archc.validation.probes import Probe
from tests.cli.runner import archc
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
EXAMPLE = Path(__file__).parents[2] / "examples" / "numpy_port" / "port.py"

# The numpy port, with one thing done to it or to what it writes.
SABOTEUR = f"""
import json, sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
import numpy as np

spec = spec_from_file_location("port", {str(EXAMPLE)!r})
port = module_from_spec(spec)
spec.loader.exec_module(port)
deed, weights, probes, out = sys.argv[1], *map(Path, sys.argv[2:5])
(out.parent / "starts").open("a").write(deed + "\\n")
write = port.write


def sabotaged(file, tensors):
    if deed == "forgets":
        tensors = {{key: value for key, value in tensors.items() if not key.startswith(("cache/", "left-padded"))}}
    elif deed == "forgets all":
        tensors = {{}}
    elif deed == "nan":
        tensors["64 tokens/logits"][0, 3, 5] = np.nan
    elif deed == "logits only":
        tensors = {{key: value for key, value in tensors.items() if key.endswith("/logits")}}
    elif deed == "flat":
        tensors["64 tokens/logits"] = tensors["64 tokens/logits"][0]
    elif deed == "short":
        tensors["64 tokens/logits"] = tensors["64 tokens/logits"][:, 1:]
    elif deed == "half":
        write(file, tensors)
        raw = file.read_bytes()
        file.write_bytes(raw[: len(raw) // 2])
        return
    elif deed == "whole numbers":
        write(file, tensors)
        raw = file.read_bytes()
        file.write_bytes(raw.replace(b'"dtype": "F32"', b'"dtype": "I32"'))
        return
    elif deed == "huge":
        header = {{"8 tokens/logits": {{"dtype": "F32", "shape": [1, 8, 2**40], "data_offsets": [0, 2**45]}}}}
        text = json.dumps(header).encode()
        file.write_bytes(len(text).to_bytes(8, "little") + text)
        return
    elif deed == "nothing":
        return
    write(file, tensors)


def scaled(folder):
    found = read_weights(folder)
    up = found["model.layers.1.mlp.up_proj.weight"].copy()
    up[::2] *= np.float32(1.001)
    return found | {{"model.layers.1.mlp.up_proj.weight": up}}


port.write = sabotaged
if deed == "wrong":
    read_weights, port.read_weights = port.read_weights, scaled
if deed == "crashes":
    print("about to fail", flush=True)
    sys.exit("out of\\x1b ideas")
if deed == "is killed":
    import os, signal
    os.kill(os.getpid(), signal.SIGKILL)
port.main(weights, probes, out)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("a port") / "it's a port.py"
    file.write_text(textwrap.dedent(SABOTEUR))
    return file


def line(script: Path, deed: str) -> str:
    return f"{shlex.join([sys.executable, str(script), deed])} {{weights}} {{probes}} {{out}}"


def gate(script: Path, deed: str, folder: Path) -> GateResult:
    opened = open_command_port(line(script, deed), 60)
    return run_gate(compile_text(BY_NAME["llama-default"].text()), folder, lambda _step: None, open_port=opened)


def test_a_correct_port_passes_every_probe_and_is_started_once(script: Path, checkpoint: Checkpoint) -> None:
    ports: list[CommandPort] = []

    def opened(architecture: object, folder: Path) -> CommandPort:
        ports.append(CommandPort(parse_command(line(script, "clean"), 60), folder))
        return ports[-1]

    compiled = compile_text(BY_NAME["llama-default"].text())
    result = run_gate(compiled, checkpoint("llama-default"), lambda _step: None, open_port=opened)
    assert result.passed
    assert len(result.probes) == result.planned
    asked = {invariant.name for invariant in result.invariants}
    assert asked >= {"causality", "cache equivalence", "padding independence"}
    assert (result.port_kind, result.port_name) == ("command", line(script, "clean"))
    place = next(iter(ports))._folder
    assert (place / "starts").read_text() == "clean\n"
    ports.clear()
    assert not place.exists()


def test_a_wrong_one_fails_and_is_placed_by_the_points_that_it_wrote(script: Path, checkpoint: Checkpoint) -> None:
    result = gate(script, "wrong", checkpoint("llama-default"))
    assert not result.passed
    assert result.divergence is not None
    assert result.divergence.layer == 1


def test_points_are_what_it_wrote_beside_its_logits(script: Path, checkpoint: Checkpoint) -> None:
    probe = Probe("any", "", torch.tensor([[1, 2, 3]]))
    shown = {}
    for deed in ("clean", "logits only"):
        port = CommandPort(parse_command(line(script, deed), 60), checkpoint("llama-default"))
        shown[deed] = port.points(probe)
    assert shown["logits only"] is None
    assert shown["clean"] is not None
    assert shown["clean"]["layers.1.out"].shape == (1, 3, 72)


def test_what_it_leaves_out_is_unseen(script: Path, checkpoint: Checkpoint) -> None:
    result = gate(script, "forgets", checkpoint("llama-default"))
    assert result.passed
    why = {blind.field: blind.why for blind in result.blind}
    assert set(why) == {"cache", "left-padded batch"}
    assert "its command wrote no logits for it" in why["cache"]
    assert "cache equivalence" not in {invariant.name for invariant in result.invariants}


def test_a_single_nan_fails(script: Path, checkpoint: Checkpoint) -> None:
    result = gate(script, "nan", checkpoint("llama-default"))
    assert [probe.probe.name for probe in result.probes if not probe.passed] == ["64 tokens"]


@pytest.mark.parametrize(
    ("deed", "words"),
    [
        ("crashes", "ended with exit code 1"),
        ("is killed", "ended with the signal SIGKILL"),
        ("nothing", "wrote no file"),
        ("half", "is cut short"),
        ("huge", "is cut short"),
        ("flat", r"has the shape \[64, 211\], and the inputs ask for \[1, 64, vocab\]"),
        ("short", r"has the shape \[1, 63, 211\]"),
        ("whole numbers", "is I32, and floating numbers are wanted"),
    ],
)
def test_its_own_errors_are_its_own(deed: str, words: str, script: Path, checkpoint: Checkpoint) -> None:
    port = CommandPort(parse_command(line(script, deed), 60), checkpoint("llama-default"))
    probe = Probe("64 tokens", "", torch.arange(64)[None])
    with pytest.raises(IncompleteError, match=words):
        port.logits(probe)


def test_one_that_does_nothing_passes_nothing(script: Path, checkpoint: Checkpoint) -> None:
    words = "nothing can be compared: this port cannot run the probe: its command wrote no logits"
    with pytest.raises(IncompleteError, match=words):
        gate(script, "forgets all", checkpoint("llama-default"))


def test_the_end_of_what_it_said_is_shown(script: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    spec = tmp_path / "tiny.yaml"
    spec.write_text(BY_NAME["llama-default"].text())
    folder = str(checkpoint("llama-default"))
    done = archc("validate", str(spec), "--weights", folder, "--port-command", line(script, "crashes"))
    assert done.code == 3
    assert done.out == ""
    assert done.err.endswith("; mend the port\narchc:   | about to fail\narchc:   | out of\\x1b ideas\n")


def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    port = CommandPort(parse_command("sh -c 'echo yawn; exec sleep 60' sh {probes} {out}", 2), tmp_path)
    with pytest.raises(IncompleteError, match="took longer than 2 seconds; give it more with --port-timeout") as caught:
        port.prepare([Probe("any", "", torch.tensor([[1, 2, 3]]))])
    assert caught.value.detail == "yawn"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python 'port.py {probes} {out}", "cannot be split: No closing quotation"),
        ("python port.py {weights} {out}", "has no {probes}"),
        ("", "has no {probes} and no {out}"),
        ("no-such-program-at-all {weights} {probes} {out}", "there is no program 'no-such-program-at-all'"),
    ],
)
def test_commands_that_cannot_be(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_command(text, 60)


def test_places_are_filled_in_once_and_without_a_shell() -> None:
    command = parse_command("echo --to={out} {probes} {weights} '{\"a\": 1}' $HOME", 60)
    filled = command.filled(weights=Path("/w {out}"), probes=Path("/p"), out=Path("/o"))
    assert filled == ["echo", "--to=/o", "/p", "/w {out}", '{"a": 1}', "$HOME"]
    assert command.reloads


def test_one_that_is_not_told_the_weights_cannot_load_others() -> None:
    assert not parse_command("echo {probes} {out}", 60).reloads
