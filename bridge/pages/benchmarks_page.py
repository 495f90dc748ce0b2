"""`docs/benchmarks.md` and its figures: the speed of `pyimpl` relative to its peers', as kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from bridge.pages.benchmarks import OURS, Case, Run, others, read
from bridge.pages.render import render

PAGE = "docs/benchmarks.md"
FOLDER = "docs/maps"
_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)
# Pixels: of a row, of the part beside the axis, of the axis.
_ROW, _LEFT, _WIDTH = 30, 150, 480
# The mark of each peer, the same in every figure: its outline about (0, 0).
MARKS = {
    "sdpa-flash": "M-5 -5h10v10h-10z",
    "sdpa-efficient": "M-6 5L0 -6L6 5z",
    "sdpa-cudnn": "M-6 -5L0 6L6 -5z",
    "sdpa-math": "M0 -7L7 0L0 7L-7 0z",
    "flex": "M0 -5.5A5.5 5.5 0 1 1 0 5.5A5.5 5.5 0 1 1 0 -5.5z",
    "flash-attn": "M-6 -2h4v-4h4v4h4v4h-4v4h-4v-4h-4z",
    "flash-attn-3": "M-3 -6h6l4 6l-4 6h-6l-4 -6z",
}
_OTHER_MARK = "M-4 -2L0 -6L4 -2L4 6H-4z"


def texts(root: Path) -> dict[str, str]:
    """The page and its figures, by their paths from the root. Raises SourceError for results that
    cannot be read."""
    runs = read(root)
    found = {
        f"{FOLDER}/{figure(run, operation)}": draw(cases)
        for run in runs
        for operation, cases in run.operations().items()
    }
    return {PAGE: page(runs, others(root)), **found}


def page(runs: Sequence[Run], others: Sequence[str] = ()) -> str:
    """The text of the page. others: files that are kept as well, and not drawn."""
    return render(
        "benchmarks.md.jinja",
        runs=runs,
        others=others,
        gpu=any(run.gpu for run in runs),
        figure=figure,
        label=label,
        common=common,
        peers=peers,
        ours=OURS,
        folder=FOLDER.removeprefix("docs/"),
    )


def figure(run: Run, operation: str) -> str:
    """The file of a figure: of which run, and of which operation."""
    return f"{Path(run.file).stem}-{operation.replace('+', '-')}.svg"


def peers(cases: Sequence[Case]) -> list[str]:
    """Who was timed beside ours in some case, in the order of `MARKS`."""
    named = dict.fromkeys(name for case in cases for name in case.ratios)
    return sorted(named, key=lambda n: (list(MARKS).index(n) if n in MARKS else len(MARKS), n))


_PARTS = ("dtype", "batch", "heads", "head_dim", "length", "mask")


def _differing_parts(cases: Sequence[Case]) -> list[str]:
    return [part for part in _PARTS if len({getattr(case.case, part) for case in cases}) > 1]


def _describe(case: Case, part: str) -> str:
    value = getattr(case.case, part)
    return str(value) if part in ("dtype", "mask") else f"{part} {value}"


def label(case: Case, cases: Sequence[Case]) -> str:
    """The parts in which a case differs from others of these, in words."""
    return ", ".join(_describe(case, part) for part in _differing_parts(cases) or ["mask"])


def common(cases: Sequence[Case]) -> str:
    """The parts that all of these cases have in common, in words."""
    alike = [part for part in _PARTS if part not in _differing_parts(cases)]
    return ", ".join(_describe(cases[0], part) for part in alike)


def draw(cases: Sequence[Case]) -> str:
    """The figure of one operation: a row for each case, a mark for each peer at our speed relative
    to its, on a logarithmic axis."""
    ratios = [x for case in cases for x in case.ratios.values()] or [1.0]
    # No mark on the edge, where the names of the cases stand.
    low = max((t for t in _TICKS if t < 0.95 * min(*ratios, 1)), default=_TICKS[0])
    high = min((t for t in _TICKS if t > 1.05 * max(*ratios, 1)), default=_TICKS[-1])

    def x(ratio: float) -> float:
        within = min(max(ratio, low), high)
        return _LEFT + _WIDTH * math.log(within / low) / math.log(high / low)

    left = max(_LEFT, max(len(label(case, cases)) for case in cases) * 7.5 + 16)
    return render(
        "benchmarks.svg.jinja",
        rows=[
            (label(case, cases), [(name, x(r), r) for name, r in case.ratios.items()])
            for case in cases
        ],
        ticks=[(f"{t:g}", x(t), t == 1) for t in _TICKS if low <= t <= high],
        peers=peers(cases),
        marks=MARKS,
        other=_OTHER_MARK,
        row=_ROW,
        left=_LEFT,
        shift=left - _LEFT,
        axis=_WIDTH,
    )
