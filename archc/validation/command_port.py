"""A port that is a command, in any language: it reads a file of probes and writes a file of logits."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

from torch import Tensor

from archc.errors import IncompleteError, UsageError
from archc.validation.probe_files import AnswerFile, inputs_of, write_probes
from archc.validation.probes import Probe

if TYPE_CHECKING:
    from archc.architecture.model import Architecture

_SHOWN_LINES = 12
_SHOWN_BYTES = 8192
_PLACEHOLDER = re.compile(r"\{(weights|probes|out)\}")
_Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line as it was given, its words, and the seconds that it may take."""

    text: str
    words: tuple[str, ...]
    timeout: float

    @property
    def reloads(self) -> bool:
        """Whether it is told where the weights are, so that it can load others."""
        return any("{weights}" in word for word in self.words)

    def filled(self, **places: Path) -> list[str]:
        """Its words with `{weights}`, `{probes}` and `{out}` replaced, wherever they stand in a word."""
        return [_PLACEHOLDER.sub(lambda found: str(places[found[1]].absolute()), word) for word in self.words]


def parse_command(text: str, timeout: float) -> Command:
    """A command line, split as a shell would; a run may take `timeout` seconds.

    Raises UsageError where it cannot be run or lacks a placeholder.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"the port's command {text!r} cannot be split: {error}", "close its quotes") from error
    missing = [name for name in ("{probes}", "{out}") if not any(name in word for word in words)]
    if missing:
        raise UsageError(
            f"the port's command has no {' and no '.join(missing)}", "write 'CMD {weights} {probes} {out}'"
        )
    if shutil.which(words[0]) is None:
        raise UsageError(f"there is no program {words[0]!r}", "name one that is there and that may be run")
    return Command(text, words, timeout)


class CommandPort:
    """A command with the weights of a checkpoint folder.

    It is run once for all probes that `prepare` announces, and once more for each that comes up unannounced. A probe
    that is not in what it wrote is one that it cannot do.
    """

    kind = "command"

    def __init__(self, command: Command, folder: Path) -> None:
        self.name = command.text
        self.reloads = command.reloads
        self._command, self._weights = command, folder
        self._folder = Path(tempfile.mkdtemp(prefix="archc-port-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._runs = 0
        self._answers: dict[_Key, tuple[str, AnswerFile]] = {}

    def prepare(self, probes: Sequence[Probe]) -> None:
        """Runs the command on those probes, all at once, that it has not run on."""
        asked = [probe for probe in probes if not _padded_in_chunks(probe)]
        new = {key: probe for probe in asked if (key := _key(probe)) not in self._answers}
        if not new:
            return
        names = _distinct([probe.name for probe in new.values()])
        answers = self._run(list(zip(names, new.values(), strict=True)))
        self._answers |= {key: (name, answers) for key, name in zip(new, names, strict=True)}

    def refusal(self, probe: Probe) -> str | None:
        """Why it cannot run a probe; None where it can."""
        if _padded_in_chunks(probe):
            return "commands are given no padded batches in chunks"
        name, answers = self._answer(probe)
        return None if answers.has_logits(name) else "its command wrote no logits for it"

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe, in fp32."""
        name, answers = self._answer(probe)
        return answers.logits(name, probe)

    def points(self, probe: Probe) -> dict[str, Tensor] | None:
        """Activations at the points that the command wrote beside its logits; None where it wrote none."""
        name, answers = self._answer(probe)
        return answers.points(name)

    def _answer(self, probe: Probe) -> tuple[str, AnswerFile]:
        self.prepare([probe])
        return self._answers[_key(probe)]

    def _run(self, probes: list[tuple[str, Probe]]) -> AnswerFile:
        self._runs += 1
        given, out = (self._folder / f"{what}-{self._runs}.safetensors" for what in ("probes", "out"))
        write_probes(given, probes)
        with tempfile.TemporaryFile(dir=self._folder) as said:
            self._execute(self._command.filled(weights=self._weights, probes=given, out=out), said)
            if not out.is_file():
                raise self._failure("ended well and wrote no file {out}", said)
        return AnswerFile(out, f"the output of the port's command {self.name!r}", "mend the port")

    def _execute(self, words: list[str], said: IO[bytes]) -> None:
        """Runs the command without a shell. What it says on either stream is kept, and shown if it fails."""
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        except OSError as error:
            raise IncompleteError(f"the port's command {self.name!r} cannot start: {error.strerror}") from error
        try:
            code = process.wait(self._command.timeout)
        except subprocess.TimeoutExpired as error:
            problem = f"took longer than {self._command.timeout:g} seconds"
            raise self._failure(problem, said, "give it more with --port-timeout SECONDS") from error
        finally:
            _end(process)
        if code != 0:
            raise self._failure(f"ended with {_ending(code)}", said)

    def _failure(self, problem: str, said: IO[bytes], mend: str = "mend the port") -> IncompleteError:
        said.seek(max(said.seek(0, os.SEEK_END) - _SHOWN_BYTES, 0))
        lines = said.read().decode("utf-8", errors="replace").splitlines()
        return IncompleteError(f"the port's command {self.name!r} {problem}", mend, "\n".join(lines[-_SHOWN_LINES:]))


def open_command_port(text: str, timeout: float) -> Callable[[Architecture, Path], CommandPort]:
    """What opens the port of a command line for the gate."""
    command = parse_command(text, timeout)
    return lambda _architecture, folder: CommandPort(command, folder)


def _key(probe: Probe) -> _Key:
    """What tells the inputs of two probes apart."""
    return tuple(
        (what, tuple(value.shape), value.contiguous().numpy().tobytes()) for what, value in inputs_of(probe).items()
    )


def _padded_in_chunks(probe: Probe) -> bool:
    return probe.chunks is not None and not probe.real.all()


def _distinct(names: list[str]) -> list[str]:
    """The names, with a number behind those that came up before."""
    found: list[str] = []
    for name in names:
        numbered = [name, *(f"{name} ({number})" for number in range(2, len(names) + 1))]
        found.append(next(one for one in numbered if one not in found))
    return found


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"the signal {signal.Signals(-code).name}"
    except ValueError:
        return f"the signal {-code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends a command that still runs, and what it started: it leads a group of its own."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
