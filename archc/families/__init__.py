"""Families: how Hugging Face spells each model type. One declarative file per family, found by its name."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from archc.families.base import Family, Module, Parameter, Rule

__all__ = ["Family", "Module", "Parameter", "Rule", "family", "known_families"]


_NOT_FAMILIES = frozenset({"__init__", "base", "common", "gguf"})


def known_families() -> tuple[str, ...]:
    """The model types that have a file here; a hyphen in one is two underscores in the name of its file."""
    files = Path(__file__).parent.glob("*.py")
    return tuple(sorted(file.stem.replace("__", "-") for file in files if file.stem not in _NOT_FAMILIES))


def family(model_type: str) -> Family:
    """The family of a model type. Raises KeyError for one that has no file here."""
    if model_type not in known_families():
        raise KeyError(model_type)
    found = import_module(f"archc.families.{model_type.replace('-', '__')}").FAMILY
    assert isinstance(found, Family)
    return found
