"""A streamed run: which lanes there are, their walk through the checkpoint, and the verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import torch
from torch import Tensor

from archc.architecture import Architecture, Compiled
from archc.checkpoints.headers import StoredTensor, read_checkpoint
from archc.errors import IncompleteError, UsageError
from archc.validation.blockwise import probes_for_layers
from archc.validation.parity import FloorRun
from archc.validation.ports import GeneratedPort, OpenPort
from archc.validation.probes import UNUSED, Blind, Probe, derive_probes, length_matters
from archc.validation.reference import quiet
from archc.validation.static import require_all_read
from archc.validation.streaming.fitting import Fitting, fitting_of
from archc.validation.streaming.lanes import Lane, started, wanted
from archc.validation.streaming.pages import pages_of
from archc.validation.streaming.paging import BEFORE, CHANGED, Page, Stored
from archc.validation.streaming.probing import Probed
from archc.validation.streaming.sides import PagedPort, PagedReference
from archc.validation.streaming.state import Done, State, fingerprint_of
from archc.validation.text import known_tokens

if TYPE_CHECKING:
    from archc.validation.gate import GateResult

Step = Callable[[str], None]
_SHARED: Final = "shared."
KEPT_EVERY: Final = 30.0
"""Seconds between two times that what is done is kept."""

_NOT_ASKED: Final = (
    Blind("invariants", "a streamed run asks none of a port"),
    Blind(
        "mistakes", "a streamed run plants none, so nothing says which would have gone unseen, or which explains a port"
    ),
    Blind("other arithmetic", "the floor of a streamed run is that of moved weights alone"),
    Blind("loss on a text", "a streamed run reads none"),
    Blind("cached reference", "the port's steps are held against the reference's full pass, and not its own steps"),
)


@dataclass(slots=True)
class Streamed:
    """How a streamed run went. Bytes are of weights: on disk those that were read, in memory those of both sides."""

    why: str
    """Why it was streamed."""
    fitting: Fitting
    layers: int = 0
    checkpoint_bytes: int = 0
    bytes_read: int = 0
    most_reads: int = 0
    peak_resident_bytes: int = 0
    seconds_per_layer: list[float] = field(default_factory=list)
    drift: dict[str, dict[str, float]] = field(default_factory=dict)
    """By probe: how many floors the output of each layer is off where the port runs by itself."""
    resumed_at: int | None = None
    """The layer that it went on from."""
    state: Path | None = None
    """Where what has been done was kept meanwhile."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """Whether a run is to be streamed: where that is `asked`, and else where whole models do not fit in memory.

    `say` is told what a user of a streamed run should know before its end.
    """

    asked: bool = False
    say: Step = lambda _: None

    def of(self, tensors: Mapping[str, StoredTensor], open_port: OpenPort, dtype: torch.dtype) -> Streamed | None:
        """A streamed run of a checkpoint, None for a whole one. Raises UsageError where what is asked cannot be."""
        fitting = fitting_of(tensors.values(), dtype.itemsize)
        if not self.asked and fitting.fits:
            return None
        if self.asked and open_port is not GeneratedPort:
            raise UsageError("--stream fills the generated module alone, layer by layer", "leave out port or --stream")
        if self.asked and dtype is not torch.float32:
            raise UsageError(f"--stream runs in float32, and not in {dtype}", "leave out --dtype")
        able = open_port is GeneratedPort and dtype is torch.float32
        return Streamed("asked for" if self.asked else "whole models do not fit in memory", fitting) if able else None


def run_streamed(compiled: Compiled, folder: Path, step: Step, say: Step, result: GateResult) -> None:
    """Fills in the verdict of a generated module on the weights in `folder`, in 32 bits.

    `step` is told what is about to run, `say` what a user should know before the end.
    """
    architecture, streamed = compiled.architecture, result.stream
    assert streamed is not None
    start = time.perf_counter()
    step("build both models without their weights")
    stored = Stored(read_checkpoint(folder))
    pages = pages_of(architecture, stored.tensors)
    reference = PagedReference(folder, architecture, pages, stored.tensors)
    require_all_read(architecture, reference.reference.unread, folder, result.manifest)
    port = PagedPort(folder, architecture, pages, stored.tensors)
    result.reference_version, result.port_kind, result.port_name = reference.reference.version, "generated", port.name
    result.seconds["load"] = time.perf_counter() - start

    derived, blind = derive_probes(
        architecture,
        avoid=reference.reference.padding,
        wall=architecture.embedding.positions or None,
        known=known_tokens(folder),
    )
    result.planned = len(derived)
    probes, unseen = _feasible(architecture, derived, reference)
    result.blind += [*blind, *unseen, *_NOT_ASKED]
    traced = {one.name for one in _traced(architecture, probes)}
    probed = [Probed(one, architecture, reference, port, traced=one.name in traced) for one in probes]
    files = {tensor.file for tensor in stored.tensors.values()}
    fingerprint = partial(fingerprint_of, result.spec_sha256, port.source, folder, files, probes)
    begun = fingerprint()
    state = State(architecture.name, begun)
    streamed.state = state.file
    walk = Walk(reference, port, stored, probed, streamed, step, state)
    say(f"streamed, a layer at a time ({streamed.why}); what is done is kept in {state.file}")
    if streamed.resumed_at is not None:
        say(f"an earlier run has done {streamed.resumed_at} of {streamed.layers} layers: going on from there")
    with quiet():
        walk.run()
    if fingerprint() != begun:
        raise IncompleteError(f"the checkpoint in {folder} was changed while the run read it", CHANGED)
    result.blind += walk.blind
    result.seconds |= walk.seconds
    _conclude(walk, result)


def _feasible(
    architecture: Architecture, probes: Sequence[Probe], reference: PagedReference
) -> tuple[list[Probe], list[Blind]]:
    """The probes that the reference can run in one piece, and why others cannot be."""
    found, blind = [], []
    for probe in probes:
        refusal = reference.signature.refusal(_whole(probe))
        if probe.chunks is not None and length_matters(architecture):
            refusal = "in one piece, and rotations that depend on the length make steps another function"
        if refusal:
            blind.append(Blind(probe.name, f"the reference cannot run the probe: {refusal}"))
        else:
            found.append(probe)
    if not found:
        raise IncompleteError(f"nothing can be compared: {blind[0].why}", "validate it without --stream")
    return found, blind


def _whole(probe: Probe) -> Probe:
    return Probe(probe.name, probe.purpose, probe.input_ids, probe.position_ids, probe.attention_mask)


def _traced(architecture: Architecture, probes: Sequence[Probe]) -> list[Probe]:
    """The probes whose layers are judged alone: those that say most, and the shortest."""
    whole = [probe for probe in probes if probe.chunks is None]
    return [*probes_for_layers(architecture, whole), *sorted(whole, key=lambda one: one.tokens)[:1]]


class Walk:
    """All lanes on their way from the embedding to the head."""

    def __init__(
        self,
        reference: PagedReference,
        port: PagedPort,
        stored: Stored,
        probed: list[Probed],
        streamed: Streamed,
        step: Step,
        state: State,
    ) -> None:
        self._reference, self._port, self._stored, self._step = reference, port, stored, step
        self.probed, self.streamed = probed, streamed
        self.blind: list[Blind] = []
        self.seconds = {"reference": 0.0, "port": 0.0}
        self._compared = 0
        """Layers whose points have been compared."""
        self._resident: list[Page] = []
        self._loads: Counter[Page] = Counter()
        self._state, self._kept = state, time.perf_counter()
        taken_up = self._go_on()
        reference_lanes = [(lane, one) for one in self.probed for lane in one.reference_lanes()]
        reference_lanes.sort(key=lambda pair: -1 if pair[0].seed is None else pair[0].seed)
        self._lanes = [*reference_lanes, *((lane, one) for one in self.probed for lane in one.port_lanes())]
        lacking = (lane.name for lane, _ in self._lanes if taken_up is not None and lane.name not in taken_up)
        if (name := next(lacking, None)) is not None:
            raise IncompleteError(f"{state.file} lacks the run {name}", "remove the file, and run again")
        streamed.layers = len(reference.places.layers)
        streamed.checkpoint_bytes = sum(tensor.nbytes for tensor in stored.tensors.values())

    def run(self) -> None:
        """Walks all lanes to their end."""
        lanes = [lane for lane, _ in self._lanes]
        with started(lanes):
            self._after_a_pass()
            while (page := wanted(lanes)) is not None:
                start = time.perf_counter()
                self._step(self._progress(page))
                self._turn_to(page)
                for lane in lanes:
                    if lane.wants == page and not lane.done:
                        self._wake(lane)
                self._reference.moved(None)
                self._after_a_pass()
                if page.layer != BEFORE:
                    self.streamed.seconds_per_layer.append(time.perf_counter() - start)
                    self._keep()
        self.streamed.bytes_read, self.streamed.most_reads = self._stored.bytes_read, self._stored.most_reads
        for one in self.probed:
            one.compare(None)
        self._state.remove()

    def _wake(self, lane: Lane) -> None:
        start = time.perf_counter()
        lane.wake()
        self.seconds["port" if lane.side is self._port else "reference"] += time.perf_counter() - start

    def _turn_to(self, page: Page) -> None:
        """Loads a page on both sides, in place of those that are not likely to be wanted again."""
        if not page.name.startswith(_SHARED):
            for other in [one for one in self._resident if not self._stays(one)]:
                for side in self._sides:
                    side.drop(other)
                self._resident.remove(other)
        with self._stored.reading() as read:
            for side in self._sides:
                side.load(page, read)
        self._resident.append(page)
        self._loads[page] += 1
        held = sum(side.book.resident_bytes for side in self._sides)
        self.streamed.peak_resident_bytes = max(self.streamed.peak_resident_bytes, held)

    def _stays(self, page: Page) -> bool:
        """Whether it is used at several depths: then a checkpoint is still read no more than twice."""
        return page.layer == BEFORE and (page.name.startswith(_SHARED) or self._loads[page] > 1)

    def _after_a_pass(self) -> None:
        """Looks at what has ended, and at the layers that all have left."""
        for lane, one in self._lanes:
            if lane.error is not None and one in self.probed:
                self._give_up(lane, one)
        for one in self.probed:
            one.settle()
        while self._compared < self.streamed.layers and all(one.has_left(self._compared) for one in self.probed):
            for one in self.probed:
                one.compare(self._compared)
            self._compared += 1

    def _keep(self) -> None:
        """Writes down what is done, where all runs stand before one layer and nothing but their streams goes on."""
        pages = {lane.wants for lane, _ in self._lanes if not lane.done}
        page = pages.pop() if len(pages) == 1 else None
        late = time.perf_counter() - self._kept > KEPT_EVERY
        if not late or page is None or page.layer == BEFORE or not self._seams_closed or self._compared != page.layer:
            return
        streams = {
            lane.name: lane.stream for lane, one in self._lanes if lane.stream is not None and one in self.probed
        }
        results = {
            "probed": {one.probe.name: one.so_far for one in self.probed},
            "blind": [[one.field, one.why] for one in self.blind],
            "seconds": self.streamed.seconds_per_layer,
            "forms": [list(side.seams.forms.items()) for side in self._sides],
        }
        self._state.write(Done(page.layer, results, streams))
        self._kept = time.perf_counter()

    @property
    def _seams_closed(self) -> bool:
        return all(side.seams.closed for side in self._sides)

    @property
    def _sides(self) -> tuple[PagedReference | PagedPort, ...]:
        return self._reference, self._port

    def _go_on(self) -> Mapping[str, Tensor] | None:
        """Takes up what an earlier run of the same has done: the stream of every run. None where there is nothing."""
        done = self._state.read()
        if done is None or not self._is_of(done):
            return None
        lost = dict(done.results["blind"])
        self.blind = [Blind(field, why) for field, why in lost.items()]
        self.probed = [one for one in self.probed if one.probe.name not in lost]
        for one in self.probed:
            one.so_far = done.results["probed"][one.probe.name]
        for side, forms in zip(self._sides, done.results["forms"], strict=True):
            side.seams.skip({number: form for number, form in forms if number < done.layer}, done.streams)
        self.streamed.seconds_per_layer = list(done.results["seconds"])
        self.streamed.resumed_at, self._compared = done.layer, done.layer
        return done.streams

    def _is_of(self, done: Done) -> bool:
        """Whether what an earlier run has left is whole, and of these probes and layers."""
        results = done.results
        try:
            lost = dict(results["blind"])
            kept = [results["probed"][one.probe.name] for one in self.probed if one.probe.name not in lost]
            of_all = "seconds" in results and all({"times", "drift", "unfed"} <= one.keys() for one in kept)
            forms = [sorted(number for number, _ in forms) for forms in results["forms"]]
        except (AttributeError, KeyError, TypeError, ValueError):
            return False
        layers = [*range(done.layer)]
        inside = 0 < done.layer < len(self._reference.places.layers)
        return (
            of_all and inside and len(forms) == len(self._sides) and all(one[: done.layer] == layers for one in forms)
        )

    def _give_up(self, lane: Lane, probed: Probed) -> None:
        """Leaves a probe out that transformers trips over; the generated module has no right to."""
        reason = (str(lane.error).strip().splitlines() or [type(lane.error).__name__])[0][:200]
        if lane.side is self._port:
            raise IncompleteError(
                f"the generated module cannot run the probe {probed.probe.name}: {reason}", "report it"
            )
        for other, one in self._lanes:
            if one is probed:
                other.stop()
        self.probed.remove(probed)
        self.blind.append(Blind(probed.probe.name, f"the reference cannot run the probe: {reason}"))
        if not self.probed:
            raise IncompleteError(f"transformers cannot run the model: {reason}", "check its config.json")

    def _progress(self, page: Page) -> str:
        if page.layer == BEFORE:
            return page.name
        spent, left = self.streamed.seconds_per_layer, self.streamed.layers - page.layer
        pace = f", about {left * sum(spent) / len(spent):.0f} s left" if spent else ""
        return f"layer {page.layer + 1} of {self.streamed.layers}{pace}"


def _conclude(walk: Walk, result: GateResult) -> None:
    """The verdict: by the logits of every probe, and by every layer that was judged alone."""
    streamed = walk.streamed
    for one in walk.probed:
        assert one.result is not None
        if one.probe.name == UNUSED and not one.finite:
            result.blind.append(Blind(UNUSED, "the reference itself gives no numbers there"))
            continue
        result.probes.append(one.result)
        streamed.drift |= {one.probe.name: one.drift} if one.traced else {}
    result.floor_runs = [FloorRun("one unit in the last place", 1.0, ())]
    result.steps_against_whole = True
    judged = sorted((one for one in walk.probed if one.traced), key=lambda one: one.probe.tokens)
    failing = {one.probe.name for one in result.probes if not one.passed}
    layers = [(one, one.blockwise()) for one in judged]
    chosen = [found for one, found in layers if one.probe.name in failing and not found.passed]
    chosen += [found for _, found in layers if not found.passed]
    result.blockwise = chosen[0] if chosen else layers[-1][1] if layers else None
    if result.blockwise is not None and result.blockwise.first is not None:
        result.divergence = result.blockwise.first
    elif failing and all(one.probe.chunks for one in result.probes if not one.passed):
        result.divergence_note = "not traced: only the probe that decodes through the cache fails"
    elif failing:
        result.divergence_note = "none at the traced points: each layer alone does what the reference's does"
