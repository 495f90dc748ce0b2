"""Softmax attention as an approximation of functions, with the numbers of the theorem.

    .venv/bin/python -m bench.approximation                                # the table
    .venv/bin/python -m bench.approximation --plot docs/approximation.svg  # and the figure

`Attention.Claims.attention_approximates` says how many points and which inverse temperature are
enough. Here they are taken as it says, and attention is evaluated at many points of the box
(docs/approximation.md).
"""

from __future__ import annotations

import argparse
import io
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import torch
from torch import Tensor

from bench.plot import FORMATS, has_matplotlib
from bridge.files import why_not_writable, write_whole
from pyimpl import attention


@dataclass(frozen=True)
class Function:
    """A function on the box [a, b]ⁿ, to be approximated within epsilon.

    f: from points `[count, n]` to values `[count, m]`, float64. lipschitz: a bound of how far a
    component of f moves, divided by how far the point does, in Euclidean distance.
    """

    name: str
    f: Callable[[Tensor], Tensor]
    n: int
    a: float
    b: float
    lipschitz: float
    epsilon: float


@dataclass(frozen=True)
class Construction:
    """The theorem's constants. steps: N; delta: δ = (b − a) / N, so that f moves by at most ε/2
    over δ√n; beta: 4 N (N + 1)ⁿ / (3 n δ²), which is enough by `attention_approximates`; beta_log:
    ln(N (N + 1)ⁿ) / (¾ n δ²), which is enough by `attendNet_near`."""

    steps: int
    delta: float
    points: int
    beta: float
    beta_log: float


# sin moves by at most 2π ≤ 6.2832 for each unit of x, sin(πx) cos(πy) by at most π ≤ 3.1416.
WAVE = Function(
    "sin 2πx + |x − 0.6|",
    lambda x: torch.sin(2 * math.pi * x) + (x - 0.6).abs(),
    n=1, a=0.0, b=1.0, lipschitz=7.2832, epsilon=0.2,
)  # fmt: skip
HILLS = Function(
    "sin πx · cos πy",
    lambda x: torch.sin(math.pi * x[:, :1]) * torch.cos(math.pi * x[:, 1:]),
    n=2, a=-1.0, b=1.0, lipschitz=3.1416, epsilon=0.5,
)  # fmt: skip
CIRCLE = Function(
    "(cos 2πx, sin 2πx)",
    lambda x: torch.cat([torch.cos(2 * math.pi * x), torch.sin(2 * math.pi * x)], dim=1),
    n=1, a=0.0, b=1.0, lipschitz=6.2832, epsilon=0.1,
)  # fmt: skip
FUNCTIONS = (WAVE, CIRCLE, HILLS)


def construct(function: Function) -> Construction:
    """The net and the inverse temperatures for this ε."""
    width, n = function.b - function.a, function.n
    steps = math.ceil(2 * function.lipschitz * math.sqrt(n) * width / function.epsilon)
    delta = width / steps
    points = (steps + 1) ** n
    spread = n * delta * delta
    return Construction(
        steps=steps,
        delta=delta,
        points=points,
        beta=4 * steps * points / (3 * spread),
        beta_log=math.log(steps * points) / (0.75 * spread),
    )


def net(a: float, b: float, steps: int, n: int) -> Tensor:
    """The points of the net, `[(steps + 1)ⁿ, n]`, float64 (`Attention.Claims.net`): coordinate k of
    point j is a + i (b − a) / N, where i is digit k of j to the base N + 1."""
    j = torch.arange((steps + 1) ** n)
    digits = torch.stack([j // (steps + 1) ** k % (steps + 1) for k in range(n)], dim=1)
    return a + digits.double() * ((b - a) / steps)


def attend_points(beta: float, points: Tensor, centres: Tensor, values: Tensor) -> Tensor:
    """Attention by distance (`Attention.Claims.attendPoints`): queries (1, 2x), keys (−|c|², c), β
    for the scale. points `[q_len, n]`, centres `[kv_len, n]`, values `[kv_len, m]`: `[q_len, m]`.
    """
    query = torch.cat([torch.ones_like(points[:, :1]), 2 * points], dim=1)
    key = torch.cat([-(centres * centres).sum(1, keepdim=True), centres], dim=1)
    out = attention(query[None, None], key[None, None], values[None, None], scale=beta)
    assert isinstance(out, Tensor)
    return out[0, 0]


def errors(function: Function, beta: float, points: Tensor) -> Tensor:
    """How far the attention over the net is from f: `[count]`, the largest of the components."""
    centres = net(function.a, function.b, construct(function).steps, function.n)
    out = attend_points(beta, points, centres, function.f(centres))
    return (out - function.f(points)).abs().amax(dim=1)


def probes(function: Function, per_axis: int) -> Tensor:
    """Points of the box, `[per_axisⁿ, n]`: its corners and edges are among them."""
    return net(function.a, function.b, per_axis - 1, function.n)


def per_axis(function: Function) -> int:
    """Between two neighbours of the net lie several points that are tried."""
    return 5003 if function.n == 1 else 181


def table(functions: Sequence[Function] = FUNCTIONS) -> str:
    """A line for each function: the numbers of the theorem, and the largest error found."""
    lines = [
        "| function | box | ε | δ | points | β | largest error | β, logarithm | largest error |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for function in functions:
        made = construct(function)
        tried = probes(function, per_axis(function))
        linear, small = (
            errors(function, beta, tried).max().item() for beta in (made.beta, made.beta_log)
        )
        box = f"[{function.a:g}, {function.b:g}]" + ("²" if function.n == 2 else "")
        name = function.name.replace("|", "∣")  # a bar would end the cell
        numbers = (function.epsilon, made.delta, made.beta, linear, made.beta_log, small)
        epsilon, delta, *rest = (f"{number:.2g}" for number in numbers)
        lines.append(f"| {' | '.join([name, box, epsilon, delta, str(made.points), *rest])} |")
    return "\n".join(lines)


def draw(suffix: str) -> bytes:
    """The figure as a file of this format (`FORMATS`); the same bytes each time."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12.5, 3.7), layout="constrained")
    FigureCanvasAgg(figure)
    curve, by_beta, plane = figure.subplots(1, 3)

    made = construct(WAVE)
    x = probes(WAVE, 601)
    truth = WAVE.f(x)[:, 0]
    centres = net(WAVE.a, WAVE.b, made.steps, WAVE.n)
    out = attend_points(made.beta_log, x, centres, WAVE.f(centres))[:, 0]
    coarse = net(WAVE.a, WAVE.b, 8, WAVE.n)
    rough = attend_points(60.0, x, coarse, WAVE.f(coarse))[:, 0]
    at = x[:, 0].tolist()
    epsilon = WAVE.epsilon
    curve.fill_between(
        at, (truth - epsilon).tolist(), (truth + epsilon).tolist(), color="0.88", label="f ± ε"
    )
    curve.plot(at, truth.tolist(), color="black", lw=2.2, label="f")
    curve.plot(at, rough.tolist(), color="#D55E00", lw=1.2, ls=":", label="9 points, β = 60")
    curve.plot(
        at, out.tolist(), color="#0072B2", lw=1.2, ls="--",
        label=f"{made.points} points, β = {made.beta_log:.2g}",
    )  # fmt: skip
    curve.set_title(f"{WAVE.name}, ε = {epsilon:g}", fontsize=9)
    curve.legend(fontsize=8)

    for function, colour in zip(FUNCTIONS, ("#0072B2", "#009E73", "#D55E00"), strict=True):
        made = construct(function)
        tried = probes(function, 1201 if function.n == 1 else 61)
        betas = [made.beta_log * 10 ** (e / 4) for e in range(-16, 9)]
        worst = [errors(function, beta, tried).max().item() / function.epsilon for beta in betas]
        by_beta.loglog(betas, worst, color=colour, label=function.name)
        by_beta.axvline(made.beta_log, color=colour, lw=0.8, ls=":")
    by_beta.axhline(1.0, color="0.4", lw=0.8)
    by_beta.set_xlabel("β (dotted: what the theorem asks for)")
    by_beta.set_title("largest error / ε", fontsize=9)
    by_beta.legend(fontsize=8)

    side = 121
    grid = errors(HILLS, construct(HILLS).beta_log, probes(HILLS, side)).reshape(side, side)
    image = plane.imshow(
        grid.tolist(), extent=(HILLS.a, HILLS.b, HILLS.a, HILLS.b), origin="lower", cmap="viridis"
    )
    figure.colorbar(image, ax=plane)
    plane.set_title(f"error, {HILLS.name}, ε = {HILLS.epsilon:g}", fontsize=9)

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "approximation", "svg.fonttype": "none"}):
        metadata = {"Date": None} if suffix == ".svg" else None
        figure.savefig(content, format=suffix.removeprefix("."), dpi=130, metadata=metadata)
    return content.getvalue()


class Parser(argparse.ArgumentParser):
    """Misuse is one sentence and status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table, and write the figure if it is asked for."""
    parser = Parser(prog="python -m bench.approximation", description=__doc__.splitlines()[0])
    parser.add_argument("--plot", type=Path, metavar="FILE", help=", ".join(FORMATS))
    path: Path | None = parser.parse_args(arguments).plot
    if path is not None:
        if path.suffix not in FORMATS:
            parser.error(f"argument --plot: {path} must end in one of {', '.join(FORMATS)}")
        if not has_matplotlib():
            parser.error("argument --plot: needs the package matplotlib, which is not installed")
        if (refusal := why_not_writable(path)) is not None:
            parser.error(f"argument --plot: {path} cannot be written: {refusal}")
    print(table())
    if path is not None:
        write_whole(path, draw(path.suffix))
    return 0


if __name__ == "__main__":
    sys.exit(main())
