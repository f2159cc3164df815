"""Whether the branches of a layer can join the residual stream as a spec says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from archc.parts.base import Finding
from archc.parts.norm import NormFields
from archc.parts.residual import ResidualFields
from archc.spec.checks import Sections

_BESIDE: Final = ("parallel", "parallel_separate")
_BEFORE: Final = ("pre", "sandwich", *_BESIDE)


def check_sums(branches: Sequence[Sections]) -> Iterator[tuple[int, Finding]]:
    """What contradicts itself in the branches of one kind of layer, with the branch to point at."""
    if not all("norm" in sections for sections in branches):
        return  # some norm is not well formed, and any of them says where all branches stand
    norms = [_norm(sections) for sections in branches]
    for index, (norm, sections) in enumerate(zip(norms, branches, strict=True)):
        if _residual(sections).carries == "normed" and (norm is None or norm.placement not in _BEFORE):
            message = "a normed input goes on beside the branch, and no norm stands before it"
            yield index, _finding("carries", message, "let the stream go on, or put a norm before the branch")
    if len(branches) > 1 and any(norm is not None and norm.placement in _BESIDE for norm in norms):
        yield from ((len(branches) - 1, finding) for finding in _side_by_side(branches, norms))


def _side_by_side(branches: Sequence[Sections], norms: Sequence[NormFields | None]) -> Iterator[Finding]:
    placements = {norm.placement for norm in norms if norm is not None}
    shared = placements == {"parallel"}
    if len(placements) > 1:
        message = "some branches stand side by side, others do not"
        yield Finding("E213", ("norm", "placement"), message, "give all branches the same placement")
    elif shared and len(set(norms)) > 1:
        message = "the branches share a norm, and do not state the same"
        yield Finding("E213", ("norm",), message, "state the same, or placement: parallel_separate")
    residual, *others = [_residual(sections) for sections in branches]
    if any(other != residual for other in others):
        message = "branches side by side are added together, and by different rules"
        yield Finding("E213", ("residual",), message, "give all branches the same residual")
    elif residual.learned != "none" or residual.by_depth:
        name = "by_depth" if residual.by_depth else "learned"
        message = f"residual.{name} weighs the stream at every branch, and side by side there is one sum for all"
        yield _finding(name, message, "leave it out, or let one branch follow the other")
    elif residual.carries == "normed" and not shared:
        message = "the normed input goes on beside the branches, and each has another"
        yield _finding("carries", message, "let the stream go on, or let the branches share a norm")


def _norm(sections: Sections) -> NormFields | None:
    norm = sections["norm"]
    return norm if isinstance(norm, NormFields) else None


def _residual(sections: Sections) -> ResidualFields:
    residual = sections.get("residual")
    return residual if isinstance(residual, ResidualFields) else ResidualFields()


def _finding(field: str, message: str, mend: str) -> Finding:
    return Finding("E213", ("residual", field), message, mend)
