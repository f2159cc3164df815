"""`archc explore`: one page to look at models, and change them."""

from __future__ import annotations

from pathlib import Path

import click

from archc.cli.options import STDOUT, force_option
from archc.errors import UsageError

HELP = """Write the explorer: one HTML file to look at models, and change them.

Every figure on it is what `archc report` says of the spec on screen. It holds the shipped specs, loads nothing, and
opens from disk. SPECs are added to them, and the first is the one it starts with; without any, that is gpt2.

\b
Examples:
  archc explore
  archc explore llama3-8b -o explorer.html
  archc explore my-model.yaml path/to/config.json
  archc explore my-model.yaml --serve

With --serve the page is on this machine's own address, and is loaded anew when a SPEC changes.
"""

_PORT = 8765
_OUTPUT = "explorer.html"


@click.command("explore", help=HELP)
@click.argument("specs", metavar="[SPEC...]", nargs=-1)
@click.option("-o", "--output", metavar="FILE", help=f"Where to write; {_OUTPUT} unless given.")
@force_option
@click.option("--serve", is_flag=True, help="Serve the page on 127.0.0.1 instead of writing it.")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help=f"Port to serve on; {_PORT} unless given, 0 for any."
)
def command(specs: tuple[str, ...], output: str | None, force: bool, serve: bool, port: int | None) -> None:
    """Write the page, or serve it."""
    if serve and (output is not None or force):
        raise UsageError("--serve writes no file", "leave out -o and --force, or --serve")
    if port is not None and not serve:
        raise UsageError("--port goes with --serve", "add --serve, or leave out --port")
    if serve:
        _serve(specs, _PORT if port is None else port)
    else:
        _write(specs, output or _OUTPUT, force)


def _write(specs: tuple[str, ...], output: str, force: bool) -> None:
    from archc.cli.progress import progress_bar
    from archc.explorer.data import page_data
    from archc.explorer.page import page
    from archc.files import require_stamped, stamped_html, write_stamped

    if output != STDOUT:
        require_stamped(Path(output), force=force)
    with progress_bar() as bar:
        bar.add_task("tracing the formulas", total=None)
        html = stamped_html(page(page_data(specs)))
    if output == STDOUT:
        click.echo(html.encode(), nl=False)
        return
    write_stamped(html, Path(output), force=force)
    click.echo(f"wrote {output}", err=True)


def _serve(specs: tuple[str, ...], port: int) -> None:
    from archc.cli.progress import progress_bar
    from archc.explorer.serve import HERE, Explorer, server

    with progress_bar() as bar:
        bar.add_task("tracing the formulas", total=None)
        explorer = Explorer(specs)
    with server(explorer, port) as running:
        click.echo(f"the explorer is at http://{HERE}:{running.server_address[1]}/ until Ctrl-C", err=True)
        try:
            running.serve_forever(poll_interval=0.2)
        except KeyboardInterrupt:
            click.echo("", err=True)
