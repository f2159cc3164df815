"""The report of a model for a reader at a terminal: at most 80 columns, the same without one.

What a figure is, stands at its left; what it holds for, at its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from typing import cast

from rich.console import Console
from rich.text import Text

from archc.analysis.cache import CacheKind
from archc.analysis.fits import Fits
from archc.analysis.params import Params
from archc.analysis.report import LayerRow, Report
from archc.analysis.rope import RopeFigures
from archc.render.terminal import Row, aligned
from archc.render.units import both_bytes, decimal_bytes, exact, operations, percent, short_count

LABEL = 18
VALUE = 24
BAR = 20
WIDTH = 80
KINDS_SHOWN = 8
_EIGHTHS = " ▏▎▍▌▋▊▉"

# Group of the report → what a reader calls it.
GROUPS = (
    ("embedding", "embedding"),
    ("position", "position table"),
    ("attention", "attention"),
    ("ffn", "feed-forward"),
    ("router", "routers"),
    ("norm", "norms"),
    ("other", "other"),
    ("head", "head"),
)


def parts_of(params: Params) -> list[tuple[str, str, int]]:
    """The groups that a model has parameters in, what they are called there, and how many."""
    counts = cast(Mapping[str, int], params)
    names = dict(GROUPS) | ({} if params["head"] else {"embedding": "embedding = head"})
    return [(key, name, counts[key]) for key, name in names.items() if counts[key]]


def print_report(report: Report, out: Console) -> None:
    """Print all of `report`; its table of layers too, if it has one."""
    plain = out.options.ascii_only
    for line in report_lines(report, plain=plain):
        out.print(line)


def report_lines(report: Report, *, plain: bool = False) -> Iterator[Text]:
    """The lines of a report. `plain` draws bars with characters that every encoding has."""
    yield from _title(report)
    yield Text()
    yield from _params(report, plain)
    yield Text()
    yield from _shape(report)
    yield Text()
    yield from _memory(report)
    yield Text()
    yield from _flops(report)
    if "rope" in report:
        yield Text()
        yield from _rope(report)
    if report["limits"]["hard_context"] is not None:
        yield Text()
        rows = report["limits"]["hard_context"]
        yield _line("Position table", f"{exact(rows)} rows", "there is no position beyond", head=True)
    beside = [*report.get("notes", ()), *(f"not in the spec: {text}" for text in report.get("undeclared", ()))]
    if beside:
        yield Text()
        yield Text("Beside these figures", style="bold")
        yield from _listed(beside)
    if "fits" in report:
        yield Text()
        yield from _fits(report["fits"], report)
    if "layer_table" in report:
        yield Text()
        yield from _layers(report["layer_table"])
        yield Text()
        yield Text("What is counted", style="bold")
        yield from _listed([*report["flops"]["conventions"], *report["weights"]["conventions"]])


def _line(label: str, value: str, note: str = "", *, head: bool = False) -> Text:
    """Label, value and note in columns; a value that is too long pushes its note along."""
    label = label if head else f"  {label}"
    text = Text()
    text.append(f"{label:<{LABEL}} ", style="bold" if head else "")
    text.append(f"{value:<{VALUE}} " if note else value)
    text.append(note, style="dim")
    return text


def _title(report: Report) -> Iterator[Text]:
    family = f"  stored as {report['family']}" if report["family"] else ""
    yield Text.assemble((report["name"], "bold"), (family, "dim"))
    yield Text(
        f"{exact(report['layers'])} layers of width {exact(report['hidden_size'])}, "
        f"vocabulary {exact(report['vocab_size'])}, context {exact(report['context'])}, {report['dtype']}"
    )


def _params(report: Report, plain: bool) -> Iterator[Text]:
    params = report["params"]
    total = params["total"]
    yield _line("Parameters", short_count(total), exact(total), head=True)
    for _, label, count in parts_of(params):
        share = count / total
        line = _line(label, f"{short_count(count):>9}  {percent(share):>7}")
        bar = _bar(share, plain)
        yield line.append(f"  {bar}", style="cyan") if bar else line
    if params["active"] != total:
        yield _line("active", f"{short_count(params['active']):>9}", "per token, both ends included")
    block = report["block"]
    shares = f"{percent(block['ffn_share'])} feed-forward, {percent(block['attention_share'])} attention"
    yield _line("of the blocks", shares)


def _bar(share: float, plain: bool) -> str:
    if plain:
        return "#" * round(share * BAR)
    whole, eighth = divmod(round(share * BAR * 8), 8)
    return ("█" * whole + _EIGHTHS[eighth]).rstrip()


def _shape(report: Report) -> Iterator[Text]:
    if set(report["mixers"]) - {"gqa"}:
        yield _line("Mixers", ", ".join(f"{layers} {kind}" for kind, layers in report["mixers"].items()), head=True)
    if "attention" in report:
        heads = report["attention"]
        query, shared = _several(heads["heads"], "query head"), _several(heads["kv_heads"], "key/value head")
        yield _line("Attention", f"{query} over {shared}, {exact(heads['head_dim'])} channels each", head=True)
    if "ffn" in report:
        ffn = report["ffn"]
        yield _line("Feed-forward", f"{ffn['kind']}, {exact(ffn['width'])} channels", head=True)
    if "moe" in report:
        moe = report["moe"]
        value = f"{exact(moe['experts'])}, of which a token uses {exact(moe['top_k'])}"
        yield _line("Experts", value, head=True)
        note = f"{percent(moe['expert_share'])} of all parameters"
        yield _line("all of them", short_count(moe["expert_params"]), note)
        yield _line("each", short_count(moe["params_per_expert"]))
    kinds = report.get("layer_kinds", {})
    most = max(kinds, key=lambda kind: kinds[kind], default="")
    for index, kind in enumerate(list(kinds)[:KINDS_SHOWN]):
        note = "above: the most common kind" if kind == most else ""
        yield _line("Kinds of layer" if index == 0 else "", f"{kinds[kind]} {kind}", note, head=index == 0)
    if len(kinds) > KINDS_SHOWN:
        yield _line("", f"and {len(kinds) - KINDS_SHOWN} more", "--layers lists every layer")


def _memory(report: Report) -> Iterator[Text]:
    cache, weights = report["kv_cache"], report["weights"]
    growing, window = cache["bytes_per_token"], cache["window_bytes_per_token"]
    yield _line("KV cache", cache["dtype"], head=True)
    yield _line("per token", both_bytes(growing), f"{exact(cache['elements_per_token'])} numbers")
    if window:
        yield _line("", both_bytes(window), "more until the windows are full")
    sequences = "" if cache["batch"] == 1 else f" × {exact(cache['batch'])} sequences"
    yield _line(f"at {exact(cache['context'])}", both_bytes(cache["bytes_at_context"]), f"tokens{sequences}")
    if cache["bytes_at_context_reserved"] != cache["bytes_at_context"]:
        yield _line("", both_bytes(cache["bytes_at_context_reserved"]), "where every layer gets full pages")
    if cache["fixed_state_bytes"]:
        states = "" if cache["state_dtype"] == cache["dtype"] else f", {cache['state_dtype']}"
        yield _line("states", both_bytes(cache["fixed_state_bytes"]), f"a sequence, of any length{states}")
    if set(cache["by_kind"]) - {"full"}:
        for kind, sizes in cache["by_kind"].items():
            yield _line(f"  {kind}", _several(sizes["layers"], "layer"), _holds(sizes))
    yield _line("Weights", both_bytes(weights["bytes"]), weights["dtype"], head=True)
    formats = weights["formats"]
    if weights["dtype"] != "bfloat16":
        yield _line("bfloat16", both_bytes(formats["bfloat16"]))
    yield _line("float8", both_bytes(formats["float8"]), "matrices of layers; rest bfloat16")
    yield _line("int4", both_bytes(formats["int4_g128"]), "the same, with a scale per 128")


def _holds(sizes: CacheKind) -> str:
    growing, window, fixed = (
        sizes["elements_per_token"],
        sizes["window_elements_per_token"],
        sizes["fixed_elements"],
    )
    found = [f"{exact(growing)} per token"] if growing else []
    found += [f"{exact(window)} until full"] if window else []
    found += [f"{exact(fixed)} fixed"] if fixed else []
    return ", ".join(found)


def _flops(report: Report) -> Iterator[Text]:
    flops = report["flops"]
    context = exact(flops["context"])
    yield _line("Arithmetic", "matrix products alone", head=True)
    yield _line("per token", operations(flops["forward_per_token"]), f"mean over a context of {context}")
    yield _line("decoding", operations(flops["decode_per_token"]), f"the last of {context} tokens")
    yield _line("prefill", operations(flops["prefill_full_square"]), f"{context} tokens, all pairs counted")


def _fits(fits: Fits, report: Report) -> Iterator[Text]:
    cache, trained = report["kv_cache"], report["limits"]["trained_context"]
    yield _line("Fits into", both_bytes(fits["bytes"]), f"weights {decimal_bytes(fits['weights_bytes'])}", head=True)
    if not fits["weights_fit"]:
        yield _line("", "nothing: the weights alone are larger")
        return
    yield _line("left", both_bytes(fits["remaining_bytes"]), "for the cache")
    yield _line("largest batch", _limit(fits["largest_batch"], "sequence"), f"of {exact(cache['context'])} tokens")
    sequences = _several(cache["batch"], "sequence")
    yield _line("largest context", _limit(fits["largest_context"], "token"), f"of {sequences}")
    if not fits["within_trained_context"]:
        yield _line("", "", f"beyond the trained {exact(trained)}")
    yield from _listed(fits["leaves_out"], "left out: ")


def _limit(most: int | None, thing: str) -> str:
    return "no limit" if most is None else _several(most, thing)


def _listed(lines: Sequence[str], lead: str = "") -> Iterator[Text]:
    """Sentences, a paragraph each; with a `lead`, all in one."""
    for line in [lead + "; ".join(lines)] if lead else lines:
        for part in wrap(line, WIDTH, initial_indent="  ", subsequent_indent="  " if lead else "    "):
            yield Text(part, style="dim")


def _rope(report: Report) -> Iterator[Text]:
    rope = report["rope"]
    if "by_kind" not in rope:
        yield _line("Rotary positions", _table(rope), head=True)
        yield from _periods(rope)
        return
    kinds = list(rope["by_kind"].items())
    tables = [figures for index, (_, figures) in enumerate(kinds) if figures not in [f for _, f in kinds[:index]]]
    for index, figures in enumerate(tables):
        label = "Rotary positions" if index == 0 else ""
        names = _short(", ".join(kind for kind, other in kinds if other == figures), 18)
        yield _line(label, f"{names}: {'none' if figures is None else _table(figures)}", head=True)
        if figures is not None:
            yield from _periods(figures)


def _table(rope: RopeFigures) -> str:
    return f"{exact(rope['pairs'])} pairs ({rope['pairing']}), base {rope['base']:,.10g}"


def _periods(rope: RopeFigures) -> Iterator[Text]:
    yield _line("fastest pair", f"turns once in {exact(rope['fastest_period'])} positions")
    yield _line("slowest pair", f"turns once in {exact(rope['slowest_period'])} positions")
    scaling = rope["scaling"]
    if scaling is not None:
        fates = [f"{scaling['unchanged']} unchanged", f"{scaling['blended']} blended"]
        yield _line("scaling", f"{scaling['kind']}: {', '.join(fates)}, {scaling['stretched']} stretched")
    if rope["attention_factor"] != 1:
        yield _line("cosines, sines", f"× {rope['attention_factor']:.6g}")


def _layers(table: list[LayerRow]) -> Iterator[Text]:
    """Equal neighbours share a line."""
    rows: list[Row] = [("layers", "kind", "params", "heads", "feed-forward", "window", "rope base")]
    for _, group in groupby(table, key=lambda row: {key: value for key, value in row.items() if key != "index"}):
        run = list(group)
        first, ffn = run[0], run[0]["ffn"]
        rows.append(
            (
                str(first["index"]) if len(run) == 1 else f"{first['index']}-{run[-1]['index']}",
                _short(first["kind"], 14),
                short_count(first["params"]),
                _short(_mixer(first), 20),
                f"{ffn['kind']} {ffn['width']}" if ffn else "",
                "" if first["window"] is None else str(first["window"]),
                "" if first["rope_base"] is None else f"{first['rope_base']:.10g}",
            )
        )
    empty = {index for index in range(len(rows[0])) if not any(row[index] for row in rows[1:])}
    shown = [tuple(cell for index, cell in enumerate(row) if index not in empty) for row in rows]
    for index, line in enumerate(aligned(shown, right={2})):
        yield Text(line, style="bold" if index == 0 else "")


def _mixer(row: LayerRow) -> str:
    """The heads of attention, and the name of every other mixer: 32/8×128 + mamba2."""
    heads, kinds = row["attention"], (row["mixer"] or "").split(" + ")
    shape = f"{heads['heads']}/{heads['kv_heads']}×{heads['head_dim']}" if heads else ""
    named = [kind for kind in kinds if kind != "gqa"]
    return " + ".join(filter(None, [shape if "gqa" in kinds else "", *named]))


def _several(count: int, thing: str) -> str:
    return f"{exact(count)} {thing}{'' if count == 1 else 's'}"


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
