"""Which stored tensors are one page: those of a layer; of what stands around the layers, those of a module."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from archc.architecture.model import Architecture
from archc.checkpoints.manifest import build_manifest, stored_entries
from archc.validation.streaming.paging import BEFORE, Page

_OWNED: Final = ("layers.", "shared.")


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of a checkpoint, and which of the generated module's parameters each fills."""

    all: tuple[Page, ...]
    by_parameter: Mapping[str, Page]

    def of(self, parameter: str) -> Page:
        """The page of a parameter; of one that nothing stored fills, the page that it would be in."""
        found = self.by_parameter.get(parameter)
        if found is None:
            name = _page_name(parameter)
            found = next((page for page in self.all if page.name == name), Page(name, layer_of(name), ()))
        return found


def pages_of(architecture: Architecture, stored: Iterable[str]) -> Pages:
    """The pages of a checkpoint by the names that it stores; what the manifest does not name has pages of its own."""
    manifest = build_manifest(architecture)
    fills = {entry.name: entry.fills for entry in stored_entries(architecture, manifest)}
    names: dict[str, str] = {}
    grouped: dict[str, list[str]] = defaultdict(list)
    for name in stored:
        filled = fills.get(manifest.normal(name), (f"stored: {name}",))
        owners = {_page_name(parameter) for parameter in filled}
        page = next((names[one] for one in filled if one in names), owners.pop() if len(owners) == 1 else filled[0])
        names |= dict.fromkeys(filled, page)
        grouped[page].append(name)
    pages = {name: Page(name, layer_of(name), tuple(tensors)) for name, tensors in grouped.items()}
    return Pages(tuple(pages.values()), {parameter: pages[page] for parameter, page in names.items()})


def _page_name(parameter: str) -> str:
    """`layers.N` or `shared.NAME` of a parameter in there; of others their module, or else their own name."""
    if parameter.startswith(_OWNED):
        return ".".join(parameter.split(".")[:2])
    return parameter.rpartition(".")[0] or parameter


def layer_of(page: str) -> int:
    """The number of the layer that a page is, by its name; BEFORE of others."""
    kind, _, number = page.partition(".")
    return int(number) if kind == "layers" and number.isdigit() else BEFORE
