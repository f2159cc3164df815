"""`archc sweep`: the gate over many checkpoints."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from archc.cli.options import count, json_option, output_option
from archc.cli.output import emit_json, require_json_target
from archc.cli.sweep_results import Results
from archc.errors import UsageError
from archc.spec.diagnostics import printable

if TYPE_CHECKING:
    from archc.sweep.job import Job
    from archc.sweep.record import Record
    from archc.sweep.targets import Target

HELP = """Run archc validate over many checkpoints, each in a process of its own, and keep what came of each.

\b
Examples:
  archc sweep checkpoints/ -o results/
  archc sweep list.txt -o results/ --jobs 4 --timeout 3600
  archc sweep checkpoints/ -o results/ -- --strict --dtype bfloat16
  archc sweep checkpoints/ -o results-2/ --shard 2/8
  archc sweep --merge results-1/ results-2/ -o results/
  archc sweep list.txt -o results/ --engine ray --ray-address auto

DIR stands for every checkpoint below it (config.json and safetensors files). LIST is a file of lines that would follow
archc validate: a checkpoint, or a spec and its options; # begins a comment. What follows -- is for every
job. A job that crashes, runs out of memory or takes too long is not complete; the others go on. Run the same line again
to go on: jobs with a verdict are not run again unless the spec, the checkpoint's headers, the options or the versions
of archc, torch and transformers changed. Where --merge finds two results for a job, it keeps the newer, but one with
a verdict before one without. Exit code 1 where any job fails, else 3 where any is not complete.
"""
_OWN_OPTIONS: Final = {"json_target": "--json", "junit": "--junit", "sarif": "--sarif", "certificate": "--certificate"}
"""Options of validate that name one file, which jobs would take from each other."""


@dataclass(frozen=True, slots=True)
class _How:
    """What the options say of the jobs: how many at once, on how many cores, for how long, which, and who runs them."""

    jobs: int | None
    threads: int | None
    timeout: float | None
    shard: tuple[int, int]
    engine: str
    ray_address: str | None

    def check(self) -> None:
        """Raises UsageError where an option is for another engine."""
        if self.engine == "local" and self.ray_address is not None:
            raise UsageError("--ray-address is for --engine ray", "add it, or leave this out")
        if self.engine == "ray" and self.jobs is not None:
            raise UsageError("--jobs is for one machine; Ray runs as many as its cores allow", "use --threads")

    def threads_each(self) -> int:
        """The cores of each job."""
        from archc.sweep.engines import cores

        outside = os.environ.get("OMP_NUM_THREADS", "")
        if self.threads is not None or (outside.isdecimal() and int(outside)):
            return self.threads or int(outside)
        return 1 if self.engine == "ray" else max(1, cores() // (self.jobs or 1))


class _Passing(click.Command):
    """A command that does not read what follows `--`, and is given it as `passed`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, passed = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
        rest = super().parse_args(ctx, own)
        ctx.params["passed"] = tuple(passed)
        return rest


def _shard(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, int]:
    if text is None:
        return 1, 1
    number, slash, of = text.partition("/")
    if not (slash and number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise click.BadParameter(f"{text[:40]!r} is not I/N, such as 2/8: the second of eight.")
    return int(number), int(of)


@click.command("sweep", cls=_Passing, help=HELP)
@click.argument("sources", metavar="DIR|LIST...", nargs=-1, required=True)
@click.option("-o", "--output", metavar="RESULTS", required=True, help="Folder for the results; made if it is absent.")
@click.option("--jobs", type=count, metavar="N", help="How many run side by side here; 1 unless given.")
@click.option(
    "--threads",
    type=count,
    metavar="N",
    help="Cores of each job. Unless given, OMP_NUM_THREADS, or the cores of this machine shared out; 1 on Ray.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    help="What one job may take; as long as it likes unless given.",
)
@click.option(
    "--shard", callback=_shard, metavar="I/N", help="Every N-th job, from the I-th on: for machines that share a list."
)
@click.option("--merge", is_flag=True, help="Run nothing: put the results in these folders together in RESULTS.")
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", help="Who runs the jobs.")
@click.option(
    "--ray-address", metavar="ADDRESS", help="Of the Ray cluster; RAY_ADDRESS, or this machine, unless given."
)
@output_option("--junit", metavar="FILE", help="Write JUnit XML: a case for every job.")
@json_option
def command(
    sources: tuple[str, ...],
    output: str,
    merge: bool,
    junit: str | None,
    json_target: str | None,
    force: bool,
    passed: tuple[str, ...],
    **how: Any,
) -> int:
    """Run or merge, print or write the summary; 0 if every job passes, 1 if any fails, else 3."""
    from archc.files import require_stamped
    from archc.render.sweep import print_sweep, sweep_document

    require_json_target(json_target, force=force)
    if junit is not None:
        require_stamped(Path(junit), force=force)
    results = Results(Path(output), force)
    records = _merge(sources, results, passed) if merge else _sweep(sources, results, passed, _How(**how))
    if junit is not None:
        from archc.files import stamped_xml, write_stamped
        from archc.render.junit import sweep_junit

        write_stamped(stamped_xml(sweep_junit(records)), Path(junit), force=force)
    if json_target is not None:
        emit_json(sweep_document(records), json_target, force=force)
    if json_target != "-":
        print_sweep(records)
    outcomes = {record.header.outcome for record in records}
    return 1 if "findings" in outcomes else 3 if "incomplete" in outcomes else 0


def _merge(folders: Sequence[str], results: Results, passed: Sequence[str]) -> list[Record]:
    if passed:
        raise UsageError("--merge runs nothing that options behind -- could be for", "leave them out")
    others = [Results(Path(folder)) for folder in folders]
    for one in others:
        one.records()  # before a folder is made for nothing
    results.prepare()
    for name in results.take(others):
        click.echo(printable(f"{name}: passes in one folder and fails in another; the newer is kept"), err=True)
    return results.records()


def _sweep(sources: Sequence[str], results: Results, passed: tuple[str, ...], how: _How) -> list[Record]:
    """Run what has no result yet; the records of all jobs, in the order of the sources."""
    from archc.sweep.engines import run_locally, run_on_ray

    how.check()
    wanted = _wanted(_targets(sources), passed, how)
    results.prepare()
    found = {job.name: record for job in wanted if (record := results.read(job.name)) and _holds(record, job)}
    left = [job for job in wanted if job.name not in found]
    if found:
        click.echo(f"{len(found)} of {len(wanted)} jobs have a verdict already", err=True)
    if left:
        running = run_on_ray(left, how.ray_address) if how.engine == "ray" else run_locally(left, how.jobs or 1)
        with closing(running):
            found |= {record.header.name: record for record in _kept(running, results, len(left))}
    return [found[job.name] for job in wanted]


def _holds(record: Record, job: Job) -> bool:
    """Whether a result has a verdict, and on what the job would be run on now."""
    return record.header.outcome != "incomplete" and record.header.fingerprint == job.fingerprint


def _kept(running: Iterator[tuple[Record, bytes]], results: Results, total: int) -> Iterator[Record]:
    """The records as they come, each written before the next is waited for."""
    from archc.cli.progress import progress_bar
    from archc.render.sweep import job_line

    done = 0
    with progress_bar() as progress:
        task = progress.add_task(f"0 of {total} jobs", total=total)
        try:
            for record, log in running:
                results.write(record, log)
                done += 1
                progress.update(task, advance=1, description=f"{done} of {total} jobs")
                progress.console.print(job_line(record.header), soft_wrap=True)
                yield record
        except KeyboardInterrupt:
            click.echo(f"{done} of {total} jobs are done and kept in {results.folder}; run again to go on", err=True)
            raise


def _targets(sources: Sequence[str]) -> list[Target]:
    from archc.sweep.targets import targets_of

    targets: list[Target] = []
    for source in sources:
        found, left_out = targets_of(source)
        targets += found
        for line in left_out:
            click.echo(printable(f"left out: {line}"), err=True)
    return targets


def _wanted(targets: Sequence[Target], passed: tuple[str, ...], how: _How) -> list[Job]:
    """The jobs of this machine. All are read first, so that a wrong line is found before any job runs."""
    from archc.sweep.fingerprint import fingerprint, versions
    from archc.sweep.job import Job
    from archc.sweep.targets import shard

    read: dict[str, tuple[tuple[str, ...], Mapping[str, Any]]] = {}
    for target in targets:
        words = _with_options(target.words, passed)
        read.setdefault(shlex.join(words), (words, _options(words, target.origin)))
    installed, here, threads = versions(), Path.cwd(), how.threads_each()
    return [
        Job(
            words,
            name,
            fingerprint(words, options["target"], options["weights"], _code(options), installed),
            here,
            threads,
            how.timeout,
        )
        for name, (words, options) in shard(list(read.items()), *how.shard)
    ]


def _with_options(words: tuple[str, ...], passed: tuple[str, ...]) -> tuple[str, ...]:
    """A job's own words, with the options for every job where its own win over them."""
    first = 0 if words[0].startswith("-") else 1
    return (*words[:first], *passed, *words[first:])


def _options(words: tuple[str, ...], origin: str) -> Mapping[str, Any]:
    """What `archc validate` reads in its words. Raises UsageError where it would refuse them."""
    from archc.cli.validate import command as validate

    try:
        with validate.make_context("archc validate", list(words)) as context:
            options = context.params
    except click.exceptions.Exit:  # --help
        raise UsageError(f"{printable(origin)}: this asks for help", "name what is to be validated") from None
    except click.ClickException as error:
        raise UsageError(
            f"{printable(origin)}: {error.format_message()}", "write what would follow `archc validate`"
        ) from None
    if clashing := [name for key, name in _OWN_OPTIONS.items() if options.get(key) is not None]:
        raise UsageError(
            f"{printable(origin)}: a sweep keeps the results, and {clashing[0]} is not for it",
            "leave it out, or give --json or --junit to archc sweep for a summary",
        )
    return options


def _code(options: Mapping[str, Any]) -> Path | None:
    """The file that a port is in, if it is in one."""
    from archc.cli.port_options import ChosenPort

    return ChosenPort(options["place"], options["port_command"], options["trace"], 0).file
