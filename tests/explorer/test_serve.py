"""`archc explore --serve`: anew when a spec changes, and with what is wrong when it does not hold."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import Browser

from archc.errors import IncompleteError
from archc.explorer.serve import Explorer, server
from tests.explorer.browser import DRAWN

SPEC = """\
archc: 1
name: mine
vocab_size: 100
hidden_size: 64
context: 128
dtype: bfloat16
embedding: {tied: true}
norm: {kind: rmsnorm, eps: 1.0e-5}
position: {kind: rope, base: 10000, pairing: half}
attention: {heads: 4, kv_heads: 2, head_dim: 16}
ffn: {kind: gated, activation: silu, width: 96}
layers: 3
"""
NOTHING: dict[str, list[str]] = {"models": [], "counts": [], "doubles": []}
SOON = 15_000


@contextmanager
def serving(*targets: str) -> Iterator[tuple[str, int]]:
    """The address and the port of a running server."""
    with server(Explorer(targets), 0) as running:
        port = running.server_address[1]
        thread = Thread(target=running.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{port}/", port
        finally:
            running.shutdown()
            thread.join()


def answer(port: int, path: str, host: str | None = None) -> tuple[int, bytes]:
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path, headers={"Host": host or f"127.0.0.1:{port}"})
    got = connection.getresponse()
    content = got.read()
    connection.close()
    return got.status, content


pytestmark = pytest.mark.usefixtures("few_shipped")


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "mine.yaml"
    path.write_text(SPEC)
    return path


def test_follows_the_file(browser: Browser, spec: Path) -> None:
    with serving(str(spec)) as (address, _):
        page = browser.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(f"{address}#batch=4")
        page.evaluate(DRAWN)
        layers = page.locator("[data-key='layers']").first
        assert layers.get_attribute("data-value") == "3"
        spec.write_text(SPEC.replace("layers: 3", "layers: 5"))
        page.wait_for_selector("[data-key='layers'][data-value='5']", state="attached", timeout=SOON)
        assert page.get_by_role("spinbutton", name="Batch, typed").input_value() == "4"
        spec.write_text(SPEC.replace("heads: 4", "heads: four"))
        page.wait_for_selector("#problem:not([hidden])", timeout=SOON)
        problem = page.locator("#problem").text_content() or ""
        assert "E104" in problem or "heads" in problem
        assert "mine.yaml:10" in problem
        assert page.locator("[data-key='layers']").first.get_attribute("data-value") == "5"
        spec.write_text(SPEC.replace("layers: 3", "layers: 6"))
        page.wait_for_selector("[data-key='layers'][data-value='6']", state="attached", timeout=SOON)
        assert page.locator("#problem").is_hidden()
        assert errors == []
        page.close()


def test_begins_with_a_broken_spec(spec: Path) -> None:
    spec.write_text(SPEC.replace("kind: rope", "kind: rpoe"))
    with serving(str(spec)) as (_, port):
        state = json.loads(answer(port, "/state")[1])
        assert "rope" in state["problem"]
        assert answer(port, "/")[0] == 200
        spec.write_text(SPEC)
        state = json.loads(answer(port, "/state")[1])
        assert state == {"version": 1, "problem": None}
        spec.unlink()
        assert "no spec" in json.loads(answer(port, "/state")[1])["problem"]


def test_answers_this_machine_alone(spec: Path) -> None:
    with serving(str(spec)) as (_, port):
        assert answer(port, "/", f"localhost:{port}")[0] == 200
        assert answer(port, "/", "elsewhere.example")[0] == 403
        assert answer(port, "/", f"elsewhere.example:{port}")[0] == 403
        assert answer(port, "/../mine.yaml")[0] == 404
        assert answer(port, "/state")[0] == 200


def test_port_that_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archc.explorer.serve.page_data", lambda targets: NOTHING)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(IncompleteError, match="--port"):
            server(Explorer(()), taken.getsockname()[1])
