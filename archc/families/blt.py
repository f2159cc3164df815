"""blt: bytes, and patches of bytes (transformers 5.24, models/blt/modeling_blt.py). It is refused."""

from archc.families.base import Family

FAMILY = Family(
    "blt",
    tier="exotic",
    refused="it is four models of different widths, of which one runs once for every patch of bytes, and where patches "
    "end depends on the text; what a token costs is not known from a config",
)
