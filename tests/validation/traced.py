"""Tiny checkpoints of the zoo, opened on both sides: transformers' model, and the module that archc generates."""

from __future__ import annotations

import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from archc.architecture import compile_text
from archc.architecture.model import Architecture
from archc.importing.convert import import_spec
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.reference import Reference
from tests.families import zoo
from tests.families.ugly import save, uglier

CASES = {case.name: case for case in zoo.CASES}


@dataclass(frozen=True)
class Opened:
    """Both sides of one checkpoint."""

    architecture: Architecture
    reference: Reference
    port: GeneratedPort

    @property
    def layers(self) -> int:
        """How many layers it has."""
        return len(self.architecture.layers)


def open_case(name: str, dtype: torch.dtype = torch.float32) -> Opened:
    """A case of the zoo, with a checkpoint that hides nothing."""
    case = uglier(CASES[name])
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(case, Path(folder))
        architecture = compile_text(import_spec(folder).text, name).architecture
        reference = Reference(Path(folder), architecture=architecture, dtype=dtype)
        return Opened(architecture, reference, GeneratedPort(architecture, Path(folder), dtype))


def some_tokens(count: int = 40, seed: int = 1) -> Probe:
    """A probe of tokens that stand for something in every case."""
    ids = torch.randint(20, 170, (1, count), generator=torch.Generator().manual_seed(seed))
    return Probe("some tokens", "a test", ids)
