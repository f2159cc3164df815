"""Where the weights of a target are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from archc.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from archc.validation.validator import Validator


def weights_folder(validator: Validator, weights: str | None) -> Path:
    """The checkpoint folder: `weights`, where it is given, else the one that the validator names.

    Raises UsageError where there is neither, and IncompleteError where it has yet to be fetched.
    """
    if weights is not None:
        return Path(weights)
    if validator.weights is None:
        raise UsageError(f"{validator.name} names no weights", "add --weights DIR, a Hugging Face checkpoint folder")
    if validator.package is not None and not validator.weights.exists():
        raise IncompleteError(
            f"the weights of {validator.name} are not here yet", f"run `archc fetch {validator.name}`"
        )
    return validator.weights
