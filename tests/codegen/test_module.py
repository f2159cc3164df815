"""The interface of a generated module: decoding, sampling, loading, training, and nothing that needs archc."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from archc.architecture import compile_spec
from archc.codegen import generate
from tests.codegen.conftest import Cases
from tests.codegen.support import GENERATABLE, import_text, random_ids

DECODED = ["gpt2", "llama-biased", "mistral-window", "qwen3_moe", "gemma2", "gemma3_text", "phi3-partial"]
LADDER = [name for name in GENERATABLE if name.startswith("ladder/")]


def uncached(model: Any, ids: Tensor, new_tokens: int) -> Tensor:
    """Greedy decoding without a cache: everything anew for each token."""
    for _ in range(new_tokens):
        with torch.no_grad():
            ids = torch.cat((ids, model(ids)[:, -1:].argmax(-1)), dim=1)
    return ids


# ---------------------------------------------------------------- generate


@pytest.mark.parametrize("new_tokens", [0, 1, 2, 33])
@pytest.mark.parametrize("name", DECODED)
def test_greedy_decoding_is_the_same_without_a_cache(cases: Cases, name: str, new_tokens: int) -> None:
    model, prompt = cases(name).port(), random_ids(2, 15)
    ids = model.generate(prompt, new_tokens)
    assert ids.shape == (2, 15 + new_tokens)
    assert torch.equal(ids, uncached(model, prompt, new_tokens))


@pytest.mark.parametrize("name", DECODED)
def test_greedy_decoding_is_hugging_faces(cases: Cases, name: str) -> None:
    case, prompt = cases(name), random_ids(1, 15)
    theirs = case.hf.generate(
        prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=20, do_sample=False, eos_token_id=None
    )
    assert torch.equal(case.port().generate(prompt, 20), theirs)


def test_rows_of_a_batch_decode_as_they_do_alone(cases: Cases) -> None:
    model, prompt = cases("llama-default").port(), random_ids(3, 9)
    alone = [model.generate(row[None], 12) for row in prompt]
    assert torch.equal(model.generate(prompt, 12), torch.cat(alone))


def test_stops_at_a_stop_id_and_fills_the_row(cases: Cases) -> None:
    model, prompt = cases("llama-default").port(), random_ids(3, 9)
    free = model.generate(prompt, 12)
    first, second, third = free[:, 9:].tolist()
    at, stop = next(
        (at, token) for at, token in enumerate(second) if at > 2 and token not in first + third + second[:at]
    )

    ids = model.generate(prompt, 12, stop_ids=[stop])
    assert ids.shape == free.shape, "two rows have not ended"
    assert ids[:, 9:].tolist() == [first, second[: at + 1] + [stop] * (11 - at), third]

    alone = model.generate(prompt[1:2], 12, stop_ids=(first[0], stop))
    assert alone[0, 9:].tolist() == second[: at + 1], "the stop itself belongs to the answer, and nothing after it"
    assert torch.equal(model.generate(prompt, 12, stop_ids=()), free)


# ---------------------------------------------------------------- sampling


def reference_distribution(logits: list[float], temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Probabilities by hand: scale, keep the top k, then the fewest of those that hold top_p; each over their sum."""
    scaled = torch.tensor(logits, dtype=torch.float64) / temperature
    weights = (scaled - scaled.max()).exp().tolist()
    order = sorted(range(len(weights)), key=lambda token: -weights[token])[: top_k or len(weights)]
    total = sum(weights[token] for token in order)
    kept, held = [], 0.0
    for token in order:
        if top_p is not None and held >= top_p:
            break
        kept.append(token)
        held += weights[token] / total
    probabilities = torch.zeros(len(weights), dtype=torch.float64)
    for token in kept:
        probabilities[token] = weights[token] / sum(weights[other] for other in kept)
    return probabilities


@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, None), (0.6, None, None), (0.7, 7, None), (1.3, None, 0.6), (0.7, 9, 0.7), (1.0, 500, 1.0)],
)
def test_samples_follow_the_distribution(
    cases: Cases, temperature: float, top_k: int | None, top_p: float | None
) -> None:
    model, prompt = cases("llama-default").port(), random_ids(1, 3)
    with torch.no_grad():
        logits = model(prompt)[0, -1].tolist()
    expected = reference_distribution(logits, temperature, top_k, top_p)
    others = [
        reference_distribution(logits, temperature * 1.5, top_k, top_p),
        reference_distribution(logits, temperature, 4, top_p),
        reference_distribution(logits, temperature, top_k, 0.4),
    ]

    draws = 8000
    ids = model.generate(
        prompt.expand(draws, -1), 1, temperature, top_k, top_p, generator=torch.Generator().manual_seed(3)
    )[:, -1]
    seen = torch.bincount(ids, minlength=len(logits)).double() / draws
    assert (seen[expected == 0] == 0).all()
    # The total variation of n draws from k outcomes is about sqrt(k / 2πn) of its worst case: E|f - p| ≤ sqrt(p / n).
    bound = 1.5 * 0.5 * float((expected / draws).sqrt().sum())
    assert 0.5 * float((seen - expected).abs().sum()) < bound
    for other in others:
        assert 0.5 * float((seen - other).abs().sum()) > bound


def test_a_seed_decides_the_sample(cases: Cases) -> None:
    model, prompt = cases("llama-default").port(), random_ids(2, 9)

    def sample(seed: int) -> list[list[int]]:
        ids: Tensor = model.generate(prompt, 12, temperature=1.5, generator=torch.Generator().manual_seed(seed))
        return ids.tolist()

    assert sample(1) == sample(1)
    assert sample(1) != sample(2)


@pytest.mark.parametrize("options", [{"top_k": 1}, {"top_p": 1e-9}, {"top_k": 5, "top_p": 1e-9}], ids=str)
def test_the_narrowest_sampling_is_greedy(cases: Cases, options: dict[str, Any]) -> None:
    model, prompt = cases("llama-default").port(), random_ids(2, 9)
    assert torch.equal(model.generate(prompt, 12, temperature=3.0, **options), model.generate(prompt, 12))


# ---------------------------------------------------------------- limits


def test_the_cache_does_not_overflow(cases: Cases) -> None:
    model = cases("llama-default").port()
    cache = model.new_cache(1, 10)
    with torch.no_grad():
        model(random_ids(1, 8), cache=cache)
        with pytest.raises(ValueError, match="11 tokens for a cache of 10"):
            model(random_ids(1, 3), cache=cache)
        assert cache.length == 8, "the refused tokens left no trace"
        model(random_ids(1, 2), cache=cache)
    assert cache.length == 10


def test_a_learned_table_does_not_overflow(cases: Cases) -> None:
    model = cases("gpt2").port()
    with torch.no_grad():
        assert model(random_ids(1, 96)).shape == (1, 96, 211)
        with pytest.raises(ValueError, match="97 tokens for 96 learned positions"):
            model(random_ids(1, 97))
    assert model.generate(random_ids(1, 90), 7).shape == (1, 97), "the last token is not fed again"
    with pytest.raises(ValueError, match="97 tokens for 96 learned positions"):
        model.generate(random_ids(1, 90), 8)


def test_rotary_positions_go_on(cases: Cases) -> None:
    with torch.no_grad():
        assert cases("llama-default").port()(random_ids(1, 97)).shape == (1, 97, 211)


# ---------------------------------------------------------------- loss and training


def test_labels_of_minus_100_are_left_out(cases: Cases) -> None:
    """Only the last label counts: the loss is minus the log-probability of that token."""
    model, ids = cases("llama-default").port(), random_ids(1, 9)
    labels = torch.full_like(ids, -100)
    labels[0, -1] = 17
    with torch.no_grad():
        by_hand = -model(ids)[0, -2].log_softmax(-1)[17]
        assert torch.allclose(model.loss(ids, labels), by_hand, rtol=1e-6)
        labels[0, 0] = 5  # nothing precedes the first token
        assert torch.allclose(model.loss(ids, labels), by_hand, rtol=1e-6)
        labels[0, 1] = 5
        assert not torch.allclose(model.loss(ids, labels), by_hand, rtol=1e-2)


@pytest.mark.parametrize("name", ["gpt2", "llama-default", "qwen3_moe", "gemma2"])
def test_a_fresh_model_learns(cases: Cases, name: str) -> None:
    torch.manual_seed(0)
    model = cases(name).module.Model()
    ids = random_ids(4, 24)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(12):
        loss = model.loss(ids, ids)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert losses[0] == pytest.approx(torch.tensor(211.0).log().item(), rel=0.05), "fresh weights guess evenly"
    assert losses[-1] < losses[0] - 0.5


def test_a_seed_decides_the_fresh_weights(cases: Cases) -> None:
    def fresh(seed: int) -> Tensor:
        torch.manual_seed(seed)
        weight: Tensor = cases("llama-default").module.Model().layers[0].ffn.up.weight.detach()
        return weight

    assert torch.equal(fresh(1), fresh(1))
    assert not torch.equal(fresh(1), fresh(2))


# ---------------------------------------------------------------- loading


@pytest.fixture
def edited(cases: Cases, tmp_path: Path) -> Callable[..., Path]:
    """A copy of a checkpoint, its tensors changed by a function."""

    def copy(name: str, change: Callable[[dict[str, Tensor]], object]) -> Path:
        tensors = load_file(cases(name).folder / "model.safetensors")
        change(tensors)
        save_file({key: tensor.contiguous() for key, tensor in tensors.items()}, tmp_path / "model.safetensors")
        return tmp_path

    return copy


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        (
            "llama-default",
            lambda tensors: tensors.pop("model.layers.1.mlp.up_proj.weight"),
            r"the checkpoint lacks model\.layers\.1\.mlp\.up_proj\.weight$",
        ),
        (
            "qwen3_moe",
            lambda tensors: tensors.pop("model.layers.2.mlp.experts.4.down_proj.weight"),
            r"the checkpoint lacks model\.layers\.2\.mlp\.experts\.4\.down_proj\.weight$",
        ),
        (
            "llama-default",
            lambda tensors: tensors.update({"model.layers.1.mlp.up_proj.bias": torch.zeros(100)}),
            r"model\.layers\.1\.mlp\.up_proj\.bias is stored, but has no place in this model",
        ),
        (
            "llama-default",
            lambda tensors: tensors.update({"model.layers.3.input_layernorm.weight": torch.zeros(72)}),
            r"model\.layers\.3\.input_layernorm\.weight is stored, but has no place in this model",
        ),
        (
            "llama-default",
            lambda tensors: tensors.update({"model.norm.weight": torch.zeros(73)}),
            r"model\.norm\.weight has the shape \[73\], not \[72\]",
        ),
        (
            "llama-default",
            lambda tensors: tensors.update({"lm_head.weight": tensors["lm_head.weight"].T}),
            r"lm_head\.weight has the shape \[72, 211\], not \[211, 72\]",
        ),
        (
            "phi3-partial",
            lambda tensors: tensors.update({"model.layers.0.self_attn.qkv_proj.weight": torch.zeros(181, 108)}),
            r"model\.layers\.0\.self_attn\.qkv_proj\.weight has the shape \[181, 108\], not \[180, 108\]",
        ),
        (
            "gpt2",
            lambda tensors: tensors.update({"transformer.h.0.mlp.c_fc.weight": torch.zeros(104, 60)}),
            r"transformer\.h\.0\.mlp\.c_fc\.weight",
        ),
    ],
)
def test_a_wrong_checkpoint_is_refused_by_name(
    cases: Cases, edited: Callable[..., Path], name: str, change: Callable[[dict[str, Tensor]], object], words: str
) -> None:
    cases(name).module.Model.from_pretrained(edited(name, lambda _: None))
    with pytest.raises(ValueError, match=words):
        cases(name).module.Model.from_pretrained(edited(name, change))


def test_a_folder_without_weights_is_refused(cases: Cases, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"model\.safetensors"):
        cases("llama-default").module.Model.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["llama-default", "gpt2", "qwen3_moe", "phi3-partial"])
def test_shards_load(cases: Cases, tmp_path: Path, name: str) -> None:
    case = cases(name)
    case.hf.save_pretrained(tmp_path, max_shard_size="60KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 2
    ids = random_ids(1, 20)
    with torch.no_grad():
        assert torch.equal(case.module.Model.from_pretrained(tmp_path)(ids), case.port()(ids))

    lost = json.loads((tmp_path / "model.safetensors.index.json").read_text())["weight_map"]
    shards[1].rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError, match=shards[1].name):
        case.module.Model.from_pretrained(tmp_path)

    stored = load_file(shards[0])
    name_of_lost = sorted(stored)[0]
    (tmp_path / "elsewhere").rename(shards[1])
    save_file({key: tensor for key, tensor in stored.items() if key != name_of_lost}, shards[0])
    assert name_of_lost in lost
    with pytest.raises(ValueError, match=f"the checkpoint lacks {name_of_lost}"):
        case.module.Model.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["llama-default", "qwen3_moe", "gemma3_text"])
def test_bfloat16_checkpoints_load(cases: Cases, tmp_path: Path, name: str) -> None:
    case = cases(name)
    tensors = load_file(case.folder / "model.safetensors")
    save_file({key: tensor.bfloat16() for key, tensor in tensors.items()}, tmp_path / "model.safetensors")
    narrow = case.module.Model.from_pretrained(tmp_path, dtype=torch.bfloat16)
    wide = case.module.Model.from_pretrained(tmp_path)
    assert {parameter.dtype for parameter in narrow.parameters()} == {torch.bfloat16}
    for ours, theirs in zip(narrow.parameters(), wide.parameters(), strict=True):
        assert torch.equal(ours.float(), theirs), "reading a narrower type loses nothing"
    ids = narrow.generate(random_ids(2, 9), 5)
    assert ids.shape == (2, 14)
    assert narrow.new_cache(2, 9).keys[0].dtype == torch.bfloat16


def test_names_of_the_bare_model_load(cases: Cases, edited: Callable[..., Path]) -> None:
    """As the published GPT-2 checkpoints are stored, with the buffers of old versions."""

    def bare(tensors: dict[str, Tensor]) -> None:
        for name in list(tensors):
            tensors[name.removeprefix("transformer.")] = tensors.pop(name)
        for layer in range(3):
            tensors[f"h.{layer}.attn.bias"] = torch.ones(1, 1, 96, 96).tril()
            tensors[f"h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)

    case, ids = cases("gpt2"), random_ids(1, 20)
    model = case.module.Model.from_pretrained(edited("gpt2", bare))
    with torch.no_grad():
        assert torch.equal(model(ids), case.port()(ids))


@pytest.mark.parametrize("name", ["gpt2", "llama-biased", "gemma2"])
def test_a_tied_model_may_store_its_head(cases: Cases, edited: Callable[..., Path], name: str) -> None:
    case, ids = cases(name), random_ids(1, 20)
    model = case.module.Model.from_pretrained(
        edited(name, lambda tensors: tensors.update({"lm_head.weight": torch.zeros(211, 72)}))
    )
    with torch.no_grad():
        assert torch.equal(model(ids), case.port()(ids))


def test_old_buffers_are_left_out(cases: Cases, edited: Callable[..., Path]) -> None:
    case = cases("llama-default")
    buffer = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(8)}
    case.module.Model.from_pretrained(edited("llama-default", lambda tensors: tensors.update(buffer)))


@pytest.mark.parametrize("name", LADDER)
def test_a_design_without_a_family_round_trips(tmp_path: Path, name: str) -> None:
    architecture = compile_spec(name, ["vocab_size=211"]).architecture
    module = import_text(generate(architecture), tmp_path)
    torch.manual_seed(0)
    model = module.Model().eval()
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    ids = random_ids(1, 20)
    with torch.no_grad():
        assert torch.equal(module.Model.from_pretrained(tmp_path)(ids), model(ids))
    save_file(model.state_dict() | {"stray": torch.zeros(1)}, tmp_path / "model.safetensors")
    with pytest.raises(ValueError, match="stray is stored, but has no place"):
        module.Model.from_pretrained(tmp_path)


@pytest.mark.parametrize("places", [1, 5, 7])
def test_a_mask_must_speak_of_all_tokens_so_far(cases: Cases, places: int) -> None:
    """One of the new token alone would be taken for all, and be silently wrong."""
    model, ids = cases("llama-default").port(), random_ids(2, 6)
    cache = model.new_cache(2, 10)
    with torch.no_grad():
        model(ids[:, :5], attention_mask=torch.ones(2, 5), cache=cache)
        with pytest.raises(ValueError, match="the attention_mask is not of 6 tokens"):
            model(ids[:, 5:], attention_mask=torch.ones(2, places), cache=cache)
        assert model(ids[:, 5:], attention_mask=torch.ones(2, 6), cache=cache).shape == (2, 1, 211)


# ---------------------------------------------------------------- linear layers


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("outputs", [8, 40, 211])
@pytest.mark.parametrize("shape", [(1, 1), (1, 2), (3, 1), (2, 5), (0, 4), (1,), (4,), ()])
def test_every_route_of_a_linear_layer_is_the_product(
    cases: Cases, shape: tuple[int, ...], outputs: int, bias: bool, dtype: torch.dtype
) -> None:
    """Rows that go through in blocks, through oneDNN, or as torch has it; 211 outputs fall in no blocks."""
    linear = cases("llama-default").module.linear
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn((*shape, 24), generator=random), torch.randn((outputs, 24), generator=random)
    offset = torch.randn(outputs, generator=random) if bias else None
    exact = (weight.double() @ x.double()[..., None])[..., 0] + (0 if offset is None else offset.double())
    given = [None if tensor is None else tensor.to(dtype) for tensor in (x, weight, offset)]
    with torch.no_grad():
        found = linear(*given)
    assert found.dtype == dtype
    torch.testing.assert_close(found.double(), exact, atol=0.2 if dtype == torch.bfloat16 else 1e-5, rtol=0.02)


def test_a_linear_layer_trains_on_a_single_row(cases: Cases) -> None:
    linear = cases("llama-default").module.linear
    weight = torch.ones(8, 3, requires_grad=True)
    linear(torch.tensor([[1.0, 2.0, 3.0]]), weight).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [[1.0, 2.0, 3.0]] * 8


class Quantised(Tensor):
    """Stands for weights that only torch's own dispatch knows how to multiply."""


@pytest.mark.parametrize("rows", [1, 3])
def test_a_linear_layer_leaves_to_torch_what_only_torch_can_do(
    cases: Cases, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mixed precision, weights of other classes, types that do not match, and builds of torch without oneDNN."""
    linear = cases("llama-default").module.linear
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn((rows, 24), generator=random), torch.randn((40, 24), generator=random)
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear(x, weight), torch.nn.functional.linear(x, weight))
    with torch.no_grad():
        found, expected = linear(x, weight.as_subclass(Quantised)), torch.nn.functional.linear(x, weight)
        assert torch.equal(found.as_subclass(Tensor), expected)
        with pytest.raises(RuntimeError, match="same dtype"):
            linear(x, weight.bfloat16())

    def missing(*_: object) -> Tensor:
        raise RuntimeError("MKL-DNN build is disabled")

    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    monkeypatch.setattr(Tensor, "to_mkldnn", missing)
    with torch.no_grad():
        torch.testing.assert_close(linear(x, weight), expected)


# ---------------------------------------------------------------- the file itself


@pytest.mark.parametrize("name", ["gpt2", "llama-dynamic", "llama-longrope", "gemma2", "gemma3_text"])
def test_compiles_as_one_graph(cases: Cases, name: str) -> None:
    """Mixtures do not: which experts run depends on the tokens."""
    model, ids = cases(name).port(), random_ids(2, 20)
    compiled: Any = torch.compile(model, backend="eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(compiled(ids), model(ids))


@pytest.mark.parametrize("name", ["gpt2", "llama-dynamic", "llama-longrope", "mistral-window", "gemma3_text"])
def test_decodes_in_one_graph_however_long_the_sequence(cases: Cases, name: str) -> None:
    """One graph for prompts, one for a token: not another at any length, nor past a window or a scaling's context."""
    # No size of the model is 13: sizes that happen to be equal would be taken for the same.
    case, prompt = cases(name), random_ids(1, 13)
    model, expected = case.port(), case.port().generate(prompt, 60)
    torch.compiler.reset()
    counter = CompileCounter()
    model.hidden = torch.compile(model.hidden, backend=counter, fullgraph=True, dynamic=True)
    with torch.inference_mode():
        assert torch.equal(model.generate(prompt.clone(), 60), expected)
        model.generate(random_ids(1, 17).clone(), 20)
    assert counter.frame_count <= 2


def test_a_length_kept_as_a_constant_would_compile_anew() -> None:
    """What the count above is worth: a function of a constant length is compiled for every one."""
    torch.compiler.reset()
    counter = CompileCounter()
    function = torch.compile(lambda x: x * x.shape[0], backend=counter, fullgraph=True, dynamic=False)
    for length in range(3, 8):
        function(torch.ones(length))
    assert counter.frame_count > 2


def test_the_file_is_a_command(cases: Cases, tmp_path: Path) -> None:
    """Somewhere else, without archc in reach."""
    case = cases("llama-biased")
    shutil.copy(case.module.__file__, tmp_path / "model.py")
    command = [sys.executable, "-I", "model.py", str(case.folder), "1 2 3"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    printed = [int(word) for word in done.stdout.split()]
    assert printed == case.port().generate(torch.tensor([[1, 2, 3]]), 16)[0, 3:].tolist()
    assert len(printed) == 16


def test_the_command_says_how_it_is_used(cases: Cases) -> None:
    command = [sys.executable, str(cases("llama-biased").module.__file__)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python ")


@pytest.mark.parametrize("name", GENERATABLE)
def test_a_module_needs_torch_safetensors_and_the_standard_library(name: str) -> None:
    imported = set()
    for node in ast.walk(ast.parse(generate(compile_spec(name).architecture))):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
    assert {"torch", "safetensors"} <= imported
    assert imported - {"torch", "safetensors"} <= sys.stdlib_module_names
