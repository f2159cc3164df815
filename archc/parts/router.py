"""The router of a mixture of experts: how a token's experts are chosen, and how their outputs are weighed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, structs

from archc.parts.base import Fields, Finding, Positive, Size, Small, Tensor, linear

Score = Literal["softmax", "sigmoid", "sqrt_softplus"]
Order = Literal["score_then_top_k", "top_k_then_score", "sparsemixer"]


class GroupFields(Fields, frozen=True, kw_only=True):
    """`ffn.router.groups`: experts stand in groups of equal size, and only the best groups are chosen from."""

    count: Annotated[Size, Meta(description="Groups, of equal size.")]
    chosen: Annotated[Size, Meta(description="Groups that a token may choose experts from.")]
    score: Annotated[
        Literal["max", "top2_sum"], Meta(description="What a group is ranked by: its best score, or its two best.")
    ]
    others: Annotated[
        Literal["excluded", "zero"],
        Meta(description="What becomes of experts in other groups: excluded, or chosen where a score of 0 wins."),
    ] = "excluded"


class RouterNetworkFields(Fields, frozen=True, kw_only=True):
    """`ffn.router.network`: logits come of out(gelu(second(gelu(first(norm(z)))))), z being narrow(x).

    The norm is an rmsnorm; all but out have a bias.
    """

    width: Annotated[Size, Meta(description="Channels of z, and between all matrices.")]
    carried: Annotated[
        bool,
        Meta(description="Whether the z of the last layer with such a router, times a learned vector, is added to z."),
    ] = False

    def tensors(self, hidden_size: int, experts: int) -> Iterator[Tensor]:
        """narrow [width, hidden_size], the norm, two square matrices, out [experts, width], and the vector."""
        yield from linear("narrow", self.width, hidden_size, True, "router")
        yield Tensor("norm.weight", (self.width,), "norm")
        yield from linear("first", self.width, self.width, True, "router")
        yield from linear("second", self.width, self.width, True, "router")
        yield from linear("out", experts, self.width, False, "router")
        if self.carried:
            yield Tensor("carried", (self.width,), "router")


class RouterFields(Fields, frozen=True, kw_only=True):
    """`ffn.router`: how a token's experts are chosen and weighted."""

    score: Annotated[Score, Meta(description="Turns router logits into weights; sqrt_softplus: sqrt(ln(1 + e^x)).")]
    order: Annotated[
        Order,
        Meta(
            description="score_then_top_k scores all experts and keeps the best; top_k_then_score scores the chosen "
            "alone. With softmax and renormalize they agree. sparsemixer takes one after another, each weighed by a "
            "softmax over the logits that jitter leaves (Liu et al. 2023)."
        ),
    ] = "score_then_top_k"
    renormalize: Annotated[bool, Meta(description="Whether the chosen weights are divided by their sum.")]
    renormalize_eps: Annotated[Small, Meta(description="Added to the sum that weights are divided by.")] = 0.0
    renormalize_floor: Annotated[Small, Meta(description="The least that weights are divided by.")] = 0.0
    renormalize_power: Annotated[
        Positive, Meta(description="Weights are divided by their norm of this power; 1 is the sum.")
    ] = 1.0
    scale: Annotated[Positive, Meta(description="Multiplies the chosen weights, after renormalisation.")] = 1.0
    bias: Annotated[bool, Meta(description="Whether the router's logits have a bias.")] = False
    correction: Annotated[
        Literal["none", "buffer", "parameter"],
        Meta(
            description="A stored number per expert that is added for the choice and not to the weight: to scores, or "
            "to logits where the chosen alone are scored. It is stored as a buffer, or as a parameter that nothing "
            "trains."
        ),
    ] = "none"
    groups: Annotated[GroupFields | None, Meta(description="Groups that are chosen before the experts.")] = None
    softcap: Annotated[
        Positive | None, Meta(description="Router logits become softcap·tanh(logits / softcap) before they are scored.")
    ] = None
    jitter: Annotated[
        Small | None,
        Meta(description="sparsemixer leaves out logits that are further than 2·jitter, relatively, from the best."),
    ] = None
    norm: Annotated[
        bool,
        Meta(
            description="Whether the router reads its input through an rmsnorm, with a weight and divided by "
            "sqrt(hidden_size)."
        ),
    ] = False
    expert_scale: Annotated[bool, Meta(description="Whether a learned factor per expert multiplies its weight.")] = (
        False
    )
    learned_scale: Annotated[bool, Meta(description="Whether one learned factor multiplies all weights.")] = False
    weighs: Annotated[
        Literal["output", "input"],
        Meta(description="Whether a weight multiplies what an expert returns, or what it is given."),
    ] = "output"
    network: Annotated[
        RouterNetworkFields | None, Meta(description="Small network that makes the logits, instead of one matrix.")
    ] = None
    table: Annotated[
        Size | None,
        Meta(
            description="Rows of a stored table, one per token id, that names the experts of a token; scores only "
            "weigh."
        ),
    ] = None

    def check_choice(self, experts: int, top_k: int) -> Iterator[Finding]:
        """Groups are equal, and those that are chosen hold enough of the `experts` that can be chosen."""
        groups = self.groups
        if groups is None:
            return
        path = ("ffn", "router", "groups")
        if experts % groups.count:
            yield Finding(
                "E204",
                (*path, "count"),
                f"{experts} experts cannot stand in {groups.count} equal groups",
                f"choose a divisor of {experts}",
            )
        elif groups.chosen > groups.count or experts // groups.count * groups.chosen < top_k:
            yield Finding(
                "E204",
                (*path, "chosen"),
                f"top_k {top_k} experts cannot come from {groups.chosen} of {groups.count} groups of "
                f"{experts // groups.count}",
                "choose more groups or fewer experts",
            )

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        printed = {"score", "order", "renormalize", "scale"}
        found = [field.name for field in structs.fields(self) if getattr(self, field.name) != field.default]
        named = [f"ffn.router.{name}" for name in found if name not in printed]
        if self.score == "sqrt_softplus":
            named.append("ffn.router.score: sqrt_softplus")
        if self.order == "sparsemixer":
            named.append("ffn.router.order: sparsemixer")
        return tuple(named)

    def weights(self, hidden_size: int, rows: int) -> int:
        """Weights that multiply, of a router with so many rows of logits."""
        if self.network is None:
            return rows * hidden_size
        return sum(tensor.size for tensor in self.network.tensors(hidden_size, rows) if len(tensor.shape) == 2)

    def tensors(self, hidden_size: int, experts: int, shared: int, top_k: int) -> Iterator[Tensor]:
        """A row [hidden_size] for each of `experts` and of `shared` ones that it weighs, and what stands beside them.

        The table [ids, top_k] holds numbers of experts.
        """
        if self.network is not None:
            yield from (tensor.inside("router") for tensor in self.network.tensors(hidden_size, experts + shared))
        else:
            yield from linear("router", experts + shared, hidden_size, self.bias, "router")
        if self.norm:
            yield Tensor("router_norm.weight", (hidden_size,), "norm")
        if self.expert_scale:
            yield Tensor("expert_scale", (experts,), "router")
        if self.learned_scale:
            yield Tensor("router_scale", (1,), "router")
        if self.correction != "none":
            yield Tensor("correction", (experts,), "router", buffer=self.correction == "buffer")
        if self.table is not None:
            yield Tensor("table", (self.table, top_k), "router", buffer=True)
