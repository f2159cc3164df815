"""The pictures of the documentation: images that archc draws, and photographs of its pages.

python -m benchmarks.pictures            draws them into docs/pictures, and has Chromium photograph the pages
python -m benchmarks.pictures --images   only the images
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "pictures"
LOCAL_WINDOW = "layers.kinds.local.attention.window=40"

# File → the command that draws it, without --plot.
IMAGES = {
    "compared.svg": ["compare", "gpt2", "qwen3-0.6b", "llama3-8b", "gemma3-27b"],
    "lengths.svg": ["lengths", "tiny", "--max", "600", "--set", LOCAL_WINDOW],
}


class Photograph(NamedTuple):
    """A page, without --html, and what is seen of it, in pixels."""

    command: list[str]
    width: int
    height: int
    dark: bool = False


PHOTOGRAPHS = {
    "validation.png": Photograph(["validate", "tiny", "--port", "examples/wrong_activation.py:load"], 960, 1240),
    "faults.png": Photograph(["faults", "tiny"], 960, 900),
    "report.png": Photograph(["report", "gemma3-27b"], 960, 860, dark=True),
}
_COLOURS = 128
_SHARPER = 1.5


def main() -> None:
    """Draw everything anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", action="store_true", help="only the images")
    only_images = parser.parse_args().images
    FOLDER.mkdir(exist_ok=True)
    for name in IMAGES:
        draw(name, FOLDER / name)
    if only_images:
        return
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no Chromium to photograph pages with")
    for name in PHOTOGRAPHS:
        photograph(browser, name)


def draw(name: str, target: Path) -> None:
    """Draw one of the images into `target`."""
    _archc([*IMAGES[name], "--plot", str(target), "--force"])


def photograph(browser: str, name: str) -> None:
    """Write a page, and what a browser shows of it."""
    from PIL import Image  # matplotlib brings it along

    taken, target = PHOTOGRAPHS[name], FOLDER / name
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        _archc([*taken.command, "--html", str(page)])
        theme = ["--blink-settings=preferredColorScheme=0"] if taken.dark else []
        size = [f"--window-size={taken.width},{taken.height}", f"--force-device-scale-factor={_SHARPER}"]
        quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command = [browser, *quiet, *theme, *size, f"--screenshot={target}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
    Image.open(target).convert("RGB").quantize(_COLOURS).save(target, optimize=True)


def _archc(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "archc", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode not in {0, 1}:  # 1: it found what there is to see
        sys.exit(done.stderr.decode())


if __name__ == "__main__":
    main()
