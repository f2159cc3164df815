"""The vocabulary of family files: where each stored tensor goes in the generated module.

Names are patterns: N stands for a layer's number, E for an expert's.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Module:
    """A stored module and what it fills: its `.weight` and, where there is one, its `.bias`.

    Several targets share the rows of the stored tensor in the order given. A transposed weight is
    stored as [in, out] (transformers' Conv1D); a bias never is.
    """

    stored: str
    fills: tuple[str, ...]
    transposed: bool = False


@dataclass(frozen=True, slots=True)
class PerExpert:
    """A stored weight per expert, and the stacked tensors [experts, …] of which it fills one slice."""

    stored: str
    fills: tuple[str, ...]


Rule = Module | PerExpert


@dataclass(frozen=True, slots=True)
class Family:
    """How one model type is stored.

    `optional_prefix` may be left out of every name by a checkpoint of the bare model; `ignored` are
    stored tensors that carry no weight (old buffers).
    """

    model_type: str
    rules: tuple[Rule, ...]
    optional_prefix: str = ""
    ignored: tuple[str, ...] = ()
