"""A pytest plugin: the fixture `archc_validate` holds a port against its reference, and fails the test if it parts.

    def test_my_port(archc_validate):
        archc_validate("smollm2-135m", port="my_port.py:load")

pytest loads this module in every session, so it imports nothing heavy before a test asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    import torch

    from archc.architecture import Architecture
    from archc.validation.gate import GateResult
    from archc.validation.ports import Port


DTYPES = ("float32", "bfloat16", "float16")


class Validate(Protocol):
    """What the fixture gives."""

    def __call__(
        self,
        target: str | Path,
        *,
        port: str | Callable[..., Any] | None = None,
        weights: str | Path | None = None,
        overrides: Sequence[str] = (),
        dtype: str = "float32",
        strict: bool = False,
    ) -> GateResult:
        """Run the gate as `archc validate TARGET` does, and fail the test if it does not pass.

        `port` is a place (`file.py:name`, `package.module:name`), a factory that is called with the checkpoint folder
        and a torch type, or the port itself: a torch module, or a function with an argument `input_ids`. Without one
        the generated module is the port. `overrides` are changes of the spec (`path=value`); `dtype` is float32,
        bfloat16 or float16. `strict` fails the test too where a field was not seen or a fault would pass. What keeps
        the gate from a verdict (no weights, a port that raises) fails the test as well.
        """


@pytest.fixture
def archc_validate() -> Validate:
    """Hold a port against its reference: archc_validate("smollm2-135m", port="my_port.py:load")."""
    return _validate


def _validate(
    target: str | Path,
    *,
    port: str | Callable[..., Any] | None = None,
    weights: str | Path | None = None,
    overrides: Sequence[str] = (),
    dtype: str = "float32",
    strict: bool = False,
) -> GateResult:
    __tracebackhide__ = True  # a failure is shown at the line of the test
    from archc.errors import ArchcError
    from archc.render.findings import holds, summary
    from archc.render.validation_json import gate_document

    try:
        result = _run(str(target), port, None if weights is None else str(weights), overrides, dtype)
    except ArchcError as error:
        stopped = str(error)
    else:
        document = gate_document(result)
        if holds(document, strict=strict):
            return result
        pytest.fail("\n  ".join(summary(document, strict=strict)))
    pytest.fail(f"archc validate {target} has no verdict: {stopped}")


def _run(
    target: str, port: str | Callable[..., Any] | None, weights: str | None, overrides: Sequence[str], dtype: str
) -> GateResult:
    from archc.architecture import compile_spec
    from archc.cli.checkpoint import weights_folder
    from archc.codegen import refuse_ungenerated
    from archc.errors import IncompleteError, UsageError
    from archc.faults.catalogue import CATALOGUE
    from archc.validation.validator import find_validator

    if dtype not in DTYPES:
        raise UsageError(f"{dtype!r} is no type to validate in", f"choose one of {', '.join(DTYPES)}")
    try:
        import torch

        from archc.validation.gate import run_gate
    except ModuleNotFoundError as error:
        raise IncompleteError(f"validation needs {error.name}", "pip install 'archc[torch]'") from error
    validator = find_validator(target)
    compiled = compile_spec(validator.spec, overrides)
    if port is None:
        refuse_ungenerated(compiled.architecture)
    folder = weights_folder(validator, weights)
    return run_gate(
        compiled,
        folder,
        lambda _step: None,
        text=validator.text,
        open_port=_opener(port, getattr(torch, dtype)),
        dtype=getattr(torch, dtype),
        catalogue=CATALOGUE,
    )


def _opener(port: str | Callable[..., Any] | None, dtype: torch.dtype) -> Callable[[Architecture, Path], Port]:
    from archc.validation.ports import GeneratedPort
    from archc.validation.python_port import PythonPort, open_python_port

    if port is None:
        return GeneratedPort
    if isinstance(port, str):
        return open_python_port(port, dtype)
    ready = _is_port(port)

    def opened(architecture: Architecture, folder: Path) -> Port:
        name = getattr(port, "__qualname__", type(port).__qualname__)
        factory = (lambda _folder, _dtype: port) if ready else port
        made = PythonPort(name, factory, folder, architecture, dtype)
        made.reloads = not ready
        return made

    return opened


def _is_port(port: Callable[..., Any]) -> bool:
    """Whether this is a port itself, and not what makes one."""
    import torch

    return isinstance(port, torch.nn.Module) or "input_ids" in inspect.signature(port).parameters
