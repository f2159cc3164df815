"""Faults of attention: scale, grouping, what a query sees, and what is done to scores and outputs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Edit, Fault, Faulty, Layers, Slip
from archc.faults.sites import (
    Slips,
    attentions,
    by_layer,
    edit_slips,
    field_slips,
    held,
    latents,
    left_out,
    parts,
    slips,
    word,
)
from archc.parts.attention import Attention
from archc.parts.attention_sections import QueryScaleFields
from archc.parts.base import Part
from archc.parts.latent import LatentAttention
from archc.parts.scaling import YarnScaling


def _scales(values: Iterable[tuple[str, float]], declared: float, part: Any) -> Iterator[tuple[str, Any]]:
    """A part with other scales, those left out that are the declared one or have come before."""
    seen = [declared]
    for text, value in values:
        if not any(math.isclose(value, one, rel_tol=1e-6) for one in seen):
            seen.append(value)
            yield text, replace(part, scale=value)


def _other_scales(part: Attention) -> Iterator[tuple[str, Attention]]:
    values = (
        ("1", 1.0),
        ("head_dim^-0.5", part.head_dim**-0.5),
        ("(hidden_size / heads)^-0.5", (part.hidden_size / part.heads) ** -0.5),
        ("head_dim^-1", 1 / part.head_dim),
        ("scale^0.5", part.scale**0.5),
        ("scale^2", part.scale**2),
    )
    yield from _scales(values, part.scale, part)


def _other_latent_scales(part: LatentAttention) -> Iterator[tuple[str, LatentAttention]]:
    """Without the temperature of yarn or with another form of it, and of other widths."""
    plain = part.head_dim**-0.5
    rule = part.rope.scaling if part.rope else None
    values = [("(nope_dim + rope_dim)^-0.5", plain)]
    if isinstance(rule, YarnScaling):
        forms = {
            "mscale_all_dim": 0.1 * (rule.mscale_all_dim or 0.0) * math.log(rule.factor) + 1,
            "mscale": 0.1 * (rule.mscale or 1.0) * math.log(rule.factor) + 1,
        }
        for name, form in forms.items():
            values += [
                (f"(nope_dim + rope_dim)^-0.5 times the square of the form with {name}", plain * form * form),
                (f"(nope_dim + rope_dim)^-0.5 times the form with {name}", plain * form),
            ]
    values += [("nope_dim^-0.5", part.fields.nope_dim**-0.5), ("value_dim^-0.5", part.fields.value_dim**-0.5)]
    yield from _scales((*values, ("1", 1.0)), part.scale, part)


def _other_grouping(part: Attention) -> Iterable[str]:
    """Where every head has keys of its own, or all share one, groupings agree."""
    return ("interleaved", "tiled") if 1 < part.kv_heads < part.heads else ()


def _fewer_biases(part: Any) -> Iterator[tuple[str, Any]]:
    """Without any bias, or without one of them, but for those that change nothing."""
    biased = getattr(part, "biased", ())
    idle = getattr(part, "idle_biases", ())
    if not biased:
        return
    for dropped in (biased, *((one,) for one in biased if one not in idle)) if len(biased) > 1 else (biased,):
        left = tuple(one for one in biased if one not in dropped)
        if set(dropped) - set(idle):
            yield word(left) if left else "none", replace(part, biased=left)


# What a query sees.


def _bounds(name: str) -> Slips:
    """The slips of a window or a chunk: one more, one less, none."""

    def wrong(part: Attention) -> Iterator[tuple[str, Attention]]:
        size = getattr(part, name)
        if size is not None:
            sizes = (None, size + 1, *([size - 1] if size > 1 else []))
            yield from ((word(one), replace(part, **{name: one})) for one in sizes)

    return slips(attentions, lambda part: getattr(part, name), wrong)


def _chunk_for_window(part: Attention) -> Iterator[tuple[str, Attention]]:
    if part.chunk is not None and part.window is None:
        yield f"a window of {part.chunk}", replace(part, chunk=None, window=part.chunk)


def _in_other_layers(name: str) -> Slips:
    """The slips by which other layers than declared have a window, or a chunk."""

    def find(architecture: Architecture) -> Iterator[Slip]:
        own: list[int | None] = []
        for layer in architecture.layers:
            mixers = [mixer for mixer in layer.mixers() if isinstance(mixer, Attention)]
            own.append(getattr(mixers[0], name) if mixers else None)
        sizes = [size for size in dict.fromkeys(own) if size is not None]
        if not sizes or len(set(own)) == 1:
            return
        size = sizes[0]
        found: dict[str, list[int | None]] = {
            f"{size} in all layers": [size] * len(own),
            "exchanged": [size if one is None else None for one in own],
            "one layer later": [own[-1], *own[:-1]],
            "one layer earlier": [*own[1:], own[0]],
        }
        seen = [own]
        for behaves_as, given in found.items():
            if given not in seen:
                seen.append(given)
                layers = tuple(index for index, one in enumerate(own) if one != given[index])
                yield Slip("in layers of its kind", behaves_as, _given(name, given), layers)

    return find


def _given(name: str, sizes: Sequence[int | None]) -> Callable[[Faulty, Layers], Faulty]:
    def in_layer(index: int, layer: Layer) -> Layer:
        return attentions(layer, lambda part: replace(part, **{name: sizes[index]}))

    return lambda faulty, layers: by_layer(faulty, layers, in_layer)


# Queries, scores and outputs.


def _growth(growth: QueryScaleFields) -> str:
    return f"first {growth.first}, length {growth.length}"


def _other_growths(growth: QueryScaleFields) -> Iterator[tuple[str, Any]]:
    yield "null", None
    yield f"first {1 - growth.first}", replace(growth, first=1 - growth.first)
    yield f"length {growth.length + 1}", replace(growth, length=growth.length + 1)


def _other_score(gate: Any) -> Iterable[str]:
    del gate
    return ("sigmoid", "softplus")


def _ungated(layer: Layer, change: Callable[[Any], Any]) -> Layer:
    """The gates of heads, of plain and of latent attention."""

    def inside(part: Part) -> Part:
        if isinstance(part, Attention) and part.gate is not None:
            return replace(part, gate=change(part.gate))
        if isinstance(part, LatentAttention) and part.fields.gate is not None:
            return replace(part, fields=replace(part.fields, gate=change(part.fields.gate)))
        return part

    return parts(layer, inside)


def _capped(architecture: Architecture) -> bool:
    return any(isinstance(part, Attention) and part.softcap is not None for part in architecture.parts())


def _undifferential(part: Attention) -> Iterator[tuple[str, Attention]]:
    if type(part) is not Attention:
        yield "false", Attention(**{name: getattr(part, name) for name in Attention.__struct_fields__})


def _other_head_dims(part: Attention) -> Iterator[tuple[str, Attention]]:
    """hidden_size / heads, where head_dim is a number of its own."""
    size = part.hidden_size // part.heads
    if size != part.head_dim and part.value_dim == part.head_dim:
        rope = part.rope and replace(part.rope, head_dim=size, rotary_dim=size - size % 2)
        q, k = (norm and replace(norm, size=size) for norm in (part.q_norm, part.k_norm))
        yield str(size), replace(part, head_dim=size, value_dim=size, rope=rope, q_norm=q, k_norm=k)


_WRONG_CAP = Edit(
    r"scores_BHTS = soft_cap\(scores_BHTS, (\w+)\)", r"scores_BHTS = scores_BHTS * torch.tanh(scores_BHTS / \1)"
)

FAULTS = (
    Fault(
        id="attention.grouping",
        field="attention.grouping",
        kind="architecture",
        wrong="Query heads look at the keys of other groups: tiled where neighbours share, or the reverse.",
        when="more than one key/value head, and fewer than query heads",
        mend="repeat each key/value head for its group (repeat_interleave), and do not tile all of them",
        slips=field_slips(attentions, "grouping", _other_grouping),
        seen=("onnx/onnx#7274",),
    ),
    Fault(
        id="attention.scale",
        field="attention.scale",
        kind="architecture",
        wrong="Query-key products are multiplied by another number than declared.",
        when="softmax attention",
        mend="take the scale from the config where it has one; else head_dim^-0.5, head_dim being a number of its own",
        slips=slips(attentions, lambda part: part.scale, _other_scales),
        seen=("mlc-ai/mlc-llm#3426",),
        same_when="the scale is folded into the weights of queries",
    ),
    Fault(
        id="attention.scale.latent",
        field="attention.scale",
        kind="architecture",
        wrong="Scores of latent attention leave out the square of yarn's mscale_all_dim, or have another form of it.",
        when="latent attention",
        mend="multiply (nope_dim + rope_dim)^-0.5 by the square of 0.1·mscale_all_dim·ln(factor) + 1, beside what "
        "cosines and sines are multiplied by",
        slips=slips(latents, lambda part: part.scale, _other_latent_scales),
        seen=("onnxruntime/mobius#548", "NVIDIA/Megatron-LM#1429", "vllm-project/vllm#57563"),
    ),
    Fault(
        id="attention.window",
        field="attention.window",
        kind="architecture",
        wrong="A query sees one position more or less than declared, or all of them.",
        when="attention with a window",
        mend="count the query's own position among those of the window, once",
        slips=_bounds("window"),
        seen=(
            "NVIDIA-NeMo/Megatron-Bridge#2656",
            "vllm-project/vllm-metal#282",
            "huggingface/transformers#35691",
        ),
        same_when="no input is longer than the window",
    ),
    Fault(
        id="attention.window.layers",
        field="attention.window",
        kind="architecture",
        wrong="Other layers than declared have a window.",
        when="models of which some layers have a window",
        mend="count layers from 0, and read the list of kinds where there is one",
        slips=_in_other_layers("window"),
        seen=("huggingface/transformers#31775", "NVIDIA-NeMo/Megatron-Bridge#4875"),
        same_when="no input is longer than the window",
    ),
    Fault(
        id="attention.chunk",
        field="attention.chunk",
        kind="architecture",
        wrong="Chunks are one position longer or shorter than declared, or there are none.",
        when="attention within chunks",
        mend="start a new chunk at every multiple of its length, counted from the first token",
        slips=_bounds("chunk"),
        same_when="no input is longer than a chunk",
    ),
    Fault(
        id="attention.chunk.window",
        field="attention.chunk",
        kind="architecture",
        wrong="A window slides where chunks are declared.",
        when="attention within chunks",
        mend="a query sees its own chunk alone: the first token of a chunk sees nothing but itself",
        slips=slips(attentions, lambda part: part.chunk, _chunk_for_window),
    ),
    Fault(
        id="attention.chunk.layers",
        field="attention.chunk",
        kind="architecture",
        wrong="Other layers than declared attend within chunks.",
        when="models of which some layers attend within chunks",
        mend="count layers from 0, and read the list of kinds where there is one",
        slips=_in_other_layers("chunk"),
    ),
    Fault(
        id="attention.bias",
        field="attention.bias",
        kind="architecture",
        wrong="The stored biases of some projections are not added.",
        when="projections with biases",
        mend="add the bias of every projection that stores one",
        slips=slips(parts, lambda part: getattr(part, "biased", ()), _fewer_biases),
        same_when="softmax alone follows the bias of keys",
    ),
    Fault(
        id="attention.softcap",
        field="attention.softcap",
        kind="architecture",
        wrong="Scores are not capped.",
        when="attention with a soft cap",
        mend="softcap·tanh(scores / softcap), before the mask",
        slips=left_out(attentions, "softcap", behaves_as="null"),
        same_when="scores are far below the cap",
    ),
    Fault(
        id="attention.softcap.formula",
        field="attention.softcap",
        kind="architecture",
        wrong="Scores become x·tanh(x / softcap).",
        when="attention with a soft cap",
        mend="softcap·tanh(scores / softcap), before the mask",
        slips=edit_slips(_capped, "softcap·tanh(x / softcap)", "x·tanh(x / softcap)", _WRONG_CAP),
        seen=("unslothai/unsloth-zoo#593",),
    ),
    Fault(
        id="attention.sinks",
        field="attention.sinks",
        kind="architecture",
        wrong="The learned sinks take no weight from the keys.",
        when="attention with sinks",
        mend="hand the sinks to the softmax as one more column without a value",
        slips=slips(attentions, lambda part: part.sinks, lambda part: [("none", replace(part, sinks="none"))]),
        seen=("vllm-project/vllm#52156",),
    ),
    Fault(
        id="attention.gate",
        field="attention.gate",
        kind="architecture",
        wrong="The output of the heads is not gated.",
        when="attention with gates of heads",
        mend="multiply the output of the heads by the gate before the output projection",
        slips=slips(_ungated, lambda gate: gate.score, lambda _gate: [("null", None)]),
    ),
    Fault(
        id="attention.gate.score",
        field="attention.gate.score",
        kind="architecture",
        wrong="The gate of the heads has another function than declared.",
        when="attention with gates of heads",
        mend="read which function the gate has in this family",
        slips=field_slips(_ungated, "score", _other_score),
        seen=("Avarok-Cybersecurity/atlas#754",),
    ),
    Fault(
        id="attention.clip",
        field="attention.clip",
        kind="architecture",
        wrong="Queries, keys and values are not clamped.",
        when="attention that clamps its projections",
        mend="clamp all three, before they turn",
        slips=left_out(attentions, "clip", behaves_as="null"),
        same_when="nothing reaches the limit",
    ),
    Fault(
        id="attention.value_scale",
        field="attention.value_scale",
        kind="architecture",
        wrong="Values are not multiplied.",
        when="attention that scales its values",
        mend="multiply values by their scale",
        slips=left_out(attentions, "value_scale", behaves_as="null"),
    ),
    Fault(
        id="attention.query_scale",
        field="attention.query_scale",
        kind="architecture",
        wrong="Queries do not grow with their position, or from another position on.",
        when="attention whose queries grow",
        mend="follow the reference's formula, and the number that it gives the first position",
        slips=slips(held("query_scale"), _growth, _other_growths),
    ),
    Fault(
        id="attention.dynamic_mask",
        field="attention.dynamic_mask",
        kind="architecture",
        wrong="All keys are seen alike: values have no say in which count.",
        when="attention with a dynamic mask",
        mend="add what values project to, and keep the keys with the largest of it",
        slips=left_out(attentions, "dynamic_mask", behaves_as="null"),
    ),
    Fault(
        id="attention.differential",
        field="attention.differential",
        kind="architecture",
        wrong="The second half of the heads is not taken from the first.",
        when="differential attention",
        mend="subtract lambda times the second map, norm the difference, and multiply it",
        slips=slips(attentions, lambda _part: "true", _undifferential),
    ),
    Fault(
        id="attention.head_dim",
        field="attention.head_dim",
        kind="architecture",
        wrong="Heads have hidden_size / heads channels.",
        when="models whose head_dim is a number of its own",
        mend="read head_dim from the config",
        slips=slips(attentions, lambda part: part.head_dim, _other_head_dims),
        seen=("LMCache/LMCache#688",),
        loud=True,
    ),
)
