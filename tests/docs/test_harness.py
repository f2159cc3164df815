"""A page that is wrong fails: what it shows, what it runs, and what it leaves out."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import parse
from tests.docs.scratch import NotAsShownError, Scratch
from tests.docs.shown import difference, steps

PAGE = """
Text.

<!-- file: notes/spec.yaml -->
```yaml
a: 1
```

```console
$ cat notes/spec.yaml
a: 1
$ cd notes && export WHERE=$(pwd) && \\
  ls
spec.yaml
```

```bash
test "$WHERE" = "$PWD"
```

<!-- exit: 3 -->
```console
$ echo one; (exit 3)
one
```

```python
import json

assert json.loads("[1]") == [1]
```
"""


def run(page: str, folder: Path) -> None:
    scratch = Scratch.made(folder)
    for block in parse(page):
        scratch.run(block)


def test_a_right_page_passes(tmp_path: Path) -> None:
    run(PAGE, tmp_path)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("a: 1\n$", "a: 2\n$"),
        ("spec.yaml\n```", "spec.yaml\nmore.yaml\n```"),
        ("spec.yaml\n```", "```"),
        ("exit: 3", "exit: 1"),
        ("<!-- exit: 3 -->\n", ""),
        ('= "$PWD"', '= "elsewhere"'),
        ("== [1]", "== [2]"),
        ("<!-- file: notes/spec.yaml -->", "<!-- file: notes/other.yaml -->"),
    ],
)
def test_a_wrong_page_fails(right: str, wrong: str, tmp_path: Path) -> None:
    assert PAGE.count(right) == 1
    with pytest.raises(NotAsShownError, match=r"page\.md:\d+"):
        run(PAGE.replace(right, wrong), tmp_path)


def test_blocks_are_found_with_their_marks() -> None:
    page = "- a\n\n  <!-- not run: takes minutes -->\n  <!-- exit: 2 -->\n  ```bash\n  true\n  ```\n\n```\nplain\n```\n"
    first, second = parse(page)
    assert (first.language, first.text, first.line) == ("bash", "true\n", 5)
    assert (first.mark("not run"), first.mark("exit"), first.mark("file")) == ("takes minutes", "2", None)
    assert (second.language, second.marks) == ("", ())


def test_commands_show_no_output_or_all_of_it() -> None:
    assert [step.shown for step in steps("$ a\n$ b\n")] == [None, None]
    assert [step.shown for step in steps("$ a\n$ b\nout\n")] == [(), ("out",)]
    with pytest.raises(ValueError, match="begins with a command"):
        steps("out\n")


ROW = "8 tokens                  8   1.3e-05    8.6e-06      0.73  pass"


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (ROW, "8 tokens   8   2.9e-05    2.6e-05      0.93  pass"),
        ("64 tokens  64   2.1e-05    6.3e+00   368,710  FAIL", "64 tokens  64   2.5e-05   6.3e+00   301,002  FAIL"),
        ("transformers 5.24.0, fp32", "transformers 5.25.1, fp32"),
        ("one\n…\nthree", "one\ntwo\nand a half\nthree"),
        ("at 2026-11-30T16:34:32Z: 1.2 s", "at 2027-01-01T00:00:00Z: 0.9 s"),
        ("# sha256: f451…", "# sha256: f451233824f2"),
        ("out", "Loading: 100%|████| 63/63 [00:00<00:00, 292it/s]\nout"),
    ],
)
def test_what_may_differ(shown: str, printed: str) -> None:
    assert difference(tuple(shown.split("\n")), printed) is None


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        (ROW, ROW.replace("pass", "FAIL")),
        (ROW, ROW.replace("0.73", "812")),
        (ROW, ROW.replace("8.6e-06", "8.6e-03")),
        (ROW, ROW.replace("8 tokens", "9 tokens")),
        ("121 of 121 mistakes", "120 of 121 mistakes"),
        ("loss 1.5939", "loss 1.5940"),
        ("one\n…\nthree", "one\ntwo"),
        ("one", "one\ntwo"),
        ("one\ntwo", "one"),
    ],
)
def test_what_may_not(shown: str, printed: str) -> None:
    assert difference(tuple(shown.split("\n")), printed) is not None


def test_some_lines_are_in_order() -> None:
    assert difference(("one", "three"), "one\ntwo\nthree\nfour", some=True) is None
    assert difference(("three", "one"), "one\ntwo\nthree\nfour", some=True) is not None
