"""The vocabulary of family files: how a config's fields say a spec, and where each stored tensor goes.

In names of tensors, N stands for a layer's number and E for an expert's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

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


Groups = int | Literal["kv_heads", "rows"]
"""How many groups stored rows stand in: a number, one for each key/value head of the layer, or one for each row of a
target. Each holds an equal share of every target's rows, in the order of the targets."""


class Module(Struct, frozen=True):
    """A stored module and what it fills: its `.weight` and, where there is one, its `.bias`.

    Several targets share the rows of the stored tensor in the order given, one after the other or, with `groups`,
    within each group: [q | k | v] of the first head, then of the second. A transposed weight is stored as [in, out]
    (transformers' Conv1D); a bias never is.
    """

    stored: str
    fills: tuple[str, ...]
    transposed: bool = False
    groups: Groups | None = None
    parallel: bool | None = None
    """Whether it is only for layers whose branches stand side by side, or only for those whose branches follow one
    another; None for all."""


class Parameter(Struct, frozen=True):
    """A stored tensor under its exact name, and the parameters or buffers that it fills, under theirs.

    Where the name holds `.E.`, there is a stored tensor per expert (or head), and it is the slice E of its targets.
    Several targets share its rows as in `Module`.
    """

    stored: str
    fills: tuple[str, ...]
    transposed: bool = False
    """Whether the last two axes have changed places on disk: [in, out], or [experts, in, out]."""
    groups: Groups | None = None
    stacked: bool = False
    """Whether it holds all experts, [experts, rows, …], so that rows lie along the second axis and not the first."""
    flat: bool = False
    """Whether it holds all experts with the first two axes as one: [experts * out, in], or [experts * in, out]."""
    unit_axis: bool = False
    """Whether it has an axis of size 1 before its last, as [channels, 1, taps] of a convolution per channel."""


Rule = Module | Parameter


Tier = Literal["dense", "twisted", "mixture", "latent", "hybrid", "exotic"]
"""What a family is for whoever looks it up: plain dense; dense with twists; experts; latent or sparse attention;
recurrent or mixed with attention; none of these."""


class Family(Struct, frozen=True):
    """How one model type is spelled and stored.

    `config` translates its config.json. Without `rules`, its checkpoints cannot be read yet. `optional_prefix` may be
    left out of every name by a checkpoint of the bare model; `ignored` are stored tensors that carry no weight of the
    model, such as old buffers; one that ends in a dot stands for all below, one that a rule names as well for layers
    that lack what it fills.
    """

    model_type: str
    rules: tuple[Rule, ...] = ()
    optional_prefix: str = ""
    ignored: tuple[str, ...] = ()
    empty: tuple[str, ...] = ()
    """Stored tensors that hold no number where a config asks for nothing of their kind: shared experts of width 0."""
    zero: tuple[str, ...] = ()
    """Stored tensors that a checkpoint may lack. They are zero then."""
    extra_layers: bool = False
    """Whether checkpoints may hold layers behind the model's own, which the reference does not read either (those that
    predict further tokens)."""
    tier: Tier = "dense"
    config: Table = field(default_factory=dict)
    inverse: Inverse = field(default_factory=dict)
    refused: str = ""
    """Why the language cannot say the model, where it cannot."""
    beside: str = ""
    """What the reference's class has beside the text model that `config` describes, such as a vision encoder."""
    keeps_head: bool = False
    """Whether the reference's wrappers of it hold its class with the head, so that their config has no say in it."""
    taken_for: Mapping[str, str] = field(default_factory=dict)
    """Keys by which the reference takes a config.json of this type for one of another type."""
