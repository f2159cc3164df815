"""The packages that archc needs, by the metadata of the installed archc itself: no list is kept by hand."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, Literal

from packaging.requirements import Requirement

NAME: Final = "archc"
PURPOSES: Final = {
    "dev": "archc's own tests, formatter and types",
    "docs": "the site of the documentation",
    "plot": "images: compare and lengths with --plot",
    "ray": "archc sweep --engine ray",
    "torch": "validate, faults, lengths, trace, weights, sweep and fetch; a config.json, checkpoint or GGUF as SPEC",
}
"""What each extra is needed for."""

State = Literal["fits", "absent", "outside"]


@dataclass(frozen=True, slots=True)
class Package:
    """A package that archc asks for: its name, the versions that archc is made for, and the one that is installed."""

    name: str
    range: str
    """As a requirement states it (`>=5.24,<6`); empty where any version will do."""
    installed: str | None
    state: State

    @property
    def requirement(self) -> str:
        """What pip is to be given."""
        return f"{self.name}{self.range}"

    def as_json(self) -> dict[str, str | None]:
        """The package for machines."""
        return {"name": self.name, "range": self.range, "installed": self.installed, "state": self.state}


@dataclass(frozen=True, slots=True)
class Extra:
    """An extra of archc: what it is for, and its packages, those of other extras that it includes left out."""

    name: str
    purpose: str
    packages: tuple[Package, ...]
    includes: tuple[str, ...]
    """Other extras that it asks for."""


@dataclass(frozen=True, slots=True)
class Installed:
    """archc's own distribution."""

    distribution: Distribution
    requirements: tuple[Requirement, ...]

    @property
    def python_range(self) -> str:
        """The versions of Python that archc is made for."""
        return self.distribution.metadata["Requires-Python"] or ""

    def needed(self) -> tuple[Package, ...]:
        """The packages that archc never works without."""
        return tuple(map(_found, self._asked("")))

    def extras(self) -> Iterator[Extra]:
        """Every extra there is, in the order of its name."""
        for name in sorted(self.distribution.metadata.get_all("Provides-Extra") or ()):
            always = self._asked("")
            own = [one for one in self._asked(name) if one not in always]
            yield Extra(
                name,
                PURPOSES.get(name, ""),
                tuple(_found(one) for one in own if one.name != NAME),
                tuple(sorted(extra for one in own if one.name == NAME for extra in one.extras)),
            )

    def _asked(self, extra: str) -> list[Requirement]:
        """What is asked for here, with an extra ("": none)."""
        return [one for one in self.requirements if one.marker is None or one.marker.evaluate({"extra": extra})]


def installed() -> Installed | None:
    """The distribution that archc was installed as; None where it runs from a folder that nothing installed."""
    try:
        own = distribution(NAME)
    except PackageNotFoundError:
        return None
    return Installed(own, tuple(Requirement(line) for line in own.requires or ()))


def version_of(name: str) -> str | None:
    """The installed version of a package."""
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def pip_install(*requirements: str) -> str:
    """The command that installs packages where this archc runs."""
    return shlex.join([sys.executable, "-m", "pip", "install", *requirements])


def pip_install_extra(extra: str, checkout: Path | None) -> str:
    """The command that installs an extra of this archc: of the checkout that it runs from, where it runs from one."""
    wanted = f"[{extra}]" if extra else ""
    return pip_install(f"{NAME}{wanted}") if checkout is None else pip_install("--editable", f"{checkout}{wanted}")


def _found(requirement: Requirement) -> Package:
    version = version_of(requirement.name)
    state: State = "absent"
    if version is not None:
        state = "fits" if requirement.specifier.contains(version, prereleases=True) else "outside"
    return Package(requirement.name, str(requirement.specifier), version, state)
