"""The run as a figure: a panel for each operation, dtype and head_dim (and mask, where there are
several lengths), with a line or bars for each implementation. matplotlib is imported to draw only.
"""

from __future__ import annotations

import importlib.util
import io
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from bench.cases import Operation
from bench.measure import Measured, Result
from bench.peers import OURS, PEERS
from bench.timing import Rate

FORMATS = (".png", ".svg", ".pdf")
# One colour for each peer, the same in every figure; ours is black. After Okabe and Ito, whose
# colours are told apart without red or green.
_COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#8C8C00", "#D55E00", "#E69F00", "#CC79A7")
# A machine's rate that is this many times as high as all that was measured would press the lines
# onto the axis: it is written down instead of drawn.
_FAR_ABOVE = 4.0


@dataclass(frozen=True)
class Panel:
    """One pair of axes.

    ticks: the lengths, or the masks where there is one length. series: for each implementation its
    number at each tick, None where it was not timed. rate: the machine's, in the same unit.
    """

    title: str
    by_length: bool
    unit: str
    ticks: tuple[str, ...]
    series: dict[str, tuple[float | None, ...]]
    rate: float | None
    rate_name: str
    head_dim: int


def has_matplotlib() -> bool:
    """Whether matplotlib can be imported."""
    return importlib.util.find_spec("matplotlib") is not None


def panels(run: Sequence[Measured], rates: Iterable[Rate]) -> list[Panel]:
    """The panels of the figure; cases in which nothing was timed leave no tick."""
    by_dtype = {rate.dtype: rate for rate in rates}
    run = sorted(run, key=_order)
    several: dict[tuple[object, ...], set[int]] = {}
    for one in run:
        several.setdefault(_group(one), set()).add(one.case.kv_len)
    groups: dict[tuple[object, ...], list[Measured]] = {}
    for one in run:
        by_length = len(several[_group(one)]) > 1
        key = (*_group(one), str(one.case.mask) if by_length else None)
        groups.setdefault(key, []).append(one)
    found = []
    for key, cases in groups.items():
        case = cases[0].case
        by_length = key[-1] is not None
        unit = _unit(case.operation)
        rate = by_dtype.get(case.dtype if unit == "TFLOP/s" else "bytes")
        title = f"{case.operation}, {case.dtype}, head_dim {case.head_dim}"
        if case.page_size is not None:
            title += f", pages of {case.page_size}"
        title += f"\n{key[-1]}" if by_length else f"\nlength {case.kv_len}"
        ticks = tuple(str(c.case.kv_len) if by_length else str(c.case.mask) for c in cases)
        found.append(
            Panel(
                title,
                by_length,
                unit,
                ticks,
                _series(cases, unit),
                None if rate is None else rate.per_second / (1e12 if unit == "TFLOP/s" else 1e9),
                "matrix product" if unit == "TFLOP/s" else "copy",
                case.head_dim,
            )
        )
    return _head_dims_beside(found)


def _head_dims_beside(shown: list[Panel]) -> list[Panel]:
    """The panels that differ in head_dim alone next to each other."""
    rows: dict[str, list[Panel]] = {}
    for panel in shown:
        row = panel.title.replace(f"head_dim {panel.head_dim}", "")
        rows.setdefault(row, []).append(panel)
    return [panel for row in rows.values() for panel in row]


def _group(one: Measured) -> tuple[object, ...]:
    case = one.case
    return case.operation, case.dtype, case.head_dim, case.page_size


def _order(one: Measured) -> tuple[object, ...]:
    """By operation; otherwise the order in which they were measured."""
    case = one.case
    return get_args(Operation).index(case.operation), case.dtype, case.page_size or 0


def _unit(operation: Operation) -> str:
    """Decode is bound by memory."""
    return "GB/s" if operation == "decode" else "TFLOP/s"


def _series(cases: Sequence[Measured], unit: str) -> dict[str, tuple[float | None, ...]]:
    def number(result: Result) -> float | None:
        return result.tflops if unit == "TFLOP/s" else result.gbps

    names = [result.name for result in cases[0].results]
    numbers = [{result.name: number(result) for result in one.results} for one in cases]
    series = {name: tuple(here[name] for here in numbers) for name in names}
    return {name: row for name, row in series.items() if any(x is not None for x in row)}


def draw(run: Sequence[Measured], rates: Iterable[Rate], title: str, suffix: str) -> bytes:
    """The figure as a file of this format (`FORMATS`)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = panels(run, rates)
    head_dims = len({panel.head_dim for panel in shown})
    columns = min(head_dims if head_dims > 1 else 3, max(1, len(shown)))
    rows = max(1, -(-len(shown) // columns))
    figure = Figure(figsize=(4.6 * columns, 3.5 * rows + 1.1), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[len(shown) :]:
        ax.set_axis_off()
    legend: dict[str, Any] = {}
    for ax, panel in zip(axes, shown, strict=False):
        legend |= _draw_panel(ax, panel)
    width = 42 * columns
    wrapped = [textwrap.fill(x, width, break_on_hyphens=False) for x in title.splitlines()]
    figure.suptitle("\n".join(wrapped), fontsize=9)
    if legend:
        figure.legend(
            legend.values(), legend.keys(), loc="outside lower center", ncols=5, fontsize=9
        )
    content = io.BytesIO()
    figure.savefig(content, format=suffix.removeprefix("."), dpi=130)
    return content.getvalue()


def _draw_panel(ax: Any, panel: Panel) -> dict[str, Any]:
    handles: dict[str, Any] = {}
    places = range(len(panel.ticks))
    for index, (name, numbers) in enumerate(panel.series.items()):
        colour = _colour(name)
        values = [float("nan") if x is None else x for x in numbers]
        if panel.by_length:
            width = 2.2 if name == OURS else 1.4
            (handles[name],) = ax.plot(places, values, "o-", color=colour, lw=width, ms=4)
        else:
            width = 0.8 / len(panel.series)
            at = [x - 0.4 + (index + 0.5) * width for x in places]
            handles[name] = ax.bar(at, values, width, color=colour)
    _draw_rate(ax, panel, handles)
    ax.set_xticks(list(places), panel.ticks, fontsize=8)
    if not panel.by_length and len(panel.ticks) > 2:
        ax.tick_params(axis="x", rotation=20)
    ax.set_ylim(bottom=0)
    ax.set_ylabel(panel.unit)
    if panel.by_length:
        ax.set_xlabel("length")
    ax.set_title(panel.title, fontsize=9)
    ax.grid(axis="y", color="0.9")
    ax.set_axisbelow(True)
    return handles


def _draw_rate(ax: Any, panel: Panel, handles: dict[str, Any]) -> None:
    """The machine's rate as a line, or in words above the axes."""
    found = [x for row in panel.series.values() for x in row if x is not None]
    if panel.rate is None or not found:
        return
    if panel.rate <= _FAR_ABOVE * max(found):
        handles[f"{panel.rate_name} (measured)"] = ax.axhline(panel.rate, color="0.6", ls="--")
        return
    said = f"{panel.rate_name}: {panel.rate:.3g} {panel.unit}"
    ax.text(0.98, 0.97, said, transform=ax.transAxes, ha="right", va="top", color="0.4", fontsize=8)
    ax.set_ylim(top=1.2 * max(found))


def _colour(name: str) -> str:
    names = list(PEERS)
    return _COLOURS[names.index(name) % len(_COLOURS)] if name in names else "black"
