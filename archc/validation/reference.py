"""The reference: transformers' own model of a checkpoint, with eager attention, in fp32 or 16 bits."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn

from archc.architecture.model import Architecture
from archc.checkpoints.dequantise import quantisation
from archc.checkpoints.dequantise_formats import UNQUANTISED
from archc.checkpoints.headers import read_checkpoint, read_config
from archc.collection import uncollected
from archc.errors import IncompleteError
from archc.validation.arithmetic import arithmetic_in, other_products
from archc.validation.calling import Signature, signature_of
from archc.validation.choices import Choices, Flip, Watch
from archc.validation.places import Places, find_places
from archc.validation.probes import Probe
from archc.validation.tracing import Trace, trace


@dataclass(frozen=True, slots=True)
class Run:
    """Logits [batch, tokens, vocab], and the discrete choices behind them."""

    logits: Tensor
    choices: Choices


@dataclass(frozen=True, slots=True)
class Cached:
    """Numbers in transformers' own cache of one row, and the window of every layer (None: all positions)."""

    elements: int
    windows: tuple[int | None, ...]


_SIGNS = 262_147
_PADDING = ("pad_token_id", "pad_index")
_IMPLEMENTATIONS = {"attn_implementation", "experts_implementation"}


class Reference:
    """A transformers model that runs probes. Custom code of a checkpoint is never run.

    The Architecture says where to look for the points of its layers; without one, only its logits are seen.
    """

    def __init__(
        self, folder: Path, *, architecture: Architecture | None = None, dtype: torch.dtype = torch.float32
    ) -> None:
        import transformers

        self.dtype = dtype
        self._folder, self._architecture = folder, architecture
        config = read_config(folder)
        if quantisation(config) is not None:
            raise IncompleteError(f"{folder} is quantised, and this does not dequantise it", UNQUANTISED)
        chosen = [key for key in config if key.strip("_").removesuffix("_internal") in _IMPLEMENTATIONS]
        if chosen:
            raise IncompleteError(
                f"the config.json of {folder} chooses an implementation ({chosen[0]}), which may fetch and run code",
                "remove that key: the reference runs eager attention",
            )
        self.version = f"transformers {transformers.__version__}"
        with quiet(), uncollected():
            try:
                model, loading = transformers.AutoModelForCausalLM.from_pretrained(
                    folder,
                    dtype=dtype,
                    attn_implementation="eager",
                    experts_implementation="eager",
                    trust_remote_code=False,
                    use_safetensors=True,
                    local_files_only=True,
                    output_loading_info=True,
                )
                model.config.return_dict = True  # outputs by name: how a config wants them packed is no part of a model
                self.model: Any = model.eval()
            except MemoryError:
                raise
            except Exception as error:  # a config.json may hold anything, and trips transformers anywhere
                raise self._failure("load", error) from error
        invented = sorted({str(key) for kind in ("missing_keys", "mismatched_keys") for key in loading[kind]})
        if invented:
            raise IncompleteError(
                f"{folder} is no reference: transformers finds no fitting {invented[0]} and would make it up",
                "its config.json must describe its own weights",
            )
        _put_back_padding(self.model, folder)
        self.unread = tuple(sorted(str(key) for key in loading["unexpected_keys"]))
        """Stored tensors that this model has no place for."""
        self.padding = frozenset(
            token for token in (getattr(model.config, key, None) for key in _PADDING) if isinstance(token, int)
        )
        """Ids of tokens that stand for nothing."""
        self._masks = frozenset(name for name, buffer in model.named_buffers() if is_mask(buffer))
        self._held: list[tuple[object, int]] = []
        """What its modules held when a run last began, tables and numbers."""
        self._ahead: tuple[Probe, Run] | None = None
        """A run that was needed to see whether it can be done, until it is asked for."""
        self.steps_are_whole = False
        """Whether probes that come in chunks are run in one piece all the same."""

    @cached_property
    def _signature(self) -> Signature:
        """What its class takes, and gives back: of some, a pass returns no cache though it takes one."""
        return signature_of(self.model.forward, lambda ids, **more: self._forward(input_ids=ids, **more))

    def wall(self, context: int, longest: int) -> int | None:
        """The number of positions that the class has a place for, if it is its `context`; None where there are more.

        Some classes make a table of their fixed positions, as long as the context, or a mask. Where positions cannot be
        given, as many tokens are run, up to `longest`.
        """
        ids = torch.zeros((1, 1), dtype=torch.long)
        inputs = {"input_ids": ids, "position_ids": torch.full_like(ids, context)}
        if "position_ids" not in self._signature.takes:
            if context >= longest:
                return None
            inputs = {"input_ids": ids.expand(1, context + 1)}
        try:
            self._forward(**inputs, use_cache=False)
        except IncompleteError:
            return context
        return None

    def can_step(self, probe: Probe) -> bool:
        """Whether it decodes the pieces of a probe through a cache; some classes trip over their own masks."""
        if self._signature.cache is None:
            return False
        try:
            self._ahead = (probe, self.run(probe))
        except IncompleteError:
            return False
        return True

    def refusal(self, probe: Probe) -> str | None:
        """Why it cannot run a probe; None where it can."""
        return self._signature.refusal(replace(probe, chunks=None) if self.steps_are_whole else probe)

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] of a probe, through the cache if it comes in chunks."""
        return self.run(probe).logits

    def run(self, probe: Probe, pinned: Choices | None = None, flip: Flip | None = None) -> Run:
        """A probe as `logits` runs it, with choices pinned and taken the other way as `choices.Watch` says."""
        if pinned is None and self._ahead is not None and self._ahead[0] is probe and not self.steps_are_whole:
            ahead, self._ahead = self._ahead[1], None
            return ahead
        self._forget()
        watch = Watch(pinned, flip)
        if probe.chunks is None or self.steps_are_whole:
            out = self._run(probe, self._signature.inputs(probe), watch)
            return Run(out.logits, watch.choices())
        logits = torch.cat(list(self._decode(probe, watch)), dim=1)
        return Run(logits, watch.choices())

    def stream(self, probe: Probe) -> Iterator[Tensor]:
        """Logits of a probe piece by piece, [batch, n, vocab] each, so that those of a long input need not be held."""
        self._forget()
        if probe.chunks is None or self.steps_are_whole:
            yield self._run(probe, self._signature.inputs(probe), Watch()).logits
        else:
            yield from self._decode(probe, Watch())

    def _decode(self, probe: Probe, watch: Watch) -> Iterator[Tensor]:
        cache = self._signature.cache
        assert cache is not None  # asked before, by `refusal`
        state, start = None, 0
        for piece in probe.steps():
            more: dict[str, Any] = {} if state is None else {cache: state}
            watch.begin(start, *piece.input_ids.shape)
            with watch:
                out = self._forward(input_ids=piece.input_ids, use_cache=True, **self._signature.inputs(piece), **more)
            state = getattr(out, cache)
            start += piece.input_ids.shape[1]
            yield out.logits

    @cached_property
    def places(self) -> Places:
        """Where its canonical points are."""
        return Places() if self._architecture is None else find_places(self.model, self._architecture)

    def points(self, probe: Probe, pinned: Choices | None = None) -> dict[str, Tensor]:
        """Activations at the canonical points, of a probe run in one piece."""
        return self.trace(probe, pinned)[0].points

    def trace(
        self, probe: Probe, pinned: Choices | None = None, fed: Mapping[str, Tensor] | None = None
    ) -> tuple[Trace, Choices]:
        """A probe run in one piece, its layers `fed` as `tracing.trace` says, and the choices behind it."""
        given = self._signature.inputs(probe)  # which may run the model, and so must come before anything is recorded
        self._forget()
        watch, shape = Watch(pinned), (probe.input_ids.shape[0], probe.input_ids.shape[1])
        found = trace(lambda: self._run(probe, given, watch).logits, self.places, shape, fed)
        return found, watch.choices()

    def cached(self, tokens: int) -> Cached | None:
        """What transformers' own cache holds after `tokens` tokens of one row; None where it is no list of layers."""
        if self._signature.cache is None:
            return None
        ids = torch.zeros((1, tokens), dtype=torch.long)
        state = getattr(self._forward(input_ids=ids, use_cache=True), self._signature.cache)
        layers = getattr(state, "layers", [])
        if not layers or not all(hasattr(layer, "keys") and hasattr(layer, "values") for layer in layers):
            return None
        return Cached(
            elements=sum(layer.keys.numel() + layer.values.numel() for layer in layers),
            windows=tuple(layer.sliding_window if layer.is_sliding else None for layer in layers),
        )

    def _forget(self) -> None:
        """Makes a run independent of those before it, where its modules hold anything else than after the last time.

        With dynamic rotary scaling transformers keeps the frequencies of the longest input so far,
        until an input shorter than the original context comes by (modeling_rope_utils.py,
        dynamic_frequency_update).
        """
        held = _numbers_of(self.model)
        if len(held) != len(self._held) or any(
            one is not other or version != before
            for (one, version), (other, before) in zip(held, self._held, strict=True)
        ):
            self._forward(input_ids=torch.zeros((1, 1), dtype=torch.long), use_cache=False)
            self._held = _numbers_of(self.model)

    def _run(self, probe: Probe, given: Mapping[str, Tensor], watch: Watch) -> Any:
        watch.begin(0, *probe.input_ids.shape)
        with watch:
            return self._forward(input_ids=probe.input_ids, use_cache=False, **given)

    def _forward(self, **inputs: Any) -> Any:
        """One forward pass. Raises IncompleteError where the model trips over its own config.json."""
        with torch.no_grad(), quiet():
            try:
                return self.model(**inputs)
            except MemoryError:
                raise
            except Exception as error:
                raise self._failure("run", error) from error

    def _failure(self, deed: str, error: Exception) -> IncompleteError:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        return IncompleteError(f"transformers cannot {deed} {self._folder}: {reason[0][:200]}", "check its config.json")

    @contextlib.contextmanager
    def nudged(self, seed: int, units: int = 1) -> Iterator[None]:
        """Every weight and table moved by `units` in the last place, up or down at random; restored afterwards.

        Linear layers in 32 bits are left to another library than torch's own choice meanwhile.
        """
        self._nudge(seed, units)
        try:
            with other_products():
                yield
        finally:
            self._nudge(seed, -units)

    def _nudge(self, seed: int, units: int) -> None:
        """Moves weights and tables, but for masks, which no arithmetic rounds."""
        tables = (buffer for name, buffer in self.model.named_buffers() if name not in self._masks)
        nudge((*self.model.parameters(), *tables), seed, units)

    @contextlib.contextmanager
    def fused_attention(self) -> Iterator[None]:
        """Attention through torch's scaled_dot_product_attention instead of eager arithmetic."""
        self.model.set_attn_implementation("sdpa")
        try:
            yield
        finally:
            self.model.set_attn_implementation("eager")

    @property
    def wider(self) -> str:
        """The arithmetic that has more digits than its own: fp64, or fp32 of weights in 16 bits."""
        return "fp64" if self.dtype is torch.float32 else "fp32"

    def wider_arithmetic(self) -> contextlib.AbstractContextManager[None]:
        """Arithmetic with more digits, as far as the model's own casts allow; weights are restored bit by bit."""
        return arithmetic_in(torch.float64 if self.dtype is torch.float32 else torch.float32, self.model)


def _put_back_padding(model: nn.Module, folder: Path) -> None:
    """Reads rows of padding tokens again: a class may empty them after loading (transformers 5.24, models/youtu)."""
    stored = read_checkpoint(folder)
    for name, module in model.named_modules():
        held = stored.get(f"{name}.weight")
        if held is not None and isinstance(module, nn.Embedding) and (row := module.padding_idx) is not None:
            with safe_open(held.file, framework="pt") as file, torch.no_grad():
                module.weight[row] = file.get_slice(held.name)[row : row + 1][0]


def nudge(tensors: Iterable[Tensor], seed: int, units: int) -> None:
    """Adds ±units to the bits of every floating number but zeros, whose neighbours have another sign.

    The random signs repeat after a prime number of elements, which no row length divides.
    """
    generator = torch.Generator().manual_seed(seed)
    signs = torch.randint(0, 2, (_SIGNS,), generator=generator, dtype=torch.int8).mul_(2).sub_(1).mul_(units)
    whole = {4: torch.int32, 2: torch.int16, 8: torch.int64}
    with torch.no_grad():
        for tensor in tensors:
            if tensor.is_floating_point():
                values = tensor.view(-1)
                bits = values.view(whole[tensor.element_size()])
                for start in range(0, len(bits), _SIGNS):
                    part = bits[start : start + _SIGNS]
                    part.add_(signs[: len(part)].mul(values[start : start + _SIGNS] != 0))


def _numbers_of(model: nn.Module) -> list[tuple[object, int]]:
    """What modules hold beside their weights, tables and plain numbers, each with how often it was written to."""
    found: list[tuple[object, int]] = []
    for module in model.modules():
        for value in (*vars(module).values(), *module._buffers.values()):
            if isinstance(value, Tensor):
                found.append((value, value._version))
            elif isinstance(value, int | float):
                found.append((value, 0))
    return found


def is_mask(buffer: Tensor) -> bool:
    """Whether it holds noughts and ones alone, as far as it is there."""
    return not buffer.is_meta and bool(((buffer == 0) | (buffer == 1)).all())


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keeps transformers' advice out of the user's terminal; its settings are put back."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()
