"""The router of a mixture of experts: how a token's experts are chosen, and how their outputs are weighed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta, structs

from archc.parts.base import Fields, Finding, Positive, Settled, Size, Small, Tensor, linear
from archc.parts.norm import Norm

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

    def check_choice(self, path: tuple[str, ...], experts: int, top_k: int) -> Iterator[Finding]:
        """Groups are equal, those that are chosen hold enough of the experts, and all hold what they are ranked by."""
        size = experts // self.count
        if experts % self.count:
            yield Finding(
                "E204",
                (*path, "count"),
                f"{experts} experts cannot stand in {self.count} equal groups",
                f"choose a divisor of {experts}",
            )
        elif self.chosen > self.count or size * self.chosen < top_k:
            yield Finding(
                "E204",
                (*path, "chosen"),
                f"top_k {top_k} experts cannot come from {self.chosen} of {self.count} groups of {size}",
                "choose more groups or fewer experts",
            )
        elif self.score == "top2_sum" and size == 1:
            yield Finding("E204", (*path, "score"), "a group of one expert has no two best", "use score: max")


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
    float32: Annotated[
        bool, Meta(description="Whether logits are worked out in float32 whatever the model's type.")
    ] = False
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
            "sqrt(hidden_size). Its eps is that of norm."
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

    def check_choice(self, part: str, experts: int, top_k: int) -> Iterator[Finding]:
        """`top_k` of `experts` can be chosen, and no field speaks of what the router of that part does not do."""
        path = (part, "router")
        yield from self._check_order(path)
        if not self.renormalize:
            for name in ("renormalize_eps", "renormalize_floor", "renormalize_power"):
                if self._stated(name):
                    problem = "weights are divided by nothing"
                    yield Finding("E211", (*path, name), problem, "use renormalize, or leave it out")
        if self.groups is not None:
            yield from self.groups.check_choice((*path, "groups"), experts, top_k)

    def _check_order(self, path: tuple[str, ...]) -> Iterator[Finding]:
        if self.order == "sparsemixer":
            for name in ("correction", "groups"):
                if self._stated(name):
                    yield Finding("E211", (*path, name), f"sparsemixer chooses without {name}", "leave it out")
            if self.score != "softmax":
                yield Finding("E211", (*path, "score"), "sparsemixer weighs by a softmax", "use score: softmax")
        elif self.jitter is not None:
            yield Finding("E211", (*path, "jitter"), "jitter is for sparsemixer alone", "leave it out")
        elif self.order == "top_k_then_score" and self.groups is not None and self.groups.others == "zero":
            problem = "experts are chosen before there are scores, so none can be 0"
            yield Finding("E211", (*path, "groups", "others"), problem, "use score_then_top_k, or others: excluded")

    def _stated(self, name: str) -> bool:
        default = next(field.default for field in structs.fields(self) if field.name == name)
        return bool(getattr(self, name) != default)

    def build_norm(self, around: Settled) -> Norm | None:
        """The norm that the router reads its input through."""
        return Norm("rmsnorm", around.hidden_size, around.norm.eps, "plain", bias=False) if self.norm else None

    def ungenerated(self, part: str) -> Iterator[str]:
        """Fields of the language whose values cannot be generated yet, in the router of that part."""
        return (f"{part}.router.{name}" for name in ("network", "table") if self._stated(name))

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
