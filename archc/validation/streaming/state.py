"""What a streamed run has done so far, in a file: so that one that was ended goes on where it was.

One safetensors file: the stream of every run as it enters the next layer, and the results as JSON beside. It is written
whole or not at all, and taken up only by a run of the same spec, checkpoint, generated code and versions.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from archc import __version__
from archc.checkpoints.cache import cache_folder
from archc.errors import IncompleteError
from archc.files import write_whole
from archc.validation.probes import Probe
from archc.validation.streaming.paging import CHANGED

_DONE: Final = "done"


@dataclass(frozen=True, slots=True)
class Done:
    """Layers below `layer` are done; `streams` enter it, by the name of the run; `results` are what was found."""

    layer: int
    results: Mapping[str, Any]
    streams: Mapping[str, Tensor]


class State:
    """The file that a run keeps. It lies in archc's cache, under a name that says what it is of."""

    def __init__(self, name: str, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        plain = "".join(letter if letter.isalnum() or letter in ".-" else "-" for letter in name)[:60]
        self.file = cache_folder() / "streams" / f"{plain}-{fingerprint[:16]}.safetensors"

    def read(self) -> Done | None:
        """What was done before; None where there is nothing, or not of this very run."""
        try:
            with safe_open(self.file, framework="pt") as held:
                metadata = held.metadata() or {}
                if metadata.get("fingerprint") != self._fingerprint:
                    return None
                done = json.loads(metadata[_DONE])
                streams = {name: held.get_tensor(name).clone() for name in held.keys()}  # noqa: SIM118
            return Done(int(done["layer"]), dict(done["results"]), streams)
        except (OSError, SafetensorError, ValueError, KeyError, TypeError):
            return None

    def write(self, done: Done) -> None:
        """Keeps what is done, in place of what was. Raises IncompleteError where it cannot be written."""
        metadata = {
            "fingerprint": self._fingerprint,
            _DONE: json.dumps({"layer": done.layer, "results": done.results}),
        }
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise IncompleteError(
                f"cannot write {self.file}: {error.strerror}", "set ARCHC_CACHE to a folder"
            ) from None
        write_whole(self.file, save({name: one.contiguous() for name, one in done.streams.items()}, metadata))

    def remove(self) -> None:
        """Forgets it, when the run has ended."""
        self.file.unlink(missing_ok=True)


def fingerprint_of(spec: str, source: str, folder: Path, files: Iterable[Path], probes: Iterable[Probe]) -> str:
    """What a run depends on: spec, generated code, probes, the checkpoint's files as they lie there, and versions.

    Weights are known by their file's size and time of change: to read them all would take as long as a run.
    """
    import transformers

    found = hashlib.sha256()
    for text in (spec, source, __version__, torch.__version__, transformers.__version__, str(torch.get_num_threads())):
        found.update(f"{len(text)}:{text}".encode())
    for probe in probes:
        given = (probe.input_ids, probe.position_ids, probe.attention_mask)
        values = [None if one is None else one.tolist() for one in given]
        found.update(json.dumps([probe.name, probe.chunks, *values]).encode())
    try:
        for file in sorted({folder / "config.json", *files}):
            stat = file.stat()
            found.update(f"{file.resolve()}:{stat.st_size}:{stat.st_mtime_ns}\n".encode())
    except OSError as error:
        raise IncompleteError(f"cannot read {error.filename} any more: {error.strerror}", CHANGED) from None
    return found.hexdigest()
