"""The kinds of part there are, as types: the one place to add a new one to."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from archc.parts.attention import Attention
from archc.parts.experts import Experts, MoeFields
from archc.parts.feed_forward import FeedForward, GatedFields, MlpFields

Mixer = Attention
Ffn = FeedForward | Experts
FfnFields = Annotated[MlpFields | GatedFields | MoeFields, Field(discriminator="kind")]
