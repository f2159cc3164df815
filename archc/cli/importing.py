"""`archc import`: a spec from a config. (A module cannot be named `import`.)"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archc.cli.options import json_option, output_option
from archc.cli.output import emit_json

if TYPE_CHECKING:
    from archc.architecture.model import Architecture
    from archc.checkpoints.manifest import TableRow
    from archc.importing.convert import Imported

HELP = """Make a spec of a config.json, a checkpoint folder or a GGUF file.

\b
Examples:
  archc import path/to/config.json
  archc import path/to/checkpoint -o my-model.yaml
  archc import model.gguf --json
  archc import path/to/checkpoint --explain

A comment stands behind every value that the config does not state: it comes from the default of the reference, the
config class of transformers. Code in a repository is never run. --explain shows the mapping instead of the spec: which
keys every field is read from, and where every tensor of a checkpoint goes.
"""


@click.command("import", help=HELP)
@click.argument("source", metavar="SRC")
@output_option("-o", "--output", metavar="SPEC", help="Where to write; standard output without it.")
@click.option("--explain", is_flag=True, help="Show which keys fields are read from, and where stored tensors go.")
@json_option
def command(source: str, output: str | None, explain: bool, json_target: str | None, force: bool) -> None:
    """Import, check the result, and print or write it."""
    from archc.architecture import compile_text
    from archc.cli.output import print_diagnostics
    from archc.importing.convert import import_spec
    from archc.spec.diagnostics import printable

    imported = import_spec(source)
    compiled = compile_text(imported.text, output or "<imported>")
    print_diagnostics(compiled.diagnostics)
    shown = output in (None, "-") and json_target != "-" and not explain
    for note in () if shown else imported.notes:  # the spec says them itself
        click.echo(printable(note), err=True)
    table = _stored(compiled.architecture)
    if json_target is not None:
        emit_json(_document(imported, table), json_target, force=force)
    if explain and json_target != "-":
        from archc.render.mapping import print_mapping
        from archc.render.terminal import console

        print_mapping(imported, table, console())
    if shown:
        click.echo(imported.text, nl=False)
    elif output not in (None, "-"):
        from archc.files import write_stamped

        write_stamped(imported.text, Path(str(output)), force=force)
        click.echo(f"wrote {output}", err=True)


def _stored(architecture: Architecture) -> tuple[TableRow, ...]:
    """Where stored tensors go; nothing where the family cannot say."""
    from archc.checkpoints.manifest import UnstorableError, build_manifest

    try:
        return build_manifest(architecture).table
    except UnstorableError:
        return ()


def _document(imported: Imported, table: tuple[TableRow, ...]) -> dict[str, object]:
    """The spec, where values come from (config, default of the class, or class: its code), and where tensors go."""
    from archc.render.mapping import origin

    return {
        "spec": imported.text,
        "wrapper": imported.wrapper,
        "notes": list(imported.notes),
        "values": [
            {"path": path, "value": leaf.value, "from": origin(leaf), "keys": list(leaf.keys)}
            for path, leaf in imported.values
        ],
        "tensors": [
            {
                "stored": row.stored,
                "fills": list(row.fills),
                "transposed": row.transposed,
                "groups": row.grouped_by or row.groups,
                "flat": row.flat,
            }
            for row in table
        ],
    }
