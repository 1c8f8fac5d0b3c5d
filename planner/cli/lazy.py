"""A group whose commands are imported when they are run or asked for their own help: all at once would double the time
of ``--help``."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import ClassVar

import click


class NoCommandError(click.UsageError):
    """The word is none of the group's commands."""


class LazyGroup(click.Group):
    """`summaries` gives each command's name and what the list says of it; it lives in `package`.<name>_command."""

    summaries: ClassVar[Mapping[str, str]] = {}
    package: ClassVar[str] = ""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.summaries:
            return None
        command = importlib.import_module(f"{self.package}.{cmd_name}_command").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from planner.fields import nearest

            raise NoCommandError(f'no command "{args[0]}"{nearest(args[0], self.summaries)}', ctx) from error
