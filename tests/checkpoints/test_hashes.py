"""Hashes of a checkpoint's files, against those of the whole content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from archc.checkpoints import hashes
from archc.checkpoints.hashes import checkpoint_files, hash_files
from archc.errors import IncompleteError


def shard(name: str) -> bytes:
    header = json.dumps({name: {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("no part of the model")
    (tmp_path / "b.safetensors").write_bytes(shard("b"))
    (tmp_path / "a.safetensors").write_bytes(shard("a"))
    index = {"weight_map": {"b": "b.safetensors", "a": "a.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    return tmp_path


def test_every_file_that_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashes, "_AT_ONCE", 7)  # so that a file takes several pieces
    read: list[int] = []
    found = hash_files(checkpoint_files(folder), read.append)
    assert [one.name for one in found] == [
        "config.json",
        "model.safetensors.index.json",
        "a.safetensors",
        "b.safetensors",
    ]
    for one in found:
        content = (folder / one.name).read_bytes()
        assert (one.size, one.sha256) == (len(content), hashlib.sha256(content).hexdigest())
    assert sum(read) == sum(one.size for one in found)


def test_a_changed_byte_changes_the_hash(folder: Path) -> None:
    before = hash_files(checkpoint_files(folder))
    data = bytearray((folder / "b.safetensors").read_bytes())
    data[-1] ^= 1
    (folder / "b.safetensors").write_bytes(bytes(data))
    after = hash_files(checkpoint_files(folder))
    assert [one.name for one, other in zip(before, after, strict=True) if one != other] == ["b.safetensors"]


def test_a_file_that_is_gone(folder: Path) -> None:
    files = checkpoint_files(folder)
    (folder / "a.safetensors").unlink()
    with pytest.raises(IncompleteError, match="cannot be read"):
        hash_files(files)
