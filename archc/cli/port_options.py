"""The options that name a port, of one kind or another."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from archc.errors import UsageError

if TYPE_CHECKING:
    import torch

    from archc.architecture import Architecture
    from archc.validation.ports import Port

TIMEOUT: Final = 600


@dataclass(frozen=True, slots=True)
class ChosenPort:
    """What the options say: at most one of a Python place, a command line and a trace file."""

    place: str | None
    command: str | None
    trace: str | None
    timeout: float

    @property
    def is_generated(self) -> bool:
        """Whether none is named, so that the generated module is the port."""
        return self.place is self.command is self.trace is None

    @property
    def file(self) -> Path | None:
        """The file that the port is in: its Python code, or its recording; None where it is in none, or in many."""
        if self.trace is not None:
            return Path(self.trace)
        code = Path((self.place or "").rpartition(":")[0])
        return code if code.suffix == ".py" else None

    def opener(self, dtype: torch.dtype | None = None) -> Callable[[Architecture, Path], Port]:
        """What opens the port; Python code is told the type. Raises UsageError where there is none. Imports torch."""
        from archc.validation.command_port import open_command_port
        from archc.validation.ports import GeneratedPort
        from archc.validation.python_port import open_python_port
        from archc.validation.trace_port import open_trace_port

        if self.place is not None:
            return open_python_port(self.place, dtype)
        if self.command is not None:
            return open_command_port(self.command, self.timeout)
        return GeneratedPort if self.trace is None else open_trace_port(self.trace)


def port_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--port`, `--port-command` with `--port-timeout`, and `--trace`, passed together as `port`."""

    @functools.wraps(function)
    def bundled(
        *, place: str | None, port_command: str | None, trace: str | None, port_timeout: float | None, **others: Any
    ) -> Any:
        kinds = {"--port": place, "--port-command": port_command, "--trace": trace}
        given = [name for name, value in kinds.items() if value is not None]
        if len(given) > 1:
            raise UsageError(f"{' and '.join(given)} each name a port", "give one of them")
        if port_timeout is not None and port_command is None:
            raise UsageError("--port-timeout is for a port that is a command", "add --port-command, or leave it out")
        return function(port=ChosenPort(place, port_command, trace, port_timeout or TIMEOUT), **others)

    command: Callable[..., Any] = bundled
    for option in (
        click.option("--trace", metavar="FILE", help="A recording of the port: logits and perhaps activations."),
        click.option(
            "--port-timeout",
            type=click.FloatRange(0, min_open=True),
            metavar="SECONDS",
            help=f"What one run of the command may take; {TIMEOUT} unless given.",
        ),
        click.option("--port-command", metavar="CMD", help="A port in any language: 'CMD {weights} {probes} {out}'."),
        click.option("--port", "place", metavar="PLACE", help="package.module:name or file.py:name; its code is run."),
    ):
        command = option(command)
    return command
