"""`archc lengths`: loss by position on a text of the user's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archc.cli.checkpoint import weights_folder
from archc.cli.options import count, json_option, output_option, set_option
from archc.cli.output import emit_json, print_diagnostics, require_json_target
from archc.errors import IncompleteError

if TYPE_CHECKING:
    from archc.architecture import Compiled
    from archc.validation.lengths import LengthsResult
    from archc.validation.validator import Validator

HELP = """Test the lengths you serve: loss by position on your own text, of the reference and a port.

\b
Examples:
  archc lengths tiny --max 1024
  archc lengths smollm2-135m --text novel.txt --max 2048 --plot losses.svg
  archc lengths my-model.yaml --weights checkpoint/ --text novel.txt
  archc lengths smollm2-135m --text novel.txt --port my_port.py:load

TARGET is what `archc validate` takes. The text is read in passages of --max tokens (up to 16 of them, and 8,192 tokens
in all), and both sides decode it through their caches, 256 tokens at a time. Windows, the original context of a scaling
and the trained length are marked. It passes where the port's losses stay within 8 times what arithmetic alone does to
the reference's; that the reference gets worse past the trained length is shown, and is no failure.
"""


@click.command("lengths", help=HELP)
@click.argument("target", metavar="TARGET")
@click.option("--weights", metavar="DIR", help="Checkpoint folder; wins over what the validator names.")
@click.option("--text", metavar="FILE", help="A UTF-8 text; the validator's unless given.")
@click.option("--max", "longest", metavar="N", type=count, help="Positions to try: what you serve.")
@click.option("--port", metavar="PLACE", help="package.module:name or file.py:name; its code is run.")
@set_option
@output_option("--plot", metavar="FILE", help="Draw the curves, as .svg or .png.")
@json_option
def command(
    target: str,
    overrides: tuple[str, ...],
    plot: str | None,
    json_target: str | None,
    force: bool,
    **inputs: Any,
) -> int:
    """Measure; 0 if the port keeps to the reference, 1 if not. `inputs` are the options that `_run` has too."""
    from archc.architecture import compile_spec
    from archc.codegen import refuse_ungenerated
    from archc.render.images import require_image
    from archc.render.lengths import lengths_document, print_lengths
    from archc.render.lengths_plot import write_plot
    from archc.validation.validator import find_validator

    require_json_target(json_target, force=force)
    require_image(plot, force=force)
    validator = find_validator(target)
    compiled = compile_spec(validator.spec, overrides)
    print_diagnostics(compiled.diagnostics)
    if inputs["port"] is None:
        refuse_ungenerated(compiled.architecture)
    result = _run(validator, compiled, **inputs)
    if plot is not None:
        write_plot(result, plot, force=force)
    if json_target is not None:
        emit_json(lengths_document(result), json_target, force=force)
    if json_target != "-":
        print_lengths(result)
    return 0 if result.passed else 1


def _run(
    validator: Validator,
    compiled: Compiled,
    *,
    weights: str | None,
    text: str | None,
    longest: int | None,
    port: str | None,
) -> LengthsResult:
    from archc.cli.progress import progress_bar

    try:
        from archc.validation.lengths import run_lengths
        from archc.validation.plain import opener_of, plain_form
        from archc.validation.ports import GeneratedPort
        from archc.validation.python_port import open_python_port
    except ModuleNotFoundError as error:
        raise IncompleteError(f"this needs {error.name}", "pip install 'archc[torch]'") from error
    folder = weights_folder(validator, weights)
    file = validator.text if text is None else Path(text)
    opened = GeneratedPort if port is None else open_python_port(port)
    checkpoint = plain_form(compiled.architecture, folder)
    with progress_bar() as progress, checkpoint.plain() as plain:
        task = progress.add_task("", total=1.0)

        def step(name: str, share: float) -> None:
            progress.update(task, description=name, completed=share)

        own = opener_of(opened, checkpoint, plain)
        return run_lengths(compiled.architecture, plain, file, step, longest=longest, open_port=own)
