"""Activations of a model at the canonical points, recorded while it runs; and its layers fed with another model's.

Hooks on modules see what enters and leaves layers and their parts. Queries, keys and values are seen where they enter
their products, whichever function of torch multiplies them, and router scores where the router's matrix gives them: so
nothing of the model is changed, and no family needs support of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from archc.parts.base import Heads
from archc.validation.places import LayerPlace, PartPlace, Places, Role

LAYER_POINTS = (
    "mixer.in",
    "mixer.q",
    "mixer.k",
    "mixer.v",
    "mixer.out",
    "ffn.in",
    "router.scores",
    "ffn.out",
    "out",
)
"""The points of a layer, in the order in which a mistake in one shows in the next."""


@dataclass(slots=True)
class Trace:
    """Activations at the canonical points, and what each layer and the final norm were given.

    Queries, keys and values are [batch, heads, tokens, channels], everything else [batch, tokens, …] as the model has
    it. `entering` has its values under `layers.N` and `final_norm`.
    """

    points: dict[str, Tensor] = field(default_factory=dict)
    entering: dict[str, Tensor] = field(default_factory=dict)


def order(points: Mapping[str, Tensor]) -> list[str]:
    """Names of points in the order of the forward pass; others are left out."""
    layers = sorted({layer for layer in map(layer_of, points) if layer is not None})
    names = ["embed", *(f"layers.{n}.{point}" for n in layers for point in LAYER_POINTS)]
    return [name for name in (*names, "final_norm", "logits") if name in points]


def layer_of(point: str) -> int | None:
    """The number of a point's layer; None of a point that is in none."""
    return int(point.split(".")[1]) if point.startswith("layers.") else None


def split(point: str) -> tuple[str, str]:
    """A point's name up to its layer's number, `layers.N.`, and the rest; nothing before the rest of other points."""
    if not point.startswith("layers."):
        return "", point
    _, number, kind = point.split(".", 2)
    return f"layers.{number}.", kind


def trace(
    run: Callable[[], Tensor],
    places: Places,
    shape: tuple[int, int],
    fed: Mapping[str, Tensor] | None,
    until: int | None = None,
) -> Trace:
    """Runs a forward pass that returns logits, on `shape` rows and tokens, and records it.

    What is `fed`, under the names of `Trace.entering`, takes the place of what the layer or the final norm is given,
    where it has the same shape. A point that is passed several times is left out. The run ends behind the layer
    `until`, where one is given; there are no logits then.
    """
    recorder = Recorder(places, shape, fed or {}, until)
    try:
        with recorder:
            logits = run()
    except _StoppedError:
        return Trace(recorder.finished(), recorder.entering)
    recorder.points["logits"] = logits.detach().clone()
    return Trace(recorder.finished(), recorder.entering)


class _StoppedError(Exception):
    """The layer behind which a run ends."""


class Recorder(TorchFunctionMode):
    """Records a forward pass while it runs. Several may watch one model, each what its own thread does."""

    def __init__(
        self, places: Places, shape: tuple[int, int], fed: Mapping[str, Tensor], until: int | None = None
    ) -> None:
        super().__init__()
        self.points: dict[str, Tensor] = {}
        self.entering: dict[str, Tensor] = {}
        self._places, self._shape, self._fed, self._until = places, shape, fed, until
        self._again: set[str] = set()
        self._layer: int | None = None
        self._inside: Role | None = None
        self._projected: Tensor | None = None
        self._hooks = ExitStack()
        self._thread: int | None = None

    # Hooks -----------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Any:
        self._thread = get_ident()
        numbers: dict[nn.Module, list[int]] = {}
        for number, layer in enumerate(self._places.layers):
            numbers.setdefault(layer.module, []).append(number)
        for module, turns in numbers.items():
            self._before(module, self._entering_layer(iter(turns)))
            self._after(module, self._leaving_layer)
        seen: set[tuple[int, str]] = set()
        for layer in self._places.layers:
            for part in layer.parts:
                if (id(part.first), part.role) not in seen:
                    seen.add((id(part.first), part.role))
                    self._watch(part)
        if self._places.final_norm is not None:
            self._before(self._places.final_norm, self._entering_final_norm)
            self._after(self._places.final_norm, lambda output, _: self._keep("final_norm", output))
        return super().__enter__()  # type: ignore[no-untyped-call]

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        self._hooks.close()

    def finished(self) -> dict[str, Tensor]:
        """The points that were passed once, in order."""
        return {name: self.points[name] for name in order(self.points) if name not in self._again}

    def _before(self, module: nn.Module, see: Callable[[Tensor], Tensor | None]) -> None:
        """Shows what enters a module, and lets it be replaced."""

        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if get_ident() != self._thread:
                return None
            place = stream_of(args, kwargs)
            value = None if place is None else args[place] if isinstance(place, int) else kwargs[place]
            other = see(value) if value is not None else None
            if other is None:
                return None
            if isinstance(place, int):
                return (*args[:place], other, *args[place + 1 :]), kwargs
            return args, kwargs | {str(place): other}

        handle = module.register_forward_pre_hook(hook, with_kwargs=True)
        self._hooks.callback(handle.remove)

    def _after(self, module: nn.Module, see: Callable[[Tensor, Sequence[Tensor]], None]) -> None:
        """Shows what leaves a module, and the tensors that it was given."""

        def hook(_module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            while isinstance(output, tuple | list) and output:
                output = output[0]
            if isinstance(output, Tensor) and get_ident() == self._thread:
                see(output, [one for one in (*args, *kwargs.values()) if isinstance(one, Tensor)])

        handle = module.register_forward_hook(hook, with_kwargs=True)
        self._hooks.callback(handle.remove)

    def _watch(self, part: PartPlace) -> None:
        role, whole = part.role, part.whole

        def enter(value: Tensor) -> None:
            self._keep_in_layer(f"{role}.in", value)
            if whole:
                self._inside, self._projected = role, None

        def leave(output: Tensor, given: Sequence[Tensor] = ()) -> None:
            projected = self._projected
            if projected is not None and any(torch.equal(_plus(projected, one), output) for one in given):
                output = projected  # the module adds the stream itself
            self._keep_in_layer(f"{role}.out", output)
            self._inside = self._projected = None

        self._before(part.first, enter)
        if whole and part.projection not in {None, part.first}:
            self._after(part.projection, lambda output, _: setattr(self, "_projected", output.detach().clone()))
        if part.last is not None:
            self._after(part.last, leave)

    def _entering_layer(self, turns: Any) -> Callable[[Tensor], Tensor | None]:
        def see(value: Tensor) -> Tensor | None:
            self._layer = next(turns, None)
            if self._layer is None:
                return None
            if self._layer == 0:
                self._keep("embed", value)
            return self._given(f"layers.{self._layer}", value)

        return see

    def _leaving_layer(self, output: Tensor, _given: Sequence[Tensor]) -> None:
        self._keep_in_layer("out", output)
        if self._until is not None and self._layer == self._until:
            raise _StoppedError
        self._layer = None

    def _entering_final_norm(self, value: Tensor) -> Tensor | None:
        return self._given("final_norm", value)

    def _given(self, name: str, value: Tensor) -> Tensor | None:
        self.entering[name] = value.detach().clone()
        other = self._fed.get(name)
        return None if other is None or other.shape != value.shape else other.to(value.dtype)

    def _keep_in_layer(self, point: str, value: Tensor) -> None:
        if self._layer is not None:
            self._keep(f"layers.{self._layer}.{point}", value)

    def _keep(self, name: str, value: Tensor) -> None:
        if name in self.points:
            self._again.add(name)
            return
        batch, tokens = self._shape
        if value.ndim == 2 and len(value) == batch * tokens:
            value = value.view(batch, tokens, -1)
        self.points[name] = value.detach().clone(memory_format=torch.contiguous_format)

    # Functions -------------------------------------------------------------------------------------------------------

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Every function of torch passes here; products within attention and routers are looked at."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if self._layer is not None:
            if func is F.scaled_dot_product_attention:
                self._attend(*args[:3], **{k: v for k, v in kwargs.items() if k in {"query", "key", "value"}})
            elif func in _PRODUCTS and isinstance(out, Tensor):
                self._multiply(*_PRODUCTS[func](args, kwargs))
            elif func is F.linear:
                self._route(kwargs["weight"] if "weight" in kwargs else args[1], out)
        return out

    @property
    def _now(self) -> LayerPlace:
        assert self._layer is not None
        return self._places.layers[self._layer]

    def _heads(self) -> Heads | None:
        """How many heads attend, if attention may be what runs now."""
        mixer = next((part for part in self._now.parts if part.role == "mixer"), None)
        inside = mixer is None or not mixer.whole or self._inside == "mixer"
        return self._now.heads if inside else None

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> None:
        heads = self._heads()
        if heads is not None and query.ndim == 4 and query.shape[1] == heads.heads:
            self._keep_in_layer("mixer.q", query)
            self._keep_in_layer("mixer.k", _once(key, heads))
            self._keep_in_layer("mixer.v", _once(value, heads))

    def _multiply(self, left: Tensor, right: Tensor) -> None:
        """A product: of queries and keys [.., T, C] [.., C, S], or of their weights [.., T, S] and values."""
        heads = self._heads()
        if heads is None or left.ndim < 3 or right.ndim < 3:
            return
        tokens = self._shape[1]
        left_heads, right_heads = self._by_head(left), self._by_head(right)
        if left_heads is None or right_heads is None or left_heads.shape[1:3] != (heads.heads, tokens):
            return
        if f"layers.{self._layer}.mixer.q" not in self.points:
            if right_heads.shape[-1] == tokens:
                self._keep_in_layer("mixer.q", left_heads)
                self._keep_in_layer("mixer.k", _once(right_heads.transpose(-1, -2), heads))
        elif left_heads.shape[-1] == tokens == right_heads.shape[-2]:
            self._keep_in_layer("mixer.v", _once(right_heads, heads))

    def _by_head(self, x: Tensor) -> Tensor | None:
        """[batch, heads, rows, columns] of an operand that has batch and heads apart, as one, or in groups."""
        batch = self._shape[0]
        rows = x.shape[:-2].numel()
        return x.reshape(batch, -1, *x.shape[-2:]) if rows % batch == 0 else None

    def _route(self, weight: Tensor, out: Tensor) -> None:
        """A product with a matrix: of the router, if it is the router's, or of its shape within the feed-forward."""
        router = self._now.router
        if router is None or tuple(weight.shape) != router.shape:
            return
        same = self._inside == "ffn" if router.weight is None else torch.equal(weight, router.weight.to(weight.dtype))
        if same:
            self._keep_in_layer("router.scores", out)


def stream_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | str | None:
    """Which input of a module is the stream: the first of floating numbers, whether it has a name or not."""
    if isinstance(kwargs.get("hidden_states"), Tensor):
        return "hidden_states"
    places: list[int | str] = [*range(len(args)), *kwargs]
    for place, value in zip(places, (*args, *kwargs.values()), strict=True):
        if isinstance(value, Tensor) and value.is_floating_point() and value.ndim > 1:
            return place
    return None


def _plus(x: Tensor, y: Tensor) -> Tensor:
    return x + y if x.shape == y.shape and y.is_floating_point() else x.new_empty(0)


def _once(x: Tensor, heads: Heads) -> Tensor:
    """Keys or values [batch, heads, tokens, channels] before they were repeated for the query heads of a group."""
    if x.shape[1] != heads.heads or heads.kv_heads == heads.heads or heads.heads % heads.kv_heads:
        return x
    batch, _, *rest = x.shape
    neighbours = x.reshape(batch, heads.kv_heads, -1, *rest)
    turns = x.reshape(batch, -1, heads.kv_heads, *rest)
    if torch.equal(neighbours, neighbours[:, :, :1].expand_as(neighbours)):
        return neighbours[:, :, 0]
    return turns[:, 0] if torch.equal(turns, turns[:, :1].expand_as(turns)) else x


def _operands(names: tuple[str, str], first: int = 0) -> Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, Any]]:
    """The two factors of a product, given by place or by name."""

    def pick(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        left, right = (kwargs[name] if name in kwargs else args[place] for place, name in enumerate(names, start=first))
        return left, right

    return pick


_MATMUL, _BMM, _ADDED = _operands(("input", "other")), _operands(("input", "mat2")), _operands(("batch1", "batch2"), 1)
_PRODUCTS: Mapping[Any, Callable[[Sequence[Any], Mapping[str, Any]], tuple[Any, Any]]] = {
    torch.matmul: _MATMUL,
    Tensor.matmul: _MATMUL,
    Tensor.__matmul__: _MATMUL,
    torch.bmm: _BMM,
    Tensor.bmm: _BMM,
    torch.baddbmm: _ADDED,
    Tensor.baddbmm: _ADDED,
}
