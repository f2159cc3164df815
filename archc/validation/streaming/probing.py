"""One probe on its way through the layers: the runs of both sides that it takes, and what becomes of them.

The reference runs it once, and again with moved weights (the floor at the logits); the port runs it by itself, so that
what it is off by adds up. Where layers are judged alone, both sides also run with layers that are given what the
reference gave its own. Near ties of routers are decided as the reference decides them.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from archc.architecture.model import Architecture
from archc.validation.blockwise import Blockwise, unfed
from archc.validation.choices import Choices, Noise, Tied, Watch, noise_of
from archc.validation.divergence import first_of
from archc.validation.parity import NUDGES, Baseline, Deviation, ProbeResult, deviation, floor_of, judge
from archc.validation.places import find_places
from archc.validation.probes import Probe
from archc.validation.streaming.lanes import Lane
from archc.validation.streaming.pages import layer_of
from archc.validation.streaming.sides import PagedPort, PagedReference
from archc.validation.tracing import Recorder, Trace, split
from archc.validation.yardstick import RUNS, Yardstick

_OWN, _FED = "own", "fed"


class Probed:
    """A probe between its first run and its verdict. `traced`: whether its layers are judged alone as well."""

    def __init__(
        self, probe: Probe, architecture: Architecture, reference: PagedReference, port: PagedPort, *, traced: bool
    ) -> None:
        self.probe, self.traced = probe, traced
        self.result: ProbeResult | None = None
        self.finite = True
        """Whether the reference's logits are numbers."""
        self.times: dict[str, float] = {}
        """By how many floors each point is off where layers are fed, as far as the layers have come."""
        self.drift: dict[str, float] = {}
        """By how many floors the output of each layer is off where they are not."""
        self.unfed: set[int] = set()
        self._architecture, self._reference, self._port = architecture, reference, port
        self._base: Tensor | None = None
        self._moved: list[Deviation] = []
        self._pieces: dict[int, Tensor] = {}
        self._steps = [probe] if probe.chunks is None else list(probe.steps())
        self._watches: dict[tuple[str, int | None], Watch] = {}
        self._recorders: dict[tuple[str, int | None], Recorder] = {}

    def reference_lanes(self) -> Iterator[Lane]:
        """The runs of the reference: as it is, then moved; fed ones after those that they are fed from."""
        yield self._reference_lane(_OWN, None)
        for seed in range(NUDGES):
            yield self._reference_lane(_OWN, seed)
            if self.traced and seed < RUNS:
                yield self._reference_lane(_FED, seed)

    def _reference_lane(self, kind: str, seed: int | None) -> Lane:
        model: Any = self._reference.another(seed)
        given = self._reference.signature.inputs(self.probe)
        first = kind == _OWN and seed is None
        watch = self._watches[kind, seed] = Watch(None if first else self._made(_OWN, None))
        watch.begin(0, *self.probe.input_ids.shape)
        recorder = self._recorder(kind, seed, find_places(model, self._architecture)) if self.traced else None

        def body(_: Lane) -> None:
            with recorder or nullcontext(), watch:
                logits = model(input_ids=self.probe.input_ids, use_cache=False, **given).logits
            self._kept(recorder, logits)
            if first:
                self._base = logits
            elif kind == _OWN:
                assert self._base is not None
                self._moved.append(deviation(logits, self._base, self.probe.real))

        return Lane(f"{self.probe.name}, reference {kind} {seed}", self._reference, body, seed)

    def port_lanes(self) -> Iterator[Lane]:
        """The runs of the port: one for each piece of a probe that decodes, all with one cache."""
        starts = [0, *accumulate(step.input_ids.shape[1] for step in self._steps)]
        caches = self._caches(starts)
        for number, (step, start) in enumerate(zip(self._steps, starts, strict=False)):
            yield self._port_lane(_OWN, number, step, start, caches[number])
        if self.traced:
            yield self._port_lane(_FED, 0, self.probe, 0, None)

    def _caches(self, starts: Sequence[int]) -> list[Any]:
        """For each piece what it sees of the cache: the keys and values of all layers, and how long it is by then."""
        if self.probe.chunks is None:
            return [None]
        with self._port.paging(lambda page: None):
            whole = self._port.model.new_cache(len(self.probe.input_ids), sum(self.probe.chunks))
        found = []
        for start in starts[:-1]:
            found.append(copy.copy(whole))
            found[-1].length = start
        return found

    def _port_lane(self, kind: str, number: int, step: Probe, start: int, cache: Any) -> Lane:
        shape = (step.input_ids.shape[0], step.input_ids.shape[1])
        seeds = range(NUDGES) if kind == _OWN else range(RUNS)
        watch = Tied(*_piece(self._made(_OWN, None), [self._made(kind, seed) for seed in seeds], start, shape[1]))
        watch.begin(start, *shape)
        recorder = self._recorder(kind, -1, self._port.places) if self.traced else None

        def body(_: Lane) -> None:
            more = (step.position_ids, step.attention_mask, *([] if cache is None else [cache]))
            with recorder or nullcontext(), watch:
                logits = self._port.model(step.input_ids, *more)
            self._kept(recorder, logits)
            if kind == _OWN:
                self._pieces[number] = logits

        return Lane(f"{self.probe.name}, port {kind} {number}", self._port, body)

    def _made(self, kind: str, seed: int | None) -> Choices:
        return self._watches[kind, seed].made()

    def _recorder(self, kind: str, seed: int | None, places: Any) -> Recorder:
        """A recorder of a run; one that is fed is given what the first run of the reference gave, as it comes."""
        fed = {} if kind == _OWN else self._recorders[_OWN, None].entering
        shape = (self.probe.input_ids.shape[0], self.probe.input_ids.shape[1])
        found = self._recorders[kind, seed] = Recorder(places, shape, fed)
        return found

    @staticmethod
    def _kept(recorder: Recorder | None, logits: Tensor) -> None:
        if recorder is not None:
            recorder.points["logits"] = logits.detach().clone()

    @property
    def so_far(self) -> dict[str, Any]:
        """What the layers have said so far, as JSON has it."""
        return {"times": self.times, "drift": self.drift, "unfed": sorted(self.unfed)}

    @so_far.setter
    def so_far(self, found: Mapping[str, Any]) -> None:
        self.times, self.drift, self.unfed = dict(found["times"]), dict(found["drift"]), set(found["unfed"])

    def settle(self) -> None:
        """Judges the logits as soon as all are there, and lets go of them."""
        if self._base is None or len(self._moved) < NUDGES or len(self._pieces) < len(self._steps):
            return
        floor = floor_of(self._moved, self._base[self.probe.real])
        ours = torch.cat([self._pieces[number] for number in sorted(self._pieces)], dim=1)
        baseline = Baseline(self.probe, self._base, floor)
        self.result = judge(self._reference.reference, baseline, ours)
        self.finite = bool(self._base[self.probe.real].isfinite().all())
        self._base = None
        self._pieces.clear()

    def has_left(self, layer: int) -> bool:
        """Whether all runs that are compared have the output of a layer behind them."""
        if not self.traced:
            return True
        return all(f"layers.{layer}.out" in recorder.points for recorder in self._recorders.values())

    def blockwise(self) -> Blockwise:
        """The layers that were judged alone."""
        times = {point: one for point, one in self.times.items() if not self._is_unfed(point)}
        ruler = Yardstick.of(self.probe, self._reference.places, Trace(), [])
        beyond = ruler.beyond(times)
        layers = sorted({int(split(point)[0].split(".")[1]) for point in beyond if split(point)[0]})
        return Blockwise(
            self.probe.name, ruler.bound, times, tuple(layers), first_of(beyond), tuple(sorted(self.unfed))
        )

    def _is_unfed(self, point: str) -> bool:
        stem, _ = split(point)
        return bool(stem) and int(stem.split(".")[1]) in self.unfed

    def compare(self, layer: int | None) -> None:
        """Compares the points of a layer, or those behind all layers, and lets go of them."""
        if not self.traced:
            return
        stem = "" if layer is None else f"layers.{layer}."
        held = {key: _points(recorder, stem) for key, recorder in self._recorders.items()}
        base = Trace(held[_OWN, None], self._recorders[_OWN, None].entering)
        fed = Yardstick.of(self.probe, self._reference.places, base, [held[_FED, seed] for seed in range(RUNS)])
        self.times |= fed.times(held[_FED, -1])
        own = Yardstick.of(self.probe, self._reference.places, base, [held[_OWN, seed] for seed in range(RUNS)])
        self.drift |= {
            name: one for name, one in own.times(held[_OWN, -1]).items() if split(name)[1] in {"out", "logits"}
        }
        if layer is not None:
            theirs, ours = base.entering, self._recorders[_FED, -1].entering
            self.unfed |= {number for number in unfed(self._reference.places, theirs, ours) if number == layer}
        for recorder in self._recorders.values():
            for table in (recorder.points, recorder.entering):
                for name in [name for name in table if layer is not None and layer_of(_page(name)) <= layer]:
                    del table[name]


def _points(recorder: Recorder, stem: str) -> dict[str, Tensor]:
    """The points of a layer, those before the first among its own; all that are left where the stem is empty."""
    stems = (stem, "embed") if stem == "layers.0." else (stem,)
    return {name: one for name, one in recorder.finished().items() if name.startswith(stems)}


def _page(point: str) -> str:
    return ".".join(point.split(".")[:2])


def _piece(choices: Choices, moved: list[Choices], start: int, length: int) -> tuple[Choices, Noise]:
    """A piece of choices that are yet to be made, and their noise."""
    return Choices(_Piece(choices, start, length)), Noise(_PieceNoise(choices, moved, start, length))


class _Piece(Sequence[Any]):
    def __init__(self, choices: Choices, start: int, length: int) -> None:
        self._choices, self._start, self._length = choices, start, length

    def __len__(self) -> int:
        return len(self._choices.calls)

    def __getitem__(self, number: Any) -> Any:
        return self._choices.calls[number].part(self._start, self._length)


class _PieceNoise(Sequence[Any]):
    def __init__(self, choices: Choices, moved: list[Choices], start: int, length: int) -> None:
        self._choices, self._moved, self._start, self._length = choices, moved, start, length
        self._found: dict[int, Tensor] = {}

    def __len__(self) -> int:
        return len(self._choices.calls)

    def __getitem__(self, number: Any) -> Any:
        if number not in self._found:
            one, *others = (Choices([made.calls[number]]) for made in (self._choices, *self._moved))
            self._found[number] = noise_of(one, others).per_call[0]
        return self._found[number][:, self._start : self._start + self._length]
