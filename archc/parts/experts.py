"""Mixture of experts: a router sends each token to `top_k` of `experts` feed-forwards (Shazeer et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from archc.parts.base import Fields, Finding, Positive, Settled, Size, Surroundings, Tensor, linear
from archc.parts.feed_forward import ACTIVATION_DOC, Activation, FeedForward

Score = Literal["softmax", "sigmoid"]
Order = Literal["score_then_top_k", "top_k_then_score"]


class RouterFields(Fields):
    """`ffn.router`: how a token's experts are chosen and weighted."""

    score: Score = Field(description="Turns router logits into weights.")
    order: Order = Field(
        default="score_then_top_k",
        description="score_then_top_k scores all experts and keeps the best; top_k_then_score scores the chosen alone. "
        "With softmax and renormalize they agree.",
    )
    renormalize: bool = Field(description="Whether the chosen weights are divided by their sum.")
    scale: Positive = Field(default=1.0, description="Multiplies the chosen weights, after renormalisation.")


class SharedExpertFields(Fields):
    """`ffn.shared`: a feed-forward that every token passes through, beside its chosen experts."""

    width: Size = Field(description="Channels of the shared feed-forward; several shared experts are one wide one.")
    gate: Literal["none", "sigmoid"] = Field(
        default="none", description="sigmoid: the output is multiplied by a learned sigmoid(w·x) per token."
    )


class MoeFields(Fields):
    """`ffn: {kind: moe}`."""

    kind: Literal["moe"]
    experts: Size = Field(description="Experts that a token can be sent to.")
    top_k: Size = Field(description="Experts that a token is sent to.")
    width: Size = Field(description="Channels of one expert.")
    activation: Activation = Field(description=ACTIVATION_DOC)
    gated: bool = Field(default=True, description="Whether an expert is a gated feed-forward.")
    router: RouterFields = Field(description="How experts are chosen and weighted.")
    shared: SharedExpertFields | None = Field(default=None, description="A feed-forward for every token.")

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A token cannot use more experts than there are."""
        del around
        if self.top_k > self.experts:
            yield Finding(
                "E204",
                ("ffn", "top_k"),
                f"top_k {self.top_k} is more than the {self.experts} experts there are",
                f"choose top_k between 1 and {self.experts}",
            )

    def build(self, around: Settled) -> Experts:
        """The mixture that the fields declare."""
        hidden_size, shared = around.hidden_size, self.shared
        return Experts(
            hidden_size=hidden_size,
            experts=self.experts,
            top_k=self.top_k,
            width=self.width,
            activation=self.activation,
            gated=self.gated,
            score=self.router.score,
            order=self.router.order,
            renormalize=self.router.renormalize,
            scale=self.router.scale,
            shared=FeedForward(hidden_size, shared.width, self.activation, self.gated, False) if shared else None,
            shared_gate=shared is not None and shared.gate == "sigmoid",
        )


@dataclass(frozen=True, slots=True)
class Experts:
    """`experts` feed-forwards of `width` channels, of which a token uses `top_k`, and perhaps a shared one."""

    hidden_size: int
    experts: int
    top_k: int
    width: int
    activation: Activation
    gated: bool
    score: Score
    order: Order
    renormalize: bool
    scale: float
    shared: FeedForward | None
    shared_gate: bool

    role: ClassVar[Literal["ffn"]] = "ffn"
    slot = "ffn"
    partial = "experts.py.j2"
    kind = "moe"

    @property
    def expert_size(self) -> int:
        """Parameters of one expert."""
        return (3 if self.gated else 2) * self.hidden_size * self.width

    def tensors(self) -> tuple[Tensor, ...]:
        """Router [E, D]; gate and up [E, F, D]; down [E, D, F]; then the shared expert and its gate."""
        inward = (self.experts, self.width, self.hidden_size)
        outward = (self.experts, self.hidden_size, self.width)
        names = ("gate", "up") if self.gated else ("up",)
        tensors = [*linear("router", self.experts, self.hidden_size, False, "router")]
        tensors += [Tensor(name, inward, "ffn", self.top_k) for name in names]
        tensors += [Tensor("down", outward, "ffn", self.top_k)]
        if self.shared:
            tensors += [tensor.inside("shared") for tensor in self.shared.tensors()]
        if self.shared_gate:
            tensors += linear("shared_gate", 1, self.hidden_size, False, "router")
        return tuple(tensors)

    def cache(self) -> None:
        """Experts remember nothing."""

    def linear_flops(self) -> int:
        """The router, the chosen experts and the shared one; sorting and combining are left out."""
        shared = self.shared.linear_flops() if self.shared else 0
        gate = 2 * self.hidden_size if self.shared_gate else 0
        return 2 * self.experts * self.hidden_size + 2 * self.top_k * self.expert_size + shared + gate

    def mixing_flops(self, keys: float) -> float:
        """Positions do not meet here."""
        del keys
        return 0
