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
        (["position={kind: alibi}"], "position.kind: alibi"),
        (["position={kind: sinusoidal}"], "position.kind: sinusoidal"),
        (["position={kind: learned, offset: 2}"], "position.offset"),
        (["embedding.norm=true"], "embedding.norm"),
        (["embedding.width=24"], "embedding.width"),
        (["final_norm=false"], "final_norm: false"),
        (["undeclared=[a router that remembers]"], "undeclared: a router that remembers"),
        (["norm.placement=post_sum"], "norm.placement: post_sum"),
        (["norm.placement=parallel_separate"], "norm.placement: parallel_separate"),
        (["ffn=null"], "ffn: null"),
        (["attention=null"], "attention: null"),
        (["block=[{attention: {}}, {ffn: {}, shared: one}]"], "block.shared"),
        (["block=[{attention: {}, ffn: {}}]"], "block: attention and ffn in one branch"),
        (["block=[{ffn: {}}, {attention: {}}]"], "block: ffn, attention in one layer"),
        (["block=[{attention: {}}, {ffn: {}}, {ffn: {}}]"], "block: attention, ffn, ffn_2 in one layer"),
        (
            ["block=[{attention: {}}, {ffn: {}, norm: {placement: post}}]"],
            "block: branches with norms or residuals of their own",
        ),
        (["block=[{attention: {}, norm: null}, {ffn: {}, norm: null}]"], "norm: null"),
    ],
)
def test_it_is_named(overrides: list[str], named: str) -> None:
    assert said(built(*overrides)) == named


def test_everything_is_named_once() -> None:
    kinds = layers("2*plain, other", plain="{ffn: null}", other="{position: {kind: alibi}}")
    assert said(built(kinds, "embedding.norm=true", "undeclared=[one, two]")).split("; ") == [
        "ffn: null",
        "position.kind: alibi",
        "embedding.norm",
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
