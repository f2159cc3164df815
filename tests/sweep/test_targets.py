"""What a sweep is over: folders and lists, and how machines share them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from archc.errors import UsageError
from archc.sweep.targets import shard, targets_of


def make(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def words(source: Path) -> list[tuple[str, ...]]:
    return [target.words for target in targets_of(str(source))[0]]


def test_a_folder_stands_for_every_checkpoint_below_it(tmp_path: Path) -> None:
    make(tmp_path / "b" / "step-10", "config.json", "model.safetensors")
    make(tmp_path / "a", "config.json", "model.safetensors.index.json")
    make(tmp_path / "only-weights", "model.safetensors")
    make(tmp_path / "pickled", "config.json", "pytorch_model.bin")
    targets, left_out = targets_of(str(tmp_path))
    assert [target.words for target in targets] == [(f"{tmp_path}/a",), (f"{tmp_path}/b/step-10",)]
    assert left_out == [f"{tmp_path}/pickled: config.json, and no safetensors files"]


def test_links_are_followed_once(tmp_path: Path) -> None:
    outside = make(tmp_path / "outside", "config.json", "model.safetensors")
    top = make(tmp_path / "top")
    (top / "one").symlink_to(outside)
    (top / "two").symlink_to(outside)
    (top / "circle").symlink_to(top)
    assert words(top) == [(f"{top}/one",)]


def test_no_name_is_taken_for_an_option_or_acts_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make(Path("-x"), "config.json", "model.safetensors")
    make(Path("a\x1b[31m"), "config.json", "model.safetensors")
    os.mkdir(b"\xff")  # noqa: PTH102 (a name that is not UTF-8)
    Path(os.fsdecode(b"\xff"), "config.json").touch()
    targets, left_out = targets_of(".")
    assert [target.words for target in targets] == [("./-x",)]
    assert len(left_out) == 2
    assert all(line.isascii() and line.isprintable() for line in left_out)


def test_a_line_of_a_list_is_what_would_follow_validate(tmp_path: Path) -> None:
    file = tmp_path / "list.txt"
    file.write_text("# all\n\ncheckpoints/a\nmy.yaml --weights 'a b' --set norm.eps=1e-5  # the old one\n")
    targets, _ = targets_of(str(file))
    assert [target.words for target in targets] == [
        ("checkpoints/a",),
        ("my.yaml", "--weights", "a b", "--set", "norm.eps=1e-5"),
    ]
    assert targets[1].origin == f"{file}:4"


@pytest.mark.parametrize(
    ("content", "said"), [(b"a 'b\n", "list.txt:1"), (b"\xff\n", "utf-8"), (b"# nothing\n", "nothing to validate")]
)
def test_what_is_no_list_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "list.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=said):
        targets_of(str(file))


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        targets_of(str(tmp_path / "absent"))
    with pytest.raises(UsageError, match="nothing to validate"):
        targets_of(str(tmp_path))


@given(items=st.lists(st.integers(), max_size=40), of=st.integers(1, 12))
def test_shards_have_every_item_exactly_once(items: list[int], of: int) -> None:
    numbered = list(enumerate(items))
    shards = [shard(numbered, number, of) for number in range(1, of + 1)]
    assert sorted(one for part in shards for one in part) == numbered
    sizes = [len(part) for part in shards]
    assert max(sizes) - min(sizes) <= 1
