"""The file that `archc trace` writes: safetensors, tensor by tensor, so that a trace may be larger than memory."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final

import torch
from torch import Tensor

from archc.checkpoints.headers import read_header
from archc.errors import IncompleteError
from archc.files import whole_file

HASH: Final = "sha256"
"""Key of the metadata that holds the hash of everything else, by which archc knows a file as its own."""
_DTYPES = {torch.float32: "F32", torch.int64: "I64"}
_BLOCK = 2**24


class TraceWriter:
    """Collects tensors in a file that is open for reading and writing, and puts them behind a header in the end.

    The header comes first and holds the place of every tensor: until all are there, it cannot be written.
    """

    def __init__(self, data: IO[bytes]) -> None:
        self._data = data
        self._digest = hashlib.sha256()
        self._entries: dict[str, dict[str, object]] = {}
        self._size = 0

    def add(self, name: str, tensor: Tensor) -> None:
        """Adds a float32 or int64 tensor."""
        values = tensor.contiguous().numpy().reshape(-1).view("u1").data
        self._entries[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [self._size, self._size + len(values)],
        }
        self._digest.update(values)
        self._data.write(values)
        self._size += len(values)

    def finish(self, file: Path, metadata: Mapping[str, str]) -> None:
        """Writes the file whole. Raises IncompleteError when it cannot be."""
        seal = _seal(self._digest, {"__metadata__": dict(metadata), **self._entries})
        header = _text({"__metadata__": {**metadata, HASH: seal}, **self._entries})
        header += b" " * (-len(header) % 8)  # numbers begin at multiples of eight
        self._data.seek(0)
        with whole_file(file) as stream:
            stream.write(len(header).to_bytes(8, "little") + header)
            shutil.copyfileobj(self._data, stream, _BLOCK)


def is_own_trace(file: Path) -> bool:
    """Whether archc wrote a file as a trace and nobody changed it since."""
    try:
        read_header(file)
        with file.open("rb") as stream:
            header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
            claimed = header.get("__metadata__", {}).pop(HASH, None)
            digest = hashlib.sha256()
            while block := stream.read(_BLOCK):
                digest.update(block)
    except (OSError, IncompleteError):
        return False
    return claimed is not None and claimed == _seal(digest, header)


def _seal(data: Any, header: Mapping[str, object]) -> str:
    """The hash of data, which `data` has taken in, and of a header."""
    sealed = data.copy()
    sealed.update(_text(header))
    found: str = sealed.hexdigest()
    return found


def _text(header: Mapping[str, object]) -> bytes:
    return json.dumps(header, sort_keys=True, separators=(",", ":")).encode()
