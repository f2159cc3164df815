"""What happens around the product of a gated feed-forward: limits, a slope of the gate, a shift of the other half."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import Fields, Positive


class GluFields(Fields, frozen=True, kw_only=True):
    """`ffn.glu`: activation(gate) · up becomes, for silu, gate·sigmoid(slope·gate) · (up + up_shift), both limited."""

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
