"""The config.json of a spec."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from archc.architecture import Compiled
from archc.errors import ArchcError
from archc.exporting.solve import Attempt, Search, unnumbered
from archc.exporting.writers import Config
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
    with _quiet():
        found = search.run({"model_type": model_type}, _start(search))
        if found.distance:
            raise UnsayableError(*_refusal(found, model_type))
        for config in _saved(found.config, None), _saved(found.config, 0), found.config:
            if not search.attempt(json.loads(as_text(config))).distance:
                return config
    raise AssertionError("what has been found is among them")


def as_text(config: Config) -> str:
    """A config as the text of a config.json."""
    return json.dumps(config, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what transformers says of configs that are only tries."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _start(search: Search) -> Config:
    """What no table reads, what everything else depends on, and what the family knows better than to try."""
    architecture, model_type = search.wanted.architecture, search.model_type
    known_as = family(model_type).config["layers"]
    known = reference("transformers.models.auto.modeling_auto").MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    classes = reference("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    names: Mapping[str, str] = getattr(classes[model_type], "attribute_map", {})
    config: Config = {"architectures": [known[model_type]]} if model_type in known else {}
    config |= {"model_type": model_type, "dtype": architecture.dtype}
    layers = known_as.name if isinstance(known_as, Key) else "num_hidden_layers"
    sizes = {"vocab_size": architecture.vocab_size, "hidden_size": architecture.hidden_size}
    config |= {names.get(name, name): value for name, value in {**sizes, layers: len(architecture.layers)}.items()}
    for name, work_out in family(model_type).inverse.items():
        with suppress(LookupError, TypeError, ArithmeticError, ValueError):  # the spec lacks what it is about
            if (value := work_out(search.goal)) is not None:
                config[name] = value
    return config


def _saved(config: Config, token: int | None) -> Config:
    """A config as transformers' own class saves it. Special tokens beyond the vocabulary, its defaults, are `token`."""
    resolved, _, _ = resolve(config)
    saved: Config = json.loads(resolved.to_json_string())
    first: Config = {key: config[key] for key in ("architectures", "model_type") if key in config}
    for key, value in list(saved.items()):
        if key.endswith("_token_id") and isinstance(value, int) and value >= resolved.vocab_size:
            saved[key] = token
    return {**first, **{key: value for key, value in saved.items() if key != "auto_map"}}


def _refusal(found: Attempt, model_type: str) -> tuple[str, str]:
    if found.problem is not None:
        return f"no config of the family {model_type} says this spec: {found.problem}", "choose another family"
    paths = list(dict.fromkeys(unnumbered(difference.path) for difference in found.wrong))
    named = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
    return (
        f"a config of the family {model_type} cannot say {named} as the spec does",
        "leave family out, or choose another",
    )
