"""A port that is a recording: logits, and perhaps activations, of the probes, made elsewhere in any language."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from archc.errors import IncompleteError
from archc.validation.probe_files import AnswerFile, inputs_of
from archc.validation.probes import Probe

if TYPE_CHECKING:
    from archc.architecture.model import Architecture


class TracePort:
    """A file with `<probe>/input_ids`, `<probe>/logits` and what else was recorded; it runs nothing."""

    kind = "trace"
    reloads = False

    def __init__(self, file: Path) -> None:
        self.name = str(file)
        self._answers = AnswerFile(file, "the trace", "record it again")

    def refusal(self, probe: Probe) -> str | None:
        """Why it cannot answer a probe; None where it can. Raises IncompleteError for one with other inputs."""
        if not self._answers.has_logits(probe.name):
            return "the trace does not hold it"
        self._require_same_inputs(probe)
        return None

    def logits(self, probe: Probe) -> Tensor:
        """Logits [batch, tokens, vocab] as they were recorded, in fp32."""
        return self._answers.logits(probe.name, probe)

    def points(self, probe: Probe) -> dict[str, Tensor] | None:
        """Activations as they were recorded; None where there are only logits."""
        return self._answers.points(probe.name)

    def _require_same_inputs(self, probe: Probe) -> None:
        """Refuses a recording of other inputs. Token ids must be there; of the rest, what is there must be equal."""
        expected, found = inputs_of(probe), self._answers.inputs(probe.name)
        if "input_ids" not in found:
            raise IncompleteError(
                f"the trace {self.name} holds no '{probe.name}/input_ids': nobody can tell what it was recorded on",
                "record the inputs as `archc trace` gives them, beside the logits",
            )
        for what, value in found.items():
            if what not in expected or not torch.equal(value, expected[what]):
                raise IncompleteError(
                    f"the trace {self.name} was recorded on other inputs: its '{probe.name}/{what}' is not the probe's",
                    "record again, on the inputs that `archc trace` gives for this spec and these weights",
                )


def open_trace_port(file: str) -> Callable[[Architecture, Path], TracePort]:
    """What opens the trace `file` for the gate. Raises IncompleteError at once where there is none."""
    port = TracePort(Path(file))
    return lambda _architecture, _folder: port
