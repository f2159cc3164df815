"""The explorer as one HTML file: everything in it, nothing loaded.

Specs are untrusted, and so is every string that came out of one. Their data stands in a block that browsers do not
run, packed into letters that mean nothing to them; the page's policy lets nothing run but the one script that is hashed
in it. Of the data only formulas become code, and those archc has printed itself.
"""

from __future__ import annotations

import hashlib
import json
import re
import zlib
from base64 import b64encode
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

SCRIPTS = (
    "model.js",
    "dom.js",
    "units.js",
    "state.js",
    "figures.js",
    "charts.js",
    "controls.js",
    "panels.js",
    "drawing.js",
    "turning.js",
    "rope.js",
    "spec.js",
    "app.js",
)
_LIVE = "live.js"
_FORMULAS = ("counts", "doubles")


def page(data: Mapping[str, Any], *, live: bool = False) -> str:
    """The HTML of the explorer, behind the line that says what kind of document it is.

    `data` is what `page_data` returns; the page begins with its first model. `live` adds the part that asks the server
    whether a spec has changed.
    """
    style, script = _asset("style.css"), _script(data, live)
    values = {
        "STYLE": style,
        "SCRIPT": script,
        "DATA": packed({key: value for key, value in data.items() if key not in _FORMULAS}),
        "POLICY": _policy(style, script, live),
    }
    # In one pass, so that nothing in the data is taken for a place to fill.
    return re.sub(r"@([A-Z]+)@", lambda place: values[place[1]], _asset("page.html"))


def packed(data: Mapping[str, Any]) -> str:
    """JSON, compressed, in base64: a tenth of its length, and no character in it that means anything in HTML."""
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return b64encode(zlib.compress(text.encode(), 9)).decode()


def _script(data: Mapping[str, Any], live: bool) -> str:
    names = [*SCRIPTS, _LIVE] if live else SCRIPTS
    body = "\n".join([_formulas(data), *map(_asset, names)])
    begin = "begin();\nwatchSpecs();" if live else "begin();"
    return f'(() => {{\n"use strict";\n{body}\n{begin}\n}})();\n'


def _formulas(data: Mapping[str, Any]) -> str:
    """The formulas as functions: written into the script, so that the page need not be allowed to make code of text."""
    lists = (f"{kind}: (floor) => [{','.join(f'(v)=>{one}' for one in data[kind])}]" for kind in _FORMULAS)
    return f"const FORMULAS = {{\n{','.join(lists)}\n}};"


def _policy(style: str, script: str, live: bool) -> str:
    """What the browser may do for this page: run this script, use this style, and nothing else."""
    return "; ".join(
        [
            "default-src 'none'",
            f"script-src '{_hash(script)}'",
            f"style-src '{_hash(style)}'",
            "img-src data:",
            *(["connect-src 'self'"] if live else []),
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _asset(name: str) -> str:
    return (files("archc.explorer") / "assets" / name).read_text(encoding="utf-8")
