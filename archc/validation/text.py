"""The loss on a text: what a mistake costs in the model's own terms, printed beside the verdict."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from archc.errors import IncompleteError
from archc.validation.ports import Port
from archc.validation.probes import Probe
from archc.validation.reference import Reference

TOKENS = 512


@dataclass(frozen=True, slots=True)
class TextLoss:
    """Mean cross-entropy in nats over the first `tokens` tokens of a text, for reference and port."""

    name: str
    sha256: str
    tokens: int
    reference: float
    port: float

    @property
    def change(self) -> float:
        """The port's loss relative to the reference's: 0.05 is five percent more."""
        return self.port / self.reference - 1


def text_loss(reference: Reference, port: Port, folder: Path, text: Path, limit: int) -> TextLoss | None:
    """The loss on a text file, cut to `limit` tokens; None where the checkpoint has no tokenizer of its own."""
    raw = text.read_bytes()
    ids = _tokens(folder, raw.decode("utf-8"))
    if ids is None:
        return None
    probe = Probe("text", "a text", torch.tensor([ids[: min(limit, TOKENS)]]))
    losses = [_loss(side.logits(probe), probe.input_ids) for side in (reference, port)]
    return TextLoss(text.name, hashlib.sha256(raw).hexdigest(), probe.tokens, *losses)


def _tokens(folder: Path, text: str) -> list[int] | None:
    file = folder / "tokenizer.json"
    if not file.is_file():
        return None
    from tokenizers import Tokenizer

    try:
        return list(Tokenizer.from_file(str(file)).encode(text).ids)
    except Exception as error:  # tokenizers raises plain Exception for any damage
        raise IncompleteError(f"cannot read {file}: {error}", "fetch the checkpoint again") from error


def _loss(logits: Tensor, ids: Tensor) -> float:
    loss = float(F.cross_entropy(logits[0, :-1].double(), ids[0, 1:]))
    return loss if math.isfinite(loss) else math.inf
