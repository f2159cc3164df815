"""The two halves of a gated feed-forward in a generated module, and their product, statement by statement."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from archc.codegen.constants import Constant
from archc.codegen.naming import LINE, Names, fitted, literal
from archc.parts.additions import GatedFactorFields
from archc.parts.glu import GluFields

ACTIVATIONS = {
    "silu": "F.silu({})",
    "gelu": "F.gelu({})",
    "gelu_tanh": 'F.gelu({}, approximate="tanh")',
    "relu": "F.relu({})",
    "relu2": "F.relu({}).square()",
    "xielu": "self.activation({})",
}


@dataclass(frozen=True, slots=True)
class Halves:
    """Gate and up, given as the expressions that project them from `input`.

    `suffix` is that of the tensors, `indent` where their statements stand.
    """

    gate: str
    up: str
    input: str
    suffix: str
    indent: int
    names: Names
    activation: str
    glu: GluFields
    factors: GatedFactorFields

    def sizes(self) -> Iterator[Constant]:
        """The constants that the statements read."""
        c, glu, factors = self.names, self.glu, self.factors
        if glu.limit is not None:
            yield Constant(c.GLU_LIMIT, literal(glu.limit))
        if glu.slope != 1:
            yield Constant(c.GLU_SLOPE, literal(glu.slope))
        if glu.gate_softcap is not None:
            yield Constant(c.GATE_SOFTCAP, literal(glu.gate_softcap))
        if glu.up_softcap is not None:
            yield Constant(c.UP_SOFTCAP, literal(glu.up_softcap))
        if glu.up_shift:
            yield Constant(c.GLU_SHIFT, literal(glu.up_shift))
        if factors.gate != 1:
            yield Constant(c.FFN_GATE_FACTOR, literal(factors.gate))
        if factors.learned is not None:
            yield Constant(c.FFN_LEARNED_FACTOR, literal(factors.learned), "multiplies the learned factors")

    def statements(self) -> Iterator[str]:
        """What comes before the product."""
        gate, up = self._gate, self._up
        changes = list(self._changes_of_gate())
        at_once = f"{gate} = {self._activated(self._projected(self.gate))}"
        if changes or self._own_sigmoid or self.indent + len(at_once) > LINE:
            yield f"{gate} = {self._projected(self.gate)}"
            yield from changes
            yield from self._activation()
        else:
            yield at_once
        if self.glu.limited == "after_activation":
            yield self._clamped(gate, f"max={self.names.GLU_LIMIT}")
        if self._up_stands_alone:
            yield f"{up} = {self._projected(self.up)}"
            yield from self._changes_of_up()

    @property
    def product(self) -> str:
        """The product, which the last matrix reads."""
        up = f"({self.up})" if " @ " in self.up else self.up
        up = self._up if self._up_stands_alone else up
        found = f"{self._gate} * {up}"
        return f"({found}).to({self.input}.dtype)" if self.glu.float32 else found

    @property
    def _up_stands_alone(self) -> bool:
        """Whether more is done to it than to multiply it."""
        return any(self._changes_of_up()) or self.glu.float32

    @property
    def _gate(self) -> str:
        return f"gate_{self.suffix}"

    @property
    def _up(self) -> str:
        return f"up_{self.suffix}"

    @property
    def _own_sigmoid(self) -> bool:
        return self.glu.slope != 1 or self.glu.gate_softcap is not None

    def _projected(self, expression: str) -> str:
        if not self.glu.float32:
            return expression
        return f"({expression}).float()" if " @ " in expression else f"{expression}.float()"

    def _activated(self, gate: str) -> str:
        return ACTIVATIONS[self.activation].format(gate)

    def _activation(self) -> Iterator[str]:
        gate, c = self._gate, self.names
        # That of silu, which is gate * sigmoid(gate), where the two gates are not the same.
        sigmoid = f"torch.sigmoid({gate if self.glu.slope == 1 else f'{c.GLU_SLOPE} * {gate}'})"
        if self.glu.gate_softcap is not None:
            yield f"sigmoid_{self.suffix} = {sigmoid}"
            yield f"{gate} = soft_cap({gate}, {c.GATE_SOFTCAP}) * sigmoid_{self.suffix}"
        elif self.glu.slope != 1:
            yield f"{gate} = {gate} * {sigmoid}"
        else:
            yield f"{gate} = {self._activated(gate)}"

    def _changes_of_gate(self) -> Iterator[str]:
        gate, c = self._gate, self.names
        if self.factors.gate != 1:
            yield f"{gate} = {gate} * {c.FFN_GATE_FACTOR}"
        if self.factors.learned is not None:
            yield f"{gate} = {gate} * (self.gate_factor * {c.FFN_LEARNED_FACTOR})"
        if self.glu.limit is not None and self.glu.limited == "before_activation":
            yield self._clamped(gate, f"max={c.GLU_LIMIT}")

    def _changes_of_up(self) -> Iterator[str]:
        up, c = self._up, self.names
        if self.factors.learned is not None:
            yield f"{up} = {up} * (self.up_factor * {c.FFN_LEARNED_FACTOR})"
        if self.glu.limit is not None:
            yield self._clamped(up, f"-{c.GLU_LIMIT}", c.GLU_LIMIT)
        if self.glu.up_softcap is not None:
            yield f"{up} = soft_cap({up}, {c.UP_SOFTCAP})"
        if self.glu.up_shift:
            yield f"{up} = {up} + {c.GLU_SHIFT}"

    def _clamped(self, name: str, *bounds: str) -> str:
        return fitted(self.indent, f"{name} = {name}.clamp", bounds)
