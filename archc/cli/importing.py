"""`archc import`: a spec from a config. (A module cannot be named `import`.)"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archc.cli.options import json_option
from archc.cli.output import emit_json

if TYPE_CHECKING:
    from archc.importing.convert import Imported

HELP = """Make a spec of a config.json, a checkpoint folder or a GGUF file.

\b
Examples:
  archc import path/to/config.json
  archc import path/to/checkpoint -o my-model.yaml
  archc import model.gguf --json

A comment stands behind every value that the config does not state: it comes from the default of the reference, the
config class of transformers. Code in a repository is never run.
"""


@click.command("import", help=HELP)
@click.argument("source", metavar="SRC")
@click.option("-o", "--output", metavar="SPEC", help="Where to write; standard output without it.")
@json_option
def command(source: str, output: str | None, json_target: str | None, force: bool) -> None:
    """Import, check the result, and print or write it."""
    from archc.architecture import compile_text
    from archc.cli.output import print_diagnostics
    from archc.importing.convert import import_spec
    from archc.spec.diagnostics import printable

    imported = import_spec(source)
    compiled = compile_text(imported.text, output or "<imported>")
    print_diagnostics(compiled.diagnostics)
    shown = output in (None, "-") and json_target != "-"
    for note in () if shown else imported.notes:  # the spec says them itself
        click.echo(printable(note), err=True)
    if json_target is not None:
        emit_json(_document(imported), json_target, force=force)
    if shown:
        click.echo(imported.text, nl=False)
    elif output not in (None, "-"):
        from archc.files import write_stamped

        write_stamped(imported.text, Path(str(output)), force=force)
        click.echo(f"wrote {output}", err=True)


def _document(imported: Imported) -> dict[str, object]:
    """The spec, and the origin of every value: config, default (of the reference's class), or class (its code)."""

    def origin(keys: tuple[str, ...], unstated: tuple[str, ...]) -> str:
        return "class" if not keys else "default" if unstated else "config"

    return {
        "spec": imported.text,
        "wrapper": imported.wrapper,
        "notes": list(imported.notes),
        "values": [
            {"path": path, "value": leaf.value, "from": origin(leaf.keys, leaf.unstated), "keys": list(leaf.keys)}
            for path, leaf in imported.values
        ],
    }
