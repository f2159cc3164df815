"""Faults of scalings of rotary positions: left out, of another kind, and each of their constants."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from msgspec.structs import replace

from archc.architecture.model import Architecture, Layer
from archc.faults.base import Fault, Faulty, Layers, Slip
from archc.faults.sites import Slips, in_layers, ropes, slips, word
from archc.parts.position import Rope
from archc.parts.scaling import LinearScaling, LongropeScaling, NtkAlphaScaling, YarnScaling

_FACTORS = (8.0, 4.0, 2.0, 32.0, 16.0, 40.0)
_ORIGINALS = (8192, 4096, 32_768)
_SURE_LONG = 2**30
_Values: TypeAlias = Callable[[Any], Iterable[Any]]


def _scaled(rope: Rope, scaling: Any) -> Rope:
    """The rope with another scaling, and the attention factor that is worked out from it."""
    kept = scaling is not None and isinstance(scaling, LongropeScaling)
    factor = rope.attention_factor if kept else 1.0 if scaling is None else scaling.amplitude(0)
    return replace(rope, scaling=scaling, attention_factor=factor)


def _does_the_same(one: Rope, other: Rope) -> bool:
    """Whether two ropes turn every pair by the same angles, as far as lengths show it."""
    lengths = {1, _SURE_LONG, *(2 * rope.original_context for rope in (one, other) if rope.original_context)}
    return all(
        one.amplitude(length) == other.amplitude(length) and one.frequencies(length) == other.frequencies(length)
        for length in lengths
    )


def _constant(name: str, values: _Values) -> Slips:
    """The slips of one constant of those scalings that state it."""

    def wrong(rope: Rope) -> Iterator[tuple[str, Rope]]:
        if rope.scaling is not None and getattr(rope.scaling, name, None) is not None:
            for value in values(rope.scaling):
                other = _scaled(rope, replace(rope.scaling, **{name: value}))
                if not _does_the_same(rope, other):
                    yield word(value), other

    return slips(ropes, lambda rope: getattr(rope.scaling, name), wrong)


def _unscaled(rope: Rope) -> Iterator[tuple[str, Rope]]:
    if rope.scaling is not None and not _does_the_same(rope, other := _scaled(rope, None)):
        yield "null", other


def _other_kind(rope: Rope) -> Iterator[tuple[str, Rope]]:
    """Every pair slowed alike, where some are not; a larger base, whatever the length."""
    rule = rope.scaling
    factor = getattr(rule, "factor", None) or getattr(rule, "alpha", None)
    if rule is None or factor is None:
        return
    for other in (LinearScaling(factor=factor), NtkAlphaScaling(alpha=factor)):
        if type(other) is not type(rule) and (isinstance(other, LinearScaling) or rope.rotary_dim > 2):
            found = _scaled(rope, other)
            if not _does_the_same(rope, found):
                yield other.kind, found


def _amplitudes(rope: Rope) -> Iterator[tuple[str, Rope]]:
    """Cosines and sines multiplied by the square, not at all, or by the default form.

    Where mscales are stated, the latter two are mistakes about those.
    """
    rule, own = rope.scaling, rope.attention_factor
    if rule is None:
        return
    values = [own * own]
    if not (isinstance(rule, YarnScaling) and rule.mscale and rule.mscale_all_dim):
        values.insert(0, 1.0)
        values += [0.1 * math.log(rule.factor) + 1] if isinstance(rule, YarnScaling) else []
    for value in dict.fromkeys(values):
        if not math.isclose(value, own):
            yield word(value), replace(rope, attention_factor=value)


def _other_originals(architecture: Architecture) -> Iterator[Slip]:
    lengths = dict.fromkeys((architecture.context, *_ORIGINALS))
    yield from _constant(
        "original_context", lambda rule: (*lengths, 2 * rule.original_context, max(rule.original_context // 2, 2))
    )(architecture)


def _other_factors(rule: Any) -> Iterator[float]:
    if not isinstance(rule, LongropeScaling):  # there it acts through the attention factor alone
        yield from (factor for factor in (*_FACTORS, 2 * rule.factor, max(rule.factor / 2, 1.0)))


def _other_low(rule: Any) -> Iterator[float]:
    yield from (low for low in (1.0, 2.0, rule.high_freq_factor) if low <= rule.high_freq_factor)


def _other_high(rule: Any) -> Iterator[float]:
    yield from (high for high in (4.0, 2.0, 8.0) if high >= rule.low_freq_factor)


def _other_fast(rule: Any) -> Iterator[float]:
    yield from (beta for beta in (32.0, 16.0, 64.0) if beta > rule.beta_slow)


def _other_slow(rule: Any) -> Iterator[float]:
    yield from (beta for beta in (1.0, 2.0, 4.0) if beta < rule.beta_fast)


def _one_table(rule_of: Callable[[LongropeScaling], LongropeScaling], behaves_as: str) -> Slips:
    """The slips by which one of two tables serves short and long inputs."""

    def wrong(rope: Rope) -> Iterator[tuple[str, Rope]]:
        if isinstance(rope.scaling, LongropeScaling) and rope.scaling.short_factors != rope.scaling.long_factors:
            yield behaves_as, replace(rope, scaling=rule_of(rope.scaling))

    return slips(ropes, lambda _rope: "a table of their own", wrong)


def _in_all_layers(architecture: Architecture) -> Iterator[Slip]:
    """A scaling that some layers have, on the bases of the others too."""
    found: list[Rope] = []
    plain: list[int] = []

    for index, layer in enumerate(architecture.layers):

        def look(rope: Rope, index: int = index) -> Rope:
            if rope.scaling is None:
                plain.append(index)
            elif rope not in found:
                found.append(rope)
            return rope

        ropes(layer, look)
    for source in found if plain else ():

        def scaled(rope: Rope, source: Rope = source) -> Rope:
            fits = rope.rotary_dim == source.rotary_dim or not isinstance(source.scaling, LongropeScaling)
            if rope.scaling is not None or not fits:
                return rope
            return replace(rope, scaling=source.scaling, attention_factor=source.attention_factor)

        def change(faulty: Faulty, layers: Layers, scaled: Callable[[Rope], Rope] = scaled) -> Faulty:
            def all_ropes(layer: Layer) -> Layer:
                return ropes(layer, scaled)

            return in_layers(faulty, layers, all_ropes)

        assert source.scaling is not None
        yield Slip("null in some layers", f"{source.scaling.kind} in all", change, tuple(dict.fromkeys(plain)))


def _fault(name: str, find: Slips, *, wrong: str, when: str, mend: str, seen: tuple[str, ...] = ()) -> Fault:
    """A fault of one constant."""
    field = f"position.scaling.{name}"
    return Fault(field, field, "architecture", wrong, when, mend, find, seen)


FAULTS = (
    Fault(
        id="position.scaling",
        field="position.scaling",
        kind="architecture",
        wrong="The frequencies are not scaled.",
        when="rotary positions with a scaling",
        mend="read rope_scaling, or rope_parameters, from the config; it acts on short prompts too",
        slips=slips(ropes, lambda rope: rope.scaling.kind if rope.scaling else "null", _unscaled),
        seen=(
            "ggml-org/llama.cpp#8676",
            "NVIDIA/TensorRT-Model-Connect#661",
            "ggml-org/llama.cpp#2772",
            "turboderp-org/exllamav2#704",
        ),
        same_when="the factor is 1",
    ),
    Fault(
        id="position.scaling.layers",
        field="position.scaling",
        kind="architecture",
        wrong="All layers scale their frequencies, where only some should.",
        when="models of which some layers scale their rotary positions",
        mend="scale in those kinds of layer alone that declare it",
        slips=_in_all_layers,
        seen=("Blaizzy/mlx-vlm#1709",),
    ),
    Fault(
        id="position.scaling.kind",
        field="position.scaling.kind",
        kind="architecture",
        wrong="Frequencies are scaled by another rule than declared, with the same factor.",
        when="rotary positions with a scaling that has a factor",
        mend="choose the rule by rope_type",
        slips=slips(ropes, lambda rope: rope.scaling.kind if rope.scaling else "null", _other_kind),
        seen=("vllm-project/vllm#41236", "ml-explore/mlx-lm#1553"),
    ),
    _fault(
        "factor",
        _constant("factor", _other_factors),
        wrong="Frequencies are slowed by another factor than declared.",
        when="scalings with a factor",
        mend="read the factor from the config",
    ),
    _fault(
        "original_context",
        _other_originals,
        wrong="The scaling starts from another length than the one that the model was first trained at.",
        when="scalings with an original context",
        mend="read original_max_position_embeddings, and not max_position_embeddings",
    ),
    _fault(
        "low_freq_factor",
        _constant("low_freq_factor", _other_low),
        wrong="The band of blended pairs begins elsewhere than declared.",
        when="llama3 scalings",
        mend="read low_freq_factor from the config",
    ),
    _fault(
        "high_freq_factor",
        _constant("high_freq_factor", _other_high),
        wrong="The band of blended pairs ends elsewhere than declared.",
        when="llama3 scalings",
        mend="read high_freq_factor from the config",
    ),
    _fault(
        "beta_fast",
        _constant("beta_fast", _other_fast),
        wrong="The ramp begins at another number of turns than declared.",
        when="yarn scalings",
        mend="read beta_fast from the config; 32 is a default",
    ),
    _fault(
        "beta_slow",
        _constant("beta_slow", _other_slow),
        wrong="The ramp ends at another number of turns than declared.",
        when="yarn scalings",
        mend="read beta_slow from the config; 1 is a default",
    ),
    _fault(
        "attention_factor",
        slips(ropes, lambda rope: rope.attention_factor, _amplitudes),
        wrong="Cosines and sines are multiplied by another factor than declared, or by none.",
        when="scalings that multiply cosines and sines",
        mend="multiply cosines and sines, once, by what yarn or longrope ask for",
        seen=("vllm-project/vllm#57563",),
    ),
    _fault(
        "mscale",
        _constant("mscale", lambda _rule: (None,)),
        wrong="The attention factor leaves mscale out.",
        when="yarn scalings with mscale and mscale_all_dim",
        mend="divide the form with mscale by the one with mscale_all_dim",
    ),
    _fault(
        "mscale_all_dim",
        _constant("mscale_all_dim", lambda rule: (rule.mscale,)),
        wrong="mscale stands in the place of mscale_all_dim.",
        when="yarn scalings with mscale and mscale_all_dim",
        mend="divide the form with mscale by the one with mscale_all_dim",
        seen=("NVIDIA/Megatron-LM#1429",),
    ),
    _fault(
        "truncate",
        _constant("truncate", lambda rule: (not rule.truncate,)),
        wrong="The ramp begins and ends at whole pairs where it should not, or does not where it should.",
        when="yarn scalings",
        mend="round the ends of the ramp where truncate is true, as it is by default",
    ),
    _fault(
        "short_factors",
        _one_table(lambda rule: replace(rule, short_factors=rule.long_factors), "long_factors"),
        wrong="Short inputs are turned by the table for long ones.",
        when="longrope scalings with two tables",
        mend="choose the table by the length of the input",
        seen=("lablup/mlxcel#1358",),
    ),
    _fault(
        "long_factors",
        _one_table(lambda rule: replace(rule, long_factors=rule.short_factors), "short_factors"),
        wrong="Long inputs are turned by the table for short ones.",
        when="longrope scalings with two tables",
        mend="choose the table by the length of the input",
        seen=("lablup/mlxcel#1358",),
    ),
    _fault(
        "long_attention_factor",
        _constant("long_attention_factor", lambda _rule: (None,)),
        wrong="Long inputs have the attention factor of short ones.",
        when="longrope scalings with an attention factor for long inputs",
        mend="choose the factor by the length of the input, as the table",
    ),
    _fault(
        "alpha",
        _constant("alpha", lambda rule: (1000.0, 2 * rule.alpha)),
        wrong="The base grows by another alpha than declared.",
        when="ntk_alpha scalings",
        mend="read alpha from the config",
        seen=("turboderp-org/exllamav2#704",),
    ),
    _fault(
        "share",
        _constant("share", lambda rule: (1.0,)),
        wrong="All pairs turn where some should stand still.",
        when="proportional scalings",
        mend="give the pairs beyond the share the frequency 0",
    ),
)
