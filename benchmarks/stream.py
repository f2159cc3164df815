"""Validation in flat memory, measured: peak memory and seconds against depth, streamed and whole.

    python -m benchmarks.stream [--llama 2 4 8] [--small 6 12 24] [--whole 6 12 24] [--longest 64] [--curve SVG]

Checkpoints have true shapes and random weights: layers of Llama-3.1-8B between ends with its vocabulary, in bf16, and
of SmolLM2-135M, in fp32. They are written a layer at a time, and deleted behind each run. Every run is a process of its
own, with one thread, and seconds are those of the processor, so that others on the machine do not count. Costs are
fitted at the first two depths, checked at the others, and carried on to the depths of Llama-3.1-8B and 405B.
`--longest` leaves out probes of more tokens. Prints Markdown tables; `--curve` draws peak memory of the small model
against depth.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

GIB = 2**30
LLAMA: Mapping[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
    "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 131072,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": False, "hidden_act": "silu", "dtype": "bfloat16",
    "rope_parameters": {
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
}  # fmt: skip
SMALL: Mapping[str, Any] = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 576, "intermediate_size": 1536,
    "num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152, "max_position_embeddings": 8192,
    "rms_norm_eps": 1e-5, "tie_word_embeddings": True, "hidden_act": "silu", "dtype": "float32",
    "rope_parameters": {"rope_type": "default", "rope_theta": 100000.0},
}  # fmt: skip
# Of Llama-3.1-405B: width, feed-forward, heads, key/value heads, layers.
LARGEST = (16384, 53248, 128, 8, 126)


@dataclass(frozen=True)
class Run:
    """What one process took. Bytes and seconds; `resident` are those of weights alone, `read` those of files."""

    depth: int
    streamed: bool
    peak: int
    seconds: float
    layer: float
    resident: int
    checkpoint: int
    read: int
    most_reads: int
    passed: bool


def main() -> None:
    """Runs what is asked for, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llama", type=int, nargs="*", default=[2, 4, 8], metavar="LAYERS")
    parser.add_argument("--small", type=int, nargs="*", default=[6, 12, 24], metavar="LAYERS")
    parser.add_argument("--whole", type=int, nargs="*", default=[6, 12, 24], metavar="LAYERS", help="of the small one")
    parser.add_argument("--longest", type=int, default=2048, metavar="TOKENS")
    parser.add_argument("--curve", type=Path, metavar="SVG")
    parser.add_argument("--one", nargs=2, metavar=("FOLDER", "HOW"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(one_run(Path(given.one[0]), given.longest, streamed=given.one[1] == "streamed")))
        return
    llama = [measured(LLAMA, depth, given.longest, streamed=True) for depth in given.llama]
    small = [measured(SMALL, depth, given.longest, streamed=True) for depth in given.small]
    whole = [measured(SMALL, depth, given.longest, streamed=False) for depth in given.whole]
    print_table("Layers of Llama-3.1-8B, streamed", llama)
    print_table("Layers of SmolLM2-135M, streamed", small)
    print_table("Layers of SmolLM2-135M, whole models", whole)
    for runs, real in ((small, False), (llama, True)):
        if len(runs) > 1:
            cost = print_model(runs)
            if real:
                print_beyond(*cost)
    if given.curve:
        given.curve.write_text(curve(small, whole), encoding="utf-8")


def measured(config: Mapping[str, Any], depth: int, longest: int, *, streamed: bool) -> Run:
    """One run in a process of its own, on a checkpoint that is made for it."""
    how = "streamed" if streamed else "whole"
    with checkpoint(config, depth) as folder:
        command = [sys.executable, __file__, "--longest", str(longest), "--one", str(folder), how]
        alone = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=alone)
    run = Run(depth=depth, streamed=streamed, **json.loads(done.stdout.splitlines()[-1]))
    print(f"{config['hidden_size']} wide, {depth} layers, {how}: {run}", file=sys.stderr, flush=True)
    return run


def one_run(folder: Path, longest: int, *, streamed: bool) -> dict[str, Any]:
    """The gate on a checkpoint, without mistakes: streamed or whole."""
    from archc.architecture import compile_text
    from archc.importing.convert import import_spec
    from archc.validation import gate
    from archc.validation.probes import Blind, Probe, derive_probes
    from archc.validation.streaming import walk

    def shorter(*args: Any, **more: Any) -> tuple[list[Probe], list[Blind]]:
        probes, blind = derive_probes(*args, **more)
        return [probe for probe in probes if probe.input_ids.shape[1] <= longest], blind

    seconds: list[tuple[str, float]] = []
    compiled = compile_text(import_spec(folder).text, folder.name)
    with mock.patch.object(gate, "derive_probes", shorter), mock.patch.object(walk, "derive_probes", shorter):
        result = gate.run_gate(
            compiled,
            folder,
            lambda name: seconds.append((name, time.process_time())),
            level=gate.Level(streaming=walk.Streaming(asked=streamed)),
        )
    found = result.stream
    ends = [*(at for _, at in seconds[1:]), time.process_time()]
    per_layer = [end - at for (name, at), end in zip(seconds, ends, strict=True) if name.startswith("layer ")]
    return {
        "peak": result.peak_memory_bytes,
        "seconds": time.process_time(),
        "layer": sum(per_layer) / len(per_layer) if per_layer else 0.0,
        "resident": found.peak_resident_bytes if found else 0,
        "checkpoint": sum(file.stat().st_size for file in folder.glob("*.safetensors")),
        "read": found.bytes_read if found else 0,
        "most_reads": found.most_reads if found else 0,
        "passed": result.passed,
    }


@contextmanager
def checkpoint(config: Mapping[str, Any], depth: int) -> Iterator[Path]:
    """A folder with random weights of true shapes, a file for each layer; gone afterwards."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(depth)
    dtype = getattr(torch, config["dtype"])

    def drawn(*shape: int) -> torch.Tensor:
        return torch.empty(shape, dtype=dtype).normal_(0, 0.02, generator=generator)

    placed: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="archc-stream-") as name:
        folder = Path(name)

        def put(file: str, tensors: dict[str, torch.Tensor]) -> None:
            save_file(tensors, folder / file, {"format": "pt"})
            placed.update(dict.fromkeys(tensors, file))

        width, vocabulary = config["hidden_size"], config["vocab_size"]
        ends = {"model.embed_tokens.weight": drawn(vocabulary, width), "model.norm.weight": 1 + drawn(width)}
        put("ends.safetensors", ends)
        del ends
        if not config["tie_word_embeddings"]:
            put("head.safetensors", {"lm_head.weight": drawn(vocabulary, width)})
        for number in range(depth):
            shapes = layer_shapes(config)
            tensors = {f"model.layers.{number}.{key}.weight": drawn(*shape) for key, shape in shapes.items()}
            for key in tensors:
                if "norm" in key:
                    tensors[key] += 1
            put(f"layer-{number}.safetensors", tensors)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": placed}))
        (folder / "config.json").write_text(json.dumps({**config, "num_hidden_layers": depth}))
        yield folder


def layer_shapes(config: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """What a layer of a Llama stores."""
    width, wide = config["hidden_size"], config["intermediate_size"]
    keys = width // config["num_attention_heads"] * config["num_key_value_heads"]
    return {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (keys, width),
        "self_attn.v_proj": (keys, width),
        "self_attn.o_proj": (width, width),
        "mlp.gate_proj": (wide, width),
        "mlp.up_proj": (wide, width),
        "mlp.down_proj": (width, wide),
        "input_layernorm": (width,),
        "post_attention_layernorm": (width,),
    }


def print_table(title: str, runs: Sequence[Run]) -> None:
    """A row for each depth."""
    if not runs:
        return
    print(f"\n**{title}**\n")
    print("| layers | checkpoint | peak memory | of it weights | read, times | seconds | a layer | verdict |")
    print("|---|---|---|---|---|---|---|---|")
    for run in runs:
        resident = f"{run.resident / GIB:.2f} GiB" if run.streamed else "–"
        read = f"{run.read / run.checkpoint:.2f}, at most {run.most_reads}" if run.streamed else "–"
        layer = f"{run.layer:.1f} s" if run.streamed else "–"
        word = "PASS" if run.passed else "FAIL"
        print(
            f"| {run.depth} | {run.checkpoint / GIB:.2f} GiB | {run.peak / GIB:.2f} GiB | {resident} | {read} "
            f"| {run.seconds:.0f} | {layer} | {word} |"
        )


def print_model(runs: Sequence[Run]) -> tuple[float, float]:
    """seconds = a + b · layers, from the first two depths, and what that says of the others."""
    first, second = runs[:2]
    b = (second.seconds - first.seconds) / (second.depth - first.depth)
    a = first.seconds - b * first.depth
    disk = (second.checkpoint - first.checkpoint) / (second.depth - first.depth)
    print(
        f"\nFitted at {first.depth} and {second.depth} layers: {a:.0f} s + {b:.2f} s a layer of {disk / GIB:.3f} GiB."
    )
    for run in runs[2:]:
        said = a + b * run.depth
        off = run.seconds / said - 1
        print(f"At {run.depth} layers it says {said:.0f} s; measured {run.seconds:.0f} s ({off:+.0%}).")
    return a, b


def print_beyond(a: float, b: float) -> None:
    """What the costs of layers of Llama-3.1-8B say of whole models."""
    print(f"At 32 layers, Llama-3.1-8B, it says {(a + 32 * b) / 60:.0f} minutes.")
    width, wide, heads, kv_heads, depth = LARGEST
    large = {
        "hidden_size": width,
        "intermediate_size": wide,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
    }
    numbers, less = (sum_of(layer_shapes(one)) for one in (large, LLAMA))
    ends, ends_less = (one["hidden_size"] * LLAMA["vocab_size"] for one in (large, LLAMA))
    seconds = a * ends / ends_less + b * numbers / less * depth
    weights = max(2 * 4 * numbers, 2 * 4 * ends)
    on_disk = 2 * (2 * ends + depth * numbers)
    print(
        f"At {depth} layers, Llama-3.1-405B, each {numbers / less:.1f} times as large: {seconds / 3600:.0f} hours, "
        f"{weights / GIB:.0f} GiB of weights at once, of {on_disk / GIB:.0f} GiB on disk."
    )


def sum_of(shapes: Mapping[str, tuple[int, ...]]) -> int:
    """Numbers in tensors of these shapes."""
    return sum(shape[0] * (shape[1] if len(shape) > 1 else 1) for shape in shapes.values())


def curve(streamed: Sequence[Run], whole: Sequence[Run]) -> str:
    """Peak memory against depth as a picture: two lines, with their points marked."""
    runs = (*streamed, *whole)
    width, height, left, low = 640, 360, 70, 310
    most_depth, most_peak = max(run.depth for run in runs), 1.1 * max(run.peak for run in runs) / GIB

    def at(depth: float, peak: float) -> tuple[float, float]:
        return left + (width - left - 110) * depth / most_depth, low - (low - 30) * peak / most_peak

    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<path d="M{left} 30V{low}H{width - 110}" fill="none" stroke="#555"/>',
        f'<text x="{left}" y="20">peak memory of the process, GiB</text>',
        f'<text x="{width - 110}" y="{low + 36}" text-anchor="end">layers</text>',
    ]
    for depth in sorted({run.depth for run in runs}):
        x, _ = at(depth, 0)
        lines.append(f'<text x="{x:.0f}" y="{low + 18}" text-anchor="middle">{depth}</text>')
    for step in range(int(most_peak) + 1):
        _, y = at(0, step)
        lines.append(f'<path d="M{left - 4} {y:.0f}H{left}" stroke="#555"/>')
        lines.append(f'<text x="{left - 8}" y="{y + 4:.0f}" text-anchor="end">{step}</text>')
    for name, colour, found in (("streamed", "#1b6ca8", streamed), ("whole", "#b3412f", whole)):
        points = [at(run.depth, run.peak / GIB) for run in found]
        if not points:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        lines.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>' for x, y in points]
        x, y = points[-1]
        lines.append(f'<text x="{x + 10:.0f}" y="{y + 4:.0f}" fill="{colour}">{name}</text>')
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
