"""Runs archc in this process, as a shell would see it."""

import contextlib
import io
import json
from dataclasses import dataclass
from typing import Any

from archc.cli import main


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as one JSON document."""
        return json.loads(self.out)


class _Stream(io.TextIOWrapper):
    def __init__(self, terminal: bool) -> None:
        self.terminal = terminal
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        self.flush()
        assert isinstance(self.buffer, io.BytesIO)
        return self.buffer.getvalue().decode()


def archc(*arguments: str, terminal: bool = False) -> Done:
    """Run `archc ARGUMENTS`, in a terminal or in a pipe."""
    out, err = _Stream(terminal), _Stream(terminal)
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(arguments)
    return Done(code, out.text(), err.text())
