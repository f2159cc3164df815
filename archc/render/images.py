"""Images, as SVG or PNG: drawn by matplotlib, an optional extra, and the same bytes for the same figures.

Logarithmic axes, ticks, legends and the room that words take are what a drawing library is for, and PNG takes one.
Pages need none of it: `archc.render.pages` prints bars as HTML, which fit a phone and a dark room.

What was drawn is said as well: marks of an SVG image carry their figures as data-* attributes and a sentence, which a
browser shows and a screen reader reads.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree

from archc.errors import IncompleteError, UsageError
from archc.files import own_image, replace_own, require_own, stamped_png, stamped_xml
from archc.render.colours import GRID, INK, MUTED, PAPER
from archc.render.units import exact
from archc.spec.diagnostics import printable, quoted

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_PIXELS = 100
"""Of an SVG image, an inch of matplotlib's."""
_SHARPER = 2
"""Pixels of a PNG image for one of an SVG image."""
_TICKS = 7
_NAMESPACE = "http://www.w3.org/2000/svg"
_FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_STYLE: Final[Mapping[str, Any]] = {
    "axes.axisbelow": True,
    "axes.edgecolor": MUTED.light,
    "axes.grid": True,
    "axes.labelcolor": MUTED.light,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK.light,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER.light,
    "font.family": "DejaVu Sans",  # comes with matplotlib: words take the same room everywhere
    "font.size": 8,
    "grid.color": GRID.light,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "path.simplify": False,  # every point is drawn
    "svg.fonttype": "none",  # words stay words
    "svg.hashsalt": "archc",
    "text.color": INK.light,
    "text.parse_math": False,  # a $ in a name is a $
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
}


def require_image(target: str | None, *, force: bool = False) -> None:
    """Refuse an image that could not be written, before the work that it is about.

    Raises UsageError for an ending that is neither .svg nor .png, IncompleteError without matplotlib, and what
    `require_own` does.
    """
    if target is None:
        return
    file = Path(target)
    if file.suffix.lower() not in _WRITERS:
        raise UsageError(f"{quoted(target, 200)} does not say what kind of image it is", "name it .svg or .png")
    require_own(file, own_image, force=force)
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise IncompleteError(f"drawing needs {error.name}", "pip install 'archc[plot]'") from error


@dataclass
class Picture:
    """A figure being drawn, and what is said of its parts."""

    figure: Figure
    title: str
    description: str
    said: dict[str, tuple[str, Mapping[str, object]]] = field(default_factory=dict)
    """By an artist's id: a sentence, and its figures."""

    def say(self, artist: Artist, name: str, sentence: str, **figures: object) -> None:
        """Let an SVG image say what an artist stands for; `name` is unique in the picture."""
        artist.set_gid(name)
        self.said[name] = (sentence, figures)


@contextmanager
def picture(title: str, description: str, width: float, height: float) -> Iterator[Picture]:
    """A picture of so many pixels, to be drawn on and written before this ends."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # not what a matplotlibrc says
        mpl.rcParams.update(_STYLE)
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)  # an SVG image leaves letters to the reader's font
        figure = Figure(figsize=(width / _PIXELS, height / _PIXELS), dpi=_PIXELS)
        yield Picture(figure, printable(title), printable(description))


def plain_axis(axes: Axes, *, across: bool, up: bool) -> None:
    """Leave an axis with the grid lines that help to read it."""
    axes.tick_params(length=0)
    axes.grid(across, axis="x")
    axes.grid(up, axis="y")


def tick_tokens(axes: Axes, first: int, last: int) -> None:
    """Powers of two along the axis, as few as can be read, the last context among them."""
    octaves, begins = (last - 1).bit_length(), (first - 1).bit_length()
    step = max(1, -(-(octaves - begins) // _TICKS))
    ticks = [2**power for power in range(octaves, begins - 1, -step)]
    axes.set_xticks(ticks, [exact(tick) for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlim(first, last * 1.25)


def write_image(drawn: Picture, target: str, *, force: bool = False) -> None:
    """Write the image in the format of its ending; a file that is not archc's own is replaced only with `force`."""
    file = Path(target)
    replace_own(file, _WRITERS[file.suffix.lower()](drawn), own_image, force=force)


def _png(drawn: Picture) -> bytes:
    stream = io.BytesIO()
    about = {"Title": drawn.title, "Description": drawn.description, "Software": None}
    drawn.figure.savefig(stream, format="png", dpi=_PIXELS * _SHARPER, metadata=about)
    return stamped_png(stream.getvalue())


def _svg(drawn: Picture) -> bytes:
    return stamped_xml(svg_text(drawn)).encode()


def svg_text(drawn: Picture) -> str:
    """The SVG element, with what is said of its parts."""
    stream = io.StringIO()
    drawn.figure.savefig(stream, format="svg", metadata={"Date": None})
    ElementTree.register_namespace("", _NAMESPACE)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(stream.getvalue())
    for unread in root.findall(f"{{{_NAMESPACE}}}metadata"):
        root.remove(unread)
    root.set("role", "img")
    root.set("aria-labelledby", "title description")
    root.set("width", f"{drawn.figure.get_figwidth() * _PIXELS:.0f}")
    root.set("height", f"{drawn.figure.get_figheight() * _PIXELS:.0f}")
    for words in root.iter(f"{{{_NAMESPACE}}}text"):
        words.set("style", words.get("style", "").replace("'DejaVu Sans'", _FONTS))
    for group in root.iter(f"{{{_NAMESPACE}}}g"):
        if found := drawn.said.get(group.get("id", "")):
            sentence, figures = found
            _insert(group, "title", sentence)
            for key, value in figures.items():
                group.set(f"data-{key}", printable(str(value)))
    _insert(root, "desc", drawn.description, id="description")
    _insert(root, "title", drawn.title, id="title")
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def _insert(parent: ElementTree.Element, tag: str, text: str, **attributes: str) -> None:
    element = ElementTree.Element(f"{{{_NAMESPACE}}}{tag}", attributes)
    element.text = printable(text)
    parent.insert(0, element)


_WRITERS: Final[Mapping[str, Callable[[Picture], bytes]]] = {".svg": _svg, ".png": _png}
