"""Generated modules for the tests: written to a file, imported from it, and given weights."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from archc.architecture import Architecture, compile_spec, compile_text
from archc.codegen import UngeneratedError, generate, refuse_ungenerated
from archc.spec.load import shipped_names
from tests.tiny import Tiny


@dataclass(frozen=True)
class Case:
    """A tiny model as Hugging Face runs it, its checkpoint, and the module that archc generates for its spec."""

    tiny: Tiny
    hf: Any
    folder: Path
    architecture: Architecture
    module: Any

    def port(self, *overrides: str) -> Any:
        """The generated model with the checkpoint's weights; with overrides, that of another spec."""
        module = self.variant(*overrides) if overrides else self.module
        return module.Model.from_pretrained(self.folder)

    def variant(self, *overrides: str) -> Any:
        """The module that archc generates for the spec with overrides."""
        return import_text(generate(compile_text(self.tiny.text(), overrides=overrides).architecture), self.folder)


def make_case(tiny: Tiny, folder: Path) -> Case:
    """Writes the checkpoint of a tiny model to `folder`, and generates its module there."""
    hf = tiny.save(folder)
    architecture = compile_text(tiny.text()).architecture
    return Case(tiny, hf, folder, architecture, import_text(generate(architecture), folder))


def import_text(text: str, folder: Path) -> Any:
    """Writes source to a new file in `folder` and imports it."""
    path = folder / f"model_{len(list(folder.glob('model_*.py')))}.py"
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ruff(folder: Path) -> str:
    """What ruff's formatter and linter, in their default settings, say about the files of a folder."""
    said = ""
    for command in (("format", "--check"), ("check", "--output-format=concise")):
        arguments = [sys.executable, "-m", "ruff", *command, "--isolated", "--no-cache", str(folder)]
        said += subprocess.run(arguments, capture_output=True, text=True, check=False).stdout
    return said


def random_ids(rows: int, tokens: int, vocab_size: int = 211, seed: int = 1) -> Tensor:
    """Token ids [rows, tokens], none of them special."""
    return torch.randint(3, vocab_size, (rows, tokens), generator=torch.Generator().manual_seed(seed))


def parameters(model: Any) -> int:
    """How many numbers a model learns, shared ones counted once."""
    return sum(parameter.numel() for parameter in model.parameters())


def generatable_names() -> list[str]:
    """The shipped specs that codegen can print; `archc generate` refuses the others by name."""
    found = []
    for name in shipped_names():
        with suppress(UngeneratedError):
            refuse_ungenerated(compile_spec(name).architecture)
            found.append(name)
    return found


GENERATABLE = generatable_names()
