"""Latent attention in a generated module."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from msgspec.structs import replace

from archc.codegen.caching import LATENTS_AND_KEYS, Kept, Sizes
from archc.codegen.constants import Constant
from archc.codegen.naming import Names, Variant, literal
from archc.codegen.norms import NormCall, Norms
from archc.codegen.part_view import MixerView
from archc.codegen.rotation import Turn, function_of, without_table
from archc.parts.latent import LatentAttention, LatentProjection
from archc.parts.norm import InnerNormFields


@dataclass(frozen=True, slots=True)
class LatentView(MixerView[LatentAttention]):
    """One class of latent attention."""

    q_norm: NormCall | None
    kv_norm: NormCall
    k_norm: NormCall | None

    letters: ClassVar[str] = "R channels of a latent"
    kept: ClassVar[Kept] = LATENTS_AND_KEYS

    @classmethod
    def of(cls, part: LatentAttention, names: Names, norms: Norms, turns: Sequence[Variant[Turn]]) -> Self:
        """The view of a latent attention, with the names of the norms and the rotation that it calls."""
        c = names
        return cls(
            name=names.class_("Attention"),
            names=names,
            part=part,
            q_norm=norms.call(part.q_norm, c.Q_RANK) if part.q_norm else None,
            kv_norm=norms.call(part.kv_norm, c.KV_RANK),
            k_norm=norms.call(part.rope_key_norm, c.ROPE_DIM) if part.rope_key_norm else None,
            rotate=function_of(part.rope, turns),
        )

    @staticmethod
    def without_arguments(part: LatentAttention) -> LatentAttention:
        """The attention without which keys are visible, which table turns it, and fields that the part has settled."""
        settled = {"bias": "none", "scale": None, "latent_norm": InnerNormFields(), "rope_key_norm": None}
        return replace(part, fields=replace(part.fields, window=None, **settled), rope=without_table(part.rope))

    @property
    def inputs(self) -> tuple[str, ...]:
        """What it is given beside the stream and the cache."""
        return ("rotation", "visible_BTS") if self.rotate else ("visible_BTS",)

    @property
    def rope_channels(self) -> str:
        """Positions act over a part of each head."""
        return self.names.ROPE_DIM

    @property
    def cached(self) -> tuple[Sizes, Sizes]:
        """The latent and the shared key, each as if it were one head."""
        return ("1", self.names.KV_RANK), ("1", self.names.ROPE_DIM)

    @property
    def sizes(self) -> Iterator[Constant]:
        """Sizes and scales."""
        part, fields, c = self.part, self.part.fields, self.names
        yield Constant(c.HEADS, literal(fields.heads))
        if fields.q_rank is not None:
            yield Constant(c.Q_RANK, literal(fields.q_rank), "channels of the latent of queries")
        yield Constant(c.KV_RANK, literal(fields.kv_rank), "channels of the latent of keys and values")
        yield Constant(c.NOPE_DIM, literal(fields.nope_dim), "channels of a head made of the latent")
        yield Constant(c.ROPE_DIM, literal(fields.rope_dim), self._rope_words)
        yield Constant(c.HEAD_DIM, f"{c.NOPE_DIM} + {c.ROPE_DIM}")
        yield Constant(c.VALUE_DIM, literal(fields.value_dim), "channels of a value")
        yield Constant(c.KV_HEAD_DIM, f"{c.NOPE_DIM} + {c.VALUE_DIM}")
        yield Constant(c.Q_WIDTH, f"{c.HEADS} * {c.HEAD_DIM}")
        yield Constant(c.KV_WIDTH, f"{c.HEADS} * {c.KV_HEAD_DIM}")
        yield Constant(c.O_WIDTH, f"{c.HEADS} * {c.VALUE_DIM}")
        if not self._usual_scale:
            yield Constant(c.ATTENTION_SCALE, literal(part.scale), "not HEAD_DIM**-0.5")
        if fields.q_latent_scale is not None:
            yield Constant(c.Q_LATENT_SCALE, literal(fields.q_latent_scale))
        if fields.kv_latent_scale is not None:
            yield Constant(c.KV_LATENT_SCALE, literal(fields.kv_latent_scale))

    @property
    def _rope_words(self) -> str:
        return "channels of a head that turn" if self.rotate else "channels of a head whose key all heads share"

    @property
    def _usual_scale(self) -> bool:
        """Whether scores are scaled as torch's attention does, by the root of the channels of a head."""
        return bool(self.part.scale == self.part.head_dim**-0.5)

    @property
    def attended(self) -> list[str]:
        """What torch's attention is given."""
        scale = [] if self._usual_scale else [f"scale={self.names.ATTENTION_SCALE}"]
        return ["q_BHTC", "k_BHSC", "v_BHSC", *self.masked, *scale]

    def linear(self, name: LatentProjection) -> tuple[str, str, str]:
        """Sizes of a projection, and whether it has a bias."""
        c, fields = self.names, self.part.fields
        into, out = {
            "q": ("WIDTH", c.Q_WIDTH),
            "q_down": ("WIDTH", c.Q_RANK),
            "q_up": (c.Q_RANK if fields.q_latent == "normed" else f"2 * {c.Q_RANK}", c.Q_WIDTH),
            "kv_down": ("WIDTH", f"{c.KV_RANK} + {c.ROPE_DIM}"),
            "kv_up": (c.KV_RANK, c.KV_WIDTH),
            "o": (c.O_WIDTH, "WIDTH"),
        }[name]
        return into, out, f"bias={name in self.part.biased}"

    @property
    def gate(self) -> tuple[str, str, str]:
        """Sizes of the gate's projection, and whether it has a bias."""
        c, fields = self.names, self.part.fields
        assert fields.gate is not None
        into = self.linear("q_up")[0] if fields.gate.source == "latent" else "WIDTH"
        out = c.HEADS if fields.gate.over == "head" else c.O_WIDTH
        return into, out, f"bias={fields.gate.bias}"

    def normed_query(self, expression: str) -> str:
        """The normed latent of queries, made of the latent."""
        normed = f"self.q_norm({expression})"
        return f"{normed} * {self.names.Q_LATENT_SCALE}" if self.part.fields.q_latent_scale is not None else normed

    def gated(self, source: str) -> str:
        """What multiplies the outputs of heads."""
        gate = self.part.fields.gate
        assert gate is not None
        return f"F.{gate.score}(self.gate({source}))"

    @property
    def summary(self) -> str:
        """The docstring of the class."""
        fields = self.part.fields
        heads = "One head" if fields.heads == 1 else f"{fields.heads} heads"
        return f"{heads}, with keys and values made of one latent of {fields.kv_rank} channels."

    @staticmethod
    def words(part: LatentAttention) -> str:
        """What the header says of it."""
        fields = part.fields
        queries = f", queries of one of {fields.q_rank:,}" if fields.q_rank else ""
        raw = " before and after its norm" if fields.q_latent == "normed_and_raw" else ""
        heads = "1 head" if fields.heads == 1 else f"{fields.heads} heads"
        text = (
            f"latent attention, {heads}: keys and values are made of a latent of {fields.kv_rank:,} channels{queries}"
            f"{raw}; one key of {fields.rope_dim} more channels{', which turn,' if part.rope else ''} serves all heads"
        )
        if part.biased:
            text += f"; biases on {', '.join(part.biased)}"
        if part.scale != part.head_dim**-0.5:
            text += f"; scores are multiplied by {part.scale:.4g}, not by {part.head_dim}**-0.5"
        if part.rope_key_norm:
            text += "; the shared key is normed"
        if fields.gate:
            gated = "the output of each head" if fields.gate.over == "head" else "every channel of the heads' outputs"
            source = "input" if fields.gate.source == "input" else "latent of queries"
            text += f"; {gated} is multiplied by a {fields.gate.score} of the {source}"
        return text
