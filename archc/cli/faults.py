"""`archc faults`: what every mistake would cost."""

from __future__ import annotations

from pathlib import Path

import click

from archc.cli.options import html_option, json_option, set_option
from archc.cli.output import emit_json, print_diagnostics, require_json_target
from archc.errors import IncompleteError

HELP = """What each mistake that a port can make would cost on real weights, and whether `archc validate` sees it.

\b
Examples:
  archc faults tiny
  archc faults smollm2-135m
  archc faults my-model.yaml --weights checkpoint/ --text notes.txt
  archc faults tiny --html faults.html

TARGET is a validator, which names its weights and a text, a spec, or a checkpoint folder. Every mistake of the
catalogue that applies is planted into the generated module, one at a time. Exit code 1 says that the gate would miss
one. `archc explain FAULT` says what a mistake is.
"""


@click.command("faults", help=HELP)
@click.argument("target", metavar="TARGET")
@click.option("--weights", metavar="DIR", help="Checkpoint folder; wins over what the validator names.")
@click.option("--text", metavar="FILE", help="UTF-8 text to measure losses on; wins over the validator's.")
@set_option
@html_option
@json_option
def command(
    target: str,
    weights: str | None,
    text: str | None,
    overrides: tuple[str, ...],
    html: str | None,
    json_target: str | None,
    force: bool,
) -> int:
    """Print or write the table; 0 if the gate would see every mistake, 1 if not."""
    from archc.architecture import compile_spec
    from archc.cli.checkpoint import weights_folder
    from archc.cli.progress import progress_bar
    from archc.faults.catalogue import CATALOGUE
    from archc.render.pages.page import require_page, write_page
    from archc.render.pages.sensitivity import sensitivity_page
    from archc.render.sensitivity import print_sensitivity, sensitivity_document
    from archc.validation.validator import find_validator

    require_json_target(json_target, force=force)
    require_page(html, force=force)
    validator = find_validator(target)
    compiled = compile_spec(validator.spec, overrides)
    print_diagnostics(compiled.diagnostics)
    folder = weights_folder(validator, weights)
    try:
        from archc.validation.plain import plain_form
        from archc.validation.sensitivity import sensitivity
    except ModuleNotFoundError as error:
        raise IncompleteError(f"this needs {error.name}", "pip install 'archc[torch]'") from error
    with progress_bar() as progress:
        task = progress.add_task("", total=None)

        def step(name: str, done: int, total: int) -> None:
            progress.update(task, description=name, completed=done, total=total or None)

        with plain_form(compiled.architecture, folder).plain() as plain:
            found = sensitivity(compiled, plain, Path(text) if text else validator.text, CATALOGUE, step)
    name = compiled.architecture.name
    document = sensitivity_document(found, name)
    if html is not None:
        write_page(sensitivity_page(document), html, force=force)
    if json_target is not None:
        emit_json(document, json_target, force=force)
    if json_target != "-":
        print_sensitivity(found, name)
    return 1 if found.survived else 0
