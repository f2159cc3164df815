"""The static check: what a spec declares against what a checkpoint's headers say, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from archc.checkpoints.headers import StoredTensor
from archc.checkpoints.manifest import Manifest, pattern_of


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


def compare_manifest(manifest: Manifest, stored: Mapping[str, StoredTensor]) -> ManifestResult:
    """The headers of a checkpoint against a manifest."""
    found = {manifest.normal(name): tensor for name, tensor in stored.items()}
    extra = sorted(set(found) - set(manifest.entries))
    unread = tuple(name for name in extra if pattern_of(name) in manifest.optional)
    return ManifestResult(
        missing=tuple(sorted(set(manifest.entries) - set(found))),
        unexpected=tuple(name for name in extra if name not in unread),
        wrong_shape=tuple(
            WrongShape(name, entry.shape, found[name].shape)
            for name, entry in manifest.entries.items()
            if name in found and found[name].shape != entry.shape
        ),
        unread=unread,
    )
