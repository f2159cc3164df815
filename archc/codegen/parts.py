"""Which view prints which part."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from archc.codegen.attention import AttentionView
from archc.codegen.experts import ExpertsView
from archc.codegen.feed_forward import FeedForwardView
from archc.codegen.part_view import FfnView, MixerView
from archc.parts.attention import Attention
from archc.parts.base import FfnPart, MixerPart
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward

MIXERS: Mapping[type[MixerPart], type[MixerView[Any]]] = {Attention: AttentionView}
FFNS: Mapping[type[FfnPart], type[FfnView[Any]]] = {FeedForward: FeedForwardView, Experts: ExpertsView}
