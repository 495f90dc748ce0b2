"""Functions that cheat: each is caught, or no better off than an honest one (docs/cheats.md)."""

from __future__ import annotations

import ast
import re
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import committed
import pytest

from bridge.conformance.functions.features import Features, presume
from bridge.conformance.inside.walls import View
from bridge.conformance.judging.judge import VectorResult
from bridge.conformance.outcomes.outcome import Conditions, Outcome, describe, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.sandbox import session as sessions
from bridge.conformance.sandbox import view
from bridge.report.junit import junit
from bridge.report.page import page

# Most of its two minutes are other processes' and waiting for limits.
pytestmark = pytest.mark.long
FOLDER = Path(__file__).parent / "cheats"
PAGE = Path(__file__).resolve().parents[4] / "docs" / "cheats.md"
CONDITIONS = Conditions(limit=2.0, also=(FOLDER / "honest.py",), required=True, seed=1)


def functions(file: str) -> list[str]:
    """The functions of a file of cheats."""
    tree = ast.parse((FOLDER / f"{file}.py").read_text("utf-8"))
    named = [x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name[0] != "_"]
    if file == "attempts":
        named = [x for x in named if x.decorator_list]
    assigned = [
        x.targets[0].id
        for x in tree.body
        if isinstance(x, ast.Assign) and isinstance(x.targets[0], ast.Name)
    ]
    return [*(x.name for x in named), *(name for name in assigned if name.startswith("raises_"))]


def able() -> Features:
    def function(query: object, key: object, value: object, scale: float | None = None) -> object:
        return value

    return presume(function, ("float32",), "it cheats").without(("gradients",))


def judge_cheat(cheat: str, count: int, conditions: Conditions = CONDITIONS) -> Outcome:
    file, _, function = cheat.partition(":")
    subject = Subject(f"{FOLDER / file}.py:{function}", features=able())
    (outcome,) = outcomes(subject, committed.some("small-random", count), ("float32",), conditions)
    return outcome


def failures(outcome: Outcome) -> tuple[VectorResult, ...]:
    assert outcome.without_walls is None
    return outcome.result.failures


def test_an_honest_function_passes() -> None:
    outcome = judge_cheat("honest:attention", 36)
    assert outcome.without_walls is None
    assert [v.status for v in outcome.result.vectors] == ["passed"] * 36


@pytest.mark.parametrize("name", functions("attempts"))
def test_what_is_impossible_helps_nobody(name: str) -> None:
    """Where the attempt worked, the answer would be right."""
    found = failures(judge_cheat(f"attempts:{name}", 2))
    assert [v.reason for v in found] == [None, None]


# These succeed where there are no walls; the others need rights that tests may not
# have, or a terminal.
WITHOUT_WALLS = (
    "opens_the_vectors", "reads_the_git_objects", "kills_its_parent", "sees_other_processes",
    "opens_a_socket", "changes_its_own_file",
)  # fmt: skip


@pytest.mark.parametrize("name", [x for x in WITHOUT_WALLS if x != "kills_its_parent"])
def test_without_walls_it_is_possible(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The attempts themselves are real, and the report says that there are no walls."""
    monkeypatch.setattr(sessions.Session, "ways", (False,))
    outcome = judge_cheat(f"attempts:{name}", 2, replace(CONDITIONS, required=False))
    assert outcome.result.ok
    assert outcome.without_walls is not None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("makes_everything_equal", None),
        ("says_that_nothing_is_wrong", None),
        ("answers_in_its_own_words", None),
        ("returns_a_liar", None),
        ("answers_before_it_is_asked", "sent an invalid answer: "),
        ("says_another_shape", "returned an output of shape"),
    ],
)
def test_replacing_what_calls_it_helps_nobody(name: str, reason: str | None) -> None:
    found = failures(judge_cheat(f"replacing:{name}", 4))
    assert len(found) == 4
    for vector in found:
        assert (vector.reason is None) == (reason is None)
        assert str(vector.reason).startswith(reason or "None") or "was not run" in str(
            vector.reason
        )


def test_a_copy_of_the_process_may_answer_but_ends_with_it() -> None:
    outcome = judge_cheat("replacing:another_process_answers", 4)
    for vector in outcome.result.vectors:
        said = str(vector.reason).startswith(("ended the process", "did not return"))
        assert vector.status == "passed" or said


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("by_address", None),
        ("only_the_first_times", None),
        ("of_the_call_before", None),
        ("changes_its_inputs", "changed its input key"),
        ("returns_its_input", "changed its input value"),
        ("one_buffer_for_all", "that of what it had returned before"),
        ("eight_buffers_in_turn", "that of what it had returned before"),
        ("filled_later", None),
        ("filled_by_the_next_call", None),
        ("spoils_what_it_gave", "that it goes on to change"),
    ],
)
def test_a_function_that_remembers_is_seen(name: str, sentence: str | None) -> None:
    found = failures(judge_cheat(f"remembering:{name}", 36))
    assert found
    if sentence is None:
        assert any(v.worst is not None for v in found)
    else:
        assert any(sentence in str(v.reason) for v in found)


def test_remembering_what_was_given_is_no_cheat() -> None:
    assert judge_cheat("remembering:by_content", 36).result.ok


@pytest.mark.parametrize(
    ("name", "borrowed"),
    [
        ("calls_sdpa", "scaled_dot_product"),
        ("calls_sdpa_where_it_is_large", "scaled_dot_product"),
        ("calls_sdpa_in_a_thread", "scaled_dot_product"),
        ("calls_the_operator_below", "scaled_dot_product"),
        ("calls_pyimpl", "pyimpl"),
        ("calls_multi_head_attention_flex", "flex"),
    ],
)
def test_attention_of_others_is_reported(name: str, borrowed: str) -> None:
    patient = replace(CONDITIONS, limit=60.0)  # for imports
    with patient.session(f"{FOLDER / 'borrowing.py'}:{name}") as session:
        found = describe(session, ("float32",)).borrows
    assert any(borrowed in one for one in found)


@pytest.mark.parametrize(
    "name", ["honest.py:attention", "borrowing.py:calls_sdpa_in_another_process"]
)
def test_what_is_reported_of_no_function(name: str) -> None:
    """An own computation is none of others; one in another process is not seen."""
    with CONDITIONS.session(f"{FOLDER / name}") as session:
        assert describe(session, ("float32",)).borrows == ()


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("sleeps", "did not return: used practically no processor time"),
        ("spins", "did not return: used .* of processor time, of 2 s allowed"),
        ("leaves_a_child_that_spins", "did not return: used .* of processor time, of 2 s allowed"),
        ("takes_memory", "raised MemoryError"),
        ("fills_the_disk", r"raised OSError: \[Errno 28\] No space left"),
        ("ends", "ended the process with status 0"),
        ("is_killed", "ended the process: SIGKILL"),
        ("closes_everything", "closed its side|ended the process|did not return"),
        ("floods", "None"),
        ("kills_its_group", "ended the process"),
        ("stops_its_group", "did not return: used practically no processor time"),
    ],
)
def test_using_up_what_there_is(name: str, reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = failures(judge_cheat(f"exhausting:{name}", 1))
    assert re.match(reason, str(found.reason))
    assert len(capsys.readouterr().err) < 100_000


@pytest.mark.thorough
def test_an_answer_in_crumbs_costs_the_judge_little() -> None:
    """Or else it would be over its own work that the function's limit is not looked at."""
    hasty = replace(CONDITIONS, limit=0.5)
    before = time.process_time()
    (found,) = failures(judge_cheat("exhausting:answers_in_crumbs", 1, hasty))
    assert re.match(
        "did not return: used .* of processor time, of 0.5 s allowed", str(found.reason)
    )
    assert time.process_time() - before < 10


def test_too_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels from 6.14 on refuse them; the judge counts them everywhere."""
    together = view._together

    def fewer(*given: object) -> View:
        return replace(together(*given), processes=20)  # type: ignore[arg-type]

    monkeypatch.setattr(view, "_together", fewer)
    (found,) = failures(judge_cheat("exhausting:forks", 1))
    assert re.match("used [0-9]+ processes; 20 are allowed|raised BlockingIO", str(found.reason))


@pytest.mark.parametrize("name", functions("talking"))
def test_messages_are_text_everywhere(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = judge_cheat(f"talking:{name}", 1)
    (found,) = failures(outcome)
    shown = (str(found.reason), capsys.readouterr().err)
    for text in shown:
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text)
    assert len(shown[0]) < 400
    ElementTree.fromstring(junit([outcome]))
    assert "<script>alert" not in page([outcome], committed.some("small-random", 1))


@pytest.mark.parametrize("name", functions("looking"))
def test_what_no_run_shows(name: str) -> None:
    """Said in docs/cheats.md, and true: these pass."""
    assert judge_cheat(f"looking:{name}", 36).result.ok


def test_the_page_names_every_cheat_and_no_other() -> None:
    text = PAGE.read_text("utf-8")
    files = [path.stem for path in FOLDER.glob("*.py") if path.stem != "honest"]
    known = {f"`{file}.{name}`" for file in files for name in functions(file)}
    assert len(files) >= 7
    assert len(known) >= 20
    named = [line for line in text.splitlines() if re.search(r"^\| .*`[a-z]+\.[a-z_]+`", line)]
    assert len(named) >= 10
    assert set(re.findall(r"`[a-z]+\.[a-z_]+`", text)) == known
