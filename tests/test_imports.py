"""Commands on specs start fast and work without the torch extra: they never import a heavy library."""

import subprocess
import sys
from pathlib import Path

import pytest

from archc.parts.kinds import KINDS, PARTS

ROOT = Path(__file__).parents[1]
HEAVY = ("matplotlib", "numpy", "sympy", "torch", "transformers")
# What a valid spec's report as JSON has no use for: pydantic says what is wrong with others, rich draws tables.
IDLE = ("archc.advice", "archc.codegen", "archc.files", "archc.importing.convert", "archc.render", "archc.validation")
UNUSED = (*HEAVY, "pydantic", "jinja2", "rich", "dataclasses", "difflib", "hashlib", "tempfile", *IDLE)

# {tmp} is an empty folder.
LIGHT_COMMANDS = [
    ["--help"],
    ["list"],
    ["report", "gpt2"],
    ["report", "deepseek-v3", "--json", "--layers", "--fits", "80GiB"],
    ["check", "gpt2"],
    ["compare", "gpt2", "qwen3-0.6b"],
    ["diff", "gpt2", "qwen3-0.6b"],
    ["schema"],
    ["explain", "E101"],
    ["explain", "attention.kv_heads"],
    ["explain", "cache.positions"],
    ["generate", "gpt2", "-o", "{tmp}/model.py"],
    ["doctor"],
    ["completion", "bash"],
]

# Runs `python -m archc ARGUMENTS` in this very process, so that its modules can be looked at when it ends.
RUN_ARCHC = "import runpy; runpy.run_module('archc', run_name='__main__', alter_sys=True)"
WATCHED = """
import sys
try:
    exec(sys.argv.pop(1))
finally:
    heavy = [name for name in {watched} if name in sys.modules]
    if heavy:
        print("heavy imports:", *heavy, file=sys.stderr)
"""


def run_watched(
    code: str, *arguments: str, watched: tuple[str, ...] = HEAVY
) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """Run code in a fresh interpreter; return the watched modules that it imported, and the finished process."""
    command = [sys.executable, "-c", WATCHED.format(watched=watched), code, *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)
    marks = [line for line in done.stderr.splitlines() if line.startswith("heavy imports: ")]
    return [name for line in marks for name in line.split()[2:]], done


def test_importing_archc_is_light() -> None:
    heavy, done = run_watched("import archc")
    assert done.returncode == 0, done.stderr
    assert heavy == []


@pytest.mark.parametrize("arguments", LIGHT_COMMANDS, ids=" ".join)
def test_command_is_light(arguments: list[str], tmp_path: Path) -> None:
    heavy, done = run_watched(RUN_ARCHC, *(argument.format(tmp=tmp_path) for argument in arguments))
    assert done.returncode == 0, done.stderr
    assert heavy == []


def test_formulas_load_sympy_and_nothing_heavier() -> None:
    heavy, done = run_watched(RUN_ARCHC, "report", "gpt2", "--formula")
    assert done.returncode == 0, done.stderr
    assert heavy == ["sympy"]


@pytest.mark.parametrize("words", ["report gp", "report gpt2 --set attention.k", "explain norm", "validate t"])
def test_completion_is_light(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = ["archc", *words.split()]
    for name, value in (("COMP_WORDS", "\n".join(typed)), ("COMP_CWORD", str(len(typed) - 1))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("_ARCHC_COMPLETE", "bash_complete")
    found, done = run_watched(RUN_ARCHC, watched=(*HEAVY, "pydantic", "jinja2", "rich"))
    assert (done.returncode, found) == (0, [])
    assert f"plain,{typed[-1]}" in done.stdout or f"part,{typed[-1]}" in done.stdout


@pytest.mark.parametrize("ending", ["", "; sys.exit(0)", "; sys.exit(1)", "; 1 / 0"])
def test_a_heavy_import_is_seen(ending: str) -> None:
    heavy, _ = run_watched(f"import numpy, sys{ending}")
    assert heavy == ["numpy"]


def test_every_heavy_library_could_be_imported() -> None:
    """Otherwise the tests above would pass for want of anything to import."""
    find = f"import importlib.util; print([n for n in {HEAVY} if not importlib.util.find_spec(n)])"
    _, done = run_watched(find)
    assert done.stdout.strip() == "[]"


def kind_modules(section: str) -> dict[str, str]:
    """The module of every kind of a section."""
    return {kind: place.partition(":")[0] for kind, place in KINDS[section].items()}


@pytest.mark.parametrize(
    ("spec", "used"),
    [
        ("deepseek-v3", {"mla", "moe", "gated", "mlp"}),  # gated and mlp share a file
        ("gpt2", {"gqa", "gated", "mlp"}),
        ("qwen3-next-80b", {"gqa", "gated_delta", "kda", "moe", "gated", "mlp"}),
    ],
)
def test_a_report_reads_the_files_of_the_kinds_in_its_spec(spec: str, used: set[str]) -> None:
    """And no others, nor anything that only errors, tables and other commands need."""
    modules = {kind: module for section in PARTS for kind, module in kind_modules(section).items()}
    needed = {modules[kind] for kind in used} | {"archc.parts.feed_forward"}  # whose activations other parts name
    unused = tuple(sorted(set(modules.values()) - needed))
    assert len(unused) > 10
    found, done = run_watched(RUN_ARCHC, "report", spec, "--json", watched=(*UNUSED, *unused))
    assert done.returncode == 0, done.stderr
    assert found == []
    found, _ = run_watched(RUN_ARCHC, "report", spec, "--json", watched=tuple(needed))
    assert set(found) == needed, "the kinds in the spec are read, so the test above could have seen others"


def test_a_wrong_spec_is_explained_by_pydantic(tmp_path: Path) -> None:
    """Otherwise a report on a valid spec would pass for want of anything that imports it."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text((ROOT / "specs" / "gpt2.yaml").read_text(encoding="utf-8") + "stray: 1\n", encoding="utf-8")
    found, done = run_watched(RUN_ARCHC, "report", str(wrong), "--json", watched=UNUSED)
    assert done.returncode == 1
    assert "pydantic" in found
