"""The family that the guide builds is the one that is shipped, and its case of the zoo stands where the guide says."""

from __future__ import annotations

import re

from archc.families import family
from tests.docs.blocks import ROOT, blocks_of

BLOCKS = blocks_of("docs/add-a-family.md")


def test_what_the_steps_end_with_is_the_shipped_family() -> None:
    (shown,) = (block.text.partition("\n")[2] for block in BLOCKS if block.text.startswith("$ cat archc/families/"))
    built: dict[str, object] = {}
    exec(compile(shown, "granite.py", "exec"), built)
    made, shipped = built["FAMILY"], family("granite")
    assert isinstance(made, type(shipped))
    assert (made.rules, made.tier, made.inverse) == (shipped.rules, shipped.tier, shipped.inverse)
    assert made.config.keys() == shipped.config.keys()


def test_each_step_adds_a_line_of_it() -> None:
    """The guide's commands are run with all others; here, that they add what is shipped and leave nothing out."""
    added = [found for block in BLOCKS for found in re.findall(r"/a\\    (.*),' archc/families", block.text)]
    shipped = (ROOT / "archc" / "families" / "granite.py").read_text(encoding="utf-8")
    assert len(added) == 4
    assert all(f"    {line},\n" in shipped for line in added)


def test_the_case_of_the_zoo_is_there() -> None:
    (diff,) = (block.text for block in BLOCKS if block.language == "diff")
    (line,) = (line[1:] for line in diff.splitlines() if line.startswith("+    *family("))
    assert line in (ROOT / "tests" / "families" / "zoo_twists.py").read_text(encoding="utf-8").splitlines()
