"""What can be switched in a spec, one thing at a time, and what each choice writes into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from archc.parts.norm import NORM_NAMES

DECLARED: Final = "declared"
"""The choice that a spec has made, where it is none of those that can be switched to."""
Plain = Mapping[str, Any]
Choices = Mapping[str, str]
"""Options by switch; a switch that is not in it stays as declared."""


class Switch(Struct, frozen=True):
    """One thing that can be changed."""

    id: str
    label: str
    options: Mapping[str, str]
    """Labels of what can be chosen."""


SWITCHES: Final[tuple[Switch, ...]] = (
    Switch("norm", "Norm", {kind: NORM_NAMES[kind] for kind in ("layernorm", "rmsnorm")}),
    Switch(
        "positions",
        "Positions",
        {"learned": "learned table", "sinusoidal": "sinusoidal", "rope": "rotary", "alibi": "ALiBi", "none": "none"},
    ),
    Switch("gate", "Feed-forward", {"plain": "plain", "gated": "gated"}),
    Switch("biases", "Biases", {"all": "all", "none": "none"}),
    Switch("qk_norm", "Norm of queries and keys", {"none": "none", "head": "per head"}),
    Switch("ends", "Embedding and head", {"tied": "tied", "untied": "untied"}),
    Switch("experts", "Experts", {"dense": "dense", "moe": "mixture"}),
)
AXES: Final[Mapping[str, tuple[str, ...]]] = {
    "norm": ("norm",),
    "position": ("positions",),
    "attention": ("biases", "qk_norm"),
    "ffn": ("experts", "gate", "biases"),
    "embedding": ("ends",),
    "mixer": (),
}
"""The switches that write into each section of a spec."""

_FFN_KINDS: Final = ("mlp", "gated", "moe")
_EXPERTS: Final = ("ffn.experts=8", "ffn.top_k=2", "ffn.router={score: softmax, renormalize: true}")


def declared_choices(spec: Plain) -> dict[str, str]:
    """What a spec chooses at every switch that it has: an option, or DECLARED."""
    attention, ffn, norm, position = (spec.get(name) for name in ("attention", "ffn", "norm", "position"))
    found = {"norm": norm["kind"], "ends": "tied" if spec["embedding"]["tied"] else "untied"} if norm else {}
    if ffn and ffn.get("kind") in _FFN_KINDS:
        found["experts"] = "moe" if ffn["kind"] == "moe" else "dense"
        found["gate"] = "gated" if _gated(ffn) else "plain"
    if attention and attention.get("kind", "gqa") == "gqa":
        found |= {"positions": position["kind"]} if position else {}
        found["biases"] = _biases(attention, ffn)
        found["qk_norm"] = _qk_norm(attention)
    known = {switch.id: switch.options for switch in SWITCHES}
    return {switch: option if option in known[switch] else DECLARED for switch, option in found.items()}


def overrides(spec: Plain, section: str, choices: Choices) -> list[str]:
    """What a section of a spec becomes by some choices, as `path=value`, in the order in which it is to be set."""
    return list(_WRITERS[section](spec, choices)) if section in _WRITERS else []


def declared_label(spec: Plain, switch: str) -> str:
    """What the choice of a spec is called, where it is none of the options."""
    if switch == "biases":
        return _bias_words(spec)
    if switch == "qk_norm":
        return f"over {spec['attention']['qk_norm'].get('over', 'head')}"
    section = {"norm": "norm", "positions": "position"}[switch]
    return str(spec[section]["kind"])


def _norm(spec: Plain, choices: Choices) -> list[str]:
    del spec
    kind = choices.get("norm", DECLARED)
    return [] if kind == DECLARED else [f"norm.kind={kind}", f"norm.bias={'true' if kind == 'layernorm' else 'false'}"]


def _position(spec: Plain, choices: Choices) -> list[str]:
    kind = choices.get("positions", DECLARED)
    if kind == DECLARED:
        return []
    value = "{kind: rope, base: 10000}" if kind == "rope" else f"{{kind: {kind}}}"
    layers = spec["layers"]
    kinds = layers.get("kinds", {}) if isinstance(layers, Mapping) else {}
    stating = [name for name, fields in kinds.items() if fields and isinstance(fields.get("position"), Mapping)]
    return [f"position={value}", *(f"layers.kinds.{name}.position={value}" for name in stating)]


def _attention(spec: Plain, choices: Choices) -> list[str]:
    attention = spec.get("attention")
    if not attention or attention.get("kind", "gqa") != "gqa":
        return []
    found = []
    biases, qk_norm = choices.get("biases", DECLARED), choices.get("qk_norm", DECLARED)
    if biases != DECLARED:
        found.append(f"attention.bias={biases}")
    if qk_norm != DECLARED:
        found.append(f"attention.qk_norm={'null' if qk_norm == 'none' else '{over: head}'}")
    return found


def _ffn(spec: Plain, choices: Choices) -> list[str]:
    """The kind, what goes with it, and biases by the word that the kind has for them."""
    ffn = spec.get("ffn")
    if not ffn or ffn.get("kind") not in _FFN_KINDS:
        return []
    now = declared_choices(spec)
    experts, gate = ({**now, **choices}[switch] for switch in ("experts", "gate"))
    kind = "moe" if experts == "moe" else "gated" if gate == "gated" else "mlp"
    found = []
    if kind != ffn["kind"]:
        found.append(f"ffn.kind={kind}")
        if kind == "moe":
            found += _EXPERTS
    if gate != now["gate"] and ffn["activation"] in ("gelu", "gelu_tanh", "silu"):
        found.append(f"ffn.activation={'silu' if gate == 'gated' else 'gelu_tanh'}")
    if kind == "moe" and (gate == "gated") != ffn.get("gated", True):
        found.append(f"ffn.gated={'true' if gate == 'gated' else 'false'}")
    biased = choices.get("biases", DECLARED)
    wanted = _biased(ffn) if biased == DECLARED else biased == "all"
    if biased != DECLARED or (kind == "moe") != (ffn["kind"] == "moe"):
        words = ("experts", "none") if kind == "moe" else ("true", "false")
        found.append(f"ffn.bias={words[0] if wanted else words[1]}")
    return found


def _embedding(spec: Plain, choices: Choices) -> list[str]:
    del spec
    ends = choices.get("ends", DECLARED)
    return [] if ends == DECLARED else [f"embedding.tied={'true' if ends == 'tied' else 'false'}"]


_WRITERS: Final = {
    "norm": _norm,
    "position": _position,
    "attention": _attention,
    "ffn": _ffn,
    "embedding": _embedding,
}


def _gated(ffn: Plain) -> bool:
    return bool(ffn["kind"] == "gated" or (ffn["kind"] == "moe" and ffn.get("gated", True)))


def _biased(ffn: Plain | None) -> bool:
    return ffn is not None and ffn.get("bias", False) not in (False, "none")


def _biases(attention: Plain, ffn: Plain | None) -> str:
    """`all` where every matrix has one, `none` where none has."""
    stated, dense = attention.get("bias", "none"), ffn is not None and ffn.get("kind") in _FFN_KINDS
    if stated == "all" and (_biased(ffn) or not dense):
        return "all"
    return "none" if stated == "none" and not _biased(ffn) else DECLARED


def _bias_words(spec: Plain) -> str:
    stated = spec["attention"].get("bias", "none")
    words = [] if stated == "none" else ["attention"] if stated == "all" else [", ".join(stated)]
    return " and ".join([*words, *(["feed-forward"] if _biased(spec.get("ffn")) else [])])


def _qk_norm(attention: Plain) -> str:
    stated = attention.get("qk_norm")
    return "none" if stated is None else str(stated.get("over", "head"))
