"""`archc list`."""

import pytest

import archc.spec.load
from archc.spec.load import shipped_names
from tests.cli.runner import archc as run


def test_a_line_each() -> None:
    done = run("list")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in done.out.splitlines()] == ["name", *shipped_names()]
    assert max(len(line) for line in done.out.splitlines()) <= 80


def test_json() -> None:
    found = {one.pop("name"): one for one in run("list", "--json").json["specs"]}
    assert list(found) == shipped_names()
    assert found["gpt2"] == {
        "params": {"total": 124_439_808, "active": 124_439_808},
        "context": 1024,
        "kv_cache": {
            "dtype": "float32",
            "bytes_per_token": 73_728,
            "window_bytes_per_token": 0,
            "fixed_state_bytes": 0,
        },
    }


def test_a_broken_spec_hides_no_other(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    def names() -> list[str]:
        return ["gpt2", f"{tmp_path}/bad.yaml", "llama3-8b"]

    with open(f"{tmp_path}/bad.yaml", "w") as file:  # noqa: PTH123
        file.write("archc: 1\n")
    monkeypatch.setattr(archc.spec.load, "shipped_names", names)
    done = run("list")
    assert done.code == 1
    assert [line.split()[0] for line in done.out.splitlines()] == ["name", "gpt2", "llama3-8b"]
    assert "error[E102]" in done.err
