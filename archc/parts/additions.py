"""What some designs put on projections: constant factors, and low-rank additions that every layer has for itself."""

from __future__ import annotations

from pydantic import Field

from archc.parts.base import Fields, Group, Positive, Tensor

ADAPTER_DOC = (
    "Rank of a learned low-rank addition to {projections}. Every layer has its own, even where it shares the branch."
)


class AttentionFactorFields(Fields):
    """`attention.factors`: constants that multiply what flows through the attention."""

    input: Positive = Field(default=1.0, description="On what queries, keys and values are projected from.")
    key: Positive = Field(default=1.0, description="On the projected keys.")
    output: Positive = Field(default=1.0, description="On what the attention puts out.")


class GatedFactorFields(Fields):
    """`ffn.factors`: constants that multiply what flows through a gated feed-forward."""

    gate: Positive = Field(default=1.0, description="On the projected gate, before its activation.")
    output: Positive = Field(default=1.0, description="On what the feed-forward puts out.")
    learned: Positive | None = Field(
        default=None,
        description="Learned numbers for every channel, times this, multiply the projected gate, before its "
        "activation, and the other half.",
    )
    learned_output: bool = Field(
        default=False, description="Whether one learned number multiplies what the feed-forward puts out."
    )


def adapter(name: str, out_features: int, in_features: int, rank: int | None, group: Group) -> tuple[Tensor, ...]:
    """The two matrices of a low-rank addition to a projection; none without a rank."""
    if rank is None:
        return ()
    return (
        Tensor(f"{name}_adapter.down", (rank, in_features), group, per_layer=True),
        Tensor(f"{name}_adapter.up", (out_features, rank), group, per_layer=True),
    )
