"""Plain layers: what codegen can print, and the refusal of everything else, by name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from archc.architecture.model import Architecture, Branch, Layer
from archc.errors import ArchcError
from archc.families import family
from archc.parts.base import FfnPart, MixerPart


class UngeneratedError(ArchcError):
    """The language can say and size the design, and codegen cannot print it yet, for these reasons (exit code 1)."""

    exit_code = 1

    def __init__(self, name: str, reasons: Sequence[str]) -> None:
        super().__init__(
            f"E210: {name} cannot be generated yet, because of {'; '.join(reasons)}",
            "`archc report` still sizes it, and a port of yours can be validated (--port); see `archc explain E210`",
        )
        self.reasons = tuple(reasons)


def refuse_ungenerated(architecture: Architecture) -> None:
    """Raises UngeneratedError with everything in an Architecture that codegen cannot print."""
    found = list(dict.fromkeys(_ungenerated(architecture)))
    if found:
        raise UngeneratedError(architecture.name, found)


def _ungenerated(architecture: Architecture) -> Iterator[str]:
    for layer in dict.fromkeys(architecture.layers):
        yield from _in_layer(layer)
    yield from _between_layers(architecture)
    yield from architecture.embedding.ungenerated()
    if architecture.streams is not None:
        yield f"streams.kind: {architecture.streams.kind}"
    if architecture.passes is not None:
        yield f"passes.kind: {architecture.passes.kind}"
    yield from architecture.head.ungenerated()
    yield from architecture.final_norm.ungenerated() if architecture.final_norm else ()
    if architecture.family is not None and not family(architecture.family).rules:
        yield f"family: {architecture.family}, which has no rules for stored tensors"
    for text in architecture.undeclared:
        yield f"undeclared: {text}"


def _in_layer(layer: Layer) -> Iterator[str]:
    """Parts and fields of a layer, and where it has more than one mixer and one feed-forward, each by itself."""
    for branch in layer.branches:
        yield from _in_branch(branch)
    yield from layer.shared_norm.ungenerated() if layer.shared_norm else ()
    slots = [slot for branch in layer.branches for slot, _ in branch.parts]
    for kind in (MixerPart, FfnPart):
        if sum(isinstance(part, kind) for part in layer.parts()) > 1:
            yield f"block: {', '.join(slots)} in one layer"
            return
    if len(layer.branches) < len(slots):
        yield f"block: {' and '.join(slots)} in one branch"
    for branch in layer.branches:
        if branch.residual.float32 and (branch.norm_on_sum or branch.residual.carries == "normed"):
            yield "residual.float32 of a stream that norms replace"
    *earlier, last = layer.branches
    if not last.residual.layer_scalar and any(branch.residual.layer_scalar for branch in earlier):
        yield "residual.layer_scalar of a branch that is not the last"


def _in_branch(branch: Branch) -> Iterator[str]:
    for slot, part in branch.parts:
        if part.partial is None:
            yield f"{slot.partition('_')[0]}.kind: {part.kind}"
        yield from part.ungenerated()
    for norm in (branch.pre_norm, branch.post_norm):
        yield from norm.ungenerated() if norm else ()
    yield from branch.residual.ungenerated()
    if branch.shared is not None:
        yield "block.shared"
    if branch.reads_embedding or branch.reads_last_input:
        yield "block.reads"


def _between_layers(architecture: Architecture) -> Iterator[str]:
    """What holds of all layers together."""
    if not any(layer.mixer for layer in architecture.layers):
        yield "attention: null in all layers"
    residuals = {branch.residual for layer in architecture.layers for branch in layer.branches}
    if len({residual.float32 for residual in residuals}) > 1:
        yield "residual.float32 of some branches alone"
    counts = {len(layer.branches) for layer in architecture.layers}
    if len(counts) > 1 and any(residual.by_depth for residual in residuals):
        yield "residual.by_depth of layers with unequal numbers of branches"
