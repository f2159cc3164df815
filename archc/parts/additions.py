"""What some designs put on projections: constant factors, and low-rank additions that every layer has for itself."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from archc.parts.base import Fields, Group, Positive, Tensor

ADAPTER_DOC = (
    "Rank of a learned low-rank addition to {projections}. Every layer has its own, even where it shares the branch."
)


class AttentionFactorFields(Fields, frozen=True, kw_only=True):
    """`attention.factors`: constants that multiply what flows through the attention."""

    input: Annotated[Positive, Meta(description="On what queries, keys and values are projected from.")] = 1.0
    key: Annotated[Positive, Meta(description="On the projected keys.")] = 1.0
    output: Annotated[Positive, Meta(description="On what the attention puts out.")] = 1.0


class GatedFactorFields(Fields, frozen=True, kw_only=True):
    """`ffn.factors`: constants that multiply what flows through a gated feed-forward."""

    gate: Annotated[Positive, Meta(description="On the projected gate, before its activation.")] = 1.0
    output: Annotated[Positive, Meta(description="On what the feed-forward puts out.")] = 1.0
    learned: Annotated[
        Positive | None,
        Meta(
            description="Learned numbers for every channel, times this, multiply the projected gate, before its "
            "activation, and the other half."
        ),
    ] = None
    learned_output: Annotated[
        bool, Meta(description="Whether one learned number multiplies what the feed-forward puts out.")
    ] = False


def adapter(name: str, out_features: int, in_features: int, rank: int | None, group: Group) -> tuple[Tensor, ...]:
    """The two matrices of a low-rank addition to a projection; none without a rank."""
    if rank is None:
        return ()
    return (
        Tensor(f"{name}_adapter.down", (rank, in_features), group, per_layer=True),
        Tensor(f"{name}_adapter.up", (out_features, rank), group, per_layer=True),
    )
