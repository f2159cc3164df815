"""What cannot be generated yet is refused by name, and all of it at once."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import archc.codegen.plain
from archc.architecture import Architecture, compile_text
from archc.codegen import UngeneratedError, generate
from archc.families import Family
from tests.codegen.combinations import BASE, layers


def built(*overrides: str) -> Architecture:
    return compile_text(BASE, overrides=overrides).architecture


def said(architecture: Architecture) -> str:
    with pytest.raises(UngeneratedError) as refused:
        generate(architecture)
    assert refused.value.exit_code == 1
    assert "archc explain E210" in refused.value.mend
    head, _, found = refused.value.problem.partition(" because of ")
    assert head == "E210: combination cannot be generated yet,"
    return found


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        (["attention.sinks=projected"], "attention.sinks: projected"),
        (["attention.gate={over: head, factor: 2.0}"], "attention.gate.factor"),
        (["attention.window=5", "attention.chunk=4"], "attention.window with attention.chunk"),
        (["position={kind: alibi}", "attention.softcap=20"], "attention.softcap with position.kind: alibi"),
        (["position={kind: axial, rows: 8, columns: 8, row_width: 24}"], "position.kind: axial"),
        (["embedding.per_layer={width: 8, rows: 211}"], "embedding.per_layer"),
        (["logits.adaptive={frequent: 51, clusters: [60, 100], division: 2}"], "logits.adaptive"),
        (["undeclared=[a router that remembers]"], "undeclared: a router that remembers"),
        (["attention=null"], "attention: null in all layers"),
        (["block=[{attention: {}}, {ffn: {}, shared: one}]"], "block.shared"),
        (["block=[{attention: {}, ffn: {}}]"], "block: attention and ffn in one branch"),
        (["block=[{attention: {}}, {ffn: {}}, {ffn: {}}]"], "block: attention, ffn, ffn_2 in one layer"),
        (["residual.target=replace_input"], "residual.target"),
        (
            ["residual.float32=true", "norm.placement=post_sum"],
            "residual.float32 of a stream that norms replace",
        ),
        (
            ["residual={float32: true, carries: normed}"],
            "residual.float32 of a stream that norms replace",
        ),
        (
            ["block=[{attention: {}, residual: {float32: true}}, {ffn: {}}]"],
            "residual.float32 of some branches alone",
        ),
        (
            ["block=[{attention: {}, residual: {layer_scalar: true}}, {ffn: {}}]"],
            "residual.layer_scalar of a branch that is not the last",
        ),
        (
            [layers("both, one", both="", one="{ffn: null}"), "residual.by_depth=true"],
            "residual.by_depth of layers with unequal numbers of branches",
        ),
    ],
)
def test_it_is_named(overrides: list[str], named: str) -> None:
    assert said(built(*overrides)) == named


def test_everything_is_named_once() -> None:
    kinds = layers(
        "2*plain, other", plain="{block: [{attention: {}, shared: one}]}", other="{attention: {sinks: projected}}"
    )
    adaptive = "logits.adaptive={frequent: 51, clusters: [60, 100], division: 2}"
    assert said(built(kinds, adaptive, "undeclared=[one, two]")).split("; ") == [
        "block.shared",
        "attention.sinks: projected",
        "logits.adaptive",
        "undeclared: one",
        "undeclared: two",
    ]


def test_a_family_whose_checkpoints_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archc.codegen.plain, "family", Family)
    assert said(replace(built(), family="some")) == "family: some, which has no rules for stored tensors"


@pytest.mark.parametrize("block", ["[{attention: {}}, {ffn: {}}]", "[{attention: {heads: 6}}, {ffn: {width: 100}}]"])
def test_a_plain_layer_may_be_written_as_a_block(block: str) -> None:
    """The twin of the refusals: the same branches in other words are the same module."""
    assert generate(built(f"block={block}")) == generate(built())
