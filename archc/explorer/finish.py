"""What follows from the sums over all pieces: the figures of the report, as formulas over sums."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast, get_args

from archc.analysis.cache import CacheSums, stored_of
from archc.analysis.dtypes import stored_bytes
from archc.analysis.flops import products_of
from archc.analysis.params import Sums, experts_of, params_of, shares_of
from archc.analysis.weights import formats_of
from archc.formulas.unknown import Unknown, unknown
from archc.parts.base import Group, Routed
from archc.parts.caches import StateCache

GROUPS: Final[tuple[str, ...]] = get_args(Group)
CACHED: Final = ("growth", "window_growth", "fixed", "held", "reference_held", "reserved")
"""What is summed over caches."""


def figures() -> dict[str, Any]:
    """Formulas by the keys of the report.

    Their numbers are `all_NAME` and `layers_NAME`, the sums over the tensors of a model and of its layers;
    `rows_NAME` and `states_NAME`, those over its caches, of which growth is a quotient (`rows_growth_below` is what
    stands below its line); the sums over products by their names; the numbers of a state of the page; and the bits of
    a weight, a cached number and a number of a recurrent state.
    """
    whole, layers = (_tensor_sums(side) for side in ("all", "layers"))
    params = params_of(whole)
    length, bits = unknown("length"), unknown("weight_bits")
    routed = Routed(*(cast(int, unknown(name)) for name in ("experts", "top_k", "expert_params")))
    products: Sums = _sums("", ("linear", "over_sequence", "behind_context", "all_pairs"))
    return dict(
        _flat(
            {
                "params": params,
                "block": shares_of(layers),
                "moe": experts_of(routed, whole),
                "weights": {
                    "bytes": stored_bytes(params["total"], cast(int, bits)),
                    "formats": formats_of(params["total"], layers),
                },
                "kv_cache": stored_of(
                    {"rows": _cache_sums("rows"), StateCache.kind: _cache_sums("states")},
                    batch=cast(int, unknown("batch")),
                    bits=cast(int, unknown("cache_bits")),
                    state_bits=cast(int, unknown("state_bits")),
                ),
                "flops": products_of(products, context=cast(int, length)),
            }
        )
    )


def _tensor_sums(side: str) -> Sums:
    return _sums(f"{side}_", (*GROUPS, "active", "buffers", "experts", "quantised", "scales"))


def _sums(prefix: str, names: tuple[str, ...]) -> Sums:
    found = Sums()
    for name in names:
        found[name] = cast(int, unknown(f"{prefix}{name}"))
    return found


def _cache_sums(side: str) -> CacheSums:
    found: CacheSums = defaultdict(int)
    for name in CACHED:
        found[name] = cast(int, unknown(f"{side}_{name}"))
    found["growth"] = cast(int, unknown(f"{side}_growth") / unknown(f"{side}_growth_below"))
    return found


def _flat(report: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Numbers by dotted keys."""
    for key, value in report.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{key}.")
        elif isinstance(value, Unknown):
            yield f"{path}{key}", value
