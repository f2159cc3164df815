"""Changed copies of checkpoints, as transformers' own classes load them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

from archc.checkpoints.headers import INDEX, read_checkpoint
from archc.errors import IncompleteError
from archc.validation import rewritten
from archc.validation.rewritten import rewrite
from tests.tiny import BY_NAME

Checkpoint = Callable[[str], Path]


def logits(folder: Path) -> Tensor:
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.arange(20)[None]
    with torch.no_grad():
        found: Tensor = model(ids).logits
    return found


def test_an_unchanged_copy_computes_the_same(checkpoint: Checkpoint, tmp_path: Path) -> None:
    rewrite(checkpoint("llama-default"), tmp_path)
    assert torch.equal(logits(tmp_path), logits(checkpoint("llama-default")))


def test_a_doubled_head_doubles_the_logits(checkpoint: Checkpoint, tmp_path: Path) -> None:
    rewrite(
        checkpoint("llama-default"),
        tmp_path,
        change=lambda name, tensor: tensor * 2 if name == "lm_head.weight" else tensor,
    )
    assert torch.equal(logits(tmp_path), 2 * logits(checkpoint("llama-default")))


def test_the_config_changes_by_key(checkpoint: Checkpoint, tmp_path: Path) -> None:
    folder = checkpoint("llama-default")
    rewrite(folder, tmp_path, config={"rms_norm_eps": 0.5})
    before, after = (json.loads((place / "config.json").read_text()) for place in (folder, tmp_path))
    assert after == before | {"rms_norm_eps": 0.5}
    assert not torch.allclose(logits(tmp_path), logits(folder), atol=1e-2)


def test_shards_keep_their_names(tmp_path: Path) -> None:
    folder, into = tmp_path / "from", tmp_path / "into"
    model = BY_NAME["llama-default"].model()
    model.save_pretrained(folder, max_shard_size="100KB")
    into.mkdir()
    rewrite(folder, into, change=lambda _name, tensor: tensor.repeat_interleave(2, 0).narrow(0, 0, len(tensor)))
    before, after = (read_checkpoint(place) for place in (folder, into))
    assert {name: tensor.file.name for name, tensor in after.items()} == {
        name: tensor.file.name for name, tensor in before.items()
    }
    assert json.loads((into / INDEX).read_text())["metadata"]["total_size"] == sum(one.nbytes for one in after.values())


def test_what_is_too_large_is_refused(checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewritten, "LARGEST", 1000)
    with pytest.raises(IncompleteError, match="is not copied: its weights take"):
        rewrite(checkpoint("llama-default"), tmp_path)
    assert not list(tmp_path.iterdir())
