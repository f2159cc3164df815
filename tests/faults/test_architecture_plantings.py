"""Architecture faults, planted into transformers models: each shows, and is what its mutant is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.faults.planting import Planting, check, patched, re_roped


def _interleaved(original: Any, q: Any, k: Any, cos: Any, sin: Any, unsqueeze_dim: int = 1) -> Any:
    def sorted_by_pair(x: Any) -> Any:
        return x.unflatten(-1, (-1, 2)).transpose(-1, -2).flatten(-2)

    return original(sorted_by_pair(q), sorted_by_pair(k), cos, sin, unsqueeze_dim)


PLANTINGS = (
    Planting(
        "position.pairing", "interleaved", "llama-default", lambda m: patched(m, apply_rotary_pos_emb=_interleaved)
    ),
    Planting("position.base", "10000", "llama-default", lambda m: re_roped(m, rope_theta=10000.0)),
    Planting(
        "position.kind",
        "none",
        "llama-default",
        lambda m: patched(m, apply_rotary_pos_emb=lambda _original, q, k, *_cos_and_sin: (q, k)),
    ),
)


@pytest.mark.parametrize("planting", PLANTINGS, ids=str)
def test_a_planted_fault_shows_and_is_its_mutant(planting: Planting) -> None:
    check(planting)
