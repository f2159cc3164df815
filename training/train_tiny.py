"""Trains the checkpoint that comes with archc: `python training/train_tiny.py` writes validators/weights/tiny.

The model is the module that `archc generate tiny` prints, its loss is that module's own, and its tensors are stored by
the table that the module loads checkpoints with. Text: Pride and Prejudice (Jane Austen, 1813), in the public domain
everywhere, a byte a token. Takes five to ten minutes on two cores; seeds are fixed, and the last digits depend on the
version of torch and on the processor.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from archc.architecture import compile_spec
from archc.codegen import generate
from archc.exporting.convert import as_text, export
from archc.validation.ports import import_source

HERE = Path(__file__).resolve().parent
TEXT = HERE / "pride-and-prejudice.txt.xz"
FOLDER = HERE.parent / "validators" / "weights" / "tiny"

SEED = 1813
STEPS = 1200
ROWS = 16
PEAK = 6e-3
WARMUP = 50
HELD_OUT = 32_768
"""Bytes at the end of the text that are not trained on."""


def main() -> None:
    """Train, and write the checkpoint folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()

    torch.manual_seed(SEED)
    compiled = compile_spec("tiny")
    length = compiled.architecture.context
    module = import_source(generate(compiled.architecture))
    model = module.Model()
    model.initialise(0.06)
    text = torch.frombuffer(bytearray(lzma.decompress(TEXT.read_bytes())), dtype=torch.uint8).long()
    train(model, text[:-HELD_OUT], length, options.steps)
    round_to_bfloat16(model)
    print(f"held out: {held_out_loss(model, text[-HELD_OUT:], length):.4f} nats a byte")
    write(model, module, options.out)


def train(model: Any, text: Tensor, length: int, steps: int) -> None:
    """AdamW on random pieces of the text, with a warm-up and a cosine to nothing."""
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=PEAK, betas=(0.9, 0.95))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: share_of_peak(step, steps))
    started = time.perf_counter()
    for step, ids in enumerate(pieces(text, length, steps)):
        loss = model.loss(ids, ids)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0 or step == steps - 1:
            print(f"step {step:4}  loss {loss.item():.3f}  {time.perf_counter() - started:5.0f} s", flush=True)


def pieces(text: Tensor, length: int, steps: int) -> Iterator[Tensor]:
    """Random pieces of the text, [ROWS, length] each."""
    generator = torch.Generator().manual_seed(SEED)
    offsets = torch.arange(length)
    for _ in range(steps):
        starts = torch.randint(len(text) - length + 1, (ROWS, 1), generator=generator)
        yield text[starts + offsets]


def share_of_peak(step: int, steps: int) -> float:
    """The learning rate of a step as a share of the highest."""
    return min((step + 1) / WARMUP, 0.5 + 0.5 * math.cos(math.pi * step / steps))


@torch.no_grad()
def round_to_bfloat16(model: Any) -> None:
    """Gives every weight the value that is stored."""
    for parameter in model.parameters():
        parameter.copy_(parameter.bfloat16())


@torch.no_grad()
def held_out_loss(model: Any, text: Tensor, length: int) -> float:
    """Mean loss in nats a byte over whole pieces of unseen text."""
    ids = text[: len(text) // length * length].view(-1, length)
    return float(model.loss(ids, ids))


def write(model: Any, module: Any, folder: Path) -> None:
    """The checkpoint folder: config.json, weights under the names that the module loads, and a tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    config_spec = compile_spec("tiny", ["trained_context=null"])  # which no config.json says
    own = model.state_dict()
    stored = {name: own[place] for name, place in module.CHECKPOINT.items()}
    for layer in range(module.LAYERS):
        stored |= {
            name.replace(".N.", f".{layer}."): own[f"layers.{layer}.{place}"] for name, place in module.LAYER.items()
        }
    tensors = {name: tensor.bfloat16().contiguous() for name, tensor in stored.items()}
    weights = folder / "model.safetensors"
    save_file(tensors, weights, metadata={"format": "pt"})
    weights.chmod(0o644)
    (folder / "config.json").write_text(as_text(export(config_spec)), encoding="utf-8")
    (folder / "tokenizer.json").write_text(json.dumps(byte_tokenizer(), ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{folder}: {sum(file.stat().st_size for file in folder.iterdir()):,} bytes")


def byte_tokenizer() -> dict[str, object]:
    """A tokenizer.json whose token of a byte is its value.

    Its alphabet is GPT-2's: printable bytes stand for themselves, the others for the characters from 256 on.
    """
    printable = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in printable]
    alphabet = {byte: chr(byte) for byte in printable} | {byte: chr(256 + n) for n, byte in enumerate(others)}
    as_bytes = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": as_bytes,
        "post_processor": None,
        "decoder": as_bytes,
        "model": {"type": "BPE", "vocab": {alphabet[byte]: byte for byte in range(256)}, "merges": []},
    }


if __name__ == "__main__":
    main()
