"""An attention function checked from Python: `from bridge import check`."""

from __future__ import annotations

import inspect
import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from torch import Tensor

from bridge import garbage, interpreting
from bridge.conformance.adapters.callables import is_callable_name
from bridge.conformance.flashinfer.bench import traces
from bridge.conformance.functions.features import Aligned, CallableError
from bridge.conformance.judging.parallel import Workers
from bridge.conformance.judging.run import Buffers
from bridge.conformance.outcomes.likely import with_likely
from bridge.conformance.outcomes.outcome import Conditions, NotJudged, Outcome, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.requests.request import Asked, Misuse, Request, choose_committed
from bridge.report import junit, tables
from bridge.terminal import tell
from bridge.vectors.model.attention import Family
from bridge.vectors.model.decode import decoded_families

# Of the text of a verdict, in characters.
_WIDTH = 100


@garbage.rare_searches()
def check(
    function: str | Callable[..., Tensor | tuple[Tensor, ...]],
    *,
    dtypes: Iterable[str] = (),
    device: str = "cpu",
    rounding_model: str | None = None,
    families: Iterable[str] = (),
    vectors: Iterable[str] = (),
    without: Iterable[str] = (),
    require: Iterable[str] = (),
    alignment: Aligned = "top-left",
    time_limit: float = 60.0,
    also: Iterable[str | Path] = (),
    require_sandbox: bool = False,
    first_failure: bool = False,
    seed: int | None = None,
    fresh: int | None = None,
    count: int | None = None,
    buffers: Buffers = "some",
    large: bool = False,
    problem: str | Path | None = None,
    operation: Asked = "attention",
    definition: str | Path | None = None,
    workload: str | Path | None = None,
    processes: int | None = None,
    layout: str = "contiguous",
) -> Verdict:
    """Run an attention function on the vectors, and judge all that it returns.

    It runs in processes of its own, in a sandbox, and never in this one. `docs/conform.md` says how
    it is called, which results are judged, and up to which sizes a pass speaks.

    function: takes query, key and value, `[batch, heads, length, dim]`, as SDPA does, and is
      defined at the top level of a module or file, so that another process can import it; or its
      name, `module:function` or `path/to/file.py:function`; or that of a built-in adapter.
    dtypes: of float64, float32, float16 and bfloat16; none: all that it takes.
    device: as PyTorch names it.
    rounding_model: sets the tolerances; None: an adapter's own, else `generous`.
    families, vectors: only these, by name and by id; none: all.
    without: features that are declared unsupported.
    require: features, and dtypes, without which it does not pass.
    alignment: how `is_causal` is aligned, for a function without an argument that says so.
    time_limit: seconds of processor time for one call.
    also: files and folders that it may read.
    require_sandbox: raise where the system has no sandbox.
    first_failure: stop at the first failure; the most telling vectors come first.
    seed: of the vectors' order; fresh: of the fresh vectors; None: drawn.
    count: of fresh vectors, 0 for none; large: at real sizes, too.
    buffers: which calls are made again with query, key and value in larger buffers, which are NaN
      around them: `some`, `all` or `none`.
    problem: a file of KernelBench's form, with `class Model`, `get_inputs` and `get_init_inputs`;
      `function` is then a class of models such as `ModelNew`, which is judged as a function of the
      operation that `Model` is found to compute, in the dtype of the problem's inputs.
    operation: of the function; "decode": it is called step by step with a cache, as
      `docs/conform.md` says, and judged on vectors of decoding.
    definition: a file of FlashInfer-Bench's form; `function` is then a file with a Solution, which
      is judged as the attention that the definition is found to state. workload: a file of traces,
      whose sizes are those of the fresh vectors.
    processes: so many call the function, each with its shards of queries, keys and values, as
      `docs/conform.md` says; layout: contiguous, zigzag or striped.

    Raises ValueError that names the argument which is not accepted, CallableError (a ValueError)
    for a function that cannot be called as SDPA is, and NoSandboxError (a RuntimeError).
    """
    for argument, value in (
        ("dtypes", dtypes), ("families", families), ("vectors", vectors),
        ("without", without), ("require", require), ("also", also),
    ):  # fmt: skip
        if isinstance(value, str | Path):
            raise Misuse(argument, f"{str(value)!r} is given; a list of them is accepted")
    interpreting.settle()
    request = Request(
        (function if isinstance(function, str) else name_of(function),),
        dtypes=tuple(dtypes),
        device=device,
        rounding_model=rounding_model,
        families=tuple(families),
        vectors=tuple(vectors),
        without=tuple(without),
        require=tuple(require),
        alignment=alignment,
        time_limit=time_limit,
        also=tuple(map(Path, also)),
        require_sandbox=require_sandbox,
        first_failure=first_failure,
        seed=seed,
        fresh=fresh,
        count=count,
        buffers=buffers,
        large=large,
        problem=None if problem is None else Path(problem),
        operation=operation,
        definition=None if definition is None else Path(definition),
        workload=None if workload is None else Path(workload),
        processes=processes,
        layout=layout,
    )
    return judge(request)


def judge(request: Request, announce: Callable[[str], None] = lambda text: None) -> Verdict:
    """Carry out a request. announce: is told each next step. Raises CallableError, NoSandboxError
    and VectorError, and Misuse where no function takes a dtype asked for."""
    families = choose_committed(request.families, request.vectors)
    subjects = request.subjects()
    operation = subjects[0].operation if subjects else None
    if operation is not None and not (request.families or request.vectors):
        families = operation.choose(families)
    if request.definition is not None and subjects:
        bench = subjects[0].bench
        families = families if bench is None else bench.choose(families)
    if request.decode:
        families = decoded_families(families)
        if not families and request.conditions.fresh is None:
            argument = "families" if request.families else "vectors"
            raise Misuse(argument, "none of these vectors is of decoding")
    verdict = Verdict(request.dtypes, families, request.conditions)
    if len(subjects) > 1 and all(is_callable_name(subject.name) for subject in subjects):
        verdict.add_each(subjects, announce)
    else:
        for subject in subjects:
            verdict.add(subject, announce)
    if not verdict.outcomes and (len(subjects) == 1 or not verdict.refused):
        none = (f"{one.name} {one.reason}" for one in verdict.refused)
        raise Misuse("dtypes", "; ".join([*verdict.skipped, *none]))
    return verdict


def name_of(function: Callable[..., Any]) -> str:
    """The name by which another process imports a function. Raises Misuse for one that none has."""
    accepted = "a function that a module or file defines at its top level is accepted"
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if not callable(function):
        raise Misuse("function", f"{function!r} is given; {accepted}, or its name")
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if module is None or found is not function:
        raise Misuse("function", f"{name} is not found by its name; {accepted}")
    file = Path(getattr(module, "__file__", None) or "")
    # A test runner gives modules dotted names without a package that could be imported.
    if (file.parent / "__init__.py").exists() or inspect.isbuiltin(function):
        return f"{module.__name__}:{name}"
    if file.suffix != ".py":
        raise Misuse("function", f"{name} is defined in no file; {accepted}")
    return f"{file}:{name}"


def _judge_one(
    job: tuple[Subject, tuple[str, ...], Conditions], families: Sequence[Family]
) -> tuple[Subject, Verdict]:
    """In a process of its own: one of several functions."""
    subject, dtypes, conditions = job
    verdict = Verdict(dtypes, families, conditions)
    try:
        verdict.add(subject)
    except CallableError as error:
        verdict.refused.append(NotJudged(subject.name, str(error.__cause__)))
    # The process that asked has them.
    verdict.families = ()
    return subject, verdict


class Verdict:
    """The results of the vectors: true if every one that is supported passes, and every required
    feature is supported. As a string, the report that the command `conform` prints."""

    def __init__(
        self, dtypes: tuple[str, ...], families: Sequence[Family], conditions: Conditions
    ) -> None:
        self.dtypes, self.families, self.conditions = dtypes, families, conditions
        self.outcomes: list[Outcome] = []
        self.skipped: list[str] = []
        # Of several functions those that cannot be called, or take none of the dtypes asked for.
        self.refused: list[NotJudged] = []

    @property
    def ok(self) -> bool:
        """Everything that was run passes, and something was run of each."""
        return not self.refused and all(outcome.ok for outcome in self.outcomes)

    def __bool__(self) -> bool:
        return self.ok

    def add(self, subject: Subject, announce: Callable[[str], None] = lambda text: None) -> None:
        """Run it in the dtypes asked for. Raises CallableError, with the function's name, and
        NoSandboxError."""

        def keep_and_announce(text: str) -> None:
            if "does not take" in text:
                self.skipped.append(text)
            announce(text)

        try:
            found = [
                *outcomes(subject, self.families, self.dtypes, self.conditions, keep_and_announce)
            ]
        except CallableError as error:
            raise CallableError(f"{subject.name}: {error}") from error
        if any(outcome.result.failures for outcome in found):
            announce(f"{subject.name}: the likely cause …")
            found = with_likely(found, self._run(found))
        if not found and is_callable_name(subject.name):
            # It does not pass: nothing of it was judged.
            reason = self.skipped.pop().removeprefix(subject.name).lstrip()
            self.refused.append(NotJudged(subject.name, reason))
        self.outcomes += found

    def add_each(
        self, subjects: Sequence[Subject], announce: Callable[[str], None] = lambda text: None
    ) -> None:
        """Run functions beside each other, on all processors. One that cannot be called is told in
        the report. Raises NoSandboxError."""
        found: dict[Subject, Verdict] = {}

        def count_done(part: tuple[Subject, Verdict]) -> None:
            subject, verdict = part
            found[subject] = verdict
            state = "passes" if verdict else "fails"
            announce(f"{subject.name} {state}, {len(found)} of {len(subjects)} done")

        conditions = self.conditions
        jobs = [(subject, self.dtypes, conditions) for subject in subjects]
        with Workers(self.families, conditions.device, most=len(jobs)) as workers:
            workers.each(_judge_one, jobs, count_done)
        for subject in subjects:
            verdict = found[subject]
            self.outcomes += verdict.outcomes
            self.skipped += verdict.skipped
            self.refused += verdict.refused

    def _run(self, found: Sequence[Outcome]) -> list[Family]:
        """The vectors of the files, and those drawn, which are the same for all outcomes."""
        fresh = next((outcome.fresh for outcome in found if outcome.fresh is not None), None)
        return [*self.families, *(() if fresh is None else fresh.families)]

    def json(self) -> str:
        """A list with an object for each implementation and dtype, and for each function that was
        not judged."""
        entries = [one.to_json() for one in self.outcomes]
        entries += [one.to_json() for one in self.refused]
        return json.dumps(entries, allow_nan=False)

    def junit(self) -> str:
        """JUnit XML, for continuous integration."""
        return junit.junit(self.outcomes, self.refused)

    def traces(self) -> str:
        """The verdict on solutions of FlashInfer-Bench as its Traces, a line of JSON each."""
        families = self._run(self.outcomes)
        vectors = {vector.id: vector for family in families for vector in family.vectors}
        lines = (line for o in self.outcomes if o.subject.bench for line in traces(o, vectors))
        return "".join(f"{line}\n" for line in lines)

    def html(self) -> str:
        """One page that shows each failure."""
        # It imports the page writers.
        from bridge.report import page

        return page.page(self.outcomes, self._run(self.outcomes), refused=self.refused)

    def show(self, console: Console) -> None:
        """Tables: by family for one implementation, else a line for each."""
        results = [outcome.to_json() for outcome in self.outcomes]
        refused = [one.to_json() for one in self.refused]
        section = {"device": self.conditions.device, "results": results, "not_judged": refused}
        tables.implementations(console, section)
        if len({outcome.subject.name for outcome in self.outcomes}) == 1:
            tables.by_family(console, results)
        subjects = [outcome.subject for outcome in self.outcomes]
        for stated in sorted({str(one.bench.operation) for one in subjects if one.bench}):
            tell(console, f"The definition: {stated}.")
        for text in sorted({str(one.operation) for one in subjects if one.operation}):
            tell(console, f"The problem: {text}.")
        for shards in {one.shards for one in subjects if one.shards is not None}:
            tell(console, f"A function of shards: {shards}.")
        if any(outcome.description.features is not None for outcome in self.outcomes):
            tell(console, f"Order of the vectors: --seed {self.conditions.seed}.")
        if self.conditions.fresh is not None:
            tell(console, f"Fresh vectors: {' '.join(self.conditions.fresh.options())}.")
        for why in sorted({o.without_walls for o in self.outcomes if o.without_walls is not None}):
            tell(console, tables.no_sandbox(why), "bold red")
        for sentence in self.skipped:
            tell(console, f"Not run: {sentence}")
        for one in self.refused:
            tell(console, f"Not judged: {one}", "red")

    def __str__(self) -> str:
        text = io.StringIO()
        self.show(Console(file=text, width=_WIDTH))
        return text.getvalue()

    def __repr__(self) -> str:
        names = ", ".join(dict.fromkeys(outcome.subject.name for outcome in self.outcomes))
        failed = sum(len(outcome.result.failures) for outcome in self.outcomes)
        return f"<Verdict on {names}: {'passes' if self.ok else 'fails'}, {failed} vectors failed>"
