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
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import Browser, FloatRect, ViewportSize

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
    at: str = ""
    """The heading that is at the top, by its id."""


PHOTOGRAPHS = {
    "validation.png": Photograph(["validate", "tiny", "--port", "examples/wrong_activation.py:load"], 960, 1240),
    "positions.png": Photograph(["validate", "tiny", "--set", LOCAL_WINDOW], 960, 560, at="positions"),
    "faults.png": Photograph(["faults", "tiny"], 960, 900),
    "report.png": Photograph(["report", "gemma3-27b"], 960, 860, dark=True),
}
_COLOURS = 128
_SHARPER = 1.5
_ABOVE = 24


def main() -> None:
    """Draw everything anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", action="store_true", help="only the images")
    only_images = parser.parse_args().images
    FOLDER.mkdir(exist_ok=True)
    for name in IMAGES:
        draw(name, FOLDER / name)
    if not only_images:
        photograph_all()


def draw(name: str, target: Path) -> None:
    """Draw one of the images into `target`."""
    _archc([*IMAGES[name], "--plot", str(target), "--force"])


def photograph_all() -> None:
    """Write every page, and what a browser shows of it."""
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        for name, taken in PHOTOGRAPHS.items():
            page = Path(folder) / f"{name}.html"
            _archc([*taken.command, "--html", str(page)])
            photograph(browser, taken, page, FOLDER / name)
        browser.close()


def photograph(browser: Browser, taken: Photograph, page: Path, target: Path) -> None:
    """Write what a browser shows of a page."""
    from PIL import Image  # matplotlib brings it along

    scheme: Literal["dark", "light"] = "dark" if taken.dark else "light"
    viewport: ViewportSize = {"width": taken.width, "height": taken.height}
    shown = browser.new_page(viewport=viewport, color_scheme=scheme, device_scale_factor=_SHARPER)
    shown.goto(page.as_uri())
    top = shown.locator(f"#{taken.at}").bounding_box() if taken.at else None
    begins = top["y"] - _ABOVE if top else 0
    clip: FloatRect = {"x": 0, "y": begins, "width": taken.width, "height": taken.height}
    shown.screenshot(path=target, full_page=True, clip=clip)
    shown.close()
    Image.open(target).convert("RGB").quantize(_COLOURS).save(target, optimize=True)


def _archc(arguments: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "archc", *arguments], cwd=ROOT, capture_output=True, check=False)
    if done.returncode not in {0, 1}:  # 1: it found what there is to see
        sys.exit(done.stderr.decode())


if __name__ == "__main__":
    main()
