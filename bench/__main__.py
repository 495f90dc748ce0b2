"""Time `pyimpl` against its peers, side by side in one process.

    .venv/bin/python -m bench                    # everything; on the GPU if there is one
    .venv/bin/python -m bench forward --device cpu --lengths 1024 --json build/bench.json
    .venv/bin/python -m bench backward           # forward and backward together, and backward alone

docs/performance.md describes the measurements and how to read them.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import NoReturn, get_args

import torch

from bench import plot, report
from bench.cases import DTYPES, Case, Mask, MaskName, Operation
from bench.measure import Bench, Measured
from bench.peers import PEERS, ours
from bench.timing import Rate, clock_for, copy_rate, matmul_rate
from bridge.files import why_not_writable, write_whole
from pyimpl import attention
from pyimpl.backends.dispatch import Backend

# The names of the command line, with their operations.
OPERATIONS: dict[str, tuple[Operation, ...]] = {
    "forward": ("forward",),
    "backward": ("forward+backward", "backward"),
    "decode": ("decode",),
}
# For each of these, minutes on a GPU and on a CPU: the cases fit a command of ten minutes, and one
# of a quarter of an hour.
MINUTES = {True: 8.5, False: 15.0}
# Queries of a case on a GPU, all sequences together, but of decode: they fill it at every length.
GPU_TOKENS = 16384


class Parser(argparse.ArgumentParser):
    """Misuse is one sentence and status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def minutes(text: str) -> float:
    """A number of minutes, above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return number


def parser() -> Parser:
    """The command line; defaults that depend on the device are filled in by `completed`."""
    p = Parser(prog="python -m bench", description="Time pyimpl against its peers.")
    p.add_argument("operation", nargs="?", choices=OPERATIONS, help="one alone; all if not given")
    p.add_argument("--device", choices=["cpu", "cuda"], help="cuda if there is one")
    p.add_argument("--backend", choices=get_args(Backend), default="auto", help="of pyimpl")
    p.add_argument("--peers", nargs="+", choices=PEERS, metavar="PEER", help=", ".join(PEERS))
    p.add_argument("--dtypes", nargs="+", choices=DTYPES, metavar="DTYPE", help=", ".join(DTYPES))
    p.add_argument("--head-dims", nargs="+", type=positive, metavar="N")
    p.add_argument(
        "--lengths", nargs="+", type=positive, metavar="N",
        help="of queries and keys in forward and backward, of keys in decode",
    )  # fmt: skip
    p.add_argument(
        "--masks", nargs="+", choices=get_args(MaskName), metavar="MASK",
        help="of forward and backward: " + ", ".join(get_args(MaskName)),
    )  # fmt: skip
    p.add_argument("--window", type=positive, default=256, metavar="N", help="of those masks")
    p.add_argument("--batch", type=positive, metavar="N")
    p.add_argument("--heads", type=positive, metavar="N")
    p.add_argument("--kv-heads", type=positive, metavar="N")
    p.add_argument(
        "--page-size", type=positive, metavar="N", help="decode from pages of N keys as well"
    )
    p.add_argument("--repeats", type=positive, metavar="N", help="rounds, at most")
    p.add_argument("--minutes", type=minutes, metavar="M", help="for everything together")
    p.add_argument("--json", type=Path, metavar="FILE", help="write all that was found")
    p.add_argument("--plot", type=Path, metavar="FILE", help="draw it: " + ", ".join(plot.FORMATS))
    p.add_argument("--output", type=Path, metavar="FILE", help="write the printed lines")
    return p


def complete_options(p: Parser, arguments: list[str]) -> argparse.Namespace:
    """The options with their defaults; misuse ends the program before anything is measured."""
    options = p.parse_args(arguments)
    cuda = torch.cuda.is_available()
    options.device = options.device or ("cuda" if cuda else "cpu")
    on_gpu = options.device == "cuda"
    if on_gpu and not cuda:
        p.error("argument --device: PyTorch has no CUDA device here")
    asked = [options.operation] if options.operation else list(OPERATIONS)
    options.operations = [operation for name in asked for operation in OPERATIONS[name]]
    options.peers = list(dict.fromkeys(options.peers or PEERS))
    options.dtypes = options.dtypes or (["bfloat16", "float16"] if on_gpu else ["float32"])
    options.head_dims = options.head_dims or ([64, 128, 256] if on_gpu else [64])
    options.masks = options.masks or (["full", "causal"] if on_gpu else list(get_args(MaskName)))
    options.repeats = options.repeats or (30 if on_gpu else 15)
    options.minutes = options.minutes or MINUTES[on_gpu] * len(asked)
    named = {name: getattr(options, name) for name in ("json", "plot", "output")}
    given = {name: path for name, path in named.items() if path is not None}
    for name, path in given.items():
        refusal = why_not_writable(path)
        if refusal is not None:
            p.error(f"argument --{name}: {path} cannot be written: {refusal}")
    if len({path.resolve() for path in given.values()}) < len(given):
        p.error("arguments --json, --plot and --output must name different files")
    if options.plot is not None:
        if options.plot.suffix not in plot.FORMATS:
            ends = ", ".join(plot.FORMATS)
            p.error(f"argument --plot: {options.plot} must end in one of {ends}")
        if not plot.has_matplotlib():
            p.error("argument --plot: needs the package matplotlib, which is not installed")
    for operation in options.operations:
        heads, kv_heads = _heads(options, operation)
        if heads % kv_heads:
            p.error(f"argument --kv-heads: {kv_heads} does not divide the heads, {heads}")
    _try_backend(p, options)
    return options


def _try_backend(p: Parser, options: argparse.Namespace) -> None:
    """A backend that does not take the arguments is misuse: it is tried on one query and key."""
    if options.backend == "auto":
        return
    for name in options.dtypes:
        for head_dim in options.head_dims:
            one = torch.zeros(1, 1, 1, head_dim, dtype=DTYPES[name], device=options.device)
            try:
                attention(one, one, one, backend=options.backend)
            except (ImportError, ValueError) as error:
                p.error(f"argument --backend: {error}")


def _heads(options: argparse.Namespace, operation: Operation) -> tuple[int, int]:
    """Heads of the queries, and of the keys: a quarter in decode, otherwise as many, unless it is
    said otherwise."""
    usual = (32 if operation == "decode" else 16) if options.device == "cuda" else 8
    heads = options.heads or usual
    shared = heads // 4 if operation == "decode" and heads % 4 == 0 else heads
    return heads, options.kv_heads or shared


def cases(options: argparse.Namespace) -> list[Case]:
    """The cases to measure, in order."""
    found = []
    on_gpu = options.device == "cuda"
    for operation in options.operations:
        heads, kv_heads = _heads(options, operation)
        is_decode = operation == "decode"
        usual = [1024, 8192, 65536]
        if not is_decode:
            usual = [1024, 4096, 16384] if on_gpu else [4096 if operation == "forward" else 2048]
        masks = [Mask.of_name(name, options.window) for name in options.masks]
        if is_decode:
            masks = [Mask("full")]
        page_sizes = [None]
        if is_decode and options.page_size is not None:
            page_sizes.append(options.page_size)
        for dtype in options.dtypes:
            for head_dim in options.head_dims:
                for mask in masks:
                    for page_size in page_sizes:
                        for length in options.lengths or usual:
                            fill = 16 if is_decode else max(1, GPU_TOKENS // length)
                            found.append(
                                Case(
                                    operation,
                                    dtype,
                                    options.batch or (fill if on_gpu else 1),
                                    heads,
                                    kv_heads,
                                    1 if is_decode else length,
                                    length,
                                    head_dim,
                                    mask,
                                    page_size,
                                )
                            )
    return found


def main(arguments: list[str] | None = None) -> None:
    """The command line described at the top of this module."""
    arguments = sys.argv[1:] if arguments is None else arguments
    p = parser()
    options = complete_options(p, arguments)
    try:
        _run(p, options, shlex.join(["python", "-m", "bench", *arguments]))
    except KeyboardInterrupt:
        p.exit(130, f"{p.prog}: interrupted; no file was written\n")


def _run(p: Parser, options: argparse.Namespace, command: str) -> None:
    lines: list[str] = []

    def say(*more: str) -> None:
        lines.extend(more)
        print(*more, sep="\n", flush=True)

    device = torch.device(options.device)
    date, machine = report.utc_now(), report.Machine.here(device)
    say(*report.heading(command, date, machine))
    clock = clock_for(device)
    rates: list[Rate] = [matmul_rate(clock, DTYPES[name], device) for name in options.dtypes]
    if "decode" in options.operations:
        rates.append(copy_rate(clock, device))
    for rate in rates:
        say(report.rate_line(rate))
    bench = Bench(
        ours(options.backend),
        {name: PEERS[name] for name in options.peers},
        device,
        clock,
        rounds=options.repeats,
        rates={rate.dtype: rate for rate in rates},
    )
    run: list[Measured] = []
    on_gpu = device.type == "cuda"
    for measured in bench.run(cases(options), 60.0 * options.minutes):
        operation = measured.case.operation
        if not run or run[-1].case.operation != operation:
            say("", report.headings(operation, on_gpu))
        run.append(measured)
        say(*report.case_lines(measured, on_gpu))
    say(*report.summary(run, on_gpu))
    contents: list[tuple[Path | None, bytes]] = [(options.output, _encode(lines))]
    if options.json is not None:
        text = report.as_json(command, date, machine, rates, run, report.load_average())
        contents.append((options.json, text.encode()))
    if options.plot is not None:
        title = f"{machine.device}, {date}\n{command}"
        contents.append((options.plot, plot.draw(run, rates, title, options.plot.suffix)))
    for path, content in contents:
        if path is None:
            continue
        try:
            write_whole(path, content)
        except OSError as error:
            p.exit(1, f"{p.prog}: {path} could not be written: {error.strerror}\n")


def _encode(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


if __name__ == "__main__":
    main()
