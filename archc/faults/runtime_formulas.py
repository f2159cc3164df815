"""Faults of formulas that no field of the language can get wrong: the fields are right, and the code is not."""

from __future__ import annotations

from archc.architecture.model import Architecture
from archc.faults.base import Fault
from archc.faults.code import Way, code_slips, way
from archc.faults.facts import Fits, of_kind, ropes, routers
from archc.faults.sites import word
from archc.parts.attention import Attention
from archc.parts.experts import Experts
from archc.parts.latent import LatentAttention
from archc.parts.scaling import DynamicScaling, LongropeScaling, Scaling

_CAPPED_AND_HIDDEN = r"^( +scores_BHTS = soft_cap\(.*\)\n)( +scores_BHTS = scores_BHTS\.masked_fill\(.*\)\n)"


def _softcaps(architecture: Architecture) -> str:
    return " and ".join(word(part.softcap) for part in of_kind(Attention, architecture) if part.softcap is not None)


def _heads(architecture: Architecture) -> list[int]:
    latent = (part.fields.heads for part in of_kind(LatentAttention, architecture))
    return [*(part.heads for part in of_kind(Attention, architecture)), *latent]


def _has_mixture(architecture: Architecture) -> bool:
    return bool(of_kind(Experts, architecture))


def _scaled(kind: type[Scaling]) -> Fits:
    return lambda architecture: any(isinstance(rope.scaling, kind) for rope in ropes(architecture))


def _factors(architecture: Architecture) -> str:
    found = (rope.scaling.factor for rope in ropes(architecture) if isinstance(rope.scaling, DynamicScaling))
    return " and ".join(dict.fromkeys(map(word, found)))


def _originals(architecture: Architecture) -> str:
    found = (rope.scaling.original_context for rope in ropes(architecture) if isinstance(rope.scaling, LongropeScaling))
    return " and ".join(dict.fromkeys(map(word, found)))


def _switching(behaves_as: str, test: str) -> Way:
    """A way to choose between the two tables of longrope."""
    return way(
        behaves_as, (r"torch\.where\(length > (\w+), long_C, short_C\)", f"torch.where({test}, long_C, short_C)")
    )


def _weighed(behaves_as: str, weights: str, fits: Fits) -> Way:
    """Other weights in the place of what the router gives, just before they are used."""
    line = rf"\n        weight_NA = {weights}\g<0>"
    return way(behaves_as, (r"\n\n        y_ND = self\.apply_experts\(", line), fits=fits)


FAULTS = (
    Fault(
        id="attention.softcap.order",
        field="attention.softcap",
        kind="runtime",
        wrong="Scores are capped behind the mask: hidden keys come back with minus the cap.",
        when="attention with a soft cap",
        mend="cap the scores first, and hide keys from what is capped",
        slips=code_slips(
            _softcaps,
            way("behind the mask", (_CAPPED_AND_HIDDEN, r"\2\1")),
            fits=lambda architecture: bool(_softcaps(architecture)),
        ),
    ),
    Fault(
        id="attention.output",
        field="attention.heads",
        kind="runtime",
        wrong="The outputs of heads are put side by side by a reshape alone, which mixes heads and positions.",
        when="attention with several heads",
        mend="bring [B, H, T, C] to [B, T, H, C] before it becomes [B, T, H · C]",
        slips=code_slips(
            lambda architecture: " and ".join(dict.fromkeys(map(str, _heads(architecture)))),
            way(
                "reshaped, not transposed",
                (r"y_BHTC\.transpose\(1, 2\)\.flatten\(2\)", "y_BHTC.reshape(len(y_BHTC), y_BHTC.shape[2], -1)"),
            ),
            fits=lambda architecture: max(_heads(architecture), default=1) > 1,
        ),
    ),
    Fault(
        id="ffn.router.raw",
        field="ffn.router.score",
        kind="runtime",
        wrong="Experts are weighed by the logits of the router, since the score is part of another branch of the code.",
        when="mixtures that do not renormalise",
        mend="score the logits whether the weights are renormalised or not",
        slips=code_slips(
            lambda architecture: " and ".join(dict.fromkeys(router.score for router in routers(architecture))),
            way(
                "none",
                (
                    r"^( +)(scores_NE = |weight_NA = )\S*(logits_NE|top_NA)(\.float\(\)|\.sigmoid\(\)|, dim=-1\))+$",
                    r"\1\2\3",
                ),
            ),
            fits=lambda architecture: (
                bool(found := routers(architecture))
                and all(not router.renormalize and router.order != "sparsemixer" for router in found)
            ),
        ),
        seen=("sgl-project/sglang#35160",),
    ),
    Fault(
        id="ffn.router.axis",
        field="ffn.router.score",
        kind="runtime",
        wrong="The softmax of the router runs over tokens, and not over experts.",
        when="mixtures whose router scores by a softmax",
        mend="take the softmax over the experts of each token",
        slips=code_slips(
            "softmax",
            way("softmax over tokens", (r"F\.softmax\((logits_NE|top_NA)(\S*), dim=-1\)", r"F.softmax(\1\2, dim=0)")),
            fits=lambda architecture: (
                bool(found := routers(architecture))
                and all(router.score == "softmax" and router.order != "sparsemixer" for router in found)
            ),
        ),
    ),
    Fault(
        id="ffn.router.ignored",
        field="ffn.router.weighs",
        kind="runtime",
        wrong="The outputs of chosen experts are added as they are, or each weighed as if all were alike.",
        when="mixtures of experts",
        mend="multiply the output of each expert by the weight that the router gives it",
        slips=code_slips(
            "output",
            _weighed("nothing", "torch.ones_like(weight_NA)", _has_mixture),
            _weighed(
                "all experts alike",
                "weight_NA.mean(dim=-1, keepdim=True).expand_as(weight_NA)",
                lambda architecture: any(part.top_k > 1 for part in of_kind(Experts, architecture)),
            ),
            fits=_has_mixture,
        ),
    ),
    Fault(
        id="ffn.capacity",
        field="ffn.capacity",
        kind="runtime",
        wrong="An expert takes so many tokens and drops the rest, as it may in training.",
        when="mixtures of experts",
        mend="send every token to all of its experts when the model serves",
        slips=code_slips(
            "none",
            way(
                "1.25 times an equal share",
                (
                    r"^( +)token, choice = torch\.where\(expert_NA == expert\)\n(?= +x_D = )",
                    r"\g<0>\1most = max(5 * expert_NA.numel() // (4 * self.router.out_features), 1)\n"
                    r"\1token, choice = token[:most], choice[:most]\n",
                ),
            ),
            fits=_has_mixture,
        ),
    ),
    Fault(
        id="position.scaling.growth",
        field="position.scaling.factor",
        kind="runtime",
        wrong="The factor by which dynamic scaling lets the base grow does not come of the length of the input.",
        when="rotary positions with dynamic scaling",
        mend="factor * length / original_context - (factor - 1), and never less than 1",
        slips=code_slips(
            _factors,
            way("factor² - (factor - 1)", (r"= (\w+) \* stretch - \(", r"= \1 * \1 - (")),
            way("factor · stretch", (r"= (\w+) \* stretch - \(\1 - 1\.0\)", r"= \1 * stretch")),
            way("grows below the original context, too", (r"(stretch = .*)\.clamp\(min=1\.0\)$", r"\1.clamp(min=0.7)")),
            fits=_scaled(DynamicScaling),
        ),
        seen=("vllm-project/vllm#41236", "ml-explore/mlx-lm#1553"),
    ),
    Fault(
        id="position.scaling.switch",
        field="position.scaling.original_context",
        kind="runtime",
        wrong="Each position chooses its own table of longrope, or inputs change to the long one too early.",
        when="rotary positions with longrope scaling",
        mend="take the long factors for all positions as soon as the input is longer than original_context",
        slips=code_slips(
            _originals,
            _switching("by position", r"position_ids[..., None] >= \1"),
            _switching("one position early", r"length >= \1"),
            fits=lambda architecture: (
                _scaled(LongropeScaling)(architecture) and any(rope.length_matters for rope in ropes(architecture))
            ),
        ),
        seen=("lablup/mlxcel#1358",),
    ),
)
