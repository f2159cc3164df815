"""Discrete choices of a model (which experts a token is sent to): recorded, pinned, and taken the other way.

A mixture of experts is not continuous: where two experts tie within the noise, a correct port may take the other one,
and everything behind that position in the row changes. So the noise floor is measured with the choices pinned, and a
port that parts from the reference at a near tie is held against the reference that takes the other expert there.

Models of transformers choose with `torch.topk`; a few take the best by `max`, and leave out experts whose scores are
greater than a bound. These functions are watched while a model runs: no family needs to be known, and nothing of the
model is changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

# A choice is a near tie if its margin is below this many times what one unit in the last place does to it: a port may
# be eight floors away, and the largest move of many tokens is several times the typical one.
TIE_MARGIN = 64.0


@dataclass(frozen=True, slots=True)
class Flip:
    """A choice to take the other way: the weakest entry taken gives way to the strongest one passed over."""

    call: int
    row: int
    token: int
    group: int


@dataclass(slots=True)
class _Call:
    """One function of a forward pass, over all tokens: k of several scores are taken, in `groups` of every token.

    taken is [batch, tokens, groups, k], weakest (a slot of it), runner_up and margin are [batch, tokens, groups].
    """

    taken: Tensor
    weakest: Tensor
    runner_up: Tensor
    margin: Tensor

    def part(self, start: int, length: int) -> _Call:
        pieces = (one[:, start : start + length] for one in (self.taken, self.weakest, self.runner_up, self.margin))
        return _Call(*pieces)


@dataclass(slots=True)
class Choices:
    """All choices of a run, in the order in which a forward pass makes them. Empty for a model that makes none."""

    calls: Sequence[_Call] = field(default_factory=list)

    def margins(self) -> list[Tensor]:
        """By how much each choice was made, [batch, tokens, groups] per call, in scores."""
        return [call.margin for call in self.calls]


@dataclass(frozen=True, slots=True)
class Noise:
    """How far one unit in the last place moves each margin, [batch, tokens, groups] per call."""

    per_call: Sequence[Tensor]

    def near_ties(self, choices: Choices, row: int, token: int) -> list[Flip]:
        """The choices of one token that lie within the noise, the closest first."""
        found = []
        for call, (margins, noise) in enumerate(zip(choices.margins(), self.per_call, strict=True)):
            for group, (margin, moved) in enumerate(zip(margins[row, token], noise[row, token], strict=True)):
                if margin <= TIE_MARGIN * moved:
                    found.append((float(margin / moved), Flip(call, row, token, group)))
        return [flip for _, flip in sorted(found, key=lambda one: one[0])]

    def tied(self, choices: Choices, like: Tensor) -> Tensor:
        """[batch, tokens], as `like`: where any choice lies within the noise."""
        mask = torch.zeros_like(like, dtype=torch.bool)
        for margins, noise in zip(choices.margins(), self.per_call, strict=True):
            mask |= (margins <= TIE_MARGIN * noise).any(-1)
        return mask


def noise_of(base: Choices, moved: Sequence[Choices]) -> Noise:
    """The noise of all margins, from runs with moved weights in which the choices of `base` were pinned.

    At least the median of all tokens counts, since a single draw may happen to move a margin by nothing.
    """
    per_call = []
    for call, margins in enumerate(base.margins()):
        moves = torch.stack([(run.margins()[call] - margins).abs() for run in moved]).amax(0)
        least = moves.nan_to_num().median().clamp(min=torch.finfo(moves.dtype).tiny)
        per_call.append(moves.clamp(min=least))
    return Noise(tuple(per_call))


_ROUTED = 3
"""The most axes of a router's scores: tokens, groups, experts, or rows, tokens, experts. More are those of attention,
[batch, heads, tokens, keys], whose number of keys grows from step to step."""
_TOPK, _MAX, _GREATER = {torch.topk, Tensor.topk}, {torch.max, Tensor.max}, {torch.gt, Tensor.gt}


class Watch(TorchFunctionMode):
    """Records the choices that a model makes inside this context, and decides those that are `pinned`.

    With a `flip`, all choices before it are pinned, it is taken the other way, and what follows from it (later choices
    of its token, and later tokens of its row) is free. `begin` must be told every forward pass.
    """

    def __init__(self, pinned: Choices | None = None, flip: Flip | None = None) -> None:
        super().__init__()
        self._pinned = pinned
        self._flip = flip
        self._pieces: list[list[_Call]] = []
        self._start = 0
        self._shape = (0, 0)

    def begin(self, start: int, batch: int, tokens: int) -> None:
        """The next forward pass is about to run: `batch` rows of `tokens` tokens, the first at position `start`."""
        self._start, self._shape = start, (batch, tokens)
        self._pieces.append([])

    def made(self) -> Choices:
        """The choices of the forward pass that runs: they are added as they are made."""
        return Choices(self._pieces[-1])

    def choices(self) -> Choices:
        """What was chosen, over all forward passes."""
        parts: Iterator[tuple[_Call, ...]] = zip(*self._pieces, strict=True)
        return Choices(
            [
                _Call(
                    *(
                        torch.cat([getattr(call, name) for call in calls], 1)
                        for name in ("taken", "weakest", "runner_up", "margin")
                    )
                )
                for calls in parts
            ]
        )

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Every function of torch passes here; only those that choose by the scores of all tokens are looked at."""
        out = func(*args, **(kwargs or {}))
        if func in _TOPK or (func in _MAX and not isinstance(out, Tensor)):
            scores: Tensor = args[0] if args else (kwargs or {})["input"]
            if self._chooses(scores, out.indices, by_row=func in _MAX):
                return self._best(scores, out)
        elif func in _GREATER and self._is_list(args[0]):
            return self._greater(args[0] - args[1], out)
        return out

    def _is_list(self, scores: Tensor) -> bool:
        """Whether it has a row of scores for every token, all rows of the batch in one list."""
        batch, tokens = self._shape
        return scores.is_floating_point() and scores.ndim == 2 and len(scores) == batch * tokens

    def _chooses(self, scores: Tensor, indices: Tensor, *, by_row: bool) -> bool:
        """Whether indices are those of some of the scores of every token, and not along another axis."""
        if by_row:
            return self._is_list(scores) and indices.shape == (len(scores), 1)
        per_token = scores.numel() % (math.prod(self._shape) * scores.shape[-1]) == 0
        return scores.ndim <= _ROUTED and indices.shape[:-1] == scores.shape[:-1] and per_token and indices.numel() > 0

    def _best(self, scores: Tensor, out: Any) -> Any:
        """What a topk or a max gives, where choices are pinned those."""
        table = scores.reshape(*self._shape, -1, scores.shape[-1])
        taken = self._taken(table, out.indices.view(*table.shape[:-1], -1))
        indices = taken.view(out.indices.shape)
        return out if self._pinned is None else type(out)((scores.gather(-1, indices), indices))

    def _greater(self, apart: Tensor, out: Tensor) -> Tensor:
        """Which scores are greater than a bound, from which they are so far `apart`: for each of them a yes or no."""
        table = torch.stack((-apart, apart), -1).view(*self._shape, -1, 2)
        taken = self._taken(table, out.long().view(*table.shape[:-1], 1))
        return taken.view(out.shape).bool()

    def _taken(self, table: Tensor, free: Tensor) -> Tensor:
        """Records what is taken of a table of scores [batch, tokens, groups, width]: if pinned those, else `free`."""
        call = _call(table, free)
        if self._pinned is not None:
            call = self._decide(len(self._pieces[-1]), table, call)
        self._pieces[-1].append(call)
        return call.taken

    def _decide(self, number: int, table: Tensor, free: _Call) -> _Call:
        assert self._pinned is not None
        tokens = self._shape[1]
        pinned = self._pinned.calls[number].part(self._start, tokens)
        taken = pinned.taken.clone()
        flip = self._flip
        if flip is not None:
            since = max(flip.token - self._start + (number <= flip.call), 0)
            taken[flip.row, since:] = free.taken[flip.row, since:]
            here = flip.token - self._start
            if number == flip.call and 0 <= here < tokens:
                place = (flip.row, here, flip.group)
                taken[(*place, int(pinned.weakest[place]))] = pinned.runner_up[place]
            return _call(table, taken)
        margin = _at(table, _at(taken, pinned.weakest)) - _at(table, pinned.runner_up)
        return _Call(taken, pinned.weakest, pinned.runner_up, margin)


class Tied(Watch):
    """Decides the near ties of another model as they are `pinned`; what it chooses clearly is its own.

    A choice that has no counterpart of the same form is free as well.
    """

    def __init__(self, pinned: Choices, noise: Noise) -> None:
        super().__init__(pinned)
        self._noise = noise

    def _decide(self, number: int, table: Tensor, free: _Call) -> _Call:
        calls = self._pinned.calls if self._pinned is not None else []
        if number >= len(calls) or calls[number].taken.shape != free.taken.shape:
            return free
        pinned = calls[number]
        if int(pinned.taken.max()) >= table.shape[-1]:
            return free
        near = pinned.margin <= TIE_MARGIN * self._noise.per_call[number]
        return _call(table, torch.where(near[..., None], pinned.taken, free.taken))


def _at(values: Tensor, index: Tensor) -> Tensor:
    return values.gather(-1, index[..., None]).squeeze(-1)


def _call(table: Tensor, taken: Tensor) -> _Call:
    """A choice from its scores [batch, tokens, groups, width] and what was taken of them [..., k]."""
    chosen = table.gather(-1, taken)
    weakest = chosen.argmin(-1)
    if taken.shape[-1] == table.shape[-1]:  # all are taken: there is no other way
        return _Call(taken, weakest, _at(taken, weakest), torch.full_like(chosen[..., 0], torch.inf))
    rest = table.scatter(-1, taken, -torch.inf)
    strongest, runner_up = rest.max(-1)
    return _Call(taken, weakest, runner_up, _at(chosen, weakest) - strongest)
