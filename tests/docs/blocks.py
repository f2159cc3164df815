"""The code blocks of the documentation, each with what an HTML comment above it says about running it.

`<!-- not run: REASON -->`   it is only looked at, for one of REASONS
`<!-- file: NAME -->`        it is saved as NAME, and used by later ones of its page
`<!-- exit: N -->`           its last command ends with N
`<!-- some lines -->`        what it shows of its last command is some of its lines, in order; a line … says so visibly
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

REASONS = {
    "a fragment": "a part of something longer, which the text around it names",
    "needs a GPU": "",
    "needs a hub": "a model hub that can be reached",
    "needs a cluster": "several machines, Ray or SLURM",
    "needs a CI service": "GitHub, GitLab, Jenkins",
    "needs something else": "another framework or program, which archc does not bring",
    "sets up an environment": "installs packages",
    "runs until it is ended": "a server",
    "takes minutes": "",
}
"""Why a block may not be run. There is no other reason."""

RUN = {"console", "bash", "python", "yaml"}
"""The languages of blocks that are run. Blocks of another one hold no commands, nor does one without any."""

_BLOCK = re.compile(
    r"^(?P<indent> *)```(?P<language>\S*)[^\n]*\n(?P<text>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
_MARK = re.compile(r"<!-- *(not run|file|exit|some lines)(?:: *([^>]*?))? *-->")
_MARKS_ABOVE = re.compile(r"(?:^ *<!--[^>]*-->[ \t]*\n)+\Z", re.MULTILINE)
_COMMAND = re.compile(r"(?:\$ |archc |python |pip |make |torchrun |git )")
_SLOW = re.compile(r"\barchc (?:validate|sweep|faults|lengths|trace|import|export|explore)\b|torch")
_FETCHED = re.compile(r"archc (?:validate|faults|lengths|trace|weights) .*smollm2-135m")


@dataclass(frozen=True)
class Block:
    """One block, where it stands, and what was said of it."""

    page: str
    line: int
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    def mark(self, name: str) -> str | None:
        """What a mark says, which may be nothing; None where it is not there."""
        return dict(self.marks).get(name)

    @property
    def is_slow(self) -> bool:
        """Whether torch or transformers is loaded for it, which takes seconds."""
        return bool(_SLOW.search(self.text))

    @property
    def needs_weights(self) -> bool:
        """Whether it needs what `archc fetch smollm2-135m` gets."""
        return bool(_FETCHED.search(self.text))

    @property
    def looks_like_commands(self) -> bool:
        return any(_COMMAND.match(line) for line in self.text.splitlines())


def pages() -> list[str]:
    """Every page that people read, as a path below the root; generated ones are not among them."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return sorted(name for name in listed.stdout.splitlines() if not name.startswith("docs/codes/"))


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return parse((ROOT / page).read_text(encoding="utf-8"), page)


def parse(text: str, page: str = "page.md") -> list[Block]:
    """The blocks of a text."""
    found = []
    for match in _BLOCK.finditer(text):
        above = _MARKS_ABOVE.search(text, 0, match.start())
        marks = tuple((name, said.strip()) for name, said in _MARK.findall(above[0])) if above else ()
        indent = match["indent"]
        inner = "".join(line.removeprefix(indent) for line in match["text"].splitlines(keepends=True))
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match["language"], inner, marks))
    return found
