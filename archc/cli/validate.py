"""`archc validate`: the gate."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from archc.cli.options import json_option, set_option
from archc.cli.output import emit_json, print_diagnostics, require_json_target
from archc.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from archc.architecture import Compiled
    from archc.validation.gate import GateResult
    from archc.validation.validator import Validator

HELP = """Hold the generated module against transformers, on real weights: same logits, or where they part.

\b
Examples:
  archc validate smollm2-135m
  archc validate my-model.yaml --weights checkpoint/
  archc validate checkpoint/
  archc validate smollm2-135m --set position.pairing=interleaved
  archc validate my-model.yaml --weights checkpoint/ --port my_port.py:load

TARGET is a validator, which names its weights, a spec, or a checkpoint folder, whose config.json is imported. Without
--port the module that archc generates is held against the reference. --port names a function load(weights, dtype) that
returns something to call with input_ids; which probes it is given follows from its arguments (position_ids,
attention_mask, past_key_values). Passing means: on every probe the port deviates by no more than 8 times what
arithmetic alone does to the reference.
"""


@click.command("validate", help=HELP)
@click.argument("target", metavar="TARGET")
@click.option("--weights", metavar="DIR", help="Checkpoint folder; wins over what the validator names.")
@click.option("--port", metavar="PLACE", help="package.module:name or file.py:name; its code is run.")
@set_option
@json_option
def command(
    target: str, weights: str | None, port: str | None, overrides: tuple[str, ...], json_target: str | None, force: bool
) -> int:
    """Run the gate; 0 if everything holds, 1 if not."""
    from archc.architecture import compile_spec
    from archc.codegen import refuse_ungenerated
    from archc.render.validation import gate_document, print_verdict
    from archc.validation.validator import find_validator

    require_json_target(json_target, force=force)
    validator = find_validator(target)
    compiled = compile_spec(validator.spec, overrides)
    print_diagnostics(compiled.diagnostics)
    if port is None:
        refuse_ungenerated(compiled.architecture)
    result = _run(validator, compiled, checkpoint_of(validator, weights), port)
    if json_target is not None:
        emit_json(gate_document(result), json_target, force=force)
    if json_target != "-":
        print_verdict(result)
    return 0 if result.passed else 1


def checkpoint_of(validator: Validator, weights: str | None) -> Path:
    """The checkpoint folder: `--weights`, or what the validator names."""
    if weights is not None:
        return Path(weights)
    if validator.weights is None:
        raise UsageError(f"{validator.name} names no weights", "add --weights DIR, a Hugging Face checkpoint folder")
    if validator.package is not None and not validator.weights.exists():
        raise IncompleteError(
            f"the weights of {validator.name} are not here yet", f"run `archc fetch {validator.name}`"
        )
    return validator.weights


def _run(validator: Validator, compiled: Compiled, folder: Path, port: str | None) -> GateResult:
    from archc.cli.progress import progress_bar
    from archc.faults.catalogue import CATALOGUE

    try:
        from archc.validation.gate import run_gate
        from archc.validation.ports import GeneratedPort
        from archc.validation.python_port import open_python_port
    except ModuleNotFoundError as error:
        raise IncompleteError(f"validation needs {error.name}", "pip install 'archc[torch]'") from error
    opened = GeneratedPort if port is None else open_python_port(port)
    with progress_bar() as progress:
        task = progress.add_task("", total=None)

        def step(name: str) -> None:
            progress.update(task, description=name)

        return run_gate(compiled, folder, step, text=validator.text, open_port=opened, catalogue=CATALOGUE)
