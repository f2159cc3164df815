"""What whole processes cost: seconds and memory, for benchmarks that compare commands."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Cost(NamedTuple):
    """One process: seconds by the clock, seconds of processors, and the most memory that it held (MB)."""

    wall: float
    cpu: float
    megabytes: float


def measure(command: list[str], environment: dict[str, str]) -> Cost:
    """Run a process to its end. Raises RuntimeError where it fails."""
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)[:200]} ended with {process.returncode}")
    kilobyte = 1 if sys.platform == "darwin" else 1024  # macOS counts bytes
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * kilobyte / 1e6)


def medians(costs: list[Cost]) -> Cost:
    """The median of each figure by itself."""
    return Cost(*(statistics.median(figures) for figures in zip(*costs, strict=True)))
