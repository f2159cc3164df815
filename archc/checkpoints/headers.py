"""What a Hugging Face checkpoint folder says it holds, read from headers alone.

A checkpoint is untrusted input: every size is compared with the file's real length before anything is
allocated for it, names never reach the file system unchecked, and whatever is wrong with a file ends in one
``IncompleteError`` that names the file. No tensor is read, so neither torch nor numpy is needed.
"""

from __future__ import annotations

import json
import math
import os
import re
import reprlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, NoReturn

from archc.errors import IncompleteError

# The safetensors library refuses longer headers too.
MAX_HEADER_BYTES = 100_000_000
# The longest index on the hub, of a model of 100,000 tensors, is about 10 MB.
MAX_INDEX_BYTES = 100_000_000
MAX_CONFIG_BYTES = 4_000_000

_DTYPES_BY_BITS = {
    4: "F4",
    6: "F6_E2M3 F6_E3M2",
    8: "BOOL U8 I8 F8_E5M2 F8_E4M3 F8_E8M0 F8_E4M3FNUZ F8_E5M2FNUZ",
    16: "I16 U16 F16 BF16",
    32: "I32 U32 F32",
    64: "I64 U64 F64 C64",
}
DTYPE_BITS = {dtype: bits for bits, dtypes in _DTYPES_BY_BITS.items() for dtype in dtypes.split()}

SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"
PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")

_AGAIN = "download it again"
_PREFIX_BYTES = 8
_BYTE_BITS = 8
_SHOWN_NAMES = 3
_MAX_FILE_NAME = 255
_MAX_ELEMENTS = 2**64 - 1
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 100
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """One tensor as a safetensors header declares it."""

    name: str
    dtype: str
    """As safetensors spells it: ``F32``, ``BF16``, ``F8_E4M3`` …"""
    shape: tuple[int, ...]
    file: Path
    """The safetensors file that holds it."""

    @property
    def nbytes(self) -> int:
        """Its size in the file, in bytes."""
        return math.prod(self.shape) * DTYPE_BITS[self.dtype] // _BYTE_BITS


def read_header(file: Path) -> dict[str, StoredTensor]:
    """The tensors of one safetensors file by name, in the order of the header.

    Raises:
        IncompleteError: the file is absent, cut short, or breaks a rule of the format.
    """
    with _opened(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size < _PREFIX_BYTES:
            _damaged(file, f"is cut short: {size} bytes cannot hold the length of a header")
        length = int.from_bytes(_read(stream, file, _PREFIX_BYTES), "little")
        room = size - _PREFIX_BYTES
        if length > MAX_HEADER_BYTES:
            _damaged(file, f"claims a header of {length:,} bytes, more than the {MAX_HEADER_BYTES:,} of the format")
        if length > room:
            _damaged(file, f"is cut short: its header is {length:,} bytes long, but only {room:,} follow")
        raw = _read(stream, file, length)
    if not raw.startswith(b"{"):
        _damaged(file, "is not a safetensors file: its header does not begin with '{'")
    return _tensors(_parse_object(raw, file, "header"), room - length, file)


def read_checkpoint(folder: Path) -> dict[str, StoredTensor]:
    """The tensors of a checkpoint folder by name: of ``model.safetensors``, else of the shards of its index.

    A tensor that the index places is taken from that shard; one that the index leaves out, but a shard
    holds, is included (Hugging Face loads it as well).

    Raises:
        IncompleteError: the folder is absent or holds no safetensors weights, only pickles are there, a
            shard is absent or lacks a tensor that the index places in it, or a file is damaged.
    """
    _require_folder(folder)
    if _present(folder / SINGLE):
        return read_header(folder / SINGLE)
    if _present(folder / INDEX):
        return _read_sharded(folder)
    if pickles := sorted({path.name for pattern in PICKLES for path in folder.glob(pattern)}):
        raise IncompleteError(
            f"{folder} holds its weights only as pickles ({_listed(pickles)}); pickle checkpoints can run code",
            "convert to safetensors",
        )
    if loose := sorted(path.name for path in folder.glob("*.safetensors")):
        raise IncompleteError(f"{folder} holds {_listed(loose)}, but neither {SINGLE} nor {INDEX}", _AGAIN)
    raise IncompleteError(
        f"{folder} holds no weights: neither {SINGLE} nor {INDEX}", "name the folder of a Hugging Face checkpoint"
    )


def read_config(folder: Path) -> dict[str, object]:
    """The ``config.json`` of a checkpoint folder.

    As for Hugging Face, the last of two equal keys counts, and ``Infinity`` is a number (the time step limits
    of state-space models have it); ``NaN`` is not.

    Raises:
        IncompleteError: the folder or the file is absent, or the file is no JSON object of sane size.
    """
    _require_folder(folder)
    file = folder / "config.json"
    if not _present(file):
        raise IncompleteError(f"{folder} has no config.json", "name the folder of a Hugging Face checkpoint")
    return _read_json(file, MAX_CONFIG_BYTES, lenient=True)


def _read_sharded(folder: Path) -> dict[str, StoredTensor]:
    index = folder / INDEX
    placed = _read_json(index, MAX_INDEX_BYTES).get("weight_map")
    if not isinstance(placed, dict) or not placed:
        _damaged(index, "has no weight_map that places tensors in files")
    shards: dict[str, dict[str, StoredTensor]] = {}
    for name, shard in placed.items():
        if not _is_shard_name(shard):
            _damaged(index, f"places {_shown(name)} in {_shown(shard)}, which is not the plain name of a shard")
        if shard not in shards:
            if not _present(folder / shard):
                raise IncompleteError(f"{folder} lacks the shard {_shown(shard)} that its index names", _AGAIN)
            shards[shard] = read_header(folder / shard)
        if name not in shards[shard]:
            _damaged(index, f"places {_shown(name)} in {shard}, which does not hold it")
    found: dict[str, StoredTensor] = {}
    for shard, tensors in shards.items():
        for name, tensor in tensors.items():
            if placed.get(name, shard) != shard:
                continue
            if name in found:
                _damaged(index, f"leaves {_shown(name)} open: both {found[name].file.name} and {shard} hold one")
            found[name] = tensor
    return found


def _is_shard_name(shard: object) -> bool:
    # Both path flavours, so that a checkpoint made for one system cannot escape from its folder on the other.
    return (
        isinstance(shard, str)
        and len(shard) <= _MAX_FILE_NAME
        and shard.endswith(".safetensors")
        and shard.isprintable()
        and shard == PurePosixPath(shard).name == PureWindowsPath(shard).name
    )


def _tensors(header: dict[str, object], data_bytes: int, file: Path) -> dict[str, StoredTensor]:
    metadata = header.pop("__metadata__", None)
    if not isinstance(metadata, dict | None) or not all(isinstance(text, str) for text in (metadata or {}).values()):
        _damaged(file, "has a __metadata__ that is not a map from text to text")
    tensors: dict[str, StoredTensor] = {}
    spans: list[tuple[int, int, str]] = []
    for name, entry in header.items():
        if not isinstance(entry, dict):
            _damaged(file, f"describes {_shown(name)} by something that is not an object")
        dtype = entry.get("dtype")
        if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
            _damaged(file, f"gives {_shown(name)} the unknown dtype {_shown(dtype)}")
        shape = _shape(entry.get("shape"), name, file)
        begin, end = _offsets(entry.get("data_offsets"), data_bytes, name, file)
        bits = math.prod(shape) * DTYPE_BITS[dtype]
        if bits != (end - begin) * _BYTE_BITS:
            wanted = f"{dtype} of shape {_shown(list(shape))} takes {-(-bits // _BYTE_BITS):,}"
            _damaged(file, f"gives {_shown(name)} {end - begin:,} bytes, but {wanted}")
        tensors[name] = StoredTensor(name, dtype, shape, file)
        spans.append((begin, end, name))
    _require_tiling(sorted(spans), data_bytes, file)
    return tensors


def _shape(value: object, name: str, file: Path) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(size) is int and size >= 0 for size in value):
        _damaged(file, f"gives {_shown(name)} the shape {_shown(value)}, which is not a list of sizes")
    elements = 1
    for size in value:
        # Stopping here keeps a long list of large sizes from becoming a number of millions of digits.
        elements *= size
        if elements > _MAX_ELEMENTS:
            _damaged(file, f"gives {_shown(name)} the impossible shape {_shown(value)}")
    return tuple(value)


def _offsets(value: object, data_bytes: int, name: str, file: Path) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2 or not all(type(offset) is int for offset in value):
        _damaged(file, f"gives {_shown(name)} the offsets {_shown(value)}, which are not a begin and an end")
    begin, end = value
    if not 0 <= begin <= end:
        _damaged(file, f"gives {_shown(name)} the offsets {_shown(value)}, which are not in order")
    if end > data_bytes:
        _damaged(file, f"is cut short: {_shown(name)} ends at byte {_shown(end)} of its {data_bytes:,} bytes of data")
    return begin, end


def _require_tiling(spans: list[tuple[int, int, str]], data_bytes: int, file: Path) -> None:
    reached = 0
    for begin, end, name in spans:
        if begin != reached:
            _damaged(file, f"places {_shown(name)} at byte {begin:,}, where the tensors before it end at {reached:,}")
        reached = end
    if reached != data_bytes:
        _damaged(file, f"holds {data_bytes:,} bytes of data, but its tensors end at {reached:,}")


def _require_folder(folder: Path) -> None:
    try:
        problem = "" if folder.is_dir() else "is not a folder" if folder.exists() else "does not exist"
    except OSError as error:
        _unreadable(folder, error)
    if problem:
        raise IncompleteError(f"{folder} {problem}", "name the folder of a Hugging Face checkpoint")


def _present(file: Path) -> bool:
    try:
        if file.is_symlink() and not file.exists():
            # What an interrupted download leaves behind in a hub cache.
            raise IncompleteError(f"{file} is a link to a file that is not there", _AGAIN)
        return file.exists()
    except OSError as error:
        _unreadable(file, error)


def _opened(file: Path) -> BinaryIO:
    # A pipe or device would block or never end, so only regular files (or links to them) are opened.
    try:
        if not file.is_file():
            raise IncompleteError(f"{file} is {'not a file' if file.exists() else 'not there'}", _AGAIN)
        return file.open("rb")
    except OSError as error:
        _unreadable(file, error)


def _read(stream: BinaryIO, file: Path, count: int) -> bytes:
    try:
        data = stream.read(count)
    except OSError as error:
        _unreadable(file, error)
    if len(data) != count:
        _damaged(file, "became shorter while it was read")
    return data


def _read_json(file: Path, limit: int, lenient: bool = False) -> dict[str, object]:
    with _opened(file) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > limit:
            _damaged(file, f"is {size:,} bytes long, and nothing of its kind is longer than {limit:,}")
        raw = _read(stream, file, size)
    return _parse_object(raw, file, "text", lenient)


def _parse_object(raw: bytes, file: Path, what: str, lenient: bool = False) -> dict[str, object]:
    try:
        text = raw.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=None if lenient else _unique,
            parse_constant=_infinity if lenient else _no_constant,
            parse_float=_finite,
        )
        if _SURROGATE.search(text):
            # Half a character, spelled as an escape, would crash whatever prints it.
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeError:
        _damaged(file, f"has a {what} that is not UTF-8")
    except RecursionError:
        _damaged(file, f"has a {what} that is nested too deeply")
    except ValueError as error:
        _damaged(file, f"has a {what} that is not valid JSON ({error})")
    if not isinstance(value, dict):
        _damaged(file, f"has a {what} that is not a JSON object")
    return value


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"{_shown(name)} is there twice")
        result[name] = value
    return result


def _infinity(text: str) -> float:
    return _no_constant(text) if text == "NaN" else float(text)


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a JSON number")


def _finite(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"{_shown(text)} is beyond what a number can hold")
    return value


def _shown(value: object) -> str:
    """``value`` for a message: control characters escaped, long or deep values cut short."""
    return _SHORT.repr(value)


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN_NAMES
    return ", ".join(map(_shown, names[:_SHOWN_NAMES])) + (f" and {more} more" if more > 0 else "")


def _damaged(file: Path, problem: str) -> NoReturn:
    raise IncompleteError(f"{file} {problem}", _AGAIN)


def _unreadable(file: Path, error: OSError) -> NoReturn:
    raise IncompleteError(f"{file} cannot be read: {error.strerror or error}", "check that it is there and readable")
