"""`archc validate`: the gate."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

import click

from archc.cli.checkpoint import weights_folder
from archc.cli.company import led
from archc.cli.options import set_option
from archc.cli.output import print_diagnostics
from archc.cli.port_options import ChosenPort, port_options
from archc.cli.reports import Reports, report_options
from archc.collection import uncollected
from archc.errors import IncompleteError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from archc.architecture import Compiled
    from archc.validation.gate import GateResult
    from archc.validation.parallel_port import Company
    from archc.validation.validator import Validator

HELP = """Hold the generated module against transformers, on real weights: same logits, or where they part.

\b
Examples:
  archc validate smollm2-135m
  archc validate my-model.yaml --weights checkpoint/
  archc validate checkpoint/
  archc validate smollm2-135m --set position.pairing=interleaved
  archc validate smollm2-135m --port my_port.py:load
  archc validate smollm2-135m --port-command './port {weights} {probes} {out}'
  archc validate smollm2-135m --trace recorded.safetensors
  archc validate smollm2-135m --quick
  archc validate smollm2-135m --html gate.html
  archc validate smollm2-135m --strict --junit gate.xml --sarif gate.sarif
  archc validate llama3.1-70b --weights checkpoint/ --stream
  torchrun --nproc-per-node 2 -m archc validate smollm2-135m

TARGET is a validator, which names its weights, a spec, or a checkpoint folder, whose config.json is imported. Without
a port the module that archc generates is held against the reference. --port names a function load(weights, dtype) that
returns something to call with input_ids; which probes it is given follows from its arguments (position_ids,
attention_mask, past_key_values). --port-command is run without a shell: it reads the safetensors file {probes} and
writes {out}. --trace is a file such as `archc trace` writes, recorded of a port. Passing means: on every probe the port
deviates by no more than 8 times what arithmetic alone does to the reference. Then every mistake that the model can have
is planted and tried: the verdict says which of them would have gone unseen, and --strict fails for that. Where the port
fails, archc looks for the mistake, or the two, that behave exactly so. --quick runs the static checks, short prompts
and a few steps through the cache, and says what it leaves out. With --stream, both sides go through the checkpoint
together, a layer at a time: it need not fit in memory. No mistakes are planted then. Under torchrun the generated
module is split over the processes, by its `parallelize`; the reference runs once.
"""


@dataclass(frozen=True, slots=True)
class _Level:
    """What the options say of how much is run: short prompts alone, or both models a layer at a time."""

    quick: bool
    stream: bool


@click.command("validate", help=HELP)
@click.argument("target", metavar="TARGET")
@click.option("--weights", metavar="DIR", help="Checkpoint folder; wins over what the validator names.")
@port_options
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    help="What reference and port run in. In 16 bits layers are also judged one by one.",
)
@click.option("--quick", is_flag=True, help="Only static checks, short prompts and the cache; no mistakes are planted.")
@click.option("--stream", is_flag=True, help="Hold one layer at a time in memory: done anyway where models do not fit.")
@set_option
@report_options
def command(
    target: str,
    weights: str | None,
    port: ChosenPort,
    dtype: str,
    quick: bool,
    stream: bool,
    overrides: tuple[str, ...],
    reports: Reports,
) -> int:
    """Run the gate; 0 if everything holds, 1 if not."""
    if quick and reports.strict:
        raise UsageError("--quick plants no mistakes, and --strict asks that none goes unseen", "leave one of them out")
    if quick and stream:
        raise UsageError("--stream has no quick level", "leave one of them out")
    level = _Level(quick, stream)
    return led(lambda company: _validate(target, weights, port, dtype, overrides, reports, company, level))


def _validate(
    target: str,
    weights: str | None,
    port: ChosenPort,
    dtype: str,
    overrides: tuple[str, ...],
    reports: Reports,
    company: Company | None,
    level: _Level,
) -> int:
    from archc.architecture import compile_spec
    from archc.codegen import refuse_ungenerated
    from archc.render.findings import holds
    from archc.render.validation import print_verdict
    from archc.render.validation_json import gate_document
    from archc.validation.validator import find_validator

    if company is not None and not port.is_generated:
        raise UsageError(
            "torchrun splits the generated module, and a port of yours runs in one process",
            "leave out torchrun; --port-command 'torchrun …' runs a port that is split itself",
        )
    with reports.about(target):
        validator = find_validator(target)
        compiled = compile_spec(validator.spec, overrides)
        print_diagnostics(compiled.diagnostics)
        if port.is_generated:
            refuse_ungenerated(compiled.architecture)
        folder = weights_folder(validator, weights)
        result = _run(validator, compiled, folder, port, dtype, company, level)
    if reports.json != "-":
        print_verdict(result, strict=reports.strict)
    document = gate_document(result)
    reports.write(document, compiled, folder, port.file)
    return 0 if holds(document, strict=reports.strict) else 1


def _run(
    validator: Validator,
    compiled: Compiled,
    folder: Path,
    port: ChosenPort,
    dtype: str,
    company: Company | None,
    level: _Level,
) -> GateResult:
    from rich.text import Text

    from archc.cli.progress import progress_bar
    from archc.faults.catalogue import CATALOGUE

    try:
        with _imports_that_stay():
            import torch

            import_module("transformers")  # the reference imports it later, with the collector at work
            from archc.validation.gate import Level, run_gate
            from archc.validation.streaming.walk import Streaming

        kind: torch.dtype = getattr(torch, dtype)
        open_port = port.opener(kind) if company is None else company.opener(kind)
    except ModuleNotFoundError as error:
        raise IncompleteError(f"validation needs {error.name}", "pip install 'archc[torch]'") from error
    with progress_bar() as progress:
        task = progress.add_task("", total=None)

        def step(name: str) -> None:
            progress.update(task, description=name)

        def say(text: str) -> None:
            progress.console.print(Text(text), soft_wrap=True)

        return run_gate(
            compiled,
            folder,
            step,
            text=validator.text,
            open_port=open_port,
            dtype=kind,
            catalogue=CATALOGUE,
            level=Level(level.quick, Streaming(level.stream, say)),
        )


@contextmanager
def _imports_that_stay() -> Iterator[None]:
    """Modules that are imported for the first time are kept from the garbage collector for good."""
    known = "transformers" in sys.modules
    with uncollected():
        yield
        if not known:
            gc.freeze()
