"""A mixture of attention heads in a generated module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from msgspec.structs import replace

from archc.codegen.caching import Sizes
from archc.codegen.constants import Constant
from archc.codegen.naming import Names, Variant, literal
from archc.codegen.norms import Norms
from archc.codegen.part_view import MixerView
from archc.codegen.rotation import Turn, function_of, without_table
from archc.codegen.routing import RouterView, router_words
from archc.parts.routed_attention import RoutedAttention


@dataclass(frozen=True, slots=True)
class RoutedAttentionView(MixerView[RoutedAttention]):
    """One class of such a mixture, and its router."""

    router: RouterView

    letters: ClassVar[str] = "W channels of one expert's queries"

    @classmethod
    def of(cls, part: RoutedAttention, names: Names, norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of a mixture, with the names of the rotation and of the norm of its router."""
        norm = norms.call(part.router_norm, "WIDTH") if part.router_norm else None
        router = RouterView(names.below("QUERY_"), part.router, part.experts, part.top_k, norm)
        return cls(names.class_("RoutedAttention"), names, part, function_of(part.rope, turns), router)

    @staticmethod
    def without_arguments(part: RoutedAttention) -> RoutedAttention:
        """The mixture without which table turns it."""
        return replace(part, rope=without_table(part.rope))

    @property
    def choice(self) -> RouterView:
        """Its router."""
        return self.router

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it is given beside the stream and the cache."""
        return ("rotation", "visible_BTS") if self.rotate else ("visible_BTS",)

    @property
    def cached(self) -> tuple[Sizes, Sizes]:
        """Heads and channels of keys and of values."""
        found = (self.names.KV_HEADS, self.names.HEAD_DIM)
        return found, found

    @property
    def sizes(self) -> Iterator[Constant]:
        """Sizes of the experts, of the choice, and of heads."""
        part, c = self.part, self.names
        yield Constant(c.QUERY_EXPERTS, literal(part.experts), "pairs of a query and an output projection")
        yield Constant(c.QUERY_TOP_K, literal(part.top_k), "pairs a token is sent to")
        yield from self.router.sizes()
        yield Constant(c.KV_HEADS, literal(part.kv_heads), "key/value heads, and query heads of one pair")
        yield Constant(c.HEAD_DIM, literal(part.head_dim), "channels of a head")
        yield Constant(c.KV_WIDTH, f"{c.KV_HEADS} * {c.HEAD_DIM}")

    @property
    def soft_caps(self) -> bool:
        """Whether logits of the router are capped."""
        return self.router.soft_caps

    @property
    def summary(self) -> str:
        """The docstring of the class."""
        part = self.part
        return f"Each token goes to {part.top_k} of {part.experts} pairs of query and output projections."

    @staticmethod
    def words(part: RoutedAttention) -> str:
        """What the header says of it."""
        heads = "one query head" if part.kv_heads == 1 else f"{part.kv_heads} query heads"
        shared = "1 key/value head" if part.kv_heads == 1 else f"{part.kv_heads} key/value heads"
        return (
            f"mixture of attention, {part.top_k} of {part.experts} pairs of query and output projections per token, "
            f"{heads} of {part.head_dim} channels each; all share {shared}; "
            f"{router_words(part.router)}" + ("; a bias on the sum of their outputs" if part.bias else "")
        )

    @property
    def added(self) -> Iterator[str]:
        """The statements that add what a pair makes of `y_NAW` to the outputs of its tokens."""
        yield "out_D = y_NAW[token, choice] @ self.o[expert].T"
        if self.router.rounded:
            yield "out_ND = out_ND.index_add(0, token, out_D * weight_NA[token, choice, None])"
        else:
            yield "out_D = (out_D * weight_NA[token, choice, None]).to(x_ND.dtype)"
            yield "out_ND = out_ND.index_add(0, token, out_D)"
