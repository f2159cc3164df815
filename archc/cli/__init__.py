"""The command line. `main` runs it and turns every outcome into one of four exit codes.

0 all well; 1 findings; 2 wrong usage; 3 could not complete. Nothing here computes: a command reads its options, calls
a stage, and hands the result to `archc.render`.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from types import FrameType
from typing import Final

import click

from archc.errors import ArchcError

FINDINGS: Final = 1
WRONG_USAGE: Final = 2
INCOMPLETE: Final = 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run archc with `argv` (by default the program's own arguments) and return its exit code."""
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")
    if sys.stdout is None:  # and its number would go to the next file that is opened
        _say("standard output is closed: there is nowhere to write to; send it to a file or to /dev/null")
        return INCOMPLETE
    _tolerate_encodings()
    try:
        with _ended_like_ctrl_c():
            code = _run(list(sys.argv[1:] if argv is None else argv))
    except (Exception, KeyboardInterrupt) as error:
        code = _outcome(error)
    try:
        sys.stdout.flush()  # what a pipe or a full disk refuses is noticed here, not when the interpreter ends
    except OSError as error:
        code = _outcome(error)
    return code


def _outcome(error: BaseException) -> int:
    """Say what ended the program, and return its exit code."""
    match error:
        case ArchcError():
            return _say_error(error)
        case click.ClickException():
            with suppress(OSError):
                error.show()
            return WRONG_USAGE
        case KeyboardInterrupt() | click.Abort():
            _say("interrupted: the work is not complete; files that archc was writing are as they were before")
        case BrokenPipeError():
            _let_go(sys.stdout)  # whoever reads the output has had enough: there is nobody to say anything to
        case OSError():
            _say_system_error(error)
            return WRONG_USAGE if error.errno == errno.ENAMETOOLONG else INCOMPLETE
        case MemoryError():
            _say("out of memory; use a smaller model, batch or context, or a machine with more memory")
        case _:
            _say_bug(error)
    return INCOMPLETE


def _run(arguments: list[str]) -> int:
    from archc.cli.app import VARIABLE, app

    if VARIABLE in os.environ:
        from archc.cli.completing import register

        register()
        app.main(arguments, prog_name="archc")  # click's shell completion, which ends the program itself
    if not arguments:
        with app.make_context("archc", ["--help"], resilient_parsing=True) as context:
            click.echo(app.get_help(context), err=True)
        return WRONG_USAGE
    try:
        with app.make_context("archc", arguments) as context:
            result = app.invoke(context)
    except click.exceptions.Exit as ended:  # --help and --version end this way
        return ended.exit_code
    return result if isinstance(result, int) else 0


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Being told to end (SIGTERM), or losing the terminal (SIGHUP), cleans up as an interruption does.

    A signal that is ignored, as nohup asks, stays ignored.
    """

    def interrupt(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # a second one must not cut the cleaning short
        raise KeyboardInterrupt

    in_charge = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if in_charge and hasattr(signal, name)]
    numbers = [number for number in numbers if signal.getsignal(number) is signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _say(text: str) -> None:
    with suppress(OSError):
        click.echo(f"archc: {text}", err=True)


def _say_error(error: ArchcError) -> int:
    from archc.spec.diagnostics import SpecError, printable

    if isinstance(error, SpecError):
        from archc.cli.output import print_diagnostics

        with suppress(OSError):
            print_diagnostics(error.diagnostics)
    else:
        _say(printable(str(error)))
        for line in error.detail.splitlines():
            _say(f"  | {printable(line)}")
    return error.exit_code


def _say_system_error(error: OSError) -> None:
    """Something outside archc said no: a full disk, missing rights, a closed stream."""
    from archc.spec.diagnostics import printable

    place = f": {error.filename}" if error.filename else ""
    _say(printable(f"cannot go on: {error.strerror or error}{place}"))
    if error.errno in {errno.ENOSPC, errno.EIO, errno.EBADF}:
        _let_go(sys.stdout)


def _say_bug(error: BaseException) -> None:
    """Anything else is archc's own fault, and must not look like a finding about a spec or a port."""
    import traceback

    from archc import __version__

    _say(f"this is a bug in archc {__version__}; please report it with your command line and what follows")
    with suppress(OSError):
        click.echo("".join(traceback.format_exception(error)), err=True, nl=False)


def _let_go(stream: object) -> None:
    """Point a broken stream nowhere, so that the interpreter does not complain when it flushes it at the end."""
    if isinstance(stream, TextIOWrapper):
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _tolerate_encodings() -> None:
    """A terminal that cannot show a character gets a question mark, not a crash."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
