"""The explorer on this machine, and anew when a spec changes: `archc explore --serve`.

Nothing watches in the background: the page asks every second whether it is still the newest, and only then are the
files of the specs looked at. A spec that does not hold leaves the last page as it is, with what is wrong above it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Final

from archc.errors import ArchcError, IncompleteError
from archc.explorer.data import page_data
from archc.explorer.page import page
from archc.files import stamped_html
from archc.spec.diagnostics import SpecError, printable, render

HERE: Final = "127.0.0.1"

_Stamp = tuple[tuple[str, int, int], ...]


class Explorer:
    """The page of some specs, kept up to date."""

    def __init__(self, targets: Sequence[str]) -> None:
        """Build the page. Where a spec does not hold, it is that of the shipped ones until it does."""
        self._targets = tuple(targets)
        self._lock = Lock()
        self._seen = self._stamp()
        self._version = 0
        self._problem: str | None = None
        try:
            self._page = _built(self._targets)
        except ArchcError as error:
            self._problem = told(error)
            self._page = _built(())

    def page(self) -> bytes:
        """The HTML as it is now."""
        with self._lock:
            self._refresh()
            return self._page

    def state(self) -> dict[str, object]:
        """Which page this is, counted up, and what is wrong with the specs, if anything."""
        with self._lock:
            self._refresh()
            return {"version": self._version, "problem": self._problem}

    def _refresh(self) -> None:
        stamp = self._stamp()
        if stamp == self._seen:
            return
        self._seen = stamp
        try:
            self._page = _built(self._targets)
        except ArchcError as error:
            self._problem = told(error)
            return
        self._problem = None
        self._version += 1

    def _stamp(self) -> _Stamp:
        """When every file that a target names was last written, and how long it is."""
        found = []
        for target in self._targets:
            for place in (Path(target), Path(target) / "config.json"):
                try:
                    about = place.stat()
                except (OSError, ValueError):
                    continue
                found.append((str(place), about.st_mtime_ns, about.st_size))
        return tuple(found)


def told(error: ArchcError) -> str:
    """An error as it would stand at a terminal, without colours."""
    if isinstance(error, SpecError):
        return render(error.diagnostics, colour=False)
    return printable(str(error))


def server(explorer: Explorer, port: int) -> ThreadingHTTPServer:
    """A server for this machine alone, not yet running. Raises IncompleteError where the port is taken."""

    class Handler(BaseHTTPRequestHandler):
        """Two addresses: the page, and whether it is still the newest."""

        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.headers.get("Host") not in hosts:  # a page elsewhere, whose name now leads here, may not read specs
                self._answer(403, "text/plain", b"this server answers to 127.0.0.1 and localhost alone\n")
            elif self.path == "/":
                self._answer(200, "text/html; charset=utf-8", explorer.page())
            elif self.path == "/state":
                self._answer(200, "application/json", json.dumps(explorer.state()).encode())
            else:
                self._answer(404, "text/plain", b"there is / alone\n")

        def _answer(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("X-Content-Type-Options", "nosniff")
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a line a second would bury everything else."""

    try:
        made = ThreadingHTTPServer((HERE, port), Handler)
    except OSError as error:
        raise IncompleteError(
            f"cannot serve on port {port}: {error.strerror or error}", "choose another with --port, or 0 for any"
        ) from error
    made.daemon_threads = True
    hosts = {f"{name}:{made.server_address[1]}" for name in (HERE, "localhost")}
    return made


def _built(targets: Sequence[str]) -> bytes:
    data = page_data(targets)
    return stamped_html(page(data, live=True)).encode()
