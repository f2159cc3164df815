"""Names in backticks become links: `attention.window`, `cache.positions`, `E101`, `archc report llama3-8b`."""

from __future__ import annotations

from functools import cache

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from docs._site import commands, diagnostics, faults, language


class LinkNames(SphinxPostTransform):
    """Wraps code that is the name of something with a page of its own in a link to it."""

    default_priority = 700
    formats = ("html",)

    def run(self, **_: object) -> None:
        """Do it in one page."""
        here = self.env.docname
        for literal in list(self.document.findall(nodes.literal)):
            place = place_of(literal.astext())
            if place is None or place[0] == here or _is_in_title_or_link(literal):
                continue
            page, anchor = place
            target = self.app.builder.get_relative_uri(here, page) + (f"#{anchor}" if anchor else "")
            link = nodes.reference("", "", refuri=target, internal=True, classes=["archc-name"])
            literal.replace_self(link)
            link += literal


def place_of(text: str) -> tuple[str, str] | None:
    """The page and the anchor of what is called so; None where nothing is."""
    first, _, rest = text.partition(" ")
    if first == "archc":
        return commands.places().get(rest.partition(" ")[0])
    return _names().get(text)


@cache
def _names() -> dict[str, tuple[str, str]]:
    return {**faults.places(), **language.places(), **diagnostics.places()}


def _is_in_title_or_link(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, nodes.title | nodes.reference):
            return True
        parent = parent.parent
    return False
