"""The command line: `.venv/bin/python -m bridge COMMAND`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn


def lacking(error: ModuleNotFoundError) -> NoReturn:
    """End with status 2 and one sentence, unless it is a module of the project that is missing."""
    name = (error.name or "").partition(".")[0]
    if name in ("", "bridge", "pyimpl"):
        raise error
    print(
        f"Error: {sys.executable} has no package {name}; run make verify first, then "
        ".venv/bin/python -m bridge …",
        file=sys.stderr,
    )
    sys.exit(2)


try:
    import click
    from rich.console import Console

    from bridge.conform import Problem, conform
except ModuleNotFoundError as error:
    lacking(error)

ROOT = Path(__file__).resolve().parent.parent


def checkout() -> Path:
    """The root of the checkout. Raises Problem in an installed wheel, which has no Lean sources."""
    if not (ROOT / "lakefile.lean").exists():
        raise Problem(f"this command needs a checkout of the project; {ROOT} has no lakefile.lean")
    return ROOT


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """From the Lean definitions of attention to checked kernels."""


@main.command()
def verify() -> None:
    """Check all proofs and implementations, and print the report.

    Every proof is checked, every implementation runs on the vectors, and each planted fault must
    be caught. Exit status 0 only if every line of the report is good. Also writes
    build/report.json and docs/theorems.md.
    """
    from bridge.report import tables
    from bridge.report.verify import Verification, write_report

    root = checkout()
    console = Console()
    verification = Verification(root, console)
    ok = verification.run()
    path = root / "build" / "report.json"
    write_report(verification.report, ok, path)
    tables.show(console, verification.report)
    verdict = "[green]Everything holds.[/]" if ok else "[red]Not everything holds; see above.[/]"
    console.print(f"{verdict} The whole report: {path.relative_to(root)}")
    sys.exit(0 if ok else 1)


@main.command()
def audit() -> None:
    """Build the library and check every stored proof term.

    Exit status 0 if nothing is found: no axiom but Lean's three, no sorry, no trust in the
    compiler, no unsafe code.
    """
    from bridge.report import tables
    from bridge.report.verify import Verification

    console = Console()
    verification = Verification(checkout(), console)
    verification.stage("toolchain", verification.find_lean)
    if verification.lean is not None and verification.stage("build", verification.build)["ok"]:
        verification.stage("audit", verification.audit)
    tables.show(console, verification.report)
    report = verification.report
    ok = "audit" in report and all(section["ok"] for section in report.values())
    found = "finds nothing wrong" if ok else "does not pass; see above"
    console.print(f"[{'green' if ok else 'red'}]The audit {found}.[/]")
    sys.exit(0 if ok else 1)


@main.command()
def watch() -> None:
    """Recheck a Lean file when it is saved, then what needs it."""
    from bridge.toolchain import ToolchainError
    from bridge.toolchain.watch import watch as run

    try:
        run(checkout())
    except ToolchainError as error:
        raise Problem(str(error)) from error


@main.command()
def vectors() -> None:
    """Write tests/vectors anew by running the Lean definitions."""
    from bridge.toolchain import ToolchainError, find
    from bridge.vectors import generate
    from bridge.vectors.fields import VectorError

    root = checkout()
    try:
        lean = find(root, announce=click.echo)
        click.echo("building the definitions …")
        if not lean.build([generate.MODULE]).ok:
            raise Problem("the Lean library does not build; see .venv/bin/lake build")
        click.echo("running the definitions; this can take a minute …")
        changed = generate.replace(lean.run, root / "tests" / "vectors")
    except (ToolchainError, VectorError) as error:
        raise Problem(str(error)) from error
    except OSError as error:
        raise Problem(f"tests/vectors cannot be written: {error.strerror or error}") from error
    click.echo("\n".join(f"wrote tests/vectors/{name}" for name in changed) or "nothing changed")


main.add_command(conform)


if __name__ == "__main__":
    try:
        main(prog_name="python -m bridge")
    except ModuleNotFoundError as error:
        lacking(error)
