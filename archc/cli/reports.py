"""The files that `archc validate` writes besides its verdict, for continuous integration."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from archc.cli.options import html_option, json_option, output_option
from archc.cli.output import emit_json, emit_sarif, require_json_target
from archc.errors import ArchcError

if TYPE_CHECKING:
    from archc.architecture import Compiled
    from archc.checkpoints.hashes import FileHash
    from archc.render.findings import Document


@dataclass(frozen=True, slots=True)
class Reports:
    """Where each report goes, None for those that nobody asked for; `force` and `strict` as the options say."""

    json: str | None
    junit: str | None
    sarif: str | None
    certificate: str | None
    html: str | None
    force: bool
    strict: bool

    @contextmanager
    def about(self, target: str) -> Iterator[None]:
        """Refuses files that may not be replaced, before the work that they are to hold; then says if that is stopped.

        Where a run has no verdict, its reports say why, so that none of an earlier run is taken for this one's. A
        certificate states what it was made of, and is left as it is.
        """
        for document in (self.json, self.sarif, self.certificate):
            require_json_target(document, force=self.force)
        if self.junit is not None:
            from archc.files import require_stamped

            require_stamped(Path(self.junit), force=self.force)
        if self.html is not None:
            from archc.render.pages.page import require_page

            require_page(self.html, force=self.force)
        try:
            yield
        except ArchcError as error:
            with suppress(ArchcError):  # what stopped the run matters more
                self._write_error(target, error)
            raise

    def write(self, document: Document, compiled: Compiled, folder: Path, port: Path | None) -> None:
        """Write what was asked for about a run with a verdict; `port` is the file that the port is in, if any."""
        if self.json is not None:
            emit_json(document, self.json, force=self.force)
        if self.junit is not None:
            from archc.render.junit import gate_junit

            self._write_junit(gate_junit(document, strict=self.strict))
        if self.sarif is not None:
            from archc.render.sarif import gate_sarif

            emit_sarif(gate_sarif(document, compiled, strict=self.strict), self.sarif, force=self.force)
        if self.certificate is not None:
            from archc.render.certificate import certificate

            weights, code = hash_checkpoint(folder), None if port is None else _hash_file(port)
            emit_json(certificate(document, weights, code, strict=self.strict), self.certificate, force=self.force)
        if self.html is not None:
            from archc.render.pages.validation import validation_page

            self._write_page(validation_page(document, strict=self.strict))

    def _write_error(self, target: str, error: ArchcError) -> None:
        if self.junit is not None:
            from archc.render.junit import error_junit

            self._write_junit(error_junit(target, error))
        if self.sarif is not None:
            from archc.render.sarif import error_sarif

            emit_sarif(error_sarif(target, error), self.sarif, force=self.force)
        if self.html is not None:
            from archc.render.pages.validation import stopped_page

            self._write_page(stopped_page(target, error))

    def _write_junit(self, body: str) -> None:
        from archc.files import stamped_xml, write_stamped

        write_stamped(stamped_xml(body), Path(str(self.junit)), force=self.force)

    def _write_page(self, page: str) -> None:
        from archc.render.pages.page import write_page

        write_page(page, str(self.html), force=self.force)


def report_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--strict`, `--force` and an option for each kind of report, passed together as `reports`."""

    @functools.wraps(function)
    def bundled(
        *,
        json_target: str | None,
        junit: str | None,
        sarif: str | None,
        certificate: str | None,
        html: str | None,
        force: bool,
        strict: bool,
        **others: Any,
    ) -> Any:
        return function(reports=Reports(json_target, junit, sarif, certificate, html, force, strict), **others)

    command: Callable[..., Any] = html_option(json_option(bundled))
    for option in (
        output_option("--certificate", metavar="FILE", help="Write a certificate: hashes, versions, figures."),
        output_option("--sarif", metavar="FILE", help="Write findings as SARIF, each at its line of the spec."),
        output_option("--junit", metavar="FILE", help="Write JUnit XML: a case for everything that was asked."),
        click.option("--strict", is_flag=True, help="Exit 1 also where a mistake would go unseen."),
    ):
        command = option(command)
    return command


def hash_checkpoint(folder: Path) -> list[FileHash]:
    """The hashes of a checkpoint's files, with a progress bar."""
    from archc.checkpoints.hashes import checkpoint_files, hash_files
    from archc.cli.progress import progress_bar

    files = checkpoint_files(folder)
    with progress_bar() as progress:
        task = progress.add_task("hashing the weights", total=sum(file.stat().st_size for file in files))
        return hash_files(files, lambda count: progress.advance(task, count))


def _hash_file(file: Path) -> FileHash:
    from archc.checkpoints.hashes import hash_files

    return hash_files([file])[0]
