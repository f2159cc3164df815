"""What a run of the gate found wrong or could not see, as sentences, each with the field of the spec that it is about.

They are read off the validation JSON, so that a report can be made wherever a document of that form is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from archc.checkpoints.manifest import pattern_of
from archc.render.units import amount, figure
from archc.spec.diagnostics import Level

Document: TypeAlias = Mapping[str, Any]
"""The validation JSON, as `archc validate --json` writes it."""

RULES: Final[Mapping[str, tuple[str, str]]] = {
    "tensors": (
        "The checkpoint does not hold what the spec declares",
        "The names and shapes in the headers of the safetensors files are held against those that the spec declares. "
        "Where they differ, a port cannot be loaded, and nothing else is run.",
    ),
    "config": (
        "The spec and the checkpoint's config.json say different things",
        "A field of the spec has another value than the checkpoint's own config.json gives it.",
    ),
    "norm-weights": (
        "Weights of norms look like another convention than the declared one",
        "Stored weights near 1 belong to a plain norm, and weights near 0 to one that adds 1 to them. It is a guess.",
    ),
    "diagnosis": (
        "The port behaves as a known fault does",
        "The port fails, and a model with this one thing wrong gives the port's logits, to within the noise floor.",
    ),
    "parity": (
        "The port deviates from the reference by more than arithmetic can",
        "On some probe the port's logits are further from the reference's than the bound allows. The bound is a "
        "multiple of the noise floor, which is measured anew in every run.",
    ),
    "invariant": (
        "A property that every correct port has does not hold",
        "Some things must hold whatever the reference says: later tokens change nothing before them, steps through the "
        "cache give what one full pass gives, padding changes nothing.",
    ),
    "survived": (
        "A fault that this gate would not catch",
        "A port with this fault would pass on these weights. With --strict the run fails.",
    ),
    "blind": (
        "A field that no probe can see",
        "A port that gets this field wrong would pass on these weights. With --strict the run fails.",
    ),
}
"""What findings are called by → in short, and at length."""
NOT_TRIED: Final = "no mistake could be planted: it is not known whether one would pass"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to tell: by which rule, how much it matters, and where in the spec it belongs.

    `field` is a dotted path, `layer` the first layer that it is about, if not all; `tensor` the stored name of one;
    `fault` the id of a fault.
    """

    rule: str
    level: Level
    message: str
    field: str = ""
    layer: int | None = None
    tensor: str = ""
    fault: str = ""


def holds(document: Document, *, strict: bool = False) -> bool:
    """Whether the gate passed; with `strict`, and nothing would have gone unseen."""
    return bool(document["passed_strictly" if strict else "passed"])


def findings(document: Document, *, strict: bool = False) -> list[Finding]:
    """Everything that is wrong, then what was not seen; with `strict`, that is wrong too."""
    unseen = Level.ERROR if strict else Level.NOTE
    return [
        *(
            Finding("tensors", Level.ERROR, said, tensor=name)
            for said, name in tensor_differences(document["manifest"])
        ),
        *(
            Finding("config", Level.ERROR, config_sentence(one), one["field"], _first_layer(one))
            for one in document["static"] or []
        ),
        *(
            Finding("norm-weights", Level.WARNING, norm_sentence(one), "norm.weight")
            for one in document["norm_weights"]
        ),
        *_deviations(document),
        *(
            Finding("invariant", Level.ERROR, f"{one['name']} does not hold: {invariant_detail(one)}")
            for one in document["invariants"]
            if not one["passed"]
        ),
        *(
            Finding("survived", unseen, f"a port with {one['fault']} would pass", one["field"])
            for one in survived(document)
        ),
        *(Finding("survived", Level.ERROR, NOT_TRIED) for _ in range(strict and untried(document))),
        *(
            Finding("blind", unseen if one["declared"] else Level.NOTE, _blind_sentence(one), one["field"])
            for one in document["fields"]["blind"]
        ),
    ]


def _blind_sentence(blind: Mapping[str, Any]) -> str:
    return f"{blind['field']} is not seen: {blind['why']}"


def summary(document: Document, *, strict: bool = False) -> list[str]:
    """The verdict in a line, then what is wrong besides, a line each."""
    word = "PASS" if holds(document, strict=strict) else "FAIL"
    wrong = [one for one in findings(document, strict=strict) if one.level is Level.ERROR]
    return [
        f"{document['spec']['name']}: {word}: {document['verdict_strictly' if strict else 'verdict']}",
        *(one.message for one in wrong if one.rule != "parity"),
        *(sentence for one in wrong if one.rule == "parity" for sentence in divergence_sentences(document)),
    ]


def survived(document: Document) -> Sequence[Mapping[str, Any]]:
    """The faults that the gate would not catch."""
    faults: Mapping[str, Any] = document.get("faults") or {}
    found: Sequence[Mapping[str, Any]] = faults.get("survived", [])
    return found


def untried(document: Document) -> bool:
    """Whether a port passes, and it is not known which mistakes would have passed as well."""
    return bool(document["passed"]) and document.get("faults") is None


def diagnosis_sentence(diagnosis: Mapping[str, Any]) -> str:
    """What a port that fails behaves like; or the reference, where it is the spec that is wrong."""
    return f"the {diagnosis['of']} behaves exactly as with {diagnosis['explains']}"


def config_sentence(difference: Mapping[str, Any]) -> str:
    """What a spec and the checkpoint's config.json say differently."""
    origin = ", by default" if difference["stated"] is False else ""
    return (
        f"{difference['field']} is declared as {_value(difference['declared'])}, "
        f"and {_value(difference['config'])} in config.json{origin}{_on_layers(difference)}"
    )


def norm_sentence(doubt: Mapping[str, Any]) -> str:
    """Norms whose stored weights look like another convention than the declared one."""
    return (
        f"{doubt['tensors']} (mean {figure(doubt['mean'])}): declared {doubt['declared']}, "
        f"but these weights look {doubt['looks']}"
    )


def divergence_sentences(document: Document) -> list[str]:
    """Where port and reference part, and why no diagnosis was found; none where nothing is known of it."""
    found, notes = document["first_divergence"], [document.get("divergence_note"), document.get("diagnosis_note")]
    if found is not None:
        notes[0] = f"{found['point']}, {figure(found['times_floor'])} times the floor there"
    labels = ("first divergence", "diagnosis")
    return [f"{label}: {note}" for label, note in zip(labels, notes, strict=True) if note]


def invariant_detail(invariant: Mapping[str, Any]) -> str:
    """What was expected of an invariant, or by how much it is broken."""
    return str(invariant["detail"] or amount(invariant["figure"], invariant["unit"]))


def tensor_differences(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """A sentence for all tensors of one pattern that differ alike, each with the first one's stored name."""
    alike: dict[str, list[str]] = {}
    for name in manifest["missing"]:
        alike.setdefault(f"{pattern_of(name)} is declared and not stored", []).append(name)
    for name in manifest["unexpected"]:
        alike.setdefault(f"{pattern_of(name)} is stored and not declared", []).append(name)
    for one in manifest["wrong_shape"]:
        shapes = f"declared as {one['declared']}, and stored as {one['stored']}"
        alike.setdefault(f"{pattern_of(one['name'])} is {shapes}", []).append(one["name"])
    return [
        (f"{sentence} ({len(names)} tensors)" if len(names) > 1 else sentence, names[0])
        for sentence, names in alike.items()
    ]


def _deviations(document: Document) -> Iterator[Finding]:
    """What a failing port behaves like, best first; where that is not known, that it fails, and where it begins."""
    layers_hold = document["blockwise"] is None or document["blockwise"]["passed"]
    if layers_hold and all(probe["passed"] for probe in document["probes"]):
        return
    for one in document["diagnosis"]:
        best = one["explains"] == document["diagnosis"][0]["explains"]  # of a pair, both are
        sentence = f"{'' if best else 'or: '}{diagnosis_sentence(one)}; {one['mend']}"
        level = Level.ERROR if best else Level.NOTE
        yield Finding("diagnosis", level, sentence, one["field"], _first_layer(one), fault=one["fault"])
    if not document["diagnosis"]:
        yield Finding("parity", Level.ERROR, "; ".join([document["verdict"], *divergence_sentences(document)]))


def _first_layer(entry: Mapping[str, Any]) -> int | None:
    layers = entry.get("layers")
    return min(layers) if layers else None


def _on_layers(entry: Mapping[str, Any]) -> str:
    layers = entry.get("layers") or []
    return f", on layers {', '.join(map(str, layers))}" if layers else ""


def _value(value: object) -> str:
    return "null" if value is None else json.dumps(value) if isinstance(value, bool) else str(value)
