"""What the templates print: every decision about a generated module, made here.

A view groups the layers of an Architecture by what differs in their code. Rotary tables and
windows enter a block as arguments, so layers that differ in nothing else share one class.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.codegen import prose
from archc.codegen.constants import (
    Constant,
    end_constants,
    ffn_constants,
    mixer_constants,
    rope_constants,
    scaling_constants,
    size_constants,
    window_constants,
)
from archc.codegen.naming import LINE, LONGEST_CLASS_PREFIX, Variant, labels, literal, variants
from archc.codegen.norms import NormCall, NormClass, Norms
from archc.codegen.plain import Ffn, attention_of, ffn_of, residual_of
from archc.codegen.rotation import RopeView, ScalingView, Turn, rope_views, scaling_variants, turn_of, turn_variants
from archc.parts.attention import Attention

T = TypeVar("T", bound=Hashable)
V = TypeVar("V")
ACTIVATIONS = {
    "silu": "F.silu({})",
    "gelu": "F.gelu({})",
    "gelu_tanh": 'F.gelu({}, approximate="tanh")',
    "relu": "F.relu({})",
    "relu2": "F.relu({}).square()",
}


@dataclass(frozen=True, slots=True)
class MixerView:
    """One attention class."""

    name: str
    constants: str
    part: Attention
    q_norm: NormCall | None
    k_norm: NormCall | None
    rotate: str | None

    @property
    def template(self) -> str:
        """The partial that prints it."""
        return self.part.partial

    @property
    def summary(self) -> str:
        """The class's docstring."""
        return prose.attention_summary(self.part)

    @property
    def normed(self) -> str:
        """What the norm of queries and keys runs over, and when: `width before`, `head after` … or nothing."""
        if self.q_norm is None:
            return ""
        after = self.rotate is not None and self.part.qk_norm_order == "after_rope"
        return f"{self.part.qk_norm_over} {'after' if after else 'before'}"

    @property
    def group(self) -> str:
        """How many query heads share a key/value head, as an expression."""
        return f"{self.constants}HEADS // {self.constants}KV_HEADS"


@dataclass(frozen=True, slots=True)
class FfnView:
    """One feed-forward or mixture class."""

    name: str
    constants: str
    part: Ffn

    @property
    def template(self) -> str:
        """The partial that prints it."""
        return self.part.partial

    @property
    def routed(self) -> bool:
        """Whether a router decides what a token passes through."""
        return self.part.routed is not None

    @property
    def shared_name(self) -> str:
        """The class of the shared expert."""
        return self.name.removesuffix("Experts") + "SharedExpert"

    def activated(self, expression: str) -> str:
        """The activation of an expression."""
        return ACTIVATIONS[self.part.activation].format(expression)


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block class: its parts' classes and how its norms are made (only those that it has)."""

    name: str
    layer: Layer
    mixer: MixerView
    ffn: FfnView
    norms: Mapping[str, NormCall]
    stream: str
    branch: str

    @property
    def summary(self) -> str:
        """The class's docstring."""
        return prose.block_summary(self.layer)


@dataclass(frozen=True, slots=True)
class ModuleView:
    """Everything that `model.py.j2` prints. A mapping by kind is empty where all kinds agree."""

    architecture: Architecture
    constants: tuple[Constant, ...]
    norm_classes: tuple[NormClass, ...]
    ropes: tuple[RopeView, ...]
    turns: tuple[Variant[Turn], ...]
    mixers: tuple[MixerView, ...]
    ffns: tuple[FfnView, ...]
    blocks: tuple[BlockView, ...]
    final_norm: NormCall
    block_of: Mapping[str, str]
    rotation_of: Mapping[str, str]
    window_of: Mapping[str, str]
    cache_shape_of: Mapping[str, tuple[str, str]]
    kinds: tuple[str, ...]

    @property
    def scalings(self) -> tuple[ScalingView, ...]:
        """The functions that give frequencies."""
        return tuple(dict.fromkeys(rope.scaling for rope in self.ropes))

    @property
    def mixtures(self) -> tuple[FfnView, ...]:
        """The feed-forwards with a router, whose routing the load-balancing loss looks at."""
        return tuple(view for view in self.ffns if view.routed)

    @property
    def routing_type(self) -> str:
        """What the routers' logits are collected in; where mixtures differ, beside how many experts they choose."""
        return "list[Tensor]" if len(self.mixtures) <= 1 else "list[tuple[Tensor, int]]"

    @property
    def by_kind(self) -> bool:
        """Whether the code asks for the kind of a layer."""
        return bool(self.block_of or self.rotation_of or self.window_of or self.cache_shape_of)

    @property
    def kinds_expression(self) -> str:
        """The kind of every layer as a Python expression: (("local",) * 5 + ("global",)) * 3."""
        count = len(self.kinds)
        period = next(n for n in range(1, count + 1) if self.kinds[:n] * (count // n) == self.kinds)
        line = _sum_of_runs(self.kinds[:period])
        if period < count:
            line = f"{f'({line})' if ' + ' in line else line} * {count // period}"
        if len("LAYER_KINDS = ") + len(line) <= LINE:
            return line
        rows = [f"*({literal(kind)},) * {run}" if run > 1 else literal(kind) for kind, run in _runs(self.kinds)]
        return "(\n" + "".join(f"    {row},\n" for row in rows) + ")"

    @property
    def block_arguments(self) -> list[str]:
        """What the loop over layers hands to a block."""
        rotation = ["rotation_by_kind[kind]"] if self.rotation_of else ["rotation"] if self.ropes else []
        visible = "visible_by_kind[kind]" if self.window_of else "visible_BTS"
        return ["x_BTD", *rotation, visible, "cache", *(["routing"] if self.mixtures else [])]

    @property
    def only_window(self) -> str:
        """The constant that says how far all layers see, if they see equally far and not all the way."""
        return "WINDOW" if not self.window_of and attention_of(self.architecture.layers[0]).window else ""

    @property
    def some_without_rope(self) -> bool:
        """Whether some layers turn their heads and some do not."""
        return "None" in self.rotation_of.values()

    @property
    def attention_factors_matter(self) -> bool:
        """Whether some rope scales its cosines and sines."""
        return any(rope.attention_factor != "1.0" for rope in self.ropes)

    @property
    def length_matters(self) -> bool:
        """Whether some frequencies depend on the length of the input."""
        return any(scaling.length_matters for scaling in self.scalings)

    @property
    def soft_caps(self) -> bool:
        """Whether some scores or logits are capped."""
        return self.architecture.head.softcap is not None or any(view.part.softcap for view in self.mixers)

    @property
    def needs_math(self) -> bool:
        """Whether some frequencies take logarithms or count turns."""
        return any(scaling.rule is not None and scaling.rule.needs_math for scaling in self.scalings)


def _runs(kinds: Sequence[str]) -> list[tuple[str, int]]:
    return [(kind, len(list(run))) for kind, run in groupby(kinds)]


def _sum_of_runs(kinds: Sequence[str]) -> str:
    runs = _runs(kinds)
    if 1 < len(runs) == len(kinds):
        return f"({', '.join(map(literal, kinds))})"
    return " + ".join(f"({literal(kind)},)" + (f" * {run}" if run > 1 else "") for kind, run in runs)


def build_view(architecture: Architecture) -> ModuleView:
    """The view of an Architecture."""
    label = labels(layer.kind for layer in architecture.layers)
    kinds = tuple(label[layer.kind] for layer in architecture.layers)
    by_kind = {label[layer.kind]: layer for layer in architecture.layers}
    assert architecture.final_norm is not None  # E210
    norms = Norms(architecture, architecture.final_norm)
    attention = {kind: attention_of(layer) for kind, layer in by_kind.items()}

    ropes = variants((kind, part.rope) for kind, part in attention.items() if part.rope is not None)
    turns = turn_variants(ropes)
    windows = variants((kind, part.window) for kind, part in attention.items())
    shapes = variants((kind, (part.kv_heads, part.head_dim)) for kind, part in attention.items())
    mixers = variants((kind, _without_arguments(part)) for kind, part in attention.items())
    ffns = variants((kind, ffn_of(layer)) for kind, layer in by_kind.items())
    layers = variants(((kind, _without_windows(layer)) for kind, layer in by_kind.items()), LONGEST_CLASS_PREFIX)

    mixer_views = {variant.value: _mixer(variant, norms, turns) for variant in mixers}
    ffn_views = {variant.value: _ffn(variant) for variant in ffns}
    blocks = [_block(variant, mixer_views, ffn_views, norms) for variant in layers]
    final_norm = norms.call(architecture.final_norm, "WIDTH")
    head_dims = {view.part.head_dim: f"{view.constants}HEAD_DIM" for view in reversed(mixer_views.values())}
    rope_list = rope_views(ropes, head_dims)
    rotations = dict.fromkeys(kinds, "None") | {kind: rope.variable for rope in rope_list for kind in rope.kinds}

    return ModuleView(
        architecture=architecture,
        constants=(
            *size_constants(architecture),
            *(c for v in mixers for c in mixer_constants(v.value, v.constant_prefix)),
            *(c for v in windows for c in window_constants(v.value, v.constant_prefix)),
            *(c for v in ropes for c in rope_constants(v.value, v.constant_prefix)),
            *(c for v in scaling_variants(ropes) for c in scaling_constants(*v.value, v.constant_prefix)),
            *(c for v in ffns for c in ffn_constants(v.value, v.constant_prefix)),
            *norms.constants(),
            *end_constants(architecture),
        ),
        norm_classes=tuple(norms.classes.values()),
        ropes=tuple(rope_list),
        turns=tuple(turns),
        mixers=tuple(mixer_views.values()),
        ffns=tuple(ffn_views.values()),
        blocks=tuple(blocks),
        final_norm=final_norm,
        block_of=_where_kinds_differ(layers, [view.name for view in blocks]),
        rotation_of=rotations if len(set(rotations.values())) > 1 else {},
        window_of=_where_kinds_differ(windows, [f"{v.constant_prefix}WINDOW" if v.value else "" for v in windows]),
        cache_shape_of=_where_kinds_differ(shapes, [(literal(v.value[0]), literal(v.value[1])) for v in shapes]),
        kinds=kinds,
    )


def _where_kinds_differ(found: Sequence[Variant[T]], values: Sequence[V]) -> dict[str, V]:
    """The value of each kind, or nothing where there is but one."""
    pairs = zip(found, values, strict=True)
    return {kind: value for variant, value in pairs for kind in variant.kinds} if len(found) > 1 else {}


def _without_arguments(mixer: Attention) -> Attention:
    """The mixer without what its class is given from outside: which keys are visible, which table turns it."""
    rope = mixer.rope
    if rope is not None:
        rope = replace(rope, base=2.0, scaling=None, attention_factor=1.0)
    return replace(mixer, window=None, window_rows="dropped", rope=rope)


def _without_windows(layer: Layer) -> Layer:
    mixing, feeding = layer.branches
    mixing = replace(mixing, parts=((mixing.slot, _without_arguments(attention_of(layer))),))
    return replace(layer, kind="", branches=(mixing, feeding))


def _mixer(variant: Variant[Attention], norms: Norms, turns: Sequence[Variant[Turn]]) -> MixerView:
    part, p = variant.value, variant.constant_prefix
    q_size, k_size = ("HEAD_DIM", "HEAD_DIM") if part.qk_norm_over == "head" else ("Q_WIDTH", "KV_WIDTH")
    rotate = [f"{turn.function_prefix}rotate" for turn in turns if part.rope and turn.value == turn_of(part.rope)]
    return MixerView(
        name=f"{variant.class_prefix}Attention",
        constants=p,
        part=part,
        q_norm=norms.call(part.q_norm, p + q_size) if part.q_norm else None,
        k_norm=norms.call(part.k_norm, p + k_size) if part.k_norm else None,
        rotate=rotate[0] if rotate else None,
    )


def _ffn(variant: Variant[Ffn]) -> FfnView:
    name = "Experts" if variant.value.routed else "FeedForward"
    return FfnView(variant.class_prefix + name, variant.constant_prefix, variant.value)


def _block(
    variant: Variant[Layer], mixers: Mapping[Attention, MixerView], ffns: Mapping[Ffn, FfnView], norms: Norms
) -> BlockView:
    layer, residual = variant.value, residual_of(variant.value)
    found = {"norm": norms.call(layer.shared_norm, "WIDTH")} if layer.shared_norm else {}
    for branch in layer.branches:
        for name, norm in (("norm", branch.pre_norm), ("post_norm", branch.post_norm)):
            if norm:
                found[f"{branch.slot}_{name}"] = norms.call(norm, "WIDTH")
    return BlockView(
        name=f"{variant.class_prefix}Block",
        layer=layer,
        mixer=mixers[attention_of(layer)],
        ffn=ffns[ffn_of(layer)],
        norms=found,
        stream="x_BTD" if residual.stream == 1 else f"{literal(residual.stream)} * x_BTD",
        branch="" if residual.branch == 1 else f"{literal(residual.branch)} * ",
    )
