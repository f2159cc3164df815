"""What a shell completes: names of specs and validators, fields and their values, codes, faults, files and folders.

click finds the parameter that the cursor is at, and completes commands, options and choices by itself. What else a
parameter takes follows from its metavar, here and nowhere else. Nothing of torch is imported, nor what only errors
need: a key press must not be felt.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, ClassVar, Final

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
)

from archc import resources
from archc.cli.app import COMMANDS

Items = Iterator[CompletionItem[str]]
Source = Callable[[click.Context, str], Items]

_SPLITS: Final = re.compile(r"[=:]+")
"""What ends a word inside an argument for bash (its COMP_WORDBREAKS), where archc's arguments have it."""

_BASH: Final = """\
%(complete_func)s() {
    local IFS=$'\\n' kind value
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            plain) COMPREPLY+=("$value") ;;
            part) compopt -o nospace; COMPREPLY+=("$value") ;;
            file) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$value") ;;
            dir) compopt -o filenames; mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -d -- "$value") ;;
        esac
    done < <(COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD=$COMP_CWORD %(complete_var)s=bash_complete "$1")
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""
"""click's own gives up names where there are files; this one offers both, and no space behind what goes on."""

_ZSH: Final = """\
#compdef %(prog_name)s

%(complete_func)s() {
    local -a found parts response
    local kind key described
    response=("${(@f)$(
        COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) %(complete_var)s=zsh_complete $words[1]
    )}")
    for kind key described in ${response}; do
        case $kind in
            plain) if [[ $described == _ ]]; then found+=("$key"); else parts+=("$key:$described"); fi ;;
            part) compadd -U -S '' -V unsorted -- "$key" ;;
            file) _path_files -f ;;
            dir) _path_files -/ ;;
        esac
    done
    (( $#parts )) && _describe -V unsorted parts -U
    (( $#found )) && compadd -U -V unsorted -a found
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    %(complete_func)s "$@"
else
    compdef %(complete_func)s %(prog_name)s
fi
"""
"""click's own, with no space behind what goes on."""

_FISH: Final = """\
function %(complete_func)s
    set -l words (commandline -cp)
    for item in (COMP_WORDS=$words COMP_CWORD=(commandline -t) %(complete_var)s=fish_complete %(prog_name)s)
        set -l kind_and_value (string split -m 1 , -- $item)
        switch $kind_and_value[1]
            case dir
                __fish_complete_directories $kind_and_value[2]
            case file
                __fish_complete_path $kind_and_value[2]
            case '*'
                echo $kind_and_value[2]
        end
    end
end

complete --no-files --command %(prog_name)s --arguments "(%(complete_func)s)"
"""
"""click's own, with whole descriptions where they have commas."""


def _plain(words: Iterable[str], incomplete: str) -> Items:
    return (CompletionItem(word) for word in words if word.startswith(incomplete))


def _files(_: click.Context, incomplete: str) -> Items:
    yield CompletionItem(incomplete, type="file")


def _folders(_: click.Context, incomplete: str) -> Items:
    yield CompletionItem(incomplete, type="dir")


def _specs(context: click.Context, incomplete: str) -> Items:
    from archc.spec.load import shipped_names

    yield from _plain(shipped_names(), incomplete)
    yield from _files(context, incomplete)


def _targets(context: click.Context, incomplete: str) -> Items:
    from archc.spec.load import shipped_names

    validators = (file.stem for file in resources.folder("validators").glob("*.yaml"))
    yield from _plain(sorted({*validators, *shipped_names()}), incomplete)
    yield from _files(context, incomplete)


def _fetched(_: click.Context, incomplete: str) -> Items:
    from archc.validation.validator import find_validator, shipped_validators

    return _plain((name for name in shipped_validators() if find_validator(name).package), incomplete)


def _families(_: click.Context, incomplete: str) -> Items:
    from archc.families import known_families

    return _plain(sorted(known_families()), incomplete)


def _topics(_: click.Context, incomplete: str) -> Items:
    from archc.cli.field_names import field_values

    codes = [file.stem for file in sorted(resources.folder("codes").glob("*.md"))]
    if any(code.startswith(incomplete.upper()) for code in codes) and incomplete:
        yield from _plain(codes, incomplete.upper())
        return
    from archc.faults.catalogue import CATALOGUE

    yield from _plain(
        dict.fromkeys([*codes, "faults", *field_values(incomplete), *(fault.id for fault in CATALOGUE)]), incomplete
    )


def _settings(_: click.Context, incomplete: str) -> Items:
    """The paths of fields; behind a path and =, the values that the field may have."""
    from archc.cli.field_names import field_values

    path, equals, _value = incomplete.partition("=")
    if equals:
        return _plain((f"{path}={value}" for value in field_values(path).get(path, ())), incomplete)
    paths = (path for path in field_values(incomplete) if path.startswith(incomplete))
    return (CompletionItem(f"{path}=", type="part") for path in paths)


def _json_file(context: click.Context, incomplete: str) -> Items:
    """The word after a bare `--json` is an operand that is still missing, or a file."""
    for operand in context.command.params:
        missing = operand.nargs == -1 or context.params.get(operand.name or "") is None
        if isinstance(operand, click.Argument) and missing and (source := _OPERANDS.get(operand.metavar or "")):
            yield from source(context, incomplete)
            return
    yield from _files(context, incomplete)


_OPERANDS: Final[Mapping[str, Source]] = {
    "SPEC": _specs,
    "SPEC...": _specs,
    "[SPEC...]": _specs,
    "A": _specs,
    "B": _specs,
    "TARGET": _targets,
    "CODE|FIELD|FAULT": _topics,
    "[FAMILY]...": _families,
    "NAME": _fetched,
    "SRC": _files,
    "FILE": _files,
    "DIR|LIST...": _files,
}
_OPTIONS: Final[Mapping[str, Source]] = {
    "PATH=VALUE": _settings,
    "[FILE]": _json_file,
    "FILE": _files,
    "PLACE": _files,
    "SPEC": _files,
    "DIR": _folders,
    "RESULTS": _folders,
}


def source_of(parameter: click.Parameter) -> Source | None:
    """What a parameter of archc's commands is completed from; None where click knows, or nothing is to be known."""
    if not isinstance(parameter.type, click.types.StringParamType):
        return None
    metavars = _OPERANDS if isinstance(parameter, click.Argument) else _OPTIONS
    return metavars.get(parameter.metavar or "")


class _Completed(click.types.StringParamType):
    """A text with completions."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        return list(self._source(ctx, incomplete))


def prepare(arguments: list[str]) -> None:
    """Give the command that the arguments name its completions."""
    name = arguments[0] if arguments else ""
    if name in COMMANDS:
        for parameter in import_module(COMMANDS[name][0]).command.params:
            if source := source_of(parameter):
                parameter.type = _Completed(source)


class _Prepared(ShellComplete):
    """Before click looks for completions, the command gets them."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        prepare(args)
        return super().get_completions(args, incomplete)


class Bash(_Prepared, BashComplete):
    """Bash, which hands over `attention.heads=4` as three words, and replaces the last alone."""

    source_template: ClassVar[str] = _BASH
    _kept: str = ""
    """The part of the word that bash keeps."""

    def get_completion_args(self) -> tuple[list[str], str]:
        words, cursor = os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
        words = [*words[: cursor + 1], *[""] * (cursor + 1 - len(words))]
        joined: list[str] = []
        glue = False
        for word in words[1:]:
            splits = bool(_SPLITS.fullmatch(word))
            if joined and (splits or glue):
                joined[-1] += word
            else:
                joined.append(word)
            glue = splits
        incomplete = joined.pop() if joined else ""
        self._kept = incomplete.removesuffix(words[-1]) if not glue else incomplete
        return joined, incomplete

    def format_completion(self, item: CompletionItem[Any]) -> str:
        return f"{item.type},{item.value.removeprefix(self._kept)}"


class Zsh(_Prepared, ZshComplete):
    """Zsh."""

    source_template: ClassVar[str] = _ZSH


class Fish(_Prepared, FishComplete):
    """Fish, which by itself sets no space behind a word that ends in =."""

    source_template: ClassVar[str] = _FISH


def register() -> None:
    """Let click take these classes for its own ones."""
    for shell in (Bash, Zsh, Fish):
        add_completion_class(shell)
