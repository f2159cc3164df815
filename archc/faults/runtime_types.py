"""Faults of types: what is worked out in 16 bits that the reference works out in 32, or the reverse.

In a model that runs in 32 bits these change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from archc.architecture.model import Architecture
from archc.faults.base import IN_32_BITS, Fault
from archc.faults.code import code_slips, way
from archc.faults.facts import explicit_scores, norms, routers
from archc.faults.facts import ropes as ropes_of
from archc.faults.sites import field_slips, held, model_slips, residuals, ropes, word
from archc.faults.sites import routers as router_site
from archc.parts.position import Rope


def _less_exact(rope: Rope) -> Iterable[str]:
    return {"all": ("turning", "angles"), "turning": ("angles",), "angles": ()}[rope.float32]


def _scaled_norm(weight: str) -> bool:
    return weight in ("plain", "one_plus")


def _has_scaled_rmsnorm(architecture: Architecture) -> bool:
    return any(norm.kind == "rmsnorm" and _scaled_norm(norm.weight) for norm in norms(architecture))


def _rounded_logits(architecture: Architecture) -> Iterable[tuple[object, str, Architecture]]:
    yield True, "false", replace(architecture, head=replace(architecture.head, float32=False))


def _other_scale(architecture: Architecture) -> Iterable[tuple[object, str, Architecture]]:
    embedding = architecture.embedding
    if embedding.scale is not None:
        other = replace(embedding, scale_rounded=not embedding.scale_rounded)
        yield embedding.scale_rounded, word(other.scale_rounded), replace(architecture, embedding=other)


FAULTS = (
    Fault(
        id="dtype.norm",
        field="dtype.norm",
        kind="runtime",
        wrong="Norms take their mean square in 16 bits, or multiply by the weight in the other type.",
        when="models with RMSNorm",
        mend="bring x to float32 for the norm; a plain weight multiplies what is rounded back, one_plus before that",
        slips=code_slips(
            "as the reference",
            way("all in 16 bits", (r"^        y = x\.float\(\).*$", "        y = x")),
            way(
                "weight in float32",
                (r"self\.weight(\[:, None\])? \* y\.to\(x\.dtype\)", r"(self.weight\1.float() * y).to(x.dtype)"),
                fits=lambda architecture: any(
                    norm.kind == "rmsnorm" and norm.weight == "plain" for norm in norms(architecture)
                ),
            ),
            way(
                "weight in 16 bits",
                (
                    r"\(y \* \(1\.0 \+ self\.weight\.float\(\)\)\)\.to\(x\.dtype\)",
                    "y.to(x.dtype) * (1.0 + self.weight)",
                ),
                fits=lambda architecture: any(
                    norm.kind == "rmsnorm" and norm.weight == "one_plus" for norm in norms(architecture)
                ),
            ),
            fits=_has_scaled_rmsnorm,
        ),
        seen=("vllm-project/vllm#42325",),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="dtype.angles",
        field="position.float32",
        kind="runtime",
        wrong="Positions, frequencies and angles are 16-bit numbers, which hold no odd number above 256.",
        when="models with rotary positions",
        mend="keep positions and frequencies in float32, and round cosines and sines alone",
        slips=code_slips(
            lambda architecture: " and ".join(dict.fromkeys(rope.float32 for rope in ropes_of(architecture))),
            way(
                "none",
                (
                    r"^( +angles_BTC = position_ids\[\.\.\., None\])\.float\(\) \* frequencies_C$",
                    r"\1.to(dtype) * frequencies_C.to(dtype)",
                ),
            ),
            fits=lambda architecture: (
                bool(found := ropes_of(architecture)) and all(rope.float32 != "all" for rope in found)
            ),
        ),
        seen=("huggingface/transformers#29285",),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="position.float32",
        field="position.float32",
        kind="runtime",
        wrong="Rotations are rounded to 16 bits at an earlier step than in the reference.",
        when="models that turn queries and keys in float32",
        mend="turn in float32, and round queries and keys once they have turned",
        slips=field_slips(ropes, "float32", _less_exact),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="ffn.router.float32",
        field="ffn.router.float32",
        kind="runtime",
        wrong="Router logits are worked out in 16 bits where the reference takes 32: near ties turn.",
        when="mixtures of experts whose router is in float32",
        mend="bring the router's input and weight to float32 where the reference does",
        slips=field_slips(router_site, "float32", lambda router: (False,)),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="dtype.scores",
        field="ffn.router.score",
        kind="runtime",
        wrong="Router logits are scored in 16 bits: softmax or sigmoid comes before the step to float32.",
        when="mixtures of experts whose router works in the type of the model",
        mend="bring logits to float32 before they are scored",
        slips=code_slips(
            lambda architecture: " and ".join(dict.fromkeys(router.score for router in routers(architecture))),
            way("in 16 bits", (r"(logits_NE|top_NA|near_NE)\.float\(\)", r"\1")),
            fits=lambda architecture: (
                bool(found := routers(architecture))
                and all(not router.float32 and router.softcap is None for router in found)
            ),
        ),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="dtype.softmax",
        field="dtype.softmax",
        kind="runtime",
        wrong="Scores of queries and keys, and their softmax, are 16-bit numbers.",
        when="attention with a soft cap, sinks or ALiBi, which fused kernels do not know",
        mend="multiply queries and keys in float32, and round the weights behind the softmax",
        slips=code_slips(
            "float32",
            way(
                "16 bits",
                (
                    r"^( +scores_BHTS = q_BHTC)\.float\(\) @ (\w+)\.float\(\)\.transpose\(-1, -2\)$",
                    r"\1 @ \2.transpose(-1, -2)",
                ),
            ),
            fits=explicit_scores,
        ),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="ffn.glu.float32",
        field="ffn.glu.float32",
        kind="runtime",
        wrong="The product of gate and up is rounded on the way where the reference keeps 32 bits.",
        when="gated feed-forwards whose halves are float32",
        mend="bring both halves to float32 before the activation, and round their product",
        slips=field_slips(held("glu"), "float32", lambda glu: (False,)),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="logits.float32",
        field="logits.float32",
        kind="runtime",
        wrong="Logits are scaled and capped in 16 bits where the reference takes 32.",
        when="models whose logits are float32",
        mend="bring logits to float32 behind the head, before scale and cap, where the reference does",
        slips=model_slips(_rounded_logits),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="embedding.scale_rounded",
        field="embedding.scale_rounded",
        kind="runtime",
        wrong="The factor on embedded tokens is exact where it was rounded to 16 bits in training, or the reverse.",
        when="models that scale embedded tokens",
        mend="round the factor to the type of the weights, as Gemma's classes do, or leave it exact",
        slips=model_slips(_other_scale),
        seen=("huggingface/transformers#29402",),
        same_when=IN_32_BITS,
    ),
    Fault(
        id="residual.float32",
        field="residual.float32",
        kind="runtime",
        wrong="The residual stream is rounded to 16 bits between layers where the reference keeps 32.",
        when="models whose stream is float32",
        mend="add to the stream in float32, and round what parts read of it",
        slips=field_slips(residuals, "float32", lambda residual: (False,)),
        same_when=IN_32_BITS,
    ),
)
