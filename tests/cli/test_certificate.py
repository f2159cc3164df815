"""`archc certificate`: weights that are not those that were validated, by name."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

import pytest

from archc.checkpoints.hashes import checkpoint_files, hash_files
from archc.cli.output import emit_json
from archc.render.certificate import certificate
from tests.cli.runner import archc
from tests.render.documents import failing, passing


def shard(value: int) -> bytes:
    header = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes([value])


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoint"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(shard(1))
    return folder


@pytest.fixture
def file(tmp_path: Path, weights: Path) -> Path:
    emit_json(certificate(passing(), hash_files(checkpoint_files(weights)), None), str(tmp_path / "c.json"))
    return tmp_path / "c.json"


def test_the_weights_that_were_validated(file: Path, weights: Path) -> None:
    done = archc("certificate", str(file), "--weights", str(weights))
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("Certificate of parity, 20")
    assert done.out.splitlines()[-1] == "2 files are those that were validated"
    assert archc("certificate", str(file)).code == 0


def test_other_weights(file: Path, weights: Path) -> None:
    (weights / "model.safetensors").write_bytes(shard(2))
    (weights / "config.json").unlink()
    (weights / "tokenizer.json").write_text("{}")
    done = archc("certificate", str(file), "--weights", str(weights))
    assert done.code == 1
    assert done.out.splitlines()[1:] == [
        f"config.json: not in {weights}",
        "model.safetensors: differs",
        "tokenizer.json: not in the certificate",
    ]


def test_a_certificate_that_was_changed(file: Path, weights: Path) -> None:
    file.write_text(file.read_text().replace("0.85", "0.05"))
    done = archc("certificate", str(file), "--weights", str(weights))
    assert done.code == 1
    assert "it was changed since archc wrote it" in done.out


def test_names_in_a_certificate_lead_nowhere(file: Path, weights: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    changed = json.loads(file.read_text())
    changed["weights"].append({"name": "../secret", "sha256": sha256(b"secret").hexdigest()})
    file.write_text(json.dumps(changed))
    done = archc("certificate", str(file), "--weights", str(weights))
    assert done.code == 1
    assert "../secret: not in" in done.out


def test_a_record_of_a_failure_is_none(tmp_path: Path) -> None:
    emit_json(certificate(failing(), [], None), str(tmp_path / "c.json"))
    done = archc("certificate", str(tmp_path / "c.json"))
    assert done.code == 1
    assert done.out.startswith("Record of a failed validation; it certifies nothing, 20")


NESTED = '{"x": ' + "[" * 10**5 + "]" * 10**5 + "}"


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "\x00", '{"title": 1}', '{"weights": "../../etc"}', "[" * 10**5, NESTED]
)
def test_what_is_no_certificate(tmp_path: Path, content: str) -> None:
    (tmp_path / "c.json").write_text(content)
    done = archc("certificate", str(tmp_path / "c.json"))
    assert done.code == 2
    assert "is no certificate; give one of" in done.err
    assert archc("certificate", str(tmp_path)).code == 2
    assert archc("certificate", str(tmp_path / "absent")).code == 2
