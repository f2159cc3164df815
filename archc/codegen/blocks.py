"""Blocks of a generated module: which parts they hold, and how branches join the residual stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from archc.architecture.model import Layer
from archc.codegen.inputs import Input
from archc.codegen.naming import Variant, literal
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import FfnView, MixerView
from archc.codegen.parts import MIXERS
from archc.codegen.plain import ffn_of, mixer_of, residual_of
from archc.parts.base import FfnPart, MixerPart


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block class: its parts' classes and how its norms are made (only those that it has)."""

    name: str
    layer: Layer
    mixer: MixerView[Any]
    ffn: FfnView[Any]
    norms: Mapping[str, NormCall]
    stream: str
    branch: str
    inputs: Sequence[Input]

    @property
    def parameters(self) -> list[str]:
        """What the layers of the model are given beside the stream and the cache."""
        return [given.parameter for given in self.inputs]

    @property
    def mixer_arguments(self) -> str:
        """What the mixer is given beside its input."""
        return ", ".join((*self.mixer.inputs, "cache"))

    @property
    def promised(self) -> list[str]:
        """Inputs that other blocks have not, and this block's mixer is given."""
        return [given.name for given in self.inputs if given.optional and given.name in self.mixer.inputs]

    @property
    def summary(self) -> str:
        """The class's docstring."""
        if self.layer.parallel:
            return "Attention and feed-forward side by side behind one norm."
        return "Attention, then a feed-forward, each added to the residual stream."


def without_arguments(layer: Layer) -> Layer:
    """A layer without its kind and what its class is given from outside: layers equal in the rest share a class."""
    mixing, feeding = layer.branches
    mixing = replace(mixing, parts=((mixing.slot, mixer_without_arguments(mixer_of(layer))),))
    return replace(layer, kind="", branches=(mixing, feeding))


def mixer_without_arguments(part: MixerPart) -> MixerPart:
    """The same of a mixer."""
    found: MixerPart = MIXERS[type(part)].without_arguments(part)
    return found


def block_view(
    variant: Variant[Layer],
    mixers: Mapping[MixerPart, MixerView[Any]],
    ffns: Mapping[FfnPart, FfnView[Any]],
    norms: Norms,
    inputs: Sequence[Input],
) -> BlockView:
    """The view of a block."""
    layer, residual = variant.value, residual_of(variant.value)
    found = {"norm": norms.call(layer.shared_norm, "WIDTH")} if layer.shared_norm else {}
    for branch in layer.branches:
        for name, norm in (("norm", branch.pre_norm), ("post_norm", branch.post_norm)):
            if norm:
                found[f"{branch.slot}_{name}"] = norms.call(norm, "WIDTH")
    return BlockView(
        name=f"{variant.class_prefix}Block",
        layer=layer,
        mixer=mixers[mixer_of(layer)],
        ffn=ffns[ffn_of(layer)],
        norms=found,
        stream="x_BTD" if residual.stream == 1 else f"{literal(residual.stream)} * x_BTD",
        branch="" if residual.branch == 1 else f"{literal(residual.branch)} * ",
        inputs=inputs,
    )
