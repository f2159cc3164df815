"""Tokens a second of the generated module, beside transformers, litgpt and what memory allows, by turns in one run.

    python -m benchmarks.decode                        SmolLM2-135M (`archc fetch smollm2-135m` first), fp32, 2 threads
    python -m benchmarks.decode --dtype bfloat16 --compile --rounds 5

Decoding one token reads every weight once, so memory's bandwidth over the bytes of the weights is a limit on tokens a
second. The bandwidth is what a sum over a buffer of that size reaches. Every round runs every engine once, and what is
printed are medians over rounds: machines are noisy, ratios within a round less so. `pip install litgpt` for its row.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import AutoModelForCausalLM

from archc.architecture import compile_spec
from archc.codegen import generate
from archc.validation.validator import find_validator

PROMPT = 16
LITGPT_NAME = "SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class Engine:
    """Something that decodes greedily, `new` tokens behind a prompt [1, T], and gives logits of a whole input."""

    name: str
    decode: Callable[[Tensor, int], Tensor]
    prefill: Callable[[Tensor], Any] | None = None


def compiled(module: Any, folder: Path, dtype: torch.dtype) -> Engine:
    """The generated module behind torch.compile, in one graph for any length."""
    model = module.Model.from_pretrained(folder, dtype)
    model.hidden = torch.compile(model.hidden, fullgraph=True, dynamic=True)
    model.logits = torch.compile(model.logits, fullgraph=True, dynamic=True)
    return Engine("generated, compiled", model.generate)


def transformers(folder: Path, dtype: torch.dtype) -> Engine:
    """Transformers' own class and `generate`, with its fused attention."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).eval()

    def decode(ids: Tensor, new: int) -> Tensor:
        found: Tensor = model.generate(ids, max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0)
        return found

    return Engine("transformers", decode, model)


def litgpt(folder: Path, dtype: torch.dtype) -> Engine | None:
    """Litgpt's model and generation on the same weights, where it is installed."""
    try:
        from litgpt import GPT, Config
        from litgpt.generate.base import generate as run
        from litgpt.scripts.convert_hf_checkpoint import copy_weights_hf_llama
    except ImportError:
        return None
    from safetensors.torch import load_file

    config = Config.from_name(LITGPT_NAME)
    model = GPT(config).to(dtype)
    stored: dict[str, Tensor] = {}
    copy_weights_hf_llama(config, {}, stored, load_file(folder / "model.safetensors"))
    stored.setdefault("lm_head.weight", stored["transformer.wte.weight"])
    model.load_state_dict(stored)

    def decode(ids: Tensor, new: int) -> Tensor:
        length = ids.shape[1] + new
        model.max_seq_length = length
        model.set_kv_cache(batch_size=1, max_seq_length=length, dtype=dtype)
        found: Tensor = run(model.eval(), ids[0], length, temperature=0.0, eos_id=None)
        model.clear_kv_cache()
        return found[None]

    def prefill(ids: Tensor) -> Any:
        model.max_seq_length = ids.shape[1]
        return model.eval()(ids)

    return Engine("litgpt", decode, prefill)


def imported(source: str, place: Path) -> Any:
    """The generated module, imported from a file as its users do: torch.compile looks it up by name."""
    (place / "generated_model.py").write_text(source, encoding="utf-8")
    sys.path.insert(0, str(place))
    return importlib.import_module("generated_model")


def main() -> int:
    """Prints the table; 1 if two engines decode other tokens in fp32."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("validator", nargs="?", default="smollm2-135m")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--new", type=int, nargs="*", default=[64, 512], help="tokens to decode")
    parser.add_argument("--prefill", type=int, nargs="*", default=[128, 1024], help="tokens to read at once")
    parser.add_argument("--compile", action="store_true", help="torch.compile too; a minute or two more")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dtype: torch.dtype = getattr(torch, options.dtype)
    validator = find_validator(options.validator)
    assert validator.weights is not None
    folder, architecture = validator.weights, compile_spec(validator.spec).architecture
    with tempfile.TemporaryDirectory() as place:
        module = imported(generate(architecture), Path(place))

    model = module.Model.from_pretrained(folder, dtype)
    engines = [Engine("generated", model.generate, model), transformers(folder, dtype)]
    engines += [compiled(module, folder, dtype)] if options.compile else []
    other = litgpt(folder, dtype)
    engines += [other] if other is not None else []
    size = sum(parameter.nbytes for parameter in model.parameters())
    with torch.inference_mode():
        rates, same = measure(engines, size, architecture.vocab_size, options)
    print_table(rates, options)
    if not same and dtype == torch.float32:
        print("engines decoded other tokens", file=sys.stderr)
        return 1
    return 0


def measure(
    engines: Sequence[Engine], size: int, vocabulary: int, options: argparse.Namespace
) -> tuple[dict[tuple[str, str], list[float]], bool]:
    """Tokens a second by engine and column, one a round; and whether all decoded the same tokens."""
    # Made in inference mode like all that follows, or torch.compile would make a second graph for them.
    random = torch.Generator().manual_seed(0)
    prompt = torch.randint(vocabulary, (1, PROMPT), generator=random)
    inputs = {tokens: torch.randint(vocabulary, (1, tokens), generator=random) for tokens in options.prefill}
    buffer = torch.ones(size // 4)
    rates: dict[tuple[str, str], list[float]] = defaultdict(list)
    same = True
    for engine in engines:
        engine.decode(prompt, 8)
    for _ in range(options.rounds):
        for new in options.new:
            column = f"{new} new"
            start = time.perf_counter()
            buffer.sum()
            rates["limit", column].append(1 / (time.perf_counter() - start))
            tokens = {}
            for engine in engines:
                start = time.perf_counter()
                tokens[engine.name] = engine.decode(prompt, new)
                rates[engine.name, column].append(new / (time.perf_counter() - start))
            same &= all(torch.equal(found, tokens["transformers"]) for found in tokens.values())
        for count, ids in inputs.items():
            for engine in engines:
                if engine.prefill is not None:
                    start = time.perf_counter()
                    engine.prefill(ids)
                    rates[engine.name, f"prefill {count}"].append(count / (time.perf_counter() - start))
    return rates, same


def print_table(rates: dict[tuple[str, str], list[float]], options: argparse.Namespace) -> None:
    """Medians in tokens a second, and medians of the ratios within a round."""
    columns = [f"{new} new" for new in options.new] + [f"prefill {count}" for count in options.prefill]
    names = list(dict.fromkeys(name for name, _ in rates))
    print(f"{options.dtype}, {options.threads} threads, {options.rounds} rounds, medians of tokens/s")
    print("| | " + " | ".join(columns) + " |")
    print("|---|" + "---|" * len(columns))
    for name in names:
        cells = []
        for column in columns:
            found = rates.get((name, column))
            if found is None:
                cells.append("")
                continue
            shares = [f"{statistics.median(found):.1f}"]
            for other, word in (("transformers", "× transformers"), ("limit", "of the limit")):
                base = rates.get((other, column))
                if base is not None and name not in (other, "limit"):
                    ratio = statistics.median(a / b for a, b in zip(found, base, strict=True))
                    shares.append(f"{ratio:.2f} {word}")
            cells.append(", ".join(shares))
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    raise SystemExit(main())
