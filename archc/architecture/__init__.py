"""The resolved form of a spec: frozen, explicit, one entry per layer. Every product is a fold over it."""

from archc.architecture.compile import Compiled, compile_spec, compile_text
from archc.architecture.model import Architecture, Branch, Claim, Layer

__all__ = ["Architecture", "Branch", "Claim", "Compiled", "Layer", "compile_spec", "compile_text"]
