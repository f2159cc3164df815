"""Norm weights that do not look as they are declared: a `1 +` that was already added, or was never.

Keys, shapes and types are the same either way; only the values tell. Gains begin at 1, and training makes hardly one
negative. Of released checkpoints that store gain minus one, weights average about +0.22, many of them negative; of
conversions that had added the 1, about +1.15 (Blaizzy/mlx-vlm#2041).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from torch import Tensor

from archc.architecture.model import Architecture
from archc.checkpoints.headers import StoredTensor
from archc.checkpoints.manifest import build_manifest, stored_entries
from archc.validation.plain import read_tensor

_LARGEST: Final = 2**24
"""Bytes of a norm's weight that is read; those of any real model are far smaller."""
_FEWEST: Final = 256
"""Channels of the narrowest norm that tells something. Narrower models are made for tests, and their weights drawn."""
_MOST: Final = 0.75
"""The share of the norms of one place, over all layers, that must look alike."""


@dataclass(frozen=True, slots=True)
class GainDoubt:
    """Norms of one place whose stored weights look like another convention than the declared one."""

    tensors: str
    """Their stored name, with N for the number of the layer."""
    declared: Literal["plain", "one_plus"]
    mean: float

    @property
    def looks(self) -> str:
        """What the values look like, in words."""
        return "as if the 1 were already added" if self.declared == "one_plus" else "as stored without their 1"


def doubtful_gains(architecture: Architecture, stored: Mapping[str, StoredTensor]) -> tuple[GainDoubt, ...]:
    """Norms whose weights contradict their convention, place by place; shapes have been compared before.

    That a 1 was added is believed only where it is so of half of all norms that are to add it: some models are trained
    to gains far above 1 in some places.
    """
    manifest = build_manifest(architecture)
    found = {manifest.normal(name): tensor for name, tensor in stored.items()}
    gains = {tensor.name: tensor.gain for tensor in architecture.tensors() if tensor.gain}
    places: dict[tuple[str, Literal["plain", "one_plus"]], list[tuple[float, bool]]] = defaultdict(list)
    for entry in stored_entries(architecture, manifest):
        gain = gains.get(entry.fills[0]) if len(entry.fills) == 1 else None
        if gain is None or (tensor := found.get(entry.name)) is None or tensor.nbytes > _LARGEST:
            continue
        weight = read_tensor(tensor).float()
        if weight.numel() >= _FEWEST:
            places[entry.row.stored, gain].append((float(weight.mean()), _contradicts(weight, gain)))
    added = [odd for (_, gain), norms in places.items() for _, odd in norms if gain == "one_plus"]
    doubts = []
    for (name, gain), norms in places.items():
        odd = [mean for mean, contradicts in norms if contradicts]
        if len(odd) >= _MOST * len(norms) and (gain == "plain" or 2 * sum(added) >= len(added)):
            doubts.append(GainDoubt(name, gain, sum(odd) / len(odd)))
    return tuple(doubts)


def _contradicts(weight: Tensor, gain: str) -> bool:
    """Whether the values of one norm look like the other convention."""
    mean, negative = float(weight.mean()), float((weight < 0).float().mean())
    if gain == "one_plus":
        return 0.6 < mean < 2 and negative < 0.005
    return abs(mean) < 0.5 and negative > 0.05
