"""How a command of the command line runs."""

from __future__ import annotations

from typing import Any

import click

from bridge import interpreting, interrupt


class Command(click.Command):
    """A command that settles, before it begins, whether Triton interprets its kernels, and that
    Ctrl-C ends with all that it started. `--help` and misuse come earlier, and do without
    PyTorch.

    interprets: as of `interpreting.settle`.
    """

    interprets: bool | None = None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            interpreting.settle(self.interprets)
            return super().invoke(ctx)
        except KeyboardInterrupt:
            interrupt.end_children()
            click.echo("Ended by Ctrl-C.", err=True)
            ctx.exit(interrupt.STATUS)


class Commands(click.Group):
    """Commands of this kind."""

    command_class = Command
