"""Probe checkpoints: the same config with rescaled weights, on which terms show that these weights hide.

An eps is below the last digit where activations are large, and a cap never bites where logits are small. Factors are
powers of two, so that every weight stays exact in any type.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from archc.architecture.model import Architecture
from archc.checkpoints.headers import read_checkpoint
from archc.checkpoints.manifest import build_manifest, pattern_of
from archc.validation.rewritten import rewrite


@dataclass(frozen=True, slots=True)
class Rescaling:
    """Parameters, by what their names in the generated module match, and the factor that multiplies them.

    `shows` are the fields whose mistakes it is made for, by the ends of their paths.
    """

    name: str
    purpose: str
    shows: tuple[str, ...]
    parameters: re.Pattern[str]
    factor: float

    def scales(self, parameter: str, *, tied: bool) -> bool:
        """Whether a parameter is rescaled; `tied` says that the embedding is the head."""
        name = "head.weight" if tied and parameter == "embedding.weight" and self.factor > 1 else parameter
        return self.parameters.search(name) is not None


RESCALINGS = (
    Rescaling(
        "small weights",
        "what vanishes beside large activations, such as eps",
        ("eps",),
        re.compile(r"embedding\.weight$|\.(o|down)(\.weight|\.bias|_bias)?$"),
        2.0**-10,
    ),
    Rescaling(
        "large weights",
        "what bites at large values, such as caps and clamps",
        ("softcap", "clip", "limit", "limited", "gate_softcap", "up_softcap"),
        re.compile(r"^head\.weight$|\.(q|k|q_up|kv_up|gate|up)(\.weight|\.bias|_bias)?$"),
        2.0**3,
    ),
)


def may_show(field: str) -> bool:
    """Whether mistakes in a field may show on other weights when they do not on these."""
    return any(field.endswith(end) for rescaling in RESCALINGS for end in rescaling.shows)


def write_rescaled(architecture: Architecture, folder: Path, into: Path, rescaling: Rescaling) -> None:
    """Writes the rescaled copy of the checkpoint in `folder` to `into`. Raises IncompleteError where it cannot."""
    names = frozenset(_stored(architecture, folder, rescaling))
    rewrite(folder, into, change=lambda name, value: _scaled(value, rescaling.factor) if name in names else value)


def _scaled(value: Tensor, factor: float) -> Tensor:
    return value * factor


def _stored(architecture: Architecture, folder: Path, rescaling: Rescaling) -> Iterator[str]:
    """Stored names of the tensors that hold rescaled parameters."""
    manifest, tied = build_manifest(architecture), architecture.head.tied
    patterns = {
        row.stored for row in manifest.table if any(rescaling.scales(parameter, tied=tied) for parameter in row.fills)
    }
    for name in read_checkpoint(folder):
        normal = manifest.normal(name)
        if normal in patterns or pattern_of(normal) in patterns:
            yield name
