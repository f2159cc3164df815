"""The constants at the top of a generated module, part by part."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from archc.architecture.model import Architecture
from archc.codegen.naming import Names, Variant, literal
from archc.parts.position import Rope
from archc.parts.scaling import Scaling

T = TypeVar("T", bound=Hashable)
AttentionFactors = tuple[float, float | None]
"""What multiplies cosines and sines, and what does so for long inputs, where it is another."""
Rule = tuple[Scaling | None, AttentionFactors]
"""How frequencies are made, whatever their base."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A line `NAME = value  # comment` at the top of the module."""

    name: str
    value: str
    comment: str = ""


def size_constants(architecture: Architecture) -> Iterator[Constant]:
    """Sizes of the whole model."""
    yield Constant("VOCAB_SIZE", literal(architecture.vocab_size))
    yield Constant("WIDTH", literal(architecture.hidden_size), "channels of the residual stream")
    yield Constant("LAYERS", literal(len(architecture.layers)))
    yield Constant("BLOCKS", "8", "of a matrix, which one row goes through side by side")
    if architecture.embedding.positions:
        yield Constant("CONTEXT", literal(architecture.context), "positions that have a learned row")


def rope_constants(rope: Rope, c: Names) -> Iterator[Constant]:
    """What the unscaled frequencies depend on."""
    yield Constant(c.ROPE_BASE, literal(rope.base))
    if rope.rotary_dim < rope.head_dim:
        yield Constant(c.ROTARY_DIM, literal(rope.rotary_dim), "channels of a head that rotate")


def scaling_constants(rule: Rule, c: Names) -> Iterator[Constant]:
    """What changes the frequencies for long inputs."""
    scaling, factors = rule
    for name, value in scaling.numbers.items() if scaling else ():
        if isinstance(value, tuple):
            table = "".join(f"    {literal(float(entry))},\n" for entry in value)
            yield Constant(getattr(c, f"ROPE_{name.upper()}"), f"(\n{table})")
        else:
            yield Constant(getattr(c, f"ROPE_{name.upper()}"), literal(value))
    usual, long = factors
    if usual != 1 or long is not None:
        yield Constant(c.ROPE_ATTENTION_FACTOR, literal(usual), "multiplies cosines and sines")
    if long is not None:
        yield Constant(c.ROPE_LONG_ATTENTION_FACTOR, literal(long), "the same for long inputs")


def named(forms: Sequence[Variant[T]], constants: Callable[[T, Names], Iterable[Constant]]) -> list[Names]:
    """Names for the constants of several forms of a part: those in which all agree that have them are shared."""
    plain = [{each.name: each for each in constants(form.value, Names())} for form in forms]
    shared = {name for found in plain for name in found}
    while clashing := {name for name in shared if not _agree(name, plain, shared)}:
        shared -= clashing
    names = [Names(form.prefix, frozenset(shared)) for form in forms]
    own = [getattr(c, name) for c, found in zip(names, plain, strict=True) for name in found if name not in shared]
    if len({*own, *shared}) < len(own) + len(shared):  # a prefix and one name give another name
        return [Names(f"kind{number}", frozenset(shared)) for number in range(1, len(forms) + 1)]
    return names


def _agree(name: str, forms: Sequence[Mapping[str, Constant]], shared: set[str]) -> bool:
    """Whether a constant is the same in all forms that have it, and made of others that are."""
    having = [found for found in forms if name in found]
    made_of = {word for found in having for word in re.findall(r"[A-Z_]+", found[name].value) if word in found}
    return made_of <= shared and len({found[name].value for found in having}) == 1


def with_names(
    forms: Sequence[Variant[T]], constants: Callable[[T, Names], Iterable[Constant]]
) -> list[tuple[Variant[T], Names]]:
    """The forms of a part, each with the names of its constants."""
    return list(zip(forms, named(forms, constants), strict=True))
