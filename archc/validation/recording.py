"""Recording the reference: what it computes on the probes, for ports that cannot be run beside it."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from archc import __version__
from archc.architecture import Compiled
from archc.architecture.fingerprint import fingerprint
from archc.checkpoints.headers import read_checkpoint
from archc.checkpoints.manifest import knows_tensors
from archc.errors import IncompleteError, UsageError
from archc.validation.gate import probes_for
from archc.validation.probe_files import LOGITS, inputs_of
from archc.validation.probes import SEED, Probe
from archc.validation.reference import Reference
from archc.validation.static import compare_manifest
from archc.validation.text import known_tokens
from archc.validation.trace_file import TraceWriter


@dataclass(frozen=True, slots=True)
class Recording:
    """A reference, the probes that are to be recorded, and what the file says about itself."""

    reference: Reference
    probes: tuple[Probe, ...]
    metadata: Mapping[str, str]

    def bytes_per_position(self) -> int:
        """Bytes that a position of a probe takes, as the shortest one has it."""
        shortest = min(self.probes, key=lambda probe: (probe.chunks is not None, probe.input_ids.numel()))
        found = self._tensors(shortest)
        return sum(tensor.nbytes for tensor in found.values()) // shortest.input_ids.numel()

    def positions(self) -> int:
        """Positions of all probes, padding included."""
        return sum(probe.input_ids.numel() for probe in self.probes)

    def write(self, file: Path, done: Callable[[Probe], None]) -> None:
        """Runs the probes one after the other, and writes what came of them. `done` is told of each.

        Raises IncompleteError where there is no room, and where the reference does not run.
        """
        folder, size = file.resolve().parent, self.positions() * self.bytes_per_position()
        if shutil.disk_usage(folder).free < 2 * size:
            raise IncompleteError(
                f"{folder} has no room for {size / 1e9:,.1f} GB, twice while the file is put together",
                "choose another place, or fewer probes with --probe",
            )
        with tempfile.TemporaryFile(dir=folder) as data:
            writer = TraceWriter(data)
            for probe in self.probes:
                for what, tensor in self._tensors(probe).items():
                    writer.add(f"{probe.name}/{what}", tensor)
                done(probe)
            writer.finish(file, self.metadata)

    def _tensors(self, probe: Probe) -> dict[str, Tensor]:
        """Inputs, activations at the canonical points, and logits. Of what is decoded in pieces, the logits alone."""
        logits = self.reference.logits(probe)
        points = {} if probe.chunks is not None else self.reference.points(probe)
        found = inputs_of(probe) | points | {LOGITS: logits}
        return {what: one if one.dtype == torch.int64 else one.float() for what, one in found.items()}


def open_recording(compiled: Compiled, folder: Path, names: Sequence[str] = ()) -> Recording:
    """What records the reference of a spec, on its probes or on those of the given names.

    Raises IncompleteError where there is no such reference, and UsageError for a name that no probe has.
    """
    architecture = compiled.architecture
    if knows_tensors(architecture) and not compare_manifest(architecture, read_checkpoint(folder)).passed:
        raise IncompleteError(
            f"{folder} does not hold what the spec declares", "`archc validate` says which tensors do not fit"
        )
    reference = Reference(folder, architecture=architecture)
    derived, _, _ = probes_for(architecture, reference, known_tokens(folder))
    reference.steps_are_whole = not all(reference.can_step(probe) for probe in derived if probe.chunks is not None)
    able = [probe for probe in derived if reference.refusal(probe) is None]
    for name in names:
        if name not in {probe.name for probe in able}:
            raise UsageError(
                f"the reference has no probe {name!r}", f"it has {', '.join(probe.name for probe in able)}"
            )
    return Recording(
        reference,
        tuple(probe for probe in able if not names or probe.name in names),
        {
            "archc": __version__,
            "spec": architecture.name,
            "spec_sha256": fingerprint(compiled),
            "transformers": reference.version.split()[-1],
            "seed": str(SEED),
        },
    )
