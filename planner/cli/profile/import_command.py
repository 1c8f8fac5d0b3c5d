"""``plan profile import``."""

from __future__ import annotations

from collections.abc import Iterable

import click

MOST_REFUSED = 40

FORMATS = """\b
FORMAT is one of
  aiconfigurator  all tables of one system of aiconfigurator-core (--system)
  deepep          the latency table of DeepEP's README (CSV or Markdown)
  dynamo          raw_data.npz or *_raw_data.json of Dynamo's profiler, or their folder
  nccl-tests      logs of nccl-tests; all_gather=FILE where a log does not name its test
  nvbandwidth     output of nvbandwidth, text or JSON (--buffer-bytes)
  rccl-tests      logs of rccl-tests
  vidur           Vidur's mlp.csv, all_reduce.csv, send_recv.csv of one device"""


@click.command(
    "import",
    help=f"Turn FILES of a foreign FORMAT into a profile.\n\n{FORMATS}\n\nWhat was left out, and why, goes to stderr.",
    epilog="Example: plan profile import nccl-tests all_reduce.log -o mycluster.json",
)
@click.argument("format")
@click.argument("files", nargs=-1)
@click.option("--system", metavar="NAME", help="aiconfigurator: the system to read, for example h200_sxm.")
@click.option("--family", "families", metavar="NAME", multiple=True, help="Keep only this family (repeatable).")
@click.option(
    "--buffer-bytes", type=click.IntRange(1, 1 << 40), metavar="N", help="nvbandwidth: the size of the copied buffer."
)
@click.option("--name", metavar="NAME", help="Name of the new profile.")
@click.option("-o", "--output", metavar="PATH", default="-", help="Write here instead of stdout.")
def command(
    format: str,
    files: tuple[str, ...],
    system: str | None,
    families: tuple[str, ...],
    buffer_bytes: int | None,
    name: str | None,
    output: str,
) -> None:
    """Turn files of a foreign format into a profile document."""
    from planner.files import write_atomically
    from profiles.files import document_bytes
    from profiles.importers import run

    if format == "aiconfigurator" and system is not None and not families:
        _tell([f"reading all tables of {system}: minutes for a large system; --family reads less"])
    document, report = run(format, files, system=system, name=name, families=families, buffer_bytes=buffer_bytes)
    _tell(report.notes)
    _tell(report.refused[:MOST_REFUSED])
    if (more := len(report.refused) - MOST_REFUSED) > 0:
        _tell([f"and {more} more lines refused"])
    write_atomically(output, document_bytes(document))
    if output != "-":
        _tell([f"wrote {output}; next: plan profile check {output}"])


def _tell(messages: Iterable[str]) -> None:
    from planner.printable import printable

    for message in messages:
        click.echo(printable(message), err=True)
