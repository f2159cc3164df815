"""The shortest wrong port: transformers' own model with GELU where SiLU belongs. Nothing raises.

`archc validate tiny --port examples/wrong_activation.py:load`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import AutoModelForCausalLM


def load(weights: Path, dtype: torch.dtype) -> nn.Module:
    """The model of a checkpoint folder, its feed-forwards with the wrong activation."""
    model: Any = AutoModelForCausalLM.from_pretrained(weights, dtype=dtype, attn_implementation="eager")
    for layer in model.model.layers:
        layer.mlp.act_fn = nn.GELU()
    made: nn.Module = model.eval()
    return made
