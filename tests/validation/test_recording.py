"""`archc trace`: what it records is what transformers computes, and a file is written whole, or not at all."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor

from archc import __version__
from archc.validation.reference import Reference
from archc.validation.trace_file import is_own_trace
from tests.cli.runner import Done, archc
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
NAME = "llama-default"


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("spec") / "tiny.yaml"
    file.write_text(BY_NAME[NAME].text())
    return file


@pytest.fixture(scope="module")
def trace(spec: Path, checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("trace") / "reference.safetensors"
    done = record(spec, checkpoint(NAME), file)
    assert done.code == 0, done.err
    assert done.out == ""
    return file


def record(spec: Path, folder: Path, file: Path, *options: str) -> Done:
    return archc("trace", str(spec), "--weights", str(folder), "-o", str(file), *options)


def test_it_holds_what_transformers_computes(trace: Path, checkpoint: Checkpoint) -> None:
    found = load_file(trace)
    model = BY_NAME[NAME].model()
    ids = found["64 tokens/input_ids"]
    with torch.no_grad():
        theirs = model(ids, output_hidden_states=True)
    assert torch.equal(found["64 tokens/logits"], theirs.logits)
    assert torch.equal(found["64 tokens/embed"], theirs.hidden_states[0])
    assert torch.equal(found["64 tokens/layers.1.out"], theirs.hidden_states[2])
    assert found["cache/chunks"].sum() == found["cache/logits"].shape[1]
    assert {found[f"left-padded batch/{what}"].dtype for what in ("position_ids", "attention_mask")} == {torch.int64}
    assert not any(key.startswith("cache/layers") for key in found)


def test_it_says_what_it_was_made_with(trace: Path) -> None:
    with safe_open(trace, framework="pt") as file:
        metadata = file.metadata()
    assert metadata["archc"] == __version__
    assert metadata["spec"] == NAME
    assert metadata["transformers"] == transformers.__version__
    assert len(metadata["spec_sha256"]) == len(metadata["sha256"]) == 64
    assert int(metadata["seed"]) > 0


def test_it_is_the_same_every_time(trace: Path, spec: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    record(spec, checkpoint(NAME), tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == trace.read_bytes()


def test_probes_can_be_chosen(spec: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    file = tmp_path / "some.safetensors"
    done = record(spec, checkpoint(NAME), file, "--probe", "8 tokens", "--probe", "cache")
    assert done.err.startswith("2 probes, 56 positions: ")
    found = load_file(file)
    assert {key.partition("/")[0] for key in found} == {"8 tokens", "cache"}
    done = record(spec, checkpoint(NAME), file, "--probe", "9 tokens")
    assert done.code == 2
    assert "no probe '9 tokens'; it has 8 tokens, 64 tokens" in done.err


def test_the_size_is_told_beforehand(trace: Path, spec: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    said = record(spec, checkpoint(NAME), tmp_path / "x").err.splitlines()[0]
    number, unit = said.rpartition(": ")[2].split()
    told = float(number) * {"kB": 1e3, "MB": 1e6}[unit]
    assert told == pytest.approx(trace.stat().st_size, rel=0.1)


def test_only_its_own_file_is_replaced(trace: Path, spec: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    file = tmp_path / "t.safetensors"
    file.write_bytes(trace.read_bytes())
    assert is_own_trace(file)
    assert record(spec, checkpoint(NAME), file, "--probe", "8 tokens").code == 0
    changed = bytearray(file.read_bytes())
    changed[-1] ^= 1
    file.write_bytes(changed)
    assert not is_own_trace(file)
    done = record(spec, checkpoint(NAME), file, "--probe", "8 tokens")
    assert done.code == 2
    assert "archc did not write it or it was changed since" in done.err
    assert file.read_bytes() == changed
    assert record(spec, checkpoint(NAME), file, "--probe", "8 tokens", "--force").code == 0
    assert is_own_trace(file)


@pytest.mark.parametrize("content", [b"", b"text", b"\2\0\0\0\0\0\0\0{}", b"\2\0\0\0\0\0\0\0[]"])
def test_what_is_no_trace_is_not_its_own(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    assert not is_own_trace(tmp_path / "x")


def test_what_fails_leaves_nothing_behind(
    spec: Path, checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_self: Reference, probe: object) -> dict[str, Tensor]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Reference, "points", fail)
    assert record(spec, checkpoint(NAME), tmp_path / "t.safetensors").code == 3
    assert list(tmp_path.iterdir()) == []


def test_without_room_nothing_is_recorded(
    spec: Path, checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _folder: type("Usage", (), {"free": 1000}))
    done = record(spec, checkpoint(NAME), tmp_path / "t.safetensors")
    assert done.code == 3
    assert "has no room for" in done.err


def test_a_spec_that_does_not_fit_its_weights(spec: Path, checkpoint: Checkpoint, tmp_path: Path) -> None:
    done = record(spec, checkpoint("gpt2"), tmp_path / "t.safetensors")
    assert done.code == 3
    assert "does not hold what the spec declares" in done.err
