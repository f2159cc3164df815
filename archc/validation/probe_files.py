"""Probes, and what a port makes of them, as safetensors files: the tensors of a probe are named `<probe>/<what>`.

The name of a probe is its own, as the verdict prints it (`64 tokens`): printable, with spaces, without a slash. What a
port wrote is not trusted: its header is checked before anything is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from archc.checkpoints.headers import StoredTensor, read_header
from archc.errors import IncompleteError
from archc.validation.probes import Probe

INPUTS = ("input_ids", "position_ids", "attention_mask", "chunks")
LOGITS = "logits"
_FLOATS = frozenset({"F16", "BF16", "F32", "F64"})
_WHOLE = frozenset({"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64"})


def inputs_of(probe: Probe) -> dict[str, Tensor]:
    """What a port is given: int64 [batch, tokens] each, and `chunks` [pieces], the lengths of the pieces."""
    chunks = None if probe.chunks is None else torch.tensor(probe.chunks)
    given = (probe.input_ids, probe.position_ids, probe.attention_mask, chunks)
    return {what: value.long() for what, value in zip(INPUTS, given, strict=True) if value is not None}


def write_probes(file: Path, probes: Iterable[tuple[str, Probe]]) -> None:
    """Writes the inputs of probes, each under a name."""
    given = {f"{name}/{what}": value for name, probe in probes for what, value in inputs_of(probe).items()}
    try:
        save_file({key: _own(value) for key, value in given.items()}, file)
    except SafetensorError as error:
        raise IncompleteError(f"cannot write {file}: {error}", "make room there") from error


class AnswerFile:
    """What a port made of probes: `<probe>/logits` [batch, tokens, vocab], and activations at canonical points.

    `whose` begins every complaint, `mend` ends it.
    """

    def __init__(self, file: Path, whose: str, mend: str) -> None:
        self._file, self._whose, self._mend = file, whose, mend
        try:
            self._stored = read_header(file)
        except IncompleteError as error:
            raise IncompleteError(f"{whose}: {error.problem}", mend) from error

    def has_logits(self, name: str) -> bool:
        """Whether a probe was answered."""
        return f"{name}/{LOGITS}" in self._stored

    def logits(self, name: str, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe, in fp32. Raises IncompleteError where it was not answered."""
        key = f"{name}/{LOGITS}"
        if key not in self._stored:
            raise self._complaint(f"it lacks {key}")
        stored, shape = self._stored[key], tuple(probe.input_ids.shape)
        if len(stored.shape) != 3 or stored.shape[:2] != shape:
            wanted = f"the inputs ask for [{shape[0]}, {shape[1]}, vocab]"
            raise self._complaint(f"{key} has the shape {list(stored.shape)}, and {wanted}")
        return self._floats(stored)

    def points(self, name: str) -> dict[str, Tensor] | None:
        """Everything of a probe that is no input, in fp32; None where that is its logits alone."""
        found = {
            key.rpartition("/")[2]: stored
            for key, stored in self._stored.items()
            if key.rpartition("/")[0] == name and key.rpartition("/")[2] not in INPUTS
        }
        return {what: self._floats(stored) for what, stored in found.items()} if found.keys() - {LOGITS} else None

    def inputs(self, name: str) -> dict[str, Tensor]:
        """The inputs that the file has for a probe, int64."""
        stored = {what: self._stored[f"{name}/{what}"] for what in INPUTS if f"{name}/{what}" in self._stored}
        return {what: self._read(one, _WHOLE, "whole numbers").long() for what, one in stored.items()}

    def _floats(self, stored: StoredTensor) -> Tensor:
        return self._read(stored, _FLOATS, "floating numbers").float()

    def _read(self, stored: StoredTensor, dtypes: frozenset[str], wanted: str) -> Tensor:
        if stored.dtype not in dtypes:
            raise self._complaint(f"{stored.name} is {stored.dtype}, and {wanted} are wanted")
        try:
            with safe_open(self._file, framework="pt") as file:
                found: Tensor = file.get_tensor(stored.name)
                return found
        except (OSError, SafetensorError) as error:
            raise self._complaint(f"{self._file} cannot be read: {error}") from error

    def _complaint(self, problem: str) -> IncompleteError:
        return IncompleteError(f"{self._whose}: {problem}", self._mend)


def _own(tensor: Tensor) -> Tensor:
    """A copy: tensors that share memory are refused by safetensors."""
    return tensor.clone(memory_format=torch.contiguous_format)
