"""`archc explain`: what a diagnostic, a field of a spec or a fault of ports means."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from archc import resources
from archc.cli.options import json_option
from archc.cli.output import emit_json, wrapped
from archc.errors import IncompleteError, UsageError
from archc.spec.diagnostics import quoted

if TYPE_CHECKING:
    from archc.cli.fields import Meaning
    from archc.faults.base import Fault

_SUGGESTED = 3

HELP = """Explain the code of a diagnostic, a field of a spec, or a fault of ports.

\b
Examples:
  archc explain E201
  archc explain norm.eps
  archc explain position.scaling.factor
  archc explain cache.positions
  archc explain faults           all faults, a line each
"""


@click.command("explain", help=HELP)
@click.argument("topic", metavar="CODE|FIELD|FAULT")
@json_option
def command(topic: str, json_target: str | None, force: bool) -> None:
    """Print or write the explanation of one topic. Raises UsageError for one that is not known."""
    pages = _pages()
    page = pages.get(topic) or pages.get(topic.upper())
    if page is not None:
        _explain_page(page, json_target, force)
        return
    from archc.cli.known_faults import at_home, catalogue, overview

    if topic == "faults":
        _explain_all(json_target, "\n".join(overview()).strip(), force=force)
        return
    name = next((name for name in (topic, at_home(topic)) if _is_known(name)), None)
    if name is None:
        raise UsageError(f"nothing is known about {quoted(topic)}", _mend(topic, list(pages)))
    _explain_name(topic, name, catalogue().get(name), json_target, force)


def _is_known(name: str) -> bool:
    from archc.cli.fields import meanings
    from archc.cli.known_faults import catalogue

    return name in catalogue() or bool(meanings(name))


def _explain_all(json_target: str | None, text: str, *, force: bool) -> None:
    from archc.cli.known_faults import as_json, catalogue

    if json_target is not None:
        found = [as_json(fault) for fault in catalogue().values()]
        emit_json({"topic": "faults", "kind": "faults", "faults": found}, json_target, force=force)
    else:
        click.echo(text)


def _explain_name(topic: str, name: str, fault: Fault | None, json_target: str | None, force: bool) -> None:
    """Explains what has this name: a field of the language, a fault, or both."""
    from archc.cli.fields import meanings
    from archc.cli.known_faults import as_json, faults_of, paragraph

    found, others = meanings(name), faults_of(name)
    if json_target is not None:
        document: dict[str, object] = {"topic": topic, "kind": "field" if found else "fault"}
        if found:
            document["meanings"] = [meaning.as_json() for meaning in found]
        if fault is not None:
            document["fault"] = as_json(fault)
        emit_json(document | {"faults": others}, json_target, force=force)
        return
    texts = [_paragraph(name, meaning) for meaning in found]
    if fault is not None:
        texts.append(paragraph(fault))
    if others:
        texts.append("\n".join(wrapped(f"Faults of it: {', '.join(others)}", "", "  ")))
    if name != topic:
        texts.insert(0, f"{topic} is called {name} here.")
    click.echo("\n\n".join(texts))


def _pages() -> dict[str, Path]:
    """The pages about codes, by code. A topic is only looked up among these names, so it leads nowhere else."""
    try:
        return {file.stem: file for file in sorted(resources.folder("codes").glob("*.md"))}
    except IncompleteError:
        return {}


def _explain_page(page: Path, json_target: str | None, force: bool) -> None:
    text = page.read_text(encoding="utf-8")
    if json_target is not None:
        emit_json({"topic": page.stem, "kind": "code", "text": text}, json_target, force=force)
    elif sys.stdout.isatty():
        from rich.markdown import Markdown

        from archc.render.terminal import PROSE_WIDTH, console

        out = console()
        out.print(Markdown(text), soft_wrap=False, width=min(out.width, PROSE_WIDTH))
    else:
        click.echo(text.rstrip("\n"))


def _paragraph(topic: str, meaning: Meaning) -> str:
    """A meaning as text: the path, what it is, what may stand there, and what a section consists of."""
    when = f", of the kind {' or '.join(meaning.when)}" if meaning.when else ""
    if meaning.required:
        need = "required"
    elif isinstance(meaning.default, str | int | float):
        default = str(meaning.default)
        need = f"{default.lower() if isinstance(meaning.default, bool) else default} unless stated"
    else:
        need = "optional"
    lines = [f"{topic}{when}", *wrapped(meaning.description, "  "), f"  {meaning.type}; {need}"]
    if meaning.choices:
        lines += wrapped(f"choices: {', '.join(str(choice) for choice in meaning.choices)}", "  ")
    if meaning.fields:
        width = max(len(name) for name, _ in meaning.fields)
        lines.append("  fields:")
        for name, description in meaning.fields:
            lines += wrapped(f"{name:<{width}}  {description}", "    ", " " * (width + 6))
    return "\n".join(lines)


def _mend(topic: str, codes: list[str]) -> str:
    from difflib import get_close_matches

    from archc.cli.fields import near_paths
    from archc.cli.known_faults import near_ids

    near = get_close_matches(topic.upper(), codes, 3, 0.7)
    near = near or [*near_ids(topic, 0.85), *near_paths(topic), *near_ids(topic, 0.6)]
    if near:
        return f"did you mean {' or '.join(list(dict.fromkeys(near))[:_SUGGESTED])}?"
    return "give the code of a diagnostic, such as E201, a field, such as norm.eps, or a fault, such as cache.positions"
