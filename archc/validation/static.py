"""The static check: what a spec declares against what a checkpoint's headers say, before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from archc.architecture.model import Architecture
from archc.checkpoints.headers import StoredTensor
from archc.checkpoints.manifest import build_manifest, stored_entries
from archc.errors import IncompleteError

_MOST_MISSING = 1000
"""Where so much is missing, the rest is not counted: a spec can declare more tensors than fit in memory."""


@dataclass(frozen=True, slots=True)
class WrongShape:
    """A tensor whose declared and stored shapes differ."""

    name: str
    declared: tuple[int, ...]
    stored: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ManifestResult:
    """Declared and not stored; stored and not declared; shapes that differ; stored, allowed and never read."""

    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    wrong_shape: tuple[WrongShape, ...]
    unread: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Whether the port can be loaded at all."""
        return not (self.missing or self.unexpected or self.wrong_shape)


def compare_manifest(architecture: Architecture, stored: Mapping[str, StoredTensor]) -> ManifestResult:
    """The headers of a checkpoint against what an Architecture declares."""
    manifest = build_manifest(architecture)
    found = {manifest.normal(name): tensor for name, tensor in stored.items()}
    declared: set[str] = set()
    missing: list[str] = []
    wrong_shape: list[WrongShape] = []
    for entry in stored_entries(architecture, manifest):
        declared.add(entry.name)
        if entry.name not in found and manifest.may_lack(entry.name):
            continue
        if entry.name not in found:
            missing.append(entry.name)
            if len(missing) == _MOST_MISSING:
                break
        elif found[entry.name].shape != entry.shape:
            wrong_shape.append(WrongShape(entry.name, entry.shape, found[entry.name].shape))
    extra = sorted(found.keys() - declared) if len(missing) < _MOST_MISSING else []
    unread = tuple(name for name in extra if manifest.leaves_out(name, found[name].shape))
    return ManifestResult(
        missing=tuple(sorted(missing)),
        unexpected=tuple(name for name in extra if name not in unread),
        wrong_shape=tuple(wrong_shape),
        unread=unread,
    )


def require_all_read(architecture: Architecture, left: Iterable[str], folder: Path, found: ManifestResult) -> None:
    """Refuses a reference that has `left` tensors out that the spec declares: it would be another, smaller model."""
    normal = build_manifest(architecture).normal
    unread = [name for name in left if normal(name) not in found.unread]
    if unread:
        more = f" and {len(unread) - 1} more tensors" if len(unread) > 1 else ""
        raise IncompleteError(
            f"{folder} is no reference: its config.json has no place for {unread[0]}{more}, which its weights hold",
            "its config.json must describe its own weights, with all their layers",
        )
