"""The vocabulary of family files: how a config's fields say a spec, and where each stored tensor goes.

In names of tensors, N stands for a layer's number and E for an expert's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field


class Key(Struct, frozen=True):
    """A value that a config states under this key, as it is."""

    name: str


Compute = Callable[[Any], object]
"""A value worked out from a config: an `archc.importing.reading.Reading`, which answers for its keys as attributes."""

Source = Key | Compute | Mapping[str, Any] | str | int | float | bool | tuple[object, ...] | None
"""Where a value of the spec comes from: a key of the config, a computation, a section of further sources, or the
reference's own code, which makes it a constant. None leaves the field out."""

Inverse = Mapping[str, Callable[[Any], object]]
"""Keys of a config that follow from a whole spec, an `archc.exporting.outline.Outline`, in a way that trying values for
one key after the other does not find. None leaves a key out."""

Table = Mapping[str, Source]
"""Sources by the dotted path of the field in the spec. Those below norm, position, attention, mixer, ffn, residual and
block are asked for every layer, with its number as `c.layer`; the rest once."""


class Module(Struct, frozen=True):
    """A stored module and what it fills: its `.weight` and, where there is one, its `.bias`.

    Several targets share the rows of the stored tensor in the order given. A transposed weight is
    stored as [in, out] (transformers' Conv1D); a bias never is.
    """

    stored: str
    fills: tuple[str, ...]
    transposed: bool = False


class PerExpert(Struct, frozen=True):
    """A stored weight per expert, and the stacked tensors [experts, …] of which it fills one slice."""

    stored: str
    fills: tuple[str, ...]


Rule = Module | PerExpert


class Family(Struct, frozen=True):
    """How one model type is spelled and stored.

    `config` translates its config.json. Without `rules`, its checkpoints cannot be read yet. `optional_prefix` may be
    left out of every name by a checkpoint of the bare model; `ignored` are stored tensors that carry no weight (old
    buffers).
    """

    model_type: str
    rules: tuple[Rule, ...] = ()
    optional_prefix: str = ""
    ignored: tuple[str, ...] = ()
    config: Table = field(default_factory=dict)
    inverse: Inverse = field(default_factory=dict)
    refused: str = ""
    """Why the language cannot say the model, where it cannot."""
    beside: str = ""
    """What the reference's class has beside the text model that `config` describes, such as a vision encoder."""
    keeps_head: bool = False
    """Whether the reference's wrappers of it hold its class with the head, so that their config has no say in it."""
