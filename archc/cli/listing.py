"""`archc list`: the shipped specs, a line each. (A module named `list` would hide the builtin inside `archc.cli`.)"""

from __future__ import annotations

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import click

from archc.cli.options import json_option
from archc.cli.output import emit_json, print_diagnostics
from archc.errors import UsageError

if TYPE_CHECKING:
    from archc.analysis import Report

HELP = """List the shipped specs: parameters, those that a token uses, context, and KV cache per token.

\b
Examples:
  archc list
  archc list --json | jq -r '.specs[].name'
  archc list --families
  archc list --families llama gpt_oss

KV/token is what one more token costs in the cache, of one sequence. Besides: w, what it costs until the windows are
full; s, states of a fixed size.

--families lists the model types of transformers instead: of each the tier (dense, twisted: dense with twists, mixture,
latent, hybrid, exotic), whether code is generated and how many checkpoints pass the gate, the keys of their configs
that were read (options), and what of them is refused.
"""


@click.command("list", help=HELP)
@click.argument("names", metavar="[FAMILY]...", nargs=-1)
@click.option("--families", is_flag=True, help="List the model types that can be imported, and how far archc goes.")
@json_option
def command(names: tuple[str, ...], families: bool, json_target: str | None, force: bool) -> int:
    """Print or write the table; 1 if a spec in it cannot be used."""
    if families:
        return _families(names, json_target, force=force)
    if names:
        raise UsageError("names are for families", "write `archc list --families NAME`, or `archc report SPEC`")
    return _specs(json_target, force=force)


def _specs(json_target: str | None, *, force: bool) -> int:
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


def _families(names: tuple[str, ...], json_target: str | None, *, force: bool) -> int:
    from archc.families import known_families

    unknown = sorted(set(names) - set(known_families()))
    if unknown:
        near = get_close_matches(unknown[0], known_families(), 1, 0.5)
        raise UsageError(f"archc knows no family {unknown[0]}", f"did you mean {near[0]}?" if near else "see them all")

    entries, versions = family_entries(names)
    if json_target is not None:
        emit_json({"measured_with": versions, "families": entries}, json_target, force=force)
        return 0
    from archc.render.families import print_families
    from archc.render.terminal import console

    print_families(entries, ", ".join(f"{name} {version}" for name, version in versions.items()), console())
    return 0


def family_entries(names: Sequence[str] = ()) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """What the list says of families (of all, if none are named), and the versions that they were measured with."""
    from archc import resources
    from archc.families import known_families

    measured = json.loads((resources.folder("measured") / "families.json").read_text(encoding="utf-8"))
    entries = [_family_entry(name, measured["families"].get(name)) for name in names or known_families()]
    return entries, {name: measured[name] for name in ("transformers", "torch")}


def _family_entry(name: str, measured: dict[str, Any] | None) -> dict[str, Any]:
    """A family as its file says, with what the sweep over its checkpoints found."""
    from archc.families import family

    known = family(name)
    refused = measured["refused"].values() if measured else ()
    return {
        "name": name,
        "tier": known.tier,
        "refused": known.refused or None,
        "generated": bool(known.rules),
        "options": measured["options"] if measured else [],
        "unsupported": sorted({reason for case in refused for reason in case}),
        "checkpoints": {"tried": measured["cases"], "passed": measured["passed"]} if measured else None,
    }
