"""Layers of several kinds: which classes and constants they share, and that each still does what its kind says.

Every layer is held against the only layer of a model of its kind, which has to share nothing.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from archc.architecture import compile_text
from archc.codegen import generate
from archc.codegen.by_kind import chosen
from archc.codegen.sequences import sequence
from tests.codegen.combinations import BASE, MOE, SHARED
from tests.codegen.support import import_text

ROWS, TOKENS = 2, 11
NOPE = "{position: null}"
GROWTH = "{query_scale: {form: steps, strength: 0.4, length: 3}}"
TURNED = ("attention.qk_norm={over: head, order: after_rope, weight: none}",)
ALIKE = {
    "positions": ((), {"roped": "", "bare": NOPE}),
    "positions-normed": (("attention.qk_norm={over: width}",), {"roped": "", "bare": NOPE}),
    "growth": ((), {"still": "", "grown": f"{{position: null, attention: {GROWTH}}}"}),
    "norms-where-turned": (TURNED, {"roped": "", "bare": "{position: null, attention: {qk_norm: null}}"}),
    "rotary-channels": ((), {"all": "", "half": "{position: {partial: 0.5}}"}),
    "heads": ((), {"few": "", "many": "{attention: {heads: 10}}"}),
    "key-value-heads": (("attention.sinks=column",), {"two": "", "three": "{attention: {kv_heads: 3}}"}),
    "channels": (("attention.qk_norm={over: width}",), {"narrow": "", "wide": "{attention: {head_dim: 24}}"}),
    "values": ((), {"narrow": "{attention: {value_dim: 10}}", "wide": "{attention: {head_dim: 24, value_dim: 12}}"}),
    "feed-forwards": ((), {"dense": "", "mixed": f"{{ffn: {MOE}}}"}),
    "widths": ((), {"wide": "", "narrow": "{ffn: {width: 60}}"}),
    "all": ((), {"a": "", "b": f"{{position: null, attention: {{window: 5}}, ffn: {SHARED}}}"}),
}
"""What layers of two kinds may differ in and share the classes of their attention and of their block."""
APART = {
    "softcap": ((), {"capped": "{attention: {softcap: 20}}", "plain": ""}),
    "sinks": ((), {"sunk": "{attention: {sinks: column}}", "plain": ""}),
    "one-head-each": (("attention.sinks=column",), {"shared": "", "own": "{attention: {kv_heads: 6}}"}),
    "biases": ((), {"biased": "{attention: {bias: [o]}}", "plain": ""}),
    "norms-before-turning": (
        ("attention.qk_norm={over: head, weight: none}",),
        {"roped": "", "bare": "{position: null, attention: {qk_norm: null}}"},
    ),
}
"""What they may not differ in."""


def kinds(**fields: str) -> str:
    """A layer of each kind, in order."""
    listed = ", ".join(f"{kind}: {changes or 'null'}" for kind, changes in fields.items())
    return f"layers={{count: {len(fields)}, kinds: {{{listed}}}, pattern: '{', '.join(fields)}'}}"


def made(folder: Path, *overrides: str) -> Any:
    return import_text(generate(compile_text(BASE, overrides=overrides).architecture), folder)


def ugly(model: Any) -> Any:
    """The model with numbers that are all far from neutral."""
    generator = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for parameter in model.parameters():
            scale = 0.6 if parameter.ndim == 1 else 1.5 * parameter.shape[-1] ** -0.5
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def passed(model: Any, ids: Tensor) -> list[tuple[Tensor, Tensor]]:
    """What goes into each layer, and what comes out."""
    found: list[tuple[Tensor, Tensor]] = []
    hooks = [layer.register_forward_hook(lambda _, given, out: found.append((given[0], out))) for layer in model.layers]
    with torch.no_grad():
        model(ids)
    for hook in hooks:
        hook.remove()
    return found


def deviations(folder: Path, model: Any, *common: str, **fields: str) -> list[float]:
    """How far each layer is from the only layer of a model of its kind, given the same numbers."""
    ids, found = torch.arange(ROWS * TOKENS).view(ROWS, TOKENS), []
    for layer, changes, (x, out) in zip(model.layers, fields.values(), passed(model, ids), strict=True):
        alone = made(folder, kinds(alone=changes), *common).Model().eval()
        alone.layers[0].load_state_dict(layer.state_dict())
        with torch.no_grad():
            alone.embedding.weight[: ROWS * TOKENS] = x.flatten(0, 1)
        found.append(float((passed(alone, ids)[0][1] - out).abs().max()))
    return found


def strange(folder: Path, model: Any, *common: str, **fields: str) -> bool:
    """Whether no layer is what these kinds say: it computes otherwise, or its parameters are others."""
    try:
        return min(deviations(folder, model, *common, **fields)) > 1e-3
    except RuntimeError:
        return True


@pytest.mark.parametrize("name", ALIKE)
def test_what_layers_may_differ_in(tmp_path: Path, name: str) -> None:
    common, fields = ALIKE[name]
    model = ugly(made(tmp_path, kinds(**fields), *common).Model())
    assert len({type(layer) for layer in model.layers}) == 1
    assert len({type(layer.attention) for layer in model.layers}) == 1
    assert max(deviations(tmp_path, model, *common, **fields)) < 1e-5

    # The twin: each held against the other kind.
    other = dict(zip(fields, reversed(fields.values()), strict=True))
    assert strange(tmp_path, model, *common, **other)


@pytest.mark.parametrize("name", APART)
def test_what_they_may_not_differ_in(tmp_path: Path, name: str) -> None:
    common, fields = APART[name]
    model = ugly(made(tmp_path, kinds(**fields), *common).Model())
    assert len({type(layer.attention) for layer in model.layers}) == 2
    assert max(deviations(tmp_path, model, *common, **fields)) < 1e-5


def test_blocks_that_compute_otherwise_stand_apart(tmp_path: Path) -> None:
    fields = {
        "pre": "",
        "post": "{norm: {placement: post}}",
        "scaled": "{residual: {branch: 0.5}}",
        "beside": "{norm: {placement: parallel}}",
    }
    model = ugly(made(tmp_path, kinds(**fields)).Model())
    assert len({type(layer) for layer in model.layers}) == 4
    assert max(deviations(tmp_path, model, **fields)) < 1e-5


# ---------------------------------------------------------------- names


def test_constants_that_agree_are_one(tmp_path: Path) -> None:
    module = made(tmp_path, kinds(near="{attention: {window: 5, softcap: 20}}", far="{attention: {softcap: 30}}"))
    assert (module.HEADS, module.HEAD_DIM, module.WINDOW) == (6, 16, 5)
    assert (module.NEAR_ATTENTION_SOFTCAP, module.FAR_ATTENTION_SOFTCAP) == (20, 30)
    assert not hasattr(module, "NEAR_HEADS")
    assert not hasattr(module, "ATTENTION_SOFTCAP")


def test_what_is_made_of_others_agrees_where_they_do(tmp_path: Path) -> None:
    """Q_WIDTH is HEADS * HEAD_DIM of either kind, and two numbers."""
    module = made(tmp_path, kinds(near="{attention: {softcap: 20, heads: 4}}", far="{attention: {softcap: 30}}"))
    assert (module.NEAR_Q_WIDTH, module.FAR_Q_WIDTH, module.KV_WIDTH) == (64, 96, 32)


@pytest.mark.parametrize("prefix", ["kv", "q", "v", "o", "query", "layer", "shared", "expert", "head"])
def test_kinds_whose_names_begin_other_names(tmp_path: Path, prefix: str) -> None:
    """KV_ before HEADS would be KV_HEADS."""
    far = f"{{attention: {{heads: 10, head_dim: 24, window: 4, softcap: 20}}, ffn: {SHARED}}}"
    fields = {prefix: "{attention: {softcap: 30}}", "far": far}
    model = ugly(made(tmp_path, kinds(**fields)).Model())
    assert [layer.attention.q.weight.shape[0] for layer in model.layers] == [96, 240]
    assert max(deviations(tmp_path, model, **fields)) < 1e-5


@pytest.mark.parametrize("name", ["layer", "full", "local"])
def test_inputs_by_kind_are_variables_of_their_own(tmp_path: Path, name: str) -> None:
    """Three kinds, of which two are given the same."""
    far = "{position: {base: 700}, ffn: {activation: relu}}"
    fields = {name: "", "far": far, "wide": "{position: {base: 700}, ffn: {activation: gelu}}"}
    model = ugly(made(tmp_path, kinds(**fields)).Model())
    assert max(deviations(tmp_path, model, **fields)) < 1e-5


# ---------------------------------------------------------------- expressions


def test_choices_by_kind() -> None:
    values = {"sliding_dense": "a", "full_dense": "a", "sliding_moe": "b", "full_moe": "b", "odd": "b"}
    for indent in (0, 60, 70):
        for kind, value in values.items():
            scope = {"a": "a", "b": "b", "kind": kind}
            exec("if True:\n" + " " * max(indent, 1) + chosen(indent, "x", values), scope)
            assert scope["x"] == value
    assert chosen(8, "x", values) == 'x = a if "dense" in kind else b'
    assert chosen(8, "x", {"a": "1", "ab": "2"}) == 'x = 1 if kind == "a" else 2'
    assert chosen(8, "x", {"a": "1", "b": "1"}) == "x = 1"
    three = {"a": "1", "b": "2", "c": "3"}
    for kind, value in three.items():
        found: dict[str, Any] = {"kind": kind}
        exec(chosen(0, "x", three), found)
        assert found["x"] == int(value)


def test_sequences_give_their_values_back() -> None:
    draw = random.Random(0)
    names = ["local", "global", "a_rather_long_name_for_a_kind", "moe"]
    for _ in range(500):
        some = draw.sample(names, draw.choice((2, 3, 4)))
        values = [draw.choice(some) for _ in range(draw.randint(1, 5))] * draw.randint(1, 9)
        values = [*some[: draw.randint(0, 1)], *values, *some[: draw.randint(0, 2)]]
        assert list(eval(sequence("LAYER_KINDS", values))) == values
    listed = ["first", *(["local"] * 3 + ["global"]) * 9, "local"]
    assert sequence("KINDS", listed) == '("first",) + (("local",) * 3 + ("global",)) * 9 + ("local",)'
