"""Documents whose keys stand in the order in which they are declared, whenever they were added."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar, cast

Document = TypeVar("Document")


def ordered(document: Document, kind: type[Document]) -> Document:
    """A TypedDict of a kind, with its keys in the order of the kind's declaration."""
    found = cast(Mapping[str, object], document)
    return cast(Document, {key: found[key] for key in kind.__annotations__ if key in found})
