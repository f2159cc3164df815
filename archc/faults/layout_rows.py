"""Faults of the rows of projections: fused tensors taken apart in the wrong places, and rows in another order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from archc.architecture.model import Architecture, Layer
from archc.checkpoints.manifest import TableRow, UnstorableError, build_manifest
from archc.faults.base import Fault, Weights
from archc.faults.reading import Reading, attention_of, in_heads, reading_slips, shapes
from archc.parts.attention import Attention
from archc.parts.position import Rope

T = TypeVar("T")
_LAYER = "layers.N."
_RANKS = 2


def _fused(architecture: Architecture, *words: str) -> list[TableRow]:
    """The stored tensors that several parameters share the rows of, where the last words of their names are these."""
    if architecture.family is None:
        return []
    try:
        table = build_manifest(architecture).table
    except UnstorableError:
        return []
    return [row for row in table if len(row.fills) > 1 and set(map(_word, row.fills)) <= set(words)]


def _word(name: str) -> str:
    """q of layers.N.attention.q.weight, gate of layers.N.ffn.gate_bias."""
    return name.removesuffix(".weight").removesuffix(".bias").removesuffix("_bias").rpartition(".")[2]


def _inside(row: TableRow) -> list[str]:
    return [fill.removeprefix(_LAYER) for fill in row.fills]


def _refused(tensors: Sequence[Any], row: TableRow, order: Sequence[int], groups: int) -> list[Any]:
    """Tensors put together as they are stored, and taken apart in another order or in another number of groups."""
    from torch import cat

    axis, right = row.axis, row.groups
    stored: Any = cat([one.unflatten(axis, (right, -1)) for one in tensors], axis + 1).flatten(axis, axis + 1)
    sizes = [tensors[index].shape[axis] // groups for index in order]
    found: list[Any] = [None] * len(tensors)
    for index, share in zip(order, stored.unflatten(axis, (groups, -1)).split(sizes, axis + 1), strict=True):
        found[index] = share.flatten(axis, axis + 1)
    return found


def _taken_apart(
    rows: Sequence[TableRow],
    behaves_as: str,
    order: Callable[[TableRow], Sequence[int]],
    groups: Callable[[TableRow], int],
) -> Reading:
    """The reading of fused tensors in another order of their parts, or in another number of groups."""

    def fits(layer: Layer) -> bool:
        found = shapes(layer)
        having = [row for row in rows if found.keys() >= set(_inside(row))]
        whole = all(found[name][row.axis] % groups(row) == 0 for row in having for name in _inside(row))
        return bool(having) and whole

    def change(layer: Layer, tensors: Weights) -> Weights:
        del layer
        found: dict[str, Any] = {}
        for row in rows:
            names = _inside(row)
            if tensors.keys() >= set(names):
                parts = _refused([tensors[name] for name in names], row, order(row), groups(row))
                found |= dict(zip(names, parts, strict=True))
        return found

    first = rows[0]
    return Reading(_grouped(first, range(len(first.fills)), first.groups), behaves_as, fits, change)


def _grouped(row: TableRow, order: Sequence[int], groups: int) -> str:
    words = ", ".join(_word(row.fills[index]) for index in order)
    return words if groups == 1 else f"{words} in each of {groups} groups"


def _fixed(value: T, row: TableRow) -> T:
    """The same for every row."""
    del row
    return value


def _as_stored(row: TableRow) -> int:
    return row.groups


def _in_order(row: TableRow) -> Sequence[int]:
    return range(len(row.fills))


def _kv_heads(architecture: Architecture) -> int:
    shape = next((layer.mixer.shape for layer in architecture.layers if layer.mixer and layer.mixer.shape), None)
    return 1 if shape is None else shape.kv_heads


def _qkv(architecture: Architecture) -> Iterator[Reading]:
    rows = [row for row in _fused(architecture, "q", "k", "v", "gate") if "attention" in row.fills[0]]
    if not rows:
        return
    first = rows[0]
    straight = list(_in_order(first))
    orders = [[*straight[:-2], straight[-1], straight[-2]], [straight[1], straight[0], *straight[2:]]]
    for order in orders if len(straight) > 2 else orders[:1]:
        yield _taken_apart(rows, _grouped(first, order, first.groups), partial(_fixed, order), _as_stored)
    for groups in sorted({1, _kv_heads(architecture)} - {first.groups}):
        yield _taken_apart(rows, _grouped(first, straight, groups), _in_order, partial(_fixed, groups))


def _gate_up(architecture: Architecture) -> Iterator[Reading]:
    rows = [row for row in _fused(architecture, "gate", "up") if "attention" not in row.fills[0]]
    if not rows:
        return
    if rows[0].groups == 1:
        # By turns: as many groups as a half has rows.
        widths = {name: shape for layer in architecture.layers for name, shape in shapes(layer).items()}
        yield _taken_apart(rows, "gate, up by turns", _in_order, lambda row: widths[_inside(row)[0]][row.axis])
    else:
        yield _taken_apart(rows, "gate, up", _in_order, partial(_fixed, 1))


def _shards(architecture: Architecture) -> Iterator[Reading]:
    rows = [row for row in _fused(architecture, "q", "k", "v", "gate", "up") if row.groups == 1]
    by_part: dict[bool, list[TableRow]] = {}
    for row in rows:
        by_part.setdefault("attention" in row.fills[0], []).append(row)
    for attention, found in by_part.items():
        if not attention or _kv_heads(architecture) != _RANKS:  # else that is the reading of one group for each head
            words = f"{', '.join(map(_word, found[0].fills))} cut evenly over {_RANKS} ranks"
            yield _taken_apart(found, words, _in_order, partial(_fixed, _RANKS))


def _slot(layer: Layer) -> str:
    return next(slot for branch in layer.branches for slot, part in branch.parts if type(part) is Attention)


def _sorted_by_halves(rope: Rope, *, back: bool) -> list[int]:
    """The channels of a head in an order in which pairs side by side become halves; `back`: in which halves do so."""
    turning = list(range(rope.rotary_dim))
    half = rope.rotary_dim // 2
    halves = [*turning[::2], *turning[1::2]]
    neighbours = [channel for pair in zip(turning[:half], turning[half:], strict=True) for channel in pair]
    return (neighbours if back else halves) + list(range(rope.rotary_dim, rope.head_dim))


def _order(rope: Rope) -> list[int]:
    """The order that makes sense of no pairing: that of a permutation that was not called for."""
    return _sorted_by_halves(rope, back=rope.pairing == "half")


def _reordered(behaves_as: str, names: Sequence[str], needs: Callable[[Attention], bool] = lambda _: True) -> Reading:
    """Rows of these tensors of attention, permuted within every head once too often."""

    def rope_of(layer: Layer) -> Rope | None:
        part = attention_of(layer)
        return part.rope if part and needs(part) else None

    def fits(layer: Layer) -> bool:
        rope = rope_of(layer)
        if rope is None or rope.rotary_dim <= 4:  # of two pairs, both orders are one
            return False
        return any(f"{_slot(layer)}.{name}" in shapes(layer) for name in names)

    def change(layer: Layer, tensors: Weights) -> Weights:
        rope, slot = rope_of(layer), _slot(layer)
        assert rope is not None
        found = {f"{slot}.{name}": tensors.get(f"{slot}.{name}") for name in names}
        return {
            name: in_heads(tensor, tensor.shape[0] // rope.head_dim, _order(rope))
            for name, tensor in found.items()
            if tensor is not None
        }

    return Reading("as stored", behaves_as, fits, change)


def _wrong_heads() -> Reading:
    """Keys permuted for a runtime that pairs neighbours, as many heads at a time as queries share a key."""

    def fits(layer: Layer) -> bool:
        part = attention_of(layer)
        rope = part.rope if part else None
        if part is None or rope is None or rope.pairing != "half" or rope.rotary_dim != rope.head_dim:
            return False
        return part.group_size not in (1, part.kv_heads) and part.kv_width % (2 * part.group_size) == 0

    def change(layer: Layer, tensors: Weights) -> Weights:
        part = attention_of(layer)
        assert part is not None
        assert part.rope is not None
        found = {}
        for name in (f"{_slot(layer)}.k.weight", f"{_slot(layer)}.k.bias"):
            if name in tensors:
                halves = tensors[name].unflatten(0, (part.group_size, 2, -1))
                permuted = halves.transpose(1, 2).flatten(0, 2)
                found[name] = in_heads(permuted, part.kv_heads, _sorted_by_halves(part.rope, back=False))
        return found

    return Reading("as stored", "k permuted by a wrong number of heads", fits, change)


_QK = ("q.weight", "q.bias", "k.weight", "k.bias")


def _permuted(architecture: Architecture) -> Iterator[Reading]:
    del architecture
    yield _reordered("q and k permuted", _QK)
    yield _reordered("q permuted", _QK[:2])
    yield _reordered("k permuted", _QK[2:])
    yield _reordered("biases permuted", ("q.bias", "k.bias"))
    yield _reordered(
        "norm weights permuted", ("q_norm.weight", "k_norm.weight"), lambda part: part.qk_norm_over == "head"
    )
    yield _wrong_heads()


FAULTS = (
    Fault(
        id="layout.rope_rows",
        field="position.pairing",
        kind="layout",
        wrong="Rows of q and k are permuted for the other pairing twice, or only some of what has to be.",
        when="layers with rotary positions",
        mend="permute q and k together, with their biases and norms, head by head of their own number, and only once",
        slips=reading_slips(_permuted),
        seen=("ggml-org/llama.cpp#3364", "huggingface/transformers#25199"),
        same_when="q and k are permuted alike by a runtime that pairs channels that way",
    ),
    Fault(
        id="layout.fused_qkv",
        field="layout.fused_qkv",
        kind="layout",
        wrong="A tensor that holds q, k and v is split in the wrong order, or into thirds instead of head by head.",
        when="families that store q, k and v in one tensor",
        mend="split as the family stores it: flat, or group by group of heads",
        slips=reading_slips(_qkv),
        seen=("llmmanorg/llmman#16",),
    ),
    Fault(
        id="layout.gate_up",
        field="layout.gate_up",
        kind="layout",
        wrong="A tensor that holds gate and up is split by turns where it has halves, or the reverse.",
        when="families that store gate and up in one tensor",
        mend="split as the family stores it: in halves, or every other row",
        slips=reading_slips(_gate_up),
        seen=("thinking-machines-lab/tinker-cookbook#459",),
    ),
    Fault(
        id="layout.shards",
        field="layout.shards",
        kind="layout",
        wrong="A fused tensor is cut evenly over the ranks, and every rank takes its share for a whole one.",
        when="families that store several projections in one tensor, on more than one rank",
        mend="take the projections apart first, and cut each of them",
        slips=reading_slips(_shards),
        seen=("NVIDIA/Megatron-LM#1989",),
    ),
)
