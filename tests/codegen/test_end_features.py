"""Both ends of a generated module and the positions that it adds, against transformers' own pieces.

What the embedding hands to the first layer and what the head makes of the last one are compared with the classes (or
by hand), exactly where nothing but the order of rounding could differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.masking_utils import sdpa_mask
from transformers.models.biogpt.modeling_biogpt import BioGptScaledWordEmbedding
from transformers.models.ctrl.modeling_ctrl import positional_encoding
from transformers.models.gemma.modeling_gemma import GemmaTextScaledWordEmbedding
from transformers.models.modernbert_decoder.modeling_modernbert_decoder import ModernBertDecoderPredictionHead
from transformers.models.opt.modeling_opt import OPTLearnedPositionalEmbedding
from transformers.models.xglm.modeling_xglm import XGLMSinusoidalPositionalEmbedding
from transformers.models.xlm.modeling_xlm import create_sinusoidal_embeddings

from archc.architecture import compile_text
from archc.codegen import generate
from archc.importing.convert import convert
from tests.codegen.combinations import BASE
from tests.codegen.support import import_text, random_ids
from tests.families.ugly import save, uglier
from tests.families.zoo import CASES
from tests.families.zoo_case import Case

WIDTH, CONTEXT = 72, 64
IDS = random_ids(2, 20)
BLOCKS = ("position={kind: sinusoidal, layout: blocks, slowest: exact, offset: 2}",)


def module(tmp_path: Path, *overrides: str) -> Any:
    """The module that archc generates for the common spec with overrides."""
    return import_text(generate(compile_text(BASE, overrides=overrides).architecture), tmp_path)


def seeded(model: Any, seed: int = 0) -> Any:
    """The model with vectors and matrices that hide nothing."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    return model.eval()


def embedded(model: Any, ids: Tensor = IDS, **given: Any) -> Tensor:
    """What the first layer of a model is given."""
    found: list[Tensor] = []
    handle = model.layers[0].register_forward_pre_hook(lambda _module, inputs: found.append(inputs[0]))
    with torch.no_grad():
        model(ids, **given)
    handle.remove()
    return found[0]


def close(ours: Tensor, theirs: Tensor) -> bool:
    """Equal but for the rounding of 32-bit numbers."""
    return torch.allclose(ours.float(), theirs.float(), rtol=1e-5, atol=1e-5)


# ---------------------------------------------------------------- what multiplies embedded tokens


@pytest.mark.parametrize(
    ("rounded", "theirs"), [(True, GemmaTextScaledWordEmbedding), (False, BioGptScaledWordEmbedding)]
)
def test_a_scale_is_rounded_where_the_class_rounds_it(tmp_path: Path, rounded: bool, theirs: Any) -> None:
    """To the bit, in 16 of them; what does otherwise differs."""
    scale = math.sqrt(WIDTH)
    assert float(torch.tensor(scale, dtype=torch.bfloat16)) != scale
    same, other = (
        seeded(
            module(tmp_path, "embedding.scale=sqrt(hidden_size)", f"embedding.scale_rounded={value}").Model()
        ).bfloat16()
        for value in (str(rounded).lower(), str(not rounded).lower())
    )
    reference = theirs(211, WIDTH, padding_idx=None, embed_scale=scale).bfloat16()
    reference.weight = same.embedding.weight
    assert torch.equal(embedded(same), reference(IDS))
    assert not torch.equal(embedded(other), reference(IDS))


# ---------------------------------------------------------------- positions that are added


def xglm(positions: int) -> Tensor:
    """Rows from position 0 on."""
    found: Tensor = XGLMSinusoidalPositionalEmbedding(CONTEXT, WIDTH, padding_idx=1)(torch.arange(positions)[None])[0]
    return found


def ctrl(positions: int) -> Tensor:
    """The same."""
    found: Tensor = positional_encoding(positions, WIDTH, torch.float)
    return found


def xlm(positions: int) -> Tensor:
    """The same, of what xlm stores in its table."""
    return create_sinusoidal_embeddings(positions, WIDTH, torch.zeros(positions, WIDTH))  # type: ignore[no-any-return]


SINUSOIDS: Mapping[str, tuple[Callable[[int], Tensor], str]] = {
    "xglm": (xglm, BLOCKS[0]),
    "ctrl": (ctrl, "position={kind: sinusoidal, layout: blocks}"),
    "xlm": (xlm, "position={kind: sinusoidal}"),
}


@pytest.mark.parametrize("name", SINUSOIDS)
def test_sinusoids_are_those_of_the_class(tmp_path: Path, name: str) -> None:
    rows, position = SINUSOIDS[name]
    model = seeded(module(tmp_path, position).Model())
    added = embedded(model) - model.embedding(IDS)
    assert close(added[0], rows(20))
    for other, (others, _) in SINUSOIDS.items():
        assert other == name or not close(added[0], others(20))


def test_an_empty_row_among_them_is_undeclared() -> None:
    """xglm's table has none for its padding token, which may stand among the positions."""
    stated = dict(_case("xglm").config)
    assert not compile_text(convert(Case("xglm", "xglm", stated).config_dict(), "tiny").text).architecture.undeclared
    rows = XGLMSinusoidalPositionalEmbedding(CONTEXT, WIDTH, padding_idx=5)(torch.arange(6)[None])[0]
    assert [bool(row.any()) for row in rows] == [True, True, True, False, True, True]
    text = convert(Case("xglm", "xglm", {**stated, "pad_token_id": 5}).config_dict(), "tiny").text
    assert compile_text(text).architecture.undeclared == ("position 3 adds nothing to the embedding",)
    last = convert(Case("xglm", "xglm", {**stated, "pad_token_id": -1}).config_dict(), "tiny").text
    assert f"position {stated['max_position_embeddings'] - 1} adds nothing" in last


def test_sinusoids_are_not_stored(tmp_path: Path) -> None:
    assert not [name for name in module(tmp_path, *BLOCKS).Model().state_dict() if "position" in name]


def test_learned_rows_begin_at_the_offset(tmp_path: Path) -> None:
    model = seeded(module(tmp_path, "position={kind: learned, offset: 2}").Model())
    reference = OPTLearnedPositionalEmbedding(CONTEXT, WIDTH)
    reference.weight = model.position_embedding.weight
    added = embedded(model) - model.embedding(IDS)
    assert close(added, reference(torch.ones_like(IDS)))
    assert not close(added[0], model.position_embedding.weight[:20])


@pytest.mark.parametrize("left", [True, False], ids=["left", "right"])
def test_padding_has_no_part_in_counting(tmp_path: Path, left: bool) -> None:
    """As OPT counts, from the mask alone; `position_ids` stay numbers from 0 on."""
    model = seeded(module(tmp_path, "position={kind: learned, offset: 2}").Model())
    mask = torch.ones_like(IDS)
    mask[0, slice(0, 7) if left else slice(13, None)] = 0
    reference = OPTLearnedPositionalEmbedding(CONTEXT, WIDTH)
    reference.weight = model.position_embedding.weight
    keep = mask.bool()
    ours = embedded(model, attention_mask=mask) - model.embedding(IDS)
    assert close(ours[keep], reference(mask)[keep])
    positions = (mask.cumsum(-1) - 1).clamp(min=0)
    assert torch.equal(embedded(model, position_ids=positions)[keep], embedded(model, attention_mask=mask)[keep])
    assert close(ours[keep], (embedded(model) - model.embedding(IDS))[keep]) is not left


def test_the_cache_goes_on_counting(tmp_path: Path) -> None:
    for position in (*BLOCKS, "position={kind: learned, offset: 2}"):
        model = seeded(module(tmp_path, position).Model())
        whole, cache = embedded(model), model.new_cache(2, 20)
        pieces = [embedded(model, IDS[:, a:b], cache=cache) for a, b in ((0, 9), (9, 10), (10, 20))]
        assert close(torch.cat(pieces, 1), whole)


def test_a_model_without_positions_asks_for_none(tmp_path: Path) -> None:
    source = generate(compile_text(BASE, overrides=["position=null"]).architecture)
    assert "position_ids = " not in source
    assert "position_ids = " in generate(compile_text(BASE).architecture)
    model = seeded(import_text(source, tmp_path).Model())
    with torch.no_grad():
        assert torch.equal(model(IDS), model(IDS, torch.arange(20).flip(0)[None].expand_as(IDS)))


# ---------------------------------------------------------------- what else stands before the first layer


def test_the_order_before_the_first_layer(tmp_path: Path) -> None:
    """Table, matrix, scale, position, segment, norm, shift, factor; by hand."""
    embedding = "embedding={tied: false, width: 20, scale: 3.7, norm: true, segments: 4, affine: true}"
    norm = "norm={kind: layernorm, eps: 3.0e-3, bias: true}"
    model = seeded(module(tmp_path, embedding, norm, "position={kind: learned, offset: 2}").Model())
    segments = random_ids(2, 20, 4) % 4
    rows = model.embedding.weight[IDS] @ model.embedding_projection.weight.T * 3.7
    rows = rows + model.position_embedding.weight[2:22]
    weights = model.embedding_norm.weight, model.embedding_norm.bias, 3e-3

    def finished(x: Tensor) -> Tensor:
        normed = nn.functional.layer_norm(x, (WIDTH,), *weights)
        found: Tensor = (normed + model.embedding_shift) * model.embedding_factor
        return found

    assert close(embedded(model, segment_ids=segments), finished(rows + model.segment_embedding.weight[segments]))
    assert close(embedded(model), finished(rows))
    assert not close(embedded(model, segment_ids=segments), embedded(model))


def test_segments_learn_where_they_are_given(tmp_path: Path) -> None:
    model = seeded(module(tmp_path, "embedding.segments=4").Model())
    model(IDS, segment_ids=IDS % 4).square().mean().backward()
    assert model.segment_embedding.weight.grad.abs().sum() > 0
    model.zero_grad()
    model(IDS).square().mean().backward()
    assert model.segment_embedding.weight.grad is None


# ---------------------------------------------------------------- the head

X = torch.randn(2, 5, WIDTH, generator=torch.Generator().manual_seed(3))


def scored(tmp_path: Path, *overrides: str) -> tuple[Any, Tensor]:
    """A model, and its logits for X."""
    model = seeded(module(tmp_path, *overrides).Model())
    with torch.no_grad():
        return model, getattr(model, "logits", model.head)(X)


@pytest.mark.parametrize(("activation", "theirs"), [("gelu", "gelu"), ("gelu_tanh", "gelu_new"), ("silu", "silu")])
def test_the_layer_before_the_head(tmp_path: Path, activation: str, theirs: str) -> None:
    norm = "norm={kind: layernorm, eps: 3.0e-3, bias: true}"
    model, logits = scored(
        tmp_path, norm, f"logits={{transform: {{activation: {activation}, bias: true}}, bias: true}}"
    )

    class Config:
        hidden_size, classifier_bias, classifier_activation, norm_eps, norm_bias = WIDTH, True, theirs, 3e-3, True

    reference = ModernBertDecoderPredictionHead(Config())
    reference.dense, reference.norm = model.head_transform, model.head_transform_norm
    with torch.no_grad():
        assert close(logits, model.head(reference(X)))
        reference.act = nn.ReLU()
        assert not close(logits, model.head(reference(X)))


@pytest.mark.parametrize("tied", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("width", [20, None], ids=["narrow", "wide"])
def test_a_head_may_score_fewer_tokens(tmp_path: Path, tied: bool, width: int | None) -> None:
    """The first ones: the logits are those of a head for all, cut off."""
    ends = (
        f"embedding={{tied: {str(tied).lower()}, width: {width or 'null'}}}",
        "logits={bias: true, vocab_size: 190}",
    )
    model, logits = scored(tmp_path, *ends)
    assert logits.shape == (2, 5, 190)
    rows = (model.embedding if tied else model.head).weight
    bias = model.head["bias"] if tied else model.head.bias
    stream = X @ model.head_projection.weight.T if width else X
    by_hand = (stream @ rows.T)[..., :190] + bias
    assert close(logits, by_hand)
    assert not close(logits, (stream @ rows.flip(0).T)[..., :190] + bias)
    assert model.generate(IDS, 3).shape == (2, 23)


def test_scale_cap_and_cut_follow_each_other(tmp_path: Path) -> None:
    model, logits = scored(tmp_path, "logits={bias: true, scale: 0.3, softcap: 2, given: 150, learned_scale: 40}")
    product = (X @ model.head.weight.T + model.head.bias) * (40 * model.head_scale)
    assert close(logits, (2 * torch.tanh(0.3 * product / 2))[..., :150])
    assert not close(logits, (0.3 * 2 * torch.tanh(product / 2))[..., :150])


@pytest.mark.parametrize("width", [20, None], ids=["narrow", "wide"])
def test_the_input_of_the_head_may_be_scaled(tmp_path: Path, width: int | None) -> None:
    """Then no bias is."""
    embedding = f"embedding={{tied: false, width: {width or 'null'}}}"
    model, logits = scored(tmp_path, embedding, "logits={bias: true, scale: 0.3, scaled: input}")
    stream = X @ model.head_projection.weight.T if width else X
    product = stream @ model.head.weight.T
    assert close(logits, 0.3 * product + model.head.bias)
    assert not close(logits, 0.3 * (product + model.head.bias))


def test_a_learned_scale_begins_at_one(tmp_path: Path) -> None:
    model = module(tmp_path, "logits.learned_scale=40").Model()
    assert close(40 * model.head_scale, torch.ones(211))


@pytest.mark.parametrize(("float32", "dtype"), [(True, torch.float32), (False, torch.bfloat16)])
def test_logits_may_be_32_bit_numbers_before_they_are_capped(tmp_path: Path, float32: bool, dtype: torch.dtype) -> None:
    model, _ = scored(tmp_path, f"logits={{softcap: 2, float32: {str(float32).lower()}}}")
    narrow = model.bfloat16()
    with torch.no_grad():
        logits = narrow.logits(X.bfloat16())
        product = narrow.head(X.bfloat16())
    assert logits.dtype == dtype
    assert torch.equal(logits, torch.tanh(product.to(dtype) / 2) * 2)
    assert torch.equal(logits.float(), torch.tanh(product.float() / 2) * 2) is float32


def test_an_idle_bias_is_stored_and_unused(tmp_path: Path) -> None:
    model, logits = scored(tmp_path, "logits={bias: true, idle_bias: true}")
    assert model.head_idle_bias.shape == (211,)
    with torch.no_grad():
        model.head_idle_bias += 1
        assert torch.equal(model.head(X), logits)
        model.head.bias += 1
        assert not torch.equal(model.head(X), logits)


def _case(name: str) -> Case:
    return next(case for case in CASES if case.name == name)


# ---------------------------------------------------------------- to the last bit of 16

EXACT: Mapping[str, str | None] = {
    "biogpt": "embedding.scale_rounded=true",
    "ctrl": "embedding.scale_rounded=true",
    "gemma": "embedding.scale_rounded=false",
    "granite": None,  # its scale in the zoo has few digits
    "minicpm3": "logits.scaled=logits",
    "modernbert-decoder-bias": "position.float32=angles",
    "cohere": "position.float32=angles",
    "cohere2": None,
    "ernie4_5": "position.float32=turning",
    "nanochat": "position.direction=forward",
    "apertus1p5_text-output_vocabulary": None,
    "hunyuan_v1_dense-alpha": "position.scaling.alpha=6.9",
}
"""Cases of the zoo, and what changes some bit of theirs."""


def same_kernel(
    module: nn.Module, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **given: Any
) -> tuple[Tensor, None]:
    """transformers' call of attention, by the kernel that generated modules call, which is always given a mask."""
    del module
    if attention_mask is None:
        attention_mask = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool).tril()[None, None]
    mask, scale = attention_mask, given["scaling"]
    y = nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=True)
    return y.transpose(1, 2), None


AttentionInterface.register("same_kernel", same_kernel)
AttentionMaskInterface.register("same_kernel", sdpa_mask)


@pytest.mark.parametrize("name", EXACT)
def test_agrees_in_bfloat16_to_the_bit(tmp_path: Path, name: str) -> None:
    """Beside transformers' class with the same attention kernel: every number is rounded where it rounds it.

    So all logits are equal, or (where sums within a norm are taken in another order) most of them.
    """
    case = uglier(_case(name))
    model = save(case, tmp_path)
    text = convert(case.config_dict(), "tiny").text
    options = {"dtype": torch.bfloat16, "attn_implementation": "same_kernel"}
    reference = type(model).from_pretrained(tmp_path, **options).eval()

    def logits(*overrides: str) -> Tensor:
        source = generate(compile_text(text, overrides=overrides).architecture)
        port = import_text(source, tmp_path).Model.from_pretrained(tmp_path, dtype=torch.bfloat16)
        with torch.no_grad():
            return port(IDS)  # type: ignore[no-any-return]

    with torch.no_grad():
        wanted = reference(IDS, use_cache=False).logits
    assert (logits() == wanted).float().mean() > 0.8
    if (fault := EXACT[name]) is not None:
        assert (logits(fault) == wanted).float().mean() < 0.7
