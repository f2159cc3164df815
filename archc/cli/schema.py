"""`archc schema`: the language as JSON Schema, for editors."""

from __future__ import annotations

import click

from archc.cli.output import emit_json

HELP = """Print the spec language as JSON Schema (2020-12), with which editors complete and check specs.

\b
Examples:
  archc schema > archc.schema.json
  # and as the first line of a spec:
  # yaml-language-server: $schema=archc.schema.json
"""


@click.command("schema", help=HELP)
def command() -> None:
    """Print the schema."""
    from archc.cli.json_schema import language_schema

    emit_json(language_schema(), "-")
