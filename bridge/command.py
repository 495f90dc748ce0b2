"""How a command of the command line runs, and the errors that its user can mend."""

from __future__ import annotations

import atexit
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from bridge import garbage, interpreting, interrupt
from bridge.errors import MendableError
from bridge.files import write_whole

ROOT = Path(__file__).resolve().parent.parent


class Command(click.Command):
    """A command that settles, before it begins, whether Triton interprets its kernels, and that
    Ctrl-C ends with all that it started. `--help` and misuse come earlier, and do without
    PyTorch. An error that the user can mend (`MendableError`) ends it with its sentence.

    interprets: as of `interpreting.settle`.
    """

    interprets: bool | None = None

    def invoke(self, ctx: click.Context) -> Any:
        atexit.register(garbage.end_without_search)
        try:
            # It imports PyTorch.
            with garbage.no_search():
                interpreting.settle(self.interprets)
            return super().invoke(ctx)
        except MendableError as error:
            raise Problem(str(error)) from error
        except KeyboardInterrupt:
            interrupt.end_children()
            click.echo("Ended by Ctrl-C.", err=True)
            ctx.exit(interrupt.STATUS)


class Commands(click.Group):
    """Commands of this kind."""

    command_class = Command


class Problem(click.ClickException):
    """An error that the user can mend: one sentence, exit status 2."""

    exit_code = 2


def checkout() -> Path:
    """The root of the checkout. Raises Problem in an installed wheel, which has no Lean sources."""
    if not (ROOT / "lakefile.lean").exists():
        raise Problem(f"this command needs a checkout of the project; {ROOT} has no lakefile.lean")
    return ROOT


@contextmanager
def writing(file: object) -> Iterator[None]:
    """A block that writes a file. Raises Problem, which begins with `file`, where it cannot."""
    try:
        yield
    except OSError as error:
        raise Problem(f"{file} cannot be written: {error.strerror or error}") from error


def write(path: Path, text: str, named: str = "") -> None:
    """A whole file or none. Raises Problem where it cannot be written; named: how it begins."""
    with writing(named or path):
        write_whole(path, text)


def tell_written(changed: Iterable[str]) -> None:
    """Say which files were written."""
    click.echo("\n".join(f"wrote {name}" for name in changed) or "nothing changed")
