"""The likely cause of failures with packed sequences, pages and parts that are merged."""

from __future__ import annotations

import committed
import pytest
import wrong_layouts
from wrong_layouts import WrongLayouts

from bridge.conformance.judging.run import run
from bridge.conformance.mutants.hypotheses import every
from bridge.conformance.mutants.hypotheses.every import HYPOTHESES
from bridge.conformance.outcomes import likely
from bridge.conformance.outcomes.likely import Likely, with_likely
from bridge.conformance.outcomes.outcome import Description, Outcome
from bridge.conformance.outcomes.subject import Subject
from bridge.report.page import page
from bridge.vectors.model.attention import Family
from bridge.vectors.model.operations import ComesToAttention

NAMES = ("small-random", "causal-bottom-right", "window", "varlen", "varlen-drawn", "paged",
         "cascade", "combine")  # fmt: skip
OPERATIONS = frozenset({"varlen", "paged", "cascade", "combine"})
OF = {
    **dict.fromkeys(wrong_layouts.PACKED, "varlen"),
    **dict.fromkeys(wrong_layouts.PAGED, "paged"),
    **dict.fromkeys(wrong_layouts.MERGED, "cascade"),
    "parts-averaged": "cascade, combine",
    "last-part-dropped": "combine",
}


@pytest.fixture(scope="module")
def chosen() -> list[Family]:
    return committed.families(*NAMES)


def outcome(name: str, chosen: list[Family]) -> Outcome:
    result = run(WrongLayouts(name), chosen, "float32", details=True)
    return Outcome(Subject("pyimpl-tiled"), Description(("float32",)), result)


def look_for(name: str, chosen: list[Family]) -> Likely:
    (one,) = with_likely([outcome(name, chosen)], chosen)
    assert one.likely is not None
    return one.likely


def test_there_is_a_wrong_function_for_each_hypothesis() -> None:
    """Those of decoding are in `test_decoding.py`."""
    some = [h for h in HYPOTHESES if "decode" not in h.operations]
    assert {h.name for h in some if h.layout is not None} == set(OF)
    assert all(h.operations <= OPERATIONS for h in some)


# Each among the others of layouts, on fewer vectors where these show it; that none of any attention
# explains it either takes longer.
@pytest.mark.sampled(12)
@pytest.mark.parametrize(
    "among_all", [False, pytest.param(True, marks=pytest.mark.thorough)], ids=str
)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (i % 2)) for i, n in enumerate(OF)]
)
def test_a_wrong_function_is_named(
    name: str, among_all: bool, chosen: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not among_all:
        if name != "packed-sequences-aligned-bottom-right":
            chosen = [family for family in chosen if family.name != "varlen-drawn"]
        of_layouts = [h for h in HYPOTHESES if h.layout is not None]
        monkeypatch.setattr(every, "HYPOTHESES", of_layouts)
    before = outcome(name, chosen)
    operations = {v.operation for f in chosen for v in f.vectors
                  if v.id in {failed.id for failed in before.result.failures}}  # fmt: skip
    assert operations == set(OF[name].split(", "))
    (after,) = with_likely([before], chosen)
    assert after.likely.problem is None
    first, *others = after.likely.causes
    assert first.name == name
    assert not others
    assert first.explained == first.compared
    assert first.contradicted == 0
    (hypothesis,) = (h for h in HYPOTHESES if h.name == name)
    sentence = f"Behaves like: {hypothesis.description}"
    assert after.likely.sentences()[0].startswith(sentence)


@pytest.mark.thorough
def test_a_fault_of_any_attention_is_named_here_too(chosen: list[Family]) -> None:
    some = [f for f in chosen if f.vectors[0].operation in {"varlen", "paged", "cascade"}]
    (cause,) = look_for("doubled-scale", some).causes
    assert cause.name == "doubled-scale"
    assert cause.explained == cause.compared > 40


def test_a_right_function_has_no_cause(chosen: list[Family]) -> None:
    before = outcome("right", chosen)
    assert before.result.ok
    assert len({v.operation for f in chosen for v in f.vectors} & OPERATIONS) == 4
    assert with_likely([before], chosen) == [before]


@pytest.mark.thorough
def test_a_fault_that_no_mutant_has_is_said_to_be_none(chosen: list[Family]) -> None:
    found = look_for("strange", chosen)
    assert not found.causes
    assert found.problem is None
    # Those of other operations than fail are not tried.
    assert found.tried == sum(
        not h.operations or bool(h.operations & {"varlen", "paged"}) for h in HYPOTHESES
    )
    assert found.sentences()[0].startswith("No mutant explains it: none of the")


def test_details_have_the_rows_of_sequences_that_pass(chosen: list[Family]) -> None:
    wrong = outcome("window-by-packed-places", chosen)
    vectors = {v.id: v for f in chosen for v in f.vectors}
    some_pass = 0
    for result in wrong.result.failures:
        vector, detail = vectors[result.id], result.detail
        assert isinstance(vector, ComesToAttention)
        rows = sum(x.q_len for x in vector.attentions())
        assert len(detail.got) == len(detail.tolerance) == len(detail.lse_got) == rows
        some_pass += min(result.rows) <= 1
    assert some_pass > 0
    assert "varlen-005" in page([wrong], chosen)


@pytest.mark.thorough
def test_it_ends_where_the_work_is_done(
    chosen: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    """However fast the machine is."""
    before = outcome("strange", chosen)
    monkeypatch.setattr(likely, "WORK", 1 << 27)
    (first,), (second,) = with_likely([before], chosen), with_likely([before], chosen)
    assert first.likely == second.likely
    assert first.likely.tried > 0
    assert " hypotheses were not tried" in (first.likely.problem or "")
