"""A changed copy of a checkpoint: the same folder with edits of its config.json and of its tensors.

What a port does with it, through its own loader, shows what the checkpoint itself hides: a term that vanishes on these
weights, or a rearrangement of them that must change nothing.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from archc.checkpoints.headers import INDEX, SINGLE, StoredTensor, read_checkpoint, read_config
from archc.errors import IncompleteError

Change: TypeAlias = Callable[[str, Tensor], Tensor]

LARGEST = 2 * 2**30
"""Bytes of tensors of the largest checkpoint that is copied."""
_BESIDE = (".json", ".txt", ".model", ".jinja")
"""What a loader may look for beside the weights: tokenizers, and settings of generation."""
_LARGEST_BESIDE = 64 * 2**20


def refusal(folder: Path) -> str | None:
    """Why a checkpoint is not copied; None where it is."""
    size = sum(tensor.nbytes for tensor in read_checkpoint(folder).values())
    if size > LARGEST:
        return f"its weights take {size / 1e9:,.1f} GB, and no more than {LARGEST / 1e9:,.1f} GB are copied"
    return None


def rewrite(
    folder: Path,
    into: Path,
    *,
    config: Mapping[str, object] | None = None,
    change: Change = lambda _name, tensor: tensor,
) -> None:
    """Writes a changed copy of the checkpoint in `folder` to `into`, an empty folder that exists.

    `config` holds keys of config.json as they become; a section is replaced whole. `change` gets the stored name and
    value of every tensor, and gives what is stored under that name instead, of any shape and type. Shards keep their
    names. One file of them is in memory at a time. Raises IncompleteError where the copy is refused or not possible.
    """
    if why := refusal(folder):
        raise IncompleteError(f"{folder} is not copied: {why}", "validate a smaller checkpoint of the same family")
    stored = read_checkpoint(folder)
    size = sum(tensor.nbytes for tensor in stored.values())
    try:
        if shutil.disk_usage(into).free < 2 * size:
            raise IncompleteError(
                f"{into} has no room for {size / 1e9:,.1f} GB of weights", "set TMPDIR to a larger disk"
            )
        _copy_beside(folder, into)
        text = json.dumps(read_config(folder) | dict(config or {}), indent=2)
        (into / "config.json").write_text(text, encoding="utf-8")
        written = _write_tensors(stored, into, change)
        if set(written) != {SINGLE}:
            _write_index(written, into)
    except (OSError, SafetensorError) as error:
        raise IncompleteError(f"{folder} cannot be copied to {into}: {error}", "check that both are whole") from error


def _copy_beside(folder: Path, into: Path) -> None:
    for file in folder.iterdir():
        named = file.suffix in _BESIDE and file.name not in {"config.json", INDEX}
        if named and file.is_file() and file.stat().st_size <= _LARGEST_BESIDE:
            shutil.copyfile(file, into / file.name)


def _write_tensors(stored: Mapping[str, StoredTensor], into: Path, change: Change) -> dict[str, dict[str, int]]:
    """Sizes in bytes of what was written, by file and name."""
    files: dict[Path, list[str]] = defaultdict(list)
    for name, tensor in stored.items():
        files[tensor.file].append(name)
    written = {}
    for file, names in files.items():
        with safe_open(file, framework="pt") as opened:
            tensors = {name: change(name, opened.get_tensor(name)).contiguous() for name in names}
        save_file(tensors, into / file.name, metadata={"format": "pt"})
        written[file.name] = {name: tensor.nbytes for name, tensor in tensors.items()}
    return written


def _write_index(written: Mapping[str, Mapping[str, int]], into: Path) -> None:
    placed = {name: file for file, sizes in written.items() for name in sizes}
    total = sum(sum(sizes.values()) for sizes in written.values())
    index = {"metadata": {"total_size": total}, "weight_map": placed}
    (into / INDEX).write_text(json.dumps(index, indent=2), encoding="utf-8")
