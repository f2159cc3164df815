"""Checkpoint folders: one file or shards behind an index, their config, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from archc.checkpoints.headers import INDEX, read_checkpoint, read_config, read_header
from archc.errors import IncompleteError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file({"a": torch.zeros(2)}, path)
    return path


@pytest.fixture
def sharded(tmp_path: Path) -> Path:
    folder = tmp_path / "sharded"
    folder.mkdir()
    save_file({"a": torch.zeros(2), "b": torch.zeros(3)}, folder / "one.safetensors")
    save_file({"c": torch.zeros(4)}, folder / "two.safetensors")
    write_index(folder, {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"})
    return folder


def write_index(folder: Path, weight_map: object) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 36}, "weight_map": weight_map}))


# ---------------------------------------------------------------- weights


def test_a_single_file_checkpoint(file: Path) -> None:
    assert read_checkpoint(file.parent) == read_header(file)


def test_a_sharded_checkpoint(sharded: Path) -> None:
    read = read_checkpoint(sharded)
    assert {name: (tensor.shape, tensor.file.name) for name, tensor in read.items()} == {
        "a": ((2,), "one.safetensors"),
        "b": ((3,), "one.safetensors"),
        "c": ((4,), "two.safetensors"),
    }


def test_links_are_followed_as_in_a_hub_cache(sharded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "snapshot"
    folder.mkdir()
    for path in sharded.iterdir():
        (folder / path.name).symlink_to(path)
    assert list(read_checkpoint(folder)) == ["a", "b", "c"]
    (sharded / "two.safetensors").unlink()
    with pytest.raises(IncompleteError, match=r"two\.safetensors is a link to a file that is not there"):
        read_checkpoint(folder)


def test_a_missing_shard_is_named(sharded: Path) -> None:
    (sharded / "two.safetensors").unlink()
    with pytest.raises(IncompleteError, match=r"lacks the shard 'two\.safetensors' that its index names"):
        read_checkpoint(sharded)


def test_a_damaged_shard_is_named(sharded: Path) -> None:
    shard = sharded / "two.safetensors"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(IncompleteError, match=r"two\.safetensors is cut short"):
        read_checkpoint(sharded)


def test_a_tensor_that_is_not_where_the_index_says_is_named(sharded: Path) -> None:
    write_index(sharded, {"a": "one.safetensors", "b": "two.safetensors", "c": "two.safetensors"})
    with pytest.raises(IncompleteError, match=r"places 'b' in two\.safetensors, which does not hold it"):
        read_checkpoint(sharded)


def test_a_tensor_that_the_index_forgot_is_there(sharded: Path) -> None:
    write_index(sharded, {"a": "one.safetensors", "c": "two.safetensors"})
    assert sorted(read_checkpoint(sharded)) == ["a", "b", "c"]


def test_of_two_tensors_of_one_name_the_index_decides(sharded: Path) -> None:
    save_file({"a": torch.zeros(9), "c": torch.zeros(4)}, sharded / "two.safetensors")
    assert read_checkpoint(sharded)["a"].shape == (2,)
    write_index(sharded, {"b": "one.safetensors", "c": "two.safetensors"})
    with pytest.raises(IncompleteError, match=r"leaves 'a' open: both one\.safetensors and two\.safetensors hold one"):
        read_checkpoint(sharded)


@pytest.mark.parametrize(
    "shard",
    [
        "../two.safetensors",
        "..",
        "",
        ".",
        "/etc/passwd",
        "/tmp/two.safetensors",
        "sub/two.safetensors",
        "..\\two.safetensors",
        "C:\\two.safetensors",
        "C:two.safetensors",
        "two.safetensors\0",
        "\x1b[2J.safetensors",
        "x" * 300 + ".safetensors",
        "pytorch_model.bin",
        3,
        None,
        ["two.safetensors"],
    ],
)
def test_an_index_cannot_point_outside_its_folder(shard: object, sharded: Path) -> None:
    write_index(sharded, {"c": shard})
    with pytest.raises(IncompleteError, match="which is not the plain name of a shard") as caught:
        read_checkpoint(sharded)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"weight_map": []}', '{"weight_map": {}}', '{"weight_map": {"a": 1, "a": 2}}', "\ufeff{}"]
)
def test_an_index_that_places_nothing_is_refused(text: str, sharded: Path) -> None:
    (sharded / INDEX).write_text(text, encoding="utf-8")
    with pytest.raises(IncompleteError, match=r"index\.json has"):
        read_checkpoint(sharded)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "x.pt", "x.pth", "x.ckpt"])
def test_pickles_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"\x80\x04")
    with pytest.raises(IncompleteError, match="pickle checkpoints can run code; convert to safetensors"):
        read_checkpoint(tmp_path)


def test_pickles_beside_safetensors_do_not_matter(file: Path) -> None:
    (file.parent / "pytorch_model.bin").write_bytes(b"\x80\x04")
    assert read_checkpoint(file.parent)


def test_a_folder_without_weights_says_what_it_lacks(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="holds no weights: neither"):
        read_checkpoint(tmp_path)
    (tmp_path / "model-00001-of-00002.safetensors").touch()
    with pytest.raises(IncompleteError, match=r"holds 'model-00001-of-00002\.safetensors', but neither"):
        read_checkpoint(tmp_path)


@pytest.mark.parametrize("read", [read_checkpoint, read_config])
def test_what_is_no_folder_is_refused(read: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match="absent does not exist"):
        read(tmp_path / "absent")
    (tmp_path / "file").touch()
    with pytest.raises(IncompleteError, match="file is not a folder"):
        read(tmp_path / "file")


# ---------------------------------------------------------------- config.json


def test_a_config_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "eps": 1e-5, "limit": [0.0, Infinity], "s": "\\ud83d\\ude00"}'
    )
    assert read_config(tmp_path) == {"model_type": "llama", "eps": 1e-5, "limit": [0.0, float("inf")], "s": "😀"}


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (b"", "not valid JSON"),
        (b"[]", "not a JSON object"),
        (b'{"a": NaN}', "NaN is not a JSON number"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": "\\udc00"}', "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"a": "' + b"x" * 4_000_000 + b'"}', "nothing of its kind is longer"),
    ],
)
def test_a_config_that_is_no_json_object_is_refused(raw: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_bytes(raw)
    with pytest.raises(IncompleteError, match=problem) as caught:
        read_config(tmp_path)
    assert str(tmp_path / "config.json") in str(caught.value)


def test_a_folder_without_config_says_so(tmp_path: Path) -> None:
    with pytest.raises(IncompleteError, match=r"has no config\.json"):
        read_config(tmp_path)
