"""From the tree of one kind of layer to its branches: every section validated by the kind that it states.

Without `block`, a layer has a branch for its mixers (attention, mixer, or both side by side) and one for its
feed-forward, as far as they are not null. An entry of `block` names the parts of one branch; what it states is merged
over the section of the same name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from msgspec import Struct, field

from archc.parts.base import Fields, PartFields
from archc.parts.kinds import DEFAULT_KIND, KINDS, PARTS, fields_of
from archc.parts.norm import NormFields
from archc.parts.position import PositionFields
from archc.parts.residual import ResidualFields
from archc.spec.diagnostics import Diagnostic, Level
from archc.spec.language import ITEM, MAX_BRANCHES, BranchFields, BranchHead, LayerFields, Reads
from archc.spec.merge import merge
from archc.spec.source import Node, entries
from archc.spec.validate import GUESSES, suggest, validate

_WIDE: Final[tuple[Reads, ...]] = ("stream_and_embedding", "streams")
"""What only some parts can read."""
_PLAIN: Mapping[str, type[Fields]] = {"norm": NormFields, "residual": ResidualFields}


class ReadBranch(Struct):
    """What could be read of one branch; `fields` holds every section that is well formed."""

    root: Node
    named: tuple[str, ...]
    """The sections that are its parts."""
    fields: dict[str, Fields | None] = field(default_factory=dict)
    problems: list[Diagnostic] = field(default_factory=list)
    shared: str | None = None
    reads: Reads = "stream"

    def build(self) -> BranchFields:
        """The branch, if there are no problems."""
        norm, residual = self.fields.get("norm"), self.fields.get("residual")
        return BranchFields(
            parts={name: part for name in self.named if isinstance(part := self.fields[name], PartFields)},
            norm=norm if isinstance(norm, NormFields) else None,
            position=cast(PositionFields | None, self.fields.get("position")),
            residual=residual if isinstance(residual, ResidualFields) else ResidualFields(),
            shared=self.shared,
            reads=self.reads,
        )


def read_layer(root: Node) -> list[ReadBranch]:
    """Everything that can be read of a kind of layer, branch by branch, with what is wrong."""
    sections = entries(root)
    block = sections.get("block")
    if block is None:
        return list(_usual(root, sections))
    if not isinstance(block.value, tuple) or not block.value:
        branch = ReadBranch(root, ())
        branch.problems.append(_error("E103", "block must be a list of branches", "such as [{attention: {}}]", block))
        return [branch]
    if len(block.value) > MAX_BRANCHES:
        branch = ReadBranch(root, ())
        branch.problems.append(
            _error("E104", f"block has {len(block.value)} branches", f"give at most {MAX_BRANCHES}", block)
        )
        return [branch]
    branches = [_item(item, sections) for item in block.value]
    if branches[0].reads == "last_input":
        message = "the first branch reads last_input, and there is none before it"
        branches[0].problems.append(_error("E103", message, "let it read the stream", block.value[0]))
    return branches


def layer_fields(branches: list[ReadBranch]) -> LayerFields:
    """The kind of layer that the branches make, if there are no problems."""
    return LayerFields(tuple(branch.build() for branch in branches))


def _usual(root: Node, sections: Mapping[str, Node]) -> Iterator[ReadBranch]:
    stated = {name for name in PARTS if name in sections and sections[name].value is not None}
    mixers = tuple(name for name in ("attention", "mixer") if name in stated)
    first = ReadBranch(root, mixers or (("ffn",) if "ffn" in stated else ()))
    _read(first, sections, ("norm", "position", *first.named, "residual"))
    for name, others in (("attention", ("mixer",)), ("ffn", ())):
        if not any(key in sections for key in (name, *others)):
            first.problems.append(_missing(name, root))
    if not stated and not first.problems:
        first.problems.append(_error("E102", "the layer has no part", "state attention, mixer or ffn", root, "layers"))
    yield first
    if mixers and "ffn" in stated:
        second = ReadBranch(root, ("ffn",))
        _read(second, sections, ("ffn",))
        second.fields |= {name: first.fields.get(name) for name in ("norm", "position", "residual")}
        yield second


def _item(item: Node, sections: Mapping[str, Node]) -> ReadBranch:
    """A branch that is written out: an entry of `block` over the sections of the layer."""
    if not isinstance(item.value, Mapping):
        branch = ReadBranch(item, ())
        branch.problems.append(
            _error("E103", "a branch of block must be a mapping", "such as {ffn: {}}", item, "block")
        )
        return branch
    named = tuple(name for name in PARTS if name in item.value)
    merged = {name: node for name, node in sections.items() if name in ITEM and (name not in PARTS or name in named)}
    for name, node in item.value.items():
        if name in ITEM:
            merged[name] = merge(merged[name], node, name) if name in merged else node
    branch = ReadBranch(Node(merged, item.span, item.key_span), named)
    for number, name in enumerate(name for name in item.value if name not in ITEM):
        mend = suggest(name, ITEM, guess=number < GUESSES)
        branch.problems.append(_error("E101", f"unknown key {name!r} in block", mend, item.value[name], name))
    if not named:
        branch.problems.append(_error("E102", "the branch has no part", "name attention, mixer or ffn", item, "block"))
    _read(branch, merged, ("norm", "position", *named, "residual"))
    head = validate(
        BranchHead, Node({k: v for k, v in item.value.items() if k in BranchHead.__struct_fields__}, item.span)
    )
    if isinstance(head, list):
        branch.problems += head
    else:
        branch.shared, branch.reads = head.shared, head.reads
        parts = {name: part for name in named if isinstance(part := branch.fields.get(name), PartFields)}
        narrow = [name for name, part in parts.items() if head.reads not in part.also_reads]
        if head.reads in _WIDE and narrow:
            message = f"reads {head.reads} is not for {narrow[0]}"
            branch.problems.append(_error("E103", message, "let the branch read the stream", item))
    return branch


def _read(branch: ReadBranch, sections: Mapping[str, Node], names: tuple[str, ...]) -> None:
    """Validate the sections `names` into the branch."""
    for name in names:
        node = sections.get(name)
        if node is None:
            if name == "norm" or (name == "position" and "attention" in branch.named):
                branch.problems.append(_missing(name, branch.root))
            continue
        if node.value is None:
            if name not in ("norm", "position"):
                branch.problems.append(_error("E103", f"{name} must be a mapping", "give its fields", node))
            branch.fields[name] = None
            continue
        model = _PLAIN.get(name) or _by_kind(name, node, branch.problems)
        if model is None:
            continue
        found = validate(model, node, (name,))
        if isinstance(found, list):
            branch.problems += found
        else:
            branch.fields[name] = found


def _by_kind(section: str, node: Node, problems: list[Diagnostic]) -> type[Fields] | None:
    """The fields of the kind that a section states."""
    choices = ", ".join(KINDS[section])
    if not isinstance(node.value, Mapping):
        problems.append(_error("E103", f"{section} must be a mapping of keys to values", "give its fields", node))
        return None
    stated = node.value.get("kind")
    kind = DEFAULT_KIND.get(section) if stated is None else stated.value
    if kind is None:
        problems.append(_error("E102", f"{section}.kind is missing", f"add kind: one of {choices}", node))
        return None
    if not isinstance(kind, str) or kind not in KINDS[section]:
        assert stated is not None
        shown = f"the text {kind!r}" if isinstance(kind, str) else str(kind)
        near = suggest(str(kind), KINDS[section])
        problems.append(
            Diagnostic("E104", Level.ERROR, f"{section} has no kind {shown}", near, stated.span, f"{section}.kind")
        )
        return None
    return fields_of(section, kind)


def _missing(name: str, root: Node) -> Diagnostic:
    mend = f"add {name}: …  (`archc explain {name}` says what it means)"
    return _error("E102", f"{name} is missing", mend, root)


def _error(code: str, message: str, mend: str, node: Node, path: str = "") -> Diagnostic:
    return Diagnostic(code, Level.ERROR, message, mend, node.key_span or node.span, path or message.partition(" ")[0])
