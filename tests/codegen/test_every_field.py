"""What is generated says everything that the spec says: no field is left out, and none is taken for another.

Every value of every field that plain layers can have is tried, one at a time. Two models that differ may not be printed
as the same module: then one of them would be printed as the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

import yaml
from msgspec import NODEFAULT, Meta, structs
from msgspec.structs import replace

from archc.architecture import Architecture, compile_text
from archc.architecture.model import Branch
from archc.codegen import UngeneratedError, generate
from archc.parts.attention import Attention
from archc.parts.attention_fields import AttentionFields
from archc.parts.base import Fields, Part
from archc.parts.experts import MoeFields
from archc.parts.feed_forward import GatedFields, MlpFields
from archc.parts.kinds import KINDS, fields_of
from archc.parts.latent import LatentAttention, LatentFields
from archc.parts.norm import InnerNormFields, NormFields
from archc.parts.residual import ResidualFields
from archc.parts.scaling import YarnScaling
from archc.spec.diagnostics import SpecError
from archc.spec.language import Header
from tests.codegen.combinations import BASE
from tests.fuzz.strategies import TOGETHER

MIXTURE = {"kind": "moe", "experts": 6, "top_k": 2, "width": 20, "activation": "silu"}
SECTIONS: Final[Mapping[str, tuple[type[Fields], dict[str, Any]]]] = {
    "norm": (NormFields, {}),
    "attention": (AttentionFields, {}),
    "attention mla": (LatentFields, {"kind": "mla", "q_rank": 6, "rope_dim": 8}),
    "residual": (ResidualFields, {}),
    **{f"position {kind}": (fields_of("position", kind), {}) for kind in KINDS["position"]},
    **{f"scaling {kind}": (fields_of("scaling", kind), {}) for kind in KINDS["scaling"]},
    "ffn mlp": (MlpFields, {"width": 20, "activation": "relu"}),
    "ffn gated": (GatedFields, {"width": 20, "activation": "relu"}),
    "ffn moe": (MoeFields, {**MIXTURE, "router": {"score": "softmax", "renormalize": True}}),
}
"""The sections that plain layers have, and a value of those fields that need one."""
TEXTS = ("silu", "one")
DEEP = 3


def alternatives(name: str, kind: Any, depth: int = 0) -> Iterator[Any]:
    """Values that a field may have, as YAML would give them."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        low = max((m.gt or m.ge or 0 for m in arguments[1:] if isinstance(m, Meta)), default=0)
        high = min((m.lt or m.le or 1e9 for m in arguments[1:] if isinstance(m, Meta)), default=1e9)
        yield from (
            value
            for value in alternatives(name, arguments[0], depth)
            if not isinstance(value, int | float) or isinstance(value, bool) or low <= value <= high
        )
    elif origin is Literal:
        yield from arguments
    elif origin in (Union, UnionType):
        for option in arguments:
            if option is not NoneType:
                yield from alternatives(name, option, depth)
    elif origin is tuple:
        inner = list(alternatives(name, arguments[0], depth))
        yield from ([value] for value in inner)
        yield [inner[0]] * 4  # as many as the heads of BASE have pairs
    elif isinstance(kind, type) and issubclass(kind, Fields):
        yield from whole(kind, depth + 1) if depth < DEEP else ()
    else:
        plain: Mapping[Any, tuple[Any, ...]] = {
            bool: (True, False),
            int: (*TOGETHER.get(name, ()), 1, 2, 3),
            float: (0.25, 0.5, 1.5, 3.0, 40.0, 700.0),
            str: TEXTS,
        }
        yield from plain.get(kind, ())


def whole(model: type[Fields], depth: int = 0, least: Mapping[str, Any] | None = None) -> Iterator[dict[str, Any]]:
    """A section as short as can be, and with every value of every field in turn."""
    hints = get_type_hints(model, include_extras=True)
    needed = {
        field.name: next(alternatives(field.name, hints[field.name], depth))
        for field in structs.fields(model)
        if field.default is NODEFAULT and field.default_factory is NODEFAULT
    }
    base = {**needed, **(least or {})}
    if model.__struct_config__.tag is not None:
        base["kind"] = model.__struct_config__.tag
    yield base
    for name in model.__struct_fields__:
        if name != "kind":
            yield from ({**base, name: value} for value in alternatives(name, hints[name], depth))


def changed_specs() -> Iterator[dict[str, Any]]:
    """BASE with one section in each of its ways, and with each value of the fields of the header."""
    spec: dict[str, Any] = yaml.safe_load(BASE)
    for place, (model, least) in SECTIONS.items():
        name = place.partition(" ")[0]
        for section in whole(model, least={**least, **(spec[name] if place in ("norm", "attention") else {})}):
            if name == "scaling":
                yield {**spec, "position": {**spec["position"], "scaling": section}}
            else:
                yield {**spec, name: section}
    hints = get_type_hints(Header, include_extras=True)
    for name in ("embedding", "logits", "final_norm", "final_norm_eps", "final_norm_bias", "streams", "passes"):
        yield from ({**spec, name: value} for value in alternatives(name, hints[name]))


def computed(architecture: Architecture) -> Architecture:
    """A model without what only says how it came about, or what others keep of it."""
    layers = tuple(replace(layer, branches=tuple(map(_computed, layer.branches))) for layer in architecture.layers)
    return replace(architecture, trained_context=None, layers=layers)


def _computed(branch: Branch) -> Branch:
    residual = branch.residual if branch.residual.learned != "none" else replace(branch.residual, learned_scale=1.0)
    return replace(branch, residual=residual, parts=tuple((slot, _of_part(part)) for slot, part in branch.parts))


def _of_part(part: Part) -> Part:
    """What transformers' cache keeps is no matter, nor where a rope's attention factor comes from."""
    if isinstance(part, LatentAttention):
        # What these fields say stands in the part itself.
        said = replace(part.fields, bias="none", scale=None, latent_norm=InnerNormFields(), rope_key_norm=None)
        return replace(part, fields=said)
    if not isinstance(part, Attention):
        return part
    rope = part.rope
    if rope is not None and isinstance(rope.scaling, YarnScaling):
        bare = replace(rope.scaling, mscale=None, mscale_all_dim=None, attention_factor=None)
        rope = replace(rope, scaling=bare)
    return replace(part, window_rows="dropped", copies=1, rope=rope)


def test_models_that_differ_are_printed_differently() -> None:
    printed: dict[str, Architecture] = {}
    refused = 0
    confused = []
    for spec in changed_specs():
        try:
            architecture = computed(compile_text(yaml.safe_dump(spec)).architecture)
        except SpecError:
            continue
        try:
            source = generate(architecture)
        except UngeneratedError:
            refused += 1
            continue
        if printed.setdefault(source, architecture) != architecture:
            confused.append(spec)
    assert not confused
    assert len(printed) > 100
    assert refused > 100
