"""A quantised checkpoint as a plain one: what the reference, and ports that read plain checkpoints, are given.

transformers runs most quantised checkpoints only with kernels for particular hardware, and in 16 bits. What they stand
for is plain arithmetic on what is stored, so archc does that itself, in float32, and writes an ordinary checkpoint.
Nothing is written before all headers have been read and the space has been counted; then it is one tensor at a time.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from archc.checkpoints.dequantise_formats import FORMATS, UNQUANTISED, Recipe
from archc.checkpoints.headers import INDEX, SINGLE, StoredTensor, read_checkpoint, read_config
from archc.errors import IncompleteError

PlainType = Literal["F32", "BF16"]

_KEYS = ("quantization_config", "compression_config")
_TORCH_TYPES = {"F32": torch.float32, "BF16": torch.bfloat16}
# A tokenizer of 256,000 tokens takes 33 MB.
_MAX_BESIDE_BYTES = 1 << 27
_BESIDE = (".json", ".txt", ".model", ".jinja")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint folder, and the tensors of its plain form by name; both are the same where it is not quantised."""

    folder: Path
    tensors: Mapping[str, StoredTensor]
    method: str = ""
    """Its `quant_method`; empty where it is not quantised."""
    recipes: tuple[Recipe, ...] = ()

    @contextmanager
    def plain(self) -> Iterator[Path]:
        """A folder with the plain checkpoint: its own, or one that is gone afterwards.

        Raises IncompleteError where there is no room for it, or a tensor holds what its format does not allow.
        """
        if not self.method:
            yield self.folder
            return
        with tempfile.TemporaryDirectory(prefix="archc-plain-") as made:
            self._write(Path(made))
            yield Path(made)

    def _write(self, target: Path) -> None:
        needed = sum(tensor.nbytes for tensor in self.tensors.values())
        if needed > (free := shutil.disk_usage(target).free):
            raise IncompleteError(
                f"{self.folder} takes {needed:,} bytes when it is dequantised, and {target.parent} has {free:,} left",
                "set TMPDIR to a folder with more room",
            )
        try:
            config = _without_quantisation(read_config(self.folder))
            (target / "config.json").write_text(json.dumps(config), encoding="utf-8")
            for file in filter(_is_beside, self.folder.iterdir()):
                shutil.copyfile(file, target / file.name)
            with (target / SINGLE).open("wb") as stream:
                self._write_tensors(stream)
        except OSError as error:
            problem = f"{self.folder} cannot be dequantised in {target.parent}: {error.strerror or error}"
            raise IncompleteError(problem, "set TMPDIR to a folder with more room") from error

    def _write_tensors(self, stream: IO[bytes]) -> None:
        """Writes the safetensors format by hand: the library would want all tensors in memory at once."""
        header: dict[str, object] = {"__metadata__": {"format": "pt"}}
        end = 0
        for name, tensor in self.tensors.items():
            begin, end = end, end + tensor.nbytes
            header[name] = {"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [begin, end]}
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        stream.write(len(text).to_bytes(8, "little") + text)
        with self.reading() as read:
            for name in self.tensors:
                read(name).contiguous().reshape(-1).view(torch.uint8).numpy().tofile(stream)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Tensor]]:
        """What reads a plain tensor by its name, in the type that `tensors` gives it.

        Raises IncompleteError where a tensor holds what its format does not allow.
        """
        recipes = {recipe.name: recipe for recipe in self.recipes}
        with ExitStack() as opened:
            files: dict[Path, Any] = {}

            def stored(tensor: StoredTensor) -> Tensor:
                try:
                    if tensor.file not in files:
                        files[tensor.file] = opened.enter_context(safe_open(tensor.file, framework="pt"))
                    found: Tensor = files[tensor.file].get_tensor(tensor.name)
                except (OSError, SafetensorError) as error:
                    raise IncompleteError(
                        f"{tensor.name} of {tensor.file} cannot be read: {error}", "check the file"
                    ) from error
                return found

            def read(name: str) -> Tensor:
                if name not in recipes:
                    return stored(self.tensors[name])
                made = recipes[name].formula(*map(stored, recipes[name].sources))
                return made.to(_TORCH_TYPES[self.tensors[name].dtype])

            yield read


def open_checkpoint(
    folder: Path, *, dtype: PlainType = "F32", transposed: Callable[[str], bool] = lambda _: False
) -> Checkpoint:
    """A checkpoint folder by its headers. `dtype` is the type of what is dequantised; the rest stays as it is stored.

    `transposed` says of the name of a plain tensor whether the family stores it as [in, out]: packed formats store
    every matrix in that order, whatever their family does.

    Raises IncompleteError where the folder is no checkpoint, is damaged, or is quantised in a way that archc does not
    know.
    """
    settings = quantisation(read_config(folder))
    stored = read_checkpoint(folder)
    if settings is None:
        return Checkpoint(folder, stored)
    method = _method(settings)
    if method not in FORMATS:
        raise IncompleteError(
            f"{folder} is quantised by {method!r:.60}, and archc can dequantise {', '.join(FORMATS)}", UNQUANTISED
        )
    found = FORMATS[method]
    try:
        recipes = tuple(found.recipes(stored, settings, transposed))
    except IncompleteError as error:
        raise IncompleteError(f"{folder} is quantised ({method}): {error.problem}", error.mend) from None
    used = {source.name for recipe in recipes for source in recipe.sources}
    tensors = {name: one for name, one in stored.items() if name not in used and not name.endswith(found.left_out)}
    if clash := sorted(tensors.keys() & {recipe.name for recipe in recipes}):
        raise IncompleteError(f"{folder} holds {clash[0]} both plain and quantised", "download it again")
    for recipe in recipes:
        tensors[recipe.name] = StoredTensor(recipe.name, dtype, recipe.shape, recipe.sources[0].file)
    return Checkpoint(folder, tensors, method, recipes)


def _is_beside(file: Path) -> bool:
    """Whether it is a file of the tokenizer, or another small one that stands beside the weights."""
    kind = file.suffix in _BESIDE and file.name not in {"config.json", INDEX}
    return kind and file.is_file() and file.stat().st_size <= _MAX_BESIDE_BYTES


def quantisation(config: Mapping[str, object]) -> Mapping[str, Any] | None:
    """What a config.json says about how its weights are quantised; None where it says nothing."""
    for section in _sections(config):
        for key in _KEYS:
            if isinstance(stated := section.get(key), dict) and stated:
                return stated
    return None


def _method(settings: Mapping[str, Any]) -> str:
    """The name of the method; bitsandbytes' older configs do not state it (transformers, quantizers/auto.py)."""
    if settings.get("load_in_4bit") or settings.get("load_in_8bit"):
        return "bitsandbytes"
    stated = settings.get("quant_method")
    return "compressed-tensors" if stated is None and "config_groups" in settings else str(stated or "unnamed")


def _sections(config: Mapping[str, object]) -> Iterator[Mapping[str, object]]:
    yield config
    if isinstance(text := config.get("text_config"), dict):
        yield text


def _without_quantisation(config: Mapping[str, object]) -> dict[str, object]:
    left = {key: value for key, value in config.items() if key not in _KEYS}
    if isinstance(text := left.get("text_config"), dict):
        left["text_config"] = {key: value for key, value in text.items() if key not in _KEYS}
    return left
