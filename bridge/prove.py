"""The command `prove`: whether a Triton kernel's own text computes attention."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from bridge.command import Command, Problem
from bridge.conform import check_files
from bridge.files import write_whole

_OWN = ("forward", "varlen", "decode", "combine", "backward")
_DTYPES = ("float32", "float16", "bfloat16")


class Compiling(Command):
    """A command that needs Triton's compiler."""

    interprets = False


@click.command(cls=Compiling)
@click.argument("kernel")
@click.option("--dtype", type=click.Choice(_DTYPES), default="float16", show_default=True,
              help="Of the tensors that a launcher is given.")  # fmt: skip
@click.option("--layout", type=click.Choice(["bhnd", "bnhd"]), default="bhnd", show_default=True,
              help="Heads before or after lengths.")  # fmt: skip
@click.option("--causal-alignment", type=click.Choice(["top-left", "bottom-right"]),
              default="top-left", show_default=True, help="Of a causal mask.")  # fmt: skip
@click.option("--minus-infinity", type=float, multiple=True, metavar="NUMBER",
              help="A number in the kernel that stands for −∞, such as -1e6.")  # fmt: skip
@click.option("--arch", type=click.IntRange(80, 129), default=90, show_default=True,
              help="Compute capability that is compiled for.")  # fmt: skip
@click.option("--configuration", type=click.IntRange(0), default=0, show_default=True,
              help="Which of an autotuned kernel's.")  # fmt: skip
@click.option("--seconds", default=60.0, show_default=True,
              help="Processor time for all inputs of shapes.")  # fmt: skip
@click.option("--json", "json_to", metavar="FILE", help="Write the verdict as JSON too.")
def prove(
    kernel: str,
    dtype: str,
    layout: str,
    causal_alignment: str,
    minus_infinity: tuple[float, ...],
    arch: int,
    configuration: int,
    seconds: float,
    json_to: str | None,
) -> None:
    """Compare what a Triton kernel stores with attention.

    KERNEL: forward, varlen, decode, combine or backward, the project's own; or file.py:kernel,
    where launch_kernel(query, key, value) launches it; or file.py:function, which launches one.

    Exit status 0: EQUAL, 1: WRONG, 3: CANNOT TELL; 2 for misuse.
    """
    if kernel not in _OWN and ":" not in kernel:
        own = ", ".join(_OWN)
        raise Problem(f"KERNEL: {kernel!r} is given; {own} or file.py:kernel is accepted")
    place, _, attribute = kernel.rpartition(":")
    if kernel not in _OWN and not (place.endswith(".py") and Path(place).is_file() and attribute):
        raise Problem(f"KERNEL: {kernel!r} is given, and there is no file {place!r} of Python")
    if not 0 < seconds < 1e6:
        raise Problem(f"--seconds: {seconds:g} is not a number of seconds above 0")
    check_files({"--json": json_to})
    if kernel in _OWN:
        verdict = _own(kernel, seconds)
    else:
        options: dict[str, Any] = {
            "dtype": dtype, "layout": layout, "arch": arch, "configuration": configuration,
            "minus_infinity": minus_infinity,
        }  # fmt: skip
        verdict = _foreign(kernel, causal_alignment, seconds, options)
    click.echo(verdict.text())
    if json_to is not None:
        write_whole(Path(json_to), json.dumps(verdict.to_json(), indent=2) + "\n")
    sys.exit(verdict.status)


def _own(name: str, seconds: float) -> Any:
    from bridge.proving import lean
    from bridge.proving.own import SUBJECTS
    from bridge.proving.procedure import prove

    return prove(SUBJECTS[name], lean=lean.said, seconds=seconds, said=_said)


def _foreign(name: str, alignment: str, seconds: float, options: dict[str, Any]) -> Any:
    from bridge.proving.foreign import Foreign, ForeignError
    from bridge.proving.kernel import Kernel
    from bridge.proving.procedure import prove
    from bridge.spec.masks import Alignment

    aligned = Alignment.BOTTOM_RIGHT if alignment == "bottom-right" else Alignment.TOP_LEFT
    try:
        with Foreign(name) as process:
            subject = Kernel(name, process, alignment=aligned, **options)
            verdict = prove(subject, lean=lambda _: _NO_LEAN, seconds=seconds, said=_said)
    except ForeignError as error:
        raise Problem(f"KERNEL: {name}: {error}") from error
    if all(level.word is None for level in verdict.levels):
        _, why = verdict.levels[0].refused[0]
        raise Problem(f"KERNEL: {name} takes none of the shapes; of the first it said: {why}")
    return verdict


_NO_LEAN = "no proof; those of the project are about its own kernels"


def _said(line: str) -> None:
    click.echo(line, err=True)
