"""The port in C++: right on tiny and on ugly checkpoints, found out where it is not, and safe with hostile files."""

from __future__ import annotations

import json
import shlex
import shutil
import struct
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from archc.architecture import compile_spec, compile_text
from archc.checkpoints.cache import checkpoint_folder
from archc.cli.port_options import ChosenPort
from archc.faults.base import Fault
from archc.faults.catalogue import CATALOGUE
from archc.validation.gate import GateResult, run_gate
from tests.test_imports import ROOT
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
SOURCE = ROOT / "examples" / "cpp_port" / "port.cpp"
TINY = ROOT / "validators" / "weights" / "tiny"
SMOLLM2 = checkpoint_folder("smollm2-135m")
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs a C++ compiler: g++")


@pytest.fixture(scope="module")
def build(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles the port with some options, once, and gives the program."""
    made: dict[tuple[str, ...], Path] = {}

    def compiled(*options: str) -> Path:
        if options not in made:
            program = tmp_path_factory.mktemp("cpp") / "cpp_port"
            strict = ["-std=c++17", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
            subprocess.run(["g++", *strict, *options, "-o", str(program), str(SOURCE)], check=True, timeout=300)
            made[options] = program
        return made[options]

    return compiled


def command(program: Path) -> ChosenPort:
    return ChosenPort(None, f"{shlex.quote(str(program))} {{weights}} {{probes}} {{out}}", None, 300)


def gate(name: str, folder: Path, program: Path, catalogue: Sequence[Fault] = ()) -> GateResult:
    compiled = compile_spec("tiny") if name == "tiny" else compile_text(BY_NAME[name].text())
    return run_gate(compiled, folder, lambda _step: None, open_port=command(program).opener(), catalogue=catalogue)


# Windows, biases, norms on heads and a scaled rope; then none of these, then half of them.
@pytest.mark.parametrize("name", ["tiny", "llama-default", "llama-biased", "llama-llama3", "qwen3"])
def test_it_passes_every_probe(name: str, checkpoint: Checkpoint, build: Callable[..., Path]) -> None:
    result = gate(name, TINY if name == "tiny" else checkpoint(name), build("-O3"))
    assert result.passed
    assert len(result.probes) == result.planned
    assert "cache equivalence" in {invariant.name for invariant in result.invariants}


@pytest.mark.parametrize("name", ["tiny", "qwen3"])
def test_wrong_pairs_fail_and_are_named(name: str, checkpoint: Checkpoint, build: Callable[..., Path]) -> None:
    """The twin: the same port, compiled with its mistake."""
    result = gate(name, TINY if name == "tiny" else checkpoint(name), build("-O3", "-DWRONG_PAIRING"), CATALOGUE)
    assert not result.passed
    assert result.diagnosis is not None
    (found,) = result.diagnosis.found
    assert found.text == "position.pairing = interleaved (declared: half), everywhere"
    assert result.divergence is not None
    assert result.divergence.point == "layers.0.mixer.q"


@pytest.mark.slow
@pytest.mark.xdist_group("smollm2")
@pytest.mark.skipif(not SMOLLM2.exists(), reason="needs `archc fetch smollm2-135m`")
def test_it_passes_on_real_weights(build: Callable[..., Path]) -> None:
    port = command(build("-O3")).opener()
    result = run_gate(compile_spec("smollm2-135m"), SMOLLM2, lambda _step: None, open_port=port)
    assert result.passed
    assert max(probe.times_floor for probe in result.probes) < 4


def run(program: Path, weights: Path, probes: Path, out: Path) -> subprocess.CompletedProcess[str]:
    line = [str(program), str(weights), str(probes), str(out)]
    return subprocess.run(line, capture_output=True, text=True, check=False, timeout=60)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What it says: one line of its own, and nothing of a sanitizer's."""
    assert done.returncode == 1, done
    (line,) = done.stderr.splitlines()
    assert line.startswith("cpp_port: ")
    return line


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A copy of tiny, and probes of every kind."""
    weights = tmp_path / "tiny"
    shutil.copytree(TINY, weights)
    ids = torch.randint(0, 256, (2, 40), generator=torch.Generator().manual_seed(0))
    mask = torch.ones(2, 40, dtype=torch.long)
    mask[0, :7] = 0
    given = {
        "whole/input_ids": ids,
        "padded/input_ids": ids.clone(),
        "padded/attention_mask": mask,
        "padded/position_ids": (mask.cumsum(1) - 1).clamp(min=0),
        "pieces/input_ids": ids.clone(),
        "pieces/chunks": torch.tensor([33, 1, 1, 5]),
    }
    save_file(given, tmp_path / "probes.safetensors")
    return weights, tmp_path / "probes.safetensors"


def test_good_files_are_answered_without_a_complaint(
    files: tuple[Path, Path], tmp_path: Path, build: Callable[..., Path]
) -> None:
    done = run(build(*SANITIZED), *files, tmp_path / "out.safetensors")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    out = load_file(tmp_path / "out.safetensors")
    assert out["whole/logits"].shape == (2, 40, 256)
    assert torch.equal(out["whole/logits"], out["pieces/logits"])
    assert torch.isfinite(out["padded/logits"]).all()
    assert out["padded/layers.3.mixer.q"].shape == (2, 6, 40, 24)
    assert [key for key in out if key.startswith("pieces/")] == ["pieces/logits"]


def packed(header: str | bytes, data: bytes = b"", length: int | None = None) -> bytes:
    """A safetensors file as it is written, with a header that may lie."""
    raw = header if isinstance(header, bytes) else header.encode()
    return struct.pack("<Q", len(raw) if length is None else length) + raw + data


def entry(dtype: str = "I64", shape: object = (1, 2), span: object = (0, 16)) -> str:
    return json.dumps({"a/input_ids": {"dtype": dtype, "shape": shape, "data_offsets": span}})


TWO = bytes(16)
HOSTILE = {
    "empty": b"",
    "shorter than a length": b"\x01\x02",
    "a length beyond the file": packed("{}", length=2**40),
    "a length that wraps": packed("{}", length=2**64 - 1),
    "no JSON": packed(b"\xff\xfe{"),
    "an open string": packed('{"a'),
    "an open escape": packed('{"a\\'),
    "a deep nest": packed("[" * 100_000),
    "two values": packed("{} {}"),
    "no entry": packed('{"a/input_ids": 3}'),
    "a negative offset": packed(entry(span=(-16, 0)), TWO),
    "an offset beyond the file": packed(entry(span=(0, 2**50)), TWO),
    "a span that goes backwards": packed(entry(span=(16, 0)), TWO),
    "a span that is too short": packed(entry(span=(0, 8)), TWO),
    "sizes whose product wraps": packed(entry(shape=(2**33, 2**33)), TWO),
    "a size that is no number": packed(entry(shape=("2", 2)), TWO),
    "a fraction of a token": packed(entry(shape=(1, 1.5)), TWO),
    "no tokens": packed(entry(shape=(1, 0), span=(0, 0))),
    "a type that it does not know": packed(entry(dtype="F8_E4M3"), TWO),
    "tokens that are no whole numbers": packed(entry(dtype="F32", shape=(1, 4)), TWO),
    "tokens without a batch": packed(entry(shape=(2,)), TWO),
    "a token beyond the vocabulary": packed(entry(), struct.pack("<2q", 0, 256)),
    "a token below zero": packed(entry(), struct.pack("<2q", 0, -1)),
    "the same name twice": packed(entry()[:-1] + "," + entry()[1:], TWO),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_probes_are_refused(
    name: str, files: tuple[Path, Path], tmp_path: Path, build: Callable[..., Path]
) -> None:
    files[1].write_bytes(HOSTILE[name])
    refused(run(build(*SANITIZED), *files, tmp_path / "out.safetensors"))
    assert not (tmp_path / "out.safetensors").exists()


@pytest.mark.parametrize("pieces", [[40, 1], [39], [-1, 41], [0, 40], []])
def test_pieces_that_are_no_sum_of_the_tokens_are_refused(
    pieces: list[int], files: tuple[Path, Path], tmp_path: Path, build: Callable[..., Path]
) -> None:
    ids = torch.zeros(1, 40, dtype=torch.long)
    save_file({"a/input_ids": ids, "a/chunks": torch.tensor(pieces, dtype=torch.long)}, files[1])
    assert "a/chunks" in refused(run(build(*SANITIZED), *files, tmp_path / "out.safetensors"))


@pytest.mark.parametrize("kept", [0, 5, 100, 4096, -1])
def test_a_checkpoint_that_is_cut_short_is_refused(
    kept: int, files: tuple[Path, Path], tmp_path: Path, build: Callable[..., Path]
) -> None:
    stored = files[0] / "model.safetensors"
    stored.write_bytes(stored.read_bytes()[:kept])
    assert "model.safetensors" in refused(run(build(*SANITIZED), *files, tmp_path / "out.safetensors"))


CONFIGS: dict[str, dict[str, Any]] = {
    "another family": {"model_type": "gemma2"},
    "another activation": {"hidden_act": "gelu"},
    "a scaling that it does not know": {"rope_parameters": {"rope_type": "yarn", "rope_theta": 5000.0}},
    "a base that is text": {"rope_parameters": {"rope_type": "default", "rope_theta": "5000"}},
    "no heads": {"num_attention_heads": 0},
    "heads that no group fits": {"num_attention_heads": 5},
    "heads whose product wraps": {"num_attention_heads": 2**52, "head_dim": 2**14},
    "more heads than are stored": {"num_attention_heads": 2**20},
    "wider than is stored": {"hidden_size": 97},
    "more layers than are stored": {"num_hidden_layers": 2**31 - 1},
    "a kind of layer that it does not know": {"layer_types": ["chunked_attention"] * 4},
    "too few kinds of layers": {"layer_types": ["full_attention"]},
    "a window without a length": {"sliding_window": None},
    "windows of no layer": {"layer_types": None},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_that_it_cannot_run_is_refused(
    name: str, files: tuple[Path, Path], tmp_path: Path, build: Callable[..., Path]
) -> None:
    config = files[0] / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | CONFIGS[name]))
    refused(run(build(*SANITIZED), *files, tmp_path / "out.safetensors"))
