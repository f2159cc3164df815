"""Faults of what a query sees, and of where it stands: masks, padding, numbers of positions."""

from __future__ import annotations

from collections.abc import Iterator

from archc.architecture.model import Architecture
from archc.faults.base import Edit, Fault, Slip
from archc.faults.code import Way, code_slips, mask_way, way
from archc.faults.facts import chunks, counts_positions, has_ropes, numbers_positions, ropes

_PADDED = ("left-padded batch",)
_PADDING = r"attention_mask\[:, None, None\]\.bool\(\)"
_TRIANGLE = r"causal_TS, itself_TS = ones_TS\.tril\(past\), "
_DEFAULT_POSITIONS = r"^        if position_ids is None:\n    (        position_ids = .*)$"

_ITSELF_ALONE = (
    r"^( +)(visible_BTS = causal_TS & .*) \| itself_TS$",
    r"\1\2\n\1visible_BTS = visible_BTS | itself_TS & ~visible_BTS.any(-1, keepdim=True)",
)
"""A query sees itself where it sees nothing else, or its softmax would run over nothing."""


def _tables(architecture: Architecture) -> Iterator[Slip]:
    """A table of rotations that ends with the context, or with the one before it was stretched."""
    if not has_ropes(architecture) or architecture.embedding.table is not None:
        return
    lengths = {rope.original_context for rope in ropes(architecture)} | {architecture.context}
    for length in sorted(length for length in lengths if length):
        for word, ending in (("the last row again", "clamp(max={})"), ("the rows again", "remainder({} + 1)")):
            edit = (_DEFAULT_POSITIONS, rf"\g<0>\n        position_ids = position_ids.{ending.format(length - 1)}")
            yield from code_slips("no end", way(f"{word} from {length} on", edit))(architecture)


FAULTS = (
    Fault(
        id="mask.causal",
        field="mask.causal",
        kind="runtime",
        wrong="A query sees what comes after it, or does not see itself.",
        when="all models",
        mend="let query i see keys 0 to i, its own included, with and without a cache",
        slips=code_slips(
            "up to itself",
            mask_way("none", (_TRIANGLE, "causal_TS, itself_TS = ones_TS, ")),
            mask_way(
                "none without a cache",
                (_TRIANGLE, "causal_TS, itself_TS = ones_TS if cache is None else ones_TS.tril(past), "),
            ),
            mask_way("up to the next token", (_TRIANGLE, "causal_TS, itself_TS = ones_TS.tril(past + 1), ")),
            mask_way(
                "up to the token before",
                (_TRIANGLE, "causal_TS, itself_TS = ones_TS.tril(past - 1), "),
                _ITSELF_ALONE,
            ),
        ),
        seen=("meta-pytorch/torchtune#959", "huggingface/candle#3551"),
    ),
    Fault(
        id="padding.mask",
        field="padding.mask",
        kind="runtime",
        wrong="Tokens see the padding before them, or the mask is read from its other end.",
        when="batches of rows of unequal length",
        mend="hide the keys at which the row's own attention mask is 0",
        slips=code_slips(
            "hides padding",
            way("ignored", (_PADDING, "torch.ones_like(attention_mask)[:, None, None].bool()")),
            way("read from its end", (_PADDING, "attention_mask.flip(-1)[:, None, None].bool()"), _ITSELF_ALONE),
        ),
        seen=("huggingface/transformers#46634",),
        probes=_PADDED,
    ),
    Fault(
        id="padding.positions",
        field="padding.positions",
        kind="runtime",
        wrong="Positions count the padding before a row, so that all rows share one list of them.",
        when="models with a table of positions, or with queries that grow with them",
        mend="count from the first token of each row: cumsum(attention_mask) - 1",
        slips=code_slips(
            "skip padding",
            way(
                "count padding",
                (
                    _DEFAULT_POSITIONS,
                    r"\g<0>\n        if not attention_mask.all():"
                    r"\n            position_ids = torch.arange(past, past + new, device=input_ids.device)[None]",
                ),
            ),
            fits=counts_positions,
        ),
        seen=("unslothai/unsloth#3699",),
        probes=_PADDED,
        same_when="positions are rotary alone: padding moves queries and keys alike, and distances stay",
    ),
    Fault(
        id="padding.chunk",
        field="attention.chunk",
        kind="runtime",
        wrong="Chunks are counted from the padding before a row.",
        when="layers that see a chunk",
        mend="count chunks from the first token of a row",
        slips=code_slips(
            lambda architecture: " and ".join(map(str, chunks(architecture))),
            way("counted from the padding", (r"\(torch\.arange\((.*)\) - padding_B1\)", r"torch.arange(\1)[None]")),
            fits=lambda architecture: bool(chunks(architecture)),
        ),
        probes=_PADDED,
    ),
    Fault(
        id="positions.given",
        field="positions.given",
        kind="runtime",
        wrong="Positions that are handed in are ignored: the model counts for itself.",
        when="models in which positions have numbers",
        mend="use position_ids where they are given, in every layer",
        slips=code_slips("used", Way("ignored", (Edit(_DEFAULT_POSITIONS, r"\1"),)), fits=numbers_positions),
        seen=("huggingface/candle#3551",),
        probes=("distant positions",),
    ),
    Fault(
        id="positions.table",
        field="context",
        kind="runtime",
        wrong="Rotations come from a table that is too short: later positions get its last row, or start again.",
        when="models with rotary positions",
        mend="build the table for the longest input that is admitted, or work rotations out as positions come",
        slips=_tables,
        seen=("pegainfer-project/pegainfer#220",),
        probes=("beyond the context", "distant positions"),
    ),
)
