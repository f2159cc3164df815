"""The checkpoint that comes with archc: small, trained, and of use to a gate, since every field of its spec matters."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections import Counter
from math import log
from pathlib import Path

import pytest
import torch
import transformers
from tokenizers import Tokenizer

from archc import resources
from archc.architecture import compile_spec
from archc.validation.gate import GateResult, run_gate
from tests.cli.runner import archc

ROOT = Path(__file__).parents[2]
TEXT = resources.folder("validators") / "texts" / "ferry.txt"
FOLDER = resources.folder("validators") / "weights" / "tiny"
BOOK = ROOT / "training" / "pride-and-prejudice.txt.xz"


def gate(*overrides: str) -> GateResult:
    return run_gate(compile_spec("tiny", overrides), FOLDER, lambda _step: None, text=TEXT)


def test_it_takes_less_than_a_megabyte() -> None:
    shipped = [*FOLDER.rglob("*"), resources.folder("specs") / "tiny.yaml", FOLDER.parents[1] / "tiny.yaml"]
    assert sum(file.stat().st_size for file in shipped if file.is_file()) <= 1_000_000
    assert (FOLDER / "tokenizer.json").stat().st_size <= 20_000


def test_a_token_is_a_byte() -> None:
    tokenizer = Tokenizer.from_file(str(FOLDER / "tokenizer.json"))
    text = bytes(range(128)).decode() + "ÿ £ – 水"
    ids = tokenizer.encode(text).ids
    assert bytes(ids) == text.encode()
    assert tokenizer.decode(ids) == text


def test_it_has_learned_english() -> None:
    """Its loss, by transformers alone: far below what knowing the frequency of bytes gives, on two texts."""
    model = transformers.AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32)
    held_out = lzma.decompress(BOOK.read_bytes())[-32_768:]
    for raw, most in ((TEXT.read_bytes(), 1.8), (held_out, 1.2)):
        ids = torch.tensor(list(raw[: len(raw) // 256 * 256])).view(-1, 256)[:16]
        with torch.no_grad():
            loss = float(model(ids, labels=ids).loss)
        unigram = -sum(count / len(raw) * log(count / len(raw)) for count in Counter(raw).values())
        assert loss < most < unigram - 1
        with torch.no_grad():
            shuffled = ids[:, torch.randperm(256, generator=torch.Generator().manual_seed(1))]
            assert float(model(shuffled, labels=shuffled).loss) > unigram


def test_its_config_is_its_spec() -> None:
    imported, spec = compile_spec(str(FOLDER)).architecture, compile_spec("tiny").architecture
    for found, declared in zip(imported.layers, spec.layers, strict=True):
        assert (found.mixer, found.ffn) == (declared.mixer, declared.ffn)
    assert (imported.embedding, imported.context) == (spec.embedding, spec.context)


def test_validate_passes_and_prints_a_loss() -> None:
    done = archc("validate", "tiny")
    assert done.code == 0
    assert "PASS" in done.out
    assert "loss on ferry.txt (256 tokens" in done.out


# One field of each section, by as little as ports get wrong; what the loss does not show, the gate does.
@pytest.mark.parametrize(
    "override",
    [
        "norm.eps=1e-6",
        "position.base=5010",
        "position.scaling.factor=3.9",
        "position.scaling.original_context=65",
        "position.scaling.low_freq_factor=1.01",
        "position.scaling.high_freq_factor=3.9",
        "attention.grouping=tiled",
        "attention.scale=0.2042",
        "layers.kinds.local.attention.window=31",
        "layers.kinds.local.attention.window=33",
        "layers.kinds.global.attention.window=128",
        "ffn.activation=gelu",
        "embedding.scale=1.001",
        "logits.softcap=1000",
        "embedding.tied=true",
    ],
)
def test_every_wrong_field_fails(override: str) -> None:
    assert not gate(override).passed


@pytest.mark.slow
def test_training_writes_a_checkpoint_of_the_spec(tmp_path: Path) -> None:
    """Two steps of it: the shipped one takes 1,200."""
    command = [sys.executable, "training/train_tiny.py", "--steps", "2", "--out", str(tmp_path / "tiny")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "held out" in done.stdout
    for name in ("config.json", "tokenizer.json"):
        written, shipped = (json.loads((folder / name).read_text()) for folder in (tmp_path / "tiny", FOLDER))
        assert written | {"transformers_version": ""} == shipped | {"transformers_version": ""}
    assert archc("validate", "tiny", "--weights", str(tmp_path / "tiny")).code == 0
