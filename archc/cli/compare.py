"""`archc compare`: the figures of several specs side by side."""

from __future__ import annotations

from typing import Any

import click

from archc.cli.options import count, dtype_options, json_option, output_option
from archc.cli.output import emit_json, print_diagnostics

HELP = """Print the figures of several specs side by side: shape, parameters, cache, weights, FLOPs.

\b
Examples:
  archc compare gpt2 qwen3-0.6b llama3-8b
  archc compare llama3-8b my-model.yaml --context 8192
  archc compare gpt2 llama3-8b gemma3-27b --plot compared.svg
  archc compare llama3-8b llama3-70b --json | jq '.reports[].params.total'

--plot draws the cache against the context, and the parameters of each part, as SVG or PNG.
"""


@click.command("compare", help=HELP)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@click.option("--context", type=count, metavar="N", help="Tokens in the cache; every spec's own context unless given.")
@click.option("--batch", type=count, default="1", metavar="N", help="Sequences in the cache; 1 unless given.")
@dtype_options
@output_option("--plot", metavar="FILE", help="Draw caches and parameters, as .svg or .png.")
@json_option
def command(specs: tuple[str, ...], plot: str | None, json_target: str | None, force: bool, **sizes: Any) -> None:
    """Print or write the table; `sizes` are the options that `build_report` has too."""
    from archc.analysis import build_report
    from archc.architecture import compile_spec
    from archc.render.compare import compared_rows, print_compared

    if plot is not None:
        from archc.render.images import require_image

        require_image(plot, force=force)
    architectures, reports = [], []
    for spec in specs:
        compiled = compile_spec(spec)
        print_diagnostics(compiled.diagnostics)
        architectures.append(compiled.architecture)
        reports.append(build_report(compiled.architecture, **sizes))
    if plot is not None:
        from archc.analysis.curve import cache_curves
        from archc.render.compare_plot import write_compare_plot

        curves = cache_curves(list(zip(architectures, reports, strict=True)))
        write_compare_plot(curves, reports, plot, force=force)
    rows = compared_rows(reports)
    if json_target is not None:
        table = [{"label": label, "values": cells} for label, cells in rows]
        emit_json({"reports": reports, "rows": table}, json_target, force=force)
        return
    from archc.render.terminal import console

    print_compared([report["name"] for report in reports], rows, console())
