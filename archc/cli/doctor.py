"""`archc doctor`: whether what is installed works together."""

from __future__ import annotations

import click

from archc.cli.options import json_option
from archc.cli.output import emit_json
from archc.errors import IncompleteError

HELP = """Examine this installation: packages and extras, cache folders, weights, threads and GPU.

\b
Examples:
  archc doctor
  archc doctor --deep
  archc doctor --json | jq -r '.findings[].mend'

Says for every extra whether it is complete and what it is for, and of whatever is wrong the command that mends it.
Exit code 1 says that something that is there is broken: a package outside the range that archc is made for, weights
that are damaged, a cache that cannot be written. An extra that is not installed is none of that. --deep also imports
torch and transformers, in a process of its own, which takes seconds.
"""


@click.command("doctor", help=HELP)
@click.option("--deep", is_flag=True, help="Import torch and transformers too, and ask torch for GPUs.")
@json_option
def command(deep: bool, json_target: str | None, force: bool) -> int:
    """Print or write what is found; 0 where nothing is broken, 1 where something is."""
    try:
        from archc.doctor.examination import examine
    except ModuleNotFoundError as error:
        raise IncompleteError(f"this needs {error.name}", f"pip install {error.name}") from error
    found = examine(deep=deep)
    if json_target is not None:
        emit_json(found.as_json(), json_target, force=force)
    if json_target != "-":
        from archc.render.doctor import print_examination
        from archc.render.terminal import console

        print_examination(found, console())
    return 0 if found.consistent else 1
