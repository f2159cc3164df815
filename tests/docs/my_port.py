"""The reader's own port, as the documentation calls it: right, and named my_port.py:load."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM


def load(weights: Path, dtype: torch.dtype) -> nn.Module:
    """The model of a checkpoint folder."""
    model: Any = AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager")
    made: nn.Module = model.eval()
    return made
