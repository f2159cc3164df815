"""The words of a generated module: its opening docstring, and what its classes say they are."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from archc.architecture.model import Architecture, Branch, Layer
from archc.codegen.attention_words import growth_words
from archc.codegen.ends import end_words, table_words
from archc.codegen.inputs import bare
from archc.codegen.naming import LINE, labels, literal, words
from archc.codegen.parts import FFNS, MIXERS
from archc.parts.attention import Attention
from archc.parts.base import FfnPart, MixerPart
from archc.parts.norm import NORM_NAMES, Norm
from archc.parts.residual import Residual

_LEARNED = {
    "stream": "a learned number per channel multiplies the stream at {}",
    "both": "the stream and the output of {} are shifted and scaled by learned numbers per channel",
    "rate": "the stream moves towards the output of {} at a learned rate per channel",
}
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
    parts = [part for layer in architecture.layers for part in (layer.mixer, layer.ffn)]
    if any((isinstance(part, FfnPart) and part.routed) or (part and part.kind == "routed") for part in parts):
        legend += _EXPERT_LEGEND
    for letters in dict.fromkeys(MIXERS[type(part)].letters for part in parts if isinstance(part, MixerPart)):
        legend += f" {letters}." if letters else ""
    body = "\n".join(
        (
            f"{literal(architecture.name)[1:-1]}: a decoder-only language model in one file.",
            "",
            *bullets,
            "",
            '    model = Model.from_pretrained("folder/of/the/checkpoint")',
            "    ids = model.generate(torch.tensor([[1, 2, 3]]), max_new_tokens=20)",
            "",
            textwrap.fill(" ".join(legend.split()), LINE),
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
    meant = f"meant for {architecture.context:,} positions"
    layers = "1 layer" if len(architecture.layers) == 1 else f"{len(architecture.layers)} layers"
    yield f"{layers} of width {architecture.hidden_size:,}, {meant}; {size}; {ends}"
    if len(kinds) > 1:
        counts = Counter(layer.kind for layer in architecture.layers)
        yield "layers: " + ", ".join(f"{count} {_kind_words(kind, label[kind])}" for kind, count in counts.items())
    yield from _each(kinds, _norm_words)
    if architecture.final_norm is None:
        yield "no norm before the head"
    if added := table_words(architecture.embedding):
        yield added
    else:
        yield from _each(kinds, _of_mixer(_position_words))
    yield from _said({kind: MIXERS[type(mixer)].words(mixer) for kind, mixer in _spoken_of(kinds).items()})
    yield from _each(kinds, _of_mixer(_growth_words))
    yield from _each(kinds, _of_mixer(_sight_words))
    yield from _each(kinds, lambda layer: FFNS[type(layer.ffn)].words(layer.ffn) if layer.ffn else "")
    yield from _each(kinds, _residual_words)
    yield from end_words(architecture)


def _kind_words(kind: str, label: str) -> str:
    spelled = " ".join(words(kind))
    return spelled if label == kind else f"{label} ({spelled})"


def _each(kinds: Mapping[str, Layer], say: Callable[[Layer], str]) -> Iterator[str]:
    """One bullet where all kinds of layer agree, else one for each thing to say."""
    yield from _said({kind: say(layer) for kind, layer in kinds.items()})


def _said(texts: Mapping[str, str]) -> Iterator[str]:
    """The same of what there is to say by kind."""
    said: dict[str, list[str]] = {}
    for kind, text in texts.items():
        said.setdefault(text, []).append(" ".join(words(kind)))
    for text, where in said.items():
        if text:
            yield text if len(said) == 1 else f"{_listed(where)} layers: {text}"


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _spoken_of(kinds: Mapping[str, Layer]) -> dict[str, MixerPart]:
    """The mixer of each kind; one that turns no heads, and differs in nothing else, is spoken of like those that do."""
    mixers = {kind: layer.mixer for kind, layer in kinds.items() if layer.mixer}
    turning = {bare(mixer): mixer for mixer in mixers.values() if isinstance(mixer, Attention) and mixer.rope}
    found = dict(mixers)
    for kind, mixer in mixers.items():
        if isinstance(mixer, Attention) and mixer.rope is None and bare(mixer) in turning:
            found[kind] = replace(mixer, rope=turning[bare(mixer)].rope)
    return found


def _growth_words(mixer: MixerPart) -> str:
    growth = mixer.query_scale if isinstance(mixer, Attention) else None
    return growth_words(growth) if growth else ""


def _of_mixer(say: Callable[[MixerPart], str]) -> Callable[[Layer], str]:
    """What there is to say of a layer's mixer."""
    return lambda layer: say(layer.mixer) if layer.mixer else ""


def _norm_words(layer: Layer) -> str:
    parallel = layer.parallel and len(layer.branches) > 1
    if layer.shared_norm:
        where = "once before attention and feed-forward, which run side by side" if parallel else "before each branch"
        return f"{_norm(layer.shared_norm)} {where}"
    found = dict.fromkeys(_branch_norms(branch, "each branch") for branch in layer.branches)
    if len(found) > 1:
        found = dict.fromkeys(_branch_norms(branch, _branch_name(branch)) for branch in layer.branches)
    beside = ["attention and feed-forward run side by side"] if parallel else []
    return "; ".join((*found, *beside))


def _branch_norms(branch: Branch, name: str) -> str:
    """Which norms stand around a branch of that name."""
    before, after = branch.pre_norm, branch.post_norm
    if before is None:
        where = f"on {name}'s output" if not branch.norm_on_sum else f"on the sum of the stream and {name}'s output"
        return f"{_norm(after)} {where}, none before" if after else f"no norm around {name}"
    return f"{_norm(before)} before {name}" + (" and on its output" if after else "")


def _branch_name(branch: Branch) -> str:
    return "attention" if isinstance(branch.parts[0][1], MixerPart) else "feed-forward"


def _norm(norm: Norm) -> str:
    return f"{norm_name(norm)} (eps {norm.eps:g})"


def norm_name(norm: Norm) -> str:
    """`LayerNorm with bias, the weight stored less one`."""
    weight = " without weight" if norm.weight == "none" else ""
    bias = " with bias" if norm.bias else ""
    less = ", the weight stored less one" if norm.weight == "one_plus" else ""
    return NORM_NAMES[norm.kind] + weight + bias + less


def _position_words(mixer: MixerPart) -> str:
    rope = mixer.rope
    if rope is None:
        return "no positions" if mixer.position_kind is None else ""  # scores that tell distances: the mixer says so
    base = f"{rope.base:,.0f}" if rope.base.is_integer() else f"{rope.base:g}"
    other = "i + 1 (i even)" if rope.pairing == "interleaved" else f"i + {rope.rotary_dim // 2}"
    way = "" if rope.direction == "forward" else ", backward"
    text = f"rotary positions, base {base}: channel i turns with channel {other}{way}"
    if rope.rotary_dim < rope.head_dim:
        text += f", in the first {rope.rotary_dim} of {rope.head_dim} channels"
    if rope.scaling is not None:
        text += f"; {rope.scaling.kind} scaling"
    if rope.float32 != "angles":
        text += "; heads turn in 32-bit numbers"
    return text


def _sight_words(mixer: MixerPart) -> str:
    if mixer.chunk is not None:
        return f"a query sees its own chunk of {mixer.chunk:,} positions, up to its own"
    return "" if mixer.window is None else f"a query sees {mixer.window:,} positions, its own included"


def _residual_words(layer: Layer) -> str:
    residuals = {_branch_name(branch): branch.residual for branch in layer.branches}
    if len(set(residuals.values())) == 1:
        residuals = {"every branch": layer.branches[0].residual}
    said = [text for name, residual in residuals.items() for text in _sum_words(residual, name)]
    if layer.branches[-1].residual.layer_scalar:
        said.append("a stored number multiplies the stream at the end of a layer")
    return "; ".join(said)


def _sum_words(residual: Residual, name: str) -> Iterator[str]:
    """What is unusual about the sum at a branch of that name."""
    if residual.stream != 1 or residual.branch != 1:
        stream = "x" if residual.stream == 1 else f"{residual.stream:g} x"
        branch = "f(x)" if residual.branch == 1 else f"{residual.branch:g} f(x)"
        yield f"x becomes {stream} + {branch} at {name}"
    if residual.float32:
        yield "the stream is kept in float32 whatever the type of the weights"
    if residual.carries == "normed":
        yield f"what goes on beside {name} is its normed input"
    if residual.by_depth:
        yield f"at {name}, the n-th thing written to the stream counts 1/sqrt(n), the stream sqrt((n - 1)/n)"
    if residual.learned != "none":
        yield _LEARNED[residual.learned].format(name)
