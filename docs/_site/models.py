"""The specs that come with archc, a row each, as `archc list` has them."""

from __future__ import annotations

from collections.abc import Iterator

from archc.analysis import build_report
from archc.architecture import compile_spec
from archc.render.terminal import list_rows
from archc.spec.load import shipped_names
from docs._site.markdown import code, table


def pages() -> Iterator[tuple[str, list[str]]]:
    """The one page."""
    yield "models", list(_page())


def _page() -> Iterator[str]:
    reports = [(name, build_report(compile_spec(name).architecture)) for name in shipped_names()]
    head, *rows = list_rows(reports)
    yield from ("# Models that come with archc", "")
    yield f"{len(rows)} specs, which any command takes by name: `archc report {rows[0][0]}`. A model that is not among"
    yield "them is [imported](../importing.md) from its config.json. As `archc list` has it, one more token of one"
    yield "sequence costs KV/token in the cache; besides, w until windows are full, s for states of a fixed size."
    yield ""
    yield from table(head, ((code(name), *cells) for name, *cells in rows))
