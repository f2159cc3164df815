"""`archc weights`: two sets of weights, tensor by tensor."""

from __future__ import annotations

from pathlib import Path

import click

from archc.cli.options import json_option
from archc.cli.output import emit_json, require_json_target
from archc.errors import IncompleteError

HELP = """Compare two checkpoints tensor by tensor, and name layouts: permuted, transposed, folded, reordered.

\b
Examples:
  archc weights checkpoint/ model.gguf
  archc weights checkpoint/ converted/
  archc weights checkpoint/ checkpoint-gptq/ --json

A and B are checkpoint folders or GGUF files, quantised or not. Tensors are equal if they differ by no more than the
coarser of their two types explains. A layout that llama.cpp expects of a GGUF file (rows of q and k in the order of
interleaved rotary pairs, a one folded into norms) is named and counts as equal; one that is missing, doubled or in the
wrong place does not. Exit code 1 where anything differs.
"""


@click.command("weights", help=HELP)
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@json_option
def command(a: Path, b: Path, json_target: str | None, force: bool) -> int:
    """Compare, and print or write what was found; 1 if anything differs."""
    from archc.cli.progress import progress_bar

    try:
        from archc.checkpoints.compare_weights import compare_weights
    except ModuleNotFoundError as error:
        raise IncompleteError(f"comparing weights needs {error.name}", "pip install 'archc[torch]'") from error
    from archc.render.weights import print_weights, weights_document

    require_json_target(json_target, force=force)
    with progress_bar() as progress:
        task = progress.add_task("", total=None)
        found = compare_weights(a, b, lambda name: progress.update(task, description=name))
    if json_target is not None:
        emit_json(weights_document(found), json_target, force=force)
    if json_target != "-":
        print_weights(found)
    return 0 if found.passed else 1
