"""Every code block of the documentation, run in order in a scratch copy of the repository, does what its page says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import yaml

from archc.architecture import compile_text
from archc.checkpoints.cache import checkpoint_folder
from archc.spec.diagnostics import SpecError
from tests.docs.blocks import REASONS, RUN, Block, blocks_of, pages
from tests.docs.scratch import Scratch

SMOLLM2 = checkpoint_folder("smollm2-135m")
BLOCKS = {page: blocks_of(page) for page in pages()}
ALL = [block for blocks in BLOCKS.values() for block in blocks]
SPECS = [block for block in ALL if block.language == "yaml" and block.text.startswith("archc: 1\n")]
LEFT_OUT = [block for block in ALL if block.mark("not run") is not None]


def to_run(block: Block) -> bool:
    """Whether a block is run or saved; YAML alone does nothing."""
    if block.mark("not run") is not None or block.language not in RUN:
        return False
    return block.language != "yaml" or block.mark("file") is not None


PAGES = [
    pytest.param(page, id=page, marks=[pytest.mark.slow] if any(one.mark("slow") is not None for one in blocks) else [])
    for page, blocks in BLOCKS.items()
    if any(map(to_run, blocks))
]


@pytest.mark.parametrize("page", PAGES)
def test_a_page_does_what_it_says(page: str, tmp_path: Path) -> None:
    if any(block.needs_weights for block in filter(to_run, BLOCKS[page])) and not SMOLLM2.is_dir():
        pytest.skip("needs `archc fetch smollm2-135m`")
    if any("g++ " in block.text for block in filter(to_run, BLOCKS[page])) and shutil.which("g++") is None:
        pytest.skip("needs a C++ compiler: g++")
    scratch = Scratch.made(tmp_path)
    for block in filter(to_run, BLOCKS[page]):
        scratch.run(block)


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_a_block_says_what_it_is(block: Block) -> None:
    """Commands are in a language that is run, or it is said why they are not; Python and YAML are well formed."""
    reason = block.mark("not run")
    assert reason is None or reason in REASONS, f"{reason!r} is none of {list(REASONS)}"
    assert block.language in RUN or not block.looks_like_commands, "commands belong in a console block"
    if block.language == "python":
        compile(block.text, block.place, "exec")
    if block.language == "yaml":
        list(yaml.safe_load_all(block.text))
        assert block in SPECS or block.marks, "YAML that is no spec is saved, or it is said why nothing runs it"


@pytest.mark.parametrize("block", LEFT_OUT, ids=lambda block: block.place)
def test_left_out(block: Block) -> None:
    """Lists what is not run: `pytest tests/docs -rs`."""
    pytest.skip(f"not run: {block.mark('not run')}")


@pytest.mark.parametrize("block", SPECS, ids=lambda block: block.place)
def test_a_spec_compiles(block: Block) -> None:
    assert compile_text(block.text).diagnostics == ()
    with pytest.raises(SpecError):
        compile_text(block.text.replace("hidden_size", "hiden_size"))


def test_there_is_something_to_run() -> None:
    assert len(PAGES) >= 10
    assert len(SPECS) >= 5
