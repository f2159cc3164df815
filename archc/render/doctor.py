"""What `archc doctor` prints."""

from __future__ import annotations

import platform
import sys
import textwrap
from collections.abc import Iterable
from typing import Final

from rich.console import Console
from rich.text import Text

from archc import __version__
from archc.doctor.examination import Examination, Finding, is_complete
from archc.doctor.packages import Extra, Package, pip_install_extra
from archc.render.terminal import PROSE_WIDTH
from archc.render.units import decimal_bytes
from archc.spec.diagnostics import printable

_INDENT: Final = "  "
_GLUE: Final = "\xa0"
"""A space that no line breaks at."""
_STYLES: Final = {"complete": "green", "not installed": "dim", "in part": "yellow"}


def print_examination(found: Examination, out: Console) -> None:
    """Packages, extras, the machine, folders and weights; then what is wrong, and the verdict."""
    out.print(Text.assemble((f"archc {__version__}", "bold"), f", Python {found.python}, {platform.platform()}"))
    out.print(_INDENT + printable(f"run by {sys.executable}"))
    if found.checkout is not None:
        out.print(_INDENT + printable(f"from the checkout {found.checkout}"))
    _print_list("needs", (_package(package) for package in found.packages), out)
    for extra in found.extras:
        _print_extra(extra, found, out)
    _print_machine(found, out)
    out.print(Text("\nFolders", style="bold"))
    for place in found.places:
        free = "" if place.free_bytes is None else f", {decimal_bytes(place.free_bytes)} free"
        rights = "can be written" if place.writable else "cannot be written"
        out.print(_INDENT + printable(f"{place.path}: {decimal_bytes(place.bytes)} of {place.holds}; {rights}{free}"))
    out.print(Text("\nWeights", style="bold"))
    for one in found.weights:
        size = f", {decimal_bytes(one.bytes)}" if one.bytes else ""
        out.print(_INDENT + printable(f"{one.name}: {one.state}{size}" + (f"; {one.mend}" if one.mend else "")))
    out.print("")
    for finding in found.findings:
        _print_finding(finding, out)
    if found.consistent:
        out.print(Text("what is installed works together", style="bold green"))
    else:
        broken = sum(finding.level == "broken" for finding in found.findings)
        out.print(Text(f"{broken} to mend", style="bold red"))


def _print_extra(extra: Extra, found: Examination, out: Console) -> None:
    there = [package for package in extra.packages if package.installed is not None]
    state = "complete" if is_complete(extra, found.extras) else "in part" if there else "not installed"
    out.print(Text.assemble((f"\n{extra.name}", "bold"), ": ", (state, _STYLES[state])))
    if extra.purpose:
        for line in textwrap.wrap(f"for {extra.purpose}", PROSE_WIDTH - len(_INDENT)):
            out.print(_INDENT + line)
    if there:
        also = (f"the extra {name}" for name in extra.includes)
        _print_list("has", [*(_package(package) for package in extra.packages), *also], out)
    if state != "complete":
        out.print(_INDENT + printable(pip_install_extra(extra.name, found.checkout)))


def _package(package: Package) -> str:
    """A package and its version, on one line."""
    if package.installed is None:
        return f"no{_GLUE}{package.requirement}"
    outside = f"{_GLUE}(not{_GLUE}{package.range})" if package.state == "outside" else ""
    return f"{package.name}{_GLUE}{package.installed}{outside}"


def _print_list(label: str, words: Iterable[str], out: Console) -> None:
    text = f"{label} {', '.join(words)}"
    for line in textwrap.wrap(text, PROSE_WIDTH - len(_INDENT), break_on_hyphens=False):
        out.print(_INDENT + printable(line.replace(_GLUE, " ")))


def _print_machine(found: Examination, out: Console) -> None:
    here = found.machine
    memory = "" if here.memory_bytes is None else f", {decimal_bytes(here.memory_bytes)} of memory"
    threads = ", ".join(f"{name}={value}" for name, value in here.threads.items())
    driver = "no NVIDIA driver" if here.nvidia_driver is None else f"NVIDIA driver {here.nvidia_driver}"
    out.print(Text("\nMachine", style="bold"))
    out.print(_INDENT + f"{here.cores} cores{memory}; {driver}")
    if threads:
        out.print(_INDENT + printable(threads))
    if found.loaded is not None and not found.loaded.problem:
        said = found.loaded
        devices = ", ".join(said.devices) or "no GPU"
        out.print(_INDENT + printable(f"torch runs {said.threads} threads, CUDA {said.cuda or 'left out'}, {devices}"))


def _print_finding(finding: Finding, out: Console) -> None:
    style = "bold red" if finding.level == "broken" else "yellow"
    out.print(Text.assemble((finding.level, style), f": {printable(finding.problem)}"))
    out.print(Text(f"{_INDENT}= mend: {printable(finding.mend)}"))
