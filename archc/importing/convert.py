"""From a config to the text of a spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from archc import __version__
from archc.families import family
from archc.families.base import Source
from archc.files import stamped
from archc.importing.emit import emit
from archc.importing.reading import Reading
from archc.importing.resolve import UnknownModelError, resolve
from archc.importing.source import find_source
from archc.importing.stack import stack
from archc.importing.translate import Leaf, Tree, answer, translate
from archc.importing.undeclared import undeclared
from archc.spec.diagnostics import Level, SpecError, printable
from archc.spec.language import MAX_LAYERS
from archc.spec.load import load_text

_DTYPES = {"float32", "bfloat16", "float16"}
_HEADER = ("archc", "name", "family", "source", "vocab_size", "hidden_size", "context", "dtype", "embedding")


@dataclass(frozen=True, slots=True)
class Imported:
    """A spec made from a config, and where its values came from."""

    text: str
    values: tuple[tuple[str, Leaf], ...]
    """Every value under its path in the spec."""
    wrapper: str | None
    """The model type around the text model, where it is not the model's own."""
    notes: tuple[str, ...]
    """What the comments at the top of the spec say of the config."""


def import_spec(target: str) -> Imported:
    """The spec of what is at `target`.

    Raises UsageError where there is nothing, IncompleteError where it cannot be read, and UnknownModelError for a model
    that is not known.
    """
    source = find_source(target)
    return convert(source.raw, source.name, source.place, source.notes)


def convert(raw: Mapping[str, Any], name: str, place: str = "config.json", notes: tuple[str, ...] = ()) -> Imported:
    """The spec of a model `name` with the config `raw`, which `place` states; `notes` open it as comments.

    Raises UnknownModelError for a model that is not known.
    """
    config, stated, outer = resolve(raw)
    known = family(config.model_type)
    if known.refused:
        raise UnknownModelError(
            f"archc cannot import the model type {config.model_type}: {known.refused}", "no spec can say it"
        )
    if not known.config:
        raise UnknownModelError(f"archc cannot import the model type {config.model_type} yet", "write a spec for it")
    table = {"dtype": _dtype, **known.config}
    looks: list[Reading] = []

    def look(layer: int) -> Reading:
        looks.append(Reading(config, stated, layer))
        return looks[-1]

    try:
        count = _count(table["layers"], Reading(config, stated))
        found = translate(table, look, count)
    except Exception as error:  # whatever a table trips over, it is the config that it cannot read
        raise UnknownModelError(
            f"this {config.model_type} config cannot be translated: {_problem(error)}", "correct the config"
        ) from None
    own = {"archc": Leaf(1), "name": Leaf(_label(name)), "family": Leaf(config.model_type)}
    header: Tree = dict(sorted({**own, **found.header}.items(), key=_rank))
    _add_undeclared(header, list(undeclared(config, {key for one in looks for key in one.read})))
    about = [*notes, *_quantised(raw)]
    if outer != config.model_type:
        about.append(f"Its text model alone, {config.model_type}: what the wrapper adds to it is left out.")
    elif known.beside:
        about.append(f"The text model alone, without {known.beside}.")
    body = emit(dict(header), stack(found.layers), about, place)
    text = stamped(f"Imported by archc {__version__} from a config of the model type {_label(outer)}.", body)
    _check(text, config.model_type)
    values = [
        *leaves(header, ""),
        *(v for i, layer in enumerate(found.layers) for v in leaves(layer, f"layers.{i}.")),
    ]
    return Imported(text, tuple(values), outer if outer != config.model_type else None, tuple(about))


def _add_undeclared(header: Tree, more: list[str]) -> None:
    """Adds to what the header says that the reference does and the spec cannot say."""
    known = header.get("undeclared")
    said = known.value if isinstance(known, Leaf) and isinstance(known.value, list) else []
    if new := [text for text in more if text not in said]:
        header["undeclared"] = Leaf([*said, *new])


def _rank(entry: tuple[str, object]) -> int:
    """Where a key of the header stands: those that every spec has come first."""
    return _HEADER.index(entry[0]) if entry[0] in _HEADER else len(_HEADER)


def _check(text: str, model_type: str) -> None:
    """Raises UnknownModelError for a spec with errors, whose lines the user has never seen."""
    try:
        load_text(text)
    except SpecError as error:
        wrong = [found.message for found in error.diagnostics if found.level is Level.ERROR]
        raise UnknownModelError(
            f"this {model_type} config makes no valid spec: {'; '.join(wrong[:3])}", "correct the config"
        ) from None


def _quantised(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """A note on a checkpoint whose weights are stored smaller than they are counted."""
    text = raw.get("text_config")
    for section in (raw, text if isinstance(text, dict) else {}):
        stated = section.get("quantization_config") or section.get("compression_config")
        if isinstance(stated, dict):
            method = re.sub(r"[^\w.-]", "", str(stated.get("quant_method") or "unnamed"))[:40]
            return (f"Its checkpoint is quantised ({method}); parameters are counted as they were before.",)
    return ()


def _problem(error: Exception) -> str:
    """What a table or the reference tripped over, in a line."""
    text = printable(" ".join(str(error).split())[:300])
    if isinstance(error, KeyError):
        return f"it has no {text}"
    return text if isinstance(error, (ValueError, AttributeError)) and text else f"{type(error).__name__}: {text}"


def _count(source: Source, look: Reading) -> int:
    value = answer(source, look)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MAX_LAYERS:
        raise ValueError(f"{value!r} layers")
    return value


def _dtype(c: Reading) -> str:
    name = str(c.get("dtype") or "float32").removeprefix("torch.")
    return name if name in _DTYPES else "bfloat16"


def _label(name: str) -> str:
    text = re.sub(r"[^A-Za-z0-9 ._/+-]+", "-", name).strip("-. _/+")[:100]
    return text or "imported"


def leaves(tree: Tree, path: str) -> Iterator[tuple[str, Leaf]]:
    """Every leaf of a tree, under its path behind `path`."""
    for key, value in tree.items():
        if isinstance(value, Leaf):
            yield path + key, value
        elif isinstance(value, Mapping):
            yield from leaves(value, f"{path}{key}.")
        else:
            for index, entry in enumerate(value):
                yield from leaves(entry, f"{path}{key}.{index}.")
