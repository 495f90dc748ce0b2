"""The command `conform`: anybody's attention function on the vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from bridge import garbage
from bridge.command import Command, Problem, write
from bridge.files import why_not_writable

_PATH = click.Path(path_type=Path, readable=False)


class Conform(Command):
    """A command whose help lists the implementations; they are imported only for that."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from bridge.conformance.adapters import libraries

        rows = [(name, ", ".join(libraries.find(name).dtypes)) for name in libraries.names()]
        with formatter.section("Implementations, with their dtypes"):
            formatter.write_dl(rows)


@click.command(cls=Conform)
@click.argument("implementation", nargs=-1)
@click.option(
    "--dtype", "dtypes", multiple=True, help="float64, float32, float16 or bfloat16; default: all."
)
@click.option("--device", default="cpu", show_default=True, help="A device of PyTorch.")
@click.option(
    "--rounding-model",
    help="Sets the tolerances: generous, flash, …; default: an adapter's own, else generous.",
)
@click.option(
    "--family", "families", multiple=True, help="Only vectors of this family (repeatable)."
)
@click.option(
    "--vector", "vectors", multiple=True, help="Only the vector with this id (repeatable)."
)
@click.option("--without", multiple=True, help="Skip vectors that need this feature (repeatable).")
@click.option(
    "--require", multiple=True, help="Fail if this feature or dtype is unsupported (repeatable)."
)
@click.option(
    "--alignment",
    type=click.Choice(["top-left", "bottom-right"]),
    default="top-left",
    show_default=True,
    help="Alignment of is_causal, for a function without an argument for it.",
)
@click.option(
    "--undeclared", is_flag=True, help="Also run vectors that an adapter declares as failing."
)
@click.option(
    "--time-limit",
    default=60.0,
    show_default=True,
    help="Seconds of processor time a call may use, or wait without using any.",
)
@click.option(
    "--also",
    multiple=True,
    type=_PATH,
    metavar="PATH",
    help="Let the function read this file or folder.",
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
@click.option(
    "--buffers",
    type=click.Choice(["some", "all", "none"]),
    default="some",
    show_default=True,
    help="Which calls to make again with their inputs in larger buffers, NaN around them.",
)
@click.option(
    "--problem",
    type=_PATH,
    metavar="FILE",
    help="A KernelBench problem; IMPLEMENTATION is then a class, such as FILE.py:ModelNew.",
)
@click.option(
    "--operation",
    type=click.Choice(["attention", "decode"]),
    default="attention",
    show_default=True,
    help="Operation of the function; decode: it is called step by step with a cache.",
)
@click.option(
    "--definition",
    type=_PATH,
    metavar="FILE",
    help="A definition of FlashInfer-Bench; IMPLEMENTATION is then a file with a Solution.",
)
@click.option(
    "--workload",
    type=_PATH,
    metavar="FILE",
    help="Traces of the definition's workloads, for their sizes.",
)
@click.option(
    "--processes",
    type=int,
    metavar="N",
    help="Call the function from N processes, each with its shards of the sequence.",
)
@click.option(
    "--layout",
    type=click.Choice(["contiguous", "zigzag", "striped"]),
    default="contiguous",
    show_default=True,
    help="Division of the sequence into shards, with --processes.",
)
@click.option("--trace", metavar="FILE", help="Write the verdict on a Solution as Traces.")
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
@garbage.rare_searches()
def conform(
    implementation: tuple[str, ...],
    json_to: str | None,
    junit: str | None,
    html: str | None,
    trace: str | None,
    **options: Any,
) -> None:
    """Test attention implementations on the vectors.

    IMPLEMENTATION: module:function, path/to/file.py:function, or one of those below; default:
    the built-in ones of pyimpl.

    Exit status 0 if every supported vector passes and every requirement is met, 1 if not, 2
    for misuse.
    """
    with garbage.no_search():
        from bridge.conformance.adapters import builtin as adapters
        from bridge.conformance.functions.features import CallableError
        from bridge.conformance.requests.request import Misuse, Request
        from bridge.conformance.sandbox.session import NoSandboxError
        from bridge.verdict import judge

    if json_to not in (None, "-") and not str(json_to).endswith(".json"):
        raise Problem(f"--json: {json_to!r} does not end with .json; FILE.json or - is accepted")
    check_files({"--json": None if json_to == "-" else json_to, "--junit": junit, "--html": html,
                 "--trace": trace})  # fmt: skip
    if trace is not None and options["definition"] is None:
        raise Problem("--trace: is given without --definition, and is of a Solution")
    try:
        names = implementation or tuple(n for n in adapters.BUILTIN if n.startswith("pyimpl-"))
        request = Request(names, **options)
        verdict = judge(request, lambda text: click.echo(text, err=True))
    except Misuse as error:
        options_of = {one.name: one.opts[0] for one in click.get_current_context().command.params}
        named = options_of.get(error.argument, "IMPLEMENTATION")
        raise Problem(f"{named}: {error.sentence}") from error
    except CallableError as error:
        raise Problem(f"IMPLEMENTATION: {error}") from error
    except NoSandboxError as error:
        raise Problem(f"--require-sandbox: this system has none: {error}") from error
    if json_to == "-":
        click.echo(verdict.json())
    elif json_to is not None:
        write(Path(json_to), verdict.json() + "\n", f"--json: {json_to!r}")
    if junit is not None:
        write(Path(junit), verdict.junit(), f"--junit: {junit!r}")
    if trace is not None:
        write(Path(trace), verdict.traces(), f"--trace: {trace!r}")
    if html is not None:
        write(Path(html), verdict.html(), f"--html: {html!r}")
    if json_to != "-":
        verdict.show(Console())
    sys.exit(0 if verdict.ok else 1)


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
            # A pipe, or another thing that is no regular file, is not replaced but written to.
            there = path.exists() and not path.is_file()
            why = None if there else why_not_writable(path)
        except OSError as error:
            why, there = error.strerror or type(error).__name__, False
        if why is not None:
            raise Problem(f"{option}: {name!r} cannot be written: {why}")
        before = seen.setdefault(path.resolve(), option)
        if before != option and not there:
            raise Problem(f"{option}: {name!r} is the file of {before}, too; another is accepted")
