"""What a case of the zoo is, and the words its tables share."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

Config = Mapping[str, Any]

FULL, SLIDING, CHUNKED = "full_attention", "sliding_attention", "chunked_attention"
LINEAR, CONV, INDEXED = "linear_attention", "conv", "indexed_attention"
DENSE, SPARSE = "dense", "sparse"

# Three query heads to each of two key/value heads; head sizes, widths and counts that no other number equals.
GROUPED: dict[str, Any] = {
    "vocab_size": 211,
    "hidden_size": 60,
    "intermediate_size": 92,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 173,
}
HEADED = {**GROUPED, "head_dim": 14}


@dataclass(frozen=True)
class Case:
    """One tiny model: a name for reports, and the config.json that makes it, without `model_type`."""

    name: str
    model_type: str
    config: Config

    def config_dict(self) -> dict[str, Any]:
        """The case as it would stand in a config.json."""
        architecture = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[self.model_type]
        return {"architectures": [architecture], "model_type": self.model_type, **self.config}

    def hf_config(self) -> Any:
        """The case as transformers' config class reads it. A copy: classes change lists that they are given."""
        return CONFIG_MAPPING[self.model_type].from_dict(copy.deepcopy(self.config_dict()))


def rope(theta: float, **more: Any) -> dict[str, Any]:
    """A `rope_parameters` entry."""
    return {"rope_type": "default", "rope_theta": theta, **more}


def without_width(config: Config) -> dict[str, Any]:
    """The config of a class that has no dense feed-forward."""
    return {key: value for key, value in config.items() if key != "intermediate_size"}


def family(model_type: str, base: Config, **variants: Config) -> list[Case]:
    """The base case of a model type, and one case for each named set of changes to it."""
    return [
        Case(model_type, model_type, base),
        *(Case(f"{model_type}-{name}", model_type, {**base, **changes}) for name, changes in variants.items()),
    ]
