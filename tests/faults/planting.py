"""Mistakes planted into transformers models, which then stand as ports of tiny checkpoints.

A `Planting` names a fault of the catalogue (and the wrong value, where the fault has several), a tiny checkpoint, and
`plant`, which gets transformers' model of that checkpoint, freshly loaded, and returns the port: mostly the same model
with something changed in it, or anything that is called like it. Nothing in `plant` comes from archc.

    Planting("attention.scale", "1", "llama-default", lambda model: every(model, "self_attn", scaling=1.0))

Checkpoints are named as in tests/tiny.py, `zoo/NAME` for the uglier twin of a case of tests/families/zoo.py, or after
one of `MORE`, below. `find_bench(name)` makes one once per session: its spec, its reference with floors, its workshop
of mutants. A table of plantings is tested by two lines:

    @pytest.mark.parametrize("planting", PLANTINGS, ids=str)
    def test_...(planting): check(planting)

`check` asks that the port is beyond the floor of the reference on some probe, and within the floor of one of the
mutants that the planting names on every probe, which is what diagnosis goes by.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import transformers
from torch import nn

from archc.architecture import Architecture, Compiled
from archc.architecture.compile import compile_text
from archc.importing.convert import import_spec
from archc.validation.diagnosis import Diagnosis, diagnose
from archc.validation.evidence import Case as Evidences
from archc.validation.evidence import Side
from archc.validation.parity import BOUND, Baseline, deviation, measure
from archc.validation.ports import GeneratedPort, Port
from archc.validation.probes import derive_probes
from archc.validation.python_port import PythonPort
from archc.validation.reference import Reference
from archc.validation.workshop import Mutant, Unmade, Workshop, mutants_of
from tests.families import ugly
from tests.families.zoo import CASES
from tests.families.zoo_case import Case
from tests.tiny import BY_NAME

Plant = Callable[[Any], Any]
LONGEST = 128
"""Tokens of the longest probe that is run: tiny models show everything within these."""


def _twin(name: str, of: str, **changes: Any) -> Case:
    """A case of the zoo with some changes."""
    [found] = [case for case in CASES if case.name == of]
    return replace(found, name=name, config={**found.config, **changes})


_LONGROPE = {**_twin("", "phimoe-longrope").config["rope_parameters"], "long_mscale": 1.4}

MORE: dict[str, Case] = {
    case.name: case
    for case in (
        _twin("phimoe-mscales", "phimoe-longrope", rope_parameters=_LONGROPE),
        _twin("deepseek_v3-eps", "deepseek_v3", rms_norm_eps=1e-3),
        _twin("laguna-capped", "laguna", moe_router_logit_softcapping=0.5),
        _twin("deepseek_v3-low", "deepseek_v3", num_experts_per_tok=8),
        _twin("deepseek_v3-groups", "deepseek_v3", n_group=4, topk_group=2, num_experts_per_tok=3),
        _twin("llama-deep", "llama", num_hidden_layers=12),
        _twin("llama-pairs", "llama", num_attention_heads=12, num_key_value_heads=6),
    )
}
"""Further tiny models, for what no other shows."""


@dataclass(frozen=True)
class Planting:
    """A mistake, and how it gets into a transformers model of a tiny checkpoint.

    `behaves_as` is the wrong value as the catalogue writes it; None where any of the fault's will do. `layers` are
    those it is planted in, where it is not in all that can have it.
    """

    fault: str
    behaves_as: str | None
    case: str
    plant: Plant = field(repr=False)
    layers: frozenset[int] | None = None

    def __str__(self) -> str:
        value = "" if self.behaves_as is None else f"={self.behaves_as}"
        where = "" if self.layers is None else f"@{','.join(map(str, sorted(self.layers)))}"
        return f"{self.fault}{value}{where}-{self.case}"


class Workroom(Workshop):
    """A workshop that keeps what it has made."""

    def __init__(self, architecture: Architecture, correct: GeneratedPort) -> None:
        super().__init__(architecture, correct)
        self._made: dict[tuple[Mutant, ...], GeneratedPort | Unmade] = {}

    def make(self, *mutants: Mutant, dtype: torch.dtype | None = None) -> GeneratedPort | Unmade:
        """The port with these mistakes."""
        if dtype is not None:
            return super().make(*mutants, dtype=dtype)
        if mutants not in self._made:
            self._made[mutants] = super().make(*mutants)
        return self._made[mutants]


@dataclass(frozen=True)
class Bench:
    """A tiny checkpoint with all that ports of it are held against."""

    folder: Path
    compiled: Compiled
    reference: Reference
    workshop: Workshop
    all_mutants: list[Mutant]
    baselines: tuple[Baseline, ...]

    def port(self, plant: Plant) -> PythonPort:
        """What `plant` makes of transformers' model of the checkpoint."""
        return PythonPort("planted", lambda folder, _dtype: plant(load(folder)), self.folder)

    def seen(self, port: Port) -> dict[str, float]:
        """How far a port is from the reference on each probe that it can run, in floors."""
        return {
            one.probe.name: one.floor.times(deviation(port.logits(one.probe), one.logits, one.probe.real))
            for one in self.baselines
            if port.refusal(one.probe) is None
        }

    def apart(self, port: Port, other: Port) -> float:
        """How far two ports are from each other at most, in floors of the reference, on probes that both can run."""
        return max(
            one.floor.times(deviation(port.logits(one.probe), other.logits(one.probe), one.probe.real))
            for one in self.baselines
            if port.refusal(one.probe) is None and other.refusal(one.probe) is None
        )

    def diagnosed(self, port: Port, seconds: float = 100.0) -> Diagnosis:
        """What the diagnosis of the gate says of a port."""
        able = [one for one in self.baselines if port.refusal(one.probe) is None]
        ours = Side({one.probe.name: port.logits(one.probe) for one in able}, port.points)
        right = Side({one.probe.name: one.logits for one in able}, self.reference.points)
        case = Evidences(self.reference, able, ours, right)
        return diagnose(case, self.workshop, self.all_mutants, lambda _step: None, seconds)

    def mutants(self, planting: Planting) -> list[Mutant]:
        """The mutants that a planting should be found to be."""
        return [
            Mutant(one.fault, one.slip, planting.layers)
            for one in self.all_mutants
            if one.fault.id == planting.fault and planting.behaves_as in (None, one.slip.behaves_as)
        ]


def load(folder: Path) -> Any:
    """Transformers' model of a checkpoint, as the reference runs it."""
    return transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", experts_implementation="eager"
    ).eval()


@functools.cache
def find_bench(name: str) -> Bench:
    """The bench of a checkpoint, made at its first use."""
    folder = Path(_scratch().name, name.replace("/", "-"))
    if name in BY_NAME:
        tiny = BY_NAME[name]
        tiny.save(folder)
        compiled = compile_text(tiny.text(), name)
    else:
        ugly.save(ugly.uglier(_case(name)), folder)
        compiled = compile_text(import_spec(str(folder)).text, name)
    reference = Reference(folder)
    architecture = compiled.architecture
    wall = architecture.embedding.positions or reference.wall(architecture.context, 2048)
    probes, _ = derive_probes(architecture, avoid=reference.padding, wall=wall)
    able = [
        probe
        for probe in probes
        if probe.tokens <= LONGEST
        and reference.refusal(probe) is None
        and (probe.chunks is None or reference.can_step(probe))
    ]
    baselines, _ = measure(reference, able, lambda _step: None)
    workshop = Workroom(architecture, GeneratedPort(architecture, folder))
    return Bench(folder, compiled, reference, workshop, mutants_of(architecture), tuple(baselines))


def _case(name: str) -> Case:
    if name in MORE:
        return MORE[name]
    [found] = [case for case in CASES if f"zoo/{case.name}" == name]
    return found


@functools.cache
def _scratch() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory()


def check(planting: Planting) -> None:
    """Asserts that a planted mistake shows, and that some mutant of its fault does the same everywhere."""
    bench = find_bench(planting.case)
    port = bench.port(planting.plant)
    assert max(bench.seen(port).values()) > BOUND, "the planted mistake shows on no probe"
    mutants = bench.mutants(planting)
    assert mutants, f"{planting.fault} has no such slip on {planting.case}"
    apart = {mutant.name: _apart(bench, port, mutant) for mutant in mutants}
    assert min(apart.values()) <= BOUND, f"no mutant does what the planted mistake does: {apart}"


def _apart(bench: Bench, port: Port, mutant: Mutant) -> float:
    made = bench.workshop.make(mutant)
    assert not isinstance(made, Unmade), f"{mutant.name}: {made.why}"
    return bench.apart(port, made)


# What plantings are made with.


def within(model: nn.Module, endings: str) -> list[Any]:
    """The modules of a model whose names end so, in order: `self_attn`, `layers.1.mlp`, `q_norm k_norm`."""
    asked = tuple(f".{ending}" for ending in endings.split())
    found = [module for name, module in model.named_modules() if f".{name}".endswith(asked)]
    assert found, f"{type(model).__name__} has no {endings}"
    return found


def every(model: Any, endings: str, **values: object) -> Any:
    """The model with attributes set on every module whose names end so."""
    for module in within(model, endings):
        for name, value in values.items():
            assert hasattr(module, name), f"{type(module).__name__} has no {name}"
            setattr(module, name, value)
    return model


def rewritten(model: Any, endings: str, change: Callable[[Any], None]) -> Any:
    """The model with every module whose names end so changed, weights and all."""
    with torch.no_grad():
        for module in within(model, endings):
            change(module)
    return model


def wrapped(model: Any, endings: str, wrap: Callable[[Any, Callable[..., Any]], Callable[..., Any]]) -> Any:
    """The model in which `wrap(module, forward)` takes the place of forward in modules whose names end so."""
    for module in within(model, endings):
        module.forward = functools.wraps(module.forward)(wrap(module, module.forward))
    return model


def patched(model: Any, **functions: Callable[..., Any]) -> Any:
    """The model with functions of its file replaced while it runs; each is given the original first."""
    home, forward = sys.modules[type(model).__module__], model.forward
    others = {name: functools.partial(new, getattr(home, name)) for name, new in functions.items()}

    @functools.wraps(forward)
    def run(*args: Any, **more: Any) -> Any:
        with contextlib.ExitStack() as stack:
            for name, other in others.items():
                stack.enter_context(mock.patch.object(home, name, other))
            return forward(*args, **more)

    model.forward = run
    return model


class Function(nn.Module):
    """A function in the place of a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.forward = function


def identity(model: Any, endings: str) -> Any:
    """The model in which modules whose names end so hand on what they get."""
    return wrapped(model, endings, lambda _module, _forward: lambda x: x)


def reconfigured(model: Any, **changes: object) -> Any:
    """A model of the same class and weights by a changed config; weights that it has no place for are left out."""
    config = copy.deepcopy(model.config)
    for name, value in changes.items():
        assert hasattr(config, name), f"{type(config).__name__} has no {name}"
        setattr(config, name, value)
    other = type(model)(config).float().eval()
    missing = other.load_state_dict(model.state_dict(), strict=False).missing_keys
    assert not missing, f"with {changes} the model needs {missing}"
    other.set_attn_implementation("eager")
    return other


def re_roped(model: Any, **changes: object) -> Any:
    """The same with other rope_parameters; a name that is None is left out."""
    rope = {**model.config.rope_parameters, **changes}
    return reconfigured(model, rope_parameters={name: value for name, value in rope.items() if value is not None})
