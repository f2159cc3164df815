"""The table of commands. Each has a file of its own, imported only when it runs: `archc list` needs nothing of
`archc validate`."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from archc import __version__
from archc.cli.options import settle_json

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

VARIABLE = "_ARCHC_COMPLETE"
"""The environment variable by which a shell asks for completions."""

SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Look at models": {
        "list": ("archc.cli.listing", "The shipped specs, a line each."),
        "report": ("archc.cli.report", "Sizes, caches, FLOPs and the rope table of a spec."),
        "compare": ("archc.cli.compare", "The figures of several specs side by side."),
        "explore": ("archc.cli.explore", "One page to look at models, and change them."),
        "diff": ("archc.cli.diff", "In what two specs differ, and what each difference changes."),
    },
    "Describe one": {
        "check": ("archc.cli.check", "Check specs, and their published figures."),
        "explain": ("archc.cli.explain", "What a diagnostic, a field of a spec or a fault means."),
        "import": ("archc.cli.importing", "A spec from a config.json, a checkpoint folder or a GGUF file."),
        "export": ("archc.cli.export", "The config.json of a spec, as its family's models have it."),
        "schema": ("archc.cli.schema", "The spec language as JSON Schema."),
    },
    "Port one": {
        "generate": ("archc.cli.generate", "A PyTorch module for exactly one architecture."),
        "validate": ("archc.cli.validate", "Prove a port against the reference."),
        "faults": ("archc.cli.faults", "What each mistake would cost, and whether the gate sees it."),
        "lengths": ("archc.cli.lengths", "Loss by position: test the lengths you serve."),
        "trace": ("archc.cli.trace", "Record what the reference computes, for ports elsewhere."),
    },
    "Weights": {
        "fetch": ("archc.cli.fetch", "Get the weights that a validator names."),
        "weights": ("archc.cli.weights", "Two checkpoints, tensor by tensor."),
    },
    "Many at once, and for the record": {
        "sweep": ("archc.cli.sweep", "The gate over many checkpoints, here or on a cluster."),
        "certificate": ("archc.cli.certificate", "Whether a certificate holds, and weights are those of it."),
    },
    "archc itself": {
        "doctor": ("archc.cli.doctor", "What is installed, what is missing, and what mends it."),
        "completion": ("archc.cli.completion", "Let the shell complete what you type."),
    },
}
"""What commands are for, in the order in which a newcomer meets them: name of a command → the module whose `command` it
is, and the line that `archc --help` shows."""

COMMANDS: dict[str, tuple[str, str]] = {name: place for section in SECTIONS.values() for name, place in section.items()}
"""The same without their sections."""

HELP = """Compile an architecture spec, and prove that a port of a model keeps to it.

\b
Examples:
  archc report llama3-8b            how large a model is
  archc report path/to/config.json  the same of a model's config
  archc check my-model.yaml         whether a spec of your own holds
  archc validate tiny               the gate, in seconds
  archc doctor                      whether all of archc works here

SPEC is a path, the name of a shipped spec, or a config to import.
Exit codes: 0 all well, 1 findings, 2 wrong usage, 3 could not complete.
"""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are needed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        widest = max(map(len, COMMANDS))  # one column for all sections
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{widest}}", line) for name, (_, line) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        from click.shell_completion import CompletionItem

        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=line) for name, (_, line) in COMMANDS.items() if name.startswith(incomplete)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            near = " Did you mean --help?" if name == "help" else _did_you_mean(name, COMMANDS)
            raise click.UsageError(f"No such command {name!r}.{near}", ctx)
        found, command, rest = super().resolve_command(ctx, args)
        return found, command, settle_json(command, rest) if command else rest


def _did_you_mean(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word.lower(), known, 1, 0.5)
    return f" Did you mean {near[0]!r}?" if near else ""


@click.group("archc", cls=LazyGroup, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", prog_name="archc", message="%(prog)s %(version)s")
def app(**_: Any) -> None:
    """Take the options of archc itself: there are none but --help and --version."""
