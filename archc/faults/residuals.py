"""Faults of the residual stream: multipliers left out, and what goes on beside a branch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from archc.architecture.model import Layer
from archc.faults.base import Fault
from archc.faults.sites import field_slips, layers_whole, residuals, slips
from archc.parts.residual import Residual


def _branches(residual: Residual) -> Iterable[float]:
    return (1.0, residual.branch**2, 1 / residual.branch) if residual.branch != 1 else ()


def _other_carries(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """What goes on differs where a branch has a norm before it."""
    normed = layer.shared_norm is not None or all(branch.pre_norm for branch in layer.branches)
    carries = {branch.residual.carries for branch in layer.branches}
    if normed and len(carries) == 1:
        [own] = carries
        other = "normed" if own == "stream" else "stream"
        yield other, residuals(layer, lambda residual: replace(residual, carries=other))


FAULTS = (
    Fault(
        id="residual.branch",
        field="residual.branch",
        kind="architecture",
        wrong="What a branch gives is added without its multiplier, or with its square or inverse.",
        when="residual rules with a multiplier of branches",
        mend="multiply what attention and feed-forward give before it is added",
        slips=field_slips(residuals, "branch", _branches),
        seen=("OpenNMT/CTranslate2#1882",),
    ),
    Fault(
        id="residual.by_depth",
        field="residual.by_depth",
        kind="architecture",
        wrong="Stream and branch are added as they are, though their weights go by depth.",
        when="residual rules that go by depth",
        mend="multiply the stream by sqrt((n - 1) / n) and the branch by 1 / sqrt(n)",
        slips=field_slips(residuals, "by_depth", lambda residual: (False,)),
    ),
    Fault(
        id="residual.learned",
        field="residual.learned",
        kind="architecture",
        wrong="The learned factors of stream and branch are left out.",
        when="residual rules with learned factors",
        mend="multiply stream and branch by what the checkpoint holds for them",
        slips=field_slips(residuals, "learned", lambda residual: ("none",)),
    ),
    Fault(
        id="residual.layer_scalar",
        field="residual.layer_scalar",
        kind="architecture",
        wrong="The stored number of each layer does not multiply the stream behind it.",
        when="layers with a stored scalar",
        mend="multiply the stream at the end of each layer by its scalar",
        slips=field_slips(residuals, "layer_scalar", lambda residual: (False,)),
    ),
    Fault(
        id="residual.carries",
        field="residual.carries",
        kind="architecture",
        wrong="The normed input goes on beside a branch where the stream should, or the reverse.",
        when="branches with a norm before them",
        mend="add the branch to what the reference adds it to: the stream as it was before the norm, in most families",
        slips=slips(layers_whole, lambda layer: layer.branches[0].residual.carries, _other_carries),
    ),
)
