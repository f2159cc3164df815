"""Tiny checkpoints that hide no mistake: every case of the zoo with numbers and weights that nothing leaves unseen.

No eps and no rotary base is a class's default, no norm weight is all ones, no bias, router correction or scalar is
zero, and matrices keep activations near unit scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tests.families.zoo import cpu_model, stored_buffers
from tests.families.zoo_case import Case

_EPS = re.compile(r"(^|_)(eps|epsilon)$")
_FIXED = re.compile(r"(^|\.)(beta|eps)$")
"""Stored constants of an activation, which no checkpoint changes."""


def uglier(case: Case) -> Case:
    """The case with an eps and a rotary base that are nobody's default."""
    values = case.hf_config().to_dict()
    changes: dict[str, Any] = {
        key: 37 * value for key, value in values.items() if _EPS.search(key) and isinstance(value, float)
    }
    if isinstance(values.get("rope_parameters"), Mapping):
        changes["rope_parameters"] = _other_bases(values["rope_parameters"])
    return replace(case, config={**case.config, **changes})


def _other_bases(rope: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in rope.items():
        if isinstance(value, Mapping):
            found[key] = _other_bases(value)
        else:
            found[key] = 0.77 * value if key == "rope_theta" and value else value
    return found


def ugly_model(case: Case, seed: int = 0) -> Any:
    """Hugging Face's model of a case, in fp32 with eager attention and experts, with ugly random weights."""
    model = cpu_model(case)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for module, name, tensor in _stored(model):
            if not _FIXED.search(name):
                tensor.copy_(_fresh(module, tensor, generator))
    return model


def save(case: Case, folder: Path, seed: int = 0) -> Any:
    """Writes the checkpoint of a case to `folder`, and returns its model."""
    model = ugly_model(case, seed)
    model.save_pretrained(folder)
    return model


def _stored(model: nn.Module) -> Iterator[tuple[nn.Module, str, Tensor]]:
    """Every floating-point tensor that a checkpoint holds, once, with the module it belongs to."""
    tensors = [*model.named_parameters(), *stored_buffers(model)]
    for name, tensor in tensors:
        if tensor.is_floating_point() and tensor.numel():
            yield model.get_submodule(name.rpartition(".")[0]), name, tensor


def _fresh(module: nn.Module, tensor: Tensor, generator: torch.Generator) -> Tensor:
    noise = torch.randn(tensor.shape, generator=generator)
    if isinstance(module, nn.Embedding):
        return noise
    if tensor.ndim > 1 and not _constant(tensor):
        return noise.mul(1.4 * _fan_in(module, tensor) ** -0.5)
    if _constant(tensor) and tensor.flatten()[0] != 0:
        return tensor * (1.0 + 0.6 * (torch.rand(tensor.shape, generator=generator) - 0.4))
    return tensor + 0.3 * noise


def _constant(tensor: Tensor) -> bool:
    return bool((tensor == tensor.flatten()[0]).all())


def _fan_in(module: nn.Module, tensor: Tensor) -> float:
    if type(module).__name__ == "Conv1D":  # GPT-2's linear layer, stored [in, out]
        return tensor.shape[0]
    return tensor.shape[-1] if tensor.ndim == 2 else sum(tensor.shape[-2:]) / 2
