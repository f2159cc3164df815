"""`archc trace`: what the reference computes, recorded."""

from __future__ import annotations

from pathlib import Path

import click

from archc.cli.checkpoint import weights_folder
from archc.cli.options import force_option, set_option, spec_argument
from archc.errors import IncompleteError

HELP = """Record what the reference computes on the probes of a spec, for ports in any language.

\b
Examples:
  archc trace smollm2-135m -o reference.safetensors
  archc trace my-model.yaml --weights checkpoint/ -o recorded.safetensors
  archc trace smollm2-135m --probe '8 tokens' -o small.safetensors

The file holds, for every probe, its inputs and what transformers makes of them in fp32: <probe>/input_ids,
<probe>/logits, and its activations at the canonical points (<probe>/layers.0.out). A port that runs elsewhere reads the
inputs there, and records its own logits, and activations if it can, under the same names beside the same input_ids:
`archc validate --trace` holds them against the reference. SPEC may be the name of a validator, which knows its weights.
"""


@click.command("trace", help=HELP)
@spec_argument
@click.option("--weights", metavar="DIR", help="Checkpoint folder; wins over what a validator names.")
@set_option
@click.option("--probe", "names", metavar="NAME", multiple=True, help="A probe to record, not all. May be repeated.")
@click.option("-o", "--output", metavar="FILE", required=True, help="The safetensors file to write.")
@force_option
def command(
    spec: str, weights: str | None, overrides: tuple[str, ...], names: tuple[str, ...], output: str, force: bool
) -> None:
    """Compile, load the reference, say how large it will be, record."""
    from archc.architecture import compile_spec
    from archc.cli.output import print_diagnostics
    from archc.cli.progress import progress_bar
    from archc.files import require_own_file
    from archc.render.units import decimal_bytes
    from archc.validation.validator import find_validator

    try:
        from archc.validation.plain import plain_form
        from archc.validation.recording import open_recording
        from archc.validation.trace_file import is_own_trace
    except ModuleNotFoundError as error:
        raise IncompleteError(f"recording needs {error.name}", "pip install 'archc[torch]'") from error
    file = Path(output)
    require_own_file(file, is_own_trace, force=force)
    validator = find_validator(spec)
    compiled = compile_spec(validator.spec, overrides)
    print_diagnostics(compiled.diagnostics)
    with plain_form(compiled.architecture, weights_folder(validator, weights)).plain() as plain:
        recording = open_recording(compiled, plain, names)
        size = decimal_bytes(recording.positions() * recording.bytes_per_position())
        count = len(recording.probes)
        click.echo(
            f"{count} {'probe' if count == 1 else 'probes'}, {recording.positions():,} positions: {size}", err=True
        )
        with progress_bar() as progress:
            task = progress.add_task("reference", total=count)
            recording.write(file, lambda probe: progress.update(task, advance=1, description=probe.name))
    click.echo(f"wrote {file}", err=True)
