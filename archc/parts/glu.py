"""What happens around the product of a gated feed-forward: limits, a slope of the gate, a shift of the other half."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from archc.parts.base import Fields, Positive


class GluFields(Fields):
    """`ffn.glu`: activation(gate) · up becomes, for silu, gate·sigmoid(slope·gate) · (up + up_shift), both limited."""

    limit: Positive | None = Field(
        default=None, description="The gate is at most this, the other half lies between minus and plus this."
    )
    limited: Literal["before_activation", "after_activation"] = Field(
        default="before_activation", description="Whether the limit holds for the gate, or for what is activated of it."
    )
    slope: Positive = Field(default=1.0, description="Multiplies the gate inside the sigmoid of silu.")
    sparsity: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None,
        description="Share of the gates that is cut off before the activation, were they normally distributed: a gate "
        "loses mean + quantile · standard deviation of all, and stays at or above 0.",
    )
    gate_softcap: Positive | None = Field(
        default=None,
        description="In gate·sigmoid(gate) of silu, the first gate becomes softcap·tanh(gate / softcap).",
    )
    up_softcap: Positive | None = Field(default=None, description="The other half becomes softcap·tanh(up / softcap).")
    up_shift: float = Field(default=0.0, description="Added to the half that the activated gate multiplies.")
