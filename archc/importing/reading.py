"""A config as the reference resolves it, and what was read of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

_LEGACY: Mapping[str, tuple[str, ...]] = {
    "rope_parameters": ("rope_scaling", "rope_theta"),
    "rope_theta": ("rotary_emb_base",),
    "rope_type": ("type",),
    "dtype": ("torch_dtype",),
    "partial_rotary_factor": ("rotary_pct",),
    "attention_layers": ("attention_types",),
    "per_layer_config": ("head_dim", "num_key_value_heads", "global_head_dim", "num_global_key_value_heads"),
    "kv_sharing_modes": ("num_kv_shared_layers",),
}
"""Other spellings that transformers 5.24 resolves (configuration_utils.py, modeling_rope_utils.py, and the classes of
gemma4 and gpt_neo)."""


class Reading:
    """What a config class of transformers makes of a config.json, key by key.

    Keys are attributes. `layer` is the number of the layer in question. What is asked for is collected in `read`: the
    key, and whether the config states it (a default of the class is not stated; neither is null).
    """

    def __init__(self, config: Any, raw: Mapping[str, Any], layer: int = 0) -> None:
        self._config = config
        self._raw = raw
        self._aliases: Mapping[str, str] = getattr(config, "attribute_map", {})
        self.layer = layer
        self.read: dict[str, bool] = {}

    def __getattr__(self, key: str) -> Any:
        """The resolved value of a key. Raises AttributeError for one that the class does not have."""
        if key.startswith("__"):
            raise AttributeError(key)
        value = getattr(self._config, key)
        self.read[key] = self.states(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """The resolved value of a key, or `default` where the class has none."""
        return getattr(self, key) if hasattr(self._config, key) else default

    def states(self, key: str) -> bool:
        """Whether the config itself gives this key a value, under this name or one that is resolved to it."""
        names = {key, self._aliases.get(key, key), *_LEGACY.get(key, ())}
        names.update(alias for alias, name in self._aliases.items() if name == key)
        return _stated(self._raw, names)

    def rope(self, kind: str | None = None) -> Rope:
        """The rotary parameters, of one kind of layer where each has its own."""
        return Rope(self, kind)

    def section(self, key: str) -> Reading:
        """A config inside this one; what is read of it is noted here."""
        inner = Reading(getattr(self._config, key), self._raw.get(key) or {}, self.layer)
        inner.read = self.read
        return inner


class Rope:
    """The rotary parameters of a config, however they are spelled: as `rope_parameters`, or as older keys."""

    def __init__(self, owner: Reading, kind: str | None) -> None:
        found = getattr(owner._config, "rope_parameters", None) or {}
        self.kind = kind if kind is not None and isinstance(found.get(kind), Mapping) else None
        """The kind of layer, where it has parameters of its own."""
        self._owner = owner
        self._values: Mapping[str, Any] = found if self.kind is None else found[self.kind]
        raw = [owner._raw.get(name) for name in ("rope_parameters", "rope_scaling")]
        maps = [entry for entry in raw if isinstance(entry, Mapping)]
        own = [entry.get(self.kind) for entry in maps]
        self._raw = [part if isinstance(part, Mapping) else whole for part, whole in zip(own, maps, strict=True)]

    def __getitem__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def get(self, key: str, default: Any = None) -> Any:
        """A parameter, or `default` where it is not set."""
        value = self._values.get(key)
        names = {key, *_LEGACY.get(key, ())}
        self._owner.read[key] = self._owner.states(key) or any(_stated(entry, names) for entry in self._raw)
        return default if value is None else value

    def nulls(self, key: str) -> bool:
        """Whether a parameter is there, and null: to some of the reference's code that is not as if it were not."""
        return key in self._values and self.get(key) is None


def _stated(raw: Mapping[str, Any], names: Iterable[str]) -> bool:
    return any(raw.get(name) is not None for name in names)
