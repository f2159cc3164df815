"""Codegen: from an Architecture to one readable, specialised PyTorch file."""

from archc.codegen.module import generate
from archc.codegen.output import write_generated

__all__ = ["generate", "write_generated"]
