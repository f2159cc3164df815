"""Manifests against what Hugging Face's own classes really save."""

from __future__ import annotations

from pathlib import Path

import pytest
from transformers.utils import logging

from archc.architecture import compile_text
from archc.checkpoints.headers import StoredTensor, read_checkpoint
from archc.checkpoints.manifest import UnstorableError, build_manifest, pattern_of, stored_entries
from archc.validation.static import compare_manifest
from tests.tiny import BY_NAME, TINY

MIXED = """archc: 1
name: mixed
vocab_size: 99
hidden_size: 48
context: 64
dtype: float32
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1e-6}
position: {kind: rope, base: 10000}
attention: {heads: 6, kv_heads: 2}
ffn: {kind: gated, activation: silu, width: 80}
layers:
  count: 2
  kinds:
    dense: null
    moe: {ffn: {kind: moe, experts: 5, top_k: 2, width: 16, router: {score: softmax, renormalize: true}}}
  pattern: dense, moe
"""


@pytest.mark.parametrize("name", [tiny.name for tiny in TINY])
def test_every_name_and_shape_is_what_transformers_saves(name: str, tmp_path: Path) -> None:
    logging.disable_progress_bar()
    BY_NAME[name].save(tmp_path)
    architecture = compile_text(BY_NAME[name].text()).architecture
    entries = {entry.name: entry for entry in stored_entries(architecture, build_manifest(architecture))}
    stored = {name: tensor.shape for name, tensor in read_checkpoint(tmp_path).items()}
    assert {name: entry.shape for name, entry in entries.items()} == stored


def test_a_design_without_a_family_has_its_own_names_and_stacked_experts() -> None:
    architecture = compile_text(MIXED).architecture
    entries = {entry.name: entry for entry in stored_entries(architecture, build_manifest(architecture))}
    assert {tensor.name: tensor.shape for tensor in architecture.tensors()} == {
        name: entry.shape for name, entry in entries.items()
    }
    assert entries["layers.0.ffn.down.weight"].shape == (48, 80)
    assert entries["layers.1.ffn.down"].shape == (5, 48, 16)


def test_a_family_without_a_name_for_a_tensor_refuses_the_design() -> None:
    with pytest.raises(UnstorableError, match=r"llama stores no layers\.N\.ffn\.down\b"):
        build_manifest(compile_text(MIXED + "family: llama\n").architecture)


KINDS = "layers={{count: 2, kinds: {{one: null, other: {other}}}, pattern: 'one, other'}}"


@pytest.mark.parametrize(
    ("family", "fields", "fault", "refusal"),
    [
        # Queries, keys and values stand together head by head, as many heads in every layer.
        (
            "gpt_neox",
            ("ffn.kind=mlp",),
            KINDS.format(other="{attention: {kv_heads: 3}}"),
            r"gpt_neox stores as many kv_heads in every layer, and not \[2, 3\]",
        ),
        # Four groups cannot share 3 × 6 rows of queries.
        (
            "codegen",
            ("ffn.kind=mlp", "norm.kind=layernorm", "norm.placement=parallel"),
            "attention={heads: 3, kv_heads: 3, head_dim: 6}",
            r"codegen stores layers\.N\.attention\.q\.weight and others by turns, in 4 equal groups",
        ),
        # Gate and up share a tensor, and what stands alone has no place in it.
        ("phi3", (), KINDS.format(other="{ffn: {kind: mlp}}"), r"phi3 stores no layers\.N\.ffn\.up\.weight"),
    ],
)
def test_what_shares_a_tensor_shares_it_in_every_layer(
    family: str, fields: tuple[str, ...], fault: str, refusal: str
) -> None:
    text = MIXED[: MIXED.index("layers:")] + f"layers: 2\nfamily: {family}\n"
    assert build_manifest(compile_text(text, overrides=fields).architecture).table
    with pytest.raises(UnstorableError, match=refusal):
        build_manifest(compile_text(text, overrides=(*fields, fault)).architecture)


@pytest.mark.parametrize(
    ("family", "extra", "unread"),
    [
        ("qwen2", "model.layers.1.self_attn.rotary_emb.inv_freq", True),
        ("qwen2", "model.layers.1.self_attn.rotary_emb.cos", False),
        ("qwen2", "model.layers.2.self_attn.o_proj.weight", False),
        ("glm4_moe", "model.layers.2.self_attn.o_proj.weight", True),
        ("glm4_moe", "model.layers.61.mlp.experts.7.up_proj.weight", True),
        ("glm4_moe", "model.layers.1.mlp.experts.7.up_proj.weight", False),
        ("glm4_moe", "model.layers.x.self_attn.o_proj.weight", False),
        ("ernie4_5_moe", "model.mtp_block.0.mlp.up_proj.weight", True),
        ("ernie4_5_moe", "model.mtp_blocks.0.mlp.up_proj.weight", False),
    ],
)
def test_what_may_be_stored_beside_the_model(family: str, extra: str, unread: bool) -> None:
    text = MIXED if family != "qwen2" else MIXED[: MIXED.index("layers:")] + "layers: 2\n"
    architecture = compile_text(f"{text}family: {family}\n").architecture
    entries = stored_entries(architecture, build_manifest(architecture))
    stored = {entry.name: StoredTensor(entry.name, "F32", entry.shape, Path()) for entry in entries}
    assert compare_manifest(architecture, stored).passed
    found = compare_manifest(architecture, stored | {extra: StoredTensor(extra, "F32", (1,), Path())})
    assert (found.unread, found.unexpected) == (((extra,), ()) if unread else ((), (extra,)))


def test_the_manifest_does_not_grow_with_the_model() -> None:
    """A hostile spec of a few lines asks for 10,000 layers of 2^40 experts: that costs nothing."""
    huge = MIXED.replace("count: 2", "count: 10000").replace("dense, moe", "5000*(dense, moe)")
    huge = huge.replace("experts: 5", f"experts: {2**40}") + "family: qwen3_moe\n"
    architecture = compile_text(huge).architecture
    assert len(build_manifest(architecture).table) < 40
    result = compare_manifest(architecture, {})
    assert not result.passed
    assert len(result.missing) == 1000


def test_patterns() -> None:
    assert pattern_of("layers.3.ffn.gate") == "layers.N.ffn.gate"
    assert pattern_of("a.0.b.17.c.weight") == "a.N.b.E.c.weight"
    assert pattern_of("transformer.blocks.3.ffn.experts.mlp.w1") == "transformer.blocks.N.ffn.experts.mlp.w1"
    assert pattern_of("layers.1.q_layernorm.norms.12.weight") == "layers.N.q_layernorm.norms.E.weight"
    assert pattern_of("norm1.weight") == "norm1.weight"
