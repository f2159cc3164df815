"""A page for every fault of the catalogue, from the entry itself, and their index."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from archc.architecture import Architecture, compile_spec
from archc.cli.fields import meanings
from archc.cli.known_faults import KINDS, as_json, catalogue, names_elsewhere
from archc.faults.base import Fault
from archc.spec.load import shipped_names
from docs._site import language
from docs._site.markdown import IN_NO_MENU, code, plain, table

_MANY = 12


def pages() -> Iterator[tuple[str, list[str]]]:
    """The index, and a page for each."""
    yield "faults/index", list(_index())
    for fault in catalogue().values():
        yield f"faults/{fault.id}", list(_page(fault))


def places() -> dict[str, tuple[str, str]]:
    """The page of every fault."""
    return {fault: (f"reference/faults/{fault}", "") for fault in catalogue()}


def link(fault: str, folder: str) -> str:
    """A link to the page of a fault, from a page in a folder below `reference/`."""
    return f"[`{fault}`]({'' if folder == 'faults' else '../faults/'}{fault}.md)"


def _index() -> Iterator[str]:
    yield from ("# Faults: what ports get wrong", "")
    yield "The catalogue of mistakes that `archc validate` plants and recognises. [What faults are](../../faults.md)"
    yield "and how a port with one is made. `archc faults` says what each would cost on your weights; on a terminal,"
    yield "`archc explain FAULT` says the same."
    for kind, words in KINDS.items():
        found = [fault for fault in catalogue().values() if fault.kind == kind]
        rows = [(f"[{code(fault.id)}]({fault.id}.md)", plain(fault.wrong)) for fault in found]
        yield from ("", f"## {words}", "", *table(("fault", "what ports get wrong"), rows))


def _page(fault: Fault) -> Iterator[str]:
    told = as_json(fault)
    yield from (*IN_NO_MENU, "", f"# {plain(fault.id)}", "", plain(fault.wrong), "")
    yield from table(("", ""), _facts(fault, str(told["made"])))
    yield from ("## How it shows", "", plain(_shows(fault)), "")
    yield from ("## How to mend it", "", f"{plain(_capital(fault.mend))}.", "")
    yield from ("## Models that can have it", "")
    yield f"{plain(_capital(fault.when))}."
    yield from ("", _shipped(fault), "")
    if fault.same_when:
        yield from ("## When it is no mistake", "")
        yield f"When {plain(fault.same_when)}. The verdict says so, and does not count it."
        yield ""
    if fault.seen:
        yield from ("## Reports", "")
        yield from (f"- <https://github.com/{one.replace('#', '/issues/')}>" for one in fault.seen)
        yield ""
    yield "[All faults](index.md)"


def _facts(fault: Fault, made: str) -> Iterator[tuple[str, str]]:
    yield "kind", plain(KINDS[fault.kind])
    if meanings(fault.field):
        yield "field", language.link(fault.field, "faults")
    yield "a port with it is made", plain(made)
    if names := names_elsewhere(fault.id):
        yield "also called", ", ".join(map(code, names))
    yield "in a terminal", code(f"archc explain {fault.id}")


def _shows(fault: Fault) -> str:
    if fault.loud:
        return (
            "Loudly: names or shapes do not fit when the weights are loaded. The static check of `archc validate` ends "
            "the run before anything is compared."
        )
    by = f"by these probes, which are tried first: {', '.join(fault.probes)}" if fault.probes else "by any probe"
    return (
        f"Silently: the weights load and nothing is raised. The gate sees it {by}. A port that behaves exactly so is "
        f"told its name, `{fault.id}`; where the port is right, the gate plants it and says whether that would "
        "have been seen."
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:].removesuffix(".")


def _shipped(fault: Fault) -> str:
    found = [name for name, architecture in _shipped_models().items() if any(True for _ in fault.slips(architecture))]
    if not found:
        return "None of the models that come with archc."
    names = ", ".join(map(code, found[:_MANY]))
    of = f"{len(found)} of the {len(_shipped_models())} specs that come with archc"
    return f"{of}: {names}{' …' if len(found) > _MANY else ''}"


@cache
def _shipped_models() -> dict[str, Architecture]:
    return {name: compile_spec(name).architecture for name in shipped_names()}
