"""The report of a model for a reader at a terminal: at most 80 columns, the same without one.

What a figure is, stands at its left; what it holds for, at its right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich.console import Console
from rich.text import Text

from archc.analysis.report import LayerRow, Report
from archc.analysis.rope import RopeFigures
from archc.render.terminal import Row, aligned
from archc.render.units import both_bytes, exact, operations, percent, short_count

LABEL = 18
VALUE = 24
BAR = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"

# Group of the report → what a reader calls it.
_GROUPS = (
    ("embedding", "embedding"),
    ("position", "position table"),
    ("attention", "attention"),
    ("ffn", "feed-forward"),
    ("router", "routers"),
    ("norm", "norms"),
    ("other", "other"),
    ("head", "head"),
)


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
    if "layer_table" in report:
        yield Text()
        yield from _layers(report["layer_table"])


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
    for key, name in _GROUPS:
        count: int = params[key]  # type: ignore[literal-required]
        if not count:
            continue
        share = count / total
        label = "embedding = head" if key == "embedding" and not params["head"] else name
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
    heads = report["attention"]
    query, shared = _several(heads["heads"], "query head"), _several(heads["kv_heads"], "key/value head")
    yield _line("Attention", f"{query} over {shared}, {exact(heads['head_dim'])} channels each", head=True)
    ffn = report["ffn"]
    yield _line("Feed-forward", f"{ffn['kind']}, {exact(ffn['width'])} channels", head=True)
    if "moe" in report:
        moe = report["moe"]
        value = f"{exact(moe['experts'])}, of which a token uses {exact(moe['top_k'])}"
        yield _line("Experts", value, head=True)
        note = f"{percent(moe['expert_share'])} of all parameters"
        yield _line("all of them", short_count(moe["expert_params"]), note)
        yield _line("each", short_count(moe["params_per_expert"]))
    if "layer_kinds" in report:
        kinds = [f"{count} {kind}" for kind, count in report["layer_kinds"].items()]
        for index, kind in enumerate(kinds):
            note = "above: the most common kind" if index == 0 else ""
            yield _line("Kinds of layer" if index == 0 else "", kind, note, head=index == 0)


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
        yield _line("states", both_bytes(cache["fixed_state_bytes"]), "whatever the context")
    yield _line("Weights", both_bytes(weights["bytes"]), weights["dtype"], head=True)


def _flops(report: Report) -> Iterator[Text]:
    flops = report["flops"]
    context = exact(flops["context"])
    yield _line("Arithmetic", "matrix products alone", head=True)
    yield _line("per token", operations(flops["forward_per_token"]), f"mean over a context of {context}")
    yield _line("prefill", operations(flops["prefill_full_square"]), f"{context} tokens, every pair counted")


def _rope(report: Report) -> Iterator[Text]:
    rope = report["rope"]
    if "by_kind" not in rope:
        yield _line("Rotary positions", _table(rope), head=True)
        yield from _periods(rope)
        return
    for index, (kind, figures) in enumerate(rope["by_kind"].items()):
        label = "Rotary positions" if index == 0 else ""
        value = f"{kind}: none" if figures is None else f"{kind}: {_table(figures)}"
        yield _line(label, value, head=True)
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
        first, heads = run[0], run[0]["attention"]
        rows.append(
            (
                str(first["index"]) if len(run) == 1 else f"{first['index']}-{run[-1]['index']}",
                _short(first["kind"], 16),
                short_count(first["params"]),
                f"{heads['heads']}/{heads['kv_heads']}×{heads['head_dim']}",
                f"{first['ffn']['kind']} {first['ffn']['width']}",
                "" if first["window"] is None else str(first["window"]),
                "" if first["rope_base"] is None else f"{first['rope_base']:.10g}",
            )
        )
    for index, line in enumerate(aligned(rows, right={2})):
        yield Text(line, style="bold" if index == 0 else "")


def _several(count: int, thing: str) -> str:
    return f"{exact(count)} {thing}{'' if count == 1 else 's'}"


def _short(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"
