"""`archc list`: the shipped specs, a line each. (A module named `list` would hide the builtin inside `archc.cli`.)"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from archc.cli.options import json_option
from archc.cli.output import emit_json, print_diagnostics

if TYPE_CHECKING:
    from archc.analysis import Report

HELP = """List the shipped specs: parameters, those that a token uses, context, and KV cache per token.

\b
Examples:
  archc list
  archc list --json | jq -r '.specs[].name'

KV/token is what one more token costs in the cache, of one sequence. Besides: w, what it costs until the windows are
full; s, states of a fixed size.
"""


@click.command("list", help=HELP)
@json_option
def command(json_target: str | None, force: bool) -> int:
    """Print or write the table; 1 if a spec in it cannot be used."""
    from archc.analysis import build_report
    from archc.architecture import compile_spec
    from archc.spec.diagnostics import SpecError
    from archc.spec.load import shipped_names

    reports: list[tuple[str, Report]] = []
    code = 0
    for name in shipped_names():
        try:
            reports.append((name, build_report(compile_spec(name).architecture)))
        except SpecError as error:
            print_diagnostics(error.diagnostics)
            code = error.exit_code
    if json_target is not None:
        emit_json({"specs": [_entry(name, report) for name, report in reports]}, json_target, force=force)
        return code
    from archc.render.terminal import console, print_list

    print_list(reports, console())
    return code


def _entry(name: str, report: Report) -> dict[str, object]:
    """The figures of the table, under the keys that they have in a report."""
    params, cache = report["params"], report["kv_cache"]
    return {
        "name": name,
        "params": {"total": params["total"], "active": params["active"]},
        "context": report["context"],
        "kv_cache": {
            "dtype": cache["dtype"],
            "bytes_per_token": cache["bytes_per_token"],
            "window_bytes_per_token": cache["window_bytes_per_token"],
            "fixed_state_bytes": cache["fixed_state_bytes"],
        },
    }
