"""The plain form of a checkpoint: what reference, generated module and changed copies are made from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from safetensors import safe_open
from torch import Tensor

from archc.architecture.model import Architecture
from archc.checkpoints.dequantise import Checkpoint, open_checkpoint
from archc.checkpoints.headers import StoredTensor
from archc.checkpoints.manifest import build_manifest, knows_tensors, pattern_of
from archc.errors import IncompleteError
from archc.validation.ports import GeneratedPort, OpenPort, Port


def plain_form(architecture: Architecture, folder: Path) -> Checkpoint:
    """The checkpoint in `folder` by its headers, as the family of an Architecture stores it without quantisation."""
    return open_checkpoint(folder, transposed=_stored_transposed(architecture))


def _stored_transposed(architecture: Architecture) -> Callable[[str], bool]:
    """Whether a stored matrix is [in, out] in the family of an Architecture, by its name."""
    if not knows_tensors(architecture):
        return lambda _: False
    manifest = build_manifest(architecture)
    turned = {row.stored for row in manifest.table if row.transposed}
    return lambda name: pattern_of(manifest.normal(name)) in turned


def opener_of(open_port: OpenPort, checkpoint: Checkpoint, plain: Path) -> OpenPort:
    """What opens the port of a checkpoint: a port of the user's loads a quantised one itself, and no plain copy."""
    maker = getattr(open_port, "func", open_port)
    if getattr(maker, "kind", None) == GeneratedPort.kind or not checkpoint.method:
        return open_port

    def opened(architecture: Architecture, folder: Path) -> Port:
        if folder != plain:
            raise IncompleteError(f"the port loads {checkpoint.method}, and changed copies of the checkpoint are plain")
        return open_port(architecture, checkpoint.folder)

    return opened


def read_tensor(tensor: StoredTensor) -> Tensor:
    """One tensor of a checkpoint, in the type that it is stored in."""
    with safe_open(tensor.file, framework="pt") as file:
        found: Tensor = file.get_tensor(tensor.name)
    return found
