"""Families and coverage: what `archc list --families` knows, a page for each tier."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from archc.cli.listing import family_entries
from archc.render.families import reach
from docs._site.markdown import code, plain, table

TIERS = {
    "dense": "plain dense models",
    "twisted": "dense models with twists",
    "mixture": "mixtures of experts",
    "latent": "latent attention",
    "hybrid": "hybrids and recurrent models",
    "exotic": "everything else",
}


def pages() -> Iterator[tuple[str, list[str]]]:
    """The table of all, and a page for each tier with what is read and refused."""
    entries, versions = family_entries()
    yield "families/index", list(_index(entries, versions))
    for tier in _tiers(entries):
        yield f"families/{tier}", list(_tier(tier, [entry for entry in entries if entry["tier"] == tier]))


def _index(entries: list[dict[str, Any]], versions: dict[str, str]) -> Iterator[str]:
    measured = " and ".join(f"{name} {version}" for name, version in versions.items())
    counts = [entry["checkpoints"] for entry in entries if entry["checkpoints"]]
    yield from ("# Families and coverage", "")
    passed, tried = (sum(one[key] for one in counts) for key in ("passed", "tried"))
    yield f"{len(entries)} model types of transformers. Of {len(counts)} of them, {passed} of {tried} tiny checkpoints"
    yield f"pass the gate with the code that archc generates, measured with {measured}. On a terminal:"
    yield "`archc list --families`. [How a family is added](../../add-a-family.md)."
    for tier in _tiers(entries):
        rows = [
            (f"[{code(entry['name'])}](#{entry['name']})", plain(reach(entry)), ", ".join(map(plain, _refusals(entry))))
            for entry in entries
            if entry["tier"] == tier
        ]
        yield from (
            "",
            f"## {tier}: {TIERS.get(tier, tier)}",
            "",
            *table(("family", "how far archc goes", "refused"), rows),
        )
    yield from ("```{toctree}", ":hidden:", ":glob:", "", "*", "```")


def _tier(tier: str, entries: list[dict[str, Any]]) -> Iterator[str]:
    yield from (f"# {tier}: {TIERS.get(tier, tier)}", "")
    for entry in entries:
        yield from (f"({entry['name']})=", f"## {plain(entry['name'])}", "", f"{plain(reach(entry)).capitalize()}.", "")
        if entry["options"]:
            yield from (f"Options read from its config.json: {', '.join(map(code, entry['options']))}.", "")
        if refusals := _refusals(entry):
            yield from ("Refused:", "", *(f"- {plain(reason)}" for reason in refusals), "")


def _tiers(entries: list[dict[str, Any]]) -> list[str]:
    """The tiers that occur, the plainest first."""
    found = {entry["tier"] for entry in entries}
    return [*(tier for tier in TIERS if tier in found), *sorted(found - TIERS.keys())]


def _refusals(entry: dict[str, Any]) -> list[str]:
    return [entry["refused"]] if entry["refused"] else entry["unsupported"]
