"""Functions in a process of their own: whatever they do, it is reported and the run goes on."""

from __future__ import annotations

import inspect
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import attention_functions as functions
import committed
import pytest

from bridge.conformance.functions.features import CallableError, Features
from bridge.conformance.judging.run import Result
from bridge.conformance.outcomes.outcome import Conditions, Description, outcomes
from bridge.conformance.outcomes.outcome import describe as describe_session
from bridge.conformance.outcomes.subject import Subject, adapter_of
from bridge.vectors.model.attention import Family

FILE = Path(functions.__file__)
# Seconds of processor time, or of waiting without any; a small call takes a hundredth.
LIMIT = 3.0
IDLE = "did not return: used practically no processor time for"


def describe(name: str) -> Description:
    with Conditions(limit=LIMIT).session(name) as session:
        return describe_session(session, ("float32",))


def takes(name: str) -> Features:
    able = describe(f"{FILE}:{name}").features
    assert able is not None
    return able


def judge_isolated(name: str, chosen: list[Family], able: Features, limit: float = LIMIT) -> Result:
    subject = Subject(f"{FILE}:{name}", features=able)
    (outcome,) = outcomes(subject, chosen, ("float32",), Conditions(limit=limit))
    assert outcome.without_walls is None
    return outcome.result


def reasons(result: Result) -> Counter[str | None]:
    return Counter(v.reason for v in result.vectors if v.status == "failed")


def test_a_right_function_passes() -> None:
    wanted = committed.some("block-mask", 99)
    result = judge_isolated("reference", wanted, takes("reference"))
    assert result.ok
    assert [v.id for v in result.vectors] == [v.id for v in wanted[0].vectors]
    assert result.rounding_model == "generous"


def test_the_first_failure_ends_all_dtypes() -> None:
    chosen = [*committed.some("small-random", 12), *committed.some("maximum-moves", 3)]
    dtypes = ("float32", "bfloat16")
    for name, ends in (("reference", False), ("not_a_number", True)):
        subject = Subject(f"{FILE}:{name}", features=replace(takes(name), dtypes=dtypes))
        conditions = Conditions(limit=LIMIT, first_failure=True)
        found = list(outcomes(subject, chosen, dtypes, conditions))
        assert len(found) == (1 if ends else 2)
        assert bool(found[0].result.failures) == ends
        if ends:
            # Those in which most mutants show first.
            assert {v.family for v in found[0].result.failures} == {"maximum-moves"}


def test_one_that_always_hangs_ends() -> None:
    able = takes("hangs")
    assert str(able.presumed).startswith(f"a small call {IDLE} 3 s")
    wanted = committed.some("small-random", 12)
    result = judge_isolated("hangs", wanted, able, 1.0)
    said = reasons(result)
    assert sum(said.values()) == 12
    assert sum(n for reason, n in said.items() if f"{IDLE} 1 s" in str(reason)) > 4
    assert said["was not run: 5 calls before it did not return"] > 0


def test_one_that_hangs_at_times_is_run_on_the_others() -> None:
    family = committed.family("small-random")
    three = [v for v in family.vectors if v.kv_len == 3 and v.q_len != 2][:1]
    others = [v for v in family.vectors if v.kv_len != 3][:6]
    assert len(three) == 1
    wanted = [replace(family, vectors=(*three, *others))]
    result = judge_isolated("hangs_on_three_keys", wanted, takes("hangs_on_three_keys"))
    assert str(result.vectors[0].reason).startswith(f"{IDLE} 3 s")
    assert [v.status for v in result.vectors] == ["failed"] + ["passed"] * 6


def test_one_that_uses_the_processor_for_ever_ends() -> None:
    wanted = committed.some("one-key", 1)
    (reason,) = reasons(judge_isolated("spins", wanted, takes("reference"), 0.5))
    assert re.match(r"did not return: used .* of processor time, of 0\.5 s allowed", str(reason))


def test_one_that_ends_the_process_is_reported() -> None:
    able = takes("leaves")
    assert able.presumed == "a small call ended the process with status 3"
    result = judge_isolated("leaves", committed.some("one-key", 3), able)
    assert reasons(result) == {"ended the process with status 3": 3}


def test_a_crash_is_the_fault_of_the_vector_that_it_happens_on() -> None:
    family = committed.family("equal-scores")
    culprits = {v.id for v in family.vectors if any(2 in row for row in v.q)}
    if not culprits:
        family = committed.family("small-random")
        culprits = {v.id for v in family.vectors if any(2 in row for row in v.q)}
    kept = [v for v in family.vectors if v.id in culprits][:2]
    kept += [v for v in family.vectors if v.id not in culprits][:6]
    assert len(kept) > 4
    wanted = [replace(family, vectors=tuple(kept))]
    result = judge_isolated("crashes_on_twos", wanted, takes("crashes_on_twos"))
    crashed = {v.id for v in result.vectors if v.reason == "ended the process: SIGSEGV"}
    assert crashed == culprits & {v.id for v in kept}
    assert all(v.status == "passed" for v in result.vectors if v.id not in crashed)


def test_what_it_prints_is_not_our_output(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "talks.py"
    text = "print('hello \\x1b[2J', flush=True)\n    return value"
    file.write_text(f"def f(query, key, value):\n    {text}\n")
    describe(f"{file}:f")
    said = capsys.readouterr()
    assert said.out == ""
    assert "hello \ufffd[2J" in said.err
    assert "\x1b" not in said.err


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("import os\nos._exit(5)", "ended the process with status 5"),
        ("raise ValueError('not here')", "cannot be imported: ValueError: not here"),
        ("import sys\nsys.exit(1)", "cannot be imported: SystemExit: 1"),
        ("def f(query): pass", "takes 1 positional arguments"),
    ],
)
def test_a_file_that_cannot_be_used_is_said(text: str, sentence: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.py"
    file.write_text(text + "\n")
    with pytest.raises(CallableError, match=sentence):
        describe(f"{file}:f")


def test_another_rounding_model_changes_nothing_else() -> None:
    adapter = adapter_of(Subject("hf-eager", rounding_model="generous"))
    assert adapter.rounding("float32", "cpu").name == "generous"
    # Found on the object itself: that is how Python 3.12 looks for the members of a protocol.
    for member in ("run_vector", "operations", "no_gradients", "gradients"):
        assert inspect.getattr_static(adapter, member) is not None
