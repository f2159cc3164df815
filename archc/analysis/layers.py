"""Which layer speaks for a model, where one line has to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from archc.architecture.model import Architecture, Layer


def typical_layer(architecture: Architecture, among: Callable[[Layer], bool] = lambda _: True) -> Layer | None:
    """A layer of the most common kind, of two equally common ones the kind that comes first.

    Only layers that `among` accepts are considered; None when it accepts none.
    """
    accepted = [layer for layer in architecture.layers if among(layer)]
    if not accepted:
        return None
    kind = Counter(layer.kind for layer in accepted).most_common(1)[0][0]
    return next(layer for layer in accepted if layer.kind == kind)
