"""Ways to spoil what was valid: the text of a spec line by line, and a config key by key.

Every way draws from a seeded generator, so that a failure is repeated by its number.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

Text = list[str]
"""The lines of a spec."""

SCALARS = (
    *("0", "-1", "1", "2", "7", "3.5", "-0.0", "1e-400", "1e39", "1e308", "1e309", ".nan", ".inf", "-.inf", "nan"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "1099511627776", "1099511627777"),
    *("0x10", "0o17", "1_000", "true", "no", "null", "~", "''", '"\\ud800"', '"\\0"', "'1'", "x" * 5000, "ünïcode ☃"),
    *("rope", "gqa", "mla", "moe", "gated", "rmsnorm", "none", "kind", "[]", "{}", "[1, 2]", "{kind: moe}", "[[[]]]"),
    *("{kind: nope}", "{kind: null}", "{kind: 3}", "{kind: [rope]}", "{? [a] : b}", "*a", "&a 1", "!!python/name:os 1"),
    *(
        "{" * 30 + "}" * 30,
        "[" * 50 + "]" * 50,
        "{a: " * 45 + "1" + "}" * 45,
        "- 1",
        "a: b: c",
        "|",
        ">-",
        "%",
        "@",
        "\t",
    ),
)
"""What replaces the value of a key."""
LINES = (
    *("attention: null", "mixer: null", "ffn: null", "norm: null", "position: null", "residual: null", "block: null"),
    *("layers: null", "embedding: null", "logits: null", "streams: null", "passes: null", "archc: 2", "block: []"),
    *("mixer: {kind: mamba2}", "block: [{attention: {}}, {ffn: null}]", "block: [{mixer: {}}]", "undeclared: [1, x]"),
    *("layers: {count: 3, kinds: {}, pattern: ''}", "layers: {count: 2, kinds: {a: null}, pattern: 2*2*(a)}", "---"),
    *(
        "layers: {count: 10000, kinds: {a: null}, pattern: 10000*a}",
        "published: {params.total: {value: .nan}}",
        "\ufeff",
    ),
    *(
        "streams: {kind: altup, count: 0, active: -1}",
        "hidden_size: 1",
        "context: 1099511627776",
        "  stray: 1",
        "? ",
        ": ",
    ),
)
"""What is added to a spec, or stands in place of the key of that name."""


def delete_lines(lines: Text, random: Random) -> None:
    """Some lines are missing."""
    for _ in range(random.randint(1, 3)):
        if lines:
            del lines[random.randrange(len(lines))]


def repeat_lines(lines: Text, random: Random) -> None:
    """A line stands twice, perhaps somewhere else."""
    lines.insert(random.randrange(len(lines) + 1), random.choice(lines))


def swap_values(lines: Text, random: Random) -> None:
    """Two keys have each other's values."""
    keyed = [number for number, line in enumerate(lines) if ": " in line]
    one, other = random.choice(keyed), random.choice(keyed)
    (key, _, value), (other_key, _, other_value) = lines[one].partition(": "), lines[other].partition(": ")
    lines[one], lines[other] = f"{key}: {other_value}", f"{other_key}: {value}"


def replace_value(lines: Text, random: Random) -> None:
    """A value is another one, most likely of the wrong type or out of range; also inside {…}."""
    for _ in range(random.randint(1, 2)):
        number = random.choice([number for number, line in enumerate(lines) if ":" in line])
        starts = [at for at, sign in enumerate(lines[number]) if sign == ":"]
        start = random.choice(starts) + 1
        rest = lines[number][start:]
        end = next((at for at, sign in enumerate(rest) if sign in ",}"), len(rest))
        lines[number] = f"{lines[number][:start]} {random.choice(SCALARS)}{rest[end:]}"


def add_line(lines: Text, random: Random) -> None:
    """A line is added, mostly in place of the key that it states."""
    line = random.choice(LINES)
    key = line.partition(":")[0]
    old = next((number for number, other in enumerate(lines) if other.startswith(f"{key}:")), None)
    if old is not None and random.random() < 0.8:
        lines[old] = line
        while old + 1 < len(lines) and lines[old + 1].startswith(" "):
            del lines[old + 1]
    else:
        lines.insert(random.randrange(len(lines) + 1), line)


def rename_key(lines: Text, random: Random) -> None:
    """A key has the name of another, or one that is misspelled."""
    keys = [(number, line.partition(":")[0]) for number, line in enumerate(lines) if ":" in line]
    number, key = random.choice(keys)
    name = random.choice([random.choice(keys)[1].strip(), key.strip()[:-1], key.strip() + "ß", "kind", "<<", "1", "[]"])
    indent = key[: len(key) - len(key.lstrip())]
    lines[number] = f"{indent}{name}:{lines[number].partition(':')[2]}"


def damage_signs(lines: Text, random: Random) -> None:
    """A few characters are others, as after a bad transfer."""
    for _ in range(random.randint(1, 6)):
        number = random.randrange(len(lines))
        at = random.randrange(len(lines[number]) + 1)
        sign = random.choice("{}[]:,#'\"|&*!%@`?-\\\0\x07\t é☃\u202e\U0001f600\udc80")
        lines[number] = lines[number][:at] + sign + lines[number][at + random.randint(0, 1) :]


def cut_short(lines: Text, random: Random) -> None:
    """The text ends early."""
    del lines[random.randrange(len(lines)) :]


def indent(lines: Text, random: Random) -> None:
    """Some lines are deeper, or less deep, than they were."""
    for _ in range(random.randint(1, 3)):
        number = random.randrange(len(lines))
        lines[number] = random.choice((lines[number].lstrip(), " " * random.randint(1, 5) + lines[number]))


SPOILERS: tuple[Callable[[Text, Random], None], ...] = (
    delete_lines,
    repeat_lines,
    swap_values,
    replace_value,
    add_line,
    rename_key,
    damage_signs,
    cut_short,
    indent,
)


def spoiled(text: str, spoiler: Callable[[Text, Random], None], random: Random) -> str:
    """The text of a spec, spoiled one way, and now and then another way too."""
    lines = text.splitlines()
    spoiler(lines, random)
    if random.random() < 0.3 and len(lines) > 3:
        random.choice((delete_lines, replace_value, add_line))(lines, random)
    return "\n".join(lines) + "\n"


# ---------------------------------------------------------------- configs

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        3,
        7,
        10**5,
        10**9,
        2**40,
        2**63,
        10**30,
        -(10**30),
        0.0,
        -0.5,
        0.5,
        1e-30,
        1e300,
    ),
    *(
        float("inf"),
        float("-inf"),
        float("nan"),
        "",
        "12",
        "full_attention",
        "silu",
        "nonsense",
        "ünïcode ☃",
        "\x1b[31m",
    ),
    *("x" * 3000, [], [0], [1, 2, 3], ["full_attention"], ["sliding_attention", "nope"], [[]], [None], [10**12], {}),
    *({"type": "yarn"}, {"rope_type": "yarn", "factor": 0}, {"rope_type": "longrope", "factor": 4.0}, {"": 1}),
    *({"full_attention": {"rope_theta": 1.0}}, {"rope_type": "llama3", "factor": "x"}, {"model_type": "llama"}),
)
KEYS = (
    *(
        "head_dim",
        "num_key_value_heads",
        "rope_scaling",
        "rope_parameters",
        "rope_theta",
        "layer_types",
        "sliding_window",
    ),
    *("use_sliding_window", "hidden_act", "torch_dtype", "dtype", "text_config", "quantization_config", "auto_map"),
    *("num_hidden_layers", "num_layers", "n_layer", "partial_rotary_factor", "tie_word_embeddings", "attribute_map"),
    *("is_encoder_decoder", "max_position_embeddings", "architectures", "_name_or_path", "num_labels", "id2label", ""),
)


def places(config: dict[str, Any], depth: int = 0) -> Iterator[tuple[dict[str, Any], str]]:
    """Every key of a config, with the section that holds it."""
    for key, value in config.items():
        yield config, key
        if isinstance(value, dict) and depth < 3:
            yield from places(value, depth + 1)


def spoiled_config(config: dict[str, Any], random: Random) -> dict[str, Any]:
    """A copy of a config with a few things wrong."""
    config = copy.deepcopy(config)
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        section, key = random.choice([place for place in places(config) if place[1] != "model_type"])
        match random.randrange(6):
            case 0:
                del section[key]
            case 1:
                section[random.choice(KEYS)] = copy.deepcopy(random.choice(VALUES))
            case 2:
                section[key] = near(section[key], random)
            case 3:
                other, name = random.choice(list(places(config)))
                section[key] = copy.deepcopy(other[name]) if name != "model_type" else "model_type"
            case _:
                section[key] = copy.deepcopy(random.choice(VALUES))
    return config


def near(value: Any, random: Random) -> Any:
    """Something like the value, but wrong: a list too short or too long, a number beside it, a text cut short."""
    if isinstance(value, list):
        return random.choice((value[:-1], value + value, [*value, None], [value], value[::-1]))
    if isinstance(value, bool | None):
        return random.choice((int(bool(value)), str(value), not value))
    if isinstance(value, int | float):
        return random.choice((value + 1, -value, value * 10**6, value / 3, str(value), value - 1, [value]))
    return random.choice((value[:-1], value + "x", [value], None)) if isinstance(value, str) else [value]
