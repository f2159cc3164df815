"""Norms of a generated module: which classes it needs, and how each norm is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from archc.architecture.model import Architecture
from archc.codegen.constants import Constant
from archc.codegen.naming import literal
from archc.parts.norm import Norm

_STEMS = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
_CONVENTIONS = {"plain": "", "one_plus": "OnePlus", "none": "Bare"}
_OF_CHANNELS = {
    "rmsnorm": "Divides by the root mean square of the channels",
    "layernorm": "Centres channels and divides by their deviation",
}
_WORDS = {"plain": ", then scales them.", "one_plus": ", then scales by 1 + weight.", "none": "."}
_OF_A_HEAD = {
    "rmsnorm": "Divides each head by its root mean square",
    "layernorm": "Centres each head and divides by its deviation",
}
_OWN = {"plain": "; its own weight scales it.", "one_plus": "; 1 + its own weight scales it.", "none": "."}


@dataclass(frozen=True, slots=True)
class NormClass:
    """A norm class to print; norms that torch has need none."""

    name: str
    norm: Norm

    @property
    def summary(self) -> str:
        """The class's docstring."""
        if self.norm.heads is not None:
            return _OF_A_HEAD[self.norm.kind] + _OWN[self.norm.weight]
        return _OF_CHANNELS[self.norm.kind] + _WORDS[self.norm.weight]

    @property
    def shape(self) -> str:
        """The shape of its weight, and of its shift."""
        return "size" if self.norm.heads is None else "heads, size"


@dataclass(frozen=True, slots=True)
class NormCall:
    """The call that makes a norm."""

    function: str
    arguments: tuple[str, ...]


class Norms:
    """Names for the norms of a model: classes by convention, constants by eps."""

    def __init__(self, architecture: Architecture) -> None:
        self.classes: dict[str, NormClass] = {}
        first = architecture.final_norm or next(_layer_norms(architecture), None)
        self._eps = {first.eps: "NORM_EPS"} if first else {}
        for layer in architecture.layers:
            for norm in (norm for mixer in layer.mixers() for norm in mixer.head_norms):
                if "QK_NORM_EPS" not in self._eps.values():
                    self._eps.setdefault(norm.eps, "QK_NORM_EPS")

    def constants(self) -> Iterator[Constant]:
        """The epsilons that have a name."""
        return (Constant(name, literal(eps)) for eps, name in self._eps.items())

    def call(self, norm: Norm, size: str, heads: str = "") -> NormCall:
        """How a norm over `size` channels is made; `heads` says how many have a weight each, where they do."""
        eps = self._eps.get(norm.eps, literal(norm.eps))
        if norm.heads is not None:
            return NormCall(self._class(norm).name, (heads, size, eps))
        if norm.weight == "none" and not norm.bias:
            return NormCall(f"nn.{_STEMS[norm.kind]}", (size, f"eps={eps}", "elementwise_affine=False"))
        if norm.kind == "rmsnorm" or norm.weight != "plain":
            return NormCall(self._class(norm).name, (size, eps))
        return NormCall("nn.LayerNorm", (size, f"eps={eps}", *(() if norm.bias else ("bias=False",))))

    def _class(self, norm: Norm) -> NormClass:
        biased, each = "Biased" if norm.bias else "", "" if norm.heads is None else "Head"
        name = biased + _CONVENTIONS[norm.weight] + each + _STEMS[norm.kind]
        return self.classes.setdefault(name, NormClass(name, norm))


def _layer_norms(architecture: Architecture) -> Iterator[Norm]:
    """Those around the branches of all layers."""
    for layer in architecture.layers:
        norms = (norm for branch in layer.branches for norm in (branch.pre_norm, branch.post_norm))
        yield from (norm for norm in (layer.shared_norm, *norms) if norm)
