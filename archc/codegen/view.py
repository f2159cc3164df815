"""What the templates print: every decision about a generated module, made here.

A view groups the layers of an Architecture by what differs in their code. Rotary tables and
windows enter a block as arguments, so layers that differ in nothing else share one class.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

from archc.architecture.model import Architecture, Ffn, Layer, Mixer
from archc.codegen import prose
from archc.codegen.naming import LINE, Variant, literal, variants
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward
from archc.parts.norm import Norm
from archc.parts.position import Rope

ACTIVATIONS = {
    "silu": "F.silu({})",
    "gelu": "F.gelu({})",
    "gelu_tanh": 'F.gelu({}, approximate="tanh")',
    "relu": "F.relu({})",
    "relu2": "F.relu({}).square()",
}


# Fields of a scaling that act through the attention factor alone, or decide what is printed.
_INSIDE_ATTENTION_FACTOR = {
    "linear": (),
    "dynamic": (),
    "llama3": (),
    "yarn": ("attention_factor", "mscale", "mscale_all_dim", "truncate"),
    "longrope": ("attention_factor", "factor"),
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A line `NAME = value  # comment` at the top of the module."""

    name: str
    value: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class NormClass:
    """A norm class to print; LayerNorms that torch already has need none."""

    name: str
    norm: Norm

    @property
    def words(self) -> str:
        """What it does after dividing."""
        return {"plain": ", then scales them", "one_plus": ", then scales them by 1 + weight", "none": ""}[
            self.norm.weight
        ]


@dataclass(frozen=True, slots=True)
class Turn:
    """How a head is turned: which channels pair up, and whether some do not turn."""

    pairing: str
    partial: bool


@dataclass(frozen=True, slots=True)
class MixerView:
    """One attention class."""

    name: str
    constants: str
    part: Mixer
    q_norm: str | None
    k_norm: str | None
    rotate: str | None

    @property
    def template(self) -> str:
        """The partial that prints it."""
        return self.part.partial

    @property
    def summary(self) -> str:
        """The class's docstring."""
        return prose.attention_summary(self.part)


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
        return isinstance(self.part, Experts)

    @property
    def shared_name(self) -> str:
        """The class of the shared expert."""
        return self.name.replace("Experts", "SharedExpert")

    def activated(self, expression: str) -> str:
        """The activation of an expression."""
        return ACTIVATIONS[self.part.activation].format(expression)


@dataclass(frozen=True, slots=True)
class BlockView:
    """One block class: its parts' classes and the constructors of its norms (None where there is none)."""

    name: str
    layer: Layer
    mixer: MixerView
    ffn: FfnView
    norms: dict[str, str]
    stream: str
    branch: str

    @property
    def summary(self) -> str:
        """The class's docstring."""
        return prose.block_summary(self.layer)


@dataclass(frozen=True, slots=True)
class ModuleView:
    """Everything that `model.py.j2` prints."""

    architecture: Architecture
    constants: tuple[Constant, ...]
    norm_classes: tuple[NormClass, ...]
    ropes: tuple[Variant[Rope], ...]
    turns: tuple[Variant[Turn], ...]
    windows: tuple[Variant[int | None], ...]
    mixers: tuple[MixerView, ...]
    ffns: tuple[FfnView, ...]
    blocks: tuple[BlockView, ...]
    block_of: dict[str, str]
    cache_shapes: tuple[Variant[tuple[int, int]], ...]
    final_norm: str
    kinds: tuple[str, ...]

    @property
    def experts(self) -> FfnView | None:
        """The mixture whose routing the load-balancing loss looks at."""
        return next((view for view in self.ffns if view.routed), None)

    @property
    def kinds_expression(self) -> str:
        """The kind of every layer as a Python expression: (("local",) * 5 + ("global",)) * 3."""
        period = next(n for n in range(1, len(self.kinds) + 1) if self.kinds[:n] * (len(self.kinds) // n) == self.kinds)
        terms = []
        for kind, run in groupby(self.kinds[:period]):
            count = len(list(run))
            terms.append(f"({literal(kind)},)" + (f" * {count}" if count > 1 else ""))
        if period == len(self.kinds):
            line = " + ".join(terms)
            return line if len(line) + len("LAYER_KINDS = ") <= LINE else "(\n    " + "\n    + ".join(terms) + "\n)"
        return f"({' + '.join(terms)}) * {len(self.kinds) // period}"

    @property
    def some_without_rope(self) -> bool:
        """Whether some layers turn their heads and some do not."""
        roped = {kind for variant in self.ropes for kind in variant.kinds}
        return bool(roped) and roped != set(self.block_of)

    @property
    def rotation_of(self) -> dict[str, str]:
        """The variable that holds each kind's rotation table."""
        names = dict.fromkeys(self.block_of, "None")
        for variant in self.ropes:
            names |= dict.fromkeys(variant.kinds, f"{variant.function_prefix}rotation")
        return names

    @property
    def attention_factors_matter(self) -> bool:
        """Whether some rope scales its cosines and sines."""
        return any(variant.value.attention_factor != 1 for variant in self.ropes)

    @property
    def any_length_matters(self) -> bool:
        """Whether some frequencies depend on the length of the input."""
        return any(self.length_matters(variant.value) for variant in self.ropes)

    @property
    def needs_math(self) -> bool:
        """Whether some frequencies take logarithms or turns."""
        return any(v.value.scaling is not None and v.value.scaling.kind in ("llama3", "yarn") for v in self.ropes)

    @staticmethod
    def length_matters(rope: Rope) -> bool:
        """Whether a rope's frequencies depend on the length of the input."""
        return rope.scaling is not None and rope.scaling.kind in ("dynamic", "longrope")

    def rotary_dim_name(self, variant: Variant[Rope]) -> str:
        """The constant that says how many channels of a head a rope turns."""
        if variant.value.rotary_dim < variant.value.head_dim:
            return f"{variant.constant_prefix}ROTARY_DIM"
        mixer = next(view for view in self.mixers if view.part.head_dim == variant.value.head_dim)
        return f"{mixer.constants}HEAD_DIM"


def build_view(architecture: Architecture) -> ModuleView:
    """The view of an Architecture."""
    layers = architecture.layers
    by_kind = {layer.kind: layer for layer in layers}
    norms = _Norms(architecture)
    ropes = variants((k, layer.mixer.rope) for k, layer in by_kind.items() if layer.mixer.rope is not None)
    turns = variants((variant.kinds[0], _turn(variant.value)) for variant in ropes)
    windows = variants((k, layer.mixer.window) for k, layer in by_kind.items())
    mixer_variants = variants((k, _without_arguments(layer.mixer)) for k, layer in by_kind.items())
    ffn_variants = variants((k, layer.ffn) for k, layer in by_kind.items())

    mixers = {v.value: _mixer(v, norms, turns) for v in mixer_variants}
    ffns = {v.value: FfnView(_ffn_name(v), v.constant_prefix, v.value) for v in ffn_variants}
    block_variants = variants((k, _without_windows(layer)) for k, layer in by_kind.items())
    blocks = [_block(v, mixers, ffns, norms) for v in block_variants]
    cache_shapes = variants((k, (layer.mixer.kv_heads, layer.mixer.head_dim)) for k, layer in by_kind.items())
    uniform = len(ropes) <= 1 and len(windows) == 1 and len(blocks) == 1 and len(cache_shapes) == 1

    return ModuleView(
        architecture=architecture,
        constants=(
            *_sizes(architecture),
            *(c for view in mixers.values() for c in _mixer_constants(view)),
            *(c for v in windows for c in _window_constants(v)),
            *(c for v in ropes for c in _rope_constants(v)),
            *(c for view in ffns.values() for c in _ffn_constants(view)),
            *norms.constants(),
            *_end_constants(architecture),
        ),
        norm_classes=tuple(norms.classes.values()),
        ropes=tuple(ropes),
        turns=tuple(turns),
        windows=tuple(windows),
        mixers=tuple(mixers.values()),
        ffns=tuple(ffns.values()),
        blocks=tuple(blocks),
        block_of={kind: view.name for v, view in zip(block_variants, blocks, strict=True) for kind in v.kinds},
        cache_shapes=tuple(cache_shapes),
        final_norm=norms.constructor(architecture.final_norm, "WIDTH"),
        kinds=() if uniform else tuple(layer.kind for layer in layers),
    )


def _turn(rope: Rope) -> Turn:
    return Turn(rope.pairing, rope.rotary_dim < rope.head_dim)


def _without_arguments(mixer: Mixer) -> Mixer:
    """The mixer without what its class is given from outside: which keys are visible, which table turns it."""
    rope = mixer.rope
    if rope is not None:
        turn_only = Rope(2.0, rope.pairing, rope.rotary_dim, rope.head_dim, None, 1.0)
        return replace(mixer, window=None, rope=turn_only)
    return replace(mixer, window=None)


def _without_windows(layer: Layer) -> Layer:
    branches = tuple(
        replace(branch, part=_without_arguments(branch.part)) if isinstance(branch.part, Mixer) else branch
        for branch in layer.branches
    )
    return replace(layer, kind="", branches=branches)


def _ffn_name(variant: Variant[Ffn]) -> str:
    return variant.class_prefix + ("Experts" if isinstance(variant.value, Experts) else "FeedForward")


def _mixer(variant: Variant[Mixer], norms: _Norms, turns: list[Variant[Turn]]) -> MixerView:
    part, constants = variant.value, variant.constant_prefix
    sizes = ("HEAD_DIM", "HEAD_DIM") if part.qk_norm_over == "head" else ("Q_WIDTH", "KV_WIDTH")
    rotate = None
    if part.rope is not None:
        turn = next(v for v in turns if v.value == _turn(part.rope))
        rotate = f"{turn.function_prefix}rotate"
    return MixerView(
        name=f"{variant.class_prefix}Attention",
        constants=constants,
        part=part,
        q_norm=norms.constructor(part.q_norm, constants + sizes[0]) if part.q_norm else None,
        k_norm=norms.constructor(part.k_norm, constants + sizes[1]) if part.k_norm else None,
        rotate=rotate,
    )


def _block(
    variant: Variant[Layer], mixers: dict[Mixer, MixerView], ffns: dict[Ffn, FfnView], norms: _Norms
) -> BlockView:
    layer = variant.value
    found: dict[str, str] = {}
    if layer.shared_norm:
        found["norm"] = norms.constructor(layer.shared_norm, "WIDTH")
    for branch in layer.branches:
        if branch.pre_norm:
            found[f"{branch.part.slot}_norm"] = norms.constructor(branch.pre_norm, "WIDTH")
        if branch.post_norm:
            found[f"{branch.part.slot}_post_norm"] = norms.constructor(branch.post_norm, "WIDTH")
    return BlockView(
        name=f"{variant.class_prefix}Block",
        layer=layer,
        mixer=mixers[layer.mixer],
        ffn=ffns[layer.ffn],
        norms=found,
        stream="x_BTD" if layer.stream_scale == 1 else f"{literal(layer.stream_scale)} * x_BTD",
        branch="" if layer.branch_scale == 1 else f"{literal(layer.branch_scale)} * ",
    )


class _Norms:
    """Names for the norms of a model: classes by convention, constants by eps."""

    def __init__(self, architecture: Architecture) -> None:
        self.architecture = architecture
        self.classes: dict[tuple[str, str, bool], NormClass] = {}
        self.eps: dict[float, str] = {architecture.final_norm.eps: "NORM_EPS"}
        for layer in architecture.layers:
            for norm in (layer.mixer.q_norm, layer.mixer.k_norm):
                if norm is not None:
                    self.eps.setdefault(norm.eps, "QK_NORM_EPS" if "QK_NORM_EPS" not in self.eps.values() else "")

    def constants(self) -> list[Constant]:
        return [Constant(name, literal(eps)) for eps, name in self.eps.items() if name]

    def constructor(self, norm: Norm, size: str) -> str:
        """The expression that makes the norm over `size` channels."""
        eps = self.eps.get(norm.eps) or literal(norm.eps)
        if norm.kind == "layernorm" and norm.weight != "one_plus":
            extra = "" if norm.bias else ", bias=False"
            if norm.weight == "none":
                extra = ", elementwise_affine=False"
            return f"nn.LayerNorm({size}, eps={eps}{extra})"
        return f"{self._class(norm).name}({size}, {eps})"

    def _class(self, norm: Norm) -> NormClass:
        key = (norm.kind, norm.weight, norm.bias)
        if key not in self.classes:
            stem = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}[norm.kind]
            prefix = {"plain": "", "one_plus": "OnePlus", "none": "Bare"}[norm.weight]
            self.classes[key] = NormClass(
                ("Biased" if norm.bias and norm.kind == "rmsnorm" else "") + prefix + stem, norm
            )
        return self.classes[key]


def _sizes(architecture: Architecture) -> list[Constant]:
    return [
        Constant("VOCAB_SIZE", literal(architecture.vocab_size)),
        Constant("WIDTH", literal(architecture.hidden_size), "channels of the residual stream"),
        Constant("LAYERS", literal(len(architecture.layers))),
        Constant("CONTEXT", literal(architecture.context), "positions the model is meant for"),
    ]


def _mixer_constants(view: MixerView) -> list[Constant]:
    part, p = view.part, view.constants
    constants = [
        Constant(f"{p}HEADS", literal(part.heads)),
        Constant(f"{p}KV_HEADS", literal(part.kv_heads), "key/value heads"),
        Constant(f"{p}HEAD_DIM", literal(part.head_dim), "channels of a head"),
        Constant(f"{p}Q_WIDTH", f"{p}HEADS * {p}HEAD_DIM"),
        Constant(f"{p}KV_WIDTH", f"{p}KV_HEADS * {p}HEAD_DIM"),
    ]
    if part.scale == part.head_dim**-0.5:
        constants.append(Constant(f"{p}ATTENTION_SCALE", f"{p}HEAD_DIM**-0.5"))
    else:
        constants.append(Constant(f"{p}ATTENTION_SCALE", literal(part.scale), "not HEAD_DIM**-0.5"))
    if part.softcap is not None:
        constants.append(Constant(f"{p}ATTENTION_SOFTCAP", literal(part.softcap)))
    return constants


def _window_constants(variant: Variant[int | None]) -> list[Constant]:
    if variant.value is None:
        return []
    comment = "positions a query sees, its own included"
    return [Constant(f"{variant.constant_prefix}WINDOW", literal(variant.value), comment)]


def _rope_constants(variant: Variant[Rope]) -> list[Constant]:
    rope, p = variant.value, variant.constant_prefix
    constants = [Constant(f"{p}ROPE_BASE", literal(rope.base))]
    if rope.rotary_dim < rope.head_dim:
        constants.append(Constant(f"{p}ROTARY_DIM", literal(rope.rotary_dim), "channels of a head that rotate"))
    if rope.scaling is not None:
        for name, value in rope.scaling:
            if isinstance(value, int | float) and name not in _INSIDE_ATTENTION_FACTOR[rope.scaling.kind]:
                constants.append(Constant(f"{p}ROPE_{name.upper()}", literal(value)))
            elif isinstance(value, tuple):
                table = "".join(f"    {literal(float(entry))},\n" for entry in value)
                constants.append(Constant(f"{p}ROPE_{name.upper()}", f"(\n{table})"))
    if rope.attention_factor != 1:
        comment = "multiplies cosines and sines"
        constants.append(Constant(f"{p}ROPE_ATTENTION_FACTOR", literal(rope.attention_factor), comment))
    return constants


def _ffn_constants(view: FfnView) -> list[Constant]:
    part, p = view.part, view.constants
    if isinstance(part, FeedForward):
        return [Constant(f"{p}FFN_WIDTH", literal(part.width))]
    constants = [
        Constant(f"{p}EXPERTS", literal(part.experts)),
        Constant(f"{p}TOP_K", literal(part.top_k), "experts a token is sent to"),
        Constant(f"{p}EXPERT_WIDTH", literal(part.width)),
    ]
    if part.scale != 1:
        constants.append(Constant(f"{p}ROUTER_SCALE", literal(part.scale)))
    if part.shared is not None:
        constants.append(Constant(f"{p}SHARED_WIDTH", literal(part.shared.width)))
    return constants


def _end_constants(architecture: Architecture) -> list[Constant]:
    constants = []
    scale, head = architecture.embedding.scale, architecture.head
    if scale is not None:
        root = scale == architecture.hidden_size**0.5
        constants.append(Constant("EMBEDDING_SCALE", "WIDTH**0.5" if root else literal(scale)))
    if head.scale is not None:
        constants.append(Constant("LOGIT_SCALE", literal(head.scale)))
    if head.softcap is not None:
        constants.append(Constant("LOGIT_SOFTCAP", literal(head.softcap)))
    return constants
