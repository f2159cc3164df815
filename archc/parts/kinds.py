"""The kinds of part and of positions there are, by the section of the language that declares them.

A new kind of part is added here and nowhere else. Positions and scalings have a type of their own besides (the unions
`PositionFields` and `Scaling`), and the formula of a scaling stands in `Rope`.

A kind is named by its module and the class of its fields, and imported when a spec uses it: a report on a dense model
never reads the file of a state-space mixer.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final, Literal

from archc.parts.base import Fields

Section = Literal["attention", "mixer", "ffn"]
PARTS: Final[tuple[Section, ...]] = ("attention", "mixer", "ffn")
"""The sections that declare a part. Attention and mixer, where a layer has both, read the same input and are added."""

KINDS: Final[Mapping[str, Mapping[str, str]]] = {
    "position": {
        "rope": "archc.parts.position:RopeFields",
        "learned": "archc.parts.position:LearnedFields",
        "sinusoidal": "archc.parts.position:SinusoidalFields",
        "axial": "archc.parts.position:AxialFields",
        "buckets": "archc.parts.position:BucketFields",
        "alibi": "archc.parts.position:AlibiFields",
        "none": "archc.parts.position:NoPositionFields",
    },
    "scaling": {
        "linear": "archc.parts.scaling:LinearScaling",
        "dynamic": "archc.parts.scaling:DynamicScaling",
        "llama3": "archc.parts.scaling:Llama3Scaling",
        "yarn": "archc.parts.scaling:YarnScaling",
        "longrope": "archc.parts.scaling:LongropeScaling",
        "ntk_alpha": "archc.parts.scaling:NtkAlphaScaling",
        "proportional": "archc.parts.scaling:ProportionalScaling",
    },
    "attention": {
        "gqa": "archc.parts.attention_fields:AttentionFields",
        "mla": "archc.parts.latent:LatentFields",
        "routed": "archc.parts.routed_attention:RoutedAttentionFields",
        "compressed": "archc.parts.compressed:CompressedFields",
        "bucketed": "archc.parts.bucketed:BucketedFields",
        "convolved": "archc.parts.convolved:ConvolvedFields",
    },
    "mixer": {
        "mamba": "archc.parts.mamba:MambaFields",
        "mamba2": "archc.parts.mamba2:Mamba2Fields",
        "gated_delta": "archc.parts.delta:GatedDeltaFields",
        "kda": "archc.parts.delta:KdaFields",
        "lightning": "archc.parts.lightning:LightningFields",
        "rg_lru": "archc.parts.rg_lru:RgLruFields",
        "short_conv": "archc.parts.short_conv:ShortConvFields",
        "rwkv": "archc.parts.rwkv:RwkvFields",
        "mlstm": "archc.parts.mlstm:MlstmFields",
        "causal_conv": "archc.parts.causal_conv:CausalConvFields",
        "ngram": "archc.parts.ngram:NgramFields",
    },
    "ffn": {
        "mlp": "archc.parts.feed_forward:MlpFields",
        "gated": "archc.parts.feed_forward:GatedFields",
        "moe": "archc.parts.experts:MoeFields",
        "product_keys": "archc.parts.product_keys:ProductKeyFields",
        "linear": "archc.parts.linear_map:LinearMapFields",
        "low_rank": "archc.parts.low_rank:LowRankFields",
        "token_row": "archc.parts.token_row:TokenRowFields",
        "channel_mix": "archc.parts.rwkv:ChannelMixFields",
    },
}
DEFAULT_KIND: Final[Mapping[str, str]] = {"attention": "gqa"}
"""The kind of a section that does not state one."""


def fields_of(section: str, kind: str) -> type[Fields]:
    """The fields of a kind. Raises KeyError for one that there is not."""
    module, _, name = KINDS[section][kind].partition(":")
    found = getattr(import_module(module), name)
    assert isinstance(found, type)
    assert issubclass(found, Fields)
    return found
