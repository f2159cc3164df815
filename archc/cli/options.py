"""Options that several commands share, and the one rule for `--json`."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeVar

import click

from archc import resources
from archc.errors import UsageError

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])

STDOUT: Final = "-"
MOST: Final = 2**40
MOST_BYTES: Final = 2**60
_NEVER_JSON = (".yaml", ".yml")


def count(text: str) -> int:
    """The type of options that count something: a whole number from 1 to 2**40.

    Beyond, sizes would leave the range in which floats are exact.
    """
    plain = text.isascii() and text.isdigit() and len(text) <= len(str(MOST))
    if not plain or not 1 <= int(text) <= MOST:
        raise click.BadParameter(f"{text[:40]!r} is not a whole number from 1 to 2**40.")
    return int(text)


def byte_size(text: str) -> int:
    """The type of options that give a size in memory, such as 80GiB, 24 GB or 1.5e9 (bytes).

    A fraction of a byte is dropped.
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?(?:e[0-9]{1,2})?) ?([kmgt]?i?b)?", text.strip()[:60], re.IGNORECASE)
    unit = (match[2] or "b").lower() if match else ""
    if match is None or unit == "ib":
        raise click.BadParameter(f"{text[:40]!r} is not a size, such as 80GiB, 80GB, 500MiB or a number of bytes.")
    power = "bkmgt".index(unit[0])
    size = int(Decimal(match[1]) * (1024 if "i" in unit else 1000) ** power)
    if not 1 <= size <= MOST_BYTES:
        raise click.BadParameter(f"{text[:40]!r} is not between one byte and 2**60.")
    return size


def spec_argument(function: AnyFunction) -> AnyFunction:
    """Add the argument SPEC, passed as `spec`."""
    return click.argument("spec", metavar="SPEC")(function)


def dtype_options(function: AnyFunction) -> AnyFunction:
    """Add `--dtype`, `--kv-dtype` and `--state-dtype`."""
    from archc.analysis.dtypes import BITS

    kind = click.Choice(list(BITS))
    for name, help_line in (
        ("--state-dtype", "Type of recurrent states; the cache's unless given."),
        ("--kv-dtype", "Type of the cache; the spec's unless given."),
        ("--dtype", "Type of the weights; the spec's unless given."),
    ):
        function = click.option(name, type=kind, help=help_line)(function)
    return function


def set_option(function: AnyFunction) -> AnyFunction:
    """Add `--set PATH=VALUE`, as often as wanted, passed as the tuple `overrides`."""
    return click.option(
        "--set",
        "overrides",
        metavar="PATH=VALUE",
        multiple=True,
        help="Change a field, such as attention.kv_heads=8. May be repeated.",
    )(function)


def output_option(*names: str, **how: Any) -> Callable[[AnyFunction], AnyFunction]:
    """An option that names a file to write; two of a command must not name the same one."""
    return click.option(*names, callback=_file_of_its_own, **how)


def _file_of_its_own(context: click.Context, option: click.Parameter, target: str | None) -> str | None:
    if target not in {None, STDOUT}:
        outputs: dict[str, str] = context.meta.setdefault(f"{__name__}.outputs", {})
        first = outputs.setdefault(os.path.realpath(str(target)), option.opts[0])
        if first != option.opts[0]:
            raise UsageError(f"{first} and {option.opts[0]} would both write {target}", "give each a file of its own")
    return target


def json_option(function: AnyFunction) -> AnyFunction:
    """Add `--json [FILE]`, passed as `json_target`: None without it, "-" for standard output, else a path.

    It comes with `--force`, passed as `force`: whether a file may be replaced that archc did not write.
    """
    function = force_option(function)
    return output_option(
        "--json",
        "json_target",
        metavar="[FILE]",
        help="Print one JSON document and nothing else, or write it to FILE.",
    )(function)


def html_option(function: AnyFunction) -> AnyFunction:
    """Add `--html FILE`, passed as `html`."""
    option = output_option("--html", metavar="FILE", help="Write a page with charts: one file that loads nothing.")
    return option(function)


def force_option(function: AnyFunction) -> AnyFunction:
    """Add `--force`, passed as `force`."""
    return click.option(
        "--force", is_flag=True, help="Replace an output file that archc did not write, or that was changed since."
    )(function)


def settle_json(command: click.Command, arguments: list[str]) -> list[str]:
    """Decide what the word after a bare `--json` is, and write the decision into the arguments.

    click would take any word for the FILE, and `archc report --json gpt2` would then lack its SPEC. The word is an
    operand, and the document goes to standard output, if too few operands would be left without it, if it ends in
    .yaml or .yml, or if it is the name of a shipped spec. Otherwise it is the FILE; `-` and `--json=FILE` always are.
    """
    if not any("--json" in parameter.opts for parameter in command.params):
        return arguments
    roles = _roles(command, arguments)
    operands = roles.count("operand")
    settled: list[str] = []
    for word, role in zip(arguments, roles, strict=True):
        if role == "json":
            settled.append(f"--json={STDOUT}")
        elif role == "perhaps a file" and not _is_operand(word, operands < _required_operands(command)):
            settled[-1] = f"--json={word}"
        else:
            settled.append(word)
            operands += role == "perhaps a file"
    return settled


def _roles(command: click.Command, arguments: list[str]) -> list[str]:
    """What every word is: an option, its value, an operand, `--json`, or the word after it."""
    valued = [o for o in command.params if isinstance(o, click.Option) and not o.is_flag and "--json" not in o.opts]
    takes_value = {name for option in valued for name in option.opts}
    roles: list[str] = []
    only_operands = False
    for word in arguments:
        before = roles[-1] if roles else ""
        dashed = word.startswith("-") and word != STDOUT
        if only_operands:
            roles.append("operand")
        elif before == "needs a value":
            roles.append("value")
        elif before == "json" and not dashed:
            roles.append("perhaps a file")
        elif word == "--":
            only_operands = True
            roles.append("option")
        elif word == "--json":
            roles.append("json")
        elif word in takes_value:
            roles.append("needs a value")
        else:
            roles.append("option" if dashed else "operand")
    return roles


def _is_operand(word: str, needed: bool) -> bool:
    """Whether the word after `--json` is an operand; `needed` says that the command lacks one."""
    if word == STDOUT:
        return False
    return needed or word.endswith(_NEVER_JSON) or (resources.folder("specs") / f"{word}.yaml").is_file()


def _required_operands(command: click.Command) -> int:
    operands = [p for p in command.params if isinstance(p, click.Argument) and p.required]
    return sum(max(1, operand.nargs) for operand in operands)
