"""From a file (or a shipped name) and overrides to a well-formed `Spec` that knows its places."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from archc import resources
from archc.errors import UsageError
from archc.parts.base import Finding
from archc.spec.checks import check_branch, check_ends, check_family, check_kinds
from archc.spec.diagnostics import Diagnostic, Level, Span, SpecError, quoted
from archc.spec.language import MAX_LAYERS, SECTIONS, Header, LayersFields, Spec
from archc.spec.merge import merge, nested
from archc.spec.pattern import PatternError, expand
from archc.spec.sections import ReadBranch, layer_fields, read_layer
from archc.spec.source import MAX_DEPTH, Node, entries, parse, parse_value, read
from archc.spec.sums import check_sums
from archc.spec.validate import at_path, located, suggest, validate, well_formed

ONLY_KIND = "layer"
ENOUGH = 1000
"""Problems after which no further kinds of layer are read: they mostly have the same ones."""


class LoadedSpec(Struct, frozen=True):
    """A spec without errors, its warnings and notes, and the text that it came from."""

    spec: Spec
    root: Node
    kind_roots: Mapping[str, Node]
    diagnostics: tuple[Diagnostic, ...]

    def place(self, path: Sequence[str], kind: str | None = None) -> Span:
        """Where the field at `path` (of a kind of layer, if given) is written."""
        return at_path(self.kind_roots[kind] if kind else self.root, path)


def find(target: str) -> Path:
    """The file of a spec given as a path or as the name of a shipped one, with or without .yaml."""
    path = Path(target)
    if path.suffix in {".yaml", ".yml"} and path.exists():
        return path
    shipped = resources.folder("specs")
    name = target.removesuffix(".yaml")
    candidate = shipped / f"{name}.yaml"
    if ".." not in Path(name).parts and not Path(name).is_absolute() and candidate.is_file():
        return candidate
    if path.is_file():
        return path
    near = near_names(name)
    raise UsageError(
        f"no spec {target!r}: neither a file nor a shipped spec",
        f"did you mean {near[0]}?" if near else "`archc list` names the shipped ones",
    )


def near_names(name: str) -> list[str]:
    """Shipped specs whose names are close to `name`, nearest first."""
    import difflib

    return difflib.get_close_matches(name, shipped_names(), 3, 0.5)


def shipped_names() -> list[str]:
    """Names of all shipped specs, such as llama3-8b or ladder/rope."""
    folder = resources.folder("specs")
    return sorted(file.relative_to(folder).with_suffix("").as_posix() for file in folder.rglob("*.yaml"))


def load(target: str, overrides: Sequence[str] = ()) -> LoadedSpec:
    """The spec at `target` with `overrides` (`path=value` each) applied. Raises SpecError with all that is wrong."""
    return _load(read(find(target)), overrides)


def load_text(text: str, file: str = "<text>", overrides: Sequence[str] = ()) -> LoadedSpec:
    """As `load`, from the text of a spec."""
    return _load(parse(text, file), overrides)


def changed(loaded: LoadedSpec, path: tuple[str, ...], value: str) -> LoadedSpec:
    """A loaded spec with another value, as YAML writes it, at a path. Raises SpecError where it is none."""
    return overridden(loaded, [f"{'.'.join(path)}={value}"])


def overridden(loaded: LoadedSpec, overrides: Sequence[str]) -> LoadedSpec:
    """A loaded spec with `overrides` (`path=value` each) applied. Raises SpecError with all that is wrong then."""
    return _load(loaded.root, overrides)


def _load(root: Node, overrides: Sequence[str]) -> LoadedSpec:
    changes = [_override(text) for text in overrides]
    for path, leaf in changes:
        root = merge(root, nested(path, leaf))
    if not isinstance(root.value, Mapping):
        raise SpecError([_error("E103", "a spec is a mapping of keys to values", "start with archc: 1", root.span)])

    base = {name: root.value[name] for name in SECTIONS if name in root.value}
    header_node = Node({k: v for k, v in root.value.items() if k not in SECTIONS or k == "norm"}, root.span)
    header = validate(Header, header_node)
    problems = header if isinstance(header, list) else []
    known = structs.asdict(header) if isinstance(header, Header) else well_formed(Header, header_node)
    pattern, names = _pattern(root, known.get("layers"), problems)
    kind_roots = {kind: _merged(root, base, kind) for kind in names}
    branches: dict[str, list[ReadBranch]] = {}
    for kind, kind_root in kind_roots.items():
        branches[kind] = read_layer(kind_root)
        problems += [problem for branch in branches[kind] for problem in branch.problems]
        if len(problems) > ENOUGH:
            break
    problems += [located(finding, place) for finding, place in _findings(root, known, branches)]
    problems = list(dict.fromkeys(problems))
    if any(problem.level is Level.ERROR for problem in problems) or not isinstance(header, Header):
        raise SpecError(problems)
    _refuse_idle_overrides(changes, {kind: [branch.root for branch in found] for kind, found in branches.items()})
    kinds = {kind: layer_fields(read_ones) for kind, read_ones in branches.items()}
    return LoadedSpec(Spec(header, kinds, pattern), root, kind_roots, tuple(problems))


def _findings(
    root: Node, header: Mapping[str, Any], kinds: Mapping[str, Sequence[ReadBranch]]
) -> Iterator[tuple[Finding, Node]]:
    """All checks, on whatever is well formed, with the tree that each finding's path starts from."""
    family = entries(root).get("family")
    for finding in check_family(family.value if family else None):
        yield finding, root
    for finding in check_ends(header):
        yield finding, root
    sizes = (header.get("hidden_size"), header.get("context"))
    for branches in kinds.values():
        for branch in branches:
            for finding in check_branch(branch.fields, *sizes, header.get("embedding")):
                yield finding, branch.root
        for index, finding in check_sums([branch.fields for branch in branches]):
            yield finding, branches[index].root
    for index, finding in check_kinds([(kind, branch.fields) for kind, found in kinds.items() for branch in found]):
        yield finding, [branch for found in kinds.values() for branch in found][index].root


def _override(text: str) -> tuple[tuple[str, ...], Node]:
    path, equals, value = text.partition("=")
    steps = tuple(step.strip() for step in path.split("."))
    if not equals or not all(steps):
        raise UsageError(f"cannot read --set {quoted(text)}", "write it as path=value, such as attention.kv_heads=8")
    if len(steps) > MAX_DEPTH:
        raise UsageError(f"--set {quoted(path)} has {len(steps)} steps", "no field lies as deep")
    return steps, parse_value(value, f"--set {path.strip()}")


def _pattern(
    root: Node, parsed: int | LayersFields | None, problems: list[Diagnostic]
) -> tuple[tuple[str, ...], list[str]]:
    """The kind of every layer, and the kinds to build; problems with the pattern are added to `problems`."""
    layers = entries(root).get("layers")
    if layers is None or not isinstance(layers.value, Mapping):
        return (ONLY_KIND,) * (parsed if isinstance(parsed, int) else 1), [ONLY_KIND]
    if not isinstance(parsed, LayersFields):
        return (), []  # the header's validation reports what is wrong
    text = layers.value["pattern"]
    try:
        pattern = expand(parsed.pattern, MAX_LAYERS)
    except PatternError as error:
        place = _within(text, error.offset, 1)
        problems.append(
            _error("E105", f"layers.pattern: {error}", "such as 3*(5*local, global)", place, "layers.pattern")
        )
        return (), []
    if len(pattern) != parsed.count:
        problems.append(
            _error(
                "E105",
                f"layers.pattern names {len(pattern)} layers, layers.count is {parsed.count}",
                "name every layer exactly once: nothing repeats by itself",
                text.span,
                "layers.pattern",
            )
        )
    names = list(dict.fromkeys(pattern))
    used = {part for name in names for part in name.split("+")}
    for unknown in sorted(used - set(parsed.kinds)):
        word = re.search(rf"(?<![a-z0-9_]){unknown}(?![a-z0-9_])", parsed.pattern)
        problems.append(
            _error(
                "E105",
                f"layers.pattern names the kind {unknown!r}, which layers.kinds does not have",
                suggest(unknown, parsed.kinds),
                _within(text, word.start() if word else 0, len(unknown)),
                "layers.pattern",
            )
        )
    for unused in sorted(set(parsed.kinds) - used):
        kinds = layers.value["kinds"]
        problems.append(
            _error(
                "E105",
                f"layers.pattern never uses the kind {unused!r}",
                "use it or remove it",
                at_path(kinds, (unused,)),
                f"layers.kinds.{unused}",
            )
        )
    return pattern, [name for name in names if set(name.split("+")) <= set(parsed.kinds)]


def _within(text: Node, offset: int, length: int) -> Span:
    """A stretch of a text, where it is written as it is read, in one line; else its whole span."""
    span = text.span
    first = span.column - 1 + (span.text[span.column - 1 : span.column] in {'"', "'"})
    if not span.text.startswith(str(text.value), first):
        return span
    return Span(span.file, span.line, first + offset + 1, length, span.text)


def _merged(root: Node, sections: Mapping[str, Node], kind: str) -> Node:
    """The sections of a kind of layer (a sum is merged from left to right)."""
    merged = Node(sections, root.span)
    kinds = entries(entries(root).get("layers")).get("kinds")
    for name in kind.split("+"):
        differences = entries(kinds).get(name)
        if differences is not None and entries(differences):
            merged = merge(merged, differences)
    return merged


def _refuse_idle_overrides(
    changes: Sequence[tuple[tuple[str, ...], Node]], branches: Mapping[str, Sequence[Node]]
) -> None:
    """An override that every kind of layer, or every branch of a block, overrules would look like a change."""
    for path, leaf in changes:
        if path[0] not in SECTIONS or path[0] in ("norm", "block"):
            continue
        if isinstance(leaf.value, Mapping) or leaf.value is None:
            continue
        if any(root.find(path).span == leaf.span for roots in branches.values() for root in roots):
            continue
        name, kind = ".".join(path), next(iter(branches))
        if kind == ONLY_KIND:
            raise UsageError(f"--set {name} changes nothing: no branch of block takes it", "change block in the spec")
        raise UsageError(
            f"--set {name} changes nothing: every kind of layer states its own",
            f"set layers.kinds.{kind}.{name} instead",
        )


def _error(code: str, message: str, mend: str, span: Span | None, path: str = "") -> Diagnostic:
    return Diagnostic(code, Level.ERROR, message, mend, span, path)
