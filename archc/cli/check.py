"""`archc check`: everything that is wrong with specs, and whether they reproduce what was published."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import click

from archc.cli.options import json_option, output_option
from archc.cli.output import emit_json, emit_sarif, print_diagnostics, print_notes, require_json_target
from archc.errors import ArchcError

if TYPE_CHECKING:
    from archc.analysis import ClaimResult
    from archc.architecture import Compiled
    from archc.spec.diagnostics import Diagnostic

HELP = """Check specs: report errors, warnings and notes with their places, and compare published figures.

Warnings and notes are advice about the design, and leave the exit code 0.

\b
Examples:
  archc check my-model.yaml
  archc check specs/*.yaml --json
  archc check specs/*.yaml --sarif specs.sarif
"""


@dataclass
class Checked:
    """What was found about one spec."""

    target: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    claims: list[ClaimResult] = field(default_factory=list)
    name: str | None = None
    params: int | None = None
    problem: str | None = None
    exit_code: int = 0

    def as_json(self) -> dict[str, object]:
        """The findings for machines; `problem` says why a spec could not be read at all."""
        return {
            "spec": self.target,
            "name": self.name,
            "passed": self.exit_code == 0,
            "problem": self.problem,
            "diagnostics": [diagnostic.as_json() for diagnostic in self.diagnostics],
            "claims": [claim.as_json() for claim in self.claims],
        }


@click.command("check", help=HELP)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@output_option("--sarif", metavar="FILE", help="Write what is found as SARIF, each at its line.")
@json_option
def command(specs: tuple[str, ...], sarif: str | None, json_target: str | None, force: bool) -> int:
    """Check every spec, whatever the others hold; the exit code is that of the worst."""
    require_json_target(sarif, force=force)
    checked = [check(target) for target in specs]
    code = max(one.exit_code for one in checked)
    if json_target is not None:
        document = {"passed": code == 0, "specs": [one.as_json() for one in checked]}
        emit_json(document, json_target, force=force)
    if sarif is not None:
        from archc.render.sarif import check_sarif

        found = ((one.target, one.diagnostics) for one in checked)
        emit_sarif(check_sarif(found, (one.problem for one in checked if one.problem)), sarif, force=force)
    if json_target != "-":
        _print(checked)
    return code


def check(target: str) -> Checked:
    """Compile one spec and hold its claims against its report."""
    from archc.architecture import compile_spec
    from archc.spec.diagnostics import SpecError

    try:
        compiled = compile_spec(target)
    except SpecError as error:
        distinct = dict.fromkeys(error.diagnostics)  # a section that is read twice is wrong twice
        return Checked(target, list(distinct), exit_code=error.exit_code)
    except ArchcError as error:
        return Checked(target, problem=str(error), exit_code=error.exit_code)
    return _claims(target, compiled)


def _claims(target: str, compiled: Compiled) -> Checked:
    from archc.advice import advise
    from archc.analysis import build_report, compare_claims
    from archc.spec.diagnostics import Diagnostic, Level

    architecture = compiled.architecture
    report = build_report(architecture)
    claims = compare_claims(architecture.claims, report)
    failed = [
        *_homeless(compiled),
        *(
            Diagnostic(
                "E301",
                Level.ERROR,
                claim.sentence(),
                f"one of the two is wrong: correct the spec, or the figure from {claim.source}",
                compiled.loaded.place(("published", claim.key)),
                f"published.{claim.key}",
            )
            for claim in claims
            if not claim.holds
        ),
    ]
    return Checked(
        target,
        [*compiled.diagnostics, *failed, *advise(compiled)],
        claims,
        name=architecture.name,
        params=report["params"]["total"],
        exit_code=1 if failed else 0,
    )


def _homeless(compiled: Compiled) -> list[Diagnostic]:
    """E209, where the family that a spec names cannot store its design, as far as archc knows how it stores any."""
    from archc.checkpoints.manifest import UnstorableError, build_manifest
    from archc.families import family
    from archc.spec.diagnostics import Diagnostic, Level

    name = compiled.architecture.family
    if name is not None and not family(name).rules:
        return []
    try:
        build_manifest(compiled.architecture)
    except UnstorableError as error:
        place = compiled.loaded.place(("family",))
        return [Diagnostic("E209", Level.ERROR, error.problem, error.mend, place, "family")]
    return []


def _print(checked: list[Checked]) -> None:
    """Diagnostics and problems to standard error, a line per spec to standard output."""
    from archc.render.terminal import console, print_failed, print_passed
    from archc.spec.diagnostics import Level, printable

    out = console()
    for one in checked:
        print_diagnostics(d for d in one.diagnostics if d.level is not Level.NOTE)
        print_notes(d for d in one.diagnostics if d.level is Level.NOTE)
        levels = [diagnostic.level for diagnostic in one.diagnostics]
        if one.problem is not None:
            click.echo(printable(f"archc: {one.problem}"), err=True)
        elif one.exit_code or one.params is None:
            print_failed(one.target, levels.count(Level.ERROR), out)
        else:
            advice = {"warning": levels.count(Level.WARNING), "note": levels.count(Level.NOTE)}
            print_passed(one.target, one.params, len(one.claims), advice, out)
