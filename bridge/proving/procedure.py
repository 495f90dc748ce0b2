"""How a kernel is judged: random numbers of two prime fields on many shapes, all inputs of small
ones, then random whole numbers, which have an order, on shapes between these. After an error it
looks for a smaller shape that shows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from bridge.proving.foreign import Refused
from bridge.proving.replay import NotKnown
from bridge.proving.verdict import Finding, LevelResult, Verdict
from bridge.spec.masks import Alignment
from bridge.ttir.compare import Compared, Level, Place, Shape
from bridge.ttir.faults import CannotTell, Undecided, Violation
from bridge.ttir.fields import Q
from bridge.ttir.syntax import TtirError

# Shapes that are tried on the way to a smaller one.
_MOST_TRIES = 40
_LENGTHS = (1, 2, 3, 16, 17, 32, 64, 128, 256)
_DIMS = (1, 2, 16, 32, 64)
# Comparisons with formulas, of which a single element can be compared alone.
_FORMULAS = ("output", "log-sum-exp", "dQ", "dK", "dV")
_KINDS_SEEN_BY_ORDER = "exp2 of a positive number"


class Subject(Protocol):
    """A kernel that can be compared with attention."""

    @property
    def name(self) -> str: ...

    def shapes(self, level: Level) -> tuple[Shape, ...]:
        """The shapes that are run, the cheap ones first."""

    def compare(
        self, shape: Shape, level: Level, seed: int = 0, only: Place | None = None
    ) -> Compared:
        """Raises Refused, NotKnown, and as `machine.Machine.run` does."""

    def program(self, shape: Shape, number: int, output: str) -> tuple[int, ...]:
        """The place in its grid of the program with this number that stored to this output."""


@dataclass(frozen=True)
class _Outcome:
    """The result of one comparison."""

    kind: Literal["equal", "wrong", "cannot tell", "refused"]
    shape: Shape
    compared: Compared | None = None
    finding: Finding | None = None
    sentence: str = ""


def prove(
    subject: Subject,
    *,
    lean: Callable[[str], str],
    seconds: float,
    said: Callable[[str], None] = lambda line: None,
) -> Verdict:
    """The verdict on a kernel.

    lean: the sentence about the committed Lean text of a kernel; seconds: of processor time for
    all inputs of shapes, and again for whole numbers, after which no further shape is begun; said:
    called with a line about each run.
    """
    roundings: set[str] = set()
    levels = []
    for level in _LEVELS:
        result = _level(subject, level, seconds, roundings, said)
        levels.append(result)
        if result.word == "WRONG":
            break
    error = max(((s.kv_len + 4) / Q for s in levels[0].equal), default=0.0)
    notes = list(getattr(subject, "notes", ()))
    return Verdict(subject.name, levels, roundings, lean(subject.name), error, notes)


# The fields have no order, and formulas are for few tiles: that exp2 takes no number above 0 is, of
# many tiles, seen by the last.
_LEVELS: tuple[Level, ...] = ("fields", "formal", "rational")


def _level(
    subject: Subject,
    level: Level,
    seconds: float,
    roundings: set[str],
    said: Callable[[str], None],
) -> LevelResult:
    result = LevelResult(level)
    begun = time.process_time()
    rate = 0.0
    for shape in subject.shapes(level):
        used = time.process_time() - begun
        if level != "fields" and result.equal and used + rate * _work(shape) > seconds:
            result.left.append(shape)
            continue
        said(f"{subject.name}, {result.level}: {shape.q_len} × {shape.kv_len} …")
        outcome = _outcome(subject, shape, level)
        if level == "formal" and outcome.kind == "wrong" and outcome.compared is not None:
            outcome = _confirm(subject, outcome)
        if outcome.kind == "refused":
            result.refused.append((shape, outcome.sentence))
            continue
        if outcome.compared is not None:
            roundings |= outcome.compared.roundings
            result.assumed |= outcome.compared.assumed
        if outcome.kind == "equal" and outcome.compared is not None:
            result.equal.append(shape)
            result.elements += outcome.compared.elements
            rate = max(rate, (time.process_time() - begun - used) / _work(shape))
            continue
        if outcome.kind == "wrong":
            said(f"{subject.name}: wrong; smaller shapes …")
            outcome = _smallest(subject, outcome, level)
            outcome = _with_formula(subject, outcome, seconds)
        result.finding, result.wrong = outcome.finding, outcome.kind == "wrong"
        break
    return result


def _work(shape: Shape) -> float:
    """A number to which the time of a run is about proportional."""

    def whole(n: int) -> int:
        return max(16, n)

    pairs = whole(shape.q_len) * whole(shape.kv_len)
    return shape.batch * shape.heads * pairs * (shape.head_dim + shape.value_dim)


def _outcome(subject: Subject, shape: Shape, level: Level, only: Place | None = None) -> _Outcome:
    try:
        compared = subject.compare(shape, level, only=only)
    except Refused as error:
        return _Outcome("refused", shape, sentence=str(error))
    except Violation as error:
        finding = _finding_of(error, shape, str(error.what))
        if error.kind != _KINDS_SEEN_BY_ORDER or _overflows(subject, shape):
            return _Outcome("wrong", shape, finding=finding)
        what = f"whether exp2 is of numbers ≤ 0 alone: {error.what}"
        return _Outcome("cannot tell", shape, finding=replace(finding, what=what))
    except CannotTell as error:
        return _Outcome("cannot tell", shape, finding=_finding_of(error, shape, error.what))
    except (NotKnown, TtirError, Undecided, ValueError) as error:
        return _Outcome("cannot tell", shape, finding=Finding(shape, str(error)))
    if compared.equal:
        return _Outcome("equal", shape, compared)
    first = compared.wrong[0]
    what = f"{compared.wrong_elements} of {compared.elements} elements are not attention's"
    if first.program < 0:
        what += "; the first was stored by no program"
    program = None if first.program < 0 else subject.program(shape, first.program, first.name)
    finding = Finding(shape, what, "", program, first.name, first.place, first.found, first.wanted)
    return _Outcome("wrong", shape, compared, finding)


def _confirm(subject: Subject, outcome: _Outcome) -> _Outcome:
    """The outcome of the comparison of formulas, unless random numbers contradict it: two formulas
    that are written differently can be one number, as where weights add up to 1."""
    if _outcome(subject, outcome.shape, "fields").kind != "equal" or outcome.finding is None:
        return outcome
    what = "formulas differ, of which random numbers show no difference"
    finding = replace(outcome.finding, what=what)
    return replace(outcome, kind="cannot tell", finding=finding)


def _finding_of(error: Violation | CannotTell, shape: Shape, what: str) -> Finding:
    operation = f"{error.operation.name} at {error.operation.location}"
    return Finding(shape, what, operation, error.program, "", error.element)


def _overflows(subject: Subject, shape: Shape) -> bool:
    """Whether exp2 is of a positive number for some rational inputs: that the domain of all inputs
    cannot order two numbers does not show it."""
    for seed in range(4):
        try:
            subject.compare(shape, "rational", seed)
        except Violation as error:
            if error.kind == _KINDS_SEEN_BY_ORDER:
                return True
        except (CannotTell, NotKnown, Refused, Undecided, ValueError):
            return False
    return False


def _smaller(shape: Shape) -> Iterator[Shape]:
    """Shapes that are smaller in one respect, the smallest first."""
    if shape.batch > 1:
        yield replace(shape, batch=1)
    if shape.heads > 1:
        yield replace(shape, heads=1, kv_heads=1)
        if shape.kv_heads > 1:
            yield replace(shape, heads=shape.heads // shape.kv_heads, kv_heads=1)
    if shape.window != (None, None):
        yield replace(shape, window=(None, None), alignment=Alignment.TOP_LEFT)
    for n in _LENGTHS:
        if n < max(shape.q_len, shape.kv_len) and shape.q_len == shape.kv_len:
            yield replace(shape, q_len=n, kv_len=n)
    for n in _LENGTHS:
        if n < shape.q_len:
            yield replace(shape, q_len=n)
    for n in _LENGTHS:
        if n < shape.kv_len:
            yield replace(shape, kv_len=n)
    for n in _DIMS:
        if n < max(shape.head_dim, shape.value_dim):
            yield replace(shape, head_dim=min(n, shape.head_dim), value_dim=min(n, shape.value_dim))


def _smallest(subject: Subject, outcome: _Outcome, level: Level) -> _Outcome:
    """The outcome of a shape that is wrong too and has no smaller one which is, as far as a number
    of tries tells."""
    tried = {outcome.shape}
    again = True
    while again:
        again = False
        for shape in _smaller(outcome.shape):
            if shape in tried or len(tried) > _MOST_TRIES:
                continue
            tried.add(shape)
            found = _outcome(subject, shape, level)
            if found.kind == "wrong":
                outcome, again = found, True
                break
    return outcome


# Multiplications of formulas in a second of processor time, about.
_PER_SECOND = 4000.0


def _with_formula(subject: Subject, outcome: _Outcome, seconds: float) -> _Outcome:
    """The wrong element as formulas of all inputs, if it was found by random numbers and the shape
    is small enough."""
    finding, compared = outcome.finding, outcome.compared
    if finding is None or compared is None or finding.output not in _FORMULAS:
        return outcome
    if _work(outcome.shape) / _PER_SECOND > seconds or finding.element is None:
        return outcome
    found = _outcome(subject, outcome.shape, "formal", (finding.output, finding.element))
    if found.kind != "wrong" or found.finding is None or not found.finding.found:
        return outcome
    formula = replace(finding, found=found.finding.found, wanted=found.finding.wanted)
    return replace(outcome, finding=formula)
