"""Two sets of weights, tensor by tensor: the same, the same in another layout, or different.

Two checkpoint folders have the same names, so another layout is a mistake of one of them. A GGUF file has names and
layouts of its own, and what llama.cpp expects is known for many architectures: the rotary permutation of q and k is no
difference there, and its absence is one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from torch import Tensor

from archc.checkpoints.layouts import Deviation, Layout, find_layout
from archc.checkpoints.weights import GgufWeights, Held, Read, Weights, open_weights
from archc.errors import IncompleteError
from archc.families.gguf import stored_layout

Verdict = Literal["equal", "layout", "unexpected", "different", "missing", "extra", "copy", "table"]

_EXPERT = re.compile(r"\.experts\.([0-9]+)(?=\.)")
_SUFFIXES = (".weight", ".bias")
_TABLES = re.compile(r"rope_(freqs|factors_\w+)\.weight|.*\brotary_emb\.inv_freq|.*\.attn\.(masked_)?bias")
_FAULTS = {
    "rotary": "layout.rope_rows",
    "rotary_back": "layout.rope_rows",
    "rotary_twice": "layout.rope_rows",
    "plus_one": "norm.weight",
    "plus_two": "norm.weight",
    "minus_one": "norm.weight",
    "minus_two": "norm.weight",
    "transposed": "layout.transpose",
    "halves_swapped": "layout.gate_up",
    "interleaved": "layout.gate_up",
    "parted": "layout.gate_up",
    "thirds_reordered": "layout.fused_qkv",
    "by_head": "layout.fused_qkv",
    "by_part": "layout.fused_qkv",
    "heads_tiled": "layout.heads",
}
"""What the catalogue of faults calls a layout in the wrong place: `archc explain` has more."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One tensor of `a` and what `b` has of it; of what only one side has, the other name is empty."""

    a: str
    b: str
    verdict: Verdict
    layout: str = ""
    text: str = ""
    expected: str | None = None
    """The layout that it should have; None where that is not known."""
    fault: str | None = None
    deviation: Deviation | None = None
    dtypes: tuple[str, str] = ("", "")

    @property
    def good(self) -> bool:
        """Whether it is no difference."""
        return self.verdict in {"equal", "layout", "copy", "table"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where both lie, the names of their formats, and every tensor."""

    a: Path
    b: Path
    architecture: str | None
    """Of a GGUF file, held against a checkpoint folder, what it says it is."""
    known: bool
    """Whether it is known how `b` should store what `a` holds."""
    tensors: tuple[Compared, ...]

    @property
    def passed(self) -> bool:
        """Whether both hold the same weights, each as its format asks."""
        return all(one.good for one in self.tensors)


def compare_weights(a: Path, b: Path, step: Callable[[str], None]) -> Comparison:
    """Compares two sets of weights, each a checkpoint folder or a GGUF file; `step` is told every name.

    A GGUF file held against a folder is `b`, whichever comes first. No more than a pair of tensors, and copies in
    another layout, is in memory at a time. Raises IncompleteError where one of them cannot be read.
    """
    one, other = open_weights(a), open_weights(b)
    if isinstance(one, GgufWeights) and not isinstance(other, GgufWeights):
        one, other = other, one
    gguf = other if isinstance(other, GgufWeights) and not isinstance(one, GgufWeights) else None
    names = _gguf_names(one.tensors, gguf) if gguf else {}

    def expected(theirs: str) -> str | None:
        return stored_layout(gguf.architecture, theirs) if gguf else "same"

    pairs = {name: names.get(name, (name, None)) for name in one.tensors}
    pairs = {name: theirs for name, theirs in pairs.items() if theirs[0] in other.tensors}
    if not pairs:
        raise IncompleteError(
            f"no tensor of {one.place} has a counterpart in {other.place} under a name that archc knows",
            "compare checkpoints of the same model",
        )
    heads = tuple(dict.fromkeys((*one.heads, *other.heads)))
    compared: list[Compared] = []
    with one.reading() as read_one, other.reading() as read_other:
        for name, (theirs, expert) in pairs.items():
            step(name)
            b_tensor = read_other(theirs) if expert is None else _slice(read_other(theirs), expert)
            held = (one.tensors[name], other.tensors[theirs])
            compared.append(_judge((name, theirs), read_one(name), b_tensor, held, heads, expected(theirs)))
        compared += _left(one, read_one, set(pairs), "missing")
        compared += _left(other, read_other, {theirs for theirs, _ in pairs.values()}, "extra")
    return Comparison(
        one.place, other.place, gguf.architecture if gguf else None, expected("") is not None, tuple(compared)
    )


def _slice(stacked: Tensor, expert: int) -> Tensor:
    return stacked[expert] if expert < len(stacked) else stacked


def _judge(
    names: tuple[str, str],
    a: Tensor,
    b: Tensor,
    held: tuple[Held, Held],
    heads: tuple[int, ...],
    expected: str | None,
) -> Compared:
    coarser = max((one.tolerance for one in held), key=lambda tolerance: tolerance.most_rms)
    layout, apart = find_layout(a, b, coarser, heads, expected or "same")
    dtypes = (held[0].dtype, held[1].dtype)
    if layout is None:
        text = f"{list(a.shape)} and {list(b.shape)}" if a.shape != b.shape else "other numbers"
        return Compared(*names, "different", "", text, expected, None, apart, dtypes)
    if expected is None or (layout.kind == expected and _right_heads(layout, a, names, heads)):
        verdict: Verdict = "equal" if layout.kind == "same" else "layout"
        return Compared(*names, verdict, layout.kind, layout.text, expected, None, apart, dtypes)
    fault = _FAULTS.get(expected if layout.kind == "same" else layout.kind)
    return Compared(*names, "unexpected", layout.kind, layout.text, expected, fault, apart, dtypes)


def _right_heads(layout: Layout, a: Tensor, names: tuple[str, str], heads: tuple[int, ...]) -> bool:
    """Whether rows were moved within heads that the model has: q in its heads, k in its key/value heads."""
    if layout.head_rows is None or not heads:
        return True
    count = min(heads) if re.search(r"attn_k\b", names[1]) else max(heads)
    return layout.head_rows == a.shape[0] // count


def _gguf_names(tensors: Mapping[str, Held], gguf: GgufWeights) -> dict[str, tuple[str, int | None]]:
    """What llama.cpp calls the tensors of a Hugging Face checkpoint; of those stored per expert, with their number."""
    from gguf import MODEL_ARCH_NAMES, get_tensor_name_map

    kinds = [kind for kind, name in MODEL_ARCH_NAMES.items() if name == gguf.architecture]
    if not kinds:
        return {}
    table = get_tensor_name_map(kinds[0], gguf.blocks)
    found: dict[str, tuple[str, int | None]] = {}
    for name in tensors:
        expert = _EXPERT.search(name)
        theirs = table.get_name(_EXPERT.sub(".experts", name), try_suffixes=_SUFFIXES)
        if theirs is not None:
            found[name] = (theirs, int(expert[1]) if expert else None)
    return found


def _left(weights: Weights, read: Read, paired: set[str], verdict: Verdict) -> Iterator[Compared]:
    """What only one side has: a copy of a tensor that both have (a tied head), a table, or a real difference."""
    for name, held in weights.tensors.items():
        if name in paired:
            continue
        names = (name, "") if verdict == "missing" else ("", name)
        twins = [other for other in paired if weights.tensors[other].shape == held.shape and len(held.shape) == 2]
        original = next((other for other in twins if read(other).equal(read(name))), None)
        if original is not None:
            yield Compared(*names, "copy", text=f"a copy of {original}")
        elif _TABLES.fullmatch(name):
            yield Compared(*names, "table", text="no weight")
        else:
            yield Compared(*names, verdict)
