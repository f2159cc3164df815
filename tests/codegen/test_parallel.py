"""`parallelize`: on two and four processes a model computes what it does on one, forwards, backwards and from a cache.

The truth is the same file on one process. Every claim has a twin: the file with one word of its plan changed.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from archc.architecture import compile_text
from archc.codegen import generate
from tests.codegen.parallel_job import VOCAB, Job, computed, continued, model_of, run_jobs, tokens, trained
from tests.noise import BOUND, Measured, measure

pytestmark = pytest.mark.slow

HEADER = f"""
archc: 1
name: split
vocab_size: {VOCAB}
hidden_size: 48
context: 96
dtype: float32
norm: {{kind: rmsnorm, eps: 1.0e-5}}
position: {{kind: rope, base: 10000}}
"""
GATED = "ffn: {kind: gated, activation: silu, width: 64}"
SPECS = {
    "grouped": f"""
embedding: {{tied: false}}
attention: {{heads: 8, kv_heads: 2, head_dim: 8}}
{GATED}
layers: 2
""",
    "tied": """
embedding: {tied: true}
attention: {heads: 8, kv_heads: 1, head_dim: 8, bias: all}
ffn: {kind: mlp, activation: gelu, width: 64, bias: true}
logits: {softcap: 20.0}
layers: 2
""",
    "normed": f"""
embedding: {{tied: true}}
attention: {{heads: 8, kv_heads: 2, head_dim: 8, qk_norm: {{over: head}}, softcap: 3.0}}
{GATED}
layers:
  count: 2
  kinds: {{local: {{attention: {{window: 5}}}}, global: {{}}}}
  pattern: local, global
""",
    "mixture": """
embedding: {tied: false}
attention: {heads: 8, kv_heads: 2, head_dim: 8, sinks: column, bias: all}
ffn:
  {kind: moe, experts: 8, top_k: 2, width: 20, activation: silu, bias: experts,
   router: {score: softmax, renormalize: true}}
layers: 2
""",
    "shared expert": """
embedding: {tied: true}
layers:
  count: 2
  kinds:
    dense: {ffn: {kind: gated, activation: silu, width: 64}}
    sparse:
      ffn: {kind: moe, experts: 4, top_k: 2, width: 20, activation: silu, shared: {width: 24, gate: sigmoid},
            router: {score: sigmoid, renormalize: true}}
  pattern: dense, sparse
attention: {heads: 4, kv_heads: 4, head_dim: 8, gate: {over: element}}
""",
    "uneven": """
embedding: {tied: true}
attention: {heads: 9, kv_heads: 3, head_dim: 8}
ffn: {kind: gated, activation: silu, width: 63}
layers: 2
""",
    "latent": f"""
embedding: {{tied: false}}
attention: {{kind: mla, heads: 4, kv_rank: 16, rope_dim: 8, nope_dim: 8, value_dim: 12}}
{GATED}
layers: 2
""",
}
TENSOR = [(name, ranks) for name in SPECS for ranks in (2, 4)]
SHARDED = [("grouped", 1), ("mixture", 1), ("grouped", 2), ("normed", 2), ("shared expert", 2)]


@dataclass(frozen=True)
class Twin:
    """One word of a plan changed, and what shows it."""

    spec: str
    ranks: int
    right: str
    wrong: str
    shows: str


TWINS = {
    "heads of keys in turn": Twin("grouped", 4, "() * KV_HEADS // mesh.size(), :]", "() % KV_HEADS, :]", "logits"),
    "each its own experts, numbered from the first": Twin(
        "mixture", 2, "expert_NA - mesh.get_local_rank() * here", "expert_NA - 0 * here", "logits"
    ),
    "outputs of experts not added": Twin(
        "mixture", 4, "DTensor.from_local(y_ND, mesh, [Partial()]).full_tensor()", "y_ND", "logits"
    ),
    "gradients of shared heads not added": Twin("grouped", 4, "grad_placements=[Partial()]", "", "gradients"),
    "gradients of the norms of heads not added": Twin(
        "normed", 2, 'plan |= {"attention.q_norm": by_head, "attention.k_norm": by_head}', "pass", "gradients"
    ),
}


def source(name: str) -> str:
    return generate(compile_text(HEADER + SPECS[name]).architecture)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which four processes have left what all jobs gave."""
    folder = tmp_path_factory.mktemp("parallel")
    jobs = [Job(f"{name} {ranks}", source(name), ranks) for name, ranks in TENSOR]
    jobs += [Job(f"{name} {ranks} sharded", source(name), ranks, sharded=True) for name, ranks in SHARDED]
    jobs.append(Job("first rows", source("grouped"), 1, sharded=True, rows="first"))
    for name, twin in TWINS.items():
        text = source(twin.spec)
        assert text.count(twin.right) == 1, name
        jobs.append(Job(name, text.replace(twin.right, twin.wrong), twin.ranks))
    run_jobs(jobs, folder)
    return folder


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, tuple[Measured, Tensor]]:
    """What each model computes on one process, with what arithmetic alone changes, and how it goes on."""
    folder = tmp_path_factory.mktemp("alone")
    found = {}
    for number, name in enumerate(SPECS):
        model = model_of(source(name), folder / f"model_{number}.py")[1]
        found[name] = (measure(model, computed), continued(copy.deepcopy(model)))
    return found


def given(folder: Path, job: str) -> dict[str, Tensor]:
    assert not (folder / f"{job}.txt").exists(), (folder / f"{job}.txt").read_text(encoding="utf-8")
    return load_file(folder / f"{job}.safetensors")


def deviation(found: dict[str, Tensor], alone: Measured, *, of: str = "") -> float:
    """The largest, in floors, of what both hold; of logits or gradients alone if asked for."""
    names = [name for name in alone.results if name in found and name.startswith(of.removesuffix("s"))]
    assert names
    part = Measured({n: alone.results[n] for n in names}, {n: alone.floors[n] for n in names})
    return part.deviation({name: found[name] for name in names})


@pytest.mark.parametrize(("name", "ranks"), TENSOR)
def test_split_computes_the_same(
    outcomes: Path, alone: Mapping[str, tuple[Measured, Tensor]], name: str, ranks: int
) -> None:
    """Logits, those from a cache in pieces, the loss, every gradient and every weight after a step."""
    found = given(outcomes, f"{name} {ranks}")
    assert {*alone[name][0].results, "continued", "split"} == found.keys()
    assert deviation(found, alone[name][0]) < BOUND
    assert torch.equal(found["continued"], alone[name][1])


@pytest.mark.parametrize(("name", "ranks"), SHARDED)
def test_sharded_trains_the_same(
    outcomes: Path, alone: Mapping[str, tuple[Measured, Tensor]], name: str, ranks: int
) -> None:
    """Under FSDP2, each shard with its own rows of the batch, with and without a split."""
    found = given(outcomes, f"{name} {ranks} sharded")
    assert deviation(found, alone[name][0]) < BOUND
    assert torch.equal(found["continued"], alone[name][1])


def test_shards_with_the_same_rows_do_not(outcomes: Path, alone: Mapping[str, tuple[Measured, Tensor]]) -> None:
    assert deviation(given(outcomes, "first rows"), alone["grouped"][0], of="gradients") > BOUND


@pytest.mark.parametrize("name", TWINS)
def test_wrong_plan_is_seen(outcomes: Path, alone: Mapping[str, tuple[Measured, Tensor]], name: str) -> None:
    twin = TWINS[name]
    assert deviation(given(outcomes, name), alone[twin.spec][0], of=twin.shows) > BOUND


# ---------------------------------------------------------------- what is split, and what stays whole


def split(folder: Path, job: str) -> set[str]:
    """The parameters that are split, without the numbers of layers."""
    names = bytes(given(folder, job)["split"].tolist()).decode().split("\n")
    return {name.split(".", 2)[-1] if name.startswith("layers.") else name for name in names}


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        ("grouped 2", {"embedding", "head", "q", "k", "v", "o", "gate", "up", "down"}),
        ("grouped 4", {"embedding", "head", "q", "o", "gate", "up", "down"}),
        ("tied 2", {"embedding", "q", "o", "up", "down"}),
        ("mixture 2", {"embedding", "head", "q", "k", "v", "o", "sinks", "gate", "up", "down"}),
        ("uneven 2", {"embedding"}),
        ("latent 4", {"embedding", "head", "gate", "up", "down"}),
    ],
)
def test_what_is_split(outcomes: Path, job: str, expected: set[str]) -> None:
    found = {
        name.removesuffix(".weight").removesuffix("bias").strip("._").rpartition(".")[2]
        for name in split(outcomes, job)
    }
    assert found == expected


def test_batch_is_what_it_seems() -> None:
    """The shards' rows together are the batch that one process is given."""
    assert torch.equal(torch.cat(tokens().chunk(2)), tokens())
    assert trained.__doc__
