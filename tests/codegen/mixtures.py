"""Feed-forwards and mixtures of transformers, and the same of generated modules with their weights."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig

from archc.architecture import Architecture, compile_text
from archc.codegen import generate
from tests.codegen.support import import_text

WIDTH, EXPERTS, TOP_K, FFN, SHARED = 24, 12, 5, 10, 14
HEADER = f"""
archc: 1
name: mixture
vocab_size: 61
hidden_size: {WIDTH}
context: 64
dtype: float32
embedding: {{tied: false}}
norm: {{kind: rmsnorm, eps: 3.0e-3}}
position: {{kind: rope, base: 5300}}
attention: {{heads: 2, head_dim: 12}}
layers: 1
"""
ROUTERS = ("gate.weight", "router.weight", "layer.weight", "router.proj.weight")
"""How names of a router's matrix end in transformers."""
DBRX = {"w1": "gate", "v1": "up", "w2": "down"}
# Other names than these are the same on both sides, but for `_proj`.
OTHERS = {
    "e_score_correction_bias": "correction",
    "router.bias": "router.bias",
    "suv_gate": "gate_factor",
    "suv_up": "up_factor",
    "global_scale": "output_factor",
    "ffn_sub_norm.weight": "inner_norm.weight",
    "router.scale": "router_norm.weight",
    "per_expert_scale": "expert_scale",
}


def compiled(ffn: str, *overrides: str) -> Architecture:
    """The smallest model with that section `ffn`."""
    return compile_text(f"{HEADER}ffn: {ffn}\n", overrides=overrides).architecture


def moe(router: str, more: str = "", top_k: int = TOP_K) -> str:
    """The section `ffn` of a mixture."""
    sizes = f"kind: moe, experts: {EXPERTS}, top_k: {top_k}, width: {FFN}, activation: silu"
    return f"{{{sizes}, router: {{{router}}}{more}}}"


def inputs(seed: int = 3) -> Tensor:
    """Two rows of nine tokens."""
    return torch.randn(2, 9, WIDTH, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def filled(module: nn.Module, correction: float) -> Any:
    """The module with weights that hide nothing: no bias, no correction and no scale has its neutral value."""
    generator = torch.Generator().manual_seed(0)
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if name.endswith(("beta", "eps")):
            continue  # constants of an activation
        scale = 0.3 if tensor.ndim < 2 else 1.4 * WIDTH**-0.5
        centre = 1.0 if name.endswith(("scale", "suv_gate", "suv_up", "norm.weight")) else 0.0
        centre = correction if name.endswith("correction_bias") else centre
        tensor.copy_(centre + scale * torch.randn(tensor.shape, generator=generator))
    return module.eval()


@dataclass(frozen=True)
class Truth:
    """A module of transformers, made of a config; the section that declares it, and faults that must be seen."""

    model_type: str
    build: Callable[[Any, Any], nn.Module]
    config: Mapping[str, Any]
    ffn: str
    faults: tuple[str, ...]
    output: Callable[[Any], Any] = field(default=lambda output: output)
    interleaved: bool = False
    correction: float = 0.0
    """What the numbers of the router's correction lie around."""

    def module(self) -> Any:
        """Transformers' module, with weights that hide nothing."""
        stated = {
            "hidden_size": WIDTH,
            "hidden_act": "silu",
            "num_attention_heads": 2,
            "num_key_value_heads": 2,
            **self.config,
        }
        config = AutoConfig.for_model(self.model_type, **stated)
        config._experts_implementation = "eager"
        package = type(config).__module__.rpartition(".")[0]
        modeling = importlib.import_module(f"{package}.modeling_{package.rpartition('.')[2]}")
        return filled(self.build(modeling, config), self.correction)

    def run(self, hf: nn.Module, x: Tensor) -> Tensor:
        """What transformers' module makes of x."""
        with torch.no_grad():
            found: Tensor = self.output(hf(x))
        return found.reshape(x.shape)

    def port(self, folder: Path, hf: nn.Module, *overrides: str) -> Any:
        """The generated class with the same weights."""
        module = import_text(generate(compiled(self.ffn, *overrides)), folder)
        part = module.Experts() if "kind: moe" in self.ffn else module.FeedForward()
        given, needed = self.weights(hf), part.state_dict()
        if not overrides:
            assert given.keys() == needed.keys()
        part.load_state_dict({name: given.get(name, tensor) for name, tensor in needed.items()})
        return part.eval()

    def weights(self, hf: nn.Module) -> dict[str, Tensor]:
        """The weights of transformers' module under the names of the generated one."""
        found: dict[str, Tensor] = {}
        for name, tensor in hf.state_dict().items():
            last = name.rpartition(".")[2]
            if last in DBRX:
                stacked = tensor.view(EXPERTS, FFN, WIDTH)
                found[DBRX[last]] = stacked.mT if last == "w2" else stacked
            elif tensor.ndim == 3 or last.endswith("proj_bias"):
                found |= self._stacked(name, tensor)
            elif last == "gate_up_proj" or name.endswith("gate_up_proj.weight"):
                found["gate.weight"], found["up.weight"] = tensor.chunk(2)
            else:
                found[_renamed(name)] = tensor.flatten() if "correction" in name else tensor
        return found

    def _stacked(self, name: str, tensor: Tensor) -> dict[str, Tensor]:
        """Matrices of all experts, or their biases: with gate and up on one another, row by row, or down."""
        suffix = "_bias" if name.endswith("bias") else ""
        if "down" in name or "output" in name:
            return {f"down{suffix}": tensor.mT if tensor.ndim == 3 and tensor.shape[1] == FFN else tensor}
        both = tensor.mT if tensor.ndim == 3 and tensor.shape[1] == WIDTH else tensor
        halves = (both[:, ::2], both[:, 1::2]) if self.interleaved else both.chunk(2, dim=1)
        return {f"gate{suffix}": halves[0], f"up{suffix}": halves[1]}


def _renamed(name: str) -> str:
    for stored, ours in OTHERS.items():
        if name.endswith(stored):
            return ours
    if "shared" in name:
        owner, _, rest = name.partition(".")
        return f"shared_gate.{rest}" if owner.endswith("gate") else f"shared.{rest.replace('_proj', '')}"
    if name.endswith(ROUTERS):
        return "router.weight"
    return name.replace("_proj", "").replace("act_fn", "activation")


class Routed(nn.Module):
    """A router and its experts, where transformers has no module that is only these."""

    def __init__(self, router: nn.Module, experts: nn.Module) -> None:
        super().__init__()
        self.router = router
        self.experts = experts

    def forward(self, x: Tensor) -> Any:
        tokens = x.flatten(0, 1)
        _, weights, chosen = self.router(tokens)
        return self.experts(tokens, chosen, weights)
