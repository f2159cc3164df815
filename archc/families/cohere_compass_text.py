"""cohere_compass_text: cohere2 with positions per kind of layer, which may be null, and pairs of halves.

Positions of images, which text does not have, are left out (transformers 5.24, models/cohere_compass).
"""

from archc.families import cohere2
from archc.families.base import Family, Table
from archc.families.common import rope_per_kind

CONFIG: Table = {**cohere2.CONFIG, "position": rope_per_kind}

FAMILY = Family("cohere_compass_text", cohere2.FAMILY.rules, tier="twisted", config=CONFIG)
