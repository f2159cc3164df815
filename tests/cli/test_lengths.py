"""`archc lengths`: exit codes, the keys of its JSON, the image, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from archc import resources
from tests.cli.runner import archc

TEXT = str(resources.folder("validators") / "texts" / "ferry.txt")


def test_a_port_that_keeps_to_the_reference(tmp_path: Path) -> None:
    image = tmp_path / "losses.svg"
    done = archc("lengths", "tiny", "--max", "300", "--plot", str(image))
    assert (done.code, done.err) == (0, "")
    assert "PASS: the port keeps to the reference at every length" in done.out
    assert "256 ─ context ends, trained length ends" in done.out
    assert "<svg" in image.read_text()

    assert archc("lengths", "tiny", "--max", "40", "--plot", str(image)).code == 0, "its own image is replaced"
    image.write_text("mine")
    done = archc("lengths", "tiny", "--max", "40", "--plot", str(image))
    assert done.code == 2
    assert "archc did not write it" in done.err
    assert image.read_text() == "mine"


def test_one_that_does_not_is_a_finding() -> None:
    done = archc("lengths", "tiny", "--max", "100", "--set", "layers.kinds.local.attention.window=40", "--json")
    assert done.code == 1
    assert done.json["passed"] is False
    assert done.json["departure"] == {"position": 32, "mark": None}


def test_the_keys_of_the_json_are_stable() -> None:
    found = archc("lengths", "tiny", "--text", TEXT, "--max", "300", "--json").json
    assert list(found) == [
        "passed",
        "reference",
        "port",
        "spec",
        "platform",
        "text",
        "marks",
        "buckets",
        "departure",
        "beyond_trained",
        "notes",
        "seconds",
    ]
    assert list(found["reference"]) == ["kind", "version", "dtype", "chunk"]
    assert list(found["port"]) == ["kind", "name", "chunk"]
    assert list(found["text"]) == ["name", "sha256", "tokens", "passages", "length"]
    assert found["text"]["length"] == 300
    assert list(found["marks"][0]) == ["position", "name", "field"]
    assert list(found["beyond_trained"]) == ["position", "loss", "loss_within_trained", "standard_error", "rises"]
    bucket = found["buckets"][-1]
    assert list(bucket) == ["start", "end", "tokens", "loss", "floor", "deviation", "times_floor", "passed"]
    assert list(bucket["loss"]) == ["reference", "reference_within_trained", "port"]
    assert bucket["end"] == 300
    assert sum(one["tokens"] for one in found["buckets"]) == 300 * found["text"]["passages"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gpt2"], 2, "gpt2 names no weights; add --weights DIR"),
        (["tiny", "--max", "0"], 2, "is not a whole number"),
        (["tiny", "--max", "5000"], 3, "too short"),
        (["tiny", "--text", "absent.txt"], 3, "cannot read the text absent.txt"),
        (["tiny", "--weights", "absent"], 3, "absent"),
        (["tiny", "--port", "absent.py:load"], 2, "there is no file absent.py"),
        (["tiny", "--plot", "absent/losses.svg"], 3, "cannot write"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(arguments: list[str], code: int, message: str) -> None:
    done = archc("lengths", *arguments)
    assert done.code == code
    assert message in done.err
    assert "Traceback" not in done.err
