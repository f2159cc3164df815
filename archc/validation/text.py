"""The loss on a text: what a mistake costs in the model's own terms, printed beside the verdict."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from itertools import takewhile
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
"""Of a text by which mistakes are weighed,"""
BESIDE = 256
"""and of one whose loss is told beside a verdict."""
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
    """The tokens of a text: its name, its hash and their ids; `opening` of them stand at the start of any text."""

    name: str
    sha256: str
    ids: tuple[int, ...]
    opening: int

    def first(self, count: int) -> Tokens:
        """No more than the first `count`."""
        return replace(self, ids=self.ids[:count])

    def passages(self, length: int, most: int) -> list[tuple[int, ...]]:
        """Up to `most` passages of `length` tokens one after the other, each with what opens a text."""
        opening, body = self.ids[: self.opening], self.ids[self.opening :]
        step = length - self.opening
        starts = range(0, max(len(body) - step + 1, 0), step)[:most] if step > 0 else ()
        return [(*opening, *body[start : start + step]) for start in starts]


def read_tokens(architecture: Architecture, folder: Path, text: Path) -> Tokens | None:
    """The first tokens of a text file, by the tokenizer of a checkpoint; None where the checkpoint has none.

    At most TOKENS, and no more than the model is meant for. Raises IncompleteError where the file is too short to
    predict anything in, and what `read_text` does.
    """
    limit = min(TOKENS, architecture.context, architecture.embedding.positions or TOKENS)
    tokens = read_text(architecture, folder, text)
    if tokens is None:
        return None
    if len(tokens.ids) < 2 <= limit:
        raise IncompleteError(f"{text} is too short: it has no token to predict", "name a longer text")
    return tokens.first(limit) if limit > 1 else None


def read_text(architecture: Architecture, folder: Path, text: Path) -> Tokens | None:
    """All tokens of a text file, by the tokenizer of a checkpoint; None where the checkpoint has none.

    Raises IncompleteError where the file cannot be read as UTF-8, and where the tokenizer is damaged or belongs to a
    model with more tokens.
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
    ids, opening = _encode(tokenizer, decoded)
    if beyond := [token for token in ids if token >= architecture.vocab_size]:
        raise IncompleteError(
            f"{tokenizer} makes a token {beyond[0]}, and the vocabulary has {architecture.vocab_size}",
            "use the checkpoint's own tokenizer",
        )
    return Tokens(text.name, hashlib.sha256(raw).hexdigest(), ids, opening)


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


def text_probe(tokens: Tokens) -> Probe:
    """The tokens of a text as an input."""
    return Probe("text", "a text", torch.tensor([tokens.ids]))


def text_loss(reference: Reference, port: Port, tokens: Tokens) -> TextLoss | None:
    """The loss of both sides on the tokens of a text; None where the port cannot run them."""
    probe = text_probe(tokens)
    if port.refusal(probe):
        return None
    losses = [_loss(side.logits(probe), probe.input_ids) for side in (reference, port)]
    return TextLoss(tokens.name, tokens.sha256, probe.tokens, *losses)


def _encode(tokenizer: Path, text: str) -> tuple[tuple[int, ...], int]:
    """The ids of a text, and how many special tokens the tokenizer puts before it."""
    from tokenizers import Tokenizer

    try:
        found = Tokenizer.from_file(str(tokenizer)).encode(text)
        opening = sum(1 for _ in takewhile(bool, found.special_tokens_mask))
        return tuple(found.ids), opening
    except Exception as error:  # tokenizers raises plain Exception for any damage
        raise IncompleteError(f"cannot read {tokenizer}: {error}", "fetch the checkpoint again") from error


def _loss(logits: Tensor, ids: Tensor) -> float:
    loss = float(F.cross_entropy(logits[0, :-1].double(), ids[0, 1:]))
    return loss if math.isfinite(loss) else math.inf
