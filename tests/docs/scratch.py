"""A folder to run a page in: a copy of the repository, and beside it what a reader brings along.

Nothing of the machine is touched. HOME and the cache lie in the scratch folder too, where the one checkpoint that
`archc fetch` makes is linked, if it is there.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from archc.checkpoints.cache import cache_folder
from tests.docs.blocks import ROOT, Block
from tests.docs.shown import Step, difference, steps
from tests.docs.yours import bring

LONGEST = 900
"""Seconds that a block may take."""

_END = "\x1eend of a command "


def copy_repository(folder: Path) -> None:
    """What belongs to the repository as it is now, committed or not."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)


class NotAsShownError(AssertionError):
    """A block that does not do what its page says."""


@dataclass(frozen=True)
class Scratch:
    """Where a page is run."""

    folder: Path

    @classmethod
    def made(cls, parent: Path) -> Scratch:
        """A new one below `parent`."""
        folder = parent / "archc"
        copy_repository(folder)
        bring(folder)
        (parent / "home").mkdir()
        (parent / "cache").mkdir()
        fetched = cache_folder() / "checkpoints"
        if fetched.is_dir():
            (parent / "cache" / "checkpoints").symlink_to(fetched)
        return cls(folder)

    def run(self, block: Block) -> None:
        """Run a block, or save it. Raises NotAsShownError with what is not as the page says."""
        name = block.mark("file")
        if name is not None:
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            self._run(block, [Step(f"python - <<'END OF BLOCK'\n{block.text}END OF BLOCK", None)])
        elif block.language == "bash":
            self._run(block, [Step(f"set -e\n{block.text}", None)])
        else:
            self._run(block, steps(block.text))

    def _run(self, block: Block, commands: list[Step]) -> None:
        """Run commands in one shell, which begins where the one before ended: in that folder, with those variables."""
        kept = self.folder.parent / "shell"
        script = [f". {kept}" if kept.exists() else f"cd {self.folder}"]
        for step in commands:
            script += [step.command, f"printf '\\n{_END}%d\\n' $?"]
        script += [f'{{ export -p; echo cd "$PWD"; }} > {kept}']
        rest = self._printed("\n".join(script), block)
        for index, step in enumerate(commands):
            printed, _, rest = rest.partition(f"\n{_END}")
            code, _, rest = rest.partition("\n")
            last = index == len(commands) - 1
            self._judge(block, step, printed.replace(f"{self.folder}/", ""), code, last)

    def _printed(self, script: str, block: Block) -> str:
        shell = subprocess.Popen(
            ["bash", "-c", script],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )
        try:
            return shell.communicate(timeout=LONGEST)[0]
        except subprocess.TimeoutExpired:
            os.killpg(shell.pid, signal.SIGKILL)
            shell.communicate()
            raise NotAsShownError(f"{block.place} takes more than {LONGEST} seconds") from None

    def _judge(self, block: Block, step: Step, printed: str, code: str, last: bool) -> None:
        meant = (block.mark("exit") or "0") if last else "0"
        told = f"{block.place}\n$ {step.command}\n"
        if code != meant:
            raise NotAsShownError(f"{told}ended with {code or 'its shell'}, not {meant}, and printed:\n{printed}")
        some = last and block.mark("some lines") is not None
        wrong = None if step.shown is None else difference(step.shown, printed, some=some)
        if wrong is not None:
            raise NotAsShownError(f"{told}{wrong}\n\nAll of what was printed:\n{printed}")

    def _environment(self) -> dict[str, str]:
        parent = self.folder.parent
        here = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "PYTEST_CURRENT_TEST"}}
        return here | {
            "HOME": str(parent / "home"),
            "ARCHC_CACHE": str(parent / "cache"),
            "XDG_CACHE_HOME": str(parent / "cache"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "LC_ALL": "C.UTF-8",
            "TERM": "dumb",
        }
