"""What common practice catches of the mistakes that ports make, and what `archc validate` does.

    python -m benchmarks.gates                          on tiny: all that it takes is in this repository
    python -m benchmarks.gates --target smollm2-135m    on real weights (`archc fetch smollm2-135m` first)
    python -m benchmarks.gates --write                  puts tiny's table into docs/why-archc.md

Every mistake is planted by hand into transformers' own model of the checkpoint, in float32, without archc's help; the
right ports compute the same in other ways. Each practice is given the reference in float32 with eager attention, and
judges as people write it in tests. What archc says is the exit code of `archc validate TARGET --port …`, and the field
that it names.

The mistakes are in benchmarks/gate_mistakes.py.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import cosine_similarity, cross_entropy

from archc import __version__
from archc.validation.validator import find_validator
from benchmarks import gate_mistakes
from benchmarks.gate_mistakes import MISTAKES, RIGHT, RIGHT_IN_16_BITS, Mistake, Model, layers, load, port

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "why-archc.md"
PORTS = Path(gate_mistakes.__file__).relative_to(ROOT)
PROMPT = "The captain looked at the river, and"
LONG, GENERATED = 256, 20


@dataclass(frozen=True)
class Inputs:
    """What the practices are run on: token ids [1, tokens]."""

    prompt: Tensor
    text: Tensor


Practice = Callable[[Model, Model, Inputs], bool]


def logits(model: Model, ids: Tensor) -> Tensor:
    """Logits of a prompt [tokens, vocabulary] in float32."""
    with torch.no_grad():
        found: Tensor = model(ids).logits[0].float()
    return found


def close(tolerance: float, long: bool, reference: Model, made: Model, inputs: Inputs) -> bool:
    """Whether all logits agree to an absolute tolerance."""
    ids = inputs.text if long else inputs.prompt
    return torch.allclose(logits(made, ids), logits(reference, ids), rtol=0, atol=tolerance)


def same_top(reference: Model, made: Model, inputs: Inputs) -> bool:
    """Whether every position of the prompt has the same best token."""
    return torch.equal(logits(made, inputs.prompt).argmax(-1), logits(reference, inputs.prompt).argmax(-1))


def same_text(reference: Model, made: Model, inputs: Inputs) -> bool:
    """Whether 20 greedy tokens are the same, through the cache."""
    how = {"max_new_tokens": GENERATED, "do_sample": False, "attention_mask": torch.ones_like(inputs.prompt)}
    with torch.no_grad():
        return torch.equal(made.generate(inputs.prompt, **how), reference.generate(inputs.prompt, **how))


def near(reference: Model, made: Model, inputs: Inputs) -> bool:
    """Whether the cosine of the last token's logits is above 0.99."""
    pair = (logits(made, inputs.prompt)[-1], logits(reference, inputs.prompt)[-1])
    return float(cosine_similarity(*pair, dim=0)) > 0.99


def perplexity(reference: Model, made: Model, inputs: Inputs) -> bool:
    """Whether perplexity on the text is within 1 %."""
    losses = [cross_entropy(logits(one, inputs.text)[:-1], inputs.text[0, 1:]) for one in (made, reference)]
    return abs(float((losses[0] - losses[1]).exp()) - 1) <= 0.01


PRACTICES: dict[str, Practice] = {
    "logits to 1e-3": partial(close, 1e-3, False),
    "to 1e-4": partial(close, 1e-4, False),
    f"to 1e-4 on {LONG} tokens": partial(close, 1e-4, True),
    "best tokens": same_top,
    f"{GENERATED} greedy tokens": same_text,
    "cosine > 0.99": near,
    "perplexity within 1 %": perplexity,
}


@dataclass(frozen=True)
class Row:
    """What was found of one port: whether each practice lets it pass, whether archc does, and what archc names."""

    practices: tuple[bool, ...]
    archc: bool
    named: str
    rightly: bool


def archc_says(target: str, name: str, dtype: str) -> tuple[bool, list[dict[str, Any]]]:
    """Whether the port passes, and the diagnosis."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "gate.json"
        command = ["validate", target, "--port", f"{PORTS}:port_{name}", "--dtype", dtype]
        done = subprocess.run(
            [sys.executable, "-m", "archc", *command, "--json", str(file)], cwd=ROOT, capture_output=True, check=False
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"{name}: {done.stderr.decode()[-2000:]}")
        document = json.loads(file.read_text(encoding="utf-8"))
    return document["passed"], document["diagnosis"]


def judge(target: str, name: str, reference: Model, weights: Path, inputs: Inputs) -> Row:
    """Everything about one port in float32."""
    made = port(name, weights)
    practices = tuple(practice(reference, made, inputs) for practice in PRACTICES.values())
    passed, diagnosis = archc_says(target, name, "float32")
    named = diagnosis[0]["explains"] if diagnosis else ""
    fields = {diagnosis[0]["fault"], diagnosis[0]["field"]} if diagnosis else set()
    wanted = MISTAKES[name].fields if name in MISTAKES else ()
    return Row(practices, passed, named, any(field.startswith(one) for field in fields for one in wanted))


def applies(mistake: Mistake, model: Model) -> bool:
    """Whether this model can have the mistake."""
    words, config = mistake.words, model.config
    needs = {
        "window": getattr(config, "sliding_window", None),
        "bias": config.attention_bias,
        "norm on queries": hasattr(layers(model)[0].self_attn, "q_norm"),
        "scaling": config.rope_parameters["rope_type"] != "default",
        "tied": not config.tie_word_embeddings,
    }
    return all(has for word, has in needs.items() if word in words)


def table(target: str, only: list[str]) -> str:
    """The table, what is counted, and the versions."""
    validator = find_validator(target)
    weights = validator.weights
    assert weights is not None
    tokenizer = Tokenizer.from_file(str(weights / "tokenizer.json"))
    text = torch.tensor([tokenizer.encode(validator.text.read_text(encoding="utf-8")).ids[:LONG]])
    inputs = Inputs(torch.tensor([tokenizer.encode(PROMPT).ids]), text)
    reference = load(weights)
    lines = [
        f"| planted into {target} | {' | '.join(PRACTICES)} | archc | named |",
        "|---" * (3 + len(PRACTICES)) + "|",
    ]
    rows: list[Row] = []
    for name, mistake in MISTAKES.items():
        if applies(mistake, reference) and (not only or name in only):
            rows.append(row := judge(target, name, reference, weights, inputs))
            cells = ["" if passed else "caught" for passed in (*row.practices, row.archc)]
            named = f"{'' if row.rightly else 'otherwise: '}`{row.named}`" if row.named else "–"
            lines.append(f"| {mistake.words} | {' | '.join(cells)} | {named} |")
            print(lines[-1], file=sys.stderr, flush=True)
    caught = [sum(not row.practices[i] for row in rows) for i in range(len(PRACTICES))]
    of = len(rows)
    caught += [sum(not row.archc for row in rows), sum(row.rightly for row in rows)]
    lines.append(f"| **caught, of {of}** | {' | '.join(f'**{number}**' for number in caught)} |")
    lines += ["", *_right_ports(target, reference, weights, inputs), ""]
    versions = ", ".join(f"{name} {version(name)}" for name in ("transformers", "torch"))
    lines.append(f"{datetime.now(UTC):%d %B %Y}: archc {__version__}, {versions}, {torch.get_num_threads()} thread.")
    return "\n".join(lines)


def _right_ports(target: str, reference: Model, weights: Path, inputs: Inputs) -> list[str]:
    """The second table: right ports, and who takes them for wrong ones."""
    lines = [f"| right ports of {target} | {' | '.join(PRACTICES)} | archc |", "|---" * (2 + len(PRACTICES)) + "|"]
    words = {"eager": "the same again", "fused": "fused attention", "double": "in float64, fused attention"}
    for name in RIGHT:
        row = judge(target, name, reference, weights, inputs)
        lines.append(f"| {words[name]} | {' | '.join(_alarm(passed) for passed in (*row.practices, row.archc))} |")
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    other = tuple(practice(reference, load(weights), inputs) for practice in PRACTICES.values())
    torch.set_num_threads(threads)
    lines.append(f"| another number of threads | {' | '.join(map(_alarm, other))} | |")
    eager, fused = (load(weights, attention, torch.bfloat16) for attention in ("eager", "sdpa"))
    in_16 = [practice(eager, fused, inputs) for practice in PRACTICES.values()]
    passed, _ = archc_says(target, RIGHT_IN_16_BITS, "bfloat16")
    lines.append(f"| both sides in bfloat16, fused attention | {' | '.join(map(_alarm, (*in_16, passed)))} |")
    return lines


def _alarm(passed: bool) -> str:
    return "" if passed else "false alarm"


def main() -> int:
    """Print the table, or put it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="tiny", help="a validator that names its weights")
    parser.add_argument("--only", action="append", default=[], choices=MISTAKES, help="of these mistakes alone")
    parser.add_argument("--write", action="store_true", help="put the table into docs/why-archc.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    text = table(options.target, options.only)
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        marked = re.compile(rf"(<!-- gates {options.target} -->\n).*?(\n<!-- /gates -->)", re.DOTALL)
        PAGE.write_text(marked.sub(lambda found: found[1] + text + found[2], page), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
