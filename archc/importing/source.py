"""Finds a config: a config.json, a folder that holds one, the metadata of a GGUF file, or a model's page on the hub."""

from __future__ import annotations

import json
import os
import re
import struct
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from archc.errors import IncompleteError, UsageError
from archc.spec.diagnostics import quoted

_LARGEST: Final = 16 * 2**20
_HUB_ID: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
_SECONDS: Final = 10
"""How long the hub may take to answer."""


class Source(Struct, frozen=True):
    """A config as it was found, and a name for the model."""

    raw: Mapping[str, Any]
    name: str
    place: str = "config.json"
    """What states the values, in the words of a comment."""
    notes: tuple[str, ...] = ()
    """What a reader of the spec should know of where it came from."""


def is_source(target: str) -> bool:
    """Whether a target is something to import, and not a spec."""
    path = Path(target)
    return path.suffix in {".json", ".gguf"} or (path.is_dir() and (path / "config.json").is_file())


def find_source(target: str) -> Source:
    """The config at `target`. Raises UsageError where there is none, IncompleteError where it cannot be read."""
    path = Path(target)
    if path.suffix == ".gguf" and path.is_file():
        return _gguf(path)
    file = path / "config.json" if path.is_dir() else path
    if not file.is_file():
        if not path.exists() and _HUB_ID.fullmatch(target):
            return _hub(target)
        raise UsageError(
            f"nothing to import at {quoted(target)}", "give a config.json, a checkpoint folder or a .gguf file"
        )
    if file.stat().st_size > _LARGEST:
        raise IncompleteError(f"{file} is larger than any config", "give the config.json of a checkpoint")
    raw = _parsed(file.read_bytes(), str(file))
    name = str(raw.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    if not name:
        name = file.resolve().parent.name if file.name == "config.json" else file.stem.rpartition("__")[2]
    return Source(raw, name)


def _parsed(data: bytes, place: str) -> Mapping[str, Any]:
    try:
        raw = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise IncompleteError(f"{place} is not valid JSON: {error}", "download it again") from None
    if not isinstance(raw, dict):
        raise IncompleteError(f"{place} holds no JSON object", "give the config.json of a checkpoint")
    return raw


def _gguf(path: Path) -> Source:
    """The config that transformers makes of a GGUF file's metadata; its tensors are not read."""
    from archc.importing.resolve import reference

    load = reference("transformers.modeling_gguf_pytorch_utils").load_gguf_checkpoint
    reference("gguf")
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise IncompleteError(f"{path} is not a GGUF file: it does not begin with GGUF", "download it again")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = load(str(path), return_tensors=False)["config"]
            found |= _head_dim(path, found["model_type"])
    except Exception as error:  # a damaged file trips its reader in many places
        problem = " ".join(str(error).split())[:200] or type(error).__name__
        raise IncompleteError(f"{path} is damaged or cut short: {problem}", "download it again") from None
    raw = {key: _shortest(value) for key, value in found.items()} | {"dtype": "bfloat16"}
    note = "A GGUF file does not say in which type its weights were published; bfloat16 is assumed."
    return Source(raw, path.stem, "the GGUF file", (note,))


def _head_dim(path: Path, model_type: str) -> dict[str, int]:
    """Channels of a head, where the file says another number than width over heads.

    transformers 5.24 reads them for some architectures alone (integrations/ggml.py, GGUF_CONFIG_MAPPING).
    """
    from archc.importing.resolve import reference

    known = reference("transformers.integrations.ggml").GGUF_CONFIG_MAPPING
    fields = reference("gguf").GGUFReader(path).fields
    architecture = fields["general.architecture"].contents()

    def number(key: str) -> int:
        field = fields.get(f"{architecture}.{key}")
        value = field.contents() if field else 0
        return value if isinstance(value, int) else 0

    channels, heads = number("attention.key_length"), number("attention.head_count")
    read = "attention.key_length" in known.get(model_type, {})
    return {} if read or not channels or channels * heads == number("embedding_length") else {"head_dim": channels}


def _shortest(value: Any) -> Any:
    """A float that went through GGUF's 32 bits as it was written before: 1e-05, not 9.999999747378752e-06."""
    if not isinstance(value, float) or value - value != 0:
        return value
    narrow = struct.pack("f", value)
    written = (float(f"{value:.{digits}g}") for digits in range(1, 10))
    return next((short for short in written if struct.pack("f", short) == narrow), value)


def _hub(name: str) -> Source:
    """The config.json on a model's page on the hub."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    place = f"{os.environ.get('HF_ENDPOINT', 'https://huggingface.co').rstrip('/')}/{name}/resolve/main/config.json"
    mend = "download its config.json, and import the file"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        raise IncompleteError(f"there is no file {quoted(name)}, and HF_HUB_OFFLINE forbids to ask the hub", mend)
    try:
        with urlopen(place, timeout=_SECONDS) as answer:
            data = answer.read(_LARGEST)
    except HTTPError as error:
        meaning = {401: "there is none, or it is not open to all", 403: "it is not open to all", 404: "there is none"}
        reason = meaning.get(error.code, f"the hub answered {error.code}")
        raise IncompleteError(f"no config of {quoted(name)} on the hub: {reason}", mend) from None
    except (OSError, ValueError) as error:
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        raise IncompleteError(
            f"there is no file {quoted(name)}, and the hub cannot be reached: {reason}", mend
        ) from None
    raw = _parsed(data, place)
    return Source(raw, name.rpartition("/")[2], notes=(f"Of {name} on the hub.",))
