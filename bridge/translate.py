"""The command `translate`: the Spec in Python, and the compiled kernels in Lean."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import click
from rich.console import Console

from bridge.command import Command, Problem, checkout, tell_written, write, writing


@click.command(cls=Command)
@click.option("--check", is_flag=True, help="Write nothing; exit 1 if a file is not current.")
@click.option("--kernels", is_flag=True, help="Write the compiled kernels in Lean instead.")
def translate(check: bool, kernels: bool) -> None:
    """Translate the Spec to Python.

    Reads Lean's own terms, writes bridge/spec. Exit status 1 if a definition has no translation, or
    the library does not build.

    --kernels: reads Triton's compiled text, writes Attention/Kernel/Generated; --check also checks
    that each launch compiles to this text. Skips Triton versions without recorded texts.
    """
    if kernels:
        _translate_kernels(checkout(), check)
        return
    from bridge.audit.library import LibraryFailure
    from bridge.report.verify import Verification
    from bridge.translation import make
    from bridge.translation.errors import UntranslatableError

    root = checkout()
    if importlib.util.find_spec("ruff") is None:
        raise Problem(f"{sys.executable} has no package ruff; run make setup first")
    try:
        verification = Verification(root, Console(stderr=True))
        with writing("the files"):
            wanted = make.texts(verification.library, verification.stage)
            changed = (make.differing_files if check else make.replace)(root, wanted)
    except (LibraryFailure, UntranslatableError) as error:
        raise click.ClickException(str(error)) from error
    if check and changed:
        click.echo("\n".join(f"{name} differs from Lean's terms" for name in changed))
        raise click.ClickException("run .venv/bin/python -m bridge translate")
    said = f"{len(wanted)} files are current" if check else "nothing changed"
    click.echo("\n".join(f"wrote {name}" for name in changed) or said)


def _translate_kernels(root: Path, check: bool) -> None:
    """`translate --kernels`."""
    from bridge import interpreting

    interpreting.settle(False)
    from bridge.ttir import texts
    from bridge.ttir.syntax import TtirError

    if check and not texts.is_compared():
        click.echo(f"not compared: {texts.triton_version()} is none of {texts.COMPARED}")
        return
    try:
        wanted = texts.texts()
        changed = texts.differing_files(root, wanted)
        others = [name for text in texts.TEXTS for name in texts.differing_launches(text)]
    except TtirError as error:
        raise click.ClickException(str(error)) from error
    if check:
        lines = [f"{name} differs from the compiled kernel" for name in changed]
        lines += [f"another text than that of its class is launched: {name}" for name in others]
        if lines:
            click.echo("\n".join(lines))
            raise click.ClickException("run .venv/bin/python -m bridge translate --kernels")
        click.echo(f"{len(wanted)} files are current")
        return
    for name in changed:
        if name in wanted:
            write(root / name, wanted[name])
        else:
            (root / name).unlink()
    if others:
        raise click.ClickException(
            "another text than that of its class is launched: " + "; ".join(others)
        )
    tell_written(changed)
