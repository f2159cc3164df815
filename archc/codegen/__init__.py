"""Codegen: from an Architecture to one readable, specialised PyTorch file."""

from archc.codegen.module import generate
from archc.codegen.plain import UngeneratedError, refuse_ungenerated

__all__ = ["UngeneratedError", "generate", "refuse_ungenerated"]
