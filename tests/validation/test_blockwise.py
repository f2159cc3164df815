"""Layers judged alone: none is blamed where nothing is wrong, and the one that is wrong is, with its part."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from archc.validation.blockwise import Blockwise, blockwise
from archc.validation.ports import GeneratedPort
from tests.validation.traced import Opened, open_case, some_tokens

FAMILIES = ["llama", "gpt2", "bloom", "gptj", "gemma2", "cohere", "helium", "gpt_neox_japanese", "mixtral", "gpt_oss"]
FAMILIES += ["deepseek_v2", "deepseek_v3", "afmoe", "ernie4_5_moe", "axk1", "phimoe"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


def judge(case: Opened, seed: int = 1) -> Blockwise:
    found = blockwise(case.reference, case.port, some_tokens(48, seed))
    assert found is not None
    return found


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FAMILIES)
def test_no_layer_of_a_correct_port_is_blamed(name: str, dtype: torch.dtype) -> None:
    found = judge(open_case(name, dtype))
    assert found.passed, found.first
    assert (found.layers, found.unfed) == ((), ())


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=str)
def mixture(request: pytest.FixtureRequest) -> Opened:
    return open_case("qwen3_moe", request.param)


@pytest.fixture(autouse=True)
def _as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Takes the mistake out of a port that several tests share."""
    if "mixture" not in request.fixturenames:
        yield
        return
    port: GeneratedPort = request.getfixturevalue("mixture").port
    before = {name: value.clone() for name, value in port.model.state_dict().items()}
    yield
    port.model.load_state_dict(before)


MISTAKES = [
    ("attention_norm.weight", "mixer.in"),
    ("attention.q.weight", "mixer.q"),
    ("attention.k.weight", "mixer.k"),
    ("attention.v.weight", "mixer.v"),
    ("attention.o.weight", "mixer.out"),
    ("ffn_norm.weight", "ffn.in"),
    ("ffn.router.weight", "router.scores"),
    ("ffn.down", "ffn.out"),
]


@pytest.mark.parametrize(("tensor", "point"), MISTAKES)
def test_a_mistake_in_one_part_of_one_layer_is_named(tensor: str, point: str, mixture: Opened) -> None:
    """One row in three is 5 % too large: in 16 bits, ten times what rounding does to a number."""
    with torch.no_grad():
        weight: Tensor = mixture.port.model.state_dict()[f"layers.1.{tensor}"]
        weight[..., ::3] *= 1.05
    found = judge(mixture)
    assert not found.passed
    assert found.layers == (1,)
    assert found.first is not None
    assert (found.first.layer, found.first.point) == (1, f"layers.1.{point}")


def test_only_the_layers_that_are_wrong_are_blamed() -> None:
    """Attention that sees one key less, in two of the layers."""
    case = open_case("gemma3_text")
    attentions = [layer.attention for layer in case.port.model.layers]
    for number in (1, 4):
        _see_less(attentions[number])
    found = judge(case)
    assert found.layers == (1, 4)
    assert found.first is not None
    assert found.first.point == "layers.1.mixer.out"


def _see_less(attention: nn.Module) -> None:
    """Hides the first of the keys that each query sees, but for the query's own."""

    def hide(_module: nn.Module, args: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(_less(one) if isinstance(one, Tensor) and one.dtype is torch.bool else one for one in args)

    attention.register_forward_pre_hook(hide)


def _less(visible: Tensor) -> Tensor:
    itself = torch.eye(*visible.shape[-2:], dtype=torch.bool)
    return visible & (visible.roll(1, dims=-1) | itself)


def test_around_the_layers() -> None:
    case = open_case("llama")
    with torch.no_grad():
        case.port.model.final_norm.weight[::3] *= 1.01
    found = judge(case)
    assert found.first is not None
    assert (found.layers, found.first.layer, found.first.point) == ((), None, "final_norm")


def test_a_choice_that_is_no_near_tie_is_the_port_s_own() -> None:
    """Experts in another order are chosen wrongly by every token, and no tie excuses it."""
    case = open_case("mixtral")
    with torch.no_grad():
        router = case.port.model.layers[2].ffn.router.weight
        router.copy_(router.flip(0))
    found = judge(case)
    assert found.layers == (2,)
    assert found.first is not None
    assert found.first.point == "layers.2.router.scores"
