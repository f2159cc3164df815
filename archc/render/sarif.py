"""SARIF 2.1.0: findings at lines of a spec, as code hosts annotate them.

OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0. A file holds one run. Every result has a place,
without which code hosts refuse the file; places are relative to the root of the repository, columns count characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from archc import __version__, resources
from archc.errors import ArchcError, IncompleteError, UsageError
from archc.render.findings import RULES, Document, findings, holds
from archc.render.places import artifact, place_of
from archc.spec.diagnostics import Diagnostic, Level, Span, SpecError
from archc.spec.load import find

if TYPE_CHECKING:
    from archc.architecture import Compiled
    from archc.render.findings import Finding

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT: Final = "%SRCROOT%"
"""The name that code hosts know for the root of the repository."""
_FAULT: Final = "fault/"


def gate_sarif(document: Document, compiled: Compiled, *, strict: bool = False) -> dict[str, Any]:
    """The findings of the gate, and what the compiler says of the spec."""
    found = [_finding(one, compiled) for one in findings(document, strict=strict)]
    said = _diagnostics(compiled.diagnostics, compiled.loaded.root.span.file)
    outcome = {"passed": holds(document, strict=strict), "verdict": document["verdict"], "spec": document["spec"]}
    return _log(_gate(document["spec"]["name"]), [*found, *said], outcome=outcome)


def check_sarif(specs: Iterable[tuple[str, Iterable[Diagnostic]]], problems: Iterable[str] = ()) -> dict[str, Any]:
    """The diagnostics of specs, each with its target; `problems` say which could not be read at all."""
    results = [result for target, diagnostics in specs for result in _diagnostics(diagnostics, _file(target))]
    return _log("archc-check/", results, problems)


def error_sarif(target: str, error: ArchcError) -> dict[str, Any]:
    """A run of the gate without a verdict: what is wrong with the spec, or why it could not be completed."""
    if isinstance(error, SpecError):
        return _log(_gate(target), _diagnostics(error.diagnostics, _file(target)))
    return _log(_gate(target), [], [str(error)])


def _gate(name: str) -> str:
    """The category of a run, by which code hosts keep the results for several specs apart."""
    return f"archc-validate/{name}/"


def _file(target: str) -> str:
    """The file of a target; the target itself where there is none."""
    try:
        return str(find(target))
    except UsageError:
        return target


def _log(
    category: str,
    results: list[dict[str, Any]],
    problems: Iterable[str] = (),
    outcome: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    notifications = [{"level": "error", "message": {"text": problem}} for problem in problems]
    invocation: dict[str, Any] = {"executionSuccessful": not notifications}
    if notifications:
        invocation["toolExecutionNotifications"] = notifications
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "archc", "version": __version__, "rules": _rules(results)}},
        "automationDetails": {"id": category},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if outcome is not None:
        run["properties"] = dict(outcome)
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _finding(finding: Finding, compiled: Compiled) -> dict[str, Any]:
    rule = f"{_FAULT}{finding.fault}" if finding.rule == "diagnosis" and finding.fault else finding.rule
    return _result(rule, finding.level, finding.message, place_of(finding, compiled))


def _diagnostics(diagnostics: Iterable[Diagnostic], file: str) -> list[dict[str, Any]]:
    """Diagnostics without a place in a text (of what --set says) belong to the first line of the file."""
    results = []
    for one in dict.fromkeys(diagnostics):
        span = one.span if one.span and not one.span.file.startswith("--set ") else Span(file, 1, 1, 1, "")
        message = f"{one.message}; {one.mend}" if one.mend else one.message
        results.append(_result(one.code, one.level, message, span))
    return results


def _result(rule: str, level: Level, message: str, span: Span) -> dict[str, Any]:
    place = {"physicalLocation": _location(span)}
    return {"ruleId": rule, "level": level.value, "message": {"text": message}, "locations": [place]}


def _location(span: Span) -> dict[str, Any]:
    file = artifact(span.file)
    where = {"uri": file.uri, "uriBaseId": _ROOT} if file.in_repository else {"uri": file.uri}
    region: dict[str, Any] = {"startLine": 1 if file.imported else span.line}
    if span.text and not file.imported:  # else the column is of no text that there is
        region |= {"startColumn": span.column, "endColumn": span.column + span.length}
    return {"artifactLocation": where, "region": region}


def _rules(results: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The rules that results name, each with its help."""
    return [_rule(rule) for rule in dict.fromkeys(str(result["ruleId"]) for result in results)]


def _rule(rule: str) -> dict[str, Any]:
    short, text = RULES.get(rule) or (_fault(rule) if rule.startswith(_FAULT) else _page(rule))
    return {
        "id": rule,
        "shortDescription": {"text": short},
        "fullDescription": {"text": text.partition("\n\n")[0].replace("\n", " ")},
        "help": {"text": text, "markdown": text},
    }


def _fault(rule: str) -> tuple[str, str]:
    """What the catalogue says of a fault."""
    from archc.faults.catalogue import CATALOGUE

    for fault in CATALOGUE:
        if rule == f"{_FAULT}{fault.id}":
            return f"The fault {fault.id}", f"{fault.wrong}\n\nIn {fault.when}.\n\nTo mend it: {fault.mend}."
    return RULES["diagnosis"]


def _page(code: str) -> tuple[str, str]:
    """The title and the text of the page about a code, as `archc explain` prints it."""
    try:
        title, _, text = (resources.folder("codes") / f"{code}.md").read_text(encoding="utf-8").partition("\n")
    except (OSError, IncompleteError):
        return code, f"See `archc explain {code}`."
    return title.partition(": ")[2] or code, text.strip()
