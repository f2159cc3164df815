"""Many runs of a model that go through its weights together: each waits where a page ends until all have come so far.

A run is an ordinary forward pass in a thread of its own, of which one at a time is awake. It sleeps when it touches a
weight that is not resident. When all sleep, the page that comes first is loaded, and those that wait for it are woken
one by one, in their order; then it is dropped. Whatever a model hands from layer to layer stays where it is, in the
stack of its thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Protocol

import torch

from archc.validation.arithmetic import other_products
from archc.validation.streaming.paging import Page, Paging


class Side(Protocol):
    """One of the two models."""

    def paging(self, wait: Callable[[Page], None]) -> Paging:
        """The mode in which its runs see the numbers of their weights."""

    def moved(self, seed: int | None) -> None:
        """Moves all that is resident by one unit in the last place, by a seed; None: as it is stored."""


class _StoppedError(BaseException):
    """Ends a run that nobody waits for any more. No code of a model catches it."""


@dataclass(slots=True)
class Lane:
    """One run. `seed` says how the weights are moved while it is awake."""

    name: str
    side: Side
    body: Callable[[Lane], None]
    seed: int | None = None
    stream: torch.Tensor | None = None
    """What entered the layer that it is in."""
    left: torch.Tensor | None = None
    """What the layer that it has left gave, until it enters the next."""
    wants: Page | None = None
    error: Exception | None = None
    done: bool = False
    _thread: threading.Thread | None = None
    _go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _back: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    _stopped: bool = False

    def wake(self) -> None:
        """Runs on until it wants a page or ends."""
        self.side.moved(self.seed)
        self.wants = None
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self.name, daemon=True)
            self._thread.start()
        else:
            self._go.release()
        self._back.acquire()

    def stop(self) -> None:
        """Ends it where it is."""
        if self._thread is not None and not self.done:
            self._stopped = True
            self._go.release()
            self._back.acquire()
        self.done = True

    def _run(self) -> None:
        _AWAKE.lane = self
        try:
            # The second mode shows the first what a weight holds.
            with torch.no_grad(), self._products(), self.side.paging(self._wait):
                self.body(self)
        except _StoppedError:
            pass
        except Exception as error:  # what a model trips over is told to whoever waits
            self.error = error
        finally:
            self.done = True
            self._back.release()

    def _products(self) -> AbstractContextManager[object]:
        return nullcontext() if self.seed is None else other_products()

    def _wait(self, page: Page) -> None:
        self.wants = page
        self._back.release()
        self._go.acquire()
        if self._stopped:
            raise _StoppedError


_AWAKE = threading.local()


def awake() -> Lane | None:
    """The lane whose code asks; None outside of all lanes."""
    return getattr(_AWAKE, "lane", None)


@contextmanager
def started(lanes: Sequence[Lane]) -> Iterator[None]:
    """Runs all lanes up to the first page that each wants; stops those that have not ended, at the end."""
    try:
        for lane in lanes:
            lane.wake()
        yield
    finally:
        for lane in lanes:
            lane.stop()


def wanted(lanes: Sequence[Lane]) -> Page | None:
    """The page that comes first of those that are waited for; None where all lanes have ended."""
    pages = [lane.wants for lane in lanes if lane.wants is not None and not lane.done]
    return min(pages, key=lambda page: page.layer, default=None)
