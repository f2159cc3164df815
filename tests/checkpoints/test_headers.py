"""Headers of good files are read as safetensors means them; whatever is wrong with a file is one clear error."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors import SafetensorError, safe_open
from safetensors.torch import save, save_file

from archc.checkpoints.headers import DTYPE_BITS, StoredTensor, read_header
from archc.errors import IncompleteError

TENSORS = {
    "embed.weight": torch.zeros(7, 4),
    "bias": torch.zeros(3, dtype=torch.bfloat16),
    "scalar": torch.tensor(1, dtype=torch.int64),
    "empty": torch.zeros(0, 5, dtype=torch.float16),
    "mask": torch.zeros(3, dtype=torch.bool),
}
DATA_BYTES = 7 * 4 * 4 + 3 * 2 + 8 + 3


def packed(header: object, data: bytes = b"") -> bytes:
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw + data


def entry(dtype: str = "U8", shape: object = (4,), offsets: object = (0, 4)) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def refusal(file: Path) -> str:
    """The one error for a damaged file: it names the file and a mend, in one line."""
    with pytest.raises(IncompleteError) as caught:
        read_header(file)
    assert str(file) in caught.value.problem
    assert "\n" not in str(caught.value)
    assert caught.value.mend
    assert caught.value.exit_code == 3
    return caught.value.problem


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    save_file(TENSORS, path, metadata={"format": "pt"})
    return path


# ---------------------------------------------------------------- good files


def test_a_header_is_read_as_it_was_written(file: Path) -> None:
    read = read_header(file)
    assert read["embed.weight"] == StoredTensor("embed.weight", "F32", (7, 4), file)
    assert {name: tensor.shape for name, tensor in read.items()} == {
        name: tuple(tensor.shape) for name, tensor in TENSORS.items()
    }
    assert {name: tensor.dtype for name, tensor in read.items()} == {
        "embed.weight": "F32",
        "bias": "BF16",
        "scalar": "I64",
        "empty": "F16",
        "mask": "BOOL",
    }
    assert {name: tensor.nbytes for name, tensor in read.items()} == {
        name: tensor.numel() * tensor.element_size() for name, tensor in TENSORS.items()
    }


@pytest.mark.parametrize("dtype", sorted(DTYPE_BITS))
def test_safetensors_itself_knows_every_dtype_and_its_size(dtype: str, tmp_path: Path) -> None:
    size = 8 * DTYPE_BITS[dtype] // 8
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed({"t": entry(dtype, [8], [0, size])}, bytes(size)))
    assert read_header(path)["t"].nbytes == size
    with safe_open(path, "pt") as opened:
        assert opened.get_slice("t").get_dtype() == dtype


def test_a_file_without_tensors_is_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed({}))
    assert read_header(path) == {}


def test_padding_after_the_header_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed(json.dumps({"t": entry()}).encode() + b"   ", bytes(4)))
    assert list(read_header(path)) == ["t"]


# ---------------------------------------------------------------- damaged files


@pytest.mark.parametrize("kept", [0, 7, 8, 9, 100, -DATA_BYTES - 1, -DATA_BYTES, -1])
def test_a_file_cut_short_is_refused(kept: int, file: Path) -> None:
    file.write_bytes(file.read_bytes()[:kept])
    assert "is cut short" in refusal(file)


def test_bytes_after_the_data_are_refused(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")
    assert f"holds {DATA_BYTES + 1:,} bytes of data, but its tensors end at {DATA_BYTES:,}" in refusal(file)


@pytest.mark.parametrize(
    ("length", "problem"),
    [
        (2**64 - 1, "claims a header of"),
        (2**63, "claims a header of"),
        (100_000_001, "claims a header of"),
        (100_000_000, "is cut short"),
        (1000, "is cut short"),
        (0, "does not begin with"),
        (1, "not valid JSON"),
    ],
)
def test_a_lie_about_the_header_length_is_refused(length: int, problem: str, file: Path) -> None:
    file.write_bytes(length.to_bytes(8, "little") + file.read_bytes()[8:])
    assert problem in refusal(file)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (b"[1, 2]", "does not begin with '{'"),
        (b'  {"t": 1}', "does not begin with '{'"),
        (b"\x80\x04pickle", "does not begin with '{'"),
        (b"{", "not valid JSON"),
        (b'{"t": NaN}', "NaN is not a JSON number"),
        (b'{"t": 1e999}', "beyond what a number can hold"),
        (b'{"t": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"t\xff": 1}', "not UTF-8"),
        (b'{"\\ud800": 1}', "not UTF-8"),
        (b'{"t": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
        (b'{"t": ' + b"[" * 900 + b"]" * 900 + b"}", "not an object"),
        (b'{"t": {"dtype": "U8", "shape": ' + b"[" * 900 + b"]" * 900 + b"}}", "the shape"),
        (b'{"t": {}, "t": {}}', "'t' is there twice"),
        (b'{"t": {"dtype": "U8", "dtype": "I8"}}', "'dtype' is there twice"),
    ],
)
def test_a_header_that_is_no_json_object_is_refused(header: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed(header))
    assert problem in refusal(path)


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        ({"t": [1]}, "describes 't' by something that is not an object"),
        ({"__metadata__": ["x"], "t": entry()}, "a __metadata__ that is not"),
        ({"__metadata__": {"x": 1}, "t": entry()}, "a __metadata__ that is not"),
        ({"t": {}}, "gives 't' the unknown dtype None"),
        ({"t": entry("F31")}, "gives 't' the unknown dtype 'F31'"),
        ({"t": entry(["F32"])}, "the unknown dtype ['F32']"),  # type: ignore[arg-type]
        ({"t": entry(shape=None)}, "the shape None"),
        ({"t": entry(shape=4)}, "the shape 4"),
        ({"t": entry(shape=[-4])}, "the shape [-4]"),
        ({"t": entry(shape=[4.0])}, "the shape [4.0]"),
        ({"t": entry(shape=[True, 4])}, "the shape [True, 4]"),
        ({"t": entry(shape=["4"])}, "the shape ['4']"),
        ({"t": entry(shape=[2**63, 2**63, 0])}, "the impossible shape"),
        ({"t": entry(shape=[10**4000] * 1000)}, "the impossible shape"),
        ({"t": entry(shape=[2**62])}, "but U8 of shape [4611686018427387904] takes 4,611,686,018,427,387,904"),
        ({"t": entry(shape=[3])}, "gives 't' 4 bytes, but U8 of shape [3] takes 3"),
        ({"t": entry("F16")}, "gives 't' 4 bytes, but F16 of shape [4] takes 8"),
        ({"t": entry("F4", [7])}, "gives 't' 4 bytes, but F4 of shape [7] takes 4"),
        ({"t": entry("F4", [1, 8], [0, 4]), "u": entry("F4", [3], [4, 4])}, "takes 2"),
        ({"t": entry(offsets=None)}, "the offsets None"),
        ({"t": entry(offsets=[0])}, "the offsets [0]"),
        ({"t": entry(offsets=[0, 4, 4])}, "the offsets [0, 4, 4]"),
        ({"t": entry(offsets=[0, 4.0])}, "the offsets [0, 4.0]"),
        ({"t": entry(offsets=[False, 4])}, "the offsets [False, 4]"),
        ({"t": entry(offsets="04")}, "the offsets '04'"),
        ({"t": entry(offsets=[4, 0])}, "the offsets [4, 0], which are not in order"),
        ({"t": entry(offsets=[-4, 0])}, "the offsets [-4, 0], which are not in order"),
        ({"t": entry(offsets=[0, 5])}, "is cut short: 't' ends at byte 5 of its 4 bytes of data"),
        ({"t": entry(offsets=[2**70, 2**70 + 4])}, "is cut short"),
        ({"t": entry(), "u": entry()}, "places 'u' at byte 0, where the tensors before it end at 4"),
        ({"t": entry(shape=[3], offsets=[0, 3]), "u": entry(shape=[2], offsets=[2, 4])}, "places 'u' at byte 2"),
        ({"t": entry(shape=[3], offsets=[1, 4])}, "places 't' at byte 1, where the tensors before it end at 0"),
        ({"t": entry(shape=[1], offsets=[0, 1]), "u": entry(shape=[2], offsets=[2, 4])}, "places 'u' at byte 2"),
        ({"t": entry(shape=[3], offsets=[0, 3])}, "holds 4 bytes of data, but its tensors end at 3"),
        ({}, "holds 4 bytes of data, but its tensors end at 0"),
    ],
)
def test_a_header_that_breaks_the_format_is_refused(header: object, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed(header, bytes(4)))
    assert problem in refusal(path)
    with pytest.raises(SafetensorError), safe_open(path, "pt"):
        pass


def test_a_hostile_name_cannot_drive_the_terminal_or_fill_it(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(packed({"\x1b[2J\n" + "x" * 10_000: entry("F31")}))
    problem = refusal(path)
    assert problem.isprintable()
    assert len(problem) < len(str(path)) + 300


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    assert "is not there" in refusal(tmp_path / "absent.safetensors")
    assert "is not a file" in refusal(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    assert "is not a file" in refusal(tmp_path / "model.safetensors")


# ---------------------------------------------------------------- anything at all

GOOD = save(TENSORS, metadata={"format": "pt"})
HEADER_END = 8 + int.from_bytes(GOOD[:8], "little")
# Mostly bytes that mean something in JSON, so that much of what results is still a header.
BYTES = st.sampled_from(b'0123456789-.e"{}[],:\\ \x00\xff') | st.integers(0, 255)
FLIPS = st.lists(st.tuples(st.integers(0, HEADER_END - 1), BYTES), min_size=1, max_size=6)


@settings(max_examples=400, deadline=None)
@given(flips=FLIPS, cut=st.none() | st.integers(0, len(GOOD)))
def test_a_changed_header_is_read_or_refused(flips: list[tuple[int, int]], cut: int | None) -> None:
    raw = bytearray(GOOD)
    for position, byte in flips:
        raw[position] = byte
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.safetensors")
        path.write_bytes(raw[:cut])
        try:
            read = read_header(path)
        except IncompleteError:
            return
        assert all(tensor.nbytes >= 0 for tensor in read.values())
        # What archc accepts, the library that will load the tensors accepts too.
        with safe_open(path, "pt") as opened:
            assert set(opened.keys()) == set(read)


def test_reading_headers_needs_no_heavy_library(file: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from archc.checkpoints.headers import read_checkpoint\n"
        "print(len(read_checkpoint(Path(sys.argv[1]))))\n"
        "print([name for name in ('torch', 'numpy', 'safetensors', 'transformers') if name in sys.modules])"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code, file.parent], cwd=root, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split("\n")[:2] == ["5", "[]"]
