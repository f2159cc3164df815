"""The generated module split over the processes that torchrun started: one leads the gate, the others follow it.

The first process, the leader, runs the gate; where that asks its port for logits, every process runs its share. Orders
are broadcast, over gloo on the CPU. The processes are of one job and run the same code: what they send each other is
pickled, and comes from nowhere else.
"""

from __future__ import annotations

import atexit
import datetime
import os
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor

from archc.architecture.model import Architecture
from archc.codegen import generate
from archc.errors import ArchcError, IncompleteError
from archc.validation.ports import GeneratedPort, OpenPort, import_source
from archc.validation.probes import Probe

LEADER = 0
_PATIENCE = datetime.timedelta(days=1)
"""How long a process waits for the others. The leader works alone for long; one that ends is noticed at once."""


@dataclass(frozen=True, slots=True)
class Open:
    """Load the module of an Architecture with the weights in a folder and split it. From then on it has that number."""

    number: int
    architecture: Architecture
    folder: Path
    dtype: torch.dtype


@dataclass(frozen=True, slots=True)
class Run:
    """Run a probe through the module of that number, and forget those that the leader has no more use for."""

    number: int
    probe: Probe
    left: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class End:
    """Leave, with this exit code."""

    code: int


Order: TypeAlias = Open | Run | End


class Company:
    """The processes of a job, of which this is one."""

    def __init__(self) -> None:
        dist.init_process_group("gloo", timeout=_PATIENCE)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.mesh = init_device_mesh("cpu", (self.size,))
        self.left: list[int] = []
        """Numbers of modules that the leader has no more use for."""
        self._numbers = count()
        self._broken = False
        self._code = IncompleteError.exit_code
        atexit.register(self._leave)

    @property
    def leads(self) -> bool:
        """Whether this is the process that runs the gate."""
        return self.rank == LEADER

    def number(self) -> int:
        """A number that no module has."""
        return next(self._numbers)

    def forgotten(self) -> tuple[int, ...]:
        """The modules that the others have not been told to forget yet."""
        found = tuple(self.left)  # more may be left at any moment
        del self.left[: len(found)]
        return found

    def tell(self, order: Order) -> None:
        """Gives all others an order."""
        with self._together():
            dist.broadcast_object_list([order], src=LEADER)

    def follow(self) -> int:
        """Does what the leader says until it says to leave; the exit code is the leader's."""
        ports: dict[int, GeneratedPort] = {}
        while True:
            heard: list[Any] = [None]
            with self._together():
                dist.broadcast_object_list(heard, src=LEADER)
            match heard[0]:
                case Open() as order:
                    opened = self.open(order)
                    if isinstance(opened, GeneratedPort):
                        ports[order.number] = opened
                case Run() as order:
                    for number in order.left:
                        ports.pop(number, None)
                    self.run(ports[order.number], order.probe)
                case End(code):
                    self._part(code)
                    return code

    def open(self, order: Open) -> GeneratedPort | str:
        """This process's share of a module, or why there is none: in all processes, where one cannot load it."""
        module: Any = None
        model: Any = None
        problem = None
        try:
            module = import_source(generate(order.architecture))
            model = module.Model.from_pretrained(order.folder, order.dtype)
        except (ArchcError, ValueError, OSError, MemoryError) as error:
            problem = f"process {self.rank} cannot load {order.folder}: {str(error) or 'out of memory'}"
        if problem is None and not hasattr(module, "parallelize"):
            problem = f"no part of {order.architecture.name} has a plan"
        problems: list[str | None] = [None] * self.size
        with self._together():
            dist.all_gather_object(problems, problem)
            found = next((each for each in problems if each is not None), None)
            if found is not None:
                return found
            module.parallelize(model, self.mesh)
        name = f"generated from {order.architecture.name}, tensor parallel over {self.size} processes"
        return GeneratedPort.of(
            model, f"{name}, which share {int(100 * _shared(model))}% of its weights", order.architecture
        )

    def run(self, port: GeneratedPort, probe: Probe) -> Tensor:
        """Logits of a probe, of which every process works out its share."""
        with self._together():
            return port.logits(probe)

    def opener(self, dtype: torch.dtype) -> OpenPort:
        """What makes ports that are split over the company."""
        return partial(ParallelPort, self, dtype)

    def end(self, code: int) -> None:
        """Sends the others home with an exit code."""
        if not self._broken:
            self.tell(End(code))
            self._part(code)

    def _part(self, code: int) -> None:
        """Ends the group, once all have heard that it ends."""
        self._code = code
        with self._together():
            dist.barrier()
            dist.destroy_process_group()

    def _leave(self) -> None:
        """Ends the process at once: threads of gloo ask for the interpreter as it ends, and abort every fourth time."""
        with suppress(OSError):  # whoever reads has had enough
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(self._code)

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Work that all processes take part in: where it fails in one of them, it cannot go on in any."""
        try:
            yield
        except Exception as error:
            self._broken = True
            problem = f"process {self.rank} of {self.size}, which run the port together, cannot go on: {error}"
            raise IncompleteError(problem, "see what the others say") from error


class ParallelPort:
    """The generated module of an Architecture, split over the processes of a company."""

    kind = "generated"
    reloads = True

    def __init__(self, company: Company, dtype: torch.dtype, architecture: Architecture, folder: Path) -> None:
        self._company, self._number = company, company.number()
        order = Open(self._number, architecture, folder, dtype)
        company.tell(order)
        opened = company.open(order)
        if isinstance(opened, str):
            raise IncompleteError(
                f"the generated module cannot be split: {opened}", "check the spec, or try without torchrun"
            )
        self._share, self.name = opened, opened.name
        weakref.finalize(self, company.left.append, self._number)

    def refusal(self, probe: Probe) -> str | None:
        """It can run every probe."""
        del probe
        return None

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe."""
        self._company.tell(Run(self._number, probe, self._company.forgotten()))
        return self._company.run(self._share, probe)

    def points(self, probe: Probe) -> None:
        """No process has whole activations."""
        del probe


def _shared(model: nn.Module) -> float:
    """Which part of a model's weights no process holds whole."""
    sizes = [(weight.numel(), _is_split(weight)) for weight in model.parameters()]
    return sum(size for size, split in sizes if split) / sum(size for size, _ in sizes)


def _is_split(weight: Tensor) -> bool:
    return isinstance(weight, DTensor) and any(placement.is_shard() for placement in weight.placements)
