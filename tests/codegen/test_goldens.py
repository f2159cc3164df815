"""Whole generated files: four as goldens, whose own text is shrunk and run, and every shipped one checked by tools."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch

from archc.architecture import compile_spec
from archc.codegen import generate
from tests.codegen.combinations import COMBINATIONS, combination
from tests.codegen.comparisons import COMPARISONS, Generated, HuggingFace
from tests.codegen.support import GENERATABLE, import_text, parameters, ruff
from tests.conftest import GOLDENS, Golden
from tests.noise import BOUND, measure
from tests.tiny import BY_NAME, Tiny

LLAMA = BY_NAME["llama-default"].config
EXPERTS = BY_NAME["qwen3_moe-renormalised"].config


@dataclass(frozen=True)
class Shrunk:
    """A shipped model made small: the sizes to write over its constants, and Hugging Face's config of that size.

    All that is no size (eps, base, scales, activation, order …) is as published, on either side.
    """

    sizes: dict[str, int]
    hf: Tiny
    published: tuple[float, float]
    fault: tuple[str, str]


SHRUNK = {
    "gpt2": Shrunk(
        {"VOCAB_SIZE": 211, "WIDTH": 60, "LAYERS": 3, "CONTEXT": 96, "HEADS": 5, "KV_HEADS": 5, "HEAD_DIM": 12}
        | {"FFN_WIDTH": 104},
        Tiny("gpt2", "gpt2", BY_NAME["gpt2"].config | {"layer_norm_epsilon": 1e-5}, ""),
        (124_439_808, 0),
        ('approximate="tanh"', 'approximate="none"'),
    ),
    "smollm2-135m": Shrunk(
        {"VOCAB_SIZE": 211, "WIDTH": 72, "LAYERS": 3, "HEADS": 6, "KV_HEADS": 2, "HEAD_DIM": 16} | {"FFN_WIDTH": 100},
        Tiny(
            "smollm2",
            "llama",
            LLAMA
            | {
                "rms_norm_eps": 1e-5,
                "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0},
                "tie_word_embeddings": True,
            },
            "",
        ),
        (134_515_008, 0),
        ("ROPE_BASE = 100_000.0", "ROPE_BASE = 10_000.0"),
    ),
    "gemma3-270m": Shrunk(
        {"VOCAB_SIZE": 211, "WIDTH": 72, "HEADS": 6, "KV_HEADS": 2, "HEAD_DIM": 16} | {"FFN_WIDTH": 100, "WINDOW": 7},
        Tiny(
            "gemma3",
            "gemma3_text",
            BY_NAME["gemma3_text"].config
            | {
                "num_hidden_layers": 18,
                "rms_norm_eps": 1e-6,
                "query_pre_attn_scalar": 16,
                "layer_types": (["sliding_attention"] * 5 + ["full_attention"]) * 3,
                "rope_parameters": {
                    "sliding_attention": {"rope_type": "default", "rope_theta": 10_000.0},
                    "full_attention": {"rope_type": "default", "rope_theta": 1_000_000.0},
                },
            },
            "",
            one_plus=True,
        ),
        (270e6, 0.01),
        ('(("local",) * 5 + ("global",)) * 3', '(("global",) + ("local",) * 5) * 3'),
    ),
    "qwen3-30b-a3b": Shrunk(
        {"VOCAB_SIZE": 211, "WIDTH": 72, "LAYERS": 3, "HEADS": 6, "KV_HEADS": 2, "HEAD_DIM": 16}
        | {"EXPERTS": 7, "TOP_K": 3, "EXPERT_WIDTH": 44},
        Tiny(
            "qwen3_moe",
            "qwen3_moe",
            EXPERTS
            | {
                "rms_norm_eps": 1e-6,
                "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
            },
            "",
        ),
        (30.5e9, 0.0017),
        ("weight_NA = weight_NA / weight_NA.sum(dim=-1, keepdim=True)", "pass"),
    ),
}


@cache
def source(name: str) -> str:
    return generate(compile_spec(name).architecture)


def shrink(text: str, sizes: dict[str, int]) -> str:
    for name, size in sizes.items():
        text, count = re.subn(rf"^{name} = [\d_]+", f"{name} = {size}", text, flags=re.MULTILINE)
        assert count == 1, name
    return text


def golden_name(name: str) -> str:
    return f"codegen/{name.replace('-', '_')}.py"


@pytest.mark.parametrize("name", SHRUNK)
def test_golden(golden: Golden, name: str) -> None:
    golden(golden_name(name), source(name))


@pytest.mark.parametrize("name", SHRUNK)
def test_golden_has_the_published_size(tmp_path: Path, name: str) -> None:
    with torch.device("meta"):
        model = import_text((GOLDENS / golden_name(name)).read_text(encoding="utf-8"), tmp_path).Model()
    figure, within = SHRUNK[name].published
    assert parameters(model) == pytest.approx(figure, rel=within, abs=0)


@pytest.mark.parametrize("comparison", ["full", "cached"])
@pytest.mark.parametrize("name", SHRUNK)
def test_golden_computes_what_hugging_face_does(tmp_path: Path, name: str, comparison: str) -> None:
    """The golden's very text, its sizes replaced; with one word of it changed, it does not."""
    compare, shrunk = COMPARISONS[comparison], SHRUNK[name]
    measured = measure(shrunk.hf.save(tmp_path), lambda hf: compare(HuggingFace(hf)))
    architecture = compile_spec(name).architecture

    def deviation(text: str) -> float:
        model = import_text(shrink(text, shrunk.sizes), tmp_path).Model.from_pretrained(tmp_path)
        return measured.deviation(compare(Generated(model, architecture)))

    text = (GOLDENS / golden_name(name)).read_text(encoding="utf-8")
    assert deviation(text) < BOUND
    assert text.count(shrunk.fault[0]) == 1
    assert deviation(text.replace(*shrunk.fault)) > BOUND


# ---------------------------------------------------------------- every shipped spec


def test_most_shipped_specs_are_generated() -> None:
    """What is skipped below is refused by name; none of those that a test names is among them."""
    assert {*SHRUNK, "llama3.1-8b", "mixtral-8x7b", "olmo2-7b", "mistral-7b", "qwen2-0.5b"} <= set(GENERATABLE)
    assert len(GENERATABLE) >= 24


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("shipped")
    for name in GENERATABLE:
        (folder / f"{name.replace('/', '-')}.py").write_text(source(name), encoding="utf-8")
    return ruff(folder)


@pytest.mark.parametrize("name", GENERATABLE)
def test_shipped_is_formatted_and_clean(complaints: str, name: str) -> None:
    assert f"{name.replace('/', '-')}.py" not in complaints


@pytest.mark.parametrize("name", GENERATABLE)
def test_shipped_fits_the_page(name: str) -> None:
    """88 columns."""
    assert [line for line in source(name).split("\n") if len(line) > 88] == []


@pytest.mark.parametrize("name", GENERATABLE)
def test_shipped_has_the_declared_tensors(tmp_path: Path, name: str) -> None:
    with torch.device("meta"):
        model = import_text(source(name), tmp_path).Model()
    declared = {tensor.name: tensor.shape for tensor in compile_spec(name).architecture.tensors()}
    assert {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()} == declared


@pytest.mark.slow
def test_types_are_right(tmp_path: Path) -> None:
    """In mypy's default settings, all files in one call, since reading torch's types is what takes long."""
    texts = {name.replace("/", "-"): source(name) for name in GENERATABLE}
    texts |= {name: generate(combination(name)) for name in COMBINATIONS}
    texts["wrong"] = source("gpt2").replace("cache.length += new", 'cache.length += "new"')  # the twin that fails
    for name, text in texts.items():
        (tmp_path / f"{re.sub('[^a-z0-9]', '_', name)}.py").write_text(text, encoding="utf-8")
    files = [str(path) for path in sorted(tmp_path.glob("*.py"))]
    command = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={tmp_path}/cache", *files]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=600)
    errors = [line for line in done.stdout.splitlines() if ": error: " in line]
    assert len(errors) == 1, done.stdout
    assert errors[0].startswith("wrong.py:")
