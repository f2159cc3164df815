"""Rows of the vocabulary that no text reaches: the tokenizer has fewer tokens than the checkpoint has rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer, models
from torch import Tensor

from archc.architecture import Architecture, compile_text
from archc.validation.gate import GateResult, run_gate
from archc.validation.ports import GeneratedPort
from archc.validation.probes import UNUSED
from archc.validation.rewritten import rewrite
from archc.validation.text import known_tokens
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]
KNOWN = 205
"""Of 211 rows."""


class CutsTheVocabulary(GeneratedPort):
    """Tokens that the tokenizer does not know are embedded as nothing."""

    def __init__(self, architecture: Architecture, folder: Path) -> None:
        super().__init__(architecture, folder)
        with torch.no_grad():
            self.model.embedding.weight[KNOWN:] = 0


@pytest.fixture
def folder(checkpoint: Checkpoint, tmp_path: Path) -> Path:
    rewrite(checkpoint("llama-default"), tmp_path)
    tokenizer = Tokenizer(models.WordLevel({f"t{number}": number for number in range(KNOWN)}, unk_token="t0"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def gate(folder: Path, port: type[GeneratedPort] = GeneratedPort) -> GateResult:
    compiled = compile_text(BY_NAME["llama-default"].text())
    return run_gate(compiled, folder, lambda _step: None, open_port=port)


def unused(result: GateResult) -> list[bool]:
    return [one.passed for one in result.probes if one.probe.name == UNUSED]


def test_unused_rows_are_run(folder: Path, checkpoint: Checkpoint) -> None:
    assert known_tokens(folder) == KNOWN
    assert unused(gate(folder)) == [True]
    assert unused(gate(folder, CutsTheVocabulary)) == [False]
    assert unused(gate(checkpoint("llama-default"))) == [], "without a tokenizer, none is known to be unused"


def test_rows_that_hold_no_numbers_are_not_asked_for(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    def change(name: str, tensor: Tensor) -> Tensor:
        if name == "model.embed_tokens.weight":
            tensor[KNOWN:] = torch.inf
        return tensor

    into = tmp_path_factory.mktemp("infinite")
    rewrite(folder, into, change=change)
    result = gate(into)
    assert unused(result) == []
    assert "no numbers" in {blind.field: blind.why for blind in result.blind}[UNUSED]


def test_a_damaged_tokenizer_says_nothing(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    assert known_tokens(tmp_path) is None
    assert known_tokens(tmp_path / "nowhere") is None
