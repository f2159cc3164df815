"""`archc export`: the config.json of a spec's family."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import click

from archc.cli.options import force_option, set_option, spec_argument

HELP = """Write the config.json that transformers knows a spec by.

\b
Examples:
  archc export llama3-8b -o folder
  archc export my-model.yaml --set attention.window=4096 -o folder
  archc export gpt2 | less

The spec's family says whose config it is. What is written imports as the same model; a spec that no config of its
family can say is refused, with the fields that it cannot. A config.json that is there is replaced only with --force.
"""


@click.command("export", help=HELP)
@spec_argument
@set_option
@click.option("-o", "--output", metavar="DIR", help="The folder to write config.json to; standard output without it.")
@force_option
def command(spec: str, overrides: tuple[str, ...], output: str | None, force: bool) -> None:
    """Compile, find the config, and write it."""
    from archc.architecture import compile_spec
    from archc.cli.output import print_diagnostics
    from archc.exporting.convert import as_text, export
    from archc.files import replace_own

    compiled = compile_spec(spec, overrides)
    print_diagnostics(compiled.diagnostics)
    content = as_text(export(compiled))
    if output is None or output == "-":
        click.echo(content, nl=False)
        return
    file = Path(output) / "config.json"
    with suppress(FileExistsError):
        file.parent.mkdir()
    replace_own(file, content.encode(), lambda old: old == content.encode(), force=force)
    click.echo(f"wrote {file}", err=True)
