"""How llama.cpp stores what Hugging Face stores otherwise, by the `general.architecture` of a GGUF file.

Read off llama.cpp's converters (v0.4.0, the folder conversion/). A layout has the name that it has in
`archc.checkpoints.layouts`; tensors that no entry names are stored as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_QK = r"blk\.\d+\.attn_[qk]\.(weight|bias)"
_FUSED = r"blk\.\d+\.attn_qkv\.(weight|bias)"
_SSM = {r"blk\.\d+\.ssm_a": "negative_exp", r"blk\.\d+\.ssm_conv1d\.weight": "unit_axis"}
_ONE_PLUS = {r"(blk\.\d+\..*|output_)norm\.weight": "plus_one"}

_ROTATED = ("llama", "deci", "granite", "granitemoe", "arcee", "smollm3", "nanbeige", "olmo", "arctic", "minicpm")
_AS_IT_IS = (
    "qwen2",
    "qwen2moe",
    "qwen3",
    "qwen3moe",
    "phi2",
    "phi3",
    "starcoder2",
    "olmo2",
    "olmoe",
    "gemma3n",
    "gemma4",
)

STORED: Mapping[str, Mapping[str, str]] = {
    # llama.cpp rotates neighbouring channels of these, so rows of q and k change places (LlamaModel.permute).
    **{architecture: {_QK: "rotary"} for architecture in (*_ROTATED, "deepseek", "xverse")},
    **dict.fromkeys(("gemma", "gemma2", "gemma3", "nemotron"), _ONE_PLUS),
    **{architecture: {_FUSED: "by_part"} for architecture in ("gptneox", "bloom")},
    "qwen3next": {r"blk\.\d+\.ssm_norm\.weight": "same", **_ONE_PLUS, **_SSM},
    "mamba": _SSM,
    **{architecture: {} for architecture in _AS_IT_IS},
}
"""By architecture: patterns of stored names, of which the first that fits counts, and how they are stored."""


def stored_layout(architecture: str, name: str) -> str | None:
    """How a tensor of a GGUF file should be stored; None where archc does not know the architecture."""
    known = STORED.get(architecture)
    if known is None:
        return None
    return next((layout for pattern, layout in known.items() if re.fullmatch(pattern, name)), "same")
