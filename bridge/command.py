"""How a command of the command line runs, and what the user can mend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bridge import interpreting, interrupt
from bridge.files import write_whole

ROOT = Path(__file__).resolve().parent.parent


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


class Problem(click.ClickException):
    """What the user can mend: one sentence, exit status 2."""

    exit_code = 2


def checkout() -> Path:
    """The root of the checkout. Raises Problem in an installed wheel, which has no Lean sources."""
    if not (ROOT / "lakefile.lean").exists():
        raise Problem(f"this command needs a checkout of the project; {ROOT} has no lakefile.lean")
    return ROOT


def write(path: Path, text: str) -> None:
    """A whole file or none. Raises Problem where it cannot be written."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise Problem(f"{path} cannot be written: {error.strerror or error}") from error
