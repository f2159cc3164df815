"""JUnit XML: a case for everything that the gate asked, as test reports of CI servers show them.

The form is that of Jenkins' junit-10.xsd, which pytest writes too (xunit2), and which GitLab and GitHub's actions read.
What is not seen is skipped; with `strict`, as the exit code says, it fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal
from xml.etree import ElementTree

from archc.errors import ArchcError
from archc.render.findings import (
    NOT_TRIED,
    Document,
    config_sentence,
    diagnosis_sentence,
    divergence_sentences,
    invariant_detail,
    norm_sentence,
    summary,
    survived,
    tensor_differences,
    untried,
)
from archc.render.sweep import remark
from archc.render.units import figure
from archc.spec.diagnostics import Level, SpecError, printable
from archc.sweep.record import Record

Outcome = Literal["passed", "failure", "error", "skipped"]

_SWEPT: Final[Mapping[str, Outcome]] = {"pass": "passed", "findings": "failure", "incomplete": "error"}


@dataclass(frozen=True, slots=True)
class Case:
    """One thing that was asked: what came of it, in a line and at length, and how long it took."""

    group: str
    name: str
    outcome: Outcome = "passed"
    message: str = ""
    lines: tuple[str, ...] = ()
    seconds: float = 0.0


def gate_junit(document: Document, *, strict: bool = False) -> str:
    """The cases of a run of the gate, as the text of an XML document without its first line."""
    cases = [
        *_stages(document["seconds"]),
        *_checkpoint(document),
        *_probes(document),
        *_layers(document["blockwise"]),
        *_invariants(document),
        *_diagnosis(document),
        *_faults(document, strict),
        *_fields(document["fields"], strict),
    ]
    reference, port = document["reference"], document["port"]
    properties = {
        "spec": document["spec"]["sha256"],
        "reference": f"{reference['version']}, {reference['dtype']}",
        "port": f"{port['kind']}: {port['name']}",
        "bound": f"{document['bound']:g}",
        "peak_memory_bytes": str(document["peak_memory_bytes"]),
    }
    told = summary(document, strict=strict)
    return _suite(document["spec"]["name"], cases, document["seconds"].get("total", 0.0), properties, told)


def error_junit(target: str, error: ArchcError) -> str:
    """A run without a verdict: every error of the spec is a failure, anything else one error."""
    if not isinstance(error, SpecError):
        return _suite(target, [Case("run", "verdict", "error", error.problem, (str(error),))])
    wrong = (one for one in dict.fromkeys(error.diagnostics) if one.level is Level.ERROR)
    return _suite(
        target,
        [
            Case(
                "spec",
                f"{one.code} {one.path}".rstrip(),
                "failure",
                one.message,
                (f"{one.span.file}:{one.span.line}:{one.span.column}" if one.span else one.path, one.mend),
            )
            for one in wrong
        ],
    )


def sweep_junit(records: Sequence[Record]) -> str:
    """A sweep: a case for every job, and an error for one that is not complete."""
    cases = [Case("jobs", one.header.name, _SWEPT[one.header.outcome], *_swept(one)) for one in records]
    return _suite("sweep", cases, sum(case.seconds for case in cases), command="archc")


def _swept(record: Record) -> tuple[str, tuple[str, ...], float]:
    strict = record.header.outcome == "findings" and bool((record.document or {}).get("passed"))
    lines = summary(record.document, strict=strict) if record.document else [record.header.reason]
    return remark(record), tuple(lines), record.header.seconds


def _stages(seconds: dict[str, float]) -> Iterator[Case]:
    """The parts of the run that were timed: times of single probes are not known."""
    for name, took in seconds.items():
        if name != "total":
            yield Case("run", name, seconds=took)


def _checkpoint(document: Document) -> Iterator[Case]:
    yield _held("checkpoint", "tensors", tuple(sentence for sentence, _ in tensor_differences(document["manifest"])))
    if document["static"] is None:
        yield Case("checkpoint", "config.json", "skipped", "not compared")
    else:
        yield _held("checkpoint", "config.json", tuple(map(config_sentence, document["static"])))
    for one in document["norm_weights"]:
        yield Case("checkpoint", one["tensors"], "skipped", norm_sentence(one))


def _held(group: str, name: str, differences: tuple[str, ...]) -> Case:
    if not differences:
        return Case(group, name)
    more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
    return Case(group, name, "failure", differences[0] + more, differences)


def _probes(document: Document) -> Iterator[Case]:
    for probe in document["probes"]:
        name = f"{probe['name']}"
        if probe["passed"]:
            yield Case("probes", name)
            continue
        floor, deviation = probe["floor"], probe["deviation"]
        message = f"{figure(probe['times_floor'])} times the noise floor; the bound is {document['bound']:g}"
        lines = (
            message,
            f"purpose: {probe['purpose']}",
            f"floor: max_abs {_number(floor['max_abs'])}, rms {_number(floor['rms'])}",
            f"deviation: max_abs {_number(deviation['max_abs'])}, rms {_number(deviation['rms'])}, "
            f"kl {_number(deviation['kl'])}, top1 {_number(deviation['top1'])}",
            *divergence_sentences(document),
            *map(diagnosis_sentence, document["diagnosis"][:1]),
        )
        yield Case("probes", name, "failure", message, lines)


def _layers(found: dict[str, Any] | None) -> Iterator[Case]:
    """Every layer alone, fed with what the reference gave its own."""
    if found is None:
        return
    if found["passed"]:
        yield Case("layers", "judged alone")
        return
    bound = f"the bound is {found['bound']:g}"
    beyond = [(point, times) for point, times in found["points"].items() if times is None or times > found["bound"]]
    lines = tuple(f"{point}: {figure(times)} times its floor" for point, times in beyond)
    yield Case("layers", "judged alone", "failure", f"{found['first']} is the first point beyond; {bound}", lines)


def _invariants(document: Document) -> Iterator[Case]:
    for one in document["invariants"]:
        if one["passed"]:
            yield Case("invariants", one["name"])
        else:
            detail = invariant_detail(one)
            lines = (detail, f"figure: {_number(one['figure'])} {one['unit']}")
            yield Case("invariants", one["name"], "failure", detail, lines)


def _diagnosis(document: Document) -> Iterator[Case]:
    """What a failing port behaves like; that nothing explains it is no case of its own."""
    if document["diagnosis"]:
        sentences = tuple(dict.fromkeys(map(diagnosis_sentence, document["diagnosis"])))
        yield Case("diagnosis", document["diagnosis"][0]["field"], "failure", sentences[0], sentences)


def _faults(document: Document, strict: bool) -> Iterator[Case]:
    if untried(document):
        yield Case("faults", "mutation score", "failure" if strict else "skipped", NOT_TRIED)
    faults = document.get("faults")
    if faults is None:
        return
    left = survived(document)
    score = f"{faults['killed']} of {faults['killed'] + len(left)} mistakes that this model can have would be seen"
    missed = (f"would not be seen: {one['fault']}" for one in left)
    equal = (f"no mistake here: {one['fault']} ({one['why']})" for one in faults["equivalent"])
    outcome: Outcome = "passed" if not left else "failure" if strict else "skipped"
    yield Case("faults", "mutation score", outcome, score if left else "", (score, *missed, *equal))


def _fields(fields: dict[str, Any], strict: bool) -> Iterator[Case]:
    for name in fields["observed"] or []:
        yield Case("fields", name)
    whys: dict[str, list[str]] = {}
    wrong = {one["field"] for one in fields["blind"] if strict and one["declared"]}
    for one in fields["blind"]:
        whys.setdefault(one["field"], []).append(one["why"])
    for name, reasons in whys.items():
        yield Case("fields", name, "failure" if name in wrong else "skipped", f"not seen: {'; '.join(reasons)}")


def _number(number: float | None) -> str:
    return "not finite" if number is None else f"{number:.3g}"


def _suite(
    name: str,
    cases: list[Case],
    seconds: float = 0.0,
    properties: dict[str, str] | None = None,
    told: list[str] | None = None,
    command: str = "archc validate",
) -> str:
    counts = {
        "tests": str(len(cases)),
        "failures": str(sum(case.outcome == "failure" for case in cases)),
        "errors": str(sum(case.outcome == "error" for case in cases)),
        "time": f"{seconds:.3f}",
    }
    suites = ElementTree.Element("testsuites", {"name": "archc", **counts})
    skipped = str(sum(case.outcome == "skipped" for case in cases))
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        {
            "name": printable(f"{command} {name}"),
            **counts,
            "skipped": skipped,
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
        },
    )
    if properties:
        listed = ElementTree.SubElement(suite, "properties")
        for key, value in properties.items():
            ElementTree.SubElement(listed, "property", {"name": key, "value": printable(value)})
    for case in cases:
        _add(suite, name, case)
    if told:
        ElementTree.SubElement(suite, "system-out").text = _text(told)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode") + "\n"


def _add(suite: ElementTree.Element, name: str, case: Case) -> None:
    attributes = {
        "classname": printable(f"{name}.{case.group}"),
        "name": printable(case.name),
        "time": f"{case.seconds:.3f}",
    }
    element = ElementTree.SubElement(suite, "testcase", attributes)
    if case.outcome == "passed":
        if case.lines:
            ElementTree.SubElement(element, "system-out").text = _text(case.lines)
        return
    found = {"message": printable(case.message)} | ({} if case.outcome == "skipped" else {"type": case.group})
    ElementTree.SubElement(element, case.outcome, found).text = _text(case.lines) or None


def _text(lines: list[str] | tuple[str, ...]) -> str:
    return "\n".join(map(printable, lines))
