"""What a mixer remembers from token to token: a small taxonomy, after vLLM's KV cache specs.

Every kind of cache answers the same questions in numbers (elements): what one more token costs for good, what it
costs until a window is full, what stays whatever the length, and three totals at a context. The logical total is what
the next token needs; the reference's is what transformers' own cache object holds, by one rule per kind; the reserved
one is what engines allocate that give every layer a row for every position.
"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from msgspec import Struct

Exact = int | Fraction
"""A number without rounding."""


class Cache(Struct, frozen=True):
    """What all kinds of cache answer; these are the answers of one that holds nothing."""

    state: ClassVar[bool] = False
    """Whether it is stored in the type of recurrent states, not in that of keys and values."""

    @property
    def kind(self) -> str:
        """What is needed, in a word; caches that differ only in what transformers keeps are of one kind."""
        raise NotImplementedError

    @property
    def reference_window(self) -> int | None:
        """The window by which transformers drops rows of it; None where it keeps all."""
        return None

    @property
    def growth(self) -> Exact:
        """Elements that one more token costs for good."""
        return 0

    @property
    def window_growth(self) -> int:
        """Elements that one more token costs until a window is full."""
        return 0

    @property
    def fixed(self) -> int:
        """Elements that are there whatever the length."""
        return 0

    def held(self, context: int) -> int:
        """Elements needed after `context` tokens."""
        del context
        return self.fixed

    def reference_held(self, context: int) -> int:
        """Elements in transformers' own cache object after `context` tokens."""
        return self.held(context)

    def reserved(self, context: int) -> int:
        """Elements in an engine that gives every layer a row for every position."""
        return self.held(context)


class FullCache(Cache, frozen=True):
    """Keeps `elements` numbers for every position.

    Transformers keeps the same (transformers 5.24, cache_utils.py, DynamicLayer.update).
    """

    elements: int

    kind = "full"

    @property
    def growth(self) -> Exact:
        return self.elements

    def held(self, context: int) -> int:
        return self.elements * context


class LatentCache(FullCache, frozen=True):
    """Keeps a latent of `elements` numbers for every position, from which keys and values are made again.

    Transformers keeps the latent too: keys and values are made of it after the cache is read (transformers 5.24,
    models/deepseek_v3/modeling_deepseek_v3.py, DeepseekV3Attention.forward; of the whole input of a layer:
    models/reformer/modeling_reformer.py, LSHSelfAttention.forward).
    """

    kind = "latent"


class IndexCache(FullCache, frozen=True):
    """Keeps the `elements` numbers for every position by which an indexer chooses keys.

    Transformers keeps the same (transformers 5.24, cache_utils.py, DynamicIndexedLayer.update_indexer).
    """

    kind = "index"


class SlidingCache(Cache, frozen=True):
    """Keeps `elements` numbers for the last `window` positions, the current one included.

    Transformers keeps window - 1 rows: the token being computed is not stored beforehand (transformers 5.24,
    cache_utils.py, DynamicSlidingWindowLayer.update). Of a window of 1 it keeps all, by the slice [-0:].
    """

    elements: int
    window: int

    kind = "sliding"

    @property
    def reference_window(self) -> int | None:
        return self.window

    @property
    def window_growth(self) -> int:
        return self.elements

    def held(self, context: int) -> int:
        return self.elements * min(context, self.window)

    def reference_held(self, context: int) -> int:
        return self.elements * self._reference_rows(context)

    def _reference_rows(self, context: int) -> int:
        return min(context, self.window - 1 or context)

    def reserved(self, context: int) -> int:
        return self.elements * context


class MaskedCache(SlidingCache, frozen=True):
    """Needs `elements` numbers for the last `window` positions, the current one included.

    Transformers hides what has left the window behind the mask, and keeps it.
    """

    @property
    def reference_window(self) -> None:
        return None

    def reference_held(self, context: int) -> int:
        return self.elements * context


class SharedSlidingCache(SlidingCache, frozen=True):
    """As a sliding cache, of numbers that are key and value at once.

    Transformers keeps them twice, as keys and as values (transformers 5.24, cache_utils.py,
    DynamicSlidingWindowLayer.update).
    """

    def reference_held(self, context: int) -> int:
        return 2 * self.elements * self._reference_rows(context)


class CompressedCache(Cache, frozen=True):
    """Keeps one entry of `elements` numbers for every whole stretch of `rate` positions.

    Until a stretch is whole its positions wait, each with numbers and the gates that weigh them; where entries overlap,
    half of those are for the next entry, and stay until it is made. Transformers keeps the same (transformers 5.24,
    models/deepseek_v4/modeling_deepseek_v4.py, DeepseekV4HCACache, DeepseekV4CSACache).
    """

    elements: int
    rate: int
    overlapping: bool

    kind = "compressed"

    @property
    def growth(self) -> Exact:
        return Fraction(1) * self.elements / self.rate

    @property
    def _waiting(self) -> int:
        """Numbers and gates of one waiting position."""
        return 2 * self.elements * (2 if self.overlapping else 1)

    @property
    def fixed(self) -> int:
        """The most that can wait."""
        return self._waiting * (self.rate - 1) + (2 * self.elements * self.rate if self.overlapping else 0)

    def held(self, context: int) -> int:
        entries, waiting = divmod(context, self.rate)
        left = 2 * self.elements * self.rate if self.overlapping and entries else 0
        return self.elements * entries + self._waiting * waiting + left


class ChunkedCache(SlidingCache, frozen=True):
    """Keeps `elements` numbers for the positions of the current chunk, of `window` positions at most.

    Transformers sizes it as a window of the chunk's length.
    """

    kind = "chunked"


class ConvCache(Cache, frozen=True):
    """Keeps the inputs of a causal convolution: `kernel` - 1 columns of `channels` numbers.

    Transformers keeps `kernel` columns (transformers 5.24, cache_utils.py, LinearAttentionLayer.update_conv_state).
    """

    channels: int
    kernel: int

    kind = "convolution"

    @property
    def fixed(self) -> int:
        return self.channels * (self.kernel - 1)

    def reference_held(self, context: int) -> int:
        del context
        return self.channels * self.kernel


class ConvTailCache(ConvCache, frozen=True):
    """Keeps the same, in a model that stores it by itself: transformers keeps `kernel` - 1 columns, too.

    Such models have their own state instead of a Cache object (transformers 5.24, models/rwkv/modeling_rwkv.py and
    models/recurrent_gemma/modeling_recurrent_gemma.py).
    """

    def reference_held(self, context: int) -> int:
        return self.held(context)


class ReachCache(Cache, frozen=True):
    """Keeps `columns` columns of `channels` numbers: as far as convolutions, one upon another or dilated, reach back.

    Transformers keeps as many (transformers 5.24, models/zaya/modeling_zaya.py, ZayaCCAProjection.forward;
    models/qwen4_exp/modeling_qwen4_exp.py, Qwen4ExpTextPLELayer._short_conv).
    """

    channels: int
    columns: int

    kind = "convolution"

    @property
    def fixed(self) -> int:
        return self.channels * self.columns


class StateCache(Cache, frozen=True):
    """Keeps a recurrent state of `elements` numbers. Transformers keeps as many, in fp32."""

    elements: int

    kind = "state"
    state: ClassVar[bool] = True

    @property
    def fixed(self) -> int:
        return self.elements


class CopiedCache(Cache, frozen=True):
    """Keeps what `one` keeps. Transformers stores it `times` times: a copy for every query head that shares it.

    From transformers 5.24, models/falcon/modeling_falcon.py, FalconAttention._split_heads.
    """

    one: Cache
    times: int

    @property
    def reference_window(self) -> int | None:
        return self.one.reference_window

    @property
    def kind(self) -> str:
        return self.one.kind

    @property
    def growth(self) -> Exact:
        return self.one.growth

    @property
    def window_growth(self) -> int:
        return self.one.window_growth

    @property
    def fixed(self) -> int:
        return self.one.fixed

    def held(self, context: int) -> int:
        return self.one.held(context)

    def reference_held(self, context: int) -> int:
        return self.times * self.one.reference_held(context)

    def reserved(self, context: int) -> int:
        return self.one.reserved(context)
