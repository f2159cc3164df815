"""A small spec that deserves no advice, and what is said of others."""

from archc.advice import advise
from archc.architecture import compile_text
from archc.spec.diagnostics import Diagnostic

PLAIN = """\
archc: 1
name: small
vocab_size: 128
hidden_size: 64
context: 100
dtype: float32
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1.0e-5}
position: {kind: rope, base: 10000}
attention: {heads: 8, kv_heads: 2, head_dim: 8}
ffn: {kind: gated, activation: silu, width: 172}
layers: 2
"""
MAMBA = "{kind: mamba2, heads: 2, head_dim: 64, state: 4, kernel: 4}"
EXPERTS = "{kind: moe, experts: 4, top_k: 2, width: 96, activation: silu, router: {score: softmax, renormalize: true}}"


def with_lines(*lines: str) -> str:
    """The small spec with other lines in place of those with the same key; a new key comes last."""
    found = {line.partition(":")[0]: line for line in PLAIN.splitlines()}
    found |= {line.partition(":")[0]: line for line in lines}
    return "\n".join(found.values()) + "\n"


def layered(kinds: str, pattern: str, *lines: str) -> str:
    """The small spec with two layers of the given kinds."""
    return with_lines(f"layers: {{count: 2, kinds: {kinds}, pattern: '{pattern}'}}", *lines)


def advice(text: str) -> list[Diagnostic]:
    """All that is said of a spec that compiles."""
    compiled = compile_text(text)
    return [*compiled.diagnostics, *advise(compiled)]


def codes(text: str) -> list[str]:
    """The codes of that, in order."""
    return [diagnostic.code for diagnostic in advice(text)]


def pointed_at(diagnostic: Diagnostic) -> str:
    """The text that a diagnostic underlines."""
    span = diagnostic.span
    assert span is not None
    return span.text[span.column - 1 : span.column - 1 + span.length]
