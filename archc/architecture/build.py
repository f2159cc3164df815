"""From a well-formed spec to the Architecture: defaults become numbers, impossible combinations errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from archc.architecture.model import Architecture, Branch, Claim, Ffn, Layer
from archc.families import known_families
from archc.parts.attention import build_attention, check_attention_fields
from archc.parts.base import Finding
from archc.parts.ends import build_embedding, build_head
from archc.parts.experts import MoeFields, build_experts
from archc.parts.feed_forward import build_feed_forward
from archc.parts.norm import build_norm
from archc.parts.position import LearnedFields, RopeFields
from archc.spec.diagnostics import Diagnostic, Level, SpecError
from archc.spec.language import Header, LayerFields, Spec
from archc.spec.load import LoadedSpec, load, load_text

_LEVELS = {"E": Level.ERROR, "W": Level.WARNING, "N": Level.NOTE}


@dataclass(frozen=True, slots=True)
class Compiled:
    """An Architecture, the spec it was built from, and the warnings and notes about it."""

    architecture: Architecture
    loaded: LoadedSpec
    diagnostics: tuple[Diagnostic, ...]


def compile_spec(target: str, overrides: Sequence[str] = ()) -> Compiled:
    """The Architecture of the spec at `target` (a path or a shipped name). Raises SpecError with all that is wrong."""
    return _compile(load(target, overrides))


def compile_text(text: str, file: str = "<text>", overrides: Sequence[str] = ()) -> Compiled:
    """As `compile_spec`, from the text of a spec."""
    return _compile(load_text(text, file, overrides))


def _compile(loaded: LoadedSpec) -> Compiled:
    spec = loaded.spec
    found: list[Diagnostic] = []
    layers: dict[str, Layer] = {}
    for kind, fields in spec.kinds.items():
        blocking = list(_before_building(spec.header, fields))
        found += [_located(finding, loaded, kind) for finding in blocking]
        if any(finding.code.startswith("E") for finding in blocking):
            continue
        layers[kind] = _layer(kind, fields, spec.header)
        for branch in layers[kind].branches:
            found += [_located(finding, loaded, kind) for finding in branch.part.check()]
    found += [_located(finding, loaded, kind) for kind, finding in _check_model(spec)]
    found = list(dict.fromkeys(found))
    if any(diagnostic.level is Level.ERROR for diagnostic in found):
        raise SpecError(found)
    return Compiled(_architecture(spec, layers), loaded, tuple(found))


def _before_building(header: Header, fields: LayerFields) -> Iterator[Finding]:
    yield from check_attention_fields(fields.attention, fields.position, header.hidden_size, header.context)


def _check_model(spec: Spec) -> Iterator[tuple[str | None, Finding]]:
    """What must hold of the model as a whole, with the kind of layer to point at, if any."""
    if spec.header.family is not None and spec.header.family not in known_families():
        near = get_close_matches(spec.header.family, known_families(), 1, 0.5)
        yield (
            None,
            Finding(
                "E208",
                ("family",),
                f"archc does not know how {spec.header.family!r} is stored",
                f"did you mean {near[0]!r}?" if near else f"one of {', '.join(known_families())}, or no family at all",
            ),
        )
    learned = [kind for kind, fields in spec.kinds.items() if isinstance(fields.position, LearnedFields)]
    other = [kind for kind, fields in spec.kinds.items() if isinstance(fields.position, RopeFields)]
    if learned and other:
        yield (
            other[0],
            Finding(
                "E207",
                ("position", "kind"),
                f"the kind {learned[0]} learns its positions, the kind {other[0]} rotates",
                "a learned table is added to the embedding, for all layers: use one or the other",
            ),
        )


def _located(finding: Finding, loaded: LoadedSpec, kind: str | None) -> Diagnostic:
    level = _LEVELS[finding.code[0]]
    place = loaded.place(finding.path, kind)
    return Diagnostic(finding.code, level, finding.message, finding.mend, place, ".".join(finding.path))


def _layer(kind: str, fields: LayerFields, header: Header) -> Layer:
    attention = build_attention(fields.attention, fields.norm, fields.position, header.hidden_size, header.context)
    ffn: Ffn
    if isinstance(fields.ffn, MoeFields):
        ffn = build_experts(fields.ffn, header.hidden_size)
    else:
        ffn = build_feed_forward(fields.ffn, header.hidden_size)
    norm, placement = build_norm(fields.norm, header.hidden_size), fields.norm.placement
    before = norm if placement in ("pre", "sandwich") else None
    after = norm if placement in ("post", "sandwich") else None
    return Layer(
        kind=kind,
        branches=(Branch(attention, before, after), Branch(ffn, before, after)),
        shared_norm=norm if placement == "parallel" else None,
        stream_scale=fields.residual.stream,
        branch_scale=fields.residual.branch,
    )


def _architecture(spec: Spec, layers: dict[str, Layer]) -> Architecture:
    header = spec.header
    learned = any(isinstance(fields.position, LearnedFields) for fields in spec.kinds.values())
    positions = header.context if learned else None
    return Architecture(
        name=header.name,
        family=header.family,
        source=header.source,
        vocab_size=header.vocab_size,
        hidden_size=header.hidden_size,
        context=header.context,
        dtype=header.dtype,
        embedding=build_embedding(header.embedding, header.vocab_size, header.hidden_size, positions),
        layers=tuple(layers[kind] for kind in spec.pattern),
        final_norm=build_norm(header.norm, header.hidden_size),
        head=build_head(header.logits, header.vocab_size, header.hidden_size, header.embedding.tied),
        claims=tuple(Claim(key, c.value, c.source, c.within) for key, c in header.published.items()),
    )
