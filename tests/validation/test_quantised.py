"""The gate on quantised checkpoints: what is stored, read as it is meant, is the reference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers.utils import logging

from archc.architecture import compile_spec
from archc.checkpoints.dequantise import open_checkpoint
from archc.render.validation import print_verdict
from archc.render.validation_json import gate_document
from archc.validation.gate import GateResult, run_gate
from archc.validation.plain import _stored_transposed
from archc.validation.ports import GeneratedPort
from archc.validation.probes import Probe
from archc.validation.python_port import open_python_port
from archc.validation.reference import Reference
from archc.validation.static import ManifestResult
from archc.validation.validator import find_validator
from tests.checkpoints import packing
from tests.cli.runner import archc
from tests.tiny import Tiny, _base, _spec

PORTS = Path(__file__).with_name("quantised_port.py")
LLAMA = Tiny(
    "llama-packed",
    "llama",
    _base(hidden_size=48, intermediate_size=112, num_hidden_layers=2),
    _spec(ffn="{kind: gated, activation: silu, width: 112}", layers="2"),
)
GPT_OSS = Tiny(
    "gpt-oss-packed",
    "gpt_oss",
    _base(
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_local_experts=3,
        num_experts_per_tok=2,
        sliding_window=8,
        layer_types=["sliding_attention", "full_attention"],
    ),
    "",
)
FORMATS: dict[str, tuple[Tiny, dict[str, Any], Callable[..., dict[str, Tensor]]]] = {
    "fp8": (LLAMA, packing.FP8, packing.fp8_blocks),
    "fbgemm_fp8": (LLAMA, {"quant_method": "fbgemm_fp8"}, packing.fp8_rows),
    "compressed-tensors": (LLAMA, packing.COMPRESSED, packing.fp8_whole),
    "gptq": (LLAMA, packing.GPTQ, packing.gptq),
    "awq": (LLAMA, packing.AWQ, packing.awq),
    "mxfp4": (GPT_OSS, packing.MXFP4, packing.mxfp4),
}


@pytest.fixture(scope="module")
def quantised(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A tiny checkpoint in one of the formats, made once."""
    made: dict[str, Path] = {}

    def make(method: str) -> Path:
        if method not in made:
            logging.disable_progress_bar()
            folder = tmp_path_factory.mktemp(method)
            tiny, settings, pack = FORMATS[method]
            tiny.save(folder / "plain")
            made[method] = packing.quantise(folder / "plain", folder / "packed", settings, pack)
        return made[method]

    return make


def judged(folder: Path, port: str | None = None) -> GateResult:
    """What the gate says of a checkpoint, without the mistakes that `archc validate` plants for good measure."""
    compiled = compile_spec(find_validator(str(folder)).spec)
    opened = GeneratedPort if port is None else open_python_port(port)
    return run_gate(compiled, folder, lambda _: None, open_port=opened)


@pytest.mark.parametrize("method", FORMATS)
def test_the_generated_module_agrees_with_the_dequantised_reference(
    quantised: Callable[[str], Path], method: str
) -> None:
    result = judged(quantised(method))
    assert result.passed
    assert result.dequantised == method
    assert result.manifest == ManifestResult((), (), (), ()), "the names of plain tensors"


@pytest.mark.parametrize(("port", "passes"), [("right", True), ("swapped", False), ("unshifted", False)])
def test_a_port_that_loads_the_quantised_checkpoint_itself(
    quantised: Callable[[str], Path], port: str, passes: bool
) -> None:
    assert judged(quantised("gptq"), f"{PORTS}:{port}").passed == passes


def test_the_verdict_says_how_the_checkpoint_is_quantised(
    quantised: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    result = judged(quantised("awq"))
    print_verdict(result)
    assert "weights dequantised from awq" in capsys.readouterr().out
    assert gate_document(result)["reference"]["dequantised"] == "awq"  # type: ignore[index]


def test_a_checkpoint_of_another_shape_is_found_before_it_is_dequantised(
    quantised: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The manifest speaks of plain names, and nothing is written for a checkpoint that does not hold them."""
    monkeypatch.setattr("archc.checkpoints.dequantise.Checkpoint.plain", None)
    done = archc("validate", str(quantised("awq")), "--set", "ffn.width=96", "--json")
    assert done.code == 1
    wrong = {one["name"]: one["stored"] for one in done.json["manifest"]["wrong_shape"]}
    assert wrong["model.layers.0.mlp.down_proj.weight"] == [48, 112]


def test_an_unknown_format_is_refused_with_a_mend(quantised: Callable[[str], Path], tmp_path: Path) -> None:
    folder = tmp_path / "hqq"
    folder.mkdir()
    config = json.loads((quantised("awq") / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": {"quant_method": "hqq"}}))
    (folder / "model.safetensors").write_bytes((quantised("awq") / "model.safetensors").read_bytes())
    done = archc("validate", str(folder))
    assert done.code == 3
    assert "quantised by 'hqq', and archc can dequantise fp8, fbgemm_fp8" in done.err
    assert "use the unquantised checkpoint" in done.err


@pytest.mark.parametrize("command", ["report", "import"])
def test_sizes_do_not_need_the_weights(quantised: Callable[[str], Path], command: str) -> None:
    done = archc(command, str(quantised("gptq") / "config.json"))
    assert done.code == 0, done.err


def test_a_recording_is_of_the_plain_form(quantised: Callable[[str], Path], tmp_path: Path) -> None:
    file = tmp_path / "trace.safetensors"
    done = archc("trace", str(quantised("awq")), "-o", str(file), "--probe", "8 tokens")
    assert done.code == 0, done.err
    with open_checkpoint(quantised("awq")).plain() as plain:
        ids = load_file(file)["8 tokens/input_ids"]
        right = Reference(plain).logits(Probe("8 tokens", "", ids))
    assert torch.equal(load_file(file)["8 tokens/logits"], right)


def test_matrices_that_a_family_stores_transposed_are_known_by_name() -> None:
    of_gpt2 = _stored_transposed(compile_spec("gpt2").architecture)
    of_llama = _stored_transposed(compile_spec("llama3-8b").architecture)
    assert of_gpt2("h.0.attn.c_attn.weight")
    assert of_gpt2("transformer.h.0.mlp.c_proj.weight")
    assert not of_gpt2("transformer.h.0.ln_1.weight")
    assert not of_llama("model.layers.0.self_attn.q_proj.weight")
