"""The page as a document: one file, nothing loaded, nothing of a spec that a browser would run."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode, b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path
from string import ascii_letters, digits

import pytest

from archc.errors import UsageError
from archc.explorer.page import packed
from archc.files import stamped_html, write_stamped

MOST_BYTES = 500_000
HOSTILE = "</script><script>alert(1)</script><!-- \u2028 ]]> &amp;"


class Elements(HTMLParser):
    """What a parser of HTML makes of the page: tags with attributes, and what stands in scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.inside = tag

    def handle_endtag(self, tag: str) -> None:
        self.inside = None

    def handle_data(self, data: str) -> None:
        if self.inside in {"script", "style"}:
            self.texts.setdefault(self.inside, []).append(data)


def test_is_small(html: str) -> None:
    assert len(html.encode()) < MOST_BYTES


def test_refers_to_nothing_outside(html: str) -> None:
    leading = [
        value
        for _, attributes in Elements(html).tags
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "action", "poster"} and value
    ]
    assert [value for value in leading if not value.startswith(("#", "data:"))] == []
    assert not re.search(r"url\(|@import", "".join(Elements(html).texts["style"]))


def test_lets_one_script_run(html: str) -> None:
    found = Elements(html)
    policy = next(a["content"] for t, a in found.tags if t == "meta" and a.get("http-equiv"))
    script = found.texts["script"][-1]
    assert policy is not None
    assert f"script-src 'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert sum(tag == "script" for tag, _ in found.tags) == 2  # the data, and what reads it


@pytest.mark.parametrize("text", [HOSTILE, "<!--<script>", "é ∞ 漢", "\x00"])
def test_data_cannot_leave_its_place(text: str) -> None:
    inert = packed({"name": text})
    assert json.loads(zlib.decompress(b64decode(inert))) == {"name": text}
    assert set(inert) <= {*ascii_letters, *digits, *"+/="}


def test_plain_json_would_leave_it() -> None:
    plain = f"<script type=text/plain>{json.dumps({'name': HOSTILE})}</script>"
    assert sum(tag == "script" for tag, _ in Elements(plain).tags) == 2


def test_replaces_its_own_file_alone(tmp_path: Path, html: str) -> None:
    path = tmp_path / "explorer.html"
    write_stamped(html, path)
    write_stamped(stamped_html("<p>newer</p>"), path)
    path.write_text(path.read_text().replace("newer", "mine"))
    with pytest.raises(UsageError, match="changed since"):
        write_stamped(html, path)
