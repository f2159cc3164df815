"""Reads the images that archc writes: what is said of each mark, and where it was drawn."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

SVG = "{http://www.w3.org/2000/svg}"


class Drawing:
    """An SVG image."""

    def __init__(self, image: str) -> None:
        self.image = image
        self.root = ET.fromstring(image)

    @classmethod
    def read(cls, file: Path) -> Drawing:
        return cls(file.read_text(encoding="utf-8"))

    def marks(self, kind: str) -> list[ET.Element]:
        """The groups that are called so, in order."""
        return [group for group in self.root.iter(f"{SVG}g") if group.get("id", "").startswith(f"{kind}-")]

    def words(self) -> list[str]:
        return [text.text or "" for text in self.root.iter(f"{SVG}text")]

    def outside(self) -> list[str]:
        """Everything by which an image could load something, or run it."""
        links = re.findall(r"""(?:href|src|url\(|@import)[="'(\s]*([^"')\s>]+)""", self.image)
        scripts = re.findall(r"<(?:script|image|foreignObject|iframe|use xlink:href=\"[^#])[^>]*>|\son\w+=", self.image)
        return [link for link in links if not link.startswith("#")] + scripts


def path_of(mark: ET.Element) -> list[tuple[float, float]]:
    """The points of a line, or the corners of a bar, in pixels."""
    path = next(mark.iter(f"{SVG}path"))
    numbers = re.findall(r"[ML] ([\d.e-]+) ([\d.e-]+)", path.attrib["d"])
    return [(float(x), float(y)) for x, y in numbers]
