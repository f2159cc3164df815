"""The certificate says what was held against what, and is no certificate where that failed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from archc import __version__
from archc.checkpoints.hashes import FileHash
from archc.render.certificate import FAILED, PARITY, QUICK, certificate
from tests.render.documents import failing, passing, unloadable

WEIGHTS = [FileHash("config.json", 7, "00" * 32), FileHash("model.safetensors", 9, "11" * 32)]


def test_what_a_certificate_holds() -> None:
    found = certificate(passing(), WEIGHTS, FileHash("port.py", 3, "22" * 32))
    assert (found["title"], found["passed"]) == (PARITY, True)
    assert found["spec"] == {"name": "tiny", "sha256": "ab" * 32}
    assert found["weights"][1] == {"name": "model.safetensors", "bytes": 9, "sha256": "11" * 32}
    assert found["port"] == {
        "kind": "python",
        "name": "port.py:load",
        "file": {"name": "port.py", "bytes": 3, "sha256": "22" * 32},
    }
    assert (found["dtype"], found["bound"]) == ("float32", 8.0)
    assert found["versions"]["archc"] == __version__
    assert set(found["versions"]) >= {"python", "torch", "transformers"}
    assert found["probes"][0]["floor"] == {"max_abs": 3.1e-05, "rms": 2.6e-06}
    assert found["fields"] == passing()["fields"]
    assert found["faults"]["score"] == pytest.approx(10 / 11)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", found["date"])
    json.dumps(found, allow_nan=False)


@pytest.mark.parametrize(("document", "strict"), [(failing(), False), (unloadable(), False), (passing(), True)])
def test_a_failed_run_is_certified_nothing(document: dict[str, Any], strict: bool) -> None:
    found = certificate(document, WEIGHTS, None, strict=strict)
    assert (found["title"], found["passed"]) == (FAILED, False)
    assert PARITY not in json.dumps(found)


def test_a_quick_run_is_certified_nothing() -> None:
    found = certificate({**passing(), "level": "quick"}, WEIGHTS, None)
    assert (found["title"], found["passed"], found["level"]) == (QUICK, True, "quick")
    assert PARITY not in json.dumps(found)
