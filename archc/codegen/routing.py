"""Routers in a generated module: how a class that holds one chooses experts and weighs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from archc.codegen.constants import Constant
from archc.codegen.naming import Names, fitted, literal
from archc.codegen.norms import NormCall
from archc.parts.router import RouterFields

_SCORES = {"softmax": "F.softmax({}, dim=-1)", "sigmoid": "{}.sigmoid()", "sqrt_softplus": "F.softplus({}).sqrt()"}
_WORDS = {"softmax": "softmax", "sigmoid": "sigmoid", "sqrt_softplus": "root of softplus"}


@dataclass(frozen=True, slots=True)
class RouterView:
    """The router of a class, with the names of its constants; `top_k` is how many it takes of `experts`."""

    names: Names
    fields: RouterFields
    experts: int
    top_k: int
    norm: NormCall | None

    def sizes(self) -> Iterator[Constant]:
        """The numbers that its statements read, beside how many experts there are and how many it takes."""
        fields, c = self.fields, self.names
        if fields.scale != 1:
            yield Constant(c.ROUTER_SCALE, literal(fields.scale))
        if fields.softcap is not None:
            yield Constant(c.ROUTER_SOFTCAP, literal(fields.softcap))
        if fields.groups is not None:
            yield Constant(c.GROUPS, literal(fields.groups.count), "of experts")
            yield Constant(c.CHOSEN_GROUPS, literal(fields.groups.chosen), "that a token's experts come from")
        if fields.renormalize_power != 1:
            yield Constant(c.RENORMALIZE_POWER, literal(fields.renormalize_power))
        if fields.renormalize_eps:
            yield Constant(c.RENORMALIZE_EPS, literal(fields.renormalize_eps))
        if fields.renormalize_floor:
            yield Constant(c.RENORMALIZE_FLOOR, literal(fields.renormalize_floor))
        if fields.jitter is not None:
            yield Constant(c.ROUTER_JITTER, literal(fields.jitter))

    @property
    def soft_caps(self) -> bool:
        """Whether logits are capped."""
        return self.fields.softcap is not None

    @property
    def rounded(self) -> bool:
        """Whether weights are rounded to the type of what they weigh before they multiply it."""
        return not self.fields.float32 or self.fields.weighs == "input"

    @property
    def buffered(self) -> bool:
        """Whether the class holds a buffer."""
        return self.fields.correction == "buffer"

    @property
    def modules(self) -> Iterator[str]:
        """The statements that make its parameters."""
        fields, experts = self.fields, self.names.EXPERTS
        if self.norm is not None:
            yield fitted(8, f"self.router_norm = {self.norm.function}", self.norm.arguments)
        yield fitted(8, "self.router = nn.Linear", ["WIDTH", experts, f"bias={fields.bias}"])
        if fields.correction == "buffer":
            yield fitted(8, "self.register_buffer", ['"correction"', f"torch.zeros({experts})"])
        elif fields.correction == "parameter":
            yield fitted(8, "self.correction = nn.Parameter", [f"torch.zeros({experts})", "requires_grad=False"])
        if fields.learned_scale:
            yield "self.router_scale = nn.Parameter(torch.ones(1))"
        if fields.expert_scale:
            yield f"self.expert_scale = nn.Parameter(torch.ones({experts}))"

    @property
    def exact(self) -> tuple[str, ...]:
        """The statements that keep in float32 what it is in `module`, whatever type a model is loaded in."""
        router = ("module.router.float()",) if self.fields.float32 else ()
        if self.fields.correction == "none":
            return router
        return (*router, "module.correction.data = module.correction.data.float()")

    @property
    def logits(self) -> Iterator[str]:
        """The statements that make the logits."""
        source = "x_ND"
        if self.norm is not None:
            yield "read_ND = self.router_norm(x_ND) * WIDTH**-0.5"
            source = "read_ND"
        if self.fields.float32:
            bias = ["self.router.bias.float()"] if self.fields.bias else []
            yield "# In float32, whatever the weights are: near ties would go the other way."
            yield fitted(8, "logits_NE = F.linear", [f"{source}.float()", "self.router.weight.float()", *bias])
        else:
            yield f"logits_NE = self.router({source})"
        if self.fields.softcap is not None:
            logits = "logits_NE" if self.fields.float32 else "logits_NE.float()"
            yield fitted(8, "logits_NE = soft_cap", [logits, self.names.ROUTER_SOFTCAP])

    @property
    def choice(self) -> Iterator[str]:
        """The statements that choose experts, and give those of every token weights."""
        exact = self.fields.float32 or self.fields.softcap is not None
        if self.fields.order == "sparsemixer":
            yield "weight_NA, expert_NA = self.take_in_turn(logits_NE)"
        elif self.fields.order == "score_then_top_k":
            yield f"scores_NE = {self._scored('logits_NE' if exact else 'logits_NE.float()')}"
            yield from self._taken("scores_NE", "weight_NA")
        else:
            yield from self._taken("logits_NE", "top_NA")
            yield f"weight_NA = {self._scored('top_NA' if exact else 'top_NA.float()')}"
        yield from self._renormalised()
        if self.fields.scale != 1:
            yield f"weight_NA = weight_NA * {self.names.ROUTER_SCALE}"
        if self.fields.learned_scale:
            yield "weight_NA = weight_NA * self.router_scale"
        if self.fields.expert_scale:
            yield "weight_NA = weight_NA * self.expert_scale[expert_NA]"
        if self.rounded:
            yield "weight_NA = weight_NA.to(x_BTD.dtype)"

    def _taken(self, values: str, taken: str) -> Iterator[str]:
        """The best of `values`, after which `taken` holds them."""
        top_k = self.names.TOP_K
        within = "self.in_best_groups({})" if self.fields.groups else "{}"
        if self.fields.correction == "none":
            if self.fields.groups:
                yield f"{values} = {within.format(values)}"
            yield f"{taken}, expert_NA = {values}.topk({top_k}, dim=-1)"
        else:
            yield "# The correction has a say in who is chosen, and none in what the chosen weigh."
            yield f"choice_NE = {within.format(f'{values} + self.correction')}"
            yield f"expert_NA = choice_NE.topk({top_k}, dim=-1).indices"
            yield f"{taken} = {values}.gather(-1, expert_NA)"

    def _renormalised(self) -> Iterator[str]:
        fields, c = self.fields, self.names
        if not fields.renormalize:
            return
        total = "weight_NA.sum(dim=-1, keepdim=True)"
        if not (fields.renormalize_eps or fields.renormalize_floor or fields.renormalize_power != 1):
            yield f"weight_NA = weight_NA / {total}"
            return
        if fields.renormalize_power != 1:
            arguments = ["weight_NA", c.RENORMALIZE_POWER, "dim=-1", "keepdim=True"]
            yield fitted(8, "total_N1 = torch.linalg.vector_norm", arguments)
        else:
            yield f"total_N1 = {total}"
        divisor = "total_N1"
        if fields.renormalize_eps and fields.renormalize_floor:
            yield f"total_N1 = total_N1 + {c.RENORMALIZE_EPS}"
        elif fields.renormalize_eps:
            divisor = f"(total_N1 + {c.RENORMALIZE_EPS})"
        if fields.renormalize_floor:
            divisor = f"total_N1.clamp(min={c.RENORMALIZE_FLOOR})"
        yield f"weight_NA = weight_NA / {divisor}"

    def _scored(self, logits: str) -> str:
        return _SCORES[self.fields.score].format(logits)


def router_words(fields: RouterFields) -> str:
    """What the header says of a router."""
    text = f"router: {_WORDS[fields.score]}, {fields.order.replace('_', ' ')}"
    text += ", renormalised" if fields.renormalize else ", not renormalised"
    if fields.groups is not None:
        rank = "best expert" if fields.groups.score == "max" else "two best experts"
        text += f", from the {fields.groups.chosen} of {fields.groups.count} groups with the {rank}"
    if fields.correction != "none":
        to = "logits" if fields.order == "top_k_then_score" else "scores"
        text += f", by {to} plus a stored correction that the weights leave out"
    text += f", logits capped at {fields.softcap:g}" if fields.softcap is not None else ""
    text += ", behind a norm" if fields.norm else ""
    text += ", with learned factors" if fields.expert_scale or fields.learned_scale else ""
    text += ", in float32" if fields.float32 else ""
    return text + (", weights multiply the input of experts" if fields.weighs == "input" else "")
