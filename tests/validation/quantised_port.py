"""Ports that load a GPTQ checkpoint with code of their own: one as the format is meant, two with known mistakes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import torch
import transformers
from safetensors.numpy import load_file


def right(weights: Path, dtype: torch.dtype) -> Any:
    """Nibbles from the lowest, zeros plus one."""
    return _load(weights, dtype, places=range(8), shift=1)


def swapped(weights: Path, dtype: torch.dtype) -> Any:
    """The two nibbles of every byte have changed places."""
    return _load(weights, dtype, places=(1, 0, 3, 2, 5, 4, 7, 6), shift=1)


def unshifted(weights: Path, dtype: torch.dtype) -> Any:
    """Zeros as they are stored: off by one."""
    return _load(weights, dtype, places=range(8), shift=0)


def _load(weights: Path, dtype: torch.dtype, places: Any, shift: int) -> Any:
    config = json.loads((weights / "config.json").read_text())
    stored = load_file(weights / "model.safetensors")
    assert any(name.endswith("qweight") for name in stored), "a port of one's own gets the checkpoint as it is"
    plain: dict[str, Any] = {}
    for name, tensor in stored.items():
        stem, _, last = name.rpartition(".")
        if last == "qweight":
            q = numpy.stack([(tensor >> (4 * place)) & 15 for place in places], axis=1).reshape(-1, tensor.shape[1])
            zeros = numpy.stack([(stored[f"{stem}.qzeros"] >> (4 * place)) & 15 for place in range(8)], axis=2)
            zeros = zeros.reshape(len(zeros), -1) + shift
            group = stored[f"{stem}.g_idx"]
            plain[f"{stem}.weight"] = ((q - zeros[group]) * stored[f"{stem}.scales"].astype("float32")[group]).T
        elif last not in {"qzeros", "scales", "g_idx"}:
            plain[name] = tensor
    del config["quantization_config"]
    kind = transformers.AutoConfig.for_model(**config)
    kind._attn_implementation = "eager"
    model = transformers.AutoModelForCausalLM.from_config(kind, dtype=dtype)
    model.load_state_dict({name: torch.tensor(numpy.ascontiguousarray(tensor)) for name, tensor in plain.items()})
    return model.eval()
