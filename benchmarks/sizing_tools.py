"""archc and other sizing tools on the same config.json files, against what transformers itself builds and caches.

    python -m venv /tmp/peers
    /tmp/peers/bin/pip install 'torch==2.13.0' 'transformers==5.24.0' accelerate hf-mem ridgepoint vramscout \\
        hf-vram-calc modelinfo-cli vramcalc llm-analysis torchinfo fvcore
    python -m benchmarks.sizing_tools --peers /tmp/peers/bin/python             prints the tables
    python -m benchmarks.sizing_tools --peers /tmp/peers/bin/python --write     puts them into docs/why-archc.md

The truth is transformers' own: its model on fake tensors (shapes without storage) reads a prompt as long as the context
in bfloat16, and the bytes of the cache that it gives back are counted. `held` is that. `reserved` is the same where
every window is as long as the context: what engines that give every layer the same pages allocate. A tool is right if
it says either. Parameters are counted once, however often they are used. Recurrent states are in float32, as
transformers has them, and archc is told so (`--state-dtype float32`).

The configs are the published ones of tests/specs/configs. The models are chosen so that each has one thing that sizes
are got wrong by, after two that have none.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoConfig, AutoModelForCausalLM

from archc import __version__
from archc.analysis import build_report
from archc.architecture import compile_spec
from archc.render.units import decimal_bytes, short_count

ROOT = Path(__file__).parents[1]
CONFIGS = ROOT / "tests" / "specs" / "configs"
PAGE = ROOT / "docs" / "why-archc.md"
CONTEXT = 8192
MODELS = {
    "llama3-8b": "nothing unusual",
    "gpt2": "tied ends, a table of positions",
    "qwen3-0.6b": "heads wider than width / heads",
    "mistral-7b": "a window in every layer",
    "gemma3-1b": "windows in 22 of 26 layers",
    "gpt-oss-20b": "experts, windows in half of the layers",
    "mixtral-8x7b": "experts",
    "deepseek-v3": "latent attention",
    "qwen3-next-80b": "36 of 48 layers recurrent",
    "lfm2-1.2b": "10 of 16 layers convolutions",
    "gemma4-e2b": "keys and values shared across layers",
}
"""The spec's name, and what sizes are got wrong by."""
_WINDOWS = ("sliding_window", "attention_chunk_size", "chunk_size")
CLOSE = 0.005
"""How far off still counts as right: windows hold a row more or less."""


@dataclass(frozen=True)
class Truth:
    """What transformers builds and caches."""

    parameters: int
    held: int
    reserved: int


@dataclass(frozen=True)
class Answer:
    """What a tool says: parameters and bytes of cache, None where it offers none or refuses the model."""

    parameters: float | None
    cache: float | None
    said: str | None = None


def truth(config: dict[str, Any], context: int) -> Truth:
    """Parameters, and bytes of the cache after a prompt of `context` tokens."""
    parameters, held = _run(dict(config), context)
    widened = {key: 2 * context if key in _WINDOWS and value else value for key, value in config.items()}
    reserved = held if widened == config else _run(widened, context)[1]
    return Truth(parameters, held, reserved)


def _run(config: dict[str, Any], context: int) -> tuple[int, int]:
    with FakeTensorMode(allow_non_fake_inputs=True), torch.no_grad():
        model = AutoModelForCausalLM.from_config(
            AutoConfig.for_model(**config),
            dtype=torch.bfloat16,
            attn_implementation="eager",
            experts_implementation="batched_mm",  # the plain one asks which experts are chosen, and nobody knows
        ).eval()
        output = model.base_model(input_ids=torch.zeros(1, context, dtype=torch.long), use_cache=True)
    held: dict[int, torch.Tensor] = {}
    _gather(output.past_key_values, held)
    numbers = (one for one in held.values() if one.is_floating_point())
    return sum(one.numel() for one in model.parameters()), sum(one.nbytes for one in numbers)


def _gather(value: object, found: dict[int, torch.Tensor]) -> None:
    """Every tensor of a cache, each once."""
    match value:
        case torch.Tensor():
            found[id(value)] = value
        case dict():
            for inner in value.values():
                _gather(inner, found)
        case list() | tuple():
            for inner in value:
                _gather(inner, found)
        case _ if hasattr(value, "__dict__"):
            _gather(vars(value), found)


def archc_says(folder: Path, context: int) -> tuple[Answer, Answer]:
    """What `archc report CONFIG` says: of what is held, and of what is reserved."""
    architecture = compile_spec(str(folder)).architecture
    found = build_report(architecture, context=context, dtype="bfloat16", kv_dtype="bfloat16", state_dtype="float32")
    total, cache = found["params"]["total"], found["kv_cache"]
    return Answer(total, cache["bytes_at_context"]), Answer(total, cache["bytes_at_context_reserved"])


def peers_say(python: Path, folder: Path, context: int, parameters: int) -> dict[str, tuple[str, Answer]]:
    """What the other tools say, each with its version."""
    script = str(Path(__file__).with_name("sizing_peers.py"))
    done = subprocess.run(
        [python, script, folder, str(context), str(parameters)],
        env=os.environ | {"HF_HUB_OFFLINE": "1", "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"the peers' interpreter failed:\n{done.stderr[-2000:]}")
    answers = json.loads(done.stdout.splitlines()[-1])
    return {name: (one.pop("version"), Answer(**one)) for name, one in answers.items()}


def times(said: float | None, held: int, reserved: int) -> str:
    """How often the nearer right figure a tool says; empty where it says nothing."""
    if said is None:
        return ""
    if abs(said / held - 1) <= CLOSE:
        return "="
    if abs(said / reserved - 1) <= CLOSE:
        return "reserved"
    ratio = min((said / held, said / reserved), key=lambda one: abs(one - 1))
    return f"{ratio:.2f}×" if ratio < 10 else f"{ratio:.1f}×"


def tables(peers: Path) -> Iterator[str]:
    """Both tables and what stands below them, line by line."""
    rows: dict[str, tuple[Truth, Answer, dict[str, tuple[str, Answer]]]] = {}
    with tempfile.TemporaryDirectory() as made:
        for name in MODELS:
            config = {**json.loads((CONFIGS / f"{name}.json").read_text(encoding="utf-8")), "dtype": "bfloat16"}
            config["architectures"] = [type(_empty(config)).__name__]  # some tools ask for it
            folder = Path(made) / name
            folder.mkdir()
            (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
            (folder / "shapes.json").write_text(json.dumps(_shapes(config)), encoding="utf-8")
            context = _context(config)
            right = truth(config, context)
            held, reserved = archc_says(folder, context)
            both = (held.cache, right.held), (reserved.cache, right.reserved)
            if any(times(said, true, true) != "=" for said, true in both):
                print(f"archc is wrong on {name}: {held}, {reserved}, {right}", file=sys.stderr)
            said = peers_say(peers, folder, context, right.parameters)
            for tool, (_, answer) in said.items():
                if answer.said:
                    print(f"{tool} on {name}: {answer.said}", file=sys.stderr)
            rows[name] = right, held, said
    versions = {tool: number for tool, (number, _) in next(iter(rows.values()))[2].items()}
    yield from _table("cache", rows, versions)
    yield ""
    yield from _table("parameters", rows, versions)
    yield ""
    listed = ", ".join(f"{tool} {number}" for tool, number in versions.items())
    yield f"{datetime.now(UTC):%d %B %Y}: archc {__version__}, {listed};"
    yield f"the reference is transformers {version('transformers')} on torch {version('torch')}."


def _table(
    what: str, rows: dict[str, tuple[Truth, Answer, dict[str, tuple[str, Answer]]]], versions: dict[str, str]
) -> Iterator[str]:
    """A row for each model; a column for each tool that says this of any."""
    tools = [tool for tool in versions if any(getattr(said[tool][1], what) for _, _, said in rows.values())]
    heading = "held (reserved)" if what == "cache" else what
    yield f"| model | what is unusual | {heading} | archc | {' | '.join(tools)} |"
    yield "|---" * (4 + len(tools)) + "|"
    for name, (right, own, said) in rows.items():
        true = (right.held, right.reserved) if what == "cache" else (right.parameters, right.parameters)
        shown = short_count(right.parameters) if what == "parameters" else decimal_bytes(right.held)
        if true[0] != true[1]:
            shown += f" ({decimal_bytes(right.reserved)})"
        cells = [times(getattr(own, what), *true)]
        cells += [times(getattr(said[tool][1], what), *true) or _silence(said[tool][1]) for tool in tools]
        yield f"| {name} | {MODELS[name]} | {shown} | {' | '.join(cells)} |"


def _silence(answer: Answer) -> str:
    """Why a tool says nothing: it refuses the model by its type, it fails, or it does not offer the figure."""
    if answer.said is None:
        return ""
    return "refused" if answer.said.startswith("UnsupportedModel") else "fails"


def _context(config: dict[str, Any]) -> int:
    most = config.get("max_position_embeddings") or config.get("n_positions") or CONTEXT
    return min(CONTEXT, int(most))


def _empty(config: dict[str, Any]) -> Any:
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(AutoConfig.for_model(**config))


def _shapes(config: dict[str, Any]) -> dict[str, dict[str, object]]:
    """What the headers of a checkpoint would say, for the tool that reads them."""
    return {name: {"shape": list(one.shape), "dtype": "BF16"} for name, one in _empty(config).state_dict().items()}


def main() -> int:
    """Print the tables, or put them into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", type=Path, required=True, help="the interpreter that has the other tools")
    parser.add_argument("--write", action="store_true", help="put the tables into docs/why-archc.md")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    text = "\n".join(tables(options.peers))
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        marked = re.compile(r"(<!-- sizing -->\n).*?(\n<!-- /sizing -->)", re.DOTALL)
        PAGE.write_text(marked.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
