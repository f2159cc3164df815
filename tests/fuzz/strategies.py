"""Random specs, made of the annotations of the language itself: a new field is drawn as soon as it is declared.

Annotations say what a field may hold; they do not say which numbers fit together. `TOGETHER` has small numbers for the
fields that have to: any of its heads is a multiple of any of its kv_heads, and so on. Specs that archc refuses with a
diagnostic all the same are discarded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from msgspec import NODEFAULT, Meta, structs

from archc.parts.attention_fields import AttentionFields
from archc.parts.base import Fields
from archc.parts.ends import EmbeddingFields, LogitsFields
from archc.parts.experts import MoeFields, SharedExpertFields
from archc.parts.feed_forward import GatedFields, MlpFields
from archc.parts.kinds import KINDS, PARTS, fields_of
from archc.parts.norm import NormFields
from archc.parts.position import LearnedFields, RopeFields, SinusoidalFields
from archc.parts.residual import ResidualFields
from archc.parts.router import RouterFields
from archc.spec.language import BranchHead, Header

Tree = dict[str, Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]
Drawn = TypeVar("Drawn")

TOGETHER: Mapping[str, tuple[int, ...]] = {
    "hidden_size": (24, 48, 72),
    "vocab_size": (40, 97),
    "context": (16, 33),
    "trained_context": (16, 33),
    "original_context": (8, 16),
    "heads": (4, 6, 12),
    "kv_heads": (1, 2),
    "key_heads": (1, 2),
    "value_heads": (2, 4, 6),
    "head_dim": (2, 4, 8, 10, 12),
    "value_dim": (2, 4, 8, 10, 12),
    "rope_dim": (2, 4, 6),
    "nope_dim": (2, 5, 8),
    "width": (12, 24, 36, 60),
    "experts": (8, 16),
    "top_k": (1, 2),
    "groups": (1, 2),
    "chosen": (1, 2),
    "blocks": (1, 2, 3, 4),
    "output_groups": (1, 2),
    "row_width": (3, 8),
    "rows": (8, 16),
    "columns": (8, 16),
    "layers": (1, 2, 3),
}
FEW = 4
"""Fields with a default that a section states at most."""
NAMES = ("a", "b", "c")
BY_HAND = {"archc", "name", "family", "layers", "norm"}
"""Keys of a header that are not drawn field by field."""


def numbers(name: str, said: Mapping[str, Any]) -> st.SearchStrategy[int]:
    """Small whole numbers within the bounds of a field, mostly those that fit together; now and then its largest."""
    low = said["ge"] if "ge" in said else said["gt"] + 1 if "gt" in said else -3
    high = said["le"] if "le" in said else said["lt"] - 1 if "lt" in said else low + 2**40
    fitting = [value for value in TOGETHER.get(name, ()) if low <= value <= high]
    small = st.integers(low, min(high, low + 40))
    if fitting:
        return st.integers(0, 11).flatmap(lambda roll: small if roll == 0 else st.sampled_from(fitting))
    return st.integers(0, 30).flatmap(
        lambda roll: st.just(high) if roll == 30 else st.integers(low, min(high, low + 7))
    )


def fractions(said: Mapping[str, Any]) -> st.SearchStrategy[float]:
    """Numbers within the bounds of a field: plain ones, and those that are nearest to the bounds."""
    low, high = said.get("ge", said.get("gt", -9.0)), said.get("le", said.get("lt", 1e9))
    plain = [value for value in (1e-6, 0.25, 0.5, 1.0, 1.5, 2.0, 40.0, 1e4) if low < value < high]
    bounds = [float(said[name]) for name in ("ge", "le") if name in said]
    return st.sampled_from([*plain, *bounds, low + (high - low) / 4])


def values(name: str, kind: Any, said: Mapping[str, Any] | None = None) -> st.SearchStrategy[Any]:
    """What a field of that name and annotation may hold, as YAML would give it."""
    said = said or {}
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        stated = {bound: value for meta in arguments[1:] if isinstance(meta, Meta) for bound, value in bounds(meta)}
        return values(name, arguments[0], {**said, **stated})
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin in (Union, UnionType):
        return st.one_of([values(name, option, said) for option in arguments if option is not NoneType])
    if origin is tuple:
        least = said.get("min_length", 0)
        return st.lists(values(name, arguments[0]), min_size=least, max_size=max(2, least))
    if origin in (dict, Mapping):
        return st.dictionaries(st.sampled_from(NAMES), values(name, arguments[1]), max_size=2)
    if isinstance(kind, type) and issubclass(kind, Fields):
        return section(kind)
    if kind in (int, float):
        return numbers(name, said) if kind is int else fractions(said)
    assert kind in (bool, str), f"{name} holds {kind}, of which there is no strategy"
    return st.booleans() if kind is bool else st.sampled_from(NAMES)


def bounds(meta: Meta) -> list[tuple[str, Any]]:
    """The bounds that an annotation states."""
    stated = ((bound, getattr(meta, bound)) for bound in ("gt", "ge", "lt", "le", "min_length"))
    return [(bound, value) for bound, value in stated if value is not None]


@cache
def section(model: type[Fields], only: tuple[str, ...] | None = None) -> st.SearchStrategy[Tree]:
    """A section: every field that it needs, and a few of the others, or of those of them that are named."""
    hints = get_type_hints(model, include_extras=True)
    declared = [field for field in structs.fields(model) if model is not Header or field.name not in BY_HAND]
    needed = {f.name: f for f in declared if f.default is NODEFAULT and f.default_factory is NODEFAULT}
    known = {f.name: values(f.name, hints[f.name]) for f in declared if f.name != "kind" or "kind" not in needed}
    others = [name for name in known if name not in needed and (only is None or name in only)]
    tag = model.__struct_config__.tag

    @st.composite
    def drawn(draw: Draw) -> Tree:
        stated = draw(st.lists(st.sampled_from(others), max_size=FEW, unique=True)) if others else []
        found: Tree = {name: draw(known[name]) for name in (*(n for n in needed if n in known), *stated)}
        if tag is not None or "kind" in needed:
            found["kind"] = tag if tag is not None else draw(values("kind", hints["kind"]))
        return found

    return drawn()


def of_kind(section_name: str, kind: str) -> st.SearchStrategy[Tree]:
    """A section of that kind."""
    return section(fields_of(section_name, kind))


def of_any_kind(section_name: str) -> st.SearchStrategy[Tree]:
    """A section of a kind that is drawn too."""
    return st.one_of([of_kind(section_name, kind) for kind in KINDS[section_name]])


def layer(draw: Draw, forced: Tree) -> Tree:
    """The sections of a layer: position, mixers and a feed-forward, as far as `forced` does not state them."""
    position = st.one_of(st.none(), of_kind("position", "rope"), of_any_kind("position"))
    found: Tree = {"norm": draw(section(NormFields)), "position": draw(position)}
    mixer = draw(st.sampled_from(("attention", "mixer", "both")))
    if mixer != "mixer" or "attention" in forced:
        found["attention"] = draw(st.one_of(of_kind("attention", "gqa"), of_any_kind("attention")))
    if mixer != "attention" or "mixer" in forced:
        found["mixer"] = draw(of_any_kind("mixer"))
    found["ffn"] = draw(st.one_of(of_any_kind("ffn"), of_any_kind("ffn"), st.none()))
    if draw(st.booleans()):
        found["residual"] = draw(section(ResidualFields))
    return {**found, **forced}


def layers(draw: Draw, sections: Tree) -> int | Tree:
    """Equal layers, or two kinds, the second of which states some sections anew."""
    count: int = draw(st.integers(1, 3))
    if draw(st.booleans()):
        return count
    anew = {"attention": of_any_kind("attention"), "ffn": of_any_kind("ffn"), "norm": section(NormFields)}
    names = draw(st.lists(st.sampled_from(sorted(anew)), max_size=2, unique=True))
    other = {name: draw(anew[name]) for name in names if sections.get(name) is not None}
    return {"count": count + 2, "kinds": {"one": None, "two": other}, "pattern": f"{count}*one, one+two, two"}


def block(draw: Draw, sections: Tree) -> list[Tree]:
    """Branches, each with some of the parts that the sections declare."""
    parts = [name for name in PARTS if sections.get(name) is not None]
    chosen = draw(st.lists(st.lists(st.sampled_from(parts), min_size=1, unique=True), min_size=1, max_size=3))
    return [
        {**{name: {} for name in names}, **(draw(section(BranchHead)) if draw(st.booleans()) else {})}
        for names in chosen
    ]


@st.composite
def specs(draw: Draw, forced: Callable[[Draw], tuple[Tree, Tree]]) -> Tree:
    """A spec; `forced` draws keys of its header and sections of its layers that are not left to chance."""
    header, sections = forced(draw)
    found: Tree = draw(section(Header))
    found |= {"archc": 1, "name": "fuzz", **header}
    sections = layer(draw, sections)
    if any(sections.get(name) for name in PARTS) and draw(st.integers(0, 3)) == 0:
        sections["block"] = block(draw, sections)
    return {**found, **sections, "layers": layers(draw, sections)}


def forcing(place: str, kind: str) -> Callable[[Draw], tuple[Tree, Tree]]:
    """Draws what makes a spec have a section of that kind."""

    def forced(draw: Draw) -> tuple[Tree, Tree]:
        if kind == "longrope":  # a factor for each of the pairs that turn
            factors = st.lists(st.sampled_from((1.0, 2.5)), min_size=2, max_size=2)
            scaling = draw(of_kind(place, kind)) | {"short_factors": draw(factors), "long_factors": draw(factors)}
            position = draw(of_kind("position", "rope")) | {"partial": 1.0, "scaling": scaling}
            return {}, {"position": position, "attention": {"heads": 4, "head_dim": 4}}
        if place == "scaling":
            rope = {**draw(of_kind("position", "rope")), "scaling": draw(of_kind("scaling", kind))}
            return {}, {"position": {name: value for name, value in rope.items() if name != "partial"}}
        if place in KINDS:
            return {}, {place: draw(of_kind(place, kind))}
        if place == "logits":
            logits = draw(section(LogitsFields)) | draw_option(draw, LogitsFields, kind)
            if kind != "adaptive":
                return {"logits": logits}, {}
            parts = (logits["adaptive"]["frequent"], *logits["adaptive"]["clusters"])  # as many tokens as there are
            logits = {name: value for name, value in logits.items() if name not in ("vocab_size", "given")}
            return {"vocab_size": sum(parts), "logits": logits}, {}
        models = get_args(get_type_hints(Header)[place])
        model = next(m for m in models if m is not NoneType and m.__struct_config__.tag == kind)
        return {place: draw(section(model))}, {}

    return forced


def draw_option(draw: Draw, model: type[Fields], name: str) -> Tree:
    """One field of a section, stated."""
    return {name: draw(values(name, get_type_hints(model, include_extras=True)[name]))}


def every_kind() -> list[tuple[str, str]]:
    """Every kind of section, stream and pass, and every option of the two ends of a model."""
    kinds = [(place, kind) for place, found in KINDS.items() for kind in found]
    for place in ("streams", "passes"):
        models = get_args(get_type_hints(Header)[place])
        kinds += [(place, model.__struct_config__.tag) for model in models if model is not NoneType]
    return kinds + [("logits", field.name) for field in structs.fields(LogitsFields)]


PLAIN: Mapping[str, tuple[type[Fields], tuple[str, ...]]] = {
    "embedding": (EmbeddingFields, ("scale", "scale_rounded", "norm", "width", "segments", "affine")),
    "logits": (LogitsFields, tuple(field.name for field in structs.fields(LogitsFields) if field.name != "adaptive")),
    "norm": (NormFields, ("weight", "bias", "placement")),
    "residual": (ResidualFields, ("stream", "branch")),
    "rope": (RopeFields, ("pairing", "partial", "direction", "float32", "scaling")),
    "learned": (LearnedFields, ("offset",)),
    "sinusoidal": (SinusoidalFields, ("offset", "layout", "slowest")),
    "gqa": (AttentionFields, ("kv_heads", "head_dim", "grouping", "bias", "scale", "window", "softcap", "qk_norm")),
    "mlp": (MlpFields, ("bias",)),
    "gated": (GatedFields, ("bias",)),
    "moe": (MoeFields, ("gated",)),
    "router": (RouterFields, ("order", "renormalize", "scale")),
    "shared": (SharedExpertFields, ("gate",)),
}
"""Sections and fields of designs that archc can generate, whatever their values, but for a few."""


RARE = {"l2", "xielu", "sqrt_softplus", "sparsemixer", "router", "parallel_separate", "post_sum"}
"""Values that cannot be generated yet."""


def plain(name: str) -> st.SearchStrategy[Tree]:
    """A section of a design that can mostly be generated."""
    return section(*PLAIN[name]).filter(lambda drawn: RARE.isdisjoint(filter(is_text, drawn.values())))


def is_text(value: object) -> bool:
    """Whether a value is a text."""
    return isinstance(value, str)


@st.composite
def plain_experts(draw: Draw) -> Tree:
    """A mixture of experts, mostly with a shared one."""
    shared = draw(st.one_of(st.none(), plain("shared")))
    return {**draw(plain("moe")), "router": draw(plain("router")), "shared": shared}


@st.composite
def plain_specs(draw: Draw) -> Tree:
    """Specs most of which archc can generate."""
    found: Tree = draw(section(Header, ("final_norm_eps", "final_norm_bias")))
    found |= {"archc": 1, "name": "fuzz"} | {name: draw(plain(name)) for name in ("embedding", "logits", "norm")}
    ffn, position = st.one_of(plain("mlp"), plain("gated"), plain_experts()), st.one_of(st.none(), plain("rope"))
    learned = draw(st.integers(0, 3)) == 0
    added = st.one_of(plain("learned"), plain("sinusoidal"))
    found["position"] = draw(added if learned else position)
    found |= {"attention": draw(plain("gqa")), "ffn": draw(ffn), "residual": draw(plain("residual"))}
    others = {"attention": plain("gqa"), "ffn": ffn, "norm": plain("norm")}
    other = {name: draw(others[name]) for name in draw(st.lists(st.sampled_from(sorted(others)), unique=True))}
    if other:
        return {**found, "layers": {"count": 3, "kinds": {"one": None, "two": other}, "pattern": "one, two, one"}}
    return {**found, "layers": draw(st.integers(1, 3))}
