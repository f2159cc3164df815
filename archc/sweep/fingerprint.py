"""The fingerprint of a job: what its result depends on, as far as that can be told without reading the weights."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Final

from archc import __version__
from archc.checkpoints.hashes import checkpoint_files
from archc.checkpoints.headers import read_checkpoint
from archc.errors import ArchcError
from archc.spec.load import find
from archc.validation.validator import find_validator

_READ: Final = 2**24
"""Files of fewer bytes are read whole; of larger ones, size and time of the last change stand for the content."""


def versions() -> dict[str, str | None]:
    """Of what computes: archc, torch and transformers; None for what is not installed."""
    return {"archc": __version__, "torch": _version("torch"), "transformers": _version("transformers")}


def fingerprint(
    words: Sequence[str], target: str, weights: str | None, code: Path | None, installed: Mapping[str, str | None]
) -> str:
    """SHA-256 of a job's words, of the spec, text and port that they name, and of the checkpoint's headers.

    Weights are not read: a file that was replaced by one with the same header is known by its size and its time. What
    cannot be read is no error here, but one that the job will meet.
    """
    stated: list[object] = [list(words), dict(installed)]
    try:
        validator = find_validator(target)
        folder = Path(weights) if weights is not None else validator.weights
        stated += [_content(_spec_file(validator.spec)), _content(validator.text), code and _content(code)]
        if folder is not None:
            stated += [_content(file) for file in checkpoint_files(folder)]
            stated += [[one.name, one.dtype, one.shape] for one in read_checkpoint(folder).values()]
    except (ArchcError, OSError, ValueError) as error:
        stated.append(str(error))
    return hashlib.sha256(json.dumps(stated).encode()).hexdigest()


def _spec_file(spec: str) -> Path:
    config = Path(spec, "config.json")
    return config if config.is_file() else find(spec)


def _content(file: Path) -> list[object]:
    state = file.stat()
    if file.suffix == ".safetensors" or state.st_size > _READ:
        return [file.name, state.st_size, state.st_mtime_ns]
    return [file.name, hashlib.sha256(file.read_bytes()).hexdigest()]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
