"""Faults of feed-forwards: activation, gate, limits, biases and factors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Edit, Fault, Faulty, Layers, Slip, Weights
from archc.faults.sites import edit_slips, filled, in_layers, parts, places, slips
from archc.parts.attention import Attention
from archc.parts.base import Part
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward
from archc.parts.glu import GluFields, stated
from archc.parts.latent import LatentAttention

_OTHERS = {
    "silu": ("gelu", "gelu_tanh", "relu"),
    "gelu": ("gelu_tanh", "relu", "silu"),
    "gelu_tanh": ("gelu", "relu", "silu"),
    "relu": ("relu2", "gelu", "silu"),
    "relu2": ("relu", "silu", "gelu"),
}


def _other_activations(part: Part) -> Iterator[tuple[str, Part]]:
    if not isinstance(part, FeedForward | Experts) or _needs_silu(part.glu):
        return
    for other in _OTHERS.get(part.activation, ()):
        found: Part = replace(part, activation=other)
        if isinstance(found, Experts) and found.shared:
            found = replace(found, shared=replace(found.shared, activation=other))
        yield other, found


def _needs_silu(glu: GluFields | None) -> bool:
    return glu is not None and (glu.slope != 1 or glu.gate_softcap is not None)


def _ordinary(architecture: Architecture) -> bool:
    """Whether no other part has an activation."""
    return all(isinstance(part, FeedForward | Experts | Attention | LatentAttention) for part in architecture.parts())


def _has_gelu(architecture: Architecture) -> bool:
    return _ordinary(architecture) and any(_activation(part).startswith("gelu") for part in architecture.parts())


def _activation(part: Part) -> str:
    return part.activation if isinstance(part, FeedForward | Experts) else ""


def _activated(architecture: Architecture) -> bool:
    """Whether there is an activation between two matrices that could be left out."""
    return _ordinary(architecture) and any(_activation(part) in _OTHERS for part in architecture.parts())


_QUICK = (
    Edit(r"F\.gelu\(", "quick_gelu("),
    Edit(
        r"^from torch import Tensor, nn$",
        "from torch import Tensor, nn\n\n\ndef quick_gelu(x: Tensor, approximate: str = '') -> Tensor:\n"
        "    return x * torch.sigmoid(1.702 * x)",
    ),
)
_NO_ACTIVATION = (
    Edit(r"F\.(silu|gelu|relu)\(", "unchanged("),
    Edit(
        r"^from torch import Tensor, nn$",
        "from torch import Tensor, nn\n\n\ndef unchanged(x: Tensor, approximate: str = '') -> Tensor:\n    return x",
    ),
)


def _ungated(architecture: Architecture) -> Iterator[Slip]:
    """Without the gate, or without the half that it multiplies."""
    gated = tuple(
        dict.fromkeys(
            index
            for index, _, part in places(architecture)
            if isinstance(part, FeedForward | Experts) and part.gated and not _needs_silu(part.glu)
        )
    )

    def plain(part: Part) -> Part:
        if isinstance(part, FeedForward):
            return replace(part, gated=False, glu=None)
        if isinstance(part, Experts):
            shared = part.shared and replace(part.shared, gated=False, glu=None)
            return replace(part, gated=False, glu=None, shared=shared)
        return part

    def without_gate(faulty: Faulty, layers: Layers) -> Faulty:
        return in_layers(faulty, layers, lambda layer: parts(layer, plain))

    def without_up(faulty: Faulty, layers: Layers) -> Faulty:
        owners = [
            re.escape(prefix)
            for _, prefix, part in places(faulty.architecture, layers)
            if isinstance(part, FeedForward | Experts)
        ]
        up = re.compile(rf"^({'|'.join(owners)})(\.shared)?\.up(_bias|\.weight|\.bias)?$")

        def values(weights: Weights) -> Weights:
            names = [name for name in weights if up.match(name)]
            return {name: weights[re.sub(r"\.up(?=$|_bias|\.)", ".gate", name)] for name in names}

        return filled(without_gate(faulty, layers), values)

    if gated:
        yield Slip("gated", "mlp", without_gate, gated)
        yield Slip("gated", "mlp, made of the gate", without_up, gated)


# Limits and shifts around the product.


def _glus(layer: Layer, change: Callable[[GluFields], GluFields]) -> Layer:
    def inside(part: Part) -> Part:
        if isinstance(part, FeedForward) and part.glu:
            return replace(part, glu=stated(change(part.glu)))
        if isinstance(part, Experts):
            shared = part.shared
            if shared and shared.glu:
                shared = replace(shared, glu=stated(change(shared.glu)))
            return replace(part, shared=shared, glu=stated(change(part.glu)) if part.glu else None)
        return part

    return parts(layer, inside)


def _unlimited(glu: GluFields) -> Iterator[tuple[str, GluFields]]:
    yield "null", replace(glu, limit=None, limited="before_activation")


def _limited_elsewhere(glu: GluFields) -> Iterator[tuple[str, GluFields]]:
    if glu.limit is not None:
        other = "after_activation" if glu.limited == "before_activation" else "before_activation"
        yield other, replace(glu, limited=other)


def _glu(name: str, value: float | None, behaves_as: str) -> Any:
    return slips(_glus, lambda glu: getattr(glu, name), lambda glu: [(behaves_as, replace(glu, **{name: value}))])


# Biases.


def _biases_of(part: Part) -> tuple[str, ...]:
    """The tensors of a part's biases, each under the name of its matrix."""
    if isinstance(part, FeedForward) and part.bias:
        return ("gate.bias", "up.bias", "down.bias") if part.gated else ("up.bias", "down.bias")
    if isinstance(part, Experts) and part.bias == "experts":
        return ("gate_bias", "up_bias", "down_bias") if part.gated else ("up_bias", "down_bias")
    return ("bias",) if isinstance(part, Experts) and part.bias == "sum" else ()


def _fewer_biases(architecture: Architecture) -> Iterator[Slip]:
    """Without any of the biases, or without those of one matrix."""
    found: dict[str, list[int]] = {}
    for index, _, part in places(architecture):
        for tensor in _biases_of(part):
            found.setdefault(re.split(r"[._]", tensor)[0], []).append(index)
    if not found:
        return
    everywhere = sorted({index for layers in found.values() for index in layers})
    yield Slip("true", "false", _zeroed(""), tuple(everywhere))
    for matrix, layers in found.items() if len(found) > 1 else ():
        yield Slip("true", f"false for {matrix}", _zeroed(matrix), tuple(dict.fromkeys(layers)))


def _zeroed(matrix: str) -> Callable[[Faulty, Layers], Faulty]:
    def change(faulty: Faulty, layers: Layers) -> Faulty:
        names = [
            f"{prefix}.{tensor}"
            for _, prefix, part in places(faulty.architecture, layers)
            for tensor in _biases_of(part)
            if tensor.startswith(matrix)
        ]
        return filled(faulty, lambda weights: {name: weights[name] * 0 for name in names})

    return change


FAULTS = (
    Fault(
        id="ffn.activation",
        field="ffn.activation",
        kind="architecture",
        wrong="The feed-forwards have another activation than declared.",
        when="feed-forwards",
        mend="read the activation that the reference really uses: some ignore hidden_act for another key",
        slips=slips(parts, _activation, _other_activations),
        seen=("huggingface/transformers#29402", "microsoft/BitNet#602"),
    ),
    Fault(
        id="ffn.activation.quick",
        field="ffn.activation",
        kind="architecture",
        wrong="gelu is approximated by x·sigmoid(1.702·x).",
        when="feed-forwards with gelu",
        mend="use the exact form, or the one with tanh where it is declared",
        slips=edit_slips(_has_gelu, "gelu", "x·sigmoid(1.702·x)", *_QUICK),
    ),
    Fault(
        id="ffn.activation.missing",
        field="ffn.activation",
        kind="architecture",
        wrong="There is no activation between the matrices.",
        when="feed-forwards",
        mend="activate the gate, or what the first matrix gives where there is no gate",
        slips=edit_slips(_activated, "stated", "x", *_NO_ACTIVATION),
    ),
    Fault(
        id="ffn.kind",
        field="ffn.kind",
        kind="architecture",
        wrong="One of the two halves of a gated feed-forward is left out.",
        when="gated feed-forwards and experts",
        mend="multiply the activated gate by the other half",
        slips=_ungated,
    ),
    Fault(
        id="ffn.glu.limit",
        field="ffn.glu.limit",
        kind="architecture",
        wrong="Gate and product are not limited.",
        when="gated feed-forwards with a limit",
        mend="the gate is at most limit, the other half lies between -limit and limit",
        slips=slips(_glus, lambda glu: glu.limit, _unlimited),
        seen=("lightseekorg/tokenspeed#1647",),
        same_when="nothing reaches the limit",
    ),
    Fault(
        id="ffn.glu.limited",
        field="ffn.glu.limited",
        kind="architecture",
        wrong="The limit holds for what is activated of the gate where it should for the gate, or the reverse.",
        when="gated feed-forwards with a limit",
        mend="clamp before the activation, or after it, as the reference does",
        slips=slips(_glus, lambda glu: glu.limited, _limited_elsewhere),
        same_when="nothing reaches the limit",
    ),
    Fault(
        id="ffn.glu.slope",
        field="ffn.glu.slope",
        kind="architecture",
        wrong="The gate is activated by plain silu.",
        when="gated feed-forwards with a slope",
        mend="gate·sigmoid(slope·gate)",
        slips=_glu("slope", 1.0, "1"),
    ),
    Fault(
        id="ffn.glu.up_shift",
        field="ffn.glu.up_shift",
        kind="architecture",
        wrong="The half that the gate multiplies is not shifted.",
        when="gated feed-forwards with a shift",
        mend="multiply the activated gate by (up + up_shift)",
        slips=_glu("up_shift", 0.0, "0"),
    ),
    Fault(
        id="ffn.bias",
        field="ffn.bias",
        kind="architecture",
        wrong="The stored biases of feed-forwards are not added, or those of one matrix are not.",
        when="feed-forwards and experts with biases",
        mend="add the bias of every matrix that stores one",
        slips=_fewer_biases,
    ),
)
