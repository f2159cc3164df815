"""Whatever the language can combine is printed, formatted, imported and run, with the tensors it declares."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from archc.codegen import generate
from tests.codegen.combinations import COMBINATIONS, combination
from tests.codegen.support import import_text, random_ids, ruff
from tests.noise import BOUND, measure

NAMES = list(COMBINATIONS)
CUTS = (0, 11, 12, 13, 22, 30)


def ugly(model: Any, seed: int = 0) -> Any:
    """The model with weights that hide nothing: vectors as large as matrices, every expert different."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            deviation = 0.3 if parameter.ndim == 1 else parameter.shape[-1] ** -0.5
            parameter.add_(deviation * torch.randn(parameter.shape, generator=generator))
    return model.eval()


@pytest.fixture(scope="module")
def complaints(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ruff's formatter and linter say about all of the files, each named after its combination."""
    folder = tmp_path_factory.mktemp("combinations")
    for name in NAMES:
        (folder / f"{name}.py").write_text(generate(combination(name)), encoding="utf-8")
    return ruff(folder)


@pytest.mark.parametrize("name", NAMES)
def test_is_formatted_and_clean(complaints: str, name: str) -> None:
    assert f"{name}.py" not in complaints


def test_a_file_that_is_not_formatted_is_named(tmp_path: Path) -> None:
    """The twin that fails: other quotes, and an import that nothing uses."""
    text = generate(combination("tied"))
    (tmp_path / "quotes.py").write_text(text.replace('"__main__"', "'__main__'"), encoding="utf-8")
    (tmp_path / "imports.py").write_text(text.replace("import json\n", "import json\nimport math\n"), encoding="utf-8")
    (tmp_path / "good.py").write_text(text, encoding="utf-8")
    complaints = ruff(tmp_path)
    assert "quotes.py" in complaints
    assert "imports.py" in complaints
    assert "good.py" not in complaints


@pytest.mark.parametrize("name", NAMES)
def test_no_name_is_given_twice(name: str) -> None:
    given = []
    for node in ast.parse(generate(combination(name))).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            given.append(node.name)
        elif isinstance(node, ast.Assign):
            given += [ast.unparse(target) for target in node.targets]
    assert len(given) == len(set(given))


@pytest.mark.parametrize("name", NAMES)
def test_has_the_declared_tensors(tmp_path: Path, name: str) -> None:
    architecture = combination(name)
    module = import_text(generate(architecture), tmp_path)
    with torch.device("meta"):
        model = module.Model()
    declared = {tensor.name: tensor.shape for tensor in architecture.tensors()}
    assert {name: tuple(parameter.shape) for name, parameter in model.state_dict().items()} == declared


@pytest.mark.parametrize("name", NAMES)
def test_pieces_through_the_cache_equal_the_full_pass(tmp_path: Path, name: str) -> None:
    model = ugly(import_text(generate(combination(name)), tmp_path).Model())
    ids = random_ids(2, CUTS[-1])

    def full(model: Any) -> dict[str, torch.Tensor]:
        with torch.no_grad():
            return {"logits": model(ids)}

    cache = model.new_cache(2, CUTS[-1])
    with torch.no_grad():
        pieces = [model(ids[:, a:b], cache=cache) for a, b in pairwise(CUTS)]
    measured = measure(model, full)
    assert measured.results["logits"].std() > 0.1
    assert measured.deviation({"logits": torch.cat(pieces, dim=1)}) < BOUND


@pytest.mark.parametrize("name", NAMES)
def test_every_weight_matters_and_learns(tmp_path: Path, name: str) -> None:
    """No tensor is declared and forgotten: the loss has a gradient for each, and follows it down."""
    architecture = combination(name)
    module = import_text(generate(architecture), tmp_path)
    torch.manual_seed(0)  # a step may send tokens to other experts, and so now and then does not pay
    model = ugly(module.Model()).train()
    ids = random_ids(2, 30, architecture.head.given or architecture.head.vocab_size)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    before = model.loss(ids, ids, z_loss=0.1)
    before.backward()
    learning = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    unused = [name for name, p in learning if p.grad is None or not p.grad.abs().sum() > 0]
    assert unused == []
    optimizer.step()
    assert model.loss(ids, ids, z_loss=0.1) < before


@pytest.mark.parametrize("name", NAMES)
def test_round_trips_under_its_own_names(tmp_path: Path, name: str) -> None:
    module = import_text(generate(combination(name)), tmp_path)
    model = ugly(module.Model())
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    ids = random_ids(1, 20)
    with torch.no_grad():
        assert torch.equal(module.Model.from_pretrained(tmp_path)(ids), model(ids))


@pytest.mark.parametrize("name", ["two-mixtures", "mixtures-and-dense"])
def test_balances_several_mixtures(tmp_path: Path, name: str) -> None:
    """Layer by layer, by hand: experts × Σ share of tokens × mean probability."""
    module = import_text(generate(combination(name)), tmp_path)
    model = ugly(module.Model())
    ids = random_ids(2, 30)
    found: list[torch.Tensor] = []
    for layer in model.layers:
        if hasattr(layer.ffn, "router"):
            layer.ffn.router.register_forward_hook(lambda _module, _inputs, output: found.append(output))
    with torch.no_grad():
        plain = model.loss(ids, ids)
        logits, found[:] = list(found), []
        balanced = model.loss(ids, ids, balance_loss=0.5)
    top_k = {"two-mixtures": (1, 3, 1), "mixtures-and-dense": (2, 2)}[name]
    terms = []
    for scores, chosen in zip(logits, top_k, strict=True):
        probabilities = scores.softmax(-1)
        share = torch.zeros(scores.shape[-1])
        for row in probabilities.topk(chosen).indices.flatten().tolist():
            share[row] += 1 / len(scores)
        terms.append(scores.shape[-1] * float(share @ probabilities.mean(0)))
    assert float(balanced - plain) == pytest.approx(0.5 * sum(terms) / len(terms), rel=1e-4)
