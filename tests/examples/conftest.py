"""The examples run on the tiny checkpoints of the gate's own tests."""

from tests.validation.conftest import checkpoint

__all__ = ["checkpoint"]
