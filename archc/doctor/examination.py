"""One examination: everything that was found, and what is wrong with it."""

from __future__ import annotations

import platform
import shlex
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from packaging.specifiers import SpecifierSet

from archc import __version__, resources
from archc.doctor.machine import Loaded, Machine, loaded, machine
from archc.doctor.packages import Extra, Installed, Package, installed, pip_install, pip_install_extra, version_of
from archc.doctor.places import Place, Weights, cache_places, checkout, missing_data, weights
from archc.errors import UsageError

Level = Literal["broken", "note"]
TORCH = "torch"
"""The extra whose packages compute; the libraries that figures were measured with are among them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that does not hold. `broken`: archc, or what is installed of an extra, will not work as it should."""

    level: Level
    problem: str
    mend: str


@dataclass(frozen=True, slots=True)
class Examination:
    """What `archc doctor` says."""

    python: str
    checkout: Path | None
    packages: tuple[Package, ...]
    extras: tuple[Extra, ...]
    measured: dict[str, str]
    """The versions of libraries that archc's figures were measured with."""
    machine: Machine
    loaded: Loaded | None
    """What torch says; None where it was not asked."""
    places: tuple[Place, ...]
    weights: tuple[Weights, ...]
    findings: tuple[Finding, ...]

    @property
    def consistent(self) -> bool:
        """Whether nothing is broken."""
        return all(finding.level != "broken" for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """The examination for machines."""
        return {
            "consistent": self.consistent,
            "archc": {"version": __version__, "checkout": None if self.checkout is None else str(self.checkout)},
            "python": {"version": self.python, "executable": sys.executable, "platform": platform.platform()},
            "packages": [package.as_json() for package in self.packages],
            "extras": [
                {
                    "name": extra.name,
                    "for": extra.purpose,
                    "complete": is_complete(extra, self.extras),
                    "includes": list(extra.includes),
                    "packages": [package.as_json() for package in extra.packages],
                    "install": pip_install_extra(extra.name, self.checkout),
                }
                for extra in self.extras
            ],
            "measured_with": self.measured,
            "machine": {**asdict(self.machine), "loaded": None if self.loaded is None else asdict(self.loaded)},
            "caches": [{**asdict(place), "path": str(place.path)} for place in self.places],
            "weights": [{**asdict(one), "folder": str(one.folder)} for one in self.weights],
            "findings": [asdict(finding) for finding in self.findings],
        }


def is_complete(extra: Extra, others: tuple[Extra, ...]) -> bool:
    """Whether all packages of an extra, and of those that it includes, are there in versions that fit."""
    included = (other for other in others if other.name in extra.includes)
    return all(package.state == "fits" for package in extra.packages) and all(is_complete(o, others) for o in included)


def examine(*, deep: bool = False) -> Examination:
    """Look at everything; with `deep`, torch and transformers are imported too, in a process of their own."""
    own, root = installed(), checkout()
    packages = own.needed() if own else ()
    extras = tuple(own.extras()) if own else ()
    lost = missing_data()
    places, no_cache = _cache_places()
    judged = () if lost else tuple(weights())
    measured = {} if lost else _measured()
    here, said = machine(), loaded() if deep else None
    findings = [
        *_of_archc(own, root),
        *(Finding("broken", error.problem, error.mend) for error in lost),
        *_of_packages(packages, extras, root),
        *_of_versions(measured),
        *no_cache,
        *_of_places(places),
        *(Finding("broken", one.flaw, one.mend) for one in judged if one.state == "damaged"),
        *_of_machine(here, said, extras),
    ]
    python = platform.python_version()
    return Examination(
        python, root, packages, extras, measured, here, said, places, judged, tuple(dict.fromkeys(findings))
    )


def _of_archc(own: Installed | None, root: Path | None) -> Iterator[Finding]:
    if own is None:
        install = pip_install_extra(TORCH, root)
        yield Finding("broken", "archc was not installed, so the packages that it needs are not known", install)
        return
    if not SpecifierSet(own.python_range).contains(platform.python_version(), prereleases=True):
        problem = f"Python {platform.python_version()} is outside what archc is made for ({own.python_range})"
        yield Finding("broken", problem, "make a virtual environment with a newer Python, and install archc there")
    if own.distribution.version != __version__:
        problem = f"the archc that runs is {__version__}, and the one that is installed {own.distribution.version}"
        yield Finding("note", problem, pip_install_extra("", root))


def _of_packages(packages: tuple[Package, ...], extras: tuple[Extra, ...], root: Path | None) -> Iterator[Finding]:
    absent = [package.requirement for package in packages if package.state == "absent"]
    if absent:
        yield Finding("broken", f"archc needs {', '.join(absent)}, not installed", pip_install(*absent))
    for package in (*packages, *(package for extra in extras for package in extra.packages)):
        if package.state == "outside":
            yield Finding(
                "broken",
                f"{package.name} {package.installed} is outside the range that archc is made for ({package.range})",
                pip_install(package.requirement),
            )
    for extra in extras:
        missing = [package.name for package in extra.packages if package.state == "absent"]
        if missing and len(missing) < len(extra.packages):
            problem = f"the extra {extra.name} is there in part: it lacks {', '.join(missing)}"
            yield Finding("note", problem, pip_install_extra(extra.name, root))


def _of_versions(measured: dict[str, str]) -> Iterator[Finding]:
    """What fits, but is not what archc's figures were measured with."""
    for name, version in measured.items():
        found = version_of(name)
        if found is not None and found.partition("+")[0] != version:
            problem = f"{name} {found}: archc's figures were measured with {version}"
            yield Finding("note", problem, f"nothing, unless a figure differs: {pip_install(f'{name}=={version}')}")


def _cache_places() -> tuple[tuple[Place, ...], tuple[Finding, ...]]:
    try:
        return tuple(cache_places()), ()
    except UsageError as error:
        return (), (Finding("broken", error.problem, error.mend),)


def _of_places(places: tuple[Place, ...]) -> Iterator[Finding]:
    closed = [str(place.path) for place in places if not place.writable]
    if closed:
        problem = f"archc cannot write to {' or '.join(closed)}"
        yield Finding("broken", problem, f"chmod u+rwx {shlex.join(closed)}, or set ARCHC_CACHE to another folder")


def _of_machine(here: Machine, said: Loaded | None, extras: tuple[Extra, ...]) -> Iterator[Finding]:
    for name, value in here.threads.items():
        if not all(one.strip().isdecimal() and int(one) >= 1 for one in value.split(",")):  # one for each level
            yield Finding("broken", f"{name} is {value[:40]!r}, which is no number of threads", f"unset {name}")
    torch = version_of(TORCH)
    if here.nvidia_driver and torch and torch.endswith("+cpu"):
        problem = f"there is a GPU, and torch {torch} is a build for CPUs"
        yield Finding("note", problem, pip_install("--force-reinstall", "torch"))
    complete = any(extra.name == TORCH and is_complete(extra, extras) for extra in extras)
    if said is not None and said.problem and complete:
        problem = f"the libraries of the extra torch cannot be imported: {said.problem}"
        mend = pip_install("--force-reinstall", *(p.requirement for e in extras if e.name == TORCH for p in e.packages))
        yield Finding("broken", problem, mend)


def _measured() -> dict[str, str]:
    import json

    document = json.loads((resources.folder("measured") / "families.json").read_text(encoding="utf-8"))
    return {name: document[name] for name in ("torch", "transformers")}
