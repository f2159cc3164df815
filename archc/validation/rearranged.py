"""The same model with its weights arranged otherwise: a port that loads them must compute what it did before.

Keys and values copied out to every query head, with as many key/value heads in config.json, are what grouped heads
share; experts in another order, with the rows of their router, are the same experts. The port is opened on a changed
copy of the checkpoint through its own loader. Where it computes something else, the reference must not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace
from torch import Tensor

from archc.architecture import Architecture, compile_text
from archc.architecture.build import build
from archc.checkpoints.headers import read_checkpoint, read_config
from archc.checkpoints.manifest import Entry, build_manifest, stored_entries
from archc.errors import ArchcError, IncompleteError
from archc.importing.convert import import_spec
from archc.parts.base import Heads
from archc.parts.base import Tensor as Parameter
from archc.spec.language import BranchFields, Spec
from archc.validation.invariants import Invariant, within_bound
from archc.validation.parity import BOUND, ProbeResult, distance, up_to_a_tie
from archc.validation.plain import read_tensor
from archc.validation.ports import OpenPort, Port
from archc.validation.probes import Blind, mixers
from archc.validation.reference import Reference
from archc.validation.rewritten import Change, refusal, rewrite


@dataclass(frozen=True, slots=True)
class _Rearranged:
    """Weights arranged otherwise: the Architecture that they are of, changes of config.json, and of every tensor."""

    name: str
    architecture: Architecture
    config: Mapping[str, object]
    change: Change


class _CannotError(Exception):
    """Why weights cannot be rearranged."""


def check_rearranged(
    spec: Spec, folder: Path, open_port: OpenPort, reference: Reference, result: ProbeResult, port: Port, own: Tensor
) -> tuple[list[Invariant], list[Blind]]:
    """Whether a port gives with rearranged weights what it gives with those in `folder`.

    That is its `own` logits on the probe of `result`. What cannot be rearranged, or what the reference itself does not
    keep, is said to be unseen.
    """
    found, blind = [], []
    for one in _rearrangements(spec, folder, port):
        times = one if isinstance(one, Blind) else _floors_apart(one, folder, open_port, reference, result, own)
        if isinstance(times, Blind):
            blind.append(times)
        else:
            assert isinstance(one, _Rearranged)
            found.append(within_bound(one.name, times))
    return found, blind


def _rearrangements(spec: Spec, folder: Path, port: Port) -> Iterator[_Rearranged | Blind]:
    """What applies to the model of a spec, stored in `folder`, and can be done for a port; or why it cannot."""
    architecture = build(spec)
    for name, applies, arrange in (
        ("grouped heads", any(_grouped(mixer.shape) for mixer in mixers(architecture)), _heads_copied_out),
        ("expert order", bool(_expert_tensors(architecture)), _experts_reversed),
    ):
        if not applies:
            continue
        try:
            if not port.reloads:
                raise _CannotError("this port cannot load another checkpoint")
            if why := refusal(folder):
                raise _CannotError(why)
            yield arrange(name, spec, architecture, folder)
        except _CannotError as error:
            yield Blind(name, str(error))


def _floors_apart(
    one: _Rearranged, folder: Path, open_port: OpenPort, reference: Reference, result: ProbeResult, own: Tensor
) -> float | Blind:
    """By how many floors the port leaves its own logits; a Blind where it or the reference cannot say."""

    def apart(ours: Tensor, theirs: Tensor) -> float:
        judged = up_to_a_tie(ours, theirs, result.probe.real, result.tied, result.floor)
        return result.floor.times(distance(ours, theirs, judged))

    with tempfile.TemporaryDirectory(prefix="archc-") as place:
        into = Path(place)
        try:
            rewrite(folder, into, config=one.config, change=one.change)
            if one.config and not _all_full(into):
                return Blind(one.name, "its config.json has no single key for how many key/value heads there are")
            times = apart(open_port(one.architecture, into).logits(result.probe), own)
        except ArchcError as error:
            return Blind(one.name, f"this port cannot run the rearranged weights: {error.problem}")
        if times <= BOUND:
            return times
        try:
            theirs = apart(Reference(into, dtype=reference.dtype).logits(result.probe), reference.logits(result.probe))
        except IncompleteError as error:
            return Blind(one.name, f"the reference cannot run the rearranged weights: {error.problem}")
    return (
        times if theirs <= BOUND else Blind(one.name, f"the reference itself is {theirs:,.0f} floors from keeping it")
    )


def _grouped(shape: Heads | None) -> bool:
    return shape is not None and shape.kv_heads < shape.heads


def _heads_copied_out(name: str, spec: Spec, architecture: Architecture, folder: Path) -> _Rearranged:
    shapes = {mixer.shape for mixer in mixers(architecture) if mixer.shape is not None}
    counts = {(shape.heads, shape.kv_heads) for shape in shapes}
    if len(counts) > 1:
        raise _CannotError("its layers have other numbers of heads")
    [(heads, kv_heads)] = counts
    kinds = {
        kind: replace(layer, branches=tuple(_with_kv_heads(branch, heads) for branch in layer.branches))
        for kind, layer in spec.kinds.items()
    }
    full = build(replace(spec, kinds=kinds))
    if {mixer.shape.kv_heads for mixer in mixers(full) if mixer.shape is not None} != {heads}:
        raise _CannotError("its mixers do not declare how many key/value heads they have")
    axes = {
        entry.name: _axis(entry, other) for entry, other in _pairs(architecture, full) if entry.shape != other.shape
    }
    normal = build_manifest(architecture).normal

    def change(stored: str, tensor: Tensor) -> Tensor:
        axis = axes.get(normal(stored))
        if axis is None:
            return tensor
        by_head = _parted(tensor, axis, kv_heads)
        return by_head.repeat_interleave(heads // kv_heads, axis).flatten(axis, axis + 1)

    return _Rearranged(name, full, _with_key(read_config(folder), "num_key_value_heads", heads), change)


def _with_kv_heads(branch: BranchFields, heads: int) -> BranchFields:
    parts = {
        section: replace(part, kv_heads=heads) if getattr(part, "kv_heads", None) is not None else part
        for section, part in branch.parts.items()
    }
    return replace(branch, parts=parts)


def _pairs(one: Architecture, other: Architecture) -> Iterator[tuple[Entry, Entry]]:
    """What is stored of two models whose tensors differ in shape alone."""
    entries = [{entry.name: entry for entry in stored_entries(it, build_manifest(it))} for it in (one, other)]
    if entries[0].keys() != entries[1].keys():
        raise _CannotError("with a key/value head for every query head it has other tensors")
    return ((entry, entries[1][name]) for name, entry in entries[0].items())


def _axis(entry: Entry, other: Entry) -> int:
    """The axis along which a stored tensor grows with the number of its heads."""
    if len(entry.fills) > 1:
        raise _CannotError(f"its keys and values are stored with others, in {entry.row.stored}")
    axes = [axis for axis, sizes in enumerate(zip(entry.shape, other.shape, strict=True)) if sizes[0] != sizes[1]]
    if len(axes) > 1:
        raise _CannotError(f"more than one axis of {entry.row.stored} grows with the number of heads")
    return axes[0]


def _with_key(config: Mapping[str, object], key: str, value: object) -> dict[str, object]:
    """The change of a config that sets a key where heads are counted: at the top, or in the text model's section."""
    if "num_attention_heads" in config or not isinstance(text := config.get("text_config"), dict):
        return {key: value}
    return {"text_config": {**text, key: value}}


def _all_full(folder: Path) -> bool:
    """Whether a config.json is that of a model without grouped heads."""
    try:
        imported = compile_text(import_spec(str(folder)).text).architecture
    except ArchcError:
        return False
    return not any(_grouped(mixer.shape) for mixer in mixers(imported))


def _expert_tensors(architecture: Architecture) -> dict[str, Parameter]:
    """Every parameter with a slice for each expert, by name, those of routers included."""
    found = {tensor.name: tensor for tensor in architecture.tensors() if tensor.slices_used is not None}
    counts = {tensor.shape[0] for tensor in found.values()}
    rows = (t for t in architecture.tensors() if t.group == "router" and t.shape[0] in counts)
    return found | {tensor.name: tensor for tensor in rows} if found else {}


def _experts_reversed(name: str, _spec: Spec, architecture: Architecture, folder: Path) -> _Rearranged:
    """All experts in reverse order, which keeps groups of neighbours together."""
    if any(tensor.group == "router" and tensor.name.endswith(".table") for tensor in architecture.tensors()):
        raise _CannotError("a stored table names its experts by number")
    manifest, experts = build_manifest(architecture), _expert_tensors(architecture)
    stored = {manifest.normal(raw): tensor for raw, tensor in read_checkpoint(folder).items()}
    entries = {entry.name: entry for entry in stored_entries(architecture, manifest) if entry.fills[0] in experts}
    if any(not set(entry.fills) <= experts.keys() for entry in entries.values()):
        raise _CannotError("tensors of its experts are stored with others")
    single = {(entry.row.stored, entry.fills, entry.expert): name for name, entry in entries.items()}

    def change(raw: str, tensor: Tensor) -> Tensor:
        entry = entries.get(manifest.normal(raw))
        if entry is None:
            return tensor
        count = experts[entry.fills[0]].shape[0]
        if entry.expert is not None:
            return read_tensor(stored[single[entry.row.stored, entry.fills, count - 1 - entry.expert]])
        axis = 1 if entry.row.transposed and not entry.row.flat and tensor.ndim == 2 else 0
        if entry.row.unit_axis and axis == tensor.ndim - 2:  # where the axis of size 1 stands
            axis += 1
        return _parted(tensor, axis, count).flip(axis).flatten(axis, axis + 1)

    return _Rearranged(name, architecture, {}, change)


def _parted(tensor: Tensor, axis: int, count: int) -> Tensor:
    """A tensor with an axis taken apart into `count` equal pieces."""
    return tensor.reshape(*tensor.shape[:axis], count, -1, *tensor.shape[axis + 1 :])
