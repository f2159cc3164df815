"""The machine as archc would use it: cores, threads, memory and a GPU, told without torch; and what torch says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

THREAD_VARIABLES: Final = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")
_TIMEOUT: Final = 300
_LOADED: Final = """
import json
import torch, transformers, tokenizers, accelerate, gguf
cuda = torch.cuda.is_available()
print(json.dumps({
    "threads": torch.get_num_threads(),
    "cuda": torch.version.cuda,
    "devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
}))
"""


@dataclass(frozen=True, slots=True)
class Machine:
    """What the system says."""

    cores: int
    """Those that this process may use."""
    threads: Mapping[str, str]
    """The variables that set how many of them torch uses, where they are set."""
    memory_bytes: int | None
    nvidia_driver: str | None
    """The version of NVIDIA's driver; None where there is none, and so no CUDA."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What torch says once it is imported; `problem` is what kept the libraries of the extra from it."""

    threads: int | None = None
    cuda: str | None = None
    devices: tuple[str, ...] = ()
    problem: str = ""


def machine() -> Machine:
    """The machine that archc runs on."""
    return Machine(
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        threads={name: os.environ[name] for name in THREAD_VARIABLES if name in os.environ},
        memory_bytes=_memory(),
        nvidia_driver=_nvidia_driver(),
    )


def loaded() -> Loaded:
    """Import the torch extra in a process of its own, and ask it."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _LOADED],  # nothing of the current folder, which may hold anything
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Loaded(problem=f"importing them took more than {_TIMEOUT} seconds")
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return Loaded(problem=lines[-1] if lines else f"the interpreter ended with {done.returncode}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Loaded(said["threads"], said["cuda"], tuple(said["devices"]))


def _memory() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return None


def _nvidia_driver() -> str | None:
    try:
        first = Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").splitlines()[0]
    except (OSError, IndexError):
        return None
    return next((word for word in first.split() if word[0].isdigit() and "." in word), "unknown")
