"""The parity certificate: which port was held against which weights with what outcome, by hashes and versions.

A run that fails, or looks at short prompts alone, gets the same document under another title, and is certified nothing.
"""

from __future__ import annotations

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from archc import __version__
from archc.render.findings import Document, holds

if TYPE_CHECKING:
    from archc.checkpoints.hashes import FileHash

PARITY: Final = "Certificate of parity"
QUICK: Final = "Record of a quick validation; it certifies nothing"
FAILED: Final = "Record of a failed validation; it certifies nothing"
_PACKAGES: Final = ("torch", "transformers", "safetensors", "tokenizers")


def certificate(
    document: Document, weights: Sequence[FileHash], port: FileHash | None, *, strict: bool = False
) -> dict[str, Any]:
    """The certificate of a run: `port` is the file that the port was loaded from, if it was one."""
    passed = holds(document, strict=strict)
    return {
        "title": FAILED if not passed else PARITY if document["level"] == "full" else QUICK,
        "format": 1,
        "passed": passed,
        "strict": strict,
        "level": document["level"],
        "verdict": document["verdict"],
        "date": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "spec": document["spec"],
        "weights": [_file(one) for one in weights],
        "port": {
            "kind": document["port"]["kind"],
            "name": _portable(document["port"]["name"]),
            "file": None if port is None else _file(port),
        },
        "reference": document["reference"],
        "dtype": document["reference"]["dtype"],
        "versions": {"archc": __version__, "python": platform.python_version()} | _versions(),
        "platform": {"system": platform.system(), "machine": platform.machine()},
        "bound": document["bound"],
        "probes": [
            {key: probe[key] for key in ("name", "tokens", "floor", "deviation", "times_floor", "flips", "passed")}
            for probe in document["probes"]
        ],
        "invariants": [
            {key: one[key] for key in ("name", "passed", "figure", "unit")} for one in document["invariants"]
        ],
        "faults": document["faults"] and {key: one for key, one in document["faults"].items() if key != "seen"},
        "fields": document["fields"],
    }


def _file(one: FileHash) -> dict[str, Any]:
    return {"name": one.name, "bytes": one.size, "sha256": one.sha256}


def _portable(name: str | None) -> str | None:
    """The name of a port without the folders of this machine."""
    return PurePath(name).name if name is not None and PurePath(name).is_absolute() else name


def _versions() -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = None
    return found
