"""Tiny models of every decoder family, with the sizes that Hugging Face's own classes give them.

Nothing here comes from archc: the tables are config.json contents, and the figures are read off transformers' modules
(on the meta device) and off the cache object that a real forward pass fills.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, DynamicCache

from tests.families import zoo_dense, zoo_exotic, zoo_hybrid, zoo_latent, zoo_mamba, zoo_moe, zoo_twists
from tests.families.zoo_case import Case

CASES: list[Case] = [
    *zoo_dense.CASES,
    *zoo_twists.CASES,
    *zoo_moe.CASES,
    *zoo_latent.CASES,
    *zoo_hybrid.CASES,
    *zoo_mamba.CASES,
    *zoo_exotic.CASES,
]

# Families whose classes return no cache object, and why.
NO_CACHE = {
    "blt": "the class makes a cache from the composite config, which has no num_hidden_layers",
    "cpmant": "a prompt is put before the input, and stepping fails inside the class",
    "openai-gpt": "the class keeps no cache",
    "xlm": "the head's output drops the cache",
}
# Classes that fill a cache they are given and do not return the one that they make.
_TAKES_CACHE = {"recurrent_gemma"}
# Above the special tokens, and in every table of every case.
_PLAIN_TOKENS = (16, 180)
# Where a class says its cache is: the forward argument and the output share the name.
_CACHE_NAMES = ("cache", "state", "past_buckets_states")


@dataclass(frozen=True)
class Held:
    """One tensor of a cache: the layer it is found under (None where it is not filed by layer) and its attribute."""

    layer: int | None
    attribute: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class CacheReference:
    """What a cache holds after a forward pass of a batch of one.

    `elements` counts the floating-point tensors, `held`; among them states that a class keeps on its modules instead
    (RecurrentGemma), under the attribute's full name. `integers` lists the integer and boolean tensors, which are
    bookkeeping (window sizes, counters, positions, hash buckets), and are not counted.
    """

    elements: int
    held: tuple[Held, ...]
    integers: tuple[Held, ...]


def meta_model(case: Case) -> nn.Module:
    """The model without memory for its weights."""
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(case.hf_config())
    assert isinstance(model, nn.Module)
    return model


def reference_params(case: Case) -> tuple[int, int]:
    """The number of parameter elements, tied ones once, and of buffer elements that a checkpoint stores."""
    model = meta_model(case)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    return parameters, sum(buffer.numel() for _, buffer in stored_buffers(model))


def stored_buffers(model: nn.Module) -> Iterator[tuple[str, Tensor]]:
    """The buffers that `state_dict` includes, each once, with their names."""
    seen: set[int] = set()
    for prefix, module in model.named_modules():
        for name, buffer in module.named_buffers(recurse=False):
            if name not in module._non_persistent_buffers_set and id(buffer) not in seen:
                seen.add(id(buffer))
                yield f"{prefix}.{name}".lstrip("."), buffer


def cpu_model(case: Case) -> nn.Module:
    """The model with random fp32 weights and eager attention, ready to run."""
    torch.manual_seed(0)
    # The default grouped experts want strides that are multiples of 16 bytes.
    model = AutoModelForCausalLM.from_config(
        case.hf_config(), attn_implementation="eager", experts_implementation="eager"
    )
    assert isinstance(model, nn.Module)
    return model.float().eval()


@torch.no_grad()
def reference_cache(case: Case, tokens: int = 40) -> CacheReference | None:
    """What the cache of the tiny model holds after one pass over `tokens` tokens; None for a family of NO_CACHE."""
    if case.model_type in NO_CACHE:
        return None
    model = cpu_model(case)
    accepted = inspect.signature(model.forward).parameters
    name = next(name for name in _CACHE_NAMES if name in accepted)
    given = {name: DynamicCache(config=model.config)} if case.model_type in _TAKES_CACHE else {}
    ids = torch.randint(*_PLAIN_TOKENS, (1, tokens), generator=torch.Generator().manual_seed(0))
    before = set(_module_tensors(model))
    output = model(input_ids=ids, use_cache=True, **given)
    left: dict[int, dict[str, Tensor]] = {}
    for where, tensor in _module_tensors(model).items():
        if where not in before:
            layer = next((int(part) for part in where.split(".") if part.isdigit()), None)
            if layer is not None:  # else a rope table, which some classes make when they first run
                left.setdefault(layer, {})[where] = tensor
    return walk_cache(given.get(name) or getattr(output, name), left)


def _module_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Plain tensors that modules hold as attributes, neither parameters nor buffers."""
    return {
        f"{prefix}.{name}": value
        for prefix, module in model.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, Tensor)
    }


def walk_cache(*caches: object) -> CacheReference:
    """Every tensor reachable from `caches`, each once, with the first index on the way to it as its layer."""
    held: list[Held] = []
    integers: list[Held] = []
    seen: set[tuple[int, int, tuple[int, ...]]] = set()
    for layer, attribute, tensor in (found for cache in caches for found in _tensors(cache, None, "", set())):
        place = (tensor.untyped_storage().data_ptr(), int(tensor.storage_offset()), tuple(tensor.shape))
        if tensor.numel() == 0 or place in seen:
            continue
        seen.add(place)
        entry = Held(layer, attribute, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        (held if tensor.is_floating_point() else integers).append(entry)
    return CacheReference(sum(_size(entry.shape) for entry in held), tuple(held), tuple(integers))


def _size(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def _tensors(value: object, layer: int | None, path: str, above: set[int]) -> Iterator[tuple[int | None, str, Tensor]]:
    if isinstance(value, Tensor):
        yield layer, path, value
        return
    if id(value) in above or isinstance(value, (str, type, torch.dtype, torch.device)):
        return
    above = above | {id(value)}
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, (list, tuple)):
        parts = list(enumerate(value))
    elif hasattr(value, "__dict__") and not hasattr(value, "to_dict"):  # a config is no state
        parts = list(vars(value).items())
    else:
        return
    for key, part in parts:
        if isinstance(key, int) and layer is None:
            yield from _tensors(part, key, path, above)
        else:
            yield from _tensors(part, layer, f"{path}.{key}".lstrip("."), above)
