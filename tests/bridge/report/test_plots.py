"""The plots of the page: the places of their parts."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise

import committed
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spoiled import Spoiled

from bridge.conformance.functions.features import Features
from bridge.conformance.judging.judge import Status, VectorResult
from bridge.conformance.judging.run import Result, run
from bridge.conformance.outcomes.outcome import Description, Outcome
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.report import plots
from bridge.report.page import MOST_SHOWN, page
from bridge.report.plots import BOTTOM, ERRORS_LEFT, LEFT, RIGHT, TOP, Scale

positive = st.floats(1e-30, 1e30)


@given(st.lists(positive, min_size=2, max_size=9), st.tuples(positive, positive))
def test_a_scale_keeps_the_order(numbers: list[float], ends: tuple[float, float]) -> None:
    low, high = min(ends), 2 * max(ends)
    scale = Scale(low, high, 10, 90)
    places = [scale.at(x) for x in sorted(numbers)]
    assert all(10 <= a <= b <= 90 for a, b in pairwise(places))
    assert [scale.at(x) for x in (0.0, low, high, math.inf, math.nan)] == [10, 10, 90, 90, 90]
    assert abs(scale.at(math.sqrt(low) * math.sqrt(high)) - 50) <= 0.1
    ticks = scale.ticks()
    assert len(ticks) <= 6
    assert all(scale.at(float(text)) == place for place, text in ticks)


def result(
    family: str, status: Status, ratio: float | None, lse: float | None = None
) -> VectorResult:
    return VectorResult(f"{family}-000", family, "t", status, ratio, lse)


def test_each_judged_vector_has_a_place() -> None:
    found = plots.families(
        [
            result("a", "passed", 0.5),
            result("a", "failed", 0.5, 20.0),
            result("b", "failed", None),
            result("c", "unsupported", None),
            result("b", "failed", math.nan),
            result("b", "passed", 0.0, 0.0),
            result("b", "failed", 1e30),
        ]
    )
    assert [name for _, name in found.names] == ["a", "b"]
    # Within the tolerance is on the left of the line, beyond it on the right.
    assert all(dot.ok == (dot.x <= found.limit) for dot in found.dots)
    by_text = {dot.text: dot.x for dot in found.dots}
    assert set(by_text) == {
        "a-000: 0.5", "a-000: 20", "b-000: inf", "b-000: nan", "b-000: 0", "b-000: 1e+30",
    }  # fmt: skip
    assert by_text["b-000: 0"] == LEFT
    assert {by_text[f"b-000: {x}"] for x in ("inf", "nan", "1e+30")} == {RIGHT}
    assert [dot.ok for dot in found.dots] == [True, True, False, False, False, False]
    assert (found.limit, "1") in found.ticks


def test_nothing_judged_is_no_plot() -> None:
    assert plots.families([result("c", "unsupported", None)]) is None


@given(
    st.lists(
        st.tuples(st.floats(min_value=0) | st.just(math.nan), st.floats(0, 1e300)),
        min_size=1,
        max_size=20,
    )
)
def test_an_error_is_a_cross_where_it_is_above_the_line(pairs: list[tuple[float, float]]) -> None:
    found = plots.errors("x", [e for e, _ in pairs], [t for _, t in pairs])
    heights = [float(y) for y in re.findall(r"[ML][\d.]+ ([\d.]+)H", found.path)]
    assert len(found.dots) == len(heights) == len(pairs)
    for dot, height, (error, tolerance) in zip(found.dots, heights, pairs, strict=True):
        assert dot.ok == (error <= tolerance)
        assert ERRORS_LEFT < dot.x < RIGHT
        assert TOP <= dot.y <= BOTTOM
        # Pixels grow downwards; a dot nearer than a tenth of one stands on the line.
        assert dot.y >= height if dot.ok else dot.y <= height


Spoil = Callable[[Batch, Outputs], Outputs]


def report(spoil: Spoil) -> tuple[Result, str]:
    families = committed.families("small-random", "softcap")
    judged = run(Spoiled(spoil), families, "float32", details=True)
    able = Description(("float32",), Features(("float32",), frozenset(), {}))
    return judged, page([Outcome(Subject("f"), able, judged)], families)


def of_last_column(_batch: Batch, outputs: Outputs) -> Outputs:
    outputs.out[..., 0, -1] += 1
    return outputs


def of_lse(_batch: Batch, outputs: Outputs) -> Outputs:
    outputs.lse[..., -1] = math.nan
    return outputs


@pytest.mark.parametrize("spoil", [of_last_column, of_lse])
def test_the_page_has_a_mark_for_each(spoil: Spoil) -> None:
    judged, text = report(spoil)
    overview, *failures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    status = [vector.status for vector in judged.vectors]
    assert overview.count('class="in"') == status.count("passed")
    assert overview.count('class="out"') == status.count("failed") > 0
    assert len(failures) == min(status.count("failed"), MOST_SHOWN)
    for one in failures:
        assert 'class="out"' in one
        assert ("log-sum-exp" in one) == (spoil is of_lse)


def test_a_page_where_all_passes_has_the_overview_alone() -> None:
    judged, text = report(lambda _batch, outputs: outputs)
    (overview,) = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert 'class="out"' not in overview
    assert overview.count('class="in"') == len(judged.vectors)
