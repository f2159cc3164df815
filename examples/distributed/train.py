"""Trains a generated module on many processes: heads, widths and vocabulary split over some, weights sharded over all.

    archc generate tiny -o model.py
    torchrun --nproc-per-node 4 train.py model.py --tensor 2 --steps 20 text.txt

Bytes of the text are the tokens, so that any file will do. The loss that is printed is the mean over all processes.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method


def main() -> None:
    """Train, and print the loss of every step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="what archc generate wrote")
    parser.add_argument("text", type=Path)
    parser.add_argument("--tensor", type=int, default=1, help="processes that split the model among them")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--batch", type=int, default=8, help="rows of all processes together")
    parser.add_argument("--length", type=int, default=64)
    options = parser.parse_args()

    device = "cuda" if torch.cuda.is_available() else "cpu"
    dist.init_process_group("nccl" if device == "cuda" else "gloo")
    data = dist.get_world_size() // options.tensor
    mesh = init_device_mesh(device, (data, options.tensor), mesh_dim_names=("data", "tensor"))

    model = distributed(options.model, mesh)
    # One weight after another: those that are not split lie on a mesh of fewer dimensions.
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False)
    text = torch.frombuffer(bytearray(options.text.read_bytes()), dtype=torch.uint8).long()
    chooser = torch.Generator().manual_seed(1)  # the same batch everywhere, of which each takes its rows
    for step in range(options.steps):
        starts = torch.randint(len(text) - options.length, (options.batch,), generator=chooser)
        ids = torch.stack([text[start : start + options.length] for start in starts])
        ids = ids.chunk(data)[mesh["data"].get_local_rank()].to(device)
        loss = model.loss(ids, ids)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        said = mean(loss)
        if dist.get_rank() == 0:
            print(f"step {step}: loss {said:.6f}", flush=True)
    dist.destroy_process_group()


def distributed(file: Path, mesh: DeviceMesh):
    """A fresh model, split over the second dimension of a mesh, and sharded over the first."""
    spec = importlib.util.spec_from_file_location(file.stem, file)
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)

    torch.manual_seed(0)  # all processes must begin with the same weights
    model = generated.Model()
    if mesh["tensor"].size() > 1:
        generated.parallelize(model, mesh["tensor"])
    for block in model.layers:
        fully_shard(block, mesh=mesh["data"])
    fully_shard(model, mesh=mesh["data"])
    register_fsdp_forward_method(model, "loss")  # the weights are gathered for this call as for model(...)
    return model


def mean(loss: Tensor) -> float:
    """Of all processes."""
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / dist.get_world_size()


if __name__ == "__main__":
    main()
    # Threads of gloo may still let go of tensors: that aborts an interpreter which is about to end.
    os._exit(0)
