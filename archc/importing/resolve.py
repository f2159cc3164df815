"""Lets transformers' own config classes resolve a config: spellings, defaults, what one key says of another.

Only the class registered for a model type is used. A config's `auto_map` names code in its repository, which is never
run: model types that transformers does not know are refused.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from copy import deepcopy
from importlib import import_module
from logging import CRITICAL
from typing import Any

from archc.errors import ArchcError, IncompleteError
from archc.families import family, known_families
from archc.spec.diagnostics import printable, quoted
from archc.spec.language import MAX_LAYERS

_LAYERS = re.compile("(layers?|blocks|attention_types)$")
"""Keys by which config classes count the entries of the lists that they make."""
_IDLE = {"auto_map", "quantization_config", "num_labels", "id2label", "label2id"}
"""Keys that would load code, change how the rest is read, or make tables for a classifier."""


class UnknownModelError(ArchcError):
    """The config is of a type that cannot be imported."""

    exit_code = 1


def reference(module: str) -> Any:
    """A module of transformers. Raises IncompleteError where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = import_module(module)
            import_module("transformers").logging.set_verbosity(CRITICAL)  # archc says itself what is wrong
    except ModuleNotFoundError:
        raise IncompleteError(
            "importing needs transformers, which is not installed", "pip install 'archc[torch]'"
        ) from None
    return found


def resolve(raw: Mapping[str, Any]) -> tuple[Any, Mapping[str, Any], str]:
    """The config of the text model, as its class resolves it, what the config itself states of it, and the outer type.

    Raises UnknownModelError for a model type that transformers or archc does not know.
    """
    model_type = raw.get("model_type")
    if not isinstance(model_type, str):
        raise UnknownModelError("the config has no model_type", "add the model_type that transformers knows it by")
    if (layers := max(_layer_counts(raw), default=0)) > MAX_LAYERS:
        raise UnknownModelError(f"this config asks for {str(layers)[:40]} layers", "correct the config")
    known = reference("transformers.models.auto.configuration_auto").CONFIG_MAPPING
    model_type = _taken_for(model_type, raw)
    if model_type not in known:
        custom = "; the code in its repository (auto_map) is never run" if "auto_map" in raw else ""
        raise UnknownModelError(f"transformers knows no model type {quoted(model_type)}{custom}", "write a spec for it")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_floats = known[model_type]._decode_special_floats  # what from_pretrained does to a file: infinities
            config = known[model_type].from_dict(read_floats(_plain({**raw, "model_type": model_type})))
            text = config.get_text_config(decoder=True)
            text_type = text.model_type  # a key named as a section of a wrapper may hold anything
    except Exception as error:  # whatever the class trips over, it is the config that it cannot read
        raise UnknownModelError(f"transformers cannot read this config: {_line(error)}", "correct the config") from None
    stated = _section(raw, config, text) or raw
    if text_type not in known_families():
        raise UnknownModelError(*_refusal(config, text))
    _settle_rotations(text)
    if text is not config:
        stated = {**stated, **_lent(config, text, raw)}
    return text, stated, model_type


def _taken_for(model_type: str, raw: Mapping[str, Any]) -> str:
    """The type of model that transformers' AutoConfig reads a config as."""
    others = family(model_type).taken_for if model_type in known_families() else {}
    return next((other for key, other in others.items() if key in raw), model_type)


def _settle_rotations(text: Any) -> None:
    """Does what the reference's rope functions do to a config before they read it.

    An original_max_position_embeddings beside the rotary parameters goes before theirs, also where the class has no
    such key (modeling_rope_utils.py, standardize_rope_params).
    """
    if any(kind in ("llama3", "yarn", "longrope") for kind in _rope_types(getattr(text, "rope_parameters", None))):
        text.standardize_rope_params()


def _rope_types(parameters: object) -> Iterator[object]:
    if isinstance(parameters, Mapping):
        yield parameters.get("rope_type")
        yield from (inner.get("rope_type") for inner in parameters.values() if isinstance(inner, Mapping))


def _refusal(config: Any, text: Any) -> tuple[str, str]:
    """Why a model type is not imported, and what to do instead."""
    outer, inner = quoted(config.model_type), quoted(text.model_type)
    within = "" if text is config else f", the text model of {outer},"
    names = reference("transformers.models.auto.modeling_auto")
    if config.is_encoder_decoder or text.is_encoder_decoder:
        return f"{outer} is an encoder and a decoder that attends to it", "archc describes decoders that stand alone"
    if text.model_type in names.MODEL_FOR_MASKED_LM_MAPPING_NAMES:
        return f"{inner}{within} is an encoder (a masked language model)", "archc describes decoders"
    speaking = (
        *names.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        *names.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES,
        *names.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES,
    )
    if config.model_type not in speaking:
        return f"transformers has no causal language model of the type {outer}", "give the config of a decoder"
    return f"archc has no family of the model type {inner}{within} yet", "write a spec for it"


def _lent(config: Any, text: Any, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Gives a text model what its wrapper decides, and returns what of that the wrapper's config states.

    The head belongs to the wrapper's class, so whether it is tied is the wrapper's to say, and not said is no; except
    where that class holds the text model's own, head and all.
    """
    found = {}
    if text.dtype is None:
        text.dtype = config.dtype
        found["dtype"] = raw.get("dtype", raw.get("torch_dtype"))
    if not family(text.model_type).keeps_head:
        text.tie_word_embeddings = getattr(config, "tie_word_embeddings", False)
        found["tie_word_embeddings"] = raw.get("tie_word_embeddings")
    return found


def _section(raw: Mapping[str, Any], config: Any, text: Any) -> Mapping[str, Any] | None:
    """The section of a config that the config `text` was made of; None where a wrapper states its keys flat."""
    if text is config:
        return raw
    inner = ((value, getattr(config, key, None)) for key, value in raw.items() if isinstance(value, dict))
    found = (_section(value, part, text) for value, part in inner if hasattr(part, "model_type"))
    return next((section for section in found if section is not None), None)


def _line(error: Exception) -> str:
    """What a config class says, without the names of its validators."""
    said = error.args[0] if isinstance(error, KeyError) and error.args else error
    text = " ".join(str(said).split()).rpartition("Error: ")[2]
    return printable(text[:300]) or type(error).__name__


def _plain(raw: Mapping[str, Any]) -> dict[str, Any]:
    """A copy, for the class writes into sections, of what says something about the model."""
    return {key: deepcopy(value) for key, value in raw.items() if key not in _IDLE}


def _layer_counts(value: object, *, counts: bool = False) -> Iterator[int]:
    """The numbers by which a config class may repeat something; with `counts`, all numbers in `value`."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _layer_counts(inner, counts=counts or bool(_LAYERS.search(str(key))))
    elif isinstance(value, list) and counts:
        for inner in value:
            yield from _layer_counts(inner, counts=counts)
    elif isinstance(value, int) and counts:
        yield value
