"""The shapes that many configs share, written at once: rotary parameters, kinds of layer with their window."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from archc.exporting.outline import Outline, Values
from archc.families.common import SCALING_KEYS

Config = dict[str, Any]


def seeds(config: Config, resolved: Any, wanted: Outline) -> Iterator[Config]:
    """Configs that say at once what takes several keys to say."""
    typed = {**config, **_windows(resolved, wanted)}
    yield typed
    yield from _ropes(typed, resolved, wanted)
    yield from _ropes(config, resolved, wanted)


def _windows(resolved: Any, wanted: Outline) -> Config:
    """The window, the switch that some configs have for it, and the layers that have one."""
    windows = [layer.get("attention.window") for layer in wanted.layers]
    known = [window for window in windows if window]
    found: Config = {}
    if is_open(resolved, "sliding_window"):
        found["sliding_window"] = known[0] if known else None
    if is_open(resolved, "use_sliding_window"):
        found["use_sliding_window"] = bool(known)
    if is_open(resolved, "layer_types") and known and not all(windows):
        found["layer_types"] = ["sliding_attention" if window else "full_attention" for window in windows]
    return found


def is_open(resolved: Any, key: str) -> bool:
    """Whether a config has a key that can be given a value, and that its class does not work out."""
    own = getattr(type(resolved), key, None)
    return hasattr(resolved, key) and not (isinstance(own, property) and own.fset is None)


def _ropes(config: Config, resolved: Any, wanted: Outline) -> Iterator[Config]:
    """The rotary parameters: those of all layers, or those of every type of layer."""
    turning = [layer for layer in wanted.layers if layer.get("position.kind") == "rope"]
    if not turning:
        return
    usual = rope_parameters(turning[0])
    yield {**config, "rope_parameters": usual}
    types = config.get("layer_types") or getattr(resolved, "layer_types", None)
    if isinstance(types, list) and len(types) == len(wanted.layers):
        by_type: dict[str, Any] = {}
        for kind, layer in zip(types, wanted.layers, strict=True):
            if layer.get("position.kind") == "rope":
                by_type.setdefault(kind, rope_parameters(layer))
            else:
                by_type.setdefault(kind, None)
        stated = getattr(resolved, "rope_parameters", None)
        for kind, parameters in (stated or {}).items():
            if isinstance(parameters, Mapping):
                by_type.setdefault(kind, copy.deepcopy(dict(parameters)))
        yield {**config, "rope_parameters": by_type}
        turned = {kind: parameters for kind, parameters in by_type.items() if parameters}
        yield {**config, "rope_parameters": {**dict.fromkeys(by_type, usual), **turned}}


def rope_parameters(layer: Values) -> dict[str, Any]:
    """The rotary parameters of a layer under transformers' keys (modeling_rope_utils.py)."""
    kind = layer.get("position.scaling.kind")
    found: dict[str, Any] = {"rope_type": kind or "default", "rope_theta": layer["position.base"]}
    if layer.get("position.partial", 1.0) != 1.0:
        found["partial_rotary_factor"] = layer["position.partial"]
    for field, key in SCALING_KEYS.get(str(kind), {}).items():
        value = layer.get(f"position.scaling.{field}")
        if value is not None:
            found[key] = list(value) if isinstance(value, tuple) else value
    original = layer.get("position.scaling.original_context")
    if original is not None and kind != "dynamic":
        found["original_max_position_embeddings"] = original
    return found
