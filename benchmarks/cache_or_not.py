"""The worth of a KV cache: greedy decoding with one and without, on a model of GPT-2's size with random weights.

    python -m benchmarks.cache_or_not                  100, 500 and 994 new tokens; ten minutes on two cores
    python -m benchmarks.cache_or_not --new 100

Without a cache every token reads the whole sequence again, so work grows with the square of the length. Both ways must
decode the same tokens; the script fails where they do not.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from rich.progress import track
from torch import Tensor

from archc.architecture import compile_spec
from archc.codegen import generate
from benchmarks.decode import imported

PROMPT = 30
"""With 994 new ones this fills GPT-2's 1,024 positions."""


@torch.inference_mode()
def without_cache(model: Any, ids: Tensor, new: int) -> Tensor:
    """Greedy decoding in which every token is computed from the whole sequence; the head reads the last alone."""
    for _ in track(range(new), "without a cache", transient=True):
        ids = torch.cat((ids, model.logits(model.hidden(ids)[:, -1]).argmax(-1, keepdim=True)), dim=1)
    return ids


def main() -> int:
    """Prints a row for each length; 1 if the tokens are not the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", type=int, nargs="+", default=[100, 500, 994], help="tokens to decode")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    architecture = compile_spec("gpt2").architecture
    with tempfile.TemporaryDirectory() as place:
        module = imported(generate(architecture), Path(place))
    torch.manual_seed(0)
    model = module.Model().eval()
    prompt = torch.randint(architecture.vocab_size, (1, PROMPT))
    model.generate(prompt, 8)
    print("| new tokens | without, tokens/s | with, tokens/s | times | tokens |")
    print("|---|---|---|---|---|")
    same = True
    for new in options.new:
        start = time.perf_counter()
        slowly = without_cache(model, prompt, new)
        middle = time.perf_counter()
        quickly = model.generate(prompt, new)
        slow, fast = middle - start, time.perf_counter() - middle
        equal = torch.equal(slowly, quickly)
        same &= equal
        words = "identical" if equal else "not the same"
        print(f"| {new} | {new / slow:.1f} | {new / fast:.1f} | {slow / fast:.1f} | {words} |", flush=True)
    if not same:
        print("the cache changes what is decoded", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
