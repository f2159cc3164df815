"""The loss on a text: what a mistake costs in the model's own terms, printed beside the verdict."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from archc.architecture.model import Architecture
from archc.errors import IncompleteError
from archc.validation.ports import Port
from archc.validation.probes import Probe
from archc.validation.reference import Reference

TOKENS = 512
_LARGEST_TOKENIZER = 2**26


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


@dataclass(frozen=True, slots=True)
class Tokens:
    """The first tokens of a text: its name, its hash and their ids."""

    name: str
    sha256: str
    ids: tuple[int, ...]


def read_tokens(architecture: Architecture, folder: Path, text: Path) -> Tokens | None:
    """The first tokens of a text file, by the tokenizer of a checkpoint; None where the checkpoint has none.

    At most TOKENS, and no more than there are learned positions. Raises IncompleteError where the file cannot be
    read as UTF-8 or is too short to predict anything in, and where the tokenizer is damaged or belongs to a model with
    more tokens.
    """
    tokenizer = folder / "tokenizer.json"
    if not tokenizer.is_file():
        return None
    try:
        raw = text.read_bytes()
        decoded = raw.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else f"byte {error.start} is not UTF-8"
        raise IncompleteError(f"cannot read the text {text}: {reason}", "name a UTF-8 text file") from error
    limit = min(TOKENS, architecture.embedding.positions or TOKENS)
    ids = tuple(_encode(tokenizer, decoded)[:limit])
    if len(ids) < 2 <= limit:
        raise IncompleteError(f"{text} is too short: it has no token to predict", "name a longer text")
    if beyond := [token for token in ids if token >= architecture.vocab_size]:
        raise IncompleteError(
            f"{tokenizer} makes a token {beyond[0]}, and the vocabulary has {architecture.vocab_size}",
            "use the checkpoint's own tokenizer",
        )
    return Tokens(text.name, hashlib.sha256(raw).hexdigest(), ids) if limit > 1 else None


def known_tokens(folder: Path) -> int | None:
    """How many ids the tokenizer of a checkpoint can make; None where there is none that can be read."""
    from tokenizers import Tokenizer

    file = folder / "tokenizer.json"
    if not file.is_file() or file.stat().st_size > _LARGEST_TOKENIZER:
        return None
    try:
        return max(Tokenizer.from_file(str(file)).get_vocab().values(), default=-1) + 1
    except Exception:  # tokenizers raises plain Exception for any damage
        return None


def text_loss(reference: Reference, port: Port, tokens: Tokens) -> TextLoss:
    """The loss of both sides on the tokens of a text."""
    probe = Probe("text", "a text", torch.tensor([tokens.ids]))
    losses = [_loss(side.logits(probe), probe.input_ids) for side in (reference, port)]
    return TextLoss(tokens.name, tokens.sha256, probe.tokens, *losses)


def _encode(tokenizer: Path, text: str) -> list[int]:
    from tokenizers import Tokenizer

    try:
        return list(Tokenizer.from_file(str(tokenizer)).encode(text).ids)
    except Exception as error:  # tokenizers raises plain Exception for any damage
        raise IncompleteError(f"cannot read {tokenizer}: {error}", "fetch the checkpoint again") from error


def _loss(logits: Tensor, ids: Tensor) -> float:
    loss = float(F.cross_entropy(logits[0, :-1].double(), ids[0, 1:]))
    return loss if math.isfinite(loss) else math.inf
