"""Faults of norms: kind, eps, how weights act, where they stand, and norms that are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace as replaced
from typing import TypeAlias

from msgspec.structs import replace

from archc.architecture.model import Architecture, Branch, Layer
from archc.faults.base import Fault, Faulty, Layers, Slip, Weights
from archc.faults.sites import (
    Slips,
    branch_norms,
    filled,
    in_layers,
    layers_whole,
    model_slips,
    norms,
    slips,
    word,
)
from archc.parts.norm import Norm

USUAL_EPS = (1e-6, 1e-5, 1e-12, 1e-8)
_Wrong: TypeAlias = Callable[[Norm], Iterable[tuple[str, Norm]]]


def other_eps(norm: Norm) -> Iterator[tuple[str, Norm]]:
    """A norm with the usual eps."""
    for eps in USUAL_EPS:
        yield word(eps), replace(norm, eps=eps)


def _all_eps(architecture: Architecture) -> Iterator[Slip]:
    """The eps of every norm that has the one that most norms have."""
    counts: Counter[float] = Counter()

    def count(norm: Norm) -> Norm:
        counts[norm.eps] += 1
        return norm

    for layer in architecture.layers:
        branch_norms(layer, count)
    if not counts:
        return
    declared = counts.most_common(1)[0][0]

    def slip(eps: float) -> Slip:
        def other(norm: Norm) -> Norm:
            return replace(norm, eps=eps) if norm.eps == declared else norm

        def change(faulty: Faulty, layers: Layers) -> Faulty:
            found = in_layers(faulty, layers, lambda layer: norms(layer, other))
            return found if layers is not None else _at_ends(found, other)

        return Slip(word(declared), word(eps), change, tuple(range(len(architecture.layers))))

    yield from (slip(eps) for eps in USUAL_EPS if eps != declared)


def _at_ends(faulty: Faulty, change: Callable[[Norm], Norm]) -> Faulty:
    """With the norms of the embedding and before the head changed."""
    architecture = faulty.architecture
    embedding, final = architecture.embedding, architecture.final_norm
    if embedding.norm:
        embedding = replace(embedding, norm=change(embedding.norm))
    found = replace(architecture, embedding=embedding, final_norm=final and change(final))
    return replaced(faulty, architecture=found)


def _everywhere(declared: Callable[[Norm], object], wrong: _Wrong) -> Slips:
    """Slips of all norms around the parts, and of those at both ends of the model."""

    def one(norm: Norm, behaves_as: str) -> Norm:
        return next((other for found, other in wrong(norm) if found == behaves_as), norm)

    def find(architecture: Architecture) -> Iterator[Slip]:
        for slip in slips(branch_norms, declared, wrong)(architecture):
            yield replaced(slip, change=_also_at_ends(slip, one))

    return find


def _also_at_ends(slip: Slip, one: Callable[[Norm, str], Norm]) -> Callable[[Faulty, Layers], Faulty]:
    def change(faulty: Faulty, layers: Layers) -> Faulty:
        found = slip.change(faulty, layers)
        return found if layers is not None else _at_ends(found, lambda norm: one(norm, slip.behaves_as))

    return change


def _final(declared: Callable[[Norm], object], wrong: _Wrong) -> Slips:
    """Slips of the final norm alone."""

    def find(architecture: Architecture) -> Iterator[tuple[object, str, Architecture]]:
        final = architecture.final_norm
        if final is not None:
            for behaves_as, other in wrong(final):
                yield declared(final), behaves_as, replace(architecture, final_norm=other)

    return model_slips(find)


def other_kind(norm: Norm) -> Iterator[tuple[str, Norm]]:
    """A norm that subtracts the mean, or does not."""
    kind = {"rmsnorm": "layernorm", "layernorm": "rmsnorm"}.get(norm.kind)
    if kind:
        yield kind, replace(norm, kind=kind)


def other_weight(norm: Norm) -> Iterator[tuple[str, Norm]]:
    """A norm that multiplies by what it stores in another way, or not at all."""
    if norm.weight != "none":
        other = "plain" if norm.weight == "one_plus" else "one_plus"
        yield other, replace(norm, weight=other)
        yield "none", replace(norm, weight="none")


def _no_bias(norm: Norm) -> Iterator[tuple[str, Norm]]:
    yield "false", replace(norm, bias=False)


def _no_final(architecture: Architecture) -> Iterator[tuple[object, str, Architecture]]:
    yield True, "false", replace(architecture, final_norm=None)


# Where norms stand.


def _placement(layer: Layer) -> str:
    """The word of the language for where the norms of a layer stand."""
    if layer.parallel:
        return "parallel" if layer.shared_norm else "parallel_separate"
    before, behind = (all(getattr(one, name) for one in layer.branches) for name in ("pre_norm", "post_norm"))
    if behind:
        summed = any(one.norm_on_sum for one in layer.branches)
        return "sandwich" if before else "post_sum" if summed else "post"
    return "pre" if before else "none"


def _placements(layer: Layer) -> Iterator[tuple[str, Layer]]:
    """The layer with its norms in other places."""

    def before(branch: Branch) -> Branch:
        norm = branch.pre_norm or branch.post_norm or layer.shared_norm
        return replace(branch, pre_norm=norm, post_norm=None, norm_on_sum=False)

    def behind(branch: Branch) -> Branch:
        return replace(branch, pre_norm=None, post_norm=branch.post_norm or branch.pre_norm, norm_on_sum=False)

    def with_each(change: Callable[[Branch], Branch]) -> Layer:
        return replace(layer, branches=tuple(map(change, layer.branches)), parallel=False, shared_norm=None)

    placement = _placement(layer)
    if placement != "none":
        yield "pre", with_each(before)
    if placement in ("pre", "sandwich", "post_sum"):
        yield "post", with_each(behind)
    if placement == "pre" and len(layer.branches) > 1:
        yield "parallel_separate", replace(layer, parallel=True)


def _placed(architecture: Architecture) -> Iterator[Slip]:
    """Slips of placement, with the stored norms put where the port has one."""
    for slip in slips(layers_whole, _placement, _placements)(architecture):
        yield replaced(slip, change=_with_norms_moved(slip))


def _with_norms_moved(slip: Slip) -> Callable[[Faulty, Layers], Faulty]:
    def change(faulty: Faulty, layers: Layers) -> Faulty:
        found = slip.change(faulty, layers)
        had = {tensor.name for tensor in faulty.architecture.tensors()}
        lacking = [tensor.name for tensor in found.architecture.tensors() if tensor.name not in had]
        moved = {name: source for name in lacking for source in _stand_ins(name) if source in had}
        return filled(found, lambda weights: {name: weights[source] for name, source in moved.items()})

    return change


def _stand_ins(name: str) -> tuple[str, str]:
    """What a port would take for a norm that is not stored: the norm of the layer, or the other one of the branch."""
    owner, norm, tensor = name.rsplit(".", 2)
    slot = norm.removesuffix("_norm").removesuffix("_post")
    other = f"{slot}_norm" if norm.endswith("_post_norm") else f"{slot}_post_norm"
    return f"{owner}.norm.{tensor}", f"{owner}.{other}.{tensor}"


def _norm_names(layer: Layer) -> list[str]:
    """The norms of a layer that store something, in the order in which they act."""
    names = []
    for branch in layer.branches:
        names += [f"{branch.slot}_norm"] if branch.pre_norm and branch.pre_norm.stores else []
        names += [f"{branch.slot}_post_norm"] if branch.post_norm and branch.post_norm.stores else []
    return names if all(branch.shared is None for branch in layer.branches) else []


def _mixed_up(layer: Layer, behaves_as: str) -> dict[str, str]:
    """For a norm, the one whose tensors a port gives it."""
    names, placement = _norm_names(layer), _placement(layer)
    if placement == "sandwich" and len(names) == 4 and behaves_as == "exchanged":
        return {names[1]: names[2], names[2]: names[1]}
    if placement not in ("pre", "post", "parallel_separate") or len(names) != 2:
        return {}
    return {names[1]: names[0]} if behaves_as == "shared" else {names[0]: names[1], names[1]: names[0]}


def _of_others(behaves_as: str, declared: str) -> Slips:
    """Slips by which norms of a layer have the tensors of others."""

    def change(faulty: Faulty, layers: Layers) -> Faulty:
        names = {
            f"layers.{index}.{norm}.{tensor}": f"layers.{index}.{source}.{tensor}"
            for index, layer in enumerate(faulty.architecture.layers)
            if layers is None or index in layers
            for norm, source in _mixed_up(layer, behaves_as).items()
            for tensor in ("weight", "bias")
        }

        def values(weights: Weights) -> Weights:
            return {name: weights[source] for name, source in names.items() if source in weights}

        return filled(faulty, values)

    def find(architecture: Architecture) -> Iterator[Slip]:
        found = [index for index, layer in enumerate(architecture.layers) if _mixed_up(layer, behaves_as)]
        if found:
            yield Slip(declared, behaves_as, change, tuple(found))

    return find


FAULTS = (
    Fault(
        id="norm.eps",
        field="norm.eps",
        kind="architecture",
        wrong="All norms have another eps, often a library's default.",
        when="models with norms",
        mend="take the eps from the config, and hand it to every norm",
        slips=_all_eps,
        seen=("huggingface/candle#271", "keras-team/keras-hub#642"),
        same_when="variances are so large that the eps is below their last digit",
    ),
    Fault(
        id="norm.eps.branches",
        field="norm.eps",
        kind="architecture",
        wrong="The norms before and behind the parts have another eps than declared; the final norm has the right one.",
        when="models with norms",
        mend="hand the eps of the config to the norms of every layer",
        slips=slips(branch_norms, lambda norm: norm.eps, other_eps),
        seen=("keras-team/keras-hub#642",),
        same_when="variances are so large that the eps is below their last digit",
    ),
    Fault(
        id="final_norm_eps",
        field="final_norm_eps",
        kind="architecture",
        wrong="The norm before the head has another eps than declared.",
        when="models with a final norm",
        mend="hand the eps of the config to the final norm too",
        slips=_final(lambda norm: norm.eps, other_eps),
        same_when="what reaches the final norm is so large that the eps is below its last digit",
    ),
    Fault(
        id="norm.kind",
        field="norm.kind",
        kind="architecture",
        wrong="The norms subtract the mean where they should not, or do not where they should.",
        when="models with norms",
        mend="rmsnorm divides by the root mean square alone; layernorm subtracts the mean first",
        slips=_everywhere(lambda norm: norm.kind, other_kind),
    ),
    Fault(
        id="norm.weight",
        field="norm.weight",
        kind="architecture",
        wrong="The norms multiply by w where 1 + w is meant, by 1 + w where w is, or by nothing.",
        when="norms that store a weight",
        mend="add one exactly once: in the norm, or when weights are converted",
        slips=_everywhere(lambda norm: norm.weight, other_weight),
        seen=("linkedin/Liger-Kernel#74", "pytorch/executorch#19901", "Blaizzy/mlx-vlm#2041"),
    ),
    Fault(
        id="norm.weight.final",
        field="norm.weight",
        kind="architecture",
        wrong="The final norm alone takes its weight for w where 1 + w is meant, or the reverse, or leaves it out.",
        when="final norms that store a weight",
        mend="hold the final norm to the convention of the others",
        slips=_final(lambda norm: norm.weight, other_weight),
        seen=("NeuraLegion/shainet#176",),
    ),
    Fault(
        id="norm.bias",
        field="norm.bias",
        kind="architecture",
        wrong="The stored shifts of the norms are not added.",
        when="norms with a shift",
        mend="add the bias behind the weight, in every norm",
        slips=_everywhere(lambda norm: norm.bias, _no_bias),
    ),
    Fault(
        id="final_norm_bias",
        field="final_norm_bias",
        kind="architecture",
        wrong="The stored shift of the final norm is not added.",
        when="final norms with a shift",
        mend="add the bias behind the weight of the final norm",
        slips=_final(lambda norm: norm.bias, _no_bias),
    ),
    Fault(
        id="final_norm",
        field="final_norm",
        kind="architecture",
        wrong="The head reads the stream as the last layer leaves it, without a norm.",
        when="models with a final norm",
        mend="norm the stream once more before the head",
        slips=model_slips(_no_final),
    ),
    Fault(
        id="norm.placement",
        field="norm.placement",
        kind="architecture",
        wrong="Norms stand in other places than declared, or branches are added side by side that follow one another.",
        when="layers whose branches have norms",
        mend="follow the reference: what is normed, and what is added to the stream in which order",
        slips=_placed,
        seen=("NVIDIA-NeMo/Megatron-Bridge#4201", "google/flax#4567"),
    ),
    Fault(
        id="norm.placement.exchanged",
        field="norm.placement",
        kind="architecture",
        wrong="Two norms of a layer have each other's weights, because their names mean other places elsewhere.",
        when="layers with several norms around their parts",
        mend="look up which place the name of each stored norm means in this family",
        slips=_of_others("exchanged", "each its own"),
        seen=("NVIDIA-NeMo/Megatron-Bridge#4201",),
        same_when="the norms have equal weights",
    ),
    Fault(
        id="norm.placement.shared",
        field="norm.placement",
        kind="architecture",
        wrong="One norm serves both branches of a layer.",
        when="layers with a norm for each branch",
        mend="give every branch a norm of its own",
        slips=_of_others("shared", "each its own"),
        seen=("allenai/OLMo#222",),
        same_when="the norms have equal weights",
    ),
)
