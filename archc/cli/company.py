"""Commands under torchrun: the first process runs the command, the others help it and say nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from archc.errors import ArchcError, IncompleteError

if TYPE_CHECKING:
    from archc.validation.parallel_port import Company


def led(command: Callable[[Company | None], int]) -> int:
    """The exit code of a command, in all processes that torchrun started; without torchrun there is no company."""
    if "TORCHELASTIC_RUN_ID" not in os.environ or os.environ.get("WORLD_SIZE") == "1":
        return command(None)
    try:
        from archc.validation.parallel_port import Company
    except ModuleNotFoundError as error:
        raise IncompleteError(f"validation needs {error.name}", "pip install 'archc[torch]'") from error
    company = Company()
    if not company.leads:
        return company.follow()
    code = IncompleteError.exit_code
    try:
        code = command(company)
    except ArchcError as error:
        code = error.exit_code
        raise
    finally:
        company.end(code)
    return code
