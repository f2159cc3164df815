"""The exceptions that reach a user, each with the exit code that it ends the program with.

Every one carries what is wrong and how to mend it, each in one line. Anything else that
escapes from archc is a bug in archc.
"""

from __future__ import annotations


class ArchcError(Exception):
    """Base of all errors meant for a user: what is wrong, how to mend it, and lines that another program said of it."""

    exit_code = 3

    def __init__(self, problem: str, mend: str = "", detail: str = "") -> None:
        super().__init__(problem if not mend else f"{problem}; {mend}")
        self.problem = problem
        self.mend = mend
        self.detail = detail


class UsageError(ArchcError):
    """The command line asks for something that makes no sense (exit code 2)."""

    exit_code = 2


class IncompleteError(ArchcError):
    """The work could not be completed: weights missing or damaged, a port that crashed … (exit code 3)."""

    exit_code = 3
