"""Faults of mixtures of experts: how experts are chosen and weighed, and what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from archc.architecture.model import Architecture
from archc.faults.base import Edit, Fault
from archc.faults.sites import edit_slips, experts, field_slips, parts, routers, slips
from archc.parts.base import FfnPart, Part
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward
from archc.parts.router import RouterFields


def _other_order(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    """Where the order matters: for a softmax that is not renormalised, or where choice and weight differ."""
    if router.order == "sparsemixer":
        yield "score_then_top_k", replace(router, order="score_then_top_k", jitter=None)
        return
    alike = router.renormalize or router.score != "softmax"
    by_sums = router.groups is not None and router.groups.score == "top2_sum"
    if not alike or router.correction != "none" or by_sums:
        other = "top_k_then_score" if router.order == "score_then_top_k" else "score_then_top_k"
        if other == "top_k_then_score" and router.groups is not None and router.groups.others == "zero":
            return
        yield other, replace(router, order=other)


def _renormalised(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    if router.renormalize:
        plain = replace(router, renormalize_eps=0.0, renormalize_floor=0.0, renormalize_power=1.0)
        if not (router.order == "top_k_then_score" and router.score == "softmax"):
            yield "false", replace(plain, renormalize=False)
    elif not (router.order == "top_k_then_score" and router.score == "softmax"):
        yield "true", replace(router, renormalize=True)


def _other_scores(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    for score in ("softmax", "sigmoid") if router.order != "sparsemixer" else ():
        if score != router.score:
            yield score, replace(router, score=score)


def _other_scales(router: RouterFields) -> Iterable[float]:
    return (1.0, router.scale**2, 1 / router.scale) if router.scale != 1 else ()


def _uncorrected(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    yield "none", replace(router, correction="none")


def _corrected(architecture: Architecture) -> bool:
    return any(
        isinstance(part, Experts) and part.router.correction != "none" and part.router.order != "sparsemixer"
        for part in architecture.parts()
    )


_IN_WEIGHTS = Edit(r"= (\w+_NE)\.gather\(-1, expert_NA\)$", r"= (\1 + self.correction).gather(-1, expert_NA)")


def _ungrouped(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    yield "null", replace(router, groups=None)


def _other_groups(part: Experts) -> Iterator[tuple[str, Experts]]:
    """One group more or less to choose from."""
    groups = part.router.groups
    for chosen in (groups.chosen + 1, groups.chosen - 1) if groups else ():
        assert groups is not None
        if part.choices // groups.count * chosen >= part.top_k and chosen < groups.count:
            yield str(chosen), replace(part, router=replace(part.router, groups=replace(groups, chosen=chosen)))


def _ranked_otherwise(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    groups = router.groups
    if groups is not None:
        other = "max" if groups.score == "top2_sum" else "top2_sum"
        yield other, replace(router, groups=replace(groups, score=other))


def _others_in_groups(router: RouterFields) -> Iterator[tuple[str, RouterFields]]:
    """A score of 0 wins only against scores below it, and those of a softmax or a sigmoid are above."""
    groups = router.groups
    if groups is not None and router.correction != "none" and router.order == "score_then_top_k":
        other = "zero" if groups.others == "excluded" else "excluded"
        yield other, replace(router, groups=replace(groups, others=other))


def _other_top_k(part: Experts) -> Iterator[tuple[str, Experts]]:
    groups = part.router.groups
    room = part.choices // groups.count * groups.chosen if groups else part.choices
    for top_k in (part.top_k - 1, part.top_k + 1):
        if 1 <= top_k <= room:
            yield str(top_k), replace(part, top_k=top_k)


def _unshared(part: Experts) -> Iterator[tuple[str, Experts]]:
    if part.shared is not None:
        yield "null", replace(part, shared=None, shared_gate=False, shared_rows=0, shared_average=False)


def _ungated_shared(part: Experts) -> Iterator[tuple[str, Experts]]:
    yield "none", replace(part, shared_gate=False)


def _combined_otherwise(part: Experts) -> Iterator[tuple[str, Experts]]:
    if part.shared is not None:
        yield "sum" if part.shared_average else "average", replace(part, shared_average=not part.shared_average)


def _scheduled(part: Part) -> Iterator[tuple[str, Part]]:
    if isinstance(part, Experts) and part.gated:
        yield "gated", FeedForward(part.hidden_size, part.width, part.activation, gated=True, bias=False)


FAULTS = (
    Fault(
        id="ffn.router.renormalize",
        field="ffn.router.renormalize",
        kind="architecture",
        wrong="The weights of the chosen experts are divided by their sum where they should not be, or the reverse.",
        when="mixtures of experts, unless a softmax runs over the chosen alone",
        mend="read norm_topk_prob from the resolved config",
        slips=slips(routers, lambda router: router.renormalize, _renormalised),
        seen=("pytorch/torchtitan#1448", "sgl-project/sglang#35160", "pytorch/torchtitan#2319"),
        same_when="all experts are chosen",
    ),
    Fault(
        id="ffn.router.order",
        field="ffn.router.order",
        kind="architecture",
        wrong="The softmax runs over the chosen experts where it should over all of them, or the reverse.",
        when="mixtures of experts whose weights are not renormalised, or whose choice is corrected",
        mend="score, then choose; or choose, then score; as the reference does",
        slips=slips(routers, lambda router: router.order, _other_order),
        seen=("NVIDIA/Megatron-LM#955",),
        same_when="weights of a softmax are renormalised",
    ),
    Fault(
        id="ffn.router.score",
        field="ffn.router.score",
        kind="architecture",
        wrong="Router logits are scored by another function than declared.",
        when="mixtures of experts",
        mend="read scoring_func from the resolved config",
        slips=slips(routers, lambda router: router.score, _other_scores),
    ),
    Fault(
        id="ffn.router.scale",
        field="ffn.router.scale",
        kind="architecture",
        wrong="The weights of the chosen experts are not multiplied by their scale, or multiplied twice.",
        when="routers with a scale",
        mend="multiply by routed_scaling_factor, renormalised or not, after renormalising",
        slips=field_slips(routers, "scale", _other_scales),
        seen=("sgl-project/sglang-jax#1282",),
    ),
    Fault(
        id="ffn.top_k",
        field="ffn.top_k",
        kind="architecture",
        wrong="A token is sent to one expert more or less than declared.",
        when="mixtures of experts",
        mend="read the number of experts per token from the config",
        slips=slips(experts, lambda part: part.top_k, _other_top_k),
    ),
    Fault(
        id="ffn.router.correction",
        field="ffn.router.correction",
        kind="architecture",
        wrong="The stored correction has no say in the choice of experts.",
        when="routers with a correction",
        mend="add it to the scores for the choice, and not to the weights",
        slips=slips(routers, lambda router: router.correction, _uncorrected),
    ),
    Fault(
        id="ffn.router.correction.weights",
        field="ffn.router.correction",
        kind="architecture",
        wrong="The stored correction is in the weights of the chosen experts too.",
        when="routers with a correction",
        mend="gather the weights from the scores as they were before the correction",
        slips=edit_slips(_corrected, "in the choice alone", "in the weights too", _IN_WEIGHTS),
        seen=("vllm-project/vllm#12002",),
    ),
    Fault(
        id="ffn.router.groups",
        field="ffn.router.groups",
        kind="architecture",
        wrong="Experts are chosen from all groups.",
        when="routers with groups",
        mend="choose groups first, and experts within them",
        slips=slips(routers, lambda _router: "stated", _ungrouped),
    ),
    Fault(
        id="ffn.router.groups.chosen",
        field="ffn.router.groups.chosen",
        kind="architecture",
        wrong="Experts are chosen from one group more or less than declared.",
        when="routers with groups",
        mend="read topk_group from the config",
        slips=slips(experts, lambda part: part.router.groups.chosen if part.router.groups else "", _other_groups),
    ),
    Fault(
        id="ffn.router.groups.score",
        field="ffn.router.groups.score",
        kind="architecture",
        wrong="Groups are ranked by their best expert where they should be by the two best, or the reverse.",
        when="routers with groups",
        mend="rank groups as the reference's router does",
        slips=slips(routers, lambda router: router.groups.score if router.groups else "", _ranked_otherwise),
    ),
    Fault(
        id="ffn.router.groups.others",
        field="ffn.router.groups.others",
        kind="architecture",
        wrong="Experts of other groups score 0 where they should be excluded, or the reverse.",
        when="routers with groups and a correction",
        mend="mask other groups with -inf, or with 0 where the reference does",
        slips=slips(routers, lambda router: router.groups.others if router.groups else "", _others_in_groups),
        seen=("sgl-project/sglang#3705",),
        same_when="no corrected score is below 0",
    ),
    Fault(
        id="ffn.router.bias",
        field="ffn.router.bias",
        kind="architecture",
        wrong="The stored bias of the router is not added.",
        when="routers with a bias",
        mend="add the bias to the router's logits",
        slips=field_slips(routers, "bias", lambda router: (False,)),
        seen=("pytorch/torchtitan#2319",),
    ),
    Fault(
        id="ffn.router.softcap",
        field="ffn.router.softcap",
        kind="architecture",
        wrong="Router logits are not capped.",
        when="routers with a soft cap",
        mend="softcap·tanh(logits / softcap), before they are scored",
        slips=field_slips(routers, "softcap", lambda router: (None,)),
        same_when="logits are far below the cap",
    ),
    Fault(
        id="ffn.router.renormalize_power",
        field="ffn.router.renormalize_power",
        kind="architecture",
        wrong="Weights are divided by their sum where another norm of them is declared.",
        when="routers that renormalise by another norm",
        mend="divide by the norm of the declared power",
        slips=field_slips(routers, "renormalize_power", lambda router: (1.0,)),
    ),
    Fault(
        id="ffn.router.renormalize_floor",
        field="ffn.router.renormalize_floor",
        kind="architecture",
        wrong="Small sums of weights are divided by as they are.",
        when="routers with a least divisor",
        mend="divide by at least the declared floor",
        slips=field_slips(routers, "renormalize_floor", lambda router: (0.0,)),
        same_when="no sum is below the floor",
    ),
    Fault(
        id="ffn.router.weighs",
        field="ffn.router.weighs",
        kind="architecture",
        wrong="The weight multiplies what an expert returns where it should what it is given, or the reverse.",
        when="mixtures of experts",
        mend="weigh the input or the output of experts, as the reference does",
        slips=field_slips(routers, "weighs", lambda router: ("output", "input")),
    ),
    Fault(
        id="ffn.shared",
        field="ffn.shared",
        kind="architecture",
        wrong="The shared expert is left out.",
        when="mixtures with a shared expert",
        mend="add what the shared expert returns to the weighed outputs of the others",
        slips=slips(experts, lambda _part: "stated", _unshared),
    ),
    Fault(
        id="ffn.shared.gate",
        field="ffn.shared.gate",
        kind="architecture",
        wrong="The output of the shared expert is not gated.",
        when="mixtures with a gate of the shared expert",
        mend="multiply what the shared expert returns by the sigmoid of its gate",
        slips=slips(experts, lambda part: "sigmoid" if part.shared_gate else "none", _ungated_shared),
        seen=("NousResearch/torchtitan#36",),
    ),
    Fault(
        id="ffn.shared.combine",
        field="ffn.shared.combine",
        kind="architecture",
        wrong="Outputs of experts and shared expert are averaged where they should be added, or the reverse.",
        when="mixtures with a shared expert",
        mend="add them, or take their mean, as the config says",
        slips=slips(experts, lambda part: "average" if part.shared_average else "sum", _combined_otherwise),
    ),
    Fault(
        id="ffn.kind.schedule",
        field="ffn.kind",
        kind="architecture",
        wrong="Layers that have experts have a dense feed-forward.",
        when="mixtures of experts",
        mend="read which layers have experts from the resolved config",
        slips=slips(parts, lambda part: part.kind if isinstance(part, FfnPart) else "", _scheduled),
        seen=("Blaizzy/mlx-vlm#1073",),
        loud=True,
    ),
)
