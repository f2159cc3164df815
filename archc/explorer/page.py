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
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from archc.render.colours import PARTS, SERIES, Colour

SCRIPTS = (
    "formulas.js",
    "choices.js",
    "sums.js",
    "yaml.js",
    "model.js",
    "dom.js",
    "units.js",
    "state.js",
    "figures.js",
    "charts.js",
    "controls.js",
    "panels.js",
    "strip.js",
    "boxes.js",
    "block.js",
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
    style, script = f"{_colours()}\n{_asset('style.css')}", _script(data, live)
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


def _colours() -> str:
    """The colours of everything that archc draws, and the lighter or darker one that can be read on each."""
    names = {**PARTS, **{f"series-{index}": colour for index, colour in enumerate(SERIES)}}

    def rules(shade: Callable[[Colour], str]) -> str:
        shades = {name: shade(colour) for name, colour in names.items()}
        return " ".join(f"--{name}: {own}; --on-{name}: {_readable_on(own)};" for name, own in shades.items())

    light, dark = rules(lambda colour: colour.light), rules(lambda colour: colour.dark)
    return f':root {{ {light} }}\n:root[data-theme="dark"] {{ {dark} }}'


def _readable_on(colour: str) -> str:
    """White or black, whichever stands out more (WCAG 2.2: the relative luminance of colours, and their contrast)."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    luminance = sum(weight * value for weight, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.05 else "#000000"


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
