"""Where the canonical points of a model lie among its modules: found by the names of its parameters.

The Architecture says which parameters belong to a layer's mixer, its feed-forward and its router; the manifest says
what they are called on disk, and modules of transformers (and of most ports) are called as their parameters are. So the
deepest module that holds all of a part's parameters is that part, whatever the family. Where names lead nowhere, layers
are found by their number, and their parts by what such modules are usually called.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from archc.architecture.model import Architecture, Branch, Layer
from archc.checkpoints.manifest import UnstorableError, build_manifest, stored_entries
from archc.parts.base import Heads

Role = Literal["mixer", "ffn"]
_LAST = ("o", "down")
"""What the projection that ends a part is called, by the generated module's names."""
_WORDS: Mapping[Role, tuple[str, ...]] = {
    "mixer": ("attn", "attention", "mixer", "mamba", "conv", "temporal", "rnn"),
    "ffn": ("mlp", "ffn", "feed_forward", "feedforward", "moe"),
}


@dataclass(frozen=True, slots=True)
class PartPlace:
    """A mixer or a feed-forward: its module, or the first and the last of its projections where these lie bare."""

    role: Role
    first: nn.Module
    last: nn.Module | None
    """What gives its output: the part itself, or its last projection; None where no module does."""
    projection: nn.Module | None = None
    """Its last projection, where it is known."""

    @property
    def whole(self) -> bool:
        """Whether the part is a module of its own."""
        return self.first is self.last


@dataclass(frozen=True, slots=True)
class Router:
    """The matrix that scores experts, [experts, width]: the parameter, where its name is known."""

    shape: tuple[int, int]
    weight: Tensor | None


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """One layer: its module, its parts, and what is looked for inside of them."""

    module: nn.Module
    parts: tuple[PartPlace, ...] = ()
    heads: Heads | None = None
    router: Router | None = None
    reuses: bool = False
    """Whether it reads keys and values that an earlier layer made."""


@dataclass(frozen=True, slots=True)
class Places:
    """The layers of a model in order (one module may stand for several of them), and its final norm."""

    layers: tuple[LayerPlace, ...] = ()
    final_norm: nn.Module | None = None
    guessed: bool = False
    """Whether parts were not found by the names of parameters."""


def find_places(model: nn.Module, architecture: Architecture) -> Places:
    """The places of a model: by the generated module's names, by stored ones, or by the number of layers.

    None of them where no list of as many modules as the Architecture has layers is found.
    """
    modules, parameters = dict(model.named_modules()), dict(model.named_parameters(remove_duplicate=False))
    own = {tensor.name: tensor.name for tensor in architecture.tensors()}
    for names in (own, _stored_names(architecture)):
        tree = _Tree(modules, parameters, names, architecture.hidden_size)
        paths = [_layer_path(tree, layer, number) for number, layer in enumerate(architecture.layers)]
        if all(paths):
            return _places(tree, architecture, [path for path in paths if path], guessed=False)
    count = len(architecture.layers)
    lists = [path for path, one in modules.items() if isinstance(one, nn.ModuleList) and len(one) == count]
    if len(lists) != 1:
        return Places()
    tree = _Tree(modules, parameters, {}, architecture.hidden_size)
    return _places(tree, architecture, [f"{lists[0]}.{number}" for number in range(count)], guessed=True)


def _stored_names(architecture: Architecture) -> Mapping[str, str]:
    """What each parameter is called on disk; of experts that are stored one by one, the last."""
    try:
        entries = stored_entries(architecture, build_manifest(architecture))
        return {own: entry.name for entry in entries for own in entry.fills}
    except (UnstorableError, KeyError):
        return {}


@dataclass(frozen=True, slots=True)
class _Tree:
    """The modules of a model, and what the Architecture's parameters are called in it."""

    modules: Mapping[str, nn.Module]
    parameters: Mapping[str, Tensor]
    names: Mapping[str, str]
    width: int

    def holder(self, own: str) -> str:
        """The path of the deepest module that a parameter can be in; empty where that is the whole model."""
        name = self.names.get(own, "")
        while name := name.rpartition(".")[0]:
            if name in self.modules:
                return name
        return ""

    def children(self, path: str) -> list[str]:
        """Modules right below another that hold parameters."""
        start = f"{path}." if path else ""
        inside = (name.removeprefix(start).split(".")[0] for name in self.parameters if name.startswith(start))
        return [f"{start}{child}" for child in dict.fromkeys(inside) if f"{start}{child}" in self.modules]


def _places(tree: _Tree, architecture: Architecture, paths: list[str], *, guessed: bool) -> Places:
    layers = tuple(
        _layer_place(tree, layer, number, path)
        for number, (layer, path) in enumerate(zip(architecture.layers, paths, strict=True))
    )
    norm = next((tree.holder(own) for own in tree.names if own.startswith("final_norm.")), "")
    if guessed:
        beside = tree.children(paths[0].rpartition(".")[0].rpartition(".")[0])
        norms = [child for child in beside if "norm" in child.rpartition(".")[2].lower()]
        norm = norms[0] if len(norms) == 1 else ""
    return Places(layers, tree.modules[norm] if norm else None, guessed)


def _layer_path(tree: _Tree, layer: Layer, number: int) -> str | None:
    """The entry of a list of modules that holds a layer's own parameters; None where they lie in several."""
    found = set()
    for tensor in layer.tensors(f"layers.{number}"):
        pieces = tree.holder(tensor.name).split(".")
        for end, piece in enumerate(pieces):
            if piece.isdigit() and isinstance(tree.modules.get(".".join(pieces[:end])), nn.ModuleList):
                found.add(".".join(pieces[: end + 1]))
                break
    return found.pop() if len(found) == 1 else None


def _layer_place(tree: _Tree, layer: Layer, number: int, path: str) -> LayerPlace:
    parts: list[PartPlace] = []
    router = None
    roles: tuple[tuple[Role, object], ...] = (("mixer", layer.mixer), ("ffn", layer.ffn))
    for role, part in roles:
        place = next(((branch, slot) for branch in layer.branches for slot, one in branch.parts if one is part), None)
        if part is None or place is None:
            continue
        prefix = _prefix(*place, number)
        found = _by_name(tree, role, path, prefix) or _by_word(tree, role, path)
        if found is not None:
            parts.append(found)
        if role == "ffn" and layer.ffn is not None and layer.ffn.routed is not None:
            weight = tree.parameters.get(tree.names.get(f"{prefix}router.weight", ""))
            router = Router((layer.ffn.routed.experts, tree.width), weight)
    reuses = any(getattr(mixer, "kv", None) == "reused" for mixer in layer.mixers())
    return LayerPlace(tree.modules[path], tuple(parts), layer.mixer.shape if layer.mixer else None, router, reuses)


def _prefix(branch: Branch, slot: str, number: int) -> str:
    owner = f"shared.{branch.shared}" if branch.shared else f"layers.{number}"
    return f"{owner}.{slot}."


def _by_name(tree: _Tree, role: Role, layer: str, prefix: str) -> PartPlace | None:
    """The module below the layer that holds all of a part's parameters, or else its own projections."""
    holders = {own: tree.holder(own) for own in tree.names if own.startswith(prefix)}
    inside = {own: path for own, path in holders.items() if path not in {"", layer}}
    lost = any(own not in inside and tree.names[own] not in tree.parameters for own in holders)
    if lost or not inside:  # a class may call its modules by other names than its checkpoints
        return None
    last = next((path for own, path in inside.items() if own.removeprefix(prefix).split(".")[0] in _LAST), None)
    projection = None if last is None else tree.modules[last]
    common = os.path.commonpath([path.replace(".", "/") for path in inside.values()]).replace("/", ".")
    if common != layer and not layer.startswith(f"{common}."):
        return PartPlace(role, tree.modules[common], tree.modules[common], projection)
    return PartPlace(role, tree.modules[next(iter(inside.values()))], projection, projection)


def _by_word(tree: _Tree, role: Role, layer: str) -> PartPlace | None:
    """The one module right below the layer that is called like such a part, and is not its norm."""
    found = []
    for child in tree.children(layer):
        name = child.removeprefix(f"{layer}.").lower()
        if "norm" not in name and not name.startswith("ln") and any(word in name for word in _WORDS[role]):
            found.append(tree.modules[child])
    return PartPlace(role, found[0], found[0]) if len(found) == 1 else None
