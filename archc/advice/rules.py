"""The rules: what is looked at, where it begins to matter, and what would be otherwise.

A rule asks parts what every part answers, and never which family or which kind it has before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, cast

from archc.architecture.model import Architecture, Branch
from archc.parts.base import Finding, MixerPart
from archc.parts.position import Rope

ModelRule = Callable[[Architecture], Iterator[Finding]]
"""Paths lead from the root of the spec."""
BranchRule = Callable[[Architecture, Branch], Iterator[Finding]]
"""Paths lead from the sections of the kind of layer, or of the branch where it is written out."""

TENSOR_PARALLEL: Final = (2, 3, 5, 7)
"""Over how many devices of one machine a layer is split, up to eight. Where 4, 6 or 8 can, 2 or 3 can as well."""
ROW_MULTIPLE: Final = 64
"""Rows of 16 bits that fill the 128 bytes which a tensor core reads at once (NVIDIA, A100)."""
DEEP_POST_NORM: Final = 18
"""Layers at which Liu et al. (2020) see training behind a norm on the sum diverge; at 6 and 12 it does not."""
WIDE: Final = 6144
"""The width of ViT-22B, for which Dehghani et al. (2023) normed queries and keys."""
LARGE_VOCABULARY: Final = 128_000
"""Llama 3's tokens without its special ones: the size of vocabularies that cover many languages."""


def learned_wall(architecture: Architecture) -> Iterator[Finding]:
    """A learned table has no row for a later position."""
    rows = architecture.embedding.positions
    if rows is not None:
        yield Finding(
            "N501",
            ("position", "kind"),
            f"position {rows} has no row in the learned table: no input can be longer",
            "rope and alibi go on past the trained length",
        )


def ragged_vocabulary(architecture: Architecture) -> Iterator[Finding]:
    """The head is the largest product of a forward pass, and its rows do not fill tiles."""
    head = architecture.head
    if rest := head.vocab_size % ROW_MULTIPLE:
        yield Finding(
            "N503",
            ("logits", "vocab_size") if head.unscored else ("vocab_size",),
            f"{head.vocab_size} rows of the head are no multiple of {ROW_MULTIPLE}",
            f"store {head.vocab_size - rest + ROW_MULTIPLE}, of which {ROW_MULTIPLE - rest} are padding",
        )


def large_tied_ends(architecture: Architecture) -> Iterator[Finding]:
    """One matrix has to serve many rare tokens both as what they mean and as what scores them."""
    embedding = architecture.embedding
    if architecture.head.tied and embedding.vocab_size >= LARGE_VOCABULARY:
        yield Finding(
            "N507",
            ("embedding", "tied"),
            f"{embedding.vocab_size} tokens are read and scored by one matrix",
            f"untied ends cost {embedding.vocab_size * embedding.width} parameters more; embedding.width narrows both",
        )


def unscaled_rotation(architecture: Architecture, branch: Branch) -> Iterator[Finding]:
    """Positions beyond the trained length turn by angles that no query and key have met in training."""
    trained = architecture.trained_context
    for _, mixer in _mixers(branch):
        rope, sees = mixer.rope, _sees(mixer, architecture.context)
        reach = _reach(rope, trained) if rope and trained else None
        if rope is None or reach is None or sees <= reach:
            continue
        if rope.scaling is None:
            yield Finding(
                "W403",
                ("position",),
                f"rotary positions are not scaled, and {sees} of them go beyond the {reach} of training",
                f"add scaling, such as yarn with factor: {_factor(sees, reach)}, or train longer",
            )
        else:
            yield Finding(
                "W402",
                ("position", "scaling", "factor"),
                f"the scaling reaches {reach} positions, and {sees} are seen",
                f"raise factor to {_factor(sees, cast(int, trained))}",
            )


def undivided_heads(architecture: Architecture, branch: Branch) -> Iterator[Finding]:
    """Devices that split a layer each take whole heads; fewer key/value heads than devices are copied."""
    del architecture
    for section, mixer in _mixers(branch):
        shape = mixer.shape
        if shape is None or shape.heads == 1:
            continue
        heads, kv_heads = shape.heads, shape.kv_heads
        if not any(heads % n == 0 and (kv_heads % n == 0 or n % kv_heads == 0) for n in TENSOR_PARALLEL):
            yield Finding(
                "N502",
                (section, "heads" if kv_heads == 1 else "kv_heads"),
                f"{heads} query heads on {kv_heads} key/value heads cannot be split over 2 to 8 devices",
                "choose numbers that 2, 4 or 8 divides",
            )


def idle_key_bias(architecture: Architecture, branch: Branch) -> Iterator[Finding]:
    """Softmax takes no notice of what is added to all logits of a query."""
    del architecture
    for section, mixer in _mixers(branch):
        for name in mixer.idle_biases:
            yield Finding(
                "N504",
                (section, "bias"),
                f"the bias of {name} adds the same to all logits of a query, which softmax cancels",
                f"leave {name} out of bias where nothing rotates keys",
            )


def deep_post_norm(architecture: Architecture, branch: Branch) -> Iterator[Finding]:
    """Behind a norm on every sum nothing reaches the first layers unchanged, forwards or backwards."""
    layers = architecture.depth
    if branch.norm_on_sum and layers >= DEEP_POST_NORM and branch.residual.stream <= 1:
        yield Finding(
            "N505",
            ("norm", "placement"),
            f"{layers} layers each norm the sum of stream and branch: such stacks are hard to train",
            "placement: pre or post leaves the stream as it is; residual.stream above 1 strengthens it",
        )


def unbounded_logits(architecture: Architecture, branch: Branch) -> Iterator[Finding]:
    """Logits of attention grow with queries and keys until softmax picks one key, and gradients vanish."""
    width = architecture.hidden_size
    for section, mixer in _mixers(branch):
        softmax = section == "attention"
        if softmax and width >= WIDE and not mixer.bounded_logits:
            yield Finding(
                "N506",
                (section,),
                f"nothing bounds the attention logits of a model of width {width}",
                "qk_norm bounds them, as do softcap and clip",
            )


def window_never_full(architecture: Architecture, branch: Branch) -> Iterator[Finding]:
    """A window that holds the whole context hides nothing."""
    context = architecture.context
    for section, mixer in _mixers(branch):
        sizes = {"window": mixer.window, "chunk": mixer.chunk}
        for name, size in sizes.items():
            if size is not None and size >= context:
                yield Finding(
                    "N508",
                    (section, name),
                    f"a {name} of {size} hides nothing within a context of {context}",
                    f"leave {name} out, or choose one below the context",
                )


MODEL_RULES: Final[tuple[ModelRule, ...]] = (learned_wall, ragged_vocabulary, large_tied_ends)
BRANCH_RULES: Final[tuple[BranchRule, ...]] = (
    unscaled_rotation,
    undivided_heads,
    idle_key_bias,
    deep_post_norm,
    unbounded_logits,
    window_never_full,
)


def _mixers(branch: Branch) -> Iterator[tuple[str, MixerPart]]:
    """The mixers of a branch, each with the section that declares it."""
    for slot, mixer in branch.mixers():
        yield slot.partition("_")[0], mixer


def _reach(rope: Rope, trained: int) -> int | None:
    """How far positions turn by angles that training has met; None where the scaling does not say."""
    if rope.scaling is None:
        return trained
    return None if rope.scaling.reach is None else int(trained * rope.scaling.reach)


def _sees(mixer: MixerPart, context: int) -> int:
    """The longest distance between a query and a key, and one: only distances turn a product of the two."""
    return min(context, mixer.window or context, mixer.chunk or context)


def _factor(context: int, trained: int) -> str:
    """The least factor, to a tenth, that leads from one length to another."""
    return f"{-(-10 * context // trained) / 10:g}"
