"""Streamed validation: the same verdict as with whole models, in memory that does not grow with depth."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from archc.architecture import Compiled, compile_text
from archc.checkpoints.cache import cache_folder
from archc.codegen import generate
from archc.errors import IncompleteError, UsageError
from archc.importing.convert import import_spec
from archc.render.validation_json import gate_document
from archc.validation.gate import GateResult, Level, run_gate
from archc.validation.parity import NUDGES, deviation, floor_of
from archc.validation.ports import GeneratedPort
from archc.validation.python_port import open_python_port
from archc.validation.reference import Reference
from archc.validation.streaming import fitting, sides, walk
from tests.cli.runner import archc
from tests.families.ugly import save, uglier
from tests.validation.traced import CASES

# Tied and untied ends, learned positions and matrices stored transposed, windows, experts stored one by one and all in
# one, corrections stored beside the weights, latent attention, layers in parallel.
FAMILIES = ["llama", "gpt2", "gemma2", "gpt_oss", "mixtral", "deepseek_v3", "falcon", "ernie4_5_moe"]


@dataclass(frozen=True)
class Made:
    """A tiny checkpoint and the spec that was imported from it."""

    folder: Path
    text: str

    def compiled(self, *overrides: str) -> Compiled:
        return compile_text(self.text, "tiny", overrides)

    def run(self, *overrides: str, stream: bool = True, step: Callable[[str], None] = lambda _: None) -> GateResult:
        level = Level(streaming=walk.Streaming(asked=stream))
        return run_gate(self.compiled(*overrides), self.folder, step, level=level)


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARCHC_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Made]:
    found: dict[str, Made] = {}

    def make(name: str, **config: Any) -> Made:
        key = f"{name} {config}"
        if key not in found:
            case = uglier(CASES[name])
            folder = tmp_path_factory.mktemp(name)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                save(replace(case, config={**case.config, **config}), folder)
            found[key] = Made(folder, import_spec(str(folder)).text)
        return found[key]

    return make


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_and_floors_are_those_of_whole_models_to_the_last_bit(name: str, made: Callable[..., Made]) -> None:
    """Of all probes but the one with a cache, whose steps are held against the reference's full pass."""
    one = made(name)
    streamed = one.run()
    assert streamed.passed
    architecture = one.compiled().architecture
    reference, port = Reference(one.folder, architecture=architecture), GeneratedPort(architecture, one.folder)
    for found in streamed.probes:
        probe = found.probe
        if probe.chunks is None:
            base = reference.run(probe)
            assert found.deviation == deviation(port.logits(probe), base.logits, probe.real)
            moved = []
            for seed in range(NUDGES):
                with reference.nudged(seed):
                    again = reference.run(probe, base.choices)
                moved.append(deviation(again.logits, base.logits, probe.real))
            assert found.floor == floor_of(moved, base.logits[probe.real])
    assert streamed.blockwise is not None
    assert streamed.blockwise.passed
    assert streamed.stream is not None
    assert len(streamed.stream.seconds_per_layer) == len(architecture.layers)
    assert 1 <= streamed.stream.most_reads <= 2
    assert streamed.stream.bytes_read <= 2 * streamed.stream.checkpoint_bytes


def live_bytes() -> int:
    """Bytes of all tensors that the process holds, each storage once; not those that torch.compile has made up."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tensors = [one for one in gc.get_objects() if type(one) in {Tensor, nn.Parameter} and not one.is_meta]
    storages = {one.untyped_storage().data_ptr(): one.untyped_storage().nbytes() for one in tensors}
    return sum(storages.values())


def test_memory_does_not_grow_with_depth(made: Callable[..., Made]) -> None:
    """Counted by the run itself, and by all tensors that are alive where each layer begins."""
    weights, alive = {}, {}
    for depth in (3, 12):
        seen: list[int] = []

        def step(name: str, seen: list[int] = seen) -> None:
            if name.startswith("layer "):
                seen.append(live_bytes())

        gc.collect()
        before = live_bytes()
        result = made("llama", num_hidden_layers=depth).run(step=step)
        assert result.passed
        assert result.stream is not None
        weights[depth], alive[depth] = result.stream.peak_resident_bytes, max(seen) - before
        assert result.stream.checkpoint_bytes > depth * weights[depth] / 4
    assert weights[3] == weights[12]
    assert alive[12] <= 1.02 * alive[3]


def test_a_wrong_field_fails_at_the_same_place_as_with_whole_models(made: Callable[..., Made]) -> None:
    streamed, whole = made("llama").run("norm.eps=1e-2"), made("llama").run("norm.eps=1e-2", stream=False)
    assert not streamed.port_holds
    assert not whole.port_holds
    assert streamed.divergence is not None
    assert whole.divergence is not None
    assert streamed.divergence.point == whole.divergence.point


def test_a_mistake_in_one_layer_is_named(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    load = sides.PagedPort.load

    def spoilt(self: sides.PagedPort, page: Any, read: Any) -> None:
        load(self, page, read)
        for name, placeholder in self._parameters.items():
            if name == "layers.1.attention.v.weight" and id(placeholder) in self.book.resident:
                self.book.resident[id(placeholder)][::3] *= 1.05

    monkeypatch.setattr(sides.PagedPort, "load", spoilt)
    result = made("mixtral").run()
    assert not result.passed
    assert result.blockwise is not None
    assert result.blockwise.layers == (1,)
    assert result.divergence is not None
    assert (result.divergence.layer, result.divergence.point) == (1, "layers.1.mixer.v")
    assert result.stream is not None
    drift = result.stream.drift["64 tokens"]
    assert drift["layers.0.out"] < 8 < drift["layers.1.out"]
    document = json.loads(json.dumps(gate_document(result), allow_nan=False))
    assert document["stream"]["drift"]["64 tokens"] == pytest.approx(drift)


def test_a_mistake_in_the_cache_fails_the_steps_alone(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are written a position too early: a full pass has no cache to get wrong."""
    right = "self.keys[layer][:, :, self.length : end] = k_BKTC"
    wrong = "self.keys[layer][:, :, max(self.length - 1, 0) :][:, :, : k_BKTC.shape[2]] = k_BKTC"

    def broken(architecture: Any) -> str:
        source = generate(architecture)
        assert right in source
        return source.replace(right, wrong)

    monkeypatch.setattr(sides, "generate", broken)
    result = made("llama").run()
    assert [one.probe.name for one in result.probes if not one.passed] == ["cache"]
    assert "cache" in result.divergence_note


class KilledError(Exception):
    """Ends a run, as the machine might."""


def end(one: Made, step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs up to a step, and keeps all that is done by then."""
    monkeypatch.setattr(walk, "KEPT_EVERY", 0.0)

    def ended(name: str) -> None:
        if name.startswith(step):
            raise KilledError

    with pytest.raises(KilledError):
        one.run(step=ended)


def test_a_run_that_was_ended_goes_on_where_it_was(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    one = made("mixtral", num_hidden_layers=4)
    whole = one.run()
    end(one, "layer 3", monkeypatch)
    steps: list[str] = []
    resumed = one.run(step=steps.append)
    assert resumed.stream is not None
    assert resumed.stream.resumed_at == 2
    layers = [name.partition(",")[0] for name in steps if name.startswith("layer ")]
    assert layers == ["layer 3 of 4", "layer 4 of 4"]
    assert resumed.stream.state is not None
    assert not resumed.stream.state.exists()
    documents = [gate_document(found) for found in (whole, resumed)]
    for document in documents:
        for key in ("seconds", "peak_memory_bytes"):
            document.pop(key)
        for key in ("seconds_per_layer", "resumed_at", "bytes_read", "available_bytes"):
            document["stream"].pop(key)  # type: ignore[attr-defined]
    assert documents[0] == documents[1]


@pytest.fixture
def interrupted(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> tuple[Made, Path]:
    """A run that was ended behind its first layer, and what it left."""
    one = made("llama", num_hidden_layers=3)
    end(one, "layer 2", monkeypatch)
    (file,) = (cache_folder() / "streams").iterdir()
    return one, file


def resumed_at(result: GateResult) -> int | None:
    assert result.stream is not None
    assert result.passed
    return result.stream.resumed_at


def test_what_is_left_of_another_checkpoint_is_not_taken_up(interrupted: tuple[Made, Path]) -> None:
    one, _ = interrupted
    weights = one.folder / "model.safetensors"
    held = weights.read_bytes()
    weights.write_bytes(held)  # another time of change
    assert resumed_at(one.run()) is None


def test_what_is_left_of_another_spec_is_not_taken_up(interrupted: tuple[Made, Path]) -> None:
    one, _ = interrupted
    result = one.run("norm.eps=1e-2")
    assert result.stream is not None
    assert result.stream.resumed_at is None
    assert resumed_at(one.run()) == 1


def test_what_is_left_damaged_is_not_taken_up(interrupted: tuple[Made, Path]) -> None:
    one, file = interrupted
    file.write_bytes(file.read_bytes()[:-100])
    assert resumed_at(one.run()) is None


def rewrite(file: Path, change: Callable[[dict[str, Any], dict[str, Tensor]], object]) -> None:
    """Changes what a run has left, and leaves its fingerprint."""
    with safe_open(file, framework="pt") as held:
        metadata = held.metadata()
    streams, done = load_file(file), json.loads(metadata["done"])
    change(done, streams)
    save_file(streams, file, metadata | {"done": json.dumps(done)})


@pytest.mark.parametrize(
    "change",
    [
        lambda done, _: done.update(results={}),
        lambda done, _: done["results"]["probed"].popitem(),
        lambda done, _: done["results"].update(forms=[]),
        lambda done, _: done["results"].update(forms=[[], []]),
        lambda done, _: done.update(layer=99),
    ],
)
def test_what_is_left_of_other_probes_or_layers_is_not_taken_up(
    interrupted: tuple[Made, Path], change: Callable[[dict[str, Any], dict[str, Tensor]], object]
) -> None:
    one, file = interrupted
    rewrite(file, change)
    assert resumed_at(one.run()) is None


def test_what_is_left_without_a_run_is_refused(interrupted: tuple[Made, Path]) -> None:
    """Its stream would be taken from before the layers that are skipped, and a right port would fail."""
    one, file = interrupted
    rewrite(file, lambda _, streams: streams.pop("64 tokens, port own 0"))
    with pytest.raises(IncompleteError, match="lacks the run 64 tokens, port own 0"):
        one.run()


@pytest.mark.parametrize(
    ("change", "said"),
    [(lambda held: held[: len(held) // 2], "cannot read"), (lambda held: held, "was changed while the run read it")],
)
def test_a_checkpoint_that_changes_under_a_run_has_no_verdict(
    made: Callable[..., Made], change: Callable[[bytes], bytes], said: str
) -> None:
    """Cut short by a download that begins anew, or written again: layers of two checkpoints are no model."""
    one = made("llama")
    weights = one.folder / "model.safetensors"
    held = weights.read_bytes()

    def changed(name: str) -> None:
        if name.startswith("layer 2"):
            weights.unlink()
            weights.write_bytes(change(held))

    try:
        with pytest.raises(IncompleteError, match=said):
            one.run(step=changed)
    finally:
        weights.write_bytes(held)


def test_it_streams_by_itself_where_whole_models_do_not_fit(
    made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made("llama")
    monkeypatch.setattr(fitting, "available_bytes", lambda: 1000)
    result = one.run(stream=False)
    assert result.stream is not None
    assert result.stream.why == "whole models do not fit in memory"
    numbers = result.stream.checkpoint_bytes // 4
    assert result.stream.fitting.needed == 12 * numbers
    monkeypatch.setattr(fitting, "available_bytes", lambda: None)
    assert one.run(stream=False).stream is None


def test_what_cannot_be_streamed_is_refused(made: Callable[..., Made], monkeypatch: pytest.MonkeyPatch) -> None:
    one = made("llama")
    file = one.folder / "port.py"
    file.write_text("def load(weights, dtype):\n    return lambda input_ids: None\n")
    asked = Level(streaming=walk.Streaming(asked=True))
    opener = open_python_port(f"{file}:load")
    with pytest.raises(UsageError, match="the generated module alone"):
        run_gate(one.compiled(), one.folder, lambda _: None, open_port=opener, level=asked)
    with pytest.raises(UsageError, match="float32"):
        run_gate(one.compiled(), one.folder, lambda _: None, dtype=torch.bfloat16, level=asked)
    monkeypatch.setattr(sides, "placeholders", lambda _: iter(()))
    with pytest.raises(IncompleteError):
        one.run()


def test_a_recurrent_model_is_refused_by_what_it_is(made: Callable[..., Made]) -> None:
    """archc generates no code for it: there is no port to stream."""
    done = archc("validate", str(made("mamba").folder), "--stream")
    assert done.code != 0
    assert "cannot be generated yet" in done.err


def test_the_command(tmp_path: Path) -> None:
    done = archc("validate", "tiny", "--stream", "--json")
    assert done.code == 0, done.err
    assert done.json["passed"]
    assert not done.json["passed_strictly"]
    assert done.json["stream"]["why"] == "asked for"
    assert {one["field"] for one in done.json["fields"]["blind"]} >= {"invariants", "mistakes"}
    assert "of weights at once" in " ".join(archc("validate", "tiny", "--stream").out.split())
    assert archc("validate", "tiny", "--stream", "--dtype", "bfloat16").code == 2
    assert list(tmp_path.glob("cache/streams/*")) == []
