"""From a checked spec to the Architecture: every default becomes a value. Nothing can fail here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from archc.architecture.model import Architecture, Branch, Claim, Layer
from archc.parts.base import Settled
from archc.parts.position import LearnedFields
from archc.spec.diagnostics import Diagnostic
from archc.spec.language import Header, LayerFields, Spec
from archc.spec.load import LoadedSpec, load, load_text


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
    layers = {kind: _layer(kind, fields, spec.header) for kind, fields in spec.kinds.items()}
    return Compiled(_architecture(spec, layers), loaded, loaded.diagnostics)


def _layer(kind: str, fields: LayerFields, header: Header) -> Layer:
    around = Settled(header.hidden_size, header.context, fields.norm, fields.position)
    parts = (fields.attention.build(around), fields.ffn.build(around))
    norm, placement = fields.norm.build(header.hidden_size), fields.norm.placement
    before = norm if placement in ("pre", "sandwich") else None
    after = norm if placement in ("post", "sandwich") else None
    return Layer(
        kind=kind,
        branches=tuple(Branch(part, before, after) for part in parts),
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
        embedding=header.embedding.build(header.vocab_size, header.hidden_size, positions),
        layers=tuple(layers[kind] for kind in spec.pattern),
        final_norm=header.norm.build(header.hidden_size),
        head=header.logits.build(header.vocab_size, header.hidden_size, header.embedding.tied),
        claims=tuple(Claim(key, c.value, c.source, c.within) for key, c in header.published.items()),
    )
