"""The noise floor: what arithmetic alone can do to a result. Tests compare with it, not with a tolerance."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

BOUND = 8.0  # a port passes within this many floors, and a fault must be seen beyond as many
RUNS = 4

Results = Mapping[str, Tensor]


@dataclass(frozen=True)
class Measured:
    """What a reference returns, by name, and how far arithmetic alone moves each of it."""

    results: Results
    floors: Mapping[str, float]

    def deviation(self, results: Results) -> float:
        """The largest deviation of `results`, in floors. What is not finite is infinitely far away."""
        assert results.keys() == self.results.keys()
        return max(_distance(results[name], mine) / self.floors[name] for name, mine in self.results.items())


def measure(model: Any, run: Callable[[Any], Results]) -> Measured:
    """Runs a copy of `model`, then others whose weights and tables have moved by one unit in the last place.

    No floor is below the spacing of numbers at the largest value: half of that is lost in writing a result down.
    """
    results = run(copy.deepcopy(model))
    others = [run(moved(model, seed)) for seed in range(RUNS)]
    floors = {name: _spacing(mine) for name, mine in results.items()}
    for name, mine in results.items():
        floors[name] = max(floors[name], *(_distance(other[name], mine) for other in others))
    return Measured(results, floors)


@torch.no_grad()
def moved(model: Any, seed: int) -> Any:
    """A copy of `model` with every weight and table moved by one unit in the last place, up or down at random."""
    generator = torch.Generator().manual_seed(seed)
    other = copy.deepcopy(model)
    for tensor in (*other.parameters(), *other.buffers()):
        if tensor.is_floating_point():
            up = torch.rand(tensor.shape, generator=generator) < 0.5
            tensor.copy_(torch.nextafter(tensor, torch.where(up, torch.inf, -torch.inf).to(tensor.dtype)))
    return other


def _distance(ours: Tensor, theirs: Tensor) -> float:
    assert ours.shape == theirs.shape
    distance = (ours.double() - theirs.double()).abs().max().item()
    return distance if math.isfinite(distance) else math.inf


def _spacing(values: Tensor) -> float:
    largest = values.detach().abs().max()
    return (torch.nextafter(largest, torch.full_like(largest, torch.inf)) - largest).item()
