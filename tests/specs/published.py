"""The published config.json of every shipped spec that has a family, and what transformers builds from it.

`configs/` holds them by the name of the spec, as published but for keys that say nothing of the architecture; of a
wrapper, the text model's section. Configs that state no dtype are given the one that their checkpoint is stored in.
Models are made on the meta device: their parameters have shapes and no storage.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

_FOLDER = Path(__file__).parent / "configs"
NAMES = sorted(path.name.removesuffix(".json") for path in _FOLDER.glob("*.json"))


def published(name: str) -> dict[str, Any]:
    """A fresh copy: config classes write into what they read."""
    found = json.loads((_FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    assert isinstance(found, dict)
    return found


@cache
def reference(name: str) -> Any:
    """The model of transformers."""
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(**published(name)))


def reference_total(name: str) -> int:
    """All its parameters, each once."""
    return sum(parameter.numel() for parameter in reference(name).parameters())
