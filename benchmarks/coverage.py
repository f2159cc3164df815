"""The sweep over all families that can be generated: every tiny checkpoint through import, generation and the gate.

    python -m benchmarks.coverage             run all, compare with what was measured last, exit 1 where one fell back
    python -m benchmarks.coverage llama phi   some families alone
    python -m benchmarks.coverage --write     keep the results in measured/families.json, and rewrite README's table

A base case is run with a planted mistake and with gradients too. Figures are the worst deviation in noise floors: at
most 8 passes.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from archc.families import family, known_families
from tests.families.gate_case import Outcome, check
from tests.families.zoo import CASES

ROOT = Path(__file__).resolve().parent.parent
MEASURED = ROOT / "measured" / "families.json"
README = ROOT / "README.md"
BEGIN, END = "<!-- coverage -->\n", "<!-- /coverage -->"
TIERS = {
    "dense": "Plain dense",
    "twisted": "Dense with twists",
    "mixture": "Mixtures of experts",
    "latent": "Latent attention",
}
_LOGGED = 25
"""After so many cases a log, which shows no bar, says how far it is."""
FIGURES = ("full_pass", "cache", "padded", "planted")


def main(arguments: list[str] | None = None) -> int:
    """Run, compare, and write what is asked for; 1 where a case does not do what it did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("families", nargs="*")
    parser.add_argument("--write", action="store_true", help="keep the results")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args(arguments)
    swept = [name for name in known_families() if family(name).rules]
    unknown = sorted(set(options.families) - set(swept))
    if unknown:
        known = [name for name in unknown if name in known_families()]
        parser.error(
            f"{', '.join(known)}: sized alone, for want of rules for stored tensors"
            if known
            else f"no such family: {', '.join(unknown)}"
        )
    outcomes = run([case.name for case in CASES if case.model_type in (options.families or swept)], options.jobs)
    fallen = compare(outcomes, {} if options.write else stored())
    if options.write:
        write(document(outcomes), keep=bool(options.families))
    passed = sum(outcome.passed for outcome in outcomes)
    refused = sum(bool(outcome.refused) for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} cases pass, {refused} are refused by name, {len(fallen)} fall short")
    return 1 if fallen else 0


def run(names: list[str], jobs: int) -> list[Outcome]:
    """The outcomes of cases, in their order."""
    columns = (TextColumn("{task.description:<28}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    outcomes = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _prepare) as pool, Progress(*columns) as progress:
        task = progress.add_task("", total=len(names))
        for outcome in pool.map(_one, names):
            outcomes.append(outcome)
            progress.update(task, advance=1, description=outcome.case)
            if not progress.console.is_terminal and len(outcomes) % _LOGGED == 0:
                print(f"{len(outcomes)} of {len(names)} cases", flush=True)
    return outcomes


def _prepare() -> None:
    import torch
    from transformers.utils import logging

    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def _one(name: str) -> Outcome:
    case = next(case for case in CASES if case.name == name)
    return check(case, thoroughly=case.name == case.model_type)


def compare(outcomes: Iterable[Outcome], before: Mapping[str, Any]) -> list[Outcome]:
    """Those that fail, or are refused where they were not before; said on standard error."""
    fallen = []
    for outcome in outcomes:
        known = before.get(outcome.model_type, {}).get("refused", {})
        if not outcome.passed and not (outcome.refused and (not before or outcome.case in known)):
            fallen.append(outcome)
            print(f"{outcome.case}: {outcome.failure or f'refused: {outcome.refused}'}", file=sys.stderr)
    return fallen


def stored() -> dict[str, Any]:
    """What was measured last, by family."""
    found: dict[str, Any] = json.loads(MEASURED.read_text(encoding="utf-8"))["families"]
    return found


def document(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """The results by family."""
    found: dict[str, Any] = {}
    for outcome in outcomes:
        entry = found.setdefault(
            outcome.model_type, {"cases": 0, "passed": 0, "refused": {}, "options": [], **dict.fromkeys(FIGURES)}
        )
        entry["cases"] += 1
        entry["passed"] += outcome.passed
        entry["options"] = sorted({*entry["options"], *outcome.options})
        if outcome.refused:
            entry["refused"][outcome.case] = list(outcome.refused)
        for figure in FIGURES:
            values = [value for value in (entry[figure], getattr(outcome, figure)) if value is not None]
            entry[figure] = round(max(values), 2) if values else None
    return found


def write(families: Mapping[str, Any], *, keep: bool) -> None:
    """Writes the results; with `keep`, those of other families stay."""
    import torch
    import transformers

    families = {**(stored() if keep else {}), **families}
    versions = {"transformers": transformers.__version__, "torch": torch.__version__.split("+")[0]}
    MEASURED.parent.mkdir(exist_ok=True)
    text = json.dumps({**versions, "families": dict(sorted(families.items()))}, indent=1)
    MEASURED.write_text(text + "\n", encoding="utf-8")
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    _, after = rest.split(END)
    README.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")


def table() -> str:
    """README's table, from what was measured last."""
    measured = json.loads(MEASURED.read_text(encoding="utf-8"))
    families = measured["families"]
    cases, passed = (sum(entry[key] for entry in families.values()) for key in ("cases", "passed"))
    lines = [
        f"{len(families)} families, {passed} of {cases} checkpoints; transformers {measured['transformers']}, "
        f"torch {measured['torch']}.",
        "",
    ]
    for tier, title in TIERS.items():
        rows = {name: entry for name, entry in families.items() if family(name).tier == tier}
        lines += [
            f"<details><summary>{title}: {len(rows)} families</summary>",
            "",
            "| family | checkpoints | full pass | cache | padded batch | mistake |",
            "|---|---|---|---|---|---|",
            *(_row(name, entry) for name, entry in rows.items()),
            "",
            "</details>",
            "",
        ]
    return "\n".join(lines) + "\n"


def _row(name: str, entry: Mapping[str, Any]) -> str:
    count = f"{entry['passed']}" + (f" of {entry['cases']}" if entry["passed"] < entry["cases"] else "")
    cells = (count, *("" if entry[figure] is None else f"{entry[figure]:,.2f}" for figure in FIGURES[:-1]))
    planted = "" if entry["planted"] is None else f"{entry['planted']:,.0f}"
    return f"| {name} | {' | '.join(cells)} | {planted} |"


if __name__ == "__main__":
    sys.exit(main())
