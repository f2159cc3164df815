"""Faults of rotary and other positions."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from archc.faults.base import Fault
from archc.faults.sites import attentions, field_slips, ropes, slips
from archc.parts.attention import Attention
from archc.parts.position import Rope

_USUAL_BASES = (10_000.0, 500_000.0, 1_000_000.0, 100_000.0, 50_000.0, 5_000_000.0)


def _other_bases(rope: Rope) -> Iterable[float]:
    return (base for base in _USUAL_BASES if base != rope.base)


def _without(attention: Attention) -> Iterable[tuple[str, Attention]]:
    if attention.rope is not None:
        yield "none", replace(attention, rope=None)


FAULTS = (
    Fault(
        id="position.pairing",
        field="position.pairing",
        kind="architecture",
        wrong="Channels side by side turn together, where the weights were trained with halves; or the reverse.",
        when="layers with rotary positions",
        mend="rotate the pairs (i, i + d/2) for half, (2i, 2i + 1) for interleaved, or permute the rows of q and k",
        slips=field_slips(ropes, "pairing", lambda rope: ("half", "interleaved")),
        seen=("vllm-project/vllm-ascend#12765", "vllm-project/vllm#28968"),
        same_when="the rows of q and k are permuted to match, or only one pair of channels turns",
    ),
    Fault(
        id="position.base",
        field="position.base",
        kind="architecture",
        wrong="The frequencies come of another base, often a library's default.",
        when="layers with rotary positions",
        mend="take the base (rope_theta) from the resolved config, not from a default",
        slips=field_slips(ropes, "base", _other_bases),
        seen=("Lightning-AI/litgpt#2217",),
    ),
    Fault(
        id="position.kind",
        field="position.kind",
        kind="architecture",
        wrong="Queries and keys are not rotated at all.",
        when="layers with rotary positions",
        mend="rotate queries and keys before they meet",
        slips=slips(attentions, lambda attention: "rope", _without),
    ),
)
