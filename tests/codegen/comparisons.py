"""What a generated model is compared on with Hugging Face's: the same function runs on either side."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import DynamicCache

from archc.architecture import Architecture
from archc.checkpoints.manifest import build_manifest, stored_entries
from tests.codegen.support import random_ids

TOKENS = 40
# A prefill, single steps, and pieces that straddle the windows of 7 and of 11 positions.
CUTS = (0, 17, 18, 19, 20, 29, 32, 40)
LENGTHS = (40, 29, 14)
BALANCE, Z = 0.7, 0.3


class Side(Protocol):
    """Hugging Face's model or a generated one."""

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        """Logits [B, T, V]."""

    def new_cache(self, rows: int) -> Any:
        """A cache for TOKENS positions."""

    def losses(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The loss, and the loss with each of the terms that may be added to it."""

    def gradients(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        """The loss's gradient, as a checkpoint would store the parameters."""


@dataclass(frozen=True)
class HuggingFace:
    """The reference."""

    model: Any

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        with torch.no_grad():
            output = self.model(ids, position_ids=positions, attention_mask=mask, cache=cache)
        logits: Tensor = output.logits
        return logits

    def new_cache(self, rows: int) -> Any:
        return DynamicCache(config=self.model.config)

    def losses(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        with torch.no_grad():
            output = self.model(ids, labels=labels)
            log_z = output.logits[:, :-1].logsumexp(-1)[labels[:, 1:] != -100]
            found = {"loss": output.loss, "loss and z": output.loss + Z * log_z.square().mean()}
            if hasattr(self.model, "router_aux_loss_coef"):
                self.model.router_aux_loss_coef = BALANCE
                found["loss and balance"] = self.model(ids, labels=labels, output_router_logits=True).loss
        return found

    def gradients(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        model = copy.deepcopy(self.model)
        model(ids, labels=labels).loss.backward()
        for parameter in model.parameters():
            parameter.data = parameter.grad
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            return load_file(Path(folder, "model.safetensors"))


@dataclass(frozen=True)
class Generated:
    """The port."""

    model: Any
    architecture: Architecture

    def logits(
        self, ids: Tensor, positions: Tensor | None = None, mask: Tensor | None = None, cache: Any = None
    ) -> Tensor:
        with torch.no_grad():
            logits: Tensor = self.model(ids, positions, mask, cache)
        return logits

    def new_cache(self, rows: int) -> Any:
        return self.model.new_cache(rows, TOKENS)

    def losses(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        loss = self.model.loss
        with torch.no_grad():
            found = {"loss": loss(ids, labels), "loss and z": loss(ids, labels, z_loss=Z)}
            if any(".router." in name for name in dict(self.model.named_parameters())):
                found["loss and balance"] = loss(ids, labels, balance_loss=BALANCE)
        return found

    def gradients(self, ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        model = copy.deepcopy(self.model)
        model.loss(ids, labels).backward()
        found = {name: parameter.grad for name, parameter in model.named_parameters()}
        return as_stored(found | dict(model.named_buffers()), self.architecture)


def as_stored(parameters: Mapping[str, Tensor], architecture: Architecture) -> dict[str, Tensor]:
    """Tensors of a generated module under the names and in the layout of a checkpoint."""
    stored = {}
    for entry in stored_entries(architecture, build_manifest(architecture)):
        tensors, row = [parameters[name] for name in entry.fills], entry.row
        if entry.expert is not None:
            tensors = [tensor[entry.expert] for tensor in tensors]
        tensor = tensors[0]
        if len(tensors) > 1:
            groups = [torch.unflatten(tensor, row.axis, (row.groups, -1)) for tensor in tensors]
            tensor = torch.cat(groups, dim=row.axis + 1).flatten(row.axis, row.axis + 1)
        if row.transposed:
            tensor = tensor.transpose(-2, -1)
        tensor = tensor.flatten(0, 1) if row.flat else tensor
        stored[entry.name] = tensor.unsqueeze(-2) if row.unit_axis else tensor
    return stored


def full(side: Side) -> dict[str, Tensor]:
    """Two rows at once, no cache: longer than every window and every original context."""
    return {"logits": side.logits(random_ids(2, TOKENS))}


def short(side: Side) -> dict[str, Tensor]:
    """Within every original context, where LongRoPE uses its short factors."""
    return {"logits": side.logits(random_ids(2, 16))}


def cached(side: Side) -> dict[str, Tensor]:
    """A prefill, single steps and uneven pieces through the cache."""
    ids, cache = random_ids(2, TOKENS), side.new_cache(2)
    return {f"logits {a}": side.logits(ids[:, a:b], cache=cache) for a, b in pairwise(CUTS)}


def left_padded(side: Side) -> dict[str, Tensor]:
    """Rows of unequal length behind padding."""
    return _padded(side, left=True)


def right_padded(side: Side) -> dict[str, Tensor]:
    """Rows of unequal length before padding."""
    return _padded(side, left=False)


def cached_left_padded(side: Side) -> dict[str, Tensor]:
    """What serving does: unequal rows, padded on the left, through the cache."""
    ids, mask, positions = padding(left=True)
    cache = side.new_cache(len(ids))
    found = {}
    for a, b in pairwise(CUTS):
        logits = side.logits(ids[:, a:b], positions[:, a:b], mask[:, :b], cache)
        found[f"logits {a}"] = logits[mask[:, a:b].bool()]
    return found


def _padded(side: Side, *, left: bool) -> dict[str, Tensor]:
    ids, mask, positions = padding(left=left)
    return {"logits": side.logits(ids, positions, mask)[mask.bool()]}


def padding(*, left: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Ids, mask and positions of rows of LENGTHS tokens."""
    columns, lengths = torch.arange(TOKENS), torch.tensor(LENGTHS)[:, None]
    mask = (columns >= TOKENS - lengths if left else columns < lengths).long()
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    return random_ids(len(LENGTHS), TOKENS), mask, positions


def gaps(side: Side) -> dict[str, Tensor]:
    """Positions with gaps between them. The mask tells Hugging Face that no document begins at a gap."""
    return {"logits": _with_gaps(side, 96)}


def distant(side: Side) -> dict[str, Tensor]:
    """Positions far beyond every original context."""
    return {"logits": _with_gaps(side, 960)}


def _with_gaps(side: Side, end: int) -> Tensor:
    ids = random_ids(2, TOKENS)
    positions = torch.randperm(end, generator=torch.Generator().manual_seed(2))[:TOKENS].sort().values
    return side.logits(ids, positions[None].expand_as(ids), torch.ones_like(ids))


def losses(side: Side) -> dict[str, Tensor]:
    """The loss and its additional terms, with some tokens left out."""
    return side.losses(*_labelled())


def gradients(side: Side) -> dict[str, Tensor]:
    """The gradient of the loss for every parameter."""
    return side.gradients(*_labelled())


def _labelled() -> tuple[Tensor, Tensor]:
    ids = random_ids(2, TOKENS)
    labels = ids.clone()
    labels[0, :9] = -100
    labels[1, 20:23] = -100
    return ids, labels


COMPARISONS: dict[str, Callable[[Side], dict[str, Tensor]]] = {
    function.__name__: function
    for function in (
        full, short, cached, left_padded, right_padded, cached_left_padded, gaps, distant, losses, gradients,
    )
}  # fmt: skip
