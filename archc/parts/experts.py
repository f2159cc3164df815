"""Mixture of experts: a router sends each token to `top_k` of `experts` feed-forwards (Shazeer et al. 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from msgspec import Meta

from archc.parts.base import (
    FfnPart,
    Fields,
    Finding,
    PartFields,
    Routed,
    Settled,
    Size,
    Surroundings,
    Tensor,
    linear,
)
from archc.parts.feed_forward import ACTIVATION_DOC, Activation, FeedForward
from archc.parts.glu import GluFields, stated
from archc.parts.norm import Norm
from archc.parts.router import RouterFields


class SharedExpertFields(Fields, frozen=True, kw_only=True):
    """`ffn.shared`: a feed-forward that every token passes through, beside its chosen experts."""

    width: Annotated[
        Size, Meta(description="Channels of the shared feed-forward; several shared experts are one wide one.")
    ]
    gate: Annotated[
        Literal["none", "sigmoid", "router"],
        Meta(
            description="sigmoid: the output is multiplied by a learned sigmoid(w·x) per token; router: the router has "
            "a row for each of count equal slices, and weighs them together with the chosen experts."
        ),
    ] = "none"
    count: Annotated[Size, Meta(description="Slices that the router weighs.")] = 1
    combine: Annotated[
        Literal["sum", "average"],
        Meta(description="Whether its output is added to that of the experts, or the mean of both is taken."),
    ] = "sum"
    bias: Annotated[bool, Meta(description="Whether its matrices have biases.")] = False
    glu: Annotated[GluFields | None, Meta(description="As ffn.glu, for the shared feed-forward alone.")] = None


class IdentityFields(Fields, frozen=True, kw_only=True):
    """`ffn.identity`: experts beside the others that compute nothing."""

    count: Annotated[Size, Meta(description="Experts that compute nothing.")]
    returns: Annotated[Literal["input", "zero"], Meta(description="What such an expert returns.")] = "input"
    stored: Annotated[
        Literal["nothing", "inputs"],
        Meta(description="inputs: the input matrices of the experts are stored for these too, and never used."),
    ] = "nothing"


class NarrowingFields(Fields, frozen=True, kw_only=True):
    """`ffn.latent`: the chosen experts work between a linear layer that narrows their input and one that widens it."""

    width: Annotated[Size, Meta(description="Channels that an expert reads and writes.")]
    bias: Annotated[bool, Meta(description="Whether both linear layers have a bias.")] = False


class MoeFields(PartFields, frozen=True, kw_only=True):
    """`ffn: {kind: moe}`."""

    kind: Literal["moe"]
    experts: Annotated[Size, Meta(description="Experts that a token can be sent to.")]
    top_k: Annotated[Size, Meta(description="Experts that a token is sent to.")]
    width: Annotated[Size, Meta(description="Channels of one expert.")]
    activation: Annotated[Activation, Meta(description=ACTIVATION_DOC)]
    gated: Annotated[bool, Meta(description="Whether an expert is a gated feed-forward.")] = True
    bias: Annotated[
        Literal["none", "experts", "sum"],
        Meta(
            description="experts: every matrix of every expert has a bias; sum: one is added to the sum of their "
            "outputs."
        ),
    ] = "none"
    glu: Annotated[GluFields | None, Meta(description="What happens around the product of gated experts.")] = None
    router: Annotated[RouterFields, Meta(description="How experts are chosen and weighted.")]
    shared: Annotated[SharedExpertFields | None, Meta(description="A feed-forward for every token.")] = None
    identity: Annotated[IdentityFields | None, Meta(description="Experts that return their input.")] = None
    latent: Annotated[NarrowingFields | None, Meta(description="A narrow space that the experts work in.")] = None
    norms: Annotated[
        Literal["none", "each"],
        Meta(
            description="each: the experts and the shared feed-forward have a norm before and one behind each of them, "
            "as in norm; the router reads what comes before those. The branch then needs no norm before it."
        ),
    ] = "none"

    def check(self, around: Surroundings) -> Iterator[Finding]:
        """A token cannot use more experts than there are, and what is said of a gate needs one."""
        del around
        shared = self.shared.glu if self.shared else None
        for path, glu in ((("glu",), self.glu), (("shared", "glu"), shared)):
            if glu is not None:
                yield from glu.check_half(("ffn", *path), self.activation, self.gated)
        choices = self.experts + (self.identity.count if self.identity else 0)
        if self.top_k > choices:
            yield Finding(
                "E204",
                ("ffn", "top_k"),
                f"top_k {self.top_k} is more than the {choices} experts there are",
                f"choose top_k between 1 and {choices}",
            )
        else:
            yield from self.router.check_choice("ffn", choices, self.top_k)

    def build(self, around: Settled) -> Experts:
        """The mixture that the fields declare."""
        hidden_size, shared = around.hidden_size, self.shared
        beside = None
        if shared is not None:
            glu = stated(shared.glu)
            beside = FeedForward(hidden_size, shared.width, self.activation, self.gated, shared.bias, glu=glu)
        return Experts(
            hidden_size=hidden_size,
            experts=self.experts,
            top_k=self.top_k,
            width=self.width,
            activation=self.activation,
            gated=self.gated,
            bias=self.bias,
            glu=stated(self.glu),
            router=self.router,
            router_norm=self.router.build_norm(around),
            shared=beside,
            shared_gate=shared is not None and shared.gate == "sigmoid",
            shared_rows=shared.count if shared is not None and shared.gate == "router" else 0,
            shared_average=shared is not None and shared.combine == "average",
            identity=self.identity,
            latent=self.latent,
            norm=around.norm.build(hidden_size) if self.norms == "each" else None,
        )


class Experts(FfnPart, frozen=True):
    """`experts` feed-forwards of `width` channels, of which a token uses `top_k`, and perhaps a shared one."""

    hidden_size: int
    experts: int
    top_k: int
    width: int
    activation: Activation
    gated: bool
    bias: Literal["none", "experts", "sum"]
    glu: GluFields | None
    router: RouterFields
    router_norm: Norm | None
    shared: FeedForward | None
    shared_gate: bool
    shared_rows: int
    """Rows of the router that weigh the shared feed-forward."""
    shared_average: bool
    identity: IdentityFields | None
    latent: NarrowingFields | None
    norm: Norm | None
    """What stands before and behind the experts, and before and behind the shared feed-forward."""

    partial = "experts.py.j2"
    kind = "moe"

    @property
    def conventions(self) -> tuple[str, ...]:
        """Identity experts cost nothing, but which tokens use them is not known."""
        return (
            ("every chosen expert is counted in full, as if no identity expert were chosen",) if self.identity else ()
        )

    @property
    def routed(self) -> Routed:
        """What a router chooses from."""
        return Routed(self.experts, self.top_k, self.expert_size)

    def ungenerated(self) -> tuple[str, ...]:
        """Fields of the language whose values cannot be generated yet."""
        unusual = {
            "shared.gate: router": self.shared_rows > 0,
            "identity": self.identity is not None,
            "latent": self.latent is not None,
            "norms": self.norm is not None,
        }
        named = [f"ffn.{name}" for name, is_so in unusual.items() if is_so]
        for path, glu in (("ffn.glu", self.glu), ("ffn.shared.glu", self.shared and self.shared.glu)):
            named += glu.ungenerated(path) if glu else ()
        return (*named, *self.router.ungenerated("ffn"))

    @property
    def choices(self) -> int:
        """What the router chooses from, identity experts included."""
        return self.experts + (self.identity.count if self.identity else 0)

    @property
    def inner_size(self) -> int:
        """Channels that an expert reads and writes."""
        return self.latent.width if self.latent else self.hidden_size

    @property
    def expert_weights(self) -> int:
        """Weights of one expert that multiply: two or three matrices."""
        return (3 if self.gated else 2) * self.inner_size * self.width

    @property
    def expert_size(self) -> int:
        """Parameters of one expert."""
        biases = (2 if self.gated else 1) * self.width + self.inner_size if self.bias == "experts" else 0
        return self.expert_weights + biases

    def tensors(self) -> tuple[Tensor, ...]:
        """Router [E, D]; gate and up [E, F, L]; down [E, L, F], L = D without latent; then what all tokens share."""
        stored = self.choices if self.identity and self.identity.stored == "inputs" else self.experts
        names = ("gate", "up") if self.gated else ("up",)
        tensors = [*self.router.tensors(self.hidden_size, self.choices, self.shared_rows, self.top_k)]
        tensors += [Tensor(name, (stored, self.width, self.inner_size), "ffn", self.top_k) for name in names]
        tensors += [Tensor("down", (self.experts, self.inner_size, self.width), "ffn", self.top_k)]
        if self.bias == "experts":
            tensors += [Tensor(f"{name}_bias", (stored, self.width), "ffn", self.top_k) for name in names]
            tensors += [Tensor("down_bias", (self.experts, self.inner_size), "ffn", self.top_k)]
        elif self.bias == "sum":
            tensors += [Tensor("bias", (self.inner_size,), "ffn")]
        if self.latent:
            tensors += linear("narrow", self.inner_size, self.hidden_size, self.latent.bias, "ffn")
            tensors += linear("widen", self.hidden_size, self.inner_size, self.latent.bias, "ffn")
        if self.shared:
            tensors += [tensor.inside("shared") for tensor in self.shared.tensors()]
        if self.shared_gate:
            tensors += linear("shared_gate", 1, self.hidden_size, False, "router")
        if self.norm:
            for name in ("norm", "post_norm", *(("shared_norm", "shared_post_norm") if self.shared else ())):
                tensors += self.norm.tensors(name)
        return tuple(tensors)

    def linear_flops(self) -> int:
        """The router, the chosen experts and the shared one; sorting and combining are left out."""
        router = self.router.weights(self.hidden_size, self.choices + self.shared_rows)
        router += self.hidden_size if self.shared_gate else 0
        latent = 2 * self.inner_size * self.hidden_size if self.latent else 0
        shared = self.shared.linear_flops() if self.shared else 0
        return 2 * (router + self.top_k * self.expert_weights + latent) + shared
