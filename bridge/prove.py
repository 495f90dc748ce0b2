"""The command `prove`: whether a Triton kernel's own text computes attention."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import click

from bridge.command import Command, Problem, write
from bridge.conform import check_files
from bridge.proving.published import PUBLISHED, Published

ROOT = Path(__file__).resolve().parents[1]
_OWN = ("forward", "varlen", "decode", "combine", "backward")
_DTYPES = ("float32", "float16", "bfloat16")


class Compiling(Command):
    """A command that needs Triton's compiler."""

    interprets = False


@click.command(cls=Compiling)
@click.argument("kernel")
@click.option("--dtype", type=click.Choice(_DTYPES), default="float16", show_default=True,
              help="Dtype of the tensors passed to a launcher.")  # fmt: skip
@click.option("--layout", type=click.Choice(["bhnd", "bnhd"]), default="bhnd", show_default=True,
              help="Order of the dimensions: heads before or after lengths.")  # fmt: skip
@click.option("--alignment", "causal_alignment", default="top-left", show_default=True,
              type=click.Choice(["top-left", "bottom-right"]),
              help="Alignment of a causal mask.")  # fmt: skip
@click.option("--backward", is_flag=True,
              help="Compare the gradients of the launcher's results too.")  # fmt: skip
@click.option("--minus-infinity", type=float, multiple=True, metavar="NUMBER",
              help="A number in the kernel that stands for −∞, such as -1e6.")  # fmt: skip
@click.option("--masked-loads", type=float, metavar="NUMBER",
              help="Value of a masked load without `other`: 0.")  # fmt: skip
@click.option("--arch", type=click.IntRange(80, 129), default=90, show_default=True,
              help="Compute capability to compile for.")  # fmt: skip
@click.option("--configuration", type=click.IntRange(0), default=0, show_default=True,
              help="Number of the autotuned kernel's configuration.")  # fmt: skip
@click.option("--seconds", default=60.0, show_default=True,
              help="Processor time for all inputs, and again for whole numbers.")  # fmt: skip
@click.option("--keep", is_flag=True,
              help="Keep the verdict on a published kernel for docs/findings.md.")  # fmt: skip
@click.option("--json", "json_to", metavar="FILE", help="Write the verdict as JSON too.")
def prove(
    kernel: str,
    causal_alignment: str,
    seconds: float,
    keep: bool,
    json_to: str | None,
    **options: Any,
) -> None:
    """Compare the results of a Triton kernel with attention.

    KERNEL: forward, varlen, decode, combine or backward, the project's own; flex_attention,
    fla-parallel-attn or conch-varlen-attention, of packages; or file.py:kernel, where
    launch_kernel(query, key, value) launches it; or file.py:function, which launches one.

    Exit status 0: EQUAL, 1: WRONG, 3: CANNOT TELL; 2 for misuse.
    """
    published = PUBLISHED.get(kernel)
    backward, masked_loads = options["backward"], options["masked_loads"]
    if kernel not in _OWN and published is None:
        place, colon, attribute = kernel.rpartition(":")
        if not colon:
            named = ", ".join((*_OWN, *PUBLISHED))
            raise Problem(f"KERNEL: {kernel!r} is given; {named} or file.py:kernel is accepted")
        if not (place.endswith(".py") and Path(place).is_file() and attribute):
            raise Problem(
                f"KERNEL: there is no Python file {place!r}, of which {kernel!r} names a function"
            )
    if published is not None:
        options["layout"] = published.layout
        _refuse(published, backward)
    if keep and not (ROOT / "docs").is_dir():
        raise Problem(f"--keep: is for a checkout of the project; {ROOT} has no docs")
    if keep and (options["minus_infinity"] or masked_loads is not None):
        declared = "--minus-infinity" if options["minus_infinity"] else "--masked-loads"
        raise Problem(f"--keep: is for verdicts under no declaration; {declared} is given")
    if keep and published is None:
        raise Problem(f"--keep: is for {', '.join(PUBLISHED)}; {kernel} is given")
    if masked_loads is not None and not math.isfinite(masked_loads):
        raise Problem(f"--masked-loads: {masked_loads} is given, and a finite number is accepted")
    if not 0 < seconds < 1e6:
        raise Problem(f"--seconds: {seconds:g} is not a number of seconds above 0")
    check_files({"--json": json_to})
    if backward and kernel in _OWN:
        raise Problem(
            f"--backward: is for file.py:kernel; {kernel} is given, and there is backward"
        )
    if kernel in _OWN:
        verdict = _own(kernel, seconds)
    else:
        launcher = kernel if published is None else published.launcher
        if masked_loads is None and published is not None and backward:
            options["masked_loads"] = published.masked_loads
        verdict = _foreign(kernel, launcher, causal_alignment, seconds, options)
    click.echo(verdict.text())
    if json_to is not None:
        write(Path(json_to), json.dumps(verdict.to_json(), indent=2) + "\n", f"--json: {json_to!r}")
    if keep and published is not None:
        from bridge.findings import verdicts

        verdicts.keep(ROOT, published, verdict, causal_alignment, backward=backward)
    sys.exit(verdict.status)


def _own(name: str, seconds: float) -> Any:
    from bridge.proving import lean
    from bridge.proving.own import SUBJECTS
    from bridge.proving.procedure import prove

    return prove(SUBJECTS[name], lean=lean.describe_texts, seconds=seconds, said=_describe)


def _refuse(published: Published, backward: bool) -> None:
    """Raise Problem for options that a published kernel does not have."""
    if backward and not published.gradients:
        raise Problem(f"--backward: {published.name} has no launcher with a backward pass")
    if published.version is None:
        install = f"{sys.executable} -m pip install --no-deps {' '.join(published.packages)}"
        raise Problem(f"KERNEL: {published.name} needs packages that are not installed: {install}")


def _foreign(
    name: str, launcher: str, alignment: str, seconds: float, options: dict[str, Any]
) -> Any:
    from bridge.proving.foreign import Foreign, ForeignError
    from bridge.proving.kernel import Kernel
    from bridge.proving.procedure import prove
    from bridge.spec.masks import Alignment

    aligned = Alignment.BOTTOM_RIGHT if alignment == "bottom-right" else Alignment.TOP_LEFT
    try:
        with Foreign(launcher) as process:
            subject = Kernel(name, process, alignment=aligned, **options)
            verdict = prove(subject, lean=lambda _: _NO_LEAN, seconds=seconds, said=_describe)
    except ForeignError as error:
        raise Problem(f"KERNEL: {name}: {error}") from error
    if all(level.word is None for level in verdict.levels):
        _, why = verdict.levels[0].refused[0]
        raise Problem(f"KERNEL: {name} takes none of the shapes; of the first it said: {why}")
    return verdict


_NO_LEAN = "no proof; those of the project are about its own kernels"


def _describe(line: str) -> None:
    click.echo(line, err=True)
