"""Which view prints which part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archc.codegen.attention import AttentionView
from archc.codegen.differential import DifferentialView
from archc.codegen.experts import ExpertsView
from archc.codegen.feed_forward import FeedForwardView
from archc.codegen.latent import LatentView
from archc.codegen.part_view import FfnView, MixerView
from archc.codegen.routed_attention import RoutedAttentionView
from archc.parts.attention import Attention
from archc.parts.base import FfnPart, MixerPart
from archc.parts.differential import DifferentialAttention
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward
from archc.parts.latent import LatentAttention
from archc.parts.routed_attention import RoutedAttention

MIXERS: Mapping[type[MixerPart], type[MixerView[Any]]] = {
    Attention: AttentionView,
    DifferentialAttention: DifferentialView,
    LatentAttention: LatentView,
    RoutedAttention: RoutedAttentionView,
}
FFNS: Mapping[type[FfnPart], type[FfnView[Any]]] = {FeedForward: FeedForwardView, Experts: ExpertsView}
