"""Faults of both ends and of the stack: embedding, head, logits, and which layers there are."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import replace as replaced
from typing import Any

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Edit, Fault, Faulty, Layers, Slip
from archc.faults.sites import attentions, edit_slips, held, model_slips, word

_Wrong = Iterator[tuple[object, str, Architecture]]


def _embedded(architecture: Architecture, **changes: Any) -> Architecture:
    return replace(architecture, embedding=replace(architecture.embedding, **changes))


def _headed(architecture: Architecture, **changes: Any) -> Architecture:
    return replace(architecture, head=replace(architecture.head, **changes))


def _bfloat16(value: float) -> float:
    """The nearest number with eight bits of mantissa, ties to even."""
    (bits,) = struct.unpack("<I", struct.pack("<f", value))
    bits += 0x7FFF + (bits >> 16 & 1)
    (rounded,) = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))
    return float(rounded)


def _embedding_scales(architecture: Architecture) -> _Wrong:
    scale = architecture.embedding.scale
    if scale is None:
        return
    yield scale, "null", _embedded(architecture, scale=None, scale_rounded=False)
    yield scale, f"twice, {word(scale**2)}", _embedded(architecture, scale=scale**2)
    rounded = _bfloat16(scale)
    yield scale, f"rounded to bfloat16, {word(rounded)}", _embedded(architecture, scale=rounded)


def _tied(architecture: Architecture) -> _Wrong:
    yield False, "true", _headed(architecture, tied=True)


def _untied(architecture: Architecture) -> _Wrong:
    yield True, "false", _headed(architecture, tied=False)


def _logit_scales(architecture: Architecture) -> _Wrong:
    scale = architecture.head.scale
    if scale is not None:
        yield scale, "null", _headed(architecture, scale=None, scaled="logits")
        yield scale, f"its inverse, {word(1 / scale)}", _headed(architecture, scale=1 / scale)


def _uncapped(architecture: Architecture) -> _Wrong:
    yield architecture.head.softcap, "null", _headed(architecture, softcap=None)


def _headed_without_bias(architecture: Architecture) -> _Wrong:
    yield True, "false", _headed(architecture, bias=False)


def _untransformed(architecture: Architecture) -> _Wrong:
    yield "stated", "null", _headed(architecture, transform=None, transform_norm=None)


def _has_cap(architecture: Architecture) -> bool:
    return architecture.head.softcap is not None


_WRONG_CAP = (
    Edit(r"\bsoft_cap\((?=[^\n]*LOGIT_SOFTCAP\)$)", "wrong_cap("),
    Edit(
        r"^from torch import Tensor, nn$",
        "from torch import Tensor, nn\n\n\ndef wrong_cap(x: Tensor, cap: float) -> Tensor:\n"
        "    return x * torch.tanh(x / cap)",
    ),
)


def _shorter(architecture: Architecture) -> _Wrong:
    count = len(architecture.layers)
    if count > 1:
        yield count, str(count - 1), replace(architecture, layers=architecture.layers[:-1])


def _but_for_what_it_sees(layer: Layer) -> Layer:
    """A layer without window and chunk: faults of their own say that these are another layer's."""
    return replace(attentions(layer, lambda part: replace(part, window=None, chunk=None)), kind="")


def _but_for_turning(layer: Layer) -> Layer:
    """A layer without rotary positions, of which the same holds."""
    return replace(held("rope")(layer, lambda _rope: None), kind="")


def _shifted(architecture: Architecture) -> Iterator[Slip]:
    """Every layer is of the kind of its neighbour, where weights fit both."""
    layers = architecture.layers

    def moved(by: int) -> Callable[[Faulty, Layers], Faulty]:
        def change(faulty: Faulty, chosen: Layers) -> Faulty:
            found = faulty.architecture.layers
            other = tuple(
                found[(index + by) % len(found)] if chosen is None or index in chosen else layer
                for index, layer in enumerate(found)
            )
            return replaced(faulty, architecture=replace(faulty.architecture, layers=other))

        return change

    if all(len({one(layer) for layer in layers}) > 1 for one in (_but_for_what_it_sees, _but_for_turning)):
        everywhere = tuple(range(len(layers)))
        yield Slip("as declared", "one layer later", moved(-1), everywhere)
        yield Slip("as declared", "one layer earlier", moved(1), everywhere)


FAULTS = (
    Fault(
        id="embedding.scale",
        field="embedding.scale",
        kind="architecture",
        wrong="Embedded tokens are not multiplied, multiplied twice, or by a rounded number.",
        when="embeddings with a scale",
        mend="multiply once, by the number that the reference rounds or does not round",
        slips=model_slips(_embedding_scales),
        seen=("marin-community/levanter#978", "TensorAuto/OpenTau#179"),
    ),
    Fault(
        id="embedding.tied",
        field="embedding.tied",
        kind="architecture",
        wrong="The head multiplies by the embedding, though the checkpoint holds a matrix of its own.",
        when="models whose head is not the embedding",
        mend="read tie_word_embeddings from the config of the text model",
        slips=model_slips(_tied),
        seen=("huggingface/transformers#43429",),
    ),
    Fault(
        id="embedding.tied.not",
        field="embedding.tied",
        kind="architecture",
        wrong="The head waits for a matrix of its own, which no checkpoint holds.",
        when="models whose head is the embedding",
        mend="give the head the matrix of the embedding",
        slips=model_slips(_untied),
        seen=("huggingface/transformers#43429",),
        loud=True,
    ),
    Fault(
        id="logits.scale",
        field="logits.scale",
        kind="architecture",
        wrong="Logits are not scaled, or divided by what should multiply them.",
        when="logits with a scale",
        mend="multiply or divide as the reference does with the number in the config",
        slips=model_slips(_logit_scales),
        seen=("OpenNMT/CTranslate2#1882",),
    ),
    Fault(
        id="logits.softcap",
        field="logits.softcap",
        kind="architecture",
        wrong="Logits are not capped.",
        when="logits with a soft cap",
        mend="softcap·tanh(logits / softcap)",
        slips=model_slips(_uncapped),
        same_when="logits are far below the cap",
    ),
    Fault(
        id="logits.softcap.formula",
        field="logits.softcap",
        kind="architecture",
        wrong="Logits become x·tanh(x / softcap).",
        when="logits with a soft cap",
        mend="softcap·tanh(logits / softcap)",
        slips=edit_slips(_has_cap, "softcap·tanh(x / softcap)", "x·tanh(x / softcap)", *_WRONG_CAP),
        seen=("unslothai/unsloth-zoo#593",),
    ),
    Fault(
        id="logits.bias",
        field="logits.bias",
        kind="architecture",
        wrong="The stored bias of the head is not added.",
        when="heads with a bias",
        mend="add the bias to the logits",
        slips=model_slips(_headed_without_bias),
    ),
    Fault(
        id="logits.transform",
        field="logits.transform",
        kind="architecture",
        wrong="The layer between the final norm and the head is left out.",
        when="heads with a layer before them",
        mend="transform what the head reads: linear layer, activation, norm",
        slips=model_slips(_untransformed),
    ),
    Fault(
        id="layers.pattern",
        field="layers.pattern",
        kind="architecture",
        wrong="Every layer is of the kind that its neighbour should be.",
        when="models of several kinds of layer",
        mend="count layers from 0, and read the list of kinds where there is one",
        slips=_shifted,
        seen=("NVIDIA-NeMo/Megatron-Bridge#4875",),
    ),
    Fault(
        id="layers.count",
        field="layers.count",
        kind="architecture",
        wrong="The last layer is left out.",
        when="models of several layers",
        mend="run as many layers as the config states",
        slips=model_slips(_shorter),
    ),
)
