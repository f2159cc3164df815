"""Where fetched things go, and that no name leads out of there."""

from pathlib import Path

import pytest

from archc.checkpoints.cache import cache_folder, checkpoint_folder
from archc.errors import UsageError


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [
        ("/own", "/shared", "/own"),
        ("", "/shared", "/shared/archc"),
        (None, "/shared", "/shared/archc"),
        (None, "relative", "/home/me/.cache/archc"),
        (None, "", "/home/me/.cache/archc"),
        (None, None, "/home/me/.cache/archc"),
    ],
)
def test_the_cache_is_where_the_variables_say(
    own: str | None, shared: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    for variable, value in (("ARCHC_CACHE", own), ("XDG_CACHE_HOME", shared)):
        if value is None:
            monkeypatch.delenv(variable, raising=False)
        else:
            monkeypatch.setenv(variable, value)
    assert cache_folder() == Path(expected)
    assert checkpoint_folder("smollm2-1.7b") == Path(expected, "checkpoints", "smollm2-1.7b")


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "-a", ".a", "A", "a b", "a\n", "/a"])
def test_a_name_cannot_leave_the_cache(name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a checkpoint"):
        checkpoint_folder(name)
