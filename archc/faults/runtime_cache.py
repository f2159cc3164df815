"""Faults of decoding: what a cache keeps, and what its queries see of it."""

from __future__ import annotations

from archc.architecture.model import Architecture
from archc.faults.base import Fault
from archc.faults.code import code_slips, mask_way, way
from archc.faults.facts import chunks, has_ropes, numbers_positions, of_kind, windows
from archc.parts.attention import Attention

_CACHE = ("cache",)
_CAUSAL = r"^( +)causal_TS, itself_TS = ones_TS\.tril\(past\), ones_TS\.tril\(past\)\.triu\(past\)"
_WINDOWED = r"\.triu\(past - (\w+) \+ 1\)"
_POSITIONS = r"^( +position_ids = \(attention_mask\.cumsum.*)\[:, -new:\]$"
_KEPT_KEYS = (
    r"((\w*rotate)\((?:k_BKTC|key_BTC\[:, None\]|self\.k_norm\(key_BTC\)\[:, None\]), \*rotation\)"
    r"(?:.*\n)+?.*cache\.append\(self\.layer, (?:latent_B1SR, )?)(k_BKTC|key_B1SC)"
)
"""From where keys turn, in some attention, to where they are handed to the cache."""
_STORED = r"^( +self\.\w+\[layer\]\[:, :, self\.length : end\] = | +remember\(self\.\w+\[layer\], self\.length, )(\w+)"
_IF_TURNED = "if rotation is not None else"


def _has_alibi(architecture: Architecture) -> bool:
    return any(part.alibi is not None for part in of_kind(Attention, architecture))


def _kept(cosines_and_sines: str) -> tuple[str, str]:
    return _KEPT_KEYS, rf"\1(\2(\3, {cosines_and_sines}) {_IF_TURNED} \3)"


FAULTS = (
    Fault(
        id="cache.positions",
        field="cache.positions",
        kind="runtime",
        wrong="What comes after the prefill does not go on counting where the cache ends.",
        when="models in which positions have numbers",
        mend="add the number of cached positions to those of the new tokens, once",
        slips=code_slips(
            "go on",
            way("start again", (_POSITIONS, r"\1[:, :new]")),
            way("one ahead", (_POSITIONS, r"\1[:, -new:] + (past > 0)")),
            fits=numbers_positions,
        ),
        seen=("ml-explore/mlx-lm#1396",),
        probes=_CACHE,
    ),
    Fault(
        id="cache.mask",
        field="cache.mask",
        kind="runtime",
        wrong="The causal mask of a piece behind cached keys starts at the first key, or is left out.",
        when="models that decode in pieces of several tokens",
        mend="align the mask with the end of the keys: query i of n over s keys sees keys 0 to s - n + i",
        slips=code_slips(
            "aligned with the last key",
            mask_way(
                "aligned with the first key",
                (
                    _CAUSAL,
                    r"\1seen = past if new == 1 else 0\n"
                    r"\1causal_TS, itself_TS = ones_TS.tril(seen), ones_TS.tril(seen).triu(seen)",
                ),
            ),
            mask_way(
                "none behind cached keys",
                (
                    _CAUSAL,
                    r"\1causal_TS = ones_TS if past else ones_TS.tril()\n"
                    r"\1itself_TS = ones_TS.tril(past).triu(past)",
                ),
            ),
        ),
        seen=("huggingface/candle#3551",),
        probes=_CACHE,
    ),
    Fault(
        id="cache.window",
        field="attention.window",
        kind="runtime",
        wrong="The window of a query that meets cached keys is not the one of the full pass.",
        when="layers with a window",
        mend="keep window - 1 positions behind the query's own, in the cache as in the mask",
        slips=code_slips(
            lambda architecture: " and ".join(map(str, windows(architecture))),
            mask_way("one less behind cached keys", (_WINDOWED, r".triu(past - \1 + 1 + (past > 0))")),
            mask_way("one more behind cached keys", (_WINDOWED, r".triu(past - \1 + 1 - (past > 0))")),
            mask_way("none behind cached keys", (_WINDOWED, r".triu(-new if past else 1 - \1)")),
            fits=lambda architecture: bool(windows(architecture)),
        ),
        seen=("huggingface/transformers#31775",),
        probes=_CACHE,
    ),
    Fault(
        id="cache.chunk",
        field="attention.chunk",
        kind="runtime",
        wrong="Behind cached keys, the chunk of a query is counted from the start of its piece.",
        when="layers that see a chunk",
        mend="count chunks from the first cached token",
        slips=code_slips(
            lambda architecture: " and ".join(map(str, chunks(architecture))),
            way("counted from the piece", (r"chunk_BS\[:, None, -new:, None\]", "chunk_BS[:, None, :new, None]")),
            fits=lambda architecture: bool(chunks(architecture)),
        ),
        probes=_CACHE,
    ),
    Fault(
        id="cache.rows",
        field="cache.rows",
        kind="runtime",
        wrong="In a cache that holds no more than a window, a token takes a row that is still seen, or the mask takes "
        "the rows to be in the order of their positions.",
        when="layers with a window or chunks of more than one position",
        mend="write position p to row p modulo the window; keep the rows that a piece of several tokens takes until "
        "its queries have seen them; and give the mask the columns of the positions that rows hold, in their order",
        slips=code_slips(
            "those of the window",
            mask_way(
                "taken before they are seen",
                (
                    r"^( +return as_remembered\(visible_BTS.*), (window|chunk)\)$",
                    r"\1 & ((torch.arange(total) >= total - \2) | (new > \2)), \2)",
                ),
            ),
            mask_way(
                "masked in the order of positions",
                (r"\(\(place_S, unwritten_N\)\)", "((place_S.sort().values, unwritten_N))"),
            ),
            way("written one row off", (r"^( +start = )past % rows$", r"\1(past + (past >= rows)) % rows")),
            fits=lambda architecture: any(size > 1 for size in windows(architecture) + chunks(architecture)),
        ),
        probes=_CACHE,
    ),
    Fault(
        id="cache.keys",
        field="cache.keys",
        kind="runtime",
        wrong="Keys turn twice on their way through the cache, or never.",
        when="layers with rotary positions",
        mend="store keys once they have turned, and hand them on as they are stored; or store plain ones, and turn all",
        slips=code_slips(
            "turned once",
            way("turned twice", _kept("*rotation")),
            way("not turned", _kept("rotation[0], -rotation[1]")),
            fits=has_ropes,
        ),
        seen=("huggingface/transformers#25104",),
        probes=_CACHE,
        same_when="with an attention factor other than 1, keys that have not turned are scaled by it all the same",
    ),
    Fault(
        id="cache.length",
        field="cache.length",
        kind="runtime",
        wrong="The cache does not grow: every piece overwrites the one before, and sees itself alone.",
        when="models that decode through a cache",
        mend="advance the cache's length by the tokens of a piece, once all layers have run",
        slips=code_slips("all pieces", way("the last piece", (r"^( +)cache\.length \+= new$", r"\1cache.length = 0"))),
        seen=("sgl-project/sglang#38666",),
        probes=_CACHE,
    ),
    Fault(
        id="cache.alibi",
        field="position.kind",
        kind="runtime",
        wrong="Distances are counted among the new tokens alone: for a single one, nothing is taken from its scores.",
        when="layers with ALiBi",
        mend="count distances from the query's place among all keys, those in the cache included",
        slips=code_slips(
            "alibi",
            way(
                "none behind cached keys",
                (r"(return -slopes_H\[:, None, None\] \* distance_TS)$", r"\1 * (new == total)"),
            ),
            fits=_has_alibi,
        ),
        seen=("keras-team/keras-hub#2862",),
        probes=_CACHE,
    ),
    Fault(
        id="cache.dtype",
        field="cache.dtype",
        kind="runtime",
        wrong="Keys and values are rounded to bfloat16 when they are stored.",
        when="models that decode through a cache",
        mend="allocate the cache in the type of the keys",
        slips=code_slips(
            "as computed",
            way("bfloat16", (_STORED, r"\1\2.bfloat16().to(\2.dtype)")),
        ),
        probes=_CACHE,
        same_when="the model itself runs in bfloat16",
    ),
)
