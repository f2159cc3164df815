"""Plain layers: what codegen can print, and the refusal of everything else, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archc.architecture.model import Architecture, Layer
from archc.errors import ArchcError
from archc.families import family
from archc.parts.base import FfnPart, MixerPart
from archc.parts.residual import Residual


class UngeneratedError(ArchcError):
    """The language can say and size the design, and codegen cannot print it yet (exit code 1)."""

    exit_code = 1


def mixer_of(layer: Layer) -> MixerPart:
    """The mixer of a plain layer."""
    assert layer.mixer is not None  # E210
    return layer.mixer


def ffn_of(layer: Layer) -> FfnPart:
    """The feed-forward of a plain layer."""
    assert layer.ffn is not None  # E210
    return layer.ffn


def residual_of(layer: Layer) -> Residual:
    """How both branches of a plain layer join the residual stream."""
    return layer.branches[0].residual


def refuse_ungenerated(architecture: Architecture) -> None:
    """Raises UngeneratedError with everything in an Architecture that codegen cannot print."""
    found = list(dict.fromkeys(_ungenerated(architecture)))
    if found:
        raise UngeneratedError(
            f"E210: {architecture.name} cannot be generated yet, because of {'; '.join(found)}",
            "`archc report` still sizes it; see `archc explain E210`",
        )


def _ungenerated(architecture: Architecture) -> Iterator[str]:
    for layer in dict.fromkeys(architecture.layers):
        yield from _in_layer(layer)
    yield from architecture.embedding.ungenerated()
    if architecture.streams is not None:
        yield f"streams.kind: {architecture.streams.kind}"
    if architecture.passes is not None:
        yield f"passes.kind: {architecture.passes.kind}"
    yield from architecture.head.ungenerated()
    if architecture.final_norm is None:
        yield "final_norm: false"
    else:
        yield from architecture.final_norm.ungenerated()
    if architecture.family is not None and not family(architecture.family).rules:
        yield f"family: {architecture.family}, which has no rules for stored tensors"
    for text in architecture.undeclared:
        yield f"undeclared: {text}"


def _in_layer(layer: Layer) -> Iterator[str]:
    """Parts and fields of a layer, and where its branches are not one attention, then one feed-forward."""
    for branch in layer.branches:
        for slot, part in branch.parts:
            if part.partial is None:
                yield f"{slot.partition('_')[0]}.kind: {part.kind}"
            yield from part.ungenerated()
        for norm in (branch.pre_norm, branch.post_norm):
            yield from norm.ungenerated() if norm else ()
        yield from branch.residual.ungenerated()
        if branch.norm_on_sum:
            yield "norm.placement: post_sum"
        if branch.shared is not None:
            yield "block.shared"
        if branch.reads_embedding or branch.reads_last_input:
            yield "block.reads"
    yield from layer.shared_norm.ungenerated() if layer.shared_norm else ()
    yield from _in_shape([tuple(slot for slot, _ in branch.parts) for branch in layer.branches])
    if len({(branch.pre_norm, branch.post_norm, branch.residual) for branch in layer.branches}) > 1:
        yield "block: branches with norms or residuals of their own"
    if layer.shared_norm is None:
        if layer.parallel:
            yield "norm.placement: parallel_separate"
        elif not all(branch.pre_norm or branch.post_norm for branch in layer.branches):
            yield "norm: null"


def _in_shape(branches: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """What is missing or too much in a layer whose branches have these slots."""
    slots = [slot for branch in branches for slot in branch]
    missing = [name for name in ("attention", "ffn") if name not in slots]
    if missing:
        # A mixer in place of attention is named as a part.
        yield from (f"{name}: null" for name in missing if name == "ffn" or "mixer" not in slots)
    elif slots != ["attention", "ffn"]:
        yield f"block: {', '.join(slots)} in one layer"
    elif len(branches) == 1:
        yield "block: attention and ffn in one branch"
