"""How models in the manner of transformers' are called: which inputs their signature takes, and what they hand back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from archc.validation.probes import Probe

_CACHES = ("cache", "past_key_values")
"""What the argument and the output are called by which a cache is handed on: in transformers 5.24, and before."""


@dataclass(frozen=True, slots=True)
class Signature:
    """The names of a model's inputs that a probe may need; `cache` is that of its cache, if it takes one."""

    takes: frozenset[str]
    cache: str | None
    hides: bool = False
    """Whether it may take more than it names, behind **keywords."""

    def refusal(self, probe: Probe) -> str | None:
        """Why a model with this signature cannot run a probe; None where it can."""
        if probe.attention_mask is not None and "attention_mask" not in self.takes and not probe.real.all():
            return self._lacks("attention_mask")
        if probe.position_ids is not None and "position_ids" not in self.takes and not probe.positions_follow:
            return self._lacks("position_ids")
        if probe.chunks is not None and self.cache is None:
            return "it gives no cache back" if self.takes.intersection(_CACHES) else self._lacks("cache")
        return None

    def _lacks(self, name: str) -> str:
        return f"its signature does not name {name}, behind its **keywords" if self.hides else f"it takes no {name}"

    def inputs(self, probe: Probe) -> dict[str, Tensor]:
        """What goes with the token ids of a probe."""
        found = {"position_ids": probe.position_ids, "attention_mask": probe.attention_mask}
        return {name: value for name, value in found.items() if value is not None and name in self.takes}


def signature_of(function: Callable[..., Any], call: Callable[..., Any]) -> Signature:
    """The signature of a model's forward method, or of anything that is called like one.

    `call` runs it: some take a cache and give none back, which a prompt of one token shows.
    """
    parameters = inspect.signature(function).parameters
    names = frozenset(parameters)
    hides = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    cache = next((name for name in _CACHES if name in names), None)
    if cache is not None:
        flag = {"use_cache": True} if "use_cache" in names else {}
        output = call(torch.zeros((1, 1), dtype=torch.long), **flag)
        cache = cache if getattr(output, cache, None) is not None else None
    return Signature(names, cache, hides)
