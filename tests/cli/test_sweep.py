"""`archc sweep`: what is run, what is kept and not run again, what is merged, and how it ends."""

from __future__ import annotations

import importlib.util
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from archc.cli.sweep_results import Results
from archc.sweep.job import Job
from archc.sweep.record import Header, Record, outcome_of
from tests.cli.runner import archc
from tests.render.documents import failing, passing
from tests.render.test_junit import parsed
from tests.test_imports import RUN_ARCHC, run_watched
from tests.tiny import TINY

needs_ray = pytest.mark.skipif(
    importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install 'archc[ray]'"
)
KILLED = "import os, signal\n\ndef load(weights, dtype):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
HANGING = (
    "import os, pathlib, time\n\ndef load(weights, dtype):\n"
    "    pathlib.Path('pid').write_text(f'{os.getpid()}\\n')\n    time.sleep(600)\n"
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the working one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checkpoint(folder: str, config: str = "{}") -> None:
    """What passes for a checkpoint until a job looks into it."""
    Path(folder).mkdir(parents=True)
    Path(folder, "config.json").write_text(config)
    Path(folder, "model.safetensors").write_bytes(b"damaged")


@dataclass
class Runs:
    """Jobs that are not run: what is asked for is remembered, and has the exit code that is wanted."""

    codes: dict[str, int] = field(default_factory=dict)
    jobs: list[Job] = field(default_factory=list)
    ended: str = "2026-01-01T00:00:00+00:00"

    def run(self, job: Job, _: Event | None = None) -> tuple[Record, bytes]:
        self.jobs.append(job)
        code = self.codes.get(job.words[0], 0)
        header = Header(
            name=job.name,
            fingerprint=job.fingerprint,
            outcome=outcome_of(code),
            exit_code=code,
            reason="" if code < 2 else "out of memory",
            seconds=1.5,
            peak_memory_bytes=10**9,
            threads=job.threads,
            ended=self.ended,
            host="here",
            versions={},
        )
        return Record(header, {0: passing(), 1: failing()}.get(code)), b"what it said\n"

    def again(self) -> list[str]:
        """The names of the jobs since this was asked last."""
        names, self.jobs = sorted(job.name for job in self.jobs), []
        return names


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    runs = Runs()
    monkeypatch.setattr("archc.sweep.engines.run_job", runs.run)
    return runs


def test_a_second_run_skips_what_has_a_verdict(here: Path, runs: Runs) -> None:
    for name in "abc":
        checkpoint(f"all/{name}")
    runs.codes = {"all/b": 1, "all/c": 3}
    assert archc("sweep", "all", "-o", "results").code == 1
    assert runs.again() == ["all/a", "all/b", "all/c"]
    done = archc("sweep", "all", "-o", "results")
    assert runs.again() == ["all/c"]
    assert "2 of 3 jobs have a verdict already" in done.err
    runs.codes["all/c"] = 0
    archc("sweep", "all", "-o", "results")
    assert runs.again() == ["all/c"]
    archc("sweep", "all", "-o", "results")
    assert runs.again() == []
    archc("sweep", "all", "-o", "results", "--force")
    assert runs.again() == ["all/a", "all/b", "all/c"]


def change_config(_: pytest.MonkeyPatch) -> None:
    Path("all/a/config.json").write_text('{"rms_norm_eps": 1e-5}')


def change_weights(_: pytest.MonkeyPatch) -> None:
    os.utime("all/a/model.safetensors", (1, 1))


def change_port(_: pytest.MonkeyPatch) -> None:
    Path("port.py").write_text("changed")


def change_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("archc.sweep.fingerprint.__version__", "99")


@pytest.mark.parametrize("change", [change_config, change_weights, change_port, change_versions])
def test_what_a_verdict_depends_on_is_seen(
    here: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, change: Callable[[pytest.MonkeyPatch], None]
) -> None:
    TINY[0].save(Path("all/a"))
    Path("port.py").write_text("as it was")
    line = ("sweep", "all", "-o", "results", "--", "--port", "port.py:load")
    archc(*line)
    assert len(runs.again()) == 1
    archc(*line)
    assert len(runs.again()) == 0
    change(monkeypatch)
    archc(*line)
    assert len(runs.again()) == 1


def test_options_for_every_job_and_for_one(here: Path, runs: Runs) -> None:
    checkpoint("a")
    Path("list").write_text("a\na --dtype float16\n")
    assert archc("sweep", "list", "-o", "results", "--", "--strict", "--dtype", "bfloat16").code == 0
    assert [job.words for job in runs.jobs] == [
        ("a", "--strict", "--dtype", "bfloat16"),
        ("a", "--strict", "--dtype", "bfloat16", "--dtype", "float16"),  # the last counts
    ]
    assert len(list(Path("results").glob("*.json"))) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["list", "-o", "results"], "list:2: No such option"),
        (["a", "-o", "results", "--", "--json", "x"], "--json is not for it"),
        (["a", "-o", "results", "--", "--junit", "x"], "--junit is not for it"),
        (["a", "-o", "results", "--", "--help"], "asks for help"),
        (["a", "-o", "results", "--", "b"], "unexpected extra argument"),
        (["a", "-o", "results", "--shard", "0/2"], "is not I/N"),
        (["a", "-o", "results", "--shard", "3/2"], "is not I/N"),
        (["a", "-o", "list"], "is not a folder"),
        (["a", "-o", "results", "--ray-address", "auto"], "--engine ray"),
        (["a", "-o", "results", "--engine", "ray", "--jobs", "2"], "--threads"),
        (["--merge", "a", "-o", "results", "--", "--strict"], "runs nothing"),
        (["--merge", "absent", "-o", "results"], "not a folder of results"),
        (["absent", "-o", "results"], "cannot read"),
        (["a"], "Missing option"),
    ],
)
def test_wrong_usage_is_said_before_anything_runs(here: Path, runs: Runs, line: list[str], said: str) -> None:
    checkpoint("a")
    Path("list").write_text("a\na --dtpye float16\n")
    done = archc("sweep", *line)
    assert done.code == 2
    assert said in done.err
    assert runs.jobs == []
    assert not Path("results").exists()


@pytest.mark.parametrize(("codes", "exit_code"), [([0, 0], 0), ([0, 3], 3), ([0, 1], 1), ([3, 1], 1), ([2, 0], 3)])
def test_exit_code(here: Path, runs: Runs, codes: list[int], exit_code: int) -> None:
    for name, code in zip("ab", codes, strict=True):
        checkpoint(f"all/{name}")
        runs.codes[f"all/{name}"] = code
    assert archc("sweep", "all", "-o", "results").code == exit_code


def test_summaries(here: Path, runs: Runs) -> None:
    for name, code in zip("abc", [0, 1, 3], strict=True):
        checkpoint(f"all/{name}")
        runs.codes[f"all/{name}"] = code
    done = archc("sweep", "all", "-o", "results", "--json", "summary.json", "--junit", "summary.xml")
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines if line.endswith(("all/a", "all/b"))] == ["pass", "FAIL"]
    assert lines[-1] == "1 of 3 pass, 1 fail, 1 not complete"
    assert "    out of memory" in lines
    said = next(line.strip() for line in lines if "behaves exactly as with" in line)
    summary = json.loads(Path("summary.json").read_text())
    assert summary["jobs"] == {"total": 3, "pass": 1, "findings": 1, "incomplete": 1}
    assert [one["said"] for one in summary["results"]] == [None, said, "out of memory"]
    assert summary["results"][0]["worst_times_floor"] == 0.85
    cases = list(parsed(Path("summary.xml").read_text()).iter("testcase"))
    assert [[child.tag for child in case] for case in cases] == [["system-out"], ["failure"], ["error"]]
    assert archc("sweep", "all", "-o", "results", "--json").json["jobs"] == summary["jobs"]


def test_shards_and_merging_cover_everything(here: Path, runs: Runs) -> None:
    for name in "abcde":
        checkpoint(f"all/{name}")
    archc("sweep", "all", "-o", "one", "--shard", "1/2")
    assert runs.again() == ["all/a", "all/c", "all/e"]
    archc("sweep", "all", "-o", "two", "--shard", "2/2")
    assert runs.again() == ["all/b", "all/d"]
    merged = archc("sweep", "--merge", "one", "two", "-o", "both")
    assert merged.code == 0
    assert merged.out.endswith("5 of 5 pass\n")
    assert len(list(Path("both").glob("*.log"))) == 5
    archc("sweep", "all", "-o", "both")
    assert runs.again() == [], "what was merged need not be run again"


def test_merging_keeps_verdicts_and_what_is_newer(here: Path, runs: Runs) -> None:
    for name in "ab":
        checkpoint(f"all/{name}")
    runs.codes = {"all/a": 0, "all/b": 1}
    archc("sweep", "all", "-o", "older")
    runs.codes, runs.ended = {"all/a": 3, "all/b": 0}, "2026-02-01T00:00:00+00:00"
    archc("sweep", "all", "-o", "newer")
    for folders in (("older", "newer"), ("newer", "older")):
        done = archc("sweep", "--merge", *folders, "-o", "-".join(folders), "--json")
        assert [one["outcome"] for one in done.json["results"]] == ["pass", "pass"]
        assert done.err == "all/b: passes in one folder and fails in another; the newer is kept\n"


def test_a_changed_result_is_no_result(here: Path, runs: Runs) -> None:
    checkpoint("a")
    runs.codes = {"a": 1}
    archc("sweep", "a", "-o", "results")
    (file,) = Path("results").glob("*.json")
    file.write_text(file.read_text().replace('"findings"', '"pass"'))
    runs.again()
    for line in (("a",), ("--merge", "results")):
        done = archc("sweep", *line, "-o", "results")
        assert done.code == 2
        assert "changed since" in done.err
    assert runs.again() == []
    assert archc("sweep", "a", "-o", "results", "--force").code == 1


def test_a_result_under_another_jobs_name_is_not_merged(here: Path, runs: Runs) -> None:
    """A pass that is copied over a failure would count twice, and hide it."""
    for name in "ab":
        checkpoint(f"all/{name}")
    runs.codes = {"all/b": 1}
    archc("sweep", "all", "-o", "results")
    results = Results(Path("results"))
    results.file("all/b").write_bytes(results.file("all/a").read_bytes())
    done = archc("sweep", "--merge", "results", "-o", "other")
    assert done.code == 2
    assert "result of another job, 'all/a'" in done.err
    assert not Path("other").exists()
    runs.again()
    archc("sweep", "all", "-o", "results")
    assert runs.again() == ["all/b"]


def test_a_foreign_file_is_not_merged(here: Path) -> None:
    Path("other").mkdir()
    Path("other/package.json").write_text("{}")
    done = archc("sweep", "--merge", "other", "-o", "results")
    assert done.code == 2
    assert "package.json" in done.err
    assert not Path("results").exists()


def test_what_is_done_is_kept_when_a_sweep_is_interrupted(
    here: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        checkpoint(f"all/{name}")

    def until_b(jobs: list[Job], _: int) -> Iterator[tuple[Record, bytes]]:
        yield runs.run(jobs[0])
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("archc.sweep.engines.run_locally", until_b)
        done = archc("sweep", "all", "-o", "results")
    assert done.code == 3
    assert "1 of 3 jobs are done and kept in results" in done.err
    runs.again()
    archc("sweep", "all", "-o", "results")
    assert runs.again() == ["all/b", "all/c"]


def test_a_job_that_cannot_be_started_is_not_complete(here: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        checkpoint(f"all/{name}")

    def refuse_a(job: Job, stop: Event) -> tuple[Record, bytes]:
        if job.name == "all/a":
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return runs.run(job)

    monkeypatch.setattr("archc.sweep.engines.run_job", refuse_a)
    done = archc("sweep", "all", "-o", "results", "--json")
    assert done.code == 3
    assert [one["outcome"] for one in done.json["results"]] == ["incomplete", "pass"]
    assert "Resource temporarily unavailable" in done.json["results"][0]["said"]


@pytest.mark.parametrize(
    ("outside", "options", "threads"),
    [
        (None, ["--jobs", "2"], 4),
        (None, [], 8),
        (None, ["--jobs", "100"], 1),
        ("3", ["--jobs", "2"], 3),
        ("3", ["--threads", "5"], 5),
    ],
)
def test_jobs_side_by_side_share_the_cores(
    here: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, outside: str | None, options: list[str], threads: int
) -> None:
    checkpoint("a")
    monkeypatch.setattr("archc.sweep.engines.cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS")
    if outside:
        monkeypatch.setenv("OMP_NUM_THREADS", outside)
    archc("sweep", "a", "-o", "results", *options)
    assert [job.threads for job in runs.jobs] == [threads]


def test_without_ray_it_says_what_to_install(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint("a")
    monkeypatch.setitem(sys.modules, "ray", None)
    done = archc("sweep", "a", "-o", "results", "--engine", "ray")
    assert done.code == 3
    assert "pip install 'archc[ray]'" in done.err


def test_a_cluster_that_does_not_answer(here: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'archc[ray]'")
    checkpoint("a")
    done = archc("sweep", "a", "-o", "results", "--engine", "ray", "--ray-address", "127.0.0.1:1")
    assert done.code == 3
    assert "cannot reach Ray" in done.err


def test_names_never_lead_out_of_the_folder() -> None:
    for name in ("../../etc/passwd", "/", "..", "a" * 500, "-x", "é\n"):
        file = Results(Path("results")).file(name)
        assert file.parent == Path("results")
        assert not file.name.startswith((".", "-"))
        assert len(file.name) < 100


# ---------------------------------------------------------------- with real jobs


def result(folder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Results(Path(folder)).file(name).read_text())
    return found


def own_ray() -> dict[str, str]:
    """The environment of a Ray that is reached by nobody else, with a token that it does not keep."""
    return {**os.environ, "RAY_ADDRESS": "", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


@pytest.mark.slow
def test_every_way_that_a_job_can_end(here: Path) -> None:
    TINY[0].save(Path("good"))
    checkpoint("damaged", Path("good/config.json").read_text())
    Path("killed.py").write_text(KILLED)
    Path("wrong.yaml").write_text("archc: 1\nname: x\n")
    killed, planted, wrong = "good --port killed.py:load", "good --set norm.eps=1e-5", "wrong.yaml --weights good"
    Path("list").write_text("\n".join(["good", planted, "damaged", killed, wrong, "absent"]))
    done = archc("sweep", "list", "-o", "results", "--jobs", "2")
    assert done.code == 1
    assert done.out.endswith("1 of 6 pass, 2 fail, 3 not complete\n")

    good = result("results", "good")
    assert good["passed"]
    assert good["job"]["exit_code"] == 0
    assert good["job"]["peak_memory_bytes"] > 10**8
    assert good["job"]["versions"]["torch"].startswith("2.")
    assert "PASS: at most" in Results(Path("results")).file("good").with_suffix(".log").read_text()
    found = result("results", planted)
    assert found["job"]["outcome"] == "findings"
    assert found["diagnosis"][0]["field"] == "norm.eps"
    assert result("results", wrong)["job"]["reason"] == "wrong.yaml:1:1: error[E102]: vocab_size is missing"
    for name, code, said in (
        ("damaged", 3, "is cut short"),
        (killed, 3, "ended by the signal SIGKILL"),
        ("absent", 2, "no spec 'absent'"),
    ):
        header = result("results", name)["job"]
        assert (header["outcome"], header["exit_code"]) == ("incomplete", code)
        assert said in header["reason"]


@pytest.mark.slow
def test_a_job_that_takes_too_long_is_ended(here: Path) -> None:
    Path("hanging.py").write_text(HANGING)
    Path("list").write_text("tiny --port hanging.py:load\n")
    done = archc("sweep", "list", "-o", "results", "--timeout", "0.5", "--json")
    assert done.code == 3
    assert done.json["results"][0]["said"] == "took longer than 0.5 seconds; give it more with --timeout"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "number"), [("local", signal.SIGINT), pytest.param("ray", signal.SIGTERM, marks=needs_ray)]
)
def test_an_interrupted_sweep_leaves_no_process(here: Path, engine: str, number: int) -> None:
    checkpoint("damaged")
    Path("hanging.py").write_text(HANGING)
    Path("list").write_text("damaged\ntiny --port hanging.py:load\n")
    command = [sys.executable, "-m", "archc", "sweep", "list", "-o", "results", "--engine", engine]
    sweep = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own_ray())
    deadline = time.monotonic() + 240
    while not list(Path("results").glob("*.json")) or not (
        Path("pid").exists() and Path("pid").read_text().endswith("\n")
    ):
        assert sweep.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.1)
    sweep.send_signal(number)
    _, said = sweep.communicate(timeout=60)
    assert sweep.returncode == 3
    assert "1 of 2 jobs are done and kept in results" in said
    assert is_gone(int(Path("pid").read_text()))
    assert len(list(Path("results").glob("*.json"))) == 1


def is_gone(process: int) -> bool:
    """Whether a process ends; what was told to may take a moment on a busy machine."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


def test_only_jobs_load_torch(tmp_path: Path) -> None:
    (tmp_path / "list").write_text("absent\n")
    heavy, done = run_watched(RUN_ARCHC, "sweep", str(tmp_path / "list"), "-o", str(tmp_path / "results"))
    assert done.returncode == 3, done.stderr
    assert heavy == []


@pytest.mark.slow
@needs_ray
def test_ray_runs_the_same_jobs(here: Path) -> None:
    TINY[0].save(Path("good"))
    checkpoint("damaged", Path("good/config.json").read_text())
    Path("killed.py").write_text(KILLED)
    Path("list").write_text("good\ndamaged\ngood --port killed.py:load\n")
    command = [sys.executable, "-m", "archc", "sweep", "list", "-o", "results", "--engine", "ray", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, env=own_ray(), check=False, timeout=300)
    assert done.returncode == 3, done.stderr
    outcomes = {one["name"]: one["outcome"] for one in json.loads(done.stdout)["results"]}
    assert outcomes == {"good": "pass", "damaged": "incomplete", "good --port killed.py:load": "incomplete"}
    assert result("results", "good")["passed"]
    again = subprocess.run(command, capture_output=True, text=True, env=own_ray(), check=False, timeout=300)
    assert "1 of 3 jobs have a verdict already" in again.stderr
