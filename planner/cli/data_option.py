"""``--data``: where the arrays lie that a plan names by digest."""

from __future__ import annotations

import click

data_option = click.option(
    "--data",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Where arrays lie that the plan names by digest; its own folder otherwise.",
)
