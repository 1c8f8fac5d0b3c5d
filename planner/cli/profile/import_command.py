"""``plan profile import``."""

from __future__ import annotations

import click


@click.command("import", epilog="Example: plan profile import nccl-tests all_reduce.log -o mycluster.json")
@click.argument("format")
@click.argument("files", nargs=-1)
@click.option("--system", metavar="NAME", help="aiconfigurator: the system to read, for example h200_sxm.")
@click.option("--name", metavar="NAME", help="Name of the new profile.")
@click.option("-o", "--output", metavar="PATH", default="-", help="Write here instead of stdout.")
def command(format: str, files: tuple[str, ...], system: str | None, name: str | None, output: str) -> None:
    """Turn FILES of a foreign FORMAT (nccl-tests, aiconfigurator) into a profile.

    What was dropped, and why, goes to stderr.
    """
    from planner.files import write_atomically
    from planner.printable import printable
    from profiles.files import document_bytes
    from profiles.importers import run

    document, messages = run(format, files, system=system, name=name)
    for message in messages:
        click.echo(printable(message), err=True)
    write_atomically(output, document_bytes(document))
