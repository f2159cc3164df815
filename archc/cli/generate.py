"""`archc generate`: the PyTorch module of a spec."""

from __future__ import annotations

from pathlib import Path

import click

from archc.cli.options import force_option, set_option, spec_argument
from archc.cli.output import print_diagnostics

HELP = """Write a PyTorch module for exactly one architecture: one file, usable without archc.

\b
Examples:
  archc generate smollm2-135m -o model.py
  archc generate my-model.yaml --set attention.kv_heads=4 -o model.py
  archc generate gpt2 | less

The module loads the Hugging Face checkpoint of the model: Model.from_pretrained(folder).
"""


@click.command("generate", help=HELP)
@spec_argument
@set_option
@click.option("-o", "--output", metavar="FILE", help="Where to write; standard output without it.")
@force_option
def command(spec: str, overrides: tuple[str, ...], output: str | None, force: bool) -> None:
    """Compile and print."""
    from archc.architecture import compile_spec
    from archc.codegen import generate
    from archc.files import write_stamped

    compiled = compile_spec(spec, overrides)
    print_diagnostics(compiled.diagnostics)
    source = generate(compiled.architecture)
    if output is None or output == "-":
        click.echo(source, nl=False)
        return
    write_stamped(source, Path(output), force=force)
    click.echo(f"wrote {output}", err=True)
