"""The command `conform`: anybody's attention function on the vectors."""

from __future__ import annotations

import difflib
import itertools
import secrets
import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console

from bridge.command import Command, Problem
from bridge.files import why_not_writable, write_whole

if TYPE_CHECKING:
    # Imported where they are used: they import PyTorch, which `--help` does without.
    from bridge.conformance.features import Aligned
    from bridge.conformance.fresh import Fresh
    from bridge.conformance.outcome import Conditions, Outcome
    from bridge.conformance.subject import Subject
    from bridge.vectors.model.attention import Family


class Conform(Command):
    """A command whose help lists the implementations; they are imported only for that."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from bridge.conformance.adapters import libraries

        rows = [(name, ", ".join(libraries.find(name).dtypes)) for name in libraries.names()]
        with formatter.section("Implementations, with their dtypes"):
            formatter.write_dl(rows)


@click.command(cls=Conform)
@click.argument("implementation", nargs=-1)
@click.option("--dtype", multiple=True, help="float64, float32, float16 or bfloat16; default: all.")
@click.option("--device", default="cpu", show_default=True, help="As PyTorch names it.")
@click.option(
    "--rounding-model",
    help="Sets the tolerances: generous, flash, …; default: an adapter's own, else generous.",
)
@click.option("--family", multiple=True, help="Only vectors of this family (repeatable).")
@click.option("--vector", multiple=True, help="Only the vector with this id (repeatable).")
@click.option("--without", multiple=True, help="Skip vectors that need this feature (repeatable).")
@click.option(
    "--alignment",
    "causal_alignment",
    type=click.Choice(["top-left", "bottom-right"]),
    default="top-left",
    show_default=True,
    help="How is_causal is aligned, for a function without an argument that says so.",
)
@click.option(
    "--undeclared", is_flag=True, help="Also run vectors that an adapter declares to fail."
)
@click.option(
    "--time-limit",
    default=60.0,
    show_default=True,
    help="Seconds of processor time a call may use, or wait without using any.",
)
@click.option(
    "--also", multiple=True, metavar="PATH", help="Let the function read this file or folder."
)
@click.option(
    "--require-sandbox", is_flag=True, help="Fail where the system has no sandbox for functions."
)
@click.option(
    "--first-failure", is_flag=True, help="Stop at the first failure; the most telling come first."
)
@click.option("--seed", type=int, help="Seed of the vectors' order; default: random.")
@click.option(
    "--fresh", metavar="SEED", type=int, help="Seed of the fresh vectors; default: random."
)
@click.option("--count", metavar="N", type=int, help="Fresh vectors to draw, 0 for none.")
@click.option("--large", is_flag=True, help="Fresh vectors at real sizes too, up to 16,384 keys.")
@click.option(
    "--json",
    "json_to",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Write JSON to FILE.json; to standard output, instead of a table, for - or no FILE.",
)
@click.option("--junit", metavar="FILE", help="Write JUnit XML, for continuous integration.")
@click.option("--html", metavar="FILE", help="Write an HTML page that shows each failure.")
def conform(
    implementation: tuple[str, ...],
    dtype: tuple[str, ...],
    device: str,
    rounding_model: str | None,
    family: tuple[str, ...],
    vector: tuple[str, ...],
    without: tuple[str, ...],
    causal_alignment: Aligned,
    undeclared: bool,
    time_limit: float,
    also: tuple[str, ...],
    require_sandbox: bool,
    first_failure: bool,
    seed: int | None,
    fresh: int | None,
    count: int | None,
    large: bool,
    json_to: str | None,
    junit: str | None,
    html: str | None,
) -> None:
    """Test attention implementations on the vectors.

    IMPLEMENTATION: module:function, path/to/file.py:function, or one of those below; default:
    the built-in ones of pyimpl.

    Exit status 0 if every supported vector passes, 1 if one fails, 2 for misuse.
    """
    from bridge.conformance.adapters import builtin as adapters
    from bridge.conformance.adapters import callables, libraries
    from bridge.conformance.adapters.adapter import ALL_DTYPES
    from bridge.conformance.features import NAMES
    from bridge.conformance.inside import found
    from bridge.conformance.outcome import Conditions
    from bridge.conformance.rounding_model import CHOICES
    from bridge.conformance.subject import Subject

    names = implementation or tuple(n for n in adapters.BUILTIN if n.startswith("pyimpl-"))
    for name in names:
        if name not in libraries.names() and not callables.is_callable_name(name):
            hint = (
                f"To test a function in that file, give {name}:FUNCTION_NAME"
                if name.endswith(".py")
                else "Give module:function or file.py:function"
            )
            raise Problem(
                f"IMPLEMENTATION: {name!r} is not an implementation. {hint}, or one that is "
                f"built in: {', '.join(libraries.names())}"
            )
        if callables.is_callable_name(name) and not found.is_well_formed(name):
            raise Problem(
                f"IMPLEMENTATION: {name!r} is given; module:function or file.py:function is "
                "accepted, or the name of a built-in implementation"
            )
        absent = libraries.missing(name)
        if absent is not None:
            raise Problem(f"IMPLEMENTATION: {name} needs what is not here: pip install {absent}")
    known_dtypes = "a dtype that the vectors run in"
    _check_known("--dtype", dtype, ALL_DTYPES, known_dtypes)
    _check_known(
        "--rounding-model",
        () if rounding_model is None else (rounding_model,),
        CHOICES,
        "a rounding model",
    )
    _check_known("--without", without, NAMES, "a feature")
    for name in names:
        if callables.is_callable_name(name):
            continue
        if without:
            raise Problem(f"--without: {name} is built in; features are declared of functions")
        if causal_alignment != "top-left":
            raise Problem(f"--alignment: {name} is built in and declares its own")
    if not 0 < time_limit < 1e6:
        raise Problem(f"--time-limit: {time_limit:g} is not a number of seconds above 0")
    if json_to not in (None, "-") and not str(json_to).endswith(".json"):
        raise Problem(f"--json: {json_to!r} does not end with .json; FILE.json or - is accepted")
    check_files({"--json": None if json_to == "-" else json_to, "--junit": junit, "--html": html})
    check_device(device)
    drawn = fresh_vectors(fresh, count, large, family, vector)
    families = choose_committed(family, vector)
    for path in also:
        if not Path(path).exists():
            raise Problem(f"--also: there is no file or folder {path!r}")
    conditions = Conditions(
        device, time_limit, tuple(map(Path, also)), require_sandbox, first_failure, drawn
    )
    if seed is not None:
        conditions = replace(conditions, seed=seed)
    run = Conformance(dtype, families, conditions)
    for name in names:
        run.add(
            Subject(
                name,
                rounding_model,
                without,
                undeclared=undeclared,
                causal_alignment=causal_alignment,
            )
        )
    if not run.results:
        raise Problem(f"--dtype: {'; '.join(run.skipped)}")
    run.write(json_to, junit, html)
    if json_to != "-":
        run.show()
    sys.exit(0 if run.ok else 1)


class Conformance:
    """One call of the command: what was run, and what was not."""

    def __init__(
        self, dtypes: tuple[str, ...], families: Sequence[Family], conditions: Conditions
    ) -> None:
        self.dtypes, self.families, self.conditions = dtypes, families, conditions
        self.results: list[Outcome] = []
        self.skipped: list[str] = []

    @property
    def ok(self) -> bool:
        """Everything that was run passes, and something was run of each."""
        return all(outcome.result.ok for outcome in self.results)

    def add(self, subject: Subject) -> None:
        """Run it in the dtypes asked for. Raises Problem for what cannot be run at all."""
        from bridge.conformance.features import CallableError
        from bridge.conformance.outcome import outcomes
        from bridge.conformance.sandbox.session import NoSandboxError

        def announce(text: str) -> None:
            if "does not take" in text:
                self.skipped.append(text)
            click.echo(text, err=True)

        try:
            found = [*outcomes(subject, self.families, self.dtypes, self.conditions, announce)]
        except CallableError as error:
            raise Problem(f"IMPLEMENTATION: {subject.name}: {error}") from error
        except NoSandboxError as error:
            raise Problem(f"--require-sandbox: this system has none: {error}") from error
        if any(outcome.result.failures for outcome in found):
            from bridge.conformance.likely import with_likely

            announce(f"{subject.name}: the likely cause …")
            drawn = () if self.conditions.fresh is None else self.conditions.fresh.families
            found = with_likely(found, [*self.families, *drawn])
        self.results += found

    def write(self, json_to: str | None, junit_to: str | None, html_to: str | None) -> None:
        """The files that were asked for. Raises Problem for one that cannot be written."""
        import json

        from bridge.report.junit import junit
        from bridge.report.page import page

        if json_to is not None:
            text = json.dumps([one.to_json() for one in self.results], allow_nan=False)
            if json_to == "-":
                click.echo(text)
            else:
                _write("--json", json_to, text + "\n")
        if junit_to is not None:
            _write("--junit", junit_to, junit(self.results))
        if html_to is not None:
            drawn = () if self.conditions.fresh is None else self.conditions.fresh.families
            _write("--html", html_to, page(self.results, [*self.families, *drawn]))

    def show(self) -> None:
        """Tables on the terminal: by family for one implementation, else a line for each."""
        from bridge.report import tables

        console = Console()
        results = [outcome.to_json() for outcome in self.results]
        tables.implementations(console, {"device": self.conditions.device, "results": results})
        if len({outcome.subject.name for outcome in self.results}) == 1:
            tables.by_family(console, results)
        if any(outcome.description.features is not None for outcome in self.results):
            console.print(f"Order of the vectors: --seed {self.conditions.seed}.", highlight=False)
        if self.conditions.fresh is not None:
            words = " ".join(self.conditions.fresh.options())
            console.print(f"Fresh vectors: {words}.", highlight=False, soft_wrap=True)
        for why in sorted({o.without_walls for o in self.results if o.without_walls is not None}):
            console.print(
                tables.no_sandbox(why),
                style="bold red", highlight=False, markup=False, soft_wrap=True,
            )  # fmt: skip
        for sentence in self.skipped:
            console.print(f"Not run: {sentence}", highlight=False, markup=False, soft_wrap=True)


def check_files(files: dict[str, str | None]) -> None:
    """Raises Problem, before anything runs, for files that could not be written, and for two that
    are one; by their options."""
    seen: dict[Path, str] = {}
    for option, name in files.items():
        if name is None:
            continue
        path = Path(name)
        try:
            if not path.absolute().parent.is_dir():
                raise Problem(f"{option}: there is no folder for {name!r}")
            if not name or path.is_dir():
                raise Problem(f"{option}: {name!r} is a folder; the name of a file is accepted")
            # What is there and no regular file, such as a pipe, is not replaced but written to.
            there = path.exists() and not path.is_file()
            why = None if there else why_not_writable(path)
        except OSError as error:
            why, there = error.strerror or type(error).__name__, False
        if why is not None:
            raise Problem(f"{option}: {name!r} cannot be written: {why}")
        before = seen.setdefault(path.resolve(), option)
        if before != option and not there:
            raise Problem(f"{option}: {name!r} is the file of {before}, too; another is accepted")


def _write(option: str, name: str, text: str) -> None:
    """A whole file or none. Raises Problem where it cannot be written."""
    try:
        write_whole(Path(name), text)
    except OSError as error:
        raise Problem(f"{option}: {name!r} cannot be written: {error.strerror}") from error


def choose_vectors(families: tuple[str, ...], ids: tuple[str, ...]) -> list[Family]:
    """The vectors that were asked for; all if none were. Raises Problem for a name that none has,
    and for damaged vectors."""
    from bridge.vectors.format import index
    from bridge.vectors.format.fields import VectorError
    from bridge.vectors.load import default_directory, load

    try:
        entries = index.entries_of(default_directory())
        _check_known("--family", families, [e["family"] for e in entries], "a family")
        ids_of = {e["family"]: index.ids(e) for e in entries}
        _check_known("--vector", ids, itertools.chain(*ids_of.values()), "the id of a vector")
        of_ids = [name for name, known in ids_of.items() if not set(ids).isdisjoint(known)]
        loaded = load(names=[*families, *of_ids] if families or ids else None)
    except VectorError as error:
        raise Problem(str(error)) from error
    found = []
    for family in loaded:
        whole = family.name in families or not (families or ids)
        vectors = tuple(v for v in family.vectors if whole or v.id in ids)
        found.append(replace(family, vectors=vectors))
    return found


def fresh_vectors(
    seed: int | None,
    count: int | None,
    large: bool,
    families: tuple[str, ...],
    ids: tuple[str, ...],
) -> Fresh | None:
    """The fresh vectors that were asked for; without a choice of vectors some by default, with one
    those alone that it names. None: none. Raises Problem for what cannot be drawn."""
    from bridge.conformance import fresh as drawing

    number = drawing.COUNT if count is None else count
    if not 0 <= number <= drawing.MOST:
        raise Problem(f"--count: {number} is given; 0 to {drawing.MOST} are accepted")
    if seed is not None and seed < 0:
        raise Problem(f"--fresh: {seed} is given; a seed of 0 or more is accepted")
    names = tuple(name for name in families if name in drawing.FAMILIES)
    of_fresh = tuple(id for id in ids if _is_fresh(id))
    if not number:
        if seed is not None or large or names or of_fresh:
            raise Problem("--count: 0 is given with fresh vectors to draw; 1 or more is accepted")
        return None
    asked = not (families or ids) or seed is not None or count is not None or large
    if not (asked or names or of_fresh):
        return None
    if of_fresh and seed is None:
        raise Problem("--vector: a fresh vector is another for each seed: --fresh SEED is missing")
    drawn = drawing.Fresh(
        secrets.randbelow(1 << 32) if seed is None else seed, number, large, names, of_fresh
    )
    listed = drawn.listed()
    _check_known("--vector", of_fresh, [id for _, id in listed], "a fresh vector of this count")
    _check_known("--family", names, [name for name, _ in listed], "a fresh family of this count")
    return drawn


def _is_fresh(id: str) -> bool:
    from bridge.conformance.fresh import FAMILIES

    return id.rpartition("-")[0] in FAMILIES


def choose_committed(families: tuple[str, ...], ids: tuple[str, ...]) -> list[Family]:
    """`chosen`, for a choice that may name fresh vectors too."""
    from bridge.conformance.fresh import FAMILIES

    others = tuple(name for name in families if name not in FAMILIES)
    of_files = tuple(id for id in ids if not _is_fresh(id))
    nothing_else = (families or ids) and not (others or of_files)
    return [] if nothing_else else choose_vectors(others, of_files)


def _check_known(option: str, given: Iterable[str], accepted: Iterable[str], what: str) -> None:
    """Raises Problem for what is not accepted, with all that is, or the nearest of many (of
    families and vectors alone there are many)."""
    known = list(accepted)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, 3)
            if len(known) <= 20:
                hint = f"{', '.join(known)} are"
            elif near:
                hint = f"the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
            else:
                hint = "docs/vectors.md lists the families"
            raise Problem(f"{option}: {name!r} is not {what}; {hint}")


def check_device(device: str) -> None:
    """Raises Problem for a device that PyTorch does not have here."""
    import torch

    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise Problem(f"--device: PyTorch cannot use {device!r} here: {reason}") from error
