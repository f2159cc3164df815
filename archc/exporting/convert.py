"""The config.json of a spec."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from archc.architecture import Compiled
from archc.errors import ArchcError
from archc.exporting.solve import Attempt, Config, Search
from archc.families import family, known_families
from archc.families.base import Key
from archc.importing.resolve import reference, resolve


class UnsayableError(ArchcError):
    """No config of the family says what the spec says."""

    exit_code = 1


def export(compiled: Compiled) -> Config:
    """The config of a spec's family that imports as the spec, as transformers' class would save it.

    Raises UnsayableError for a spec without a family, or with something that a config of its family cannot say.
    """
    model_type = compiled.architecture.family
    if model_type is None:
        raise UnsayableError("the spec names no family, and a config is always one of a family", "add family: …")
    if model_type not in known_families() or not family(model_type).config:
        raise UnsayableError(f"archc cannot write configs of the family {model_type}", "choose another family")
    search = Search(compiled, model_type)
    found = search.run({"model_type": model_type}, _start(search))
    if found.distance:
        raise UnsayableError(*_refusal(found, model_type))
    for config in _saved(found.config), found.config:
        if not search.attempt(config).distance:
            return config
    raise AssertionError("what has been found is among them")


def _start(search: Search) -> Config:
    """What no table reads, what everything else depends on, and what the family knows better than to try."""
    architecture, model_type = search.wanted.architecture, search.model_type
    known_as = family(model_type).config["layers"]
    known = reference("transformers.models.auto.modeling_auto").MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    classes = reference("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    names: Mapping[str, str] = getattr(classes[model_type], "attribute_map", {})
    config: Config = {"architectures": [known[model_type]]} if model_type in known else {}
    config |= {"model_type": model_type, "dtype": architecture.dtype}
    for name, value in {
        "vocab_size": architecture.vocab_size,
        "hidden_size": architecture.hidden_size,
        known_as.name if isinstance(known_as, Key) else "num_hidden_layers": len(architecture.layers),
    }.items():
        config[names.get(name, name)] = value
    inverse = {key: work_out(search.goal) for key, work_out in family(model_type).inverse.items()}
    return config | {key: value for key, value in inverse.items() if value is not None}


def _saved(config: Config) -> Config:
    """A config as transformers' own class saves it; special tokens beyond the vocabulary, mere defaults, left out."""
    resolved, _, _ = resolve(copy.deepcopy(config))
    saved: Config = resolved.to_diff_dict()
    first = {key: config[key] for key in ("architectures", "model_type") if key in config}
    for key, value in list(saved.items()):
        if key.endswith("_token_id") and isinstance(value, int) and value >= resolved.vocab_size:
            saved[key] = None
    return {**first, **{key: value for key, value in saved.items() if key != "auto_map"}}


def _refusal(found: Attempt, model_type: str) -> tuple[str, str]:
    if found.problem is not None:
        return f"no config of the family {model_type} says this spec: {found.problem}", "choose another family"
    paths = list(dict.fromkeys(difference.path for difference in found.wrong))
    named = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
    return (
        f"a config of the family {model_type} cannot say {named} as the spec does",
        "leave family out, or choose another",
    )
