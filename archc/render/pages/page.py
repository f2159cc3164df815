"""What all pages share: how they are filled, how they look, and how they are written."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from archc import __version__, resources
from archc.errors import UsageError
from archc.files import require_stamped, stamped_html, write_stamped
from archc.render import colours, units
from archc.spec.diagnostics import printable, quoted


def require_page(target: str | None, *, force: bool = False) -> None:
    """Refuse a page that could not be written, before the work that it is about: UsageError unless it ends in .html."""
    if target is None:
        return
    if Path(target).suffix.lower() not in {".html", ".htm"}:
        raise UsageError(f"{quoted(target, 200)} does not say that it is a page", "name it .html")
    require_stamped(Path(target), force=force)


def write_page(page: str, target: str, *, force: bool = False) -> None:
    """Write a page; a file that is not archc's own is replaced only with `force`."""
    write_stamped(page, Path(target), force=force)


def filled(template: str, document: Mapping[str, Any] | None = None, **said: object) -> str:
    """The page of a template; `document` is what `--json` would print, and is in the page."""
    shown = None if document is None else _json(document)
    return stamped_html(_environment().get_template(template).render(document=document, json=shown, **said))


def preformatted(lines: Iterable[str]) -> Markup:
    """Lines as people can see them, which keep their breaks."""
    return Markup("\n").join(escape(printable(line)) for line in lines)


def _json(document: Mapping[str, Any]) -> Markup:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False)
    return escape("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


@cache
def _environment() -> Environment:
    """The templates, and what they call. Everything that they are given is escaped."""
    found = Environment(
        loader=FileSystemLoader(resources.folder("templates") / "pages"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
        finalize=_shown,
    )
    found.globals["colours"] = colours
    found.globals["version"] = __version__
    for name in ("amount", "both_bytes", "decimal_bytes", "exact", "figure", "operations", "percent", "short_count"):
        found.filters[name] = getattr(units, name)
    return found


def _shown(value: object) -> object:
    """Words as people can see them: what hides or reorders others is written out."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value
