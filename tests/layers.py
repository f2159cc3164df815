"""The parts of a plain layer, as the types that tests look into."""

from __future__ import annotations

from archc.architecture.model import Layer
from archc.parts.attention import Attention
from archc.parts.experts import Experts
from archc.parts.feed_forward import FeedForward


def attention_of(layer: Layer) -> Attention:
    """The attention of a plain layer."""
    assert isinstance(layer.mixer, Attention)
    return layer.mixer


def feed_forward_of(layer: Layer) -> FeedForward | Experts:
    """The feed-forward of a plain layer."""
    assert isinstance(layer.ffn, FeedForward | Experts)
    return layer.ffn
