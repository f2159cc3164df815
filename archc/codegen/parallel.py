"""How a generated module is split over several processes: what `parallelize` prints, and what stays whole.

A part is split where a process's share of it gives that share of the output and of every gradient, by torch's DTensor.
A part of which that is not known stays whole on every process, which is always right. Whether sizes divide is asked in
the module, which alone knows how many processes there are.
"""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from archc.architecture.model import Layer
from archc.codegen.attention import AttentionView
from archc.codegen.experts import ExpertsView
from archc.codegen.feed_forward import FeedForwardView
from archc.codegen.naming import LINE, fitted
from archc.codegen.part_view import FfnView, MixerView
from archc.parts.attention import Attention
from archc.parts.base import FfnPart, MixerPart, Part
from archc.parts.ends import Head
from archc.parts.feed_forward import FeedForward

_FUNCTION = 4
"""Columns that the body of a function is indented by."""


@dataclass(frozen=True, slots=True)
class HeadsView:
    """Attention whose heads are split, in all layers that have attention."""

    module: str
    """What layers call it."""
    sizes: tuple[tuple[str, str], ...]
    """Query heads and key/value heads of layers, as constants; several where layers differ."""
    grouped: bool
    """Whether several query heads share a key/value head."""
    columns: tuple[str, ...]
    """Projections of which each process computes its heads."""
    keys: tuple[str, ...]
    """Those that make key/value heads, of which there may be fewer than processes."""
    norms: tuple[str, ...]
    """Norms that have one weight for all heads."""
    numbered: Mapping[str, tuple[str, ...]]
    """Parameters with a number for each head, by the classes that have some."""

    @property
    def kv_heads(self) -> str:
        """Key/value heads of the first layers."""
        return self.sizes[0][1]

    @property
    def may_be_few(self) -> bool:
        """Whether processes may share key/value heads: where all layers have the same numbers of heads."""
        return self.grouped and len(self.sizes) == 1

    @property
    def condition(self) -> str:
        """The statement that asks whether the processes can split the heads."""
        if self.may_be_few:
            return f"if {self.sizes[0][0]} % ranks == 0 and (kv_divide or ranks % {self.kv_heads} == 0):"
        kept = (kv_heads for _, kv_heads in self.sizes) if self.grouped else ()
        return _divided(list(dict.fromkeys((*(heads for heads, _ in self.sizes), *kept))))

    @property
    def split(self) -> Iterator[str]:
        """The statements that say how."""
        columns = self.columns if self.may_be_few else ("q", *self.keys, *self.columns[1:])
        styles = {f"{self.module}.{name}": "columns" for name in columns}
        yield _added(2 * _FUNCTION, {**styles, f"{self.module}.o": "rows"})
        if self.norms:
            norm = "SequenceParallel(sequence_dim=1, use_local_output=True)"
            yield f"by_head = {norm}"
            yield _added(2 * _FUNCTION, {f"{self.module}.{name}": "by_head" for name in self.norms})
        if self.may_be_few:
            yield f"if kv_divide:\n{' ' * 12}{_added(3 * _FUNCTION, dict.fromkeys(self.made, 'columns'))}"

    @property
    def made(self) -> tuple[str, ...]:
        """The modules that make key/value heads."""
        return tuple(f"{self.module}.{name}" for name in self.keys)


@dataclass(frozen=True, slots=True)
class WidthsView:
    """Feed-forwards that are split by their width: what layers call them, and the widths, as constants."""

    module: str
    widths: tuple[str, ...]
    columns: tuple[str, ...]

    @property
    def condition(self) -> str:
        """The statement that asks whether the processes can split them."""
        return _divided(self.widths)

    @property
    def split(self) -> str:
        """The statement that says how."""
        styles = {f"{self.module}.{name}": "columns" for name in self.columns} | {f"{self.module}.down": "rows"}
        return _added(2 * _FUNCTION, styles)


@dataclass(frozen=True, slots=True)
class SpreadView:
    """A class of mixtures whose experts are dealt out: how many there are, and the parameters with a row for each."""

    name: str
    experts: str
    parameters: tuple[str, ...]

    @property
    def condition(self) -> str:
        """The statement that asks whether the processes can share them."""
        return _divided([self.experts])


@dataclass(frozen=True, slots=True)
class ParallelView:
    """Everything that is split."""

    ends: bool
    tied: bool
    heads: HeadsView | None
    widths: tuple[WidthsView, ...]
    spread: tuple[SpreadView, ...]

    @property
    def anything(self) -> bool:
        """Whether there is anything to split."""
        return self.ends or bool(self.heads or self.widths or self.spread)

    @property
    def deals(self) -> bool:
        """Whether parameters are dealt out that modules read themselves, and must ask for their share of."""
        return bool(self.spread) or bool(self.heads and self.heads.numbered)

    def read(self, parameter: str) -> str:
        """How an attention reads a parameter with a number for each head."""
        return f"held({parameter})" if self.heads and self.heads.numbered else parameter

    @property
    def copies(self) -> bool:
        """Whether what all processes have enters what each does with it."""
        return bool(self.spread) or bool(self.heads and self.heads.may_be_few)

    @property
    def mixtures(self) -> str:
        """The type of a mixture."""
        return " | ".join(mixture.name for mixture in self.spread)

    @property
    def scores_rows(self) -> bool:
        """Whether the head is the embedding, and split with it."""
        return self.ends and self.tied

    @property
    def first(self) -> str:
        """The statement that begins the plan, with both ends."""
        found = "plan: dict[str, ParallelStyle] = "
        ends = ['"embedding": RowwiseParallel(input_layouts=Replicate())'] if self.ends else []
        ends += [] if self.tied else ['"head": ColwiseParallel(output_layouts=Replicate())']
        return found + _in_braces(_FUNCTION + len(found), _FUNCTION, ends)

    @property
    def styles(self) -> list[str]:
        """What is imported to make the plan."""
        found = {
            "ColwiseParallel": bool(self.heads or self.widths or not self.tied),
            "ParallelStyle": True,
            "RowwiseParallel": self.ends or bool(self.heads or self.widths),
            "SequenceParallel": bool(self.heads and self.heads.norms),
            "parallelize_module": True,
        }
        return [name for name, is_used in found.items() if is_used]

    @property
    def tensors(self) -> list[str]:
        """What is imported to place tensors."""
        found = {"DTensor": self.scores_rows, "Replicate": self.ends}
        return [name for name, is_used in found.items() if is_used]

    @property
    def docstring(self) -> list[str]:
        """What it splits, and what it does not."""
        heads = bool(self.heads)
        found = {
            "heads": heads,
            "the widths of feed-forwards": bool(self.widths),
            "experts": bool(self.spread),
            "the vocabulary": self.ends,
        }
        *earlier, last = (words for words, is_split in found.items() if is_split)
        shares = f"{', '.join(earlier)} and {last}" if earlier else last
        text = (
            f"Each has its share of {shares}. What they cannot share evenly is whole on all of them, as is the rest. "
            "All must begin with the same weights; all get the same logits. It comes before torch.compile, and before "
            "FSDP's `fully_shard`."
        )
        return textwrap.wrap(text, LINE - _FUNCTION)


def parallel_view(
    layers: Mapping[str, Layer],
    head: Head,
    mixers: Mapping[str, MixerView[Any]],
    ffns: Mapping[str, FfnView[Any]],
) -> ParallelView:
    """What is split of a model with these kinds of layer; the views of their parts by kind."""
    return ParallelView(
        ends=not head.tied or _plain_when_tied(head),
        tied=head.tied,
        heads=_heads([(_slot(layers[kind], MixerPart), view) for kind, view in mixers.items()]),
        widths=tuple(_widths([(_slot(layers[kind], FfnPart), view) for kind, view in ffns.items()])),
        spread=tuple(_spread(ffns.values())),
    )


def _slot(layer: Layer, kind: type[Part]) -> str:
    """What a layer calls its part of a kind."""
    return next(slot for branch in layer.branches for slot, part in branch.parts if isinstance(part, kind))


def _plain_when_tied(head: Head) -> bool:
    """Whether nothing but the embedding's matrix, which is split by rows, stands between the stream and the scores."""
    return not (head.transform or head.narrow or head.bias or head.learned_scale is not None or head.unscored)


def _heads(placed: Collection[tuple[str, MixerView[Any]]]) -> HeadsView | None:
    """Heads are split in all layers or in none, so that a cache has one rule."""
    views = [view for _, view in placed if type(view) is AttentionView and _splits_by_head(view.part)]
    modules = {module for module, _ in placed}
    if len(views) < len(placed) or len(modules) != 1:
        return None
    linears = dict.fromkeys(name for view in views for name in view.linears)
    norms = dict.fromkeys(name for view in views for name, norm in view.part.norms.items() if norm.tensors(""))
    numbered = {view.name: tuple(_numbered(view.part)) for view in views}
    return HeadsView(
        module=modules.pop(),
        sizes=tuple(dict.fromkeys((view.names.HEADS, view.names.KV_HEADS) for view in views)),
        grouped=any(view.part.group_size > 1 for view in views),
        columns=tuple(name for name in linears if name in ("q", "gate")),
        keys=tuple(name for name in linears if name in ("k", "v")),
        norms=tuple(norms),
        numbered={name: parameters for name, parameters in numbered.items() if parameters},
    )


def _splits_by_head(part: Attention) -> bool:
    """Whether nothing in it reaches across heads, and neighbours share key/value heads."""
    over_all = part.output_norm is not None or (part.qk_norm_over == "width" and bool(part.head_norms))
    by_head = any(norm.heads is not None for norm in part.norms.values())
    tiled = part.grouping == "tiled" and 1 < part.kv_heads < part.heads
    return not (over_all or by_head or tiled or part.dynamic_mask or part.alibi)


def _numbered(part: Attention) -> Iterator[str]:
    """Its parameters with a number for each head."""
    if part.sinks != "none":
        yield "sinks"
    if part.gate is not None and part.gate.head_bias:
        yield "gate_bias"


def _widths(placed: Collection[tuple[str, FfnView[Any]]]) -> Iterator[WidthsView]:
    """Dense feed-forwards and shared experts. Those at the same place in layers are split together, or not at all."""
    places: dict[str, list[FeedForwardView]] = {}
    for module, view in placed:
        if isinstance(view, FeedForwardView):
            places.setdefault(module, []).append(view)
        elif isinstance(view, ExpertsView) and view.shared is not None:
            places.setdefault(f"{module}.shared", []).append(view.shared)
    for module, views in places.items():
        if all(_splits_by_width(view.part) for view in views):
            columns = ("gate", "up") if any(view.part.gated for view in views) else ("up",)
            yield WidthsView(module, tuple(dict.fromkeys(view.width for view in views)), columns)


def _splits_by_width(part: FeedForward) -> bool:
    """Whether nothing in it reaches across its width, and all that it learns of its width is in the matrices."""
    learned = part.factors is not None and part.factors.learned is not None
    return not (part.inner_norm or part.activation == "xielu" or learned)


def _spread(ffns: Collection[FfnView[Any]]) -> Iterator[SpreadView]:
    """Mixtures by their classes."""
    found = {view.name: view for view in ffns if isinstance(view, ExpertsView)}
    for name, view in found.items():
        matrices = (*view.matrices, "down")
        biases = tuple(f"{matrix}_bias" for matrix in matrices) if view.part.bias == "experts" else ()
        yield SpreadView(name, view.names.EXPERTS, (*matrices, *biases))


def _divided(sizes: Sequence[str]) -> str:
    """The statement that asks whether `ranks` divides all sizes."""
    if len(sizes) == 1:
        return f"if {sizes[0]} % ranks == 0:"
    return fitted(_FUNCTION, "if not any", [f"size % ranks for size in ({', '.join(sizes)})"], ":")


def _added(indent: int, styles: Mapping[str, str]) -> str:
    """The statement that adds modules and their styles to the plan."""
    entries = [f'"{module}": {style}' for module, style in styles.items()]
    return f"plan |= {_in_braces(indent + len('plan |= '), indent, entries)}"


def _in_braces(before: int, indent: int, entries: Sequence[str]) -> str:
    """A dictionary, on one line where it fits behind so many columns."""
    line = f"{{{', '.join(entries)}}}"
    if before + len(line) <= LINE:
        return line
    inner = "".join(f"{' ' * (indent + 4)}{entry},\n" for entry in entries)
    return f"{{\n{inner}{' ' * indent}}}"
