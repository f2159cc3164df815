"""What happens around the product of a gated feed-forward: limits, a slope of the gate, a shift of the other half."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Fields, Finding, Positive


class GluFields(Fields, frozen=True, kw_only=True):
    """`ffn.glu`: activation(gate) · up becomes, for silu, gate·sigmoid(slope·gate) · (up + up_shift), both limited.

    Limits come first (that of the gate may wait for its activation), then sparsity and soft caps, then the shift.
    """

    limit: Annotated[
        Positive | None, Meta(description="The gate is at most this, the other half lies between minus and plus this.")
    ] = None
    limited: Annotated[
        Literal["before_activation", "after_activation"],
        Meta(description="Whether the limit holds for the gate, or for what is activated of it."),
    ] = "before_activation"
    slope: Annotated[Positive, Meta(description="Multiplies the gate inside the sigmoid of silu.")] = 1.0
    sparsity: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Meta(
            description="Share of the gates that is cut off before the activation, were they normally distributed: a "
            "gate loses mean + quantile · standard deviation of all, and stays at or above 0."
        ),
    ] = None
    gate_softcap: Annotated[
        Positive | None,
        Meta(description="In gate·sigmoid(gate) of silu, the first gate becomes softcap·tanh(gate / softcap)."),
    ] = None
    up_softcap: Annotated[Positive | None, Meta(description="The other half becomes softcap·tanh(up / softcap).")] = (
        None
    )
    up_shift: Annotated[float, Meta(description="Added to the half that the activated gate multiplies.")] = 0.0
    float32: Annotated[
        bool, Meta(description="Whether all of this is worked out in float32, and only the product is rounded.")
    ] = False

    def check_half(self, path: tuple[str, ...], activation: str, gated: bool) -> Iterator[Finding]:
        """There is a gate, what is said of silu is said of silu, and what is said of a limit has one."""
        mend = "leave it out"
        if not gated:
            yield Finding("E211", path, "a feed-forward without a gate has no product of two halves", mend)
        elif activation != "silu" and (self.slope != 1 or self.gate_softcap is not None):
            name = "slope" if self.slope != 1 else "gate_softcap"
            yield Finding("E211", (*path, name), f"{name} is for the sigmoid of silu, which {activation} has not", mend)
        if self.limited == "after_activation" and self.limit is None:
            yield Finding("E211", (*path, "limited"), "there is no limit for the gate", "state limit, or leave it out")

    def ungenerated(self, path: str) -> Iterator[str]:
        """Fields of the language whose values cannot be generated yet; `path` leads here."""
        if self.sparsity is not None:
            yield f"{path}.sparsity"


def stated(glu: GluFields | None) -> GluFields | None:
    """The fields, or None where they change nothing."""
    return None if glu == GluFields() else glu
