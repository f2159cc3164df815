"""Between two layers: what each run hands on there, and how runs that start again skip the layers that are done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor, nn

from archc.validation.places import Places
from archc.validation.streaming.lanes import awake
from archc.validation.tracing import stream_of


class Seams:
    """Watches what enters and leaves the layers of a model.

    `closed` says whether nothing but the stream goes from one to the next, as far as is seen.
    """

    def __init__(self, places: Places) -> None:
        self._modules = [place.module for place in places.layers]
        once = len(set(self._modules)) == len(self._modules)
        self.closed = once and not any(place.reuses for place in places.layers)
        self.forms: dict[int, int | None] = {}
        """By layer: how many values its output has, of which the first is the stream; None where it is the stream."""
        for number, module in enumerate(self._modules):
            module.register_forward_pre_hook(self._enter, with_kwargs=True)
            module.register_forward_hook(self._leaving(number))

    def _enter(self, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        lane, place = awake(), stream_of(args, kwargs)
        if lane is None or place is None:
            self.closed = False
            return
        value = args[place] if isinstance(place, int) else kwargs[place]
        self.closed &= lane.left is None or value is lane.left
        lane.stream, lane.left = value, None

    def _leaving(self, number: int) -> Callable[..., None]:
        def hook(_: nn.Module, __: Any, output: Any) -> None:
            values = output if isinstance(output, tuple | list) else (output,)
            lane = awake()
            others = any(isinstance(one, Tensor) for one in values[1:])
            if others or lane is None or not values or not isinstance(values[0], Tensor):
                self.closed = False
                return
            lane.left = values[0]
            self.forms[number] = None if isinstance(output, Tensor) else len(values)

        return hook

    def skip(self, forms: Mapping[int, int | None], streams: Mapping[str, Tensor]) -> None:
        """Lets runs pass the layers of known `forms` without computing; the last of these gives each its stream."""
        last = max(forms)
        for number, form in forms.items():
            self._modules[number].forward = _passing(form, streams if number == last else {})
        self.forms |= forms


def _passing(form: int | None, streams: Mapping[str, Tensor]) -> Callable[..., Any]:
    def forward(*args: Any, **kwargs: Any) -> Any:
        lane, place = awake(), stream_of(args, kwargs)
        assert lane is not None
        assert place is not None
        given = args[place] if isinstance(place, int) else kwargs[place]
        stream = streams.get(lane.name, given)
        return stream if form is None else (stream, *[None] * (form - 1))

    return forward
