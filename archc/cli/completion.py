"""`archc completion`: what makes a shell complete archc's commands."""

from __future__ import annotations

import os
from pathlib import PurePath

import click

from archc.errors import UsageError

SHELLS = ("bash", "zsh", "fish")

HELP = """Print the script with which a shell completes commands, options, specs, fields, codes, faults and files.

\b
Examples:
  archc completion bash
  archc completion zsh
  archc completion fish > ~/.config/fish/completions/archc.fish

\b
To have it in every shell:
  bash  echo 'eval "$(archc completion bash)"' >> ~/.bashrc
  zsh   echo 'eval "$(archc completion zsh)"' >> ~/.zshrc  (behind compinit)
  fish  the last example, once

Without a name it is the script for the shell in $SHELL. Bash has to be 4.4 or newer.
"""


@click.command("completion", help=HELP)
@click.argument("shell", metavar="[SHELL]", type=click.Choice(SHELLS), required=False)
def command(shell: str | None) -> None:
    """Print the script. Raises UsageError where no shell is named, and $SHELL is none that archc knows."""
    from click.shell_completion import get_completion_class

    from archc.cli.app import VARIABLE, app
    from archc.cli.completing import register

    register()
    name = shell or PurePath(os.environ.get("SHELL", "")).name
    made_for = get_completion_class(name)
    if name not in SHELLS or made_for is None:
        raise UsageError("$SHELL names no shell that archc has a script for", f"say which: {', '.join(SHELLS)}")
    click.echo(made_for(app, {}, "archc", VARIABLE).source(), nl=False)
