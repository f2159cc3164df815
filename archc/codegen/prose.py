"""The words of a generated module: its opening docstring, and what its classes say they are."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from archc.architecture.model import Architecture, Layer
from archc.codegen.naming import LINE, labels, literal, words
from archc.codegen.parts import FFNS, MIXERS
from archc.codegen.plain import ffn_of, mixer_of, residual_of
from archc.parts.norm import Norm
from archc.parts.position import Rope

_NORM = {"rmsnorm": "RMSNorm", "layernorm": "LayerNorm"}
_LEGEND = """\
Suffixes of tensor names are dimensions: B rows of the batch, T new tokens, S tokens so
far, D width, H query heads, K key/value heads, C channels of a head, F feed-forward
width, V vocabulary."""
_EXPERT_LEGEND = " N tokens in one list, E experts, A chosen experts."


def docstring(architecture: Architecture) -> str:
    """The opening docstring: what the model is, what sets it apart, how to use it."""
    bullets = [
        textwrap.fill(bullet, LINE, initial_indent="- ", subsequent_indent="  ") for bullet in _bullets(architecture)
    ]
    legend = _LEGEND
    if any(ffn_of(layer).routed for layer in architecture.layers):
        legend = textwrap.fill(" ".join((legend + _EXPERT_LEGEND).split()), LINE)
    body = "\n".join(
        (
            f"{literal(architecture.name)[1:-1]}: a decoder-only language model in one file.",
            "",
            *bullets,
            "",
            '    model = Model.from_pretrained("folder/of/the/checkpoint")',
            "    ids = model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=20)",
            "",
            legend,
        )
    )
    return f'"""{body}\n"""'


def _bullets(architecture: Architecture) -> Iterator[str]:
    label = labels(layer.kind for layer in architecture.layers)
    kinds = {label[layer.kind]: layer for layer in architecture.layers}
    total = sum(tensor.size for tensor in architecture.tensors())
    active = sum(tensor.active_size for tensor in architecture.tensors())
    size = f"{total:,} parameters" + (f", {active:,} of them used by a token" if active < total else "")
    ends = "the output head is the embedding" if architecture.head.tied else "embedding and output head are separate"
    yield f"{len(architecture.layers)} layers of width {architecture.hidden_size:,}; {size}; {ends}"
    if len(kinds) > 1:
        counts = Counter(layer.kind for layer in architecture.layers)
        yield "layers: " + ", ".join(f"{count} {_kind_words(kind, label[kind])}" for kind, count in counts.items())
    yield from _each(kinds, _norm_words)
    if architecture.embedding.positions:
        yield f"a learned row for each of {architecture.embedding.positions:,} positions, and no position beyond"
    else:
        yield from _each(kinds, lambda layer: _position_words(mixer_of(layer).rope))
    yield from _each(kinds, lambda layer: MIXERS[type(mixer_of(layer))].words(mixer_of(layer)))
    yield from _each(kinds, lambda layer: _window_words(mixer_of(layer).window))
    yield from _each(kinds, lambda layer: FFNS[type(ffn_of(layer))].words(ffn_of(layer)))
    yield from _each(kinds, _residual_words)
    yield from _end_words(architecture)


def _kind_words(kind: str, label: str) -> str:
    spelled = " ".join(words(kind))
    return spelled if label == kind else f"{label} ({spelled})"


def _each(kinds: Mapping[str, Layer], say: Callable[[Layer], str]) -> Iterator[str]:
    """One bullet where all kinds of layer agree, else one for each thing to say."""
    said: dict[str, list[str]] = {}
    for kind, layer in kinds.items():
        said.setdefault(say(layer), []).append(" ".join(words(kind)))
    for text, where in said.items():
        if text:
            yield text if len(said) == 1 else f"{_listed(where)} layers: {text}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _norm_words(layer: Layer) -> str:
    if layer.shared_norm:
        place, norm = "once before attention and feed-forward, which run side by side", layer.shared_norm
    else:
        branch = layer.branches[0]
        found = branch.pre_norm or branch.post_norm
        assert found is not None
        norm = found
        place = "before each branch" if branch.pre_norm else "on each branch's output, none before"
        if branch.pre_norm and branch.post_norm:
            place = "before each branch and on its output"
    return f"{norm_name(norm)} (eps {norm.eps:g}) {place}"


def norm_name(norm: Norm) -> str:
    """`RMSNorm, weight stored as w - 1`."""
    weight = {"plain": "", "one_plus": ", the weight stored less one", "none": " without weight"}[norm.weight]
    return _NORM[norm.kind] + weight + (" with bias" if norm.bias else "")


def _position_words(rope: Rope | None) -> str:
    if rope is None:
        return "no positions"
    base = f"{rope.base:,.0f}" if rope.base.is_integer() else f"{rope.base:g}"
    other = "i + 1 (i even)" if rope.pairing == "interleaved" else f"i + {rope.rotary_dim // 2}"
    text = f"rotary positions, base {base}: channel i turns with channel {other}"
    if rope.rotary_dim < rope.head_dim:
        text += f", in the first {rope.rotary_dim} of {rope.head_dim} channels"
    if rope.scaling is not None:
        text += f"; {rope.scaling.kind} scaling"
    return text


def _window_words(window: int | None) -> str:
    return "" if window is None else f"a query sees {window:,} positions, its own included"


def _residual_words(layer: Layer) -> str:
    residual = residual_of(layer)
    if residual.stream == 1 and residual.branch == 1:
        return ""
    return f"x becomes {residual.stream:g} x + {residual.branch:g} f(x) at every branch"


def _end_words(architecture: Architecture) -> Iterator[str]:
    if architecture.embedding.scale is not None:
        yield f"embedded tokens are multiplied by {architecture.embedding.scale:g}"
    head = architecture.head
    if head.scale is not None:
        yield f"logits are multiplied by {head.scale:g}"
    if head.softcap is not None:
        yield f"logits are capped at {head.softcap:g}"
