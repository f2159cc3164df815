"""Every layout on disk, through the generated loader: checkpoints that the families' own classes save.

Only the loader is generated here, for a bare tree of tensors, so that no family waits for the rest of its module.
What must arrive is told by the lines of the class with which it takes its own tensors apart.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from msgspec.structs import replace as altered
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from archc.architecture import Architecture, compile_text
from archc.checkpoints import manifest
from archc.codegen.constants import Constant
from archc.codegen.loading import LoaderView, loader_view
from archc.codegen.module import environment
from archc.families import Family, Module, Parameter, family
from archc.importing.convert import convert
from tests.codegen.comparisons import as_stored
from tests.codegen.support import import_text
from tests.families.zoo import CASES, cpu_model

BY_NAME = {case.name: case for case in CASES}
STORED = {case.model_type: case.name for case in reversed(CASES) if family(case.model_type).rules}
HEADER = """
import json, re, sys
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

Model = nn.Module
"""
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class Saved:
    """A tiny model as its class runs it, its checkpoint, and the Architecture that its config declares."""

    hf: Any
    folder: Path
    architecture: Architecture

    @property
    def view(self) -> LoaderView:
        """What the loader prints."""
        return loader_view(self.architecture, ())

    @property
    def stored(self) -> dict[str, Tensor]:
        """The checkpoint."""
        return load_file(self.folder / "model.safetensors")

    def store(self, tensors: Tensors) -> None:
        """Another checkpoint in its place."""
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, self.folder / "model.safetensors")

    def load(self, view: LoaderView | None = None) -> Tensors:
        """What the generated loader fills a model with."""
        return load(self.architecture, view or self.view, self.folder)


def save(name: str, folder: Path) -> Saved:
    case = BY_NAME[name]
    hf: Any = cpu_model(case)
    generator = torch.Generator().manual_seed(0)
    for tensor in (*hf.parameters(), *hf.buffers()):
        if tensor.is_floating_point():  # no two numbers alike
            tensor.data.copy_(torch.rand(tensor.shape, generator=generator))
    hf.save_pretrained(folder)
    return Saved(hf, folder, compile_text(convert(case.config_dict(), name).text).architecture)


def bare(architecture: Architecture) -> nn.Module:
    """A model that is nothing but tensors."""
    model = nn.Module()
    for tensor in architecture.tensors():
        *path, last = tensor.name.split(".")
        owner = model
        for step in path:
            if not hasattr(owner, step):
                owner.add_module(step, nn.Module())
            owner = getattr(owner, step)
        empty = torch.full(tensor.shape, torch.nan)
        owner.register_buffer(last, empty) if tensor.buffer else owner.register_parameter(last, nn.Parameter(empty))
    return model


def loader(architecture: Architecture, view: LoaderView, folder: Path) -> ModuleType:
    text = environment().get_template("loader.py.j2").render(loader=view)
    module: ModuleType = import_text(f"{HEADER}\nLAYERS = {len(architecture.layers)}\n{text}", folder)
    return module


def load(architecture: Architecture, view: LoaderView, folder: Path) -> Tensors:
    model = bare(architecture)
    loader(architecture, view, folder).load_checkpoint(model, folder)
    return {name: tensor.detach() for name, tensor in (*model.named_parameters(), *model.named_buffers())}


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("name", STORED.values())
def test_all_that_is_stored_arrives(name: str, tmp_path: Path) -> None:
    """Every number once: laid out again as a checkpoint, it is the checkpoint."""
    saved = save(name, tmp_path)
    again = as_stored(saved.load(), saved.architecture)
    assert all(torch.equal(again[name], tensor) for name, tensor in saved.stored.items() if name in again)
    assert saved.stored.keys() - again.keys() <= {"lm_head.weight"}


# ---------------------------------------------------------------- what shares rows


def per_head(attention: Any, fused: Tensor) -> tuple[Tensor, ...]:
    """models/gpt_neox, models/gpt_neox_japanese: `view(…, 3 * head_size)`, then thirds."""
    return fused.view(len(fused), -1, 3 * attention.head_size).chunk(3, dim=-1)


def per_head_in_threes(attention: Any, fused: Tensor) -> tuple[Tensor, ...]:
    """models/bloom and models/persimmon: `view(…, num_heads, 3, head_dim)`."""
    return fused.view(len(fused), attention.num_heads, 3, attention.head_dim).unbind(2)


def falcon(attention: Any, fused: Tensor) -> tuple[Tensor, ...]:
    """models/falcon, by its own method, which repeats keys and values for every query head."""
    q, k, v = (heads.squeeze(1) for heads in attention._split_heads(fused[:, None]))
    each = attention.num_heads // attention.num_kv_heads if attention.new_decoder_architecture else 1
    return q, k[:, ::each], v[:, ::each]


def gpt_bigcode(attention: Any, fused: Tensor) -> tuple[Tensor, ...]:
    """models/gpt_bigcode: blocks where all heads share a key, else three blocks for each head."""
    if attention.multi_query:
        return torch.split(fused, [attention.embed_dim, attention.kv_dim, attention.kv_dim], dim=-1)
    heads = fused.view(len(fused), attention.num_heads, 3 * attention.head_dim)
    return torch.split(heads, attention.head_dim, dim=-1)


def codegen(attention: Any, fused: Tensor) -> tuple[Tensor, ...]:
    """models/codegen: four shards of queries, values and keys."""
    local_dim = attention.embed_dim // attention.mp_num
    query, value, key = torch.split(fused.view(len(fused), -1, 3 * local_dim), local_dim, dim=-1)
    return query, key, value


@dataclass(frozen=True)
class Shared:
    """Where a class has its fused projection, and how it takes apart what comes out of it [inputs, rows]."""

    attention: str
    linear: str
    split: Callable[[Any, Tensor], tuple[Tensor, ...]]


NEOX = Shared("gpt_neox.layers.1.attention", "query_key_value", per_head)
JAPANESE = Shared("gpt_neox_japanese.layers.1.attention", "query_key_value", per_head)
FALCON = Shared("transformer.h.1.self_attention", "query_key_value", falcon)
BIGCODE = Shared("transformer.h.1.attn", "c_attn", gpt_bigcode)
FUSED = {
    "gpt_neox": NEOX,
    "gpt_neox_japanese": JAPANESE,
    "bloom": replace(FALCON, split=per_head_in_threes),
    "persimmon": Shared("model.layers.1.self_attn", "query_key_value", per_head_in_threes),
    **{case.name: FALCON for case in CASES if case.model_type == "falcon"},
    **{case.name: BIGCODE for case in CASES if case.model_type == "gpt_bigcode"},
    "codegen": Shared("transformer.h.1.attn", "qkv_proj", codegen),
}


def reads(shared: Shared, hf: Any) -> dict[str, Tensor]:
    """What the class uses as queries, keys and values: of each input by itself, and of the bias."""
    attention = hf.get_submodule(shared.attention)
    linear, found = getattr(attention, shared.linear), {}
    for kind, fused in (("weight", linear.weight.T.contiguous()), ("bias", linear.bias)):
        if fused is not None:
            pieces = shared.split(attention, fused if kind == "weight" else fused[None])
            for name, piece in zip("qkv", pieces, strict=True):
                rows = piece.detach().reshape(len(piece), -1).T
                found[f"layers.1.attention.{name}.{kind}"] = rows if kind == "weight" else rows.squeeze(1)
    return found


def agree(loaded: Tensors, wanted: Tensors) -> bool:
    return all(torch.equal(loaded[name], tensor) for name, tensor in wanted.items())


@pytest.mark.parametrize("name", FUSED)
def test_rows_are_shared_as_the_class_shares_them(name: str, tmp_path: Path) -> None:
    saved = save(name, tmp_path)
    wanted = reads(FUSED[name], saved.hf)
    assert agree(saved.load(), wanted)

    # The twins: another order, and other groups.
    assert not agree(saved.load(replace(saved.view, table=turned(saved.view))), wanted)
    if saved.view.groups:  # not where all heads share a key
        in_blocks = dict.fromkeys(saved.view.groups, "1")
        assert not agree(saved.load(replace(saved.view, groups=in_blocks)), wanted)


def turned(view: LoaderView) -> tuple[manifest.TableRow, ...]:
    """The table with every list of parameters the other way round."""
    return tuple(replace(row, fills=row.fills[::-1]) for row in view.table)


# ---------------------------------------------------------------- experts, and heads by themselves


def gpt_oss(layer: Any) -> Iterator[Tensor]:
    """models/gpt_oss: [in, out], and every other column is a gate."""
    experts = layer.mlp.experts
    yield experts.gate_up_proj[..., ::2].mT
    yield experts.gate_up_proj[..., 1::2].mT
    yield experts.down_proj.mT
    yield experts.gate_up_proj_bias[..., ::2]
    yield experts.gate_up_proj_bias[..., 1::2]
    yield experts.down_proj_bias


def columns(layer: Any) -> Iterator[Tensor]:
    """models/aria: [in, out], and the first half of the columns is the gate."""
    experts = layer.mlp.experts
    gate, up = experts.gate_up_proj.chunk(2, dim=-1)
    yield from (gate.mT, up.mT, experts.down_proj.mT)


def rows(layer: Any) -> Iterator[Tensor]:
    """models/granitemoe: [out, in], and the first half of the rows is the gate."""
    experts = layer.block_sparse_moe.experts
    yield from experts.gate_up_proj.chunk(2, dim=1)
    yield experts.down_proj


def dbrx(layer: Any) -> Iterator[Tensor]:
    """models/dbrx: all experts' rows, multiplied from the right on the way in and from the left on the way back."""
    mlp = layer.ffn.experts.mlp
    w1, v1, w2 = (tensor.view(-1, mlp.ffn_hidden_size, mlp.hidden_size) for tensor in (mlp.w1, mlp.v1, mlp.w2))
    yield from (w1, v1, w2.mT)


def single_norms(layer: Any) -> Iterator[Tensor]:
    """models/stablelm: a norm for each head."""
    attention = layer.self_attn
    for norms in (attention.q_layernorm.norms, attention.k_layernorm.norms):
        yield torch.stack([norm.weight for norm in norms])


def correction(layer: Any) -> Iterator[Tensor]:
    """models/deepseek_v3: a buffer."""
    yield layer.mlp.gate.e_score_correction_bias


def correction_row(layer: Any) -> Iterator[Tensor]:
    """models/ernie4_5_moe: `squeeze`d when it is added."""
    yield layer.mlp.gate.moe_statics.e_score_correction_bias.squeeze()


EXPERTS = ("ffn.gate", "ffn.up", "ffn.down")


@dataclass(frozen=True)
class Taken:
    """Where a class has a layer with such tensors, how it takes them, and what the Architecture calls them."""

    layer: str
    take: Callable[[Any], Iterator[Tensor]]
    names: tuple[str, ...]

    def of(self, hf: Any) -> dict[str, Tensor]:
        """What the class uses, by the names of the Architecture."""
        found = [tensor.detach() for tensor in self.take(hf.get_submodule(self.layer))]
        number = self.layer.split(".")[-1]
        return {f"layers.{number}.{name}": tensor for name, tensor in zip(self.names, found, strict=True)}


TAKEN = {
    "gpt_oss": Taken("model.layers.1", gpt_oss, (*EXPERTS, *(f"{name}_bias" for name in EXPERTS))),
    "aria_text": Taken("model.layers.1", columns, EXPERTS),
    "granitemoe": Taken("model.layers.1", rows, EXPERTS),
    "dbrx": Taken("transformer.blocks.1", dbrx, EXPERTS),
    "stablelm-qk_norm": Taken("model.layers.1", single_norms, ("attention.q_norm.weight", "attention.k_norm.weight")),
    "deepseek_v3": Taken("model.layers.2", correction, ("ffn.correction",)),
    "ernie4_5_moe": Taken("model.layers.3", correction_row, ("ffn.correction",)),
}
FAULTS = {
    "gpt_oss": ("groups", "stacked", "transposed"),
    "aria_text": ("transposed",),
    "granitemoe": ("stacked",),
    "dbrx": ("flat", "transposed"),
    "ernie4_5_moe": ("unit_axes",),
}


@pytest.mark.parametrize("name", TAKEN)
def test_experts_are_taken_apart_as_the_class_does(name: str, tmp_path: Path) -> None:
    saved = save(name, tmp_path)
    assert agree(saved.load(), TAKEN[name].of(saved.hf))


@pytest.mark.parametrize("name", ["gpt_oss", "aria_text", "granitemoe"])
def test_gate_and_up_the_other_way_round_are_seen(name: str, tmp_path: Path) -> None:
    saved = save(name, tmp_path)
    assert not agree(saved.load(replace(saved.view, table=turned(saved.view))), TAKEN[name].of(saved.hf))


@pytest.mark.parametrize(("name", "step"), [(name, step) for name, steps in FAULTS.items() for step in steps])
def test_a_layout_that_is_left_out_is_seen(name: str, step: str, tmp_path: Path) -> None:
    """Without one step of it, another shape is wanted, or other numbers arrive."""
    saved = save(name, tmp_path)
    view, before = saved.view, getattr(saved.view, step)
    assert before
    left_out: Any = dict.fromkeys(before, "1") if step == "groups" else ("no.such.tensor",)
    assert not arrive(saved, replace(view, **{step: left_out}), TAKEN[name].of(saved.hf))
    assert arrive(saved, view, TAKEN[name].of(saved.hf))


def arrive(saved: Saved, view: LoaderView, wanted: Tensors) -> bool:
    try:
        return agree(saved.load(view), wanted)
    except ValueError:
        return False


@pytest.mark.parametrize("name", [*FUSED, *TAKEN])
def test_a_wrong_shape_is_an_error_that_names_the_tensor(name: str, tmp_path: Path) -> None:
    saved = save(name, tmp_path)
    stored, view = saved.stored, saved.view
    marked = {*view.groups, *view.stacked, *view.flat, *view.transposed, *view.unit_axes}
    marked |= {row.stored for row in view.table if len(row.fills) > 1}
    for one in [one for one in stored if one.replace(".1.", ".N.") in marked] or [min(stored)]:
        for tensor in (stored[one][:-1], stored[one][..., :-1], stored[one][None], stored[one].flatten()[:-1]):
            saved.store(stored | {one: tensor})
            with pytest.raises(ValueError, match=re.escape(f"{one} has the shape")):
                saved.load()


# ---------------------------------------------------------------- what no class combines


MIXED = """archc: 1
name: mixed
vocab_size: 11
hidden_size: 12
context: 16
dtype: float32
embedding: {tied: false}
norm: {kind: rmsnorm, eps: 1e-6}
position: {kind: rope, base: 10000}
attention: {heads: 6, kv_heads: 2, head_dim: 4}
ffn: {kind: moe, experts: 3, top_k: 2, width: 5, activation: silu, router: {score: softmax, renormalize: true}}
layers: 2
"""
RULES = (
    Module("embed", ("embedding",)),
    Module("norm", ("final_norm",)),
    Module("head", ("head",)),
    Module("blocks.N.norm_1", ("layers.N.attention_norm",)),
    Module("blocks.N.norm_2", ("layers.N.ffn_norm",)),
    Module(
        "blocks.N.qkv",
        ("layers.N.attention.q", "layers.N.attention.k", "layers.N.attention.v"),
        transposed=True,
        groups="kv_heads",
    ),
    Module("blocks.N.o", ("layers.N.attention.o",)),
    Module("blocks.N.router", ("layers.N.ffn.router",)),
    Parameter("blocks.N.experts.E.up_gate", ("layers.N.ffn.up", "layers.N.ffn.gate")),
    Parameter("blocks.N.experts.E.down", ("layers.N.ffn.down",)),
)


def mixed(patch: pytest.MonkeyPatch, **fields: Any) -> tuple[Architecture, Tensors, dict[str, Tensor]]:
    """A design of an invented family, its parameters, and their checkpoint, laid out by hand."""
    invented = Family("mixed", RULES, **fields)
    patch.setattr(manifest, "family", lambda _name: invented)
    architecture = altered(compile_text(MIXED).architecture, family="mixed")
    generator = torch.Generator().manual_seed(0)
    given = {tensor.name: torch.rand(tensor.shape, generator=generator) for tensor in architecture.tensors()}
    stored = {"embed.weight": "embedding.weight", "norm.weight": "final_norm.weight", "head.weight": "head.weight"}
    found = {name: given[parameter] for name, parameter in stored.items()}
    for n in range(2):
        block, attention, ffn = f"blocks.{n}", f"layers.{n}.attention", f"layers.{n}.ffn"
        q, k, v = (given[f"{attention}.{name}.weight"] for name in "qkv")
        groups = [(q[:12], k[:4], v[:4]), (q[12:], k[4:], v[4:])]
        found[f"{block}.qkv.weight"] = torch.cat([piece for group in groups for piece in group]).T
        found[f"{block}.o.weight"] = given[f"{attention}.o.weight"]
        found[f"{block}.router.weight"] = given[f"{ffn}.router.weight"]
        found[f"{block}.norm_1.weight"] = given[f"{attention}_norm.weight"]
        found[f"{block}.norm_2.weight"] = given[f"{ffn}_norm.weight"]
        for e in range(3):
            up_gate = [given[f"{ffn}.{name}"][e] for name in ("up", "gate")]
            found[f"{block}.experts.{e}.up_gate"] = torch.cat(up_gate)
            found[f"{block}.experts.{e}.down"] = given[f"{ffn}.down"][e]
    return architecture, given, found


def test_fused_transposed_grouped_and_single_together(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    architecture, given, stored = mixed(monkeypatch)
    saved = Saved(None, tmp_path, architecture)
    saved.store(stored)
    assert agree(saved.load(), given)
    again = as_stored(given, architecture)
    assert again.keys() == stored.keys()
    assert agree(again, stored)
    for name in ("blocks.1.experts.2.up_gate", "blocks.0.qkv.weight"):
        saved.store(stored | {name: stored[name][1:]})
        with pytest.raises(ValueError, match=re.escape(f"{name} has the shape")):
            saved.load()
        saved.store({one: tensor for one, tensor in stored.items() if one != name})
        with pytest.raises(ValueError, match=re.escape(f"the checkpoint lacks {name}")):
            saved.load()


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("blocks.1.mask", {"ignored": ("blocks.N.mask",)}),
        ("drafts.0.experts.1.weight", {"ignored": ("blocks.N.mask", "drafts.")}),
        ("blocks.2.qkv.weight", {"extra_layers": True}),
        ("blocks.10.experts.1.other", {"extra_layers": True}),
    ],
)
def test_what_may_be_stored_is_left_out(
    name: str, fields: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The twins: a family that says nothing of it, and the same below a layer that the model has."""
    architecture, given, stored = mixed(monkeypatch, **fields)
    saved = Saved(None, tmp_path, architecture)
    saved.store(stored | {name: torch.zeros(1)})
    assert agree(saved.load(), given)
    inside = name.replace("10.", "1.").replace("2.qkv", "1.qkv_").replace("drafts", "draft").replace("mask", "masks")
    saved.store(stored | {inside: torch.zeros(1)})
    with pytest.raises(ValueError, match=re.escape(f"{inside} is stored, but has no place")):
        saved.load()
    architecture, _, _ = mixed(monkeypatch)
    saved.store(stored | {name: torch.zeros(1)})
    with pytest.raises(ValueError, match=re.escape(f"{name} is stored, but has no place")):
        load(architecture, loader_view(architecture, ()), tmp_path)


def test_buffers_under_their_own_names(tmp_path: Path) -> None:
    saved = save("deepseek_v3", tmp_path)
    given = dict(saved.load())
    nameless = replace(saved, architecture=altered(saved.architecture, family=None))
    nameless.store(given)
    assert agree(nameless.load(), given)
    nameless.store({name: tensor for name, tensor in given.items() if "correction" not in name})
    with pytest.raises(ValueError, match=r"lacks layers\.1\.ffn\.correction"):
        nameless.load()


def test_groups_are_counted_by_the_constants_of_the_module() -> None:
    """By name where the number is the same, as in every generated module; else by number."""
    architecture = compile_text(convert(BY_NAME["gpt_neox"].config_dict(), "neox").text).architecture
    heads = str(BY_NAME["gpt_neox"].config["num_attention_heads"])
    for value, printed in ((heads, "KV_HEADS"), ("1", heads)):
        found = loader_view(architecture, [Constant("HEADS", heads), Constant("KV_HEADS", value)]).groups
        assert set(found.values()) == {printed}


def test_loaders_are_formatted(tmp_path: Path) -> None:
    """All of them, and no line is too long."""
    for name in STORED.values():
        case = BY_NAME[name]
        architecture = compile_text(convert(case.config_dict(), name).text).architecture
        text = environment().get_template("loader.py.j2").render(loader=loader_view(architecture, ()))
        (tmp_path / f"{name}.py").write_text(text.lstrip("\n"), encoding="utf-8")
        assert [line for line in text.split("\n") if len(line) > 88] == []
    arguments = [sys.executable, "-m", "ruff", "format", "--diff", "--isolated", "--no-cache", str(tmp_path)]
    assert subprocess.run(arguments, capture_output=True, text=True, check=False).stdout == ""
