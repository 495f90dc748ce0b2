"""The likely cause of failures: wrong functions are named by their errors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import committed
import pytest
import wrong_functions
from click.testing import CliRunner

import bridge.__main__ as command_line
from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.functions.features import Features, probe
from bridge.conformance.judging.run import run
from bridge.conformance.mutants.attention import MUTANTS
from bridge.conformance.mutants.hypotheses import every
from bridge.conformance.mutants.hypotheses.call import Hypothesis
from bridge.conformance.mutants.planting import adapter_with
from bridge.conformance.outcomes import likely
from bridge.conformance.outcomes.likely import Likely, with_likely
from bridge.conformance.outcomes.outcome import Description, Outcome
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tolerances.rounding_model import generous
from bridge.report.junit import junit
from bridge.report.page import page
from bridge.vectors.model.attention import Family

FILE = Path(wrong_functions.__file__)
# Those that are not of another operation, none of which is chosen here.
HYPOTHESES = tuple(h for h in every.HYPOTHESES if not h.operations)
NAMES = ("small-random", "causal", "causal-bottom-right", "scales", "default-scale", "softcap",
         "masked-holes", "maximum-moves", "log-sum-exp", "large-spread", "ragged-tiles",
         "unequal-lengths", "gradient")  # fmt: skip


@pytest.fixture(scope="module")
def chosen() -> list[Family]:
    return committed.families(*NAMES)


def outcome(name: str, chosen: Sequence[Family], dtype: str = "float32") -> Outcome:
    """As `conform` has it; the function is run here, since these are no cheats."""
    function = getattr(wrong_functions, name)
    able: Features = probe(function, "cpu", (dtype,))
    adapter = CallableAdapter(f"f:{name}", function, able, generous)
    result = run(adapter, chosen, dtype, details=True)
    return Outcome(Subject(f"f:{name}", features=able), Description((dtype,), able), result)


def look_for(name: str, chosen: Sequence[Family], dtype: str = "float32") -> Likely:
    (one,) = with_likely([outcome(name, chosen, dtype)], chosen)
    assert one.likely is not None
    return one.likely


_FOUND: dict[tuple[str, str], Likely] = {}


def find_likely(name: str, chosen: Sequence[Family], dtype: str = "float32") -> Likely:
    """Once for all tests that ask for it, which patch nothing."""
    if (name, dtype) not in _FOUND:
        _FOUND[name, dtype] = look_for(name, chosen, dtype)
    return _FOUND[name, dtype]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("name", "cause", "share"),
    [
        ("scaled_twice", "doubled-scale", 1.0),
        ("without_scale", "omitted-scale", 1.0),
        pytest.param("causal_off_by_one", "causal-shows-next-key", 1.0, marks=pytest.mark.thorough),
        ("bottom_right", "causal-aligned-bottom-right", 1.0),
        ("without_softcap", "softcap-omitted", 1.0),
        pytest.param("mask_inverted", "mask-inverted", 0.9, marks=pytest.mark.thorough),
        ("with_log2", "lse-base-2", 1.0),
        pytest.param("not_rescaled", "o-not-rescaled", 0.9, marks=pytest.mark.thorough),
        # A number that nearly overflows is off by its roundings.
        ("without_maximum", "maximum-not-subtracted", 0.5),
    ],
)
def test_a_wrong_function_is_named(
    name: str, cause: str, share: float, chosen: list[Family]
) -> None:
    likely = find_likely(name, chosen)
    assert likely.problem is None
    first, *others = likely.causes
    assert first.name == cause
    assert not others
    assert first.explained >= share * first.compared
    assert first.contradicted == 0
    assert f"Behaves like: {first.description}" in likely.sentences()[0]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "dtype",
    ["float16", *(pytest.param(d, marks=pytest.mark.thorough) for d in ("float64", "bfloat16"))],
)
def test_in_every_dtype(dtype: str, chosen: list[Family]) -> None:
    first = find_likely("causal_off_by_one", chosen, dtype).causes[0]
    assert first.name == "causal-shows-next-key"
    assert first.explained >= 0.9 * first.compared


@pytest.mark.thorough
def test_tiles_are_found_by_their_size(chosen: list[Family]) -> None:
    (cause,) = find_likely("not_rescaled", chosen).causes
    assert cause.description.endswith("tiles of 16 keys")


@pytest.mark.thorough
def test_a_fault_that_no_mutant_has_is_said_to_be_none(chosen: list[Family]) -> None:
    likely = find_likely("no_known_fault", chosen)
    assert not likely.causes
    assert likely.tried == len(HYPOTHESES)
    assert likely.sentences()[0].startswith("No mutant explains it: none of the")


def test_what_failing_vectors_have_in_common(chosen: list[Family]) -> None:
    common = find_likely("without_softcap", chosen).common
    assert common.features == ("a softcap",)
    assert common.failing > 0
    assert "All" in common.sentence()
    common = find_likely("bottom_right", chosen).common
    assert common.alike == 0
    assert set(common.features) == {"a causal mask", "another number of keys than of queries"}


def test_results_that_could_not_be_judged(chosen: list[Family]) -> None:
    likely = find_likely("refuses_long_keys", chosen)
    assert not likely.causes
    assert likely.tried == 0
    assert "more than 16 keys" in likely.common.features
    assert any("have no result that could be judged" in text for text in likely.sentences())


@pytest.mark.thorough
def test_dtypes_that_pass_are_named(chosen: list[Family]) -> None:
    outcomes = [outcome("wrong_in_one_dtype", chosen, dtype) for dtype in ("float32", "float64")]
    wrong, right = with_likely(outcomes, chosen)
    assert right.likely is None
    assert "Fails in float32; passes in float64." in wrong.likely.sentences()


def test_the_log_sum_exp_alone(chosen: list[Family]) -> None:
    sentences = find_likely("with_log2", chosen).sentences()
    assert "The outputs are right: the log-sum-exp alone is wrong." in sentences


def test_nothing_is_looked_for_where_all_passes(
    chosen: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*given: object) -> None:
        raise AssertionError("looked for")

    monkeypatch.setattr(likely, "_likely", fail)
    passing = outcome("right", chosen)
    assert with_likely([passing], chosen) == [passing]


def test_a_hypothesis_that_raises_changes_nothing(
    chosen: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(call: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(
        every, "HYPOTHESES", (Hypothesis("broken", "broken", raise_error), *HYPOTHESES[:1])
    )
    assert [c.name for c in look_for("scaled_twice", chosen).causes] == ["doubled-scale"]


def test_an_error_is_said_and_the_result_stays(
    chosen: list[Family], monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(*given: object) -> None:
        raise MemoryError("no memory")

    before = outcome("scaled_twice", chosen)
    monkeypatch.setattr(likely, "_Running", raise_error)
    (after,) = with_likely([before], chosen)
    assert after.result == before.result
    assert "MemoryError: no memory" in (after.likely.problem or "")
    monkeypatch.setattr(likely, "_Search", raise_error)
    (after,) = with_likely([before], chosen)
    assert after.result == before.result
    assert "not looked for to the end" in (after.likely.problem or "")


def test_the_work_is_limited(chosen: list[Family], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likely, "WORK", 0)
    found_none = look_for("scaled_twice", chosen)
    assert found_none.tried == 0
    assert f"{len(HYPOTHESES)} of {len(HYPOTHESES)} hypotheses" in (found_none.problem or "")


# Planted in the tile loop of `pyimpl`, by which each is compared with itself in another place.
_PLANTED = {
    "tiled-causal-off-by-one": "causal-excludes-diagonal",
    "tiled-doubled-scale": "doubled-scale",
    "tiled-base-of-exponential": "base-of-exponential",
    "tiled-l-not-rescaled": "l-not-rescaled",
    "tiled-o-not-rescaled": "o-not-rescaled",
}


# The others are named above, where they are another function's.
_QUICK = ("tiled-causal-off-by-one", "tiled-base-of-exponential", "tiled-l-not-rescaled")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (n not in _QUICK)) for n in _PLANTED]
)
def test_a_mutant_is_named(name: str) -> None:
    (mutant,) = (mutant for mutant in MUTANTS if mutant.name == name)
    some = committed.families(*sorted({*mutant.promising, "small-random", "default-scale"}))
    with adapter_with(mutant) as adapter:
        result = run(adapter, some, "float32", details=True)
    before = Outcome(Subject("pyimpl-tiled"), Description(("float32",)), result)
    (after,) = with_likely([before], some)
    assert _PLANTED[name] == after.likely.causes[0].name


def test_hypotheses_have_the_words_of_the_mutants() -> None:
    words = {mutant.name: mutant.description for mutant in MUTANTS}
    for hypothesis in every.HYPOTHESES:
        known = words.get(hypothesis.name)
        if known is not None and "tile" not in hypothesis.description:
            assert hypothesis.description == known


@pytest.mark.thorough
def test_reports_have_the_cause(chosen: list[Family]) -> None:
    (one,) = with_likely([outcome("scaled_twice", chosen)], chosen)
    sentence = "Behaves like: scores are scaled twice"
    assert f'name="likely_cause" value="{sentence}' in junit([one])
    assert sentence in page([one], chosen)
    found: dict[str, Any] = json.loads(json.dumps(one.to_json(), allow_nan=False))["likely"]
    assert found["sentences"][0].startswith(sentence)
    assert found["causes"][0]["name"] == "doubled-scale"
    none = replace(one, likely=None)
    assert none.to_json()["likely"] is None
    assert "likely_cause" not in junit([none])
    assert "Likely cause" not in page([none], chosen)


@pytest.mark.thorough
def test_the_command_shows_it() -> None:
    words = [f"{FILE}:scaled_twice", "--dtype", "float32", "--family", "scales"]
    result = CliRunner().invoke(command_line.main, ["conform", *words])
    assert result.exit_code == 1
    assert "Behaves like: scores are scaled twice" in result.stdout
    words[0] = f"{FILE}:right"
    result = CliRunner().invoke(command_line.main, ["conform", *words])
    assert result.exit_code == 0
    assert "ikely cause" not in result.stdout + result.stderr
