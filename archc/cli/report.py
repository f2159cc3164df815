"""`archc report`: sizes, caches, FLOPs and the rope table of a spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from archc.cli.options import byte_size, count, dtype_options, html_option, json_option, set_option, spec_argument
from archc.cli.output import emit_json, print_diagnostics

if TYPE_CHECKING:
    from archc.analysis import Report
    from archc.spec.load import LoadedSpec

HELP = """Print how large a model is: parameters, KV cache, weights, FLOPs, and its rope table.

\b
Examples:
  archc report llama3-8b
  archc report llama3-8b --context 8192 --batch 16 --kv-dtype float8
  archc report llama3-8b --set attention.kv_heads=32
  archc report llama3-8b --fits 80GiB
  archc report path/to/config.json --layers
  archc report llama3-8b --formula
  archc report llama3-8b --json | jq .kv_cache
  archc report gemma3-27b --html sizes.html
"""


@click.command("report", help=HELP)
@spec_argument
@click.option("--context", type=count, metavar="N", help="Tokens in the cache; the spec's context unless given.")
@click.option("--batch", type=count, default="1", metavar="N", help="Sequences in the cache; 1 unless given.")
@dtype_options
@set_option
@click.option("--layers", is_flag=True, help="List every layer, and what the figures count.")
@click.option("--fits", type=byte_size, metavar="BYTES", help="What fits into a memory, such as 80GiB or 24GB.")
@click.option("--formula", is_flag=True, help="Show the formulas of the figures, over the sizes of the spec.")
@html_option
@json_option
def command(
    spec: str,
    overrides: tuple[str, ...],
    formula: bool,
    html: str | None,
    json_target: str | None,
    force: bool,
    **sizes: Any,
) -> None:
    """Print or write the report of one spec; `sizes` are the options that `build_report` has too."""
    from archc.analysis import build_report
    from archc.architecture import compile_spec

    if html is not None:
        from archc.render.pages.page import require_page

        require_page(html, force=force)
    compiled = compile_spec(spec, overrides)
    print_diagnostics(compiled.diagnostics)
    report = build_report(compiled.architecture, **sizes)
    if compiled.notes:
        report["notes"] = list(compiled.notes)
    if html is not None:
        from archc.analysis.curve import cache_curves
        from archc.render.pages.page import write_page
        from archc.render.pages.report import report_page

        (curve,) = cache_curves([(compiled.architecture, report)])
        kinds = [layer.kind for layer in compiled.architecture.layers]
        write_page(report_page(report, curve, kinds), html, force=force)
    if formula:
        _print_formulas(compiled.loaded, report, json_target, force=force)
        return
    if json_target is not None:
        emit_json(report, json_target, force=force)
        return
    from archc.render.report import print_report
    from archc.render.terminal import console

    print_report(report, console())


def _print_formulas(loaded: LoadedSpec, report: Report, json_target: str | None, *, force: bool) -> None:
    """Print or write the formulas of a report, instead of the report or beside it."""
    from archc.formulas.report import report_formulas
    from archc.render.formulas import formulas_document, print_formulas
    from archc.render.terminal import console

    cache = report["kv_cache"]
    found = report_formulas(
        loaded,
        batch=cache["batch"],
        context=cache["context"],
        dtype=report["weights"]["dtype"],
        kv_dtype=cache["dtype"],
        state_dtype=cache["state_dtype"],
    )
    if json_target is not None:
        emit_json({**report, "formulas": formulas_document(found)}, json_target, force=force)
        return
    print_formulas(found, report, console())
