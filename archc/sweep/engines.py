"""Who runs the jobs: processes of this machine, or a Ray cluster. Results come as jobs end, in any order."""

from __future__ import annotations

import logging
import os
import signal
import socket
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import Any, Final

from archc.errors import IncompleteError
from archc.sweep.job import Job, failed_job, run_job
from archc.sweep.record import Record

_CLEANING: Final = 10.0
"""Seconds that Ray's jobs have to end in when the sweep is interrupted."""
_KNOCKING: Final = 20.0
"""Seconds that a cluster has to answer in."""


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_locally(jobs: Sequence[Job], at_once: int) -> Generator[tuple[Record, bytes]]:
    """The records of jobs and what they said; `at_once` of them run side by side.

    Closing the iterator ends the jobs that run.
    """
    stop = Event()
    with ThreadPoolExecutor(at_once) as pool:  # each thread waits for a process
        futures = {pool.submit(run_job, job, stop): job for job in jobs}
        try:
            for future in as_completed(futures):
                error = future.exception()
                yield failed_job(futures[future], str(error)) if isinstance(error, OSError) else future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            stop.set()


def run_on_ray(jobs: Sequence[Job], address: str | None) -> Generator[tuple[Record, bytes]]:
    """The same on a Ray cluster, a task for each job, with as many CPUs as it has threads.

    The cluster is that at `address`, or of the environment's RAY_ADDRESS, or one of this machine alone. Its machines
    need archc, and the files of the jobs at the same places. Raises IncompleteError where there is no Ray.
    """
    try:
        import ray
    except ModuleNotFoundError as error:
        raise IncompleteError(f"--engine ray needs {error.name}", "pip install 'archc[ray]'") from error
    _connect(ray, address, max((job.threads for job in jobs), default=1))
    try:
        task = ray.remote(max_retries=0)(run_job)
        pending = {task.options(num_cpus=job.threads, name=job.name[:100]).remote(job): job for job in jobs}
        try:
            while pending:
                (reference,), _ = ray.wait(list(pending))
                job = pending.pop(reference)
                try:
                    yield ray.get(reference)
                except ray.exceptions.RayError as error:
                    yield failed_job(job, f"lost by Ray: {str(error).strip().splitlines()[-1]}")
        finally:
            for reference in pending:
                ray.cancel(reference)
            if pending:
                ray.wait(list(pending), num_returns=len(pending), timeout=_CLEANING)
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str | None, threads: int) -> None:
    quiet = {"log_to_driver": False, "logging_level": logging.ERROR}
    address = address or os.environ.get("RAY_ADDRESS")
    ended = signal.getsignal(signal.SIGTERM)  # Ray's own handler aborts the program
    try:
        if address:
            _knock(address)
            ray.init(address, **quiet)
        else:
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            ray.init("local", num_cpus=max(cores(), threads), include_dashboard=False, **quiet)
    except (ray.exceptions.RayError, OSError, RuntimeError, ValueError) as error:
        said = str(error).strip().splitlines()
        raise IncompleteError(
            f"cannot reach Ray: {said[0] if said else type(error).__name__}", "check --ray-address"
        ) from error
    finally:
        signal.signal(signal.SIGTERM, ended)


def _knock(address: str) -> None:
    """Raises OSError where nobody answers at HOST:PORT: Ray itself would try for a quarter of an hour."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdecimal():
        with socket.create_connection((host, int(port)), timeout=_KNOCKING):
            pass
