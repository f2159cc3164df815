"""llama.cpp as a port: reads a file of probes, runs each on a GGUF file, and writes the logits of every position.

    python port.py MODEL.gguf PROBES OUT

Needs llama-cpp-python (whose low-level interface is used), numpy and safetensors. The cache is kept in float32 and
attention is computed plainly, so that nothing is rounded but what the GGUF file itself rounds.

What llama.cpp cannot run is left out of OUT: it wants the positions of a sequence without gaps.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path

import llama_cpp as llama
import numpy as np
from safetensors.numpy import load_file, save_file

# ggml.h, enum ggml_type
GGML_TYPE_F32 = 0
# llama.h, enum llama_flash_attn_type
FLASH_ATTENTION_OFF = 0


class Model:
    """A GGUF file, and a context for each probe."""

    def __init__(self, file: Path) -> None:
        params = llama.llama_model_default_params()
        params.n_gpu_layers = 0
        self.model = llama.llama_model_load_from_file(str(file).encode(), params)
        if not self.model:
            sys.exit(f"llama.cpp cannot load {file}")
        self.vocab = llama.llama_vocab_n_tokens(llama.llama_model_get_vocab(self.model))

    def run(self, rows: list[np.ndarray], chunks: list[int]) -> list[np.ndarray]:
        """Logits [tokens, vocab] of each row of tokens, fed through the cache in chunks of so many."""
        longest = max(map(len, rows))
        params = llama.llama_context_default_params()
        params.n_seq_max = len(rows)
        params.n_ctx = params.n_batch = params.n_ubatch = len(rows) * max(longest, 32)
        params.kv_unified = True
        params.type_k = params.type_v = GGML_TYPE_F32
        params.flash_attn_type = FLASH_ATTENTION_OFF
        context = llama.llama_init_from_model(self.model, params)
        if not context:
            sys.exit("llama.cpp cannot make a context")
        try:
            pieces = [list(self._piece(context, rows, start, size)) for start, size in _spans(chunks)]
        finally:
            llama.llama_free(context)
        return [np.concatenate([piece[row] for piece in pieces]) for row in range(len(rows))]

    def _piece(self, context: object, rows: list[np.ndarray], start: int, size: int) -> Iterator[np.ndarray]:
        """The logits of a piece of every row, in one batch."""
        tokens = [
            (row, position) for row in range(len(rows)) for position in range(start, min(start + size, len(rows[row])))
        ]
        batch = llama.llama_batch_init(len(tokens), 0, 1)
        batch.n_tokens = len(tokens)
        for index, (row, position) in enumerate(tokens):
            batch.token[index] = int(rows[row][position])
            batch.pos[index] = position
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = row
            batch.logits[index] = True
        failed = llama.llama_decode(context, batch)
        llama.llama_batch_free(batch)
        if failed:
            sys.exit(f"llama_decode gave {failed}")
        found = np.ctypeslib.as_array(llama.llama_get_logits(context), (len(tokens), self.vocab)).copy()
        for row in range(len(rows)):
            yield found[[index for index, (owner, _) in enumerate(tokens) if owner == row]]


def _spans(chunks: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for size in chunks:
        yield start, size
        start += size


def logits_of(model: Model, probe: dict[str, np.ndarray]) -> np.ndarray | None:
    """Logits [batch, tokens, vocab] of a probe, zero where a row is padded; None where llama.cpp cannot run it."""
    ids = probe["input_ids"]
    real = probe.get("attention_mask", np.ones_like(ids)).astype(bool)
    positions = probe.get("position_ids")
    rows = [row[mask] for row, mask in zip(ids, real, strict=True)]
    if positions is not None:
        given = [row[mask] for row, mask in zip(np.broadcast_to(positions, ids.shape), real, strict=True)]
        if any((row != np.arange(len(row))).any() for row in given):
            return None
    chunks = [int(size) for size in probe["chunks"]] if "chunks" in probe else [ids.shape[1]]
    out = np.zeros((*ids.shape, model.vocab), dtype=np.float32)
    for row, found in enumerate(model.run(rows, chunks)):
        out[row, real[row]] = found
    return out


def main(file: Path, probes: Path, out: Path) -> None:
    """Runs every probe of a file and writes what it gave."""
    quiet = llama.llama_log_callback(lambda level, text, _: sys.stderr.write(text.decode()) if level >= 4 else None)
    llama.llama_log_set(quiet, ctypes.c_void_p(0))
    llama.llama_backend_init()
    model = Model(file)
    grouped: dict[str, dict[str, np.ndarray]] = {}
    for name, tensor in load_file(probes).items():
        probe, _, field = name.rpartition("/")
        grouped.setdefault(probe, {})[field] = tensor
    found = {f"{name}/logits": logits_of(model, probe) for name, probe in grouped.items()}
    save_file({name: logits for name, logits in found.items() if logits is not None}, out)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
