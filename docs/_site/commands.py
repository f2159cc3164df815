"""A page for every command, from what it says of itself: the help text, arguments and options that click prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import click

from archc.cli.app import COMMANDS, app
from docs._site.markdown import code, plain

_FOLDER = "reference/commands"


def pages() -> Iterator[tuple[str, list[str]]]:
    """The index, and a page for each command."""
    context = click.Context(app, info_name="archc", **app.context_settings)
    yield "commands/index", list(_index(context))
    for name in app.list_commands(context):
        command = app.get_command(context, name)
        assert command is not None
        yield f"commands/{name}", list(_page(name, command, context))


@cache
def places() -> dict[str, tuple[str, str]]:
    """The page of every command."""
    return {name: (f"{_FOLDER}/{name}", "") for name in app.list_commands(click.Context(app))}


def _index(context: click.Context) -> Iterator[str]:
    yield from ("# Commands", "", *_prose(app.help or ""))
    yield from ("| command | does |", "|---|---|")
    for name in app.list_commands(context):
        line = COMMANDS[name][1] if name in COMMANDS else ""
        yield f"| [`archc {name}`]({name}.md) | {plain(line)} |"
    yield from ("", "```{toctree}", ":hidden:", "", *app.list_commands(context), "```")


def _page(name: str, command: click.Command, parent: click.Context) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=parent) as context:
        usage = " ".join(["archc", name, *command.collect_usage_pieces(context)])
        yield from (f"# archc {name}", "", "```text", usage, "```", "", *_prose(command.help or ""))
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield from (f"## archc {name} {inner}", "", *_prose(found.help or ""))
        records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
        told = [record for record in records if record and record[1]]
        if told:
            yield from ("## Options", "")
        for words, said in told:
            yield from (f"{code(words)}", f": {plain(' '.join(said.split()))}", "")


def _prose(text: str) -> Iterator[str]:
    """A help text: click rewraps its paragraphs, but for those behind a \\b, which are shown as they are."""
    for paragraph in re.split(r"\n[ \t]*\n", re.sub(r"\f.*", "", text, flags=re.DOTALL).strip("\n")):
        lines = paragraph.strip("\n").split("\n")
        if lines[0].strip() != "\b":
            yield from (plain(" ".join(" ".join(lines).split())), "")
            continue
        head, *rest = lines[1:]
        if head.rstrip().endswith(":") and not head.startswith(" "):
            yield from (plain(head), "")
        else:
            rest = [head, *rest]
        yield from ("```text", *(line.removeprefix("  ") for line in rest), "```", "")
