"""What the header of a generated module says of attention with grouped key/value heads."""

from __future__ import annotations

from collections.abc import Iterator

from archc.codegen.scales import from_table
from archc.parts.attention import Attention
from archc.parts.attention_sections import QueryScaleFields


def attention_words(part: Attention) -> str:
    """One sentence: how heads share keys and values, then what is unusual, in the order in which it happens."""
    return "; ".join((_heads(part), *_of_projections(part), *_of_scores(part), *_of_output(part)))


def key_value_heads(part: Attention) -> str:
    """`4 key/value heads`."""
    return "1 key/value head" if part.kv_heads == 1 else f"{part.kv_heads} key/value heads"


def _heads(part: Attention) -> str:
    if part.kv_heads < part.heads:
        return f"{part.heads} query heads of {part.head_dim} channels share {key_value_heads(part)}"
    return f"{'1 head' if part.heads == 1 else f'{part.heads} heads'} of {part.head_dim} channels"


def _of_projections(part: Attention) -> Iterator[str]:
    if part.value_dim != part.head_dim:
        yield f"values have {part.value_dim} channels"
    if factors := part.factors:
        given = {"input": factors.input, "keys": factors.key, "output": factors.output}
        yield "constants multiply " + ", ".join(f"{name} ({n:g})" for name, n in given.items() if n != 1)
    if biased := [name for name in part.projections if name in part.biased]:
        yield "biases on " + ", ".join(biased)
    if part.values == "keys":
        yield "values are the keys, before these are normed or turn"
    if part.q_norm:
        over = {"head": "each head", "width": "all heads together"}[part.qk_norm_over]
        weight = " with a weight of its own" if part.q_norm.heads is not None else ""
        when = "" if part.rope is None else f" {part.qk_norm_order.replace('_', ' ').replace('rope', 'turning')}"
        yield f"queries and keys are normed over {over}{weight}{when}"
    if part.v_norm:
        yield "values are normed without weight"
    if part.clip is not None:
        yield f"queries, keys and values are clamped to ±{part.clip:g}"
    if part.value_scale is not None:
        yield f"values are multiplied by {part.value_scale:g}"


def growth_words(growth: QueryScaleFields) -> str:
    """What the header says of queries that grow."""
    place = f"{'(n + 1)' if growth.first else 'n'} / {growth.length:,}"
    factor = {
        "steps": f"1 + {growth.strength:g} ln(1 + floor({place}))",
        "beyond": f"1 + {growth.strength:g} ln(max({place}, 1))",
        "power": f"(1 + {place})^{growth.strength:g}",
    }
    where = "at position n" if growth.counts == "positions" else "in column n, padding counted,"
    return f"queries {where} are multiplied by {factor[growth.form]}"


def _of_scores(part: Attention) -> Iterator[str]:
    if from_table(part):
        yield "every layer scales scores by a number of its own"
    elif part.scale == 1:
        yield "scores are not scaled"
    elif part.scale != part.head_dim**-0.5:
        yield f"scores are multiplied by {part.scale:.4g}, not by {part.head_dim}**-0.5"
    if part.alibi:
        scaled = ", before they are scaled" if part.alibi.scaled else ""
        yield f"scores fall with distance, by a slope for each head{scaled}"
    if part.softcap:
        yield f"scores are capped at {part.softcap:g}"
    if mask := part.dynamic_mask:
        yield f"a number made of its values is added to the scores of a key; a query sees the {mask.keep:,} largest"
    if part.sinks == "column":
        yield "a learned sink of each head takes weight from all keys"
    elif part.sinks == "sigmoid":
        yield "outputs of a head are multiplied by sigmoid(logsumexp of its scores - a learned sink)"


def _of_output(part: Attention) -> Iterator[str]:
    if gate := part.gate:
        over = "head" if gate.over == "head" else "channel"
        bias = ", with a bias for each head" if gate.head_bias else ""
        yield f"a {gate.score} of the input gates the output, {over} by {over}{bias}"
    if part.output_norm:
        yield "a norm before the output projection"
