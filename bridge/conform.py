"""The command `conform`: anybody's attention function on the vectors."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click
from rich.console import Console

if TYPE_CHECKING:
    # Imported where they are used: they import PyTorch, which `--help` does without.
    from bridge.conformance.isolated import Description, Subject
    from bridge.conformance.run import Result
    from bridge.vectors.model import Family


class Problem(click.ClickException):
    """What the user can mend: one sentence, exit status 2."""

    exit_code = 2


class Conform(click.Command):
    """A command whose help lists the implementations; they are imported only for that."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from bridge.conformance import adapters

        rows = [(name, ", ".join(adapters.builtin(name).dtypes)) for name in adapters.BUILTIN]
        with formatter.section("Implementations, with their dtypes"):
            formatter.write_dl(rows)


@click.command(cls=Conform)
@click.argument("implementation", nargs=-1)
@click.option("--dtype", multiple=True, help="float64, float32, float16 or bfloat16; default: all.")
@click.option("--device", default="cpu", show_default=True, help="As PyTorch names it.")
@click.option("--profile", help="What it may round; default: an adapter's own, else generous.")
@click.option("--family", multiple=True, help="Only the vectors of this family.")
@click.option("--vector", multiple=True, help="Only the vector with this id.")
@click.option("--without", multiple=True, help="An ability that a function is not to be asked for.")
@click.option("--time-limit", default=60.0, show_default=True, help="Seconds that a call may take.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def conform(
    implementation: tuple[str, ...],
    dtype: tuple[str, ...],
    device: str,
    profile: str | None,
    family: tuple[str, ...],
    vector: tuple[str, ...],
    without: tuple[str, ...],
    time_limit: float,
    as_json: bool,
) -> None:
    """Run attention functions over the vectors; default: those of pyimpl.

    IMPLEMENTATION: module:function, path/to/file.py:function, or one of those below.

    Exit status 0 if every vector that they cover passes, 1 if one fails, 2 for misuse.
    """
    from bridge.conformance import adapters
    from bridge.conformance.abilities import ARGUMENTS
    from bridge.conformance.isolated import Subject
    from bridge.conformance.profile import CHOICES

    names = implementation or tuple(n for n in adapters.BUILTIN if n.startswith("pyimpl-"))
    for name in names:
        if name not in adapters.BUILTIN and ":" not in name:
            known = ", ".join(adapters.BUILTIN)
            raise Problem(
                f"IMPLEMENTATION: there is no {name!r}; there are {known}, and any "
                "module:function or file.py:function"
            )
    known_dtypes = "a dtype that the vectors run in"
    _known("--dtype", dtype, adapters.ALL_DTYPES, known_dtypes)
    _known("--profile", () if profile is None else (profile,), CHOICES, "a profile")
    _known("--without", without, ARGUMENTS, "an ability")
    if not 0 < time_limit < 1e6:
        raise Problem(f"--time-limit: {time_limit:g} is not a number of seconds above 0")
    check_device(device)
    families = chosen(family, vector)
    run = Conformance(device, dtype, families, time_limit)
    for name in names:
        run.add(Subject(name, profile, without))
    if not run.results:
        raise Problem(f"--dtype: {'; '.join(run.skipped)}")
    run.print(as_json)
    sys.exit(0 if run.ok else 1)


@dataclass(frozen=True)
class Outcome:
    """One implementation in one dtype, with what is known of it."""

    subject: Subject
    description: Description
    result: Result


class Conformance:
    """One call of the command: what was run, and what was not."""

    def __init__(
        self, device: str, dtypes: tuple[str, ...], families: Sequence[Family], limit: float
    ) -> None:
        self.device, self.dtypes, self.families, self.limit = device, dtypes, families, limit
        self.results: list[Outcome] = []
        self.skipped: list[str] = []

    @property
    def ok(self) -> bool:
        """Everything that was run passes, and something was run of each."""
        return all(outcome.result.ok for outcome in self.results)

    def add(self, subject: Subject) -> None:
        """Run it in the dtypes asked for. Raises Problem for what cannot be run at all."""
        from bridge.conformance import adapters, callables, isolated
        from bridge.conformance.abilities import CallableError
        from bridge.conformance.run import run

        asked = self.dtypes or adapters.ALL_DTYPES
        function = callables.is_callable_name(subject.name)
        own = not function and adapters.builtin(subject.name).source is not None
        try:
            if function:
                click.echo(f"{subject.name}: what it takes …", err=True)
                description = isolated.describe(subject, self.device, asked, self.limit)
                subject = replace(subject, abilities=description.abilities)
            else:
                description = isolated.Description(adapters.builtin(subject.name).dtypes)
            lacking = [d for d in self.dtypes if d not in description.dtypes]
            if lacking:
                takes = ", ".join(description.dtypes)
                sentence = f"{subject.name} does not take {', '.join(lacking)}, but {takes}"
                self.skipped.append(sentence)
                click.echo(sentence, err=True)
            for dtype in description.dtypes:
                if dtype not in asked:
                    continue
                click.echo(f"{subject.name} {dtype} …", err=True)
                if own:
                    adapter = isolated.adapter_of(subject)
                    result = run(adapter, self.families, dtype, self.device, details=True)
                else:
                    result = isolated.run_isolated(
                        subject, self.families, dtype, self.device, self.limit
                    )
                self.results.append(Outcome(subject, description, result))
        except CallableError as error:
            raise Problem(f"IMPLEMENTATION: {subject.name}: {error}") from error

    def print(self, as_json: bool) -> None:
        """The results on the terminal."""
        import json

        from bridge.report import tables

        results = [outcome.result.to_json() for outcome in self.results]
        if as_json:
            click.echo(json.dumps(results, allow_nan=False))
            return
        tables.implementations(Console(), {"device": self.device, "results": results})


def chosen(families: tuple[str, ...], ids: tuple[str, ...]) -> list[Family]:
    """The vectors that were asked for; all if none were. Raises Problem for a name that none has,
    and for damaged vectors."""
    from bridge.vectors.fields import VectorError
    from bridge.vectors.load import load

    try:
        everything = load()
    except VectorError as error:
        raise Problem(str(error)) from error
    _known("--family", families, [f.name for f in everything], "a family")
    _known("--vector", ids, [v.id for f in everything for v in f.vectors], "the id of a vector")
    found = []
    for family in everything:
        whole = family.name in families or not (families or ids)
        vectors = tuple(v for v in family.vectors if whole or v.id in ids)
        if vectors:
            found.append(replace(family, vectors=vectors))
    return found


def _known(option: str, given: Iterable[str], accepted: Iterable[str], what: str) -> None:
    """Raises Problem for what is not accepted, with all that is, or the nearest of many."""
    known = list(accepted)
    for name in given:
        if name not in known:
            shown = known if len(known) <= 20 else difflib.get_close_matches(name, known, 3)
            hint = f"; {', '.join(shown)} are" if shown else ""
            raise Problem(f"{option}: {name!r} is not {what}{hint}")


def check_device(device: str) -> None:
    """Raises Problem for a device that PyTorch does not have here."""
    import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise Problem(f"--device: PyTorch cannot use {device!r} here: {reason}") from error
