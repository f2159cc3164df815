"""A recording as a port: held to the inputs that it was made on, and to nothing that it would have to run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from archc.architecture import compile_text
from archc.errors import IncompleteError
from archc.render.validation import print_verdict
from archc.validation.gate import GateResult, run_gate
from archc.validation.probes import Probe
from archc.validation.recording import open_recording
from archc.validation.trace_port import TracePort, open_trace_port
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
NAME = "llama-default"


@pytest.fixture(scope="module")
def recorded(checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tensor]:
    """What archc recorded of the reference."""
    file = tmp_path_factory.mktemp("trace") / "reference.safetensors"
    open_recording(compile_text(BY_NAME[NAME].text()), checkpoint(NAME)).write(file, lambda _probe: None)
    return load_file(file)


def probe_of(recorded: dict[str, Tensor], name: str) -> Probe:
    """A probe as its inputs were recorded."""
    ids, positions, mask, chunks = (
        recorded.get(f"{name}/{what}") for what in ("input_ids", "position_ids", "attention_mask", "chunks")
    )
    assert ids is not None
    return Probe(name, "", ids, positions, mask, None if chunks is None else tuple(chunks.tolist()))


def gate(tensors: dict[str, Tensor], folder: Path, place: Path) -> GateResult:
    file = place / "port.safetensors"
    save_file(tensors, file)
    opened = open_trace_port(str(file))
    return run_gate(compile_text(BY_NAME[NAME].text()), folder, lambda _step: None, open_port=opened)


def test_the_reference_itself_passes_and_what_takes_runs_is_unseen(
    recorded: dict[str, Tensor], checkpoint: Checkpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = gate(recorded, checkpoint(NAME), tmp_path)
    assert result.passed
    assert len(result.probes) == result.planned
    assert (result.port_kind, result.port_name) == ("trace", str(tmp_path / "port.safetensors"))
    assert {invariant.name for invariant in result.invariants} == {"cache size", "windows", "shift invariance"}
    assert {blind.field for blind in result.blind} >= {"causality", "cache equivalence", "padding independence"}
    print_verdict(result)
    assert "causality (this port cannot run it: the trace does not hold it)" in capsys.readouterr().out


def test_a_deviation_is_placed_by_the_points(
    recorded: dict[str, Tensor], checkpoint: Checkpoint, tmp_path: Path
) -> None:
    changed = {
        key: value * 1.001 if key.endswith(("/layers.1.out", "/final_norm", "/logits")) else value
        for key, value in recorded.items()
    }
    result = gate(changed, checkpoint(NAME), tmp_path)
    assert not any(probe.passed for probe in result.probes)
    assert result.divergence is not None
    assert result.divergence.point == "layers.1.out"


def test_logits_alone_are_enough(recorded: dict[str, Tensor], checkpoint: Checkpoint, tmp_path: Path) -> None:
    kept = {key: value for key, value in recorded.items() if key.endswith(("/input_ids", "/logits"))}
    kept["8 tokens/input_ids"] = kept["8 tokens/input_ids"].int()
    kept["64 tokens/logits"] = kept["64 tokens/logits"] * 1.001
    result = gate(kept, checkpoint(NAME), tmp_path)
    assert [probe.probe.name for probe in result.probes if not probe.passed] == ["64 tokens"]
    assert result.divergence_note == "this port shows nothing but its logits"


def test_a_probe_that_is_not_there_is_unseen(
    recorded: dict[str, Tensor], checkpoint: Checkpoint, tmp_path: Path
) -> None:
    kept = {key: value for key, value in recorded.items() if not key.startswith("cache/")}
    result = gate(kept, checkpoint(NAME), tmp_path)
    assert result.passed
    assert len(result.probes) == result.planned - 1
    assert "the trace does not hold it" in {blind.field: blind.why for blind in result.blind}["cache"]


@pytest.mark.parametrize(
    ("key", "change", "words"),
    [
        ("64 tokens/input_ids", lambda ids: ids.flip(-1), "other inputs: its '64 tokens/input_ids' is not the probe's"),
        ("64 tokens/input_ids", lambda ids: ids[:, :32], "was recorded on other inputs"),
        ("left-padded batch/attention_mask", torch.zeros_like, "'left-padded batch/attention_mask' is not"),
        (
            "cache/chunks",
            lambda _: torch.tensor([48]),
            "'cache/chunks' is not the probe's; record again, on the inputs",
        ),
        ("64 tokens/input_ids", lambda _: None, "holds no '64 tokens/input_ids'"),
        ("64 tokens/input_ids", lambda ids: ids.float(), "is F32, and whole numbers are wanted"),
        ("64 tokens/logits", lambda logits: logits[0], r"has the shape \[64, 211\]"),
        ("64 tokens/logits", lambda logits: logits.long(), "is I64, and floating numbers are wanted"),
    ],
)
def test_what_was_recorded_on_other_inputs_is_refused(
    key: str,
    change: Callable[[Tensor], Tensor | None],
    words: str,
    recorded: dict[str, Tensor],
    tmp_path: Path,
) -> None:
    changed = change(recorded[key])
    tensors = {name: value for name, value in recorded.items() if name != key}
    if changed is not None:
        tensors[key] = changed.contiguous()
    save_file(tensors, tmp_path / "port.safetensors")
    port, probe = TracePort(tmp_path / "port.safetensors"), probe_of(recorded, key.partition("/")[0])
    with pytest.raises(IncompleteError, match=words):
        port.refusal(probe) or port.logits(probe)


@pytest.mark.parametrize(("content", "words"), [(b"short", "cut short"), (None, "is not there; record it again")])
def test_a_file_that_is_no_trace(content: bytes | None, words: str, tmp_path: Path) -> None:
    file = tmp_path / "port.safetensors"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(IncompleteError, match=f"the trace: .*{words}"):
        open_trace_port(str(file))
