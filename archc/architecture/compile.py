"""From what a user names, or a text, to the Architecture, with all that is known of where it came from."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from archc.architecture.build import build
from archc.architecture.model import Architecture
from archc.importing.source import is_source
from archc.spec.diagnostics import Diagnostic
from archc.spec.load import LoadedSpec, load, load_text


class Compiled(Struct, frozen=True):
    """An Architecture, the spec it was built from, and the warnings and notes about it."""

    architecture: Architecture
    loaded: LoadedSpec
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[str, ...] = ()
    """What an import says of the config that the spec comes from."""


def compile_spec(target: str, overrides: Sequence[str] = ()) -> Compiled:
    """The Architecture of the spec at `target`: a path, a shipped name, or a config to import.

    Raises SpecError with all that is wrong.
    """
    if is_source(target):
        from archc.importing.convert import import_spec

        imported = import_spec(target)
        compiled = compile_text(imported.text, f"{target}, imported", overrides)
        return replace(compiled, notes=imported.notes)
    return _compile(load(target, overrides))


def compile_text(text: str, file: str = "<text>", overrides: Sequence[str] = ()) -> Compiled:
    """As `compile_spec`, from the text of a spec."""
    return _compile(load_text(text, file, overrides))


def _compile(loaded: LoadedSpec) -> Compiled:
    return Compiled(build(loaded.spec), loaded, loaded.diagnostics)
