"""What four processes do for `test_parallel.py`, in one group so that torch is imported once in each.

A job is a generated file, given random weights, split over some of the processes and run; the first process writes down
what came out. Data sits on the first dimension of a mesh, the split on the second.
"""

from __future__ import annotations

import importlib.util
import os
import socket
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
from torch.multiprocessing.spawn import spawn

PROCESSES = 4
VOCAB = 211
PROMPT, ROWS = 7, 4


@dataclass(frozen=True)
class Job:
    """A generated file, how many processes split it, and over how many its weights are sharded beside, if over any."""

    name: str
    source: str
    ranks: int
    sharded: bool = False
    rows: str = "own"
    """Which rows of a batch each shard is given: its own, or, by mistake, the `first`."""


def run_jobs(jobs: Sequence[Job], folder: Path) -> None:
    """Runs every job; what it gives is `NAME.safetensors` in the folder, and what went wrong is `NAME.txt`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started: Callable[..., object] = spawn
    started(_work, (list(jobs), folder, port), nprocs=PROCESSES)


def model_of(source: str, path: Path) -> tuple[Any, Any]:
    """The module of a source, and its model with weights that are the same wherever it is made."""
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.Model()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for weight in model.parameters():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.3 + (weight.ndim == 1))
    return module, model


def tokens() -> Tensor:
    """A batch of token ids."""
    return torch.randint(3, VOCAB, (ROWS, 12), generator=torch.Generator().manual_seed(1))


def computed(model: Any) -> dict[str, Tensor]:
    """Logits at once and in pieces through the cache, and the loss with every gradient."""
    ids = tokens()
    with torch.no_grad():
        cache = model.new_cache(ROWS, ids.shape[1])
        pieces = [model(piece, cache=cache) for piece in torch.split(ids, [5, 1, 1, 5], dim=1)]
        found = {"logits": model(ids), "cached": torch.cat(pieces, dim=1)}
    return found | balanced(model, ids) | trained(model, ids)


def balanced(model: Any, ids: Tensor) -> dict[str, Tensor]:
    """The loss of a mixture with its load balanced, which is not a mean over rows, and the gradients of routers."""
    if "routing" not in model.hidden.__annotations__:
        return {}
    loss = model.loss(ids, ids, balance_loss=0.3)
    loss.backward()
    routers = {name: weight.grad for name, weight in model.named_parameters() if "router" in name}
    return {"balanced loss": loss.detach()} | {f"balanced {name}": _whole(grad) for name, grad in routers.items()}


def trained(model: Any, ids: Tensor) -> dict[str, Tensor]:
    """The loss on a batch, every gradient, and every weight after a step of descent."""
    descent = torch.optim.SGD(model.parameters(), lr=0.01)
    descent.zero_grad()
    loss = model.loss(ids, ids, z_loss=0.01)
    loss.backward()
    found = {f"gradient of {name}": _whole(weight.grad) for name, weight in model.named_parameters()}
    descent.step()
    after = {f"{name} after": _whole(weight.detach()) for name, weight in model.named_parameters()}
    return {"loss": loss.detach(), **found, **after}


def continued(model: Any) -> Tensor:
    """A prompt and what the model makes of it."""
    found: Tensor = model.generate(tokens()[:, :PROMPT], 9)
    return found


def _whole(tensor: Any) -> Tensor:
    found: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found.detach().clone().contiguous()


def _work(rank: int, jobs: Sequence[Job], folder: Path, port: int) -> None:
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())  # torch says much of what is slow on a CPU
    dist.init_process_group("gloo", rank=rank, world_size=PROCESSES)
    for job in jobs:
        sizes = (PROCESSES // job.ranks, job.ranks)
        mesh = init_device_mesh("cpu", sizes, mesh_dim_names=("data", "heads"))
        module, model = model_of(job.source, folder / f"{job.name}-{rank}.py".replace(" ", "_"))
        try:
            found = dict(_outcome(job, module, model, mesh))
        except (RuntimeError, ValueError) as error:  # alike in all processes, or the group would hang
            (folder / f"{job.name}.txt").write_text(str(error), encoding="utf-8")
            continue
        if rank == 0:
            save_file({name: tensor.contiguous() for name, tensor in found.items()}, folder / f"{job.name}.safetensors")
    dist.barrier()
    os._exit(0)  # an interpreter that ends waits for no threads of gloo, which abort it now and then


def _outcome(job: Job, module: Any, model: Any, mesh: DeviceMesh) -> Iterator[tuple[str, Tensor]]:
    if job.ranks > 1:
        module.parallelize(model, mesh["heads"])
    names = [name for name, weight in model.named_parameters() if any(p.is_shard() for p in _placements(weight))]
    yield "split", torch.tensor(list("\n".join(names).encode()), dtype=torch.uint8)
    if not job.sharded:
        yield "continued", continued(model)
        yield from computed(model).items()
        return
    for block in model.layers:
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    for method in ("loss", "generate"):
        register_fsdp_forward_method(model, method)
    with torch.no_grad():
        model(tokens())  # gathers the weights once outside of inference mode, where they could not be trained on
    yield "continued", continued(model)
    model.reshard()  # or the optimizer would be given gathered weights
    share = mesh["data"].get_local_rank() if job.rows == "own" else 0
    found = trained(model, tokens().chunk(mesh["data"].size())[share])
    dist.all_reduce(found["loss"])
    yield from (found | {"loss": found["loss"] / PROCESSES}).items()


def _placements(weight: Any) -> Sequence[Any]:
    return getattr(weight, "placements", ())
