"""The shapes that many configs share, written at once: rotary parameters, kinds of layer with their window."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, Final

from archc.exporting.outline import Outline, Values
from archc.families.common import SCALING_KEYS

Config = dict[str, Any]
_WAYS: Final = 16


def seeds(config: Config, resolved: Any, wanted: Outline) -> Iterator[Config]:
    """Configs that say at once what takes several keys to say."""
    whole = {**config, **typed(resolved, wanted)}
    yield whole
    windowed = {key: value for key, value in whole.items() if "window" in key or key in config}
    yield windowed
    for start in (whole, windowed, config):
        yield from _ropes(start, resolved, wanted)


def typed(resolved: Any, wanted: Outline) -> Config:
    """The types of all layers, as far as a config has keys for them, and the window of those that have one."""
    windows = wanted.column("attention.window")
    known = [window for window in windows if window]
    kinds = [_type(layer) for layer in wanted.layers]
    found: Config = {}
    if is_open(resolved, "sliding_window"):
        found["sliding_window"] = known[0] if known else None
    if is_open(resolved, "use_sliding_window"):
        found["use_sliding_window"] = bool(known)
    for name in ("layer_types", "layers_block_type"):
        if is_open(resolved, name):
            found[name] = kinds
    if is_open(resolved, "mlp_layer_types"):
        found["mlp_layer_types"] = ["sparse" if kind == "moe" else "dense" for kind in wanted.column("ffn.kind")]
    return found


def _type(layer: Values) -> str:
    """What transformers calls such a layer (configuration_utils.py), if the config's class has its usual names."""
    mixer = layer.get("mixer.kind")
    if layer.get("attention.heads"):
        if mixer:
            return "hybrid_sliding" if layer.get("attention.window") else "hybrid"
        if layer.get("attention.window"):
            return "sliding_attention"
        if layer.get("attention.chunk"):
            return "chunked_attention"
        return "indexed_attention" if layer.get("attention.indexer.heads") else "full_attention"
    if mixer:
        return "conv" if mixer == "short_conv" else "linear_attention"
    return "moe" if layer.get("ffn.kind") == "moe" else "mlp"


def is_open(resolved: Any, key: str) -> bool:
    """Whether a config has a key that can be given a value, and that its class does not work out."""
    own = getattr(type(resolved), getattr(resolved, "attribute_map", {}).get(key, key), None)
    try:
        has = hasattr(resolved, key)
    except Exception:  # a class refuses to answer for all layers at once what each has for itself
        return False
    return has and not (isinstance(own, property) and own.fset is None)


def _ropes(config: Config, resolved: Any, wanted: Outline) -> Iterator[Config]:
    """The rotary parameters: those of all layers, or those of every type of layer."""
    turning = [layer for layer in wanted.layers if layer.get("position.kind") == "rope"]
    if not turning:
        return
    distinct = list({repr(found): found for found in map(rope_parameters, turning)}.values())
    stated = getattr(resolved, "rope_parameters", None) or {}
    nested = [kind for kind, parameters in stated.items() if isinstance(parameters, Mapping)]
    original = distinct[0].get("original_max_position_embeddings")
    if original is not None and is_open(resolved, "original_max_position_embeddings"):
        config = {**config, "original_max_position_embeddings": original}
    for parameters in distinct:
        yield {**config, "rope_parameters": parameters}
    yield {**config, "rope_parameters": _by_type(config, resolved, wanted)}
    if len(distinct) ** len(nested) <= _WAYS:
        for ways in product(distinct, repeat=len(nested)):
            yield {**config, "rope_parameters": dict(zip(nested, ways, strict=True))}


def _by_type(config: Config, resolved: Any, wanted: Outline) -> dict[str, Any]:
    """The rotary parameters of every type of layer; those of a type that no layer has stay as they are."""
    types = config.get("layer_types") or getattr(resolved, "layer_types", None) or []
    found: dict[str, Any] = {}
    for kind, layer in zip(types, wanted.layers, strict=False):
        found.setdefault(kind, rope_parameters(layer) if layer.get("position.kind") == "rope" else None)
    stated = getattr(resolved, "rope_parameters", None) or {}
    others = {kind: copy.deepcopy(dict(value)) for kind, value in stated.items() if isinstance(value, Mapping)}
    return {**others, **found}


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
