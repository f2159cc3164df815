"""What Sphinx does for this site beyond reading docs/*.md.

- Before it reads anything, the pages that archc itself can tell are written to `docs/reference/`, which git ignores
  (`pages.py`).
- The landing page gets its navigation, a guide the link to its reference (`navigation.py`).
- A field, a fault, a code or a command that stands in backticks becomes a link to its page (`names.py`). So a page
  reads the same on GitHub, where there are no such pages.
"""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

from docs._site import names, navigation, pages
from docs._site.markdown import relative_to_site


def setup(app: Sphinx) -> dict[str, bool]:
    """Hook all of this in."""
    app.connect("builder-inited", _write)
    app.connect("env-get-outdated", _changed)
    app.connect("source-read", _complete)
    app.add_post_transform(names.LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _write(app: Sphinx) -> None:
    pages.write(Path(app.srcdir))


def _changed(*_: object) -> list[str]:
    return ["index"]  # its menus hold what there is now


def _complete(app: Sphinx, name: str, source: list[str]) -> None:
    text = relative_to_site(source[0], name)
    source[0] = navigation.above(name) + text + navigation.below(name, Path(app.srcdir))
