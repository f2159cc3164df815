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
_WORDS = {"plain": ", then scales them", "one_plus": ", then scales by 1 + weight", "none": ""}


@dataclass(frozen=True, slots=True)
class NormClass:
    """A norm class to print; LayerNorms that torch already has need none."""

    name: str
    norm: Norm

    @property
    def words(self) -> str:
        """What it does after dividing."""
        return _WORDS[self.norm.weight]


@dataclass(frozen=True, slots=True)
class NormCall:
    """The call that makes a norm."""

    function: str
    arguments: tuple[str, ...]


class Norms:
    """Names for the norms of a model: classes by convention, constants by eps."""

    def __init__(self, architecture: Architecture, final_norm: Norm) -> None:
        self.classes: dict[tuple[str, str, bool], NormClass] = {}
        self._eps = {final_norm.eps: "NORM_EPS"}
        for layer in architecture.layers:
            for norm in (norm for mixer in layer.mixers() for norm in mixer.head_norms):
                if "QK_NORM_EPS" not in self._eps.values():
                    self._eps.setdefault(norm.eps, "QK_NORM_EPS")

    def constants(self) -> Iterator[Constant]:
        """The epsilons that have a name."""
        return (Constant(name, literal(eps)) for eps, name in self._eps.items())

    def call(self, norm: Norm, size: str) -> NormCall:
        """How a norm over `size` channels is made."""
        eps = self._eps.get(norm.eps, literal(norm.eps))
        if norm.kind == "rmsnorm" or norm.weight == "one_plus" or (norm.weight == "none" and norm.bias):
            return NormCall(self._class(norm).name, (size, eps))
        extra = () if norm.bias else ("bias=False",)
        if norm.weight == "none":
            extra = ("elementwise_affine=False",)
        return NormCall("nn.LayerNorm", (size, f"eps={eps}", *extra))

    def _class(self, norm: Norm) -> NormClass:
        key = (norm.kind, norm.weight, norm.bias)
        biased = "Biased" if norm.bias else ""
        name = biased + _CONVENTIONS[norm.weight] + _STEMS[norm.kind]
        return self.classes.setdefault(key, NormClass(name, norm))
