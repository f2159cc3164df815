"""The faults of the catalogue as `archc explain` finds and tells them: by id, by field, or by names used elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from functools import cache

from archc.cli.output import wrapped
from archc.faults.base import Fault, Kind

_MADE: dict[Kind, str] = {
    "architecture": "from the same weights by another spec",
    "layout": "from the same spec, its weights read otherwise",
    "runtime": "from the same spec and weights, by other code or in other types",
}
KINDS: dict[Kind, str] = {
    "architecture": "Architecture: another model is built",
    "layout": "Layout: the right tensors are read in a wrong way",
    "runtime": "Runtime: caches, masks, padding, positions, types and formulas",
}
"""What a fault of each kind is."""

_ALIASES = {
    "act.clamp": "ffn.glu.limit",
    "act.kind": "ffn.activation",
    "attn.gqa_layout": "attention.grouping",
    "attn.mask": "mask.causal",
    "attn.window.size": "attention.window",
    "batch.left_pad": "padding.positions",
    "batch.packing": "padding.mask",
    "bias.router": "ffn.router.bias",
    "cache.decode": "cache.length",
    "cache.shared_kv": "cache.positions",
    "dtype.convert": "norm.weight.rounded",
    "dtype.norm_weight": "dtype.norm",
    "dtype.rope": "dtype.angles",
    "layout.rope_permute": "layout.rope_rows",
    "layout.tp_shard": "layout.shards",
    "mlp.gate_order": "ffn.gate_order",
    "moe.bias_in_weight": "ffn.router.correction.weights",
    "moe.group_mask": "ffn.router.groups.others",
    "moe.layer_schedule": "ffn.kind.schedule",
    "moe.norm_topk": "ffn.router.renormalize",
    "moe.score_order": "ffn.router.order",
    "moe.shared_gate": "ffn.shared.gate",
    "norm.offset": "norm.weight",
    "pos.alibi": "position.max_bias.heads",
    "qk_norm.axis": "attention.qk_norm.over",
    "qk_norm.order": "attention.qk_norm.order",
    "residual.scale": "residual.branch",
    "rope.layers": "position.kind.unmoving",
    "rope.scaling.dynamic_ntk": "position.scaling.growth",
    "rope.scaling.longrope": "position.scaling.switch",
    "rope.scaling.per_layer": "position.scaling.layers",
    "rope.scaling.yarn_mscale": "attention.scale.latent",
    "rope.table_length": "positions.table",
}
_ELSEWHERE = {
    "rope.": "position.",
    "pos.": "position.",
    "attn.": "attention.",
    "moe.": "ffn.router.",
    "mlp.": "ffn.",
    "embed.": "embedding.",
}
"""How names begin where there is no language with fields, and how they do here."""


def at_home(topic: str) -> str:
    """What is called `topic` elsewhere, by its name here; the topic itself where it is no such name."""
    if topic in _ALIASES:
        return _ALIASES[topic]
    start = next((start for start in _ELSEWHERE if topic.startswith(start)), None)
    return topic if start is None else _ELSEWHERE[start] + topic.removeprefix(start)


def names_elsewhere(fault: str) -> list[str]:
    """What a fault is called in other collections, where that is not a matter of how names begin."""
    return [name for name, here in _ALIASES.items() if here == fault]


@cache
def catalogue() -> dict[str, Fault]:
    """All faults, by id."""
    from archc.faults.catalogue import CATALOGUE

    return {fault.id: fault for fault in CATALOGUE}


def faults_of(field: str) -> list[str]:
    """The ids of the faults that get a field wrong, one of that very name left out."""
    return [fault.id for fault in catalogue().values() if fault.field == field != fault.id]


def near_ids(topic: str, cutoff: float) -> list[str]:
    """Up to three ids that may have been meant."""
    return get_close_matches(topic, catalogue(), 3, cutoff)


def as_json(fault: Fault) -> dict[str, object]:
    """A fault for machines."""
    return {
        "id": fault.id,
        "field": fault.field,
        "kind": fault.kind,
        "wrong": fault.wrong,
        "when": fault.when,
        "loud": fault.loud,
        "made": _MADE[fault.kind],
        "probes": list(fault.probes),
        "same_when": fault.same_when,
        "mend": fault.mend,
        "seen": list(fault.seen),
    }


def paragraph(fault: Fault) -> str:
    """A fault as text."""
    shows = "loudly, when weights are loaded" if fault.loud else "silently: nothing is raised"
    rows = {
        "field": "" if fault.field == fault.id else fault.field,
        "found in": fault.when,
        "fails": shows,
        "seen by": ", ".join(fault.probes),
        "the same": f"when {fault.same_when}" if fault.same_when else "",
        "mend": fault.mend,
        "made": _MADE[fault.kind],
        "reports": ", ".join(fault.seen),
    }
    lines = [f"{fault.id}, a fault of {fault.kind}", *wrapped(fault.wrong, "  ")]
    width = max(map(len, rows))
    for name, text in rows.items():
        if text:
            lines += wrapped(f"{name:<{width}}  {text}", "  ", " " * (width + 4))
    return "\n".join(lines)


def overview() -> Iterator[str]:
    """A line for every fault, by kind."""
    width = max(map(len, catalogue()))
    for kind, words in KINDS.items():
        yield f"\n{words}"
        for fault in catalogue().values():
            if fault.kind == kind:
                yield from wrapped(f"{fault.id:<{width}}  {fault.wrong}", "  ", " " * (width + 4))
