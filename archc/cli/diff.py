"""`archc diff`: in what two specs differ, and what each difference changes."""

from __future__ import annotations

import click

from archc.cli.options import json_option
from archc.cli.output import emit_json, print_diagnostics

HELP = """Print the declared fields in which B differs from A, and what each alone would change in A.

\b
Examples:
  archc diff llama3-8b llama3.1-8b
  archc diff llama3-8b my-model.yaml
  archc diff llama3-8b mistral-7b --json | jq '.differences[].failure'

loud: a port that mixes the two up does not load the weights. silent: it does, and computes something else.
The exit code is 0 whether or not they differ.
"""


@click.command("diff", help=HELP)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@json_option
def command(a: str, b: str, json_target: str | None, force: bool) -> None:
    """Print or write the differences."""
    from archc.analysis.diff import diff
    from archc.architecture import compile_spec

    sides = [compile_spec(a), compile_spec(b)]
    for side in sides:
        print_diagnostics(side.diagnostics)
    found = diff(sides[0].loaded.spec, sides[1].loaded.spec)
    if json_target is not None:
        emit_json(found, json_target, force=force)
        return
    from archc.render.diff import print_diff
    from archc.render.terminal import console

    print_diff(found, console())
