"""The findings of `conform` on one implementation: its features, and its results of the vectors."""

from __future__ import annotations

import contextlib
import random
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bridge.conformance.adapters import callables, libraries
from bridge.conformance.adapters.adapter import ALL_DTYPES, Adapter
from bridge.conformance.decoding import probe as decoders
from bridge.conformance.decoding.form import Form
from bridge.conformance.drawing.fresh import Fresh
from bridge.conformance.functions import features
from bridge.conformance.functions.features import Features
from bridge.conformance.functions.operation import Operation
from bridge.conformance.inside.shards import Shards
from bridge.conformance.judging.run import Buffers, Result, run
from bridge.conformance.judging.threads import one_thread
from bridge.conformance.kernelbench import problems
from bridge.conformance.outcomes.subject import Subject, adapter_of
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.sandbox.session import Lost, Session
from bridge.conformance.tensors.batch import DTYPES
from bridge.vectors.model.attention import Family

# Queries and keys of a call that takes several tiles.
_PAST_TILES = 130

if TYPE_CHECKING:
    # Looked for after failures alone.
    from bridge.conformance.outcomes.likely import Likely


@dataclass(frozen=True)
class Description:
    """dtypes: those that an implementation takes. Of a function also its features, and whose
    attention it calls, as its own process says."""

    dtypes: tuple[str, ...]
    features: Features | None = None
    borrows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """One implementation in one dtype, with its results. without_walls: why its process had no
    sandbox; None if it had one, or runs no function of somebody else's; also: other files that this
    process saw; fresh: the vectors that were drawn for it, None: none; likely: why it fails, None:
    it does not, or this was not looked for."""

    subject: Subject
    description: Description
    result: Result
    without_walls: str | None = None
    also: tuple[Path, ...] = ()
    fresh: Fresh | None = None
    likely: Likely | None = None

    @property
    def lacking(self) -> dict[str, str]:
        """The features that are required and not supported, with the reason."""
        able, dtypes = self.description.features, self.description.dtypes
        if able is None:
            return {}
        wanted = [name for name in self.subject.require if name not in able.supported]
        return {
            name: able.unsupported.get(name, f"takes {', '.join(dtypes)} alone")
            for name in wanted
            if name not in dtypes
        }

    @property
    def ok(self) -> bool:
        """Every supported vector passes, there is at least one, and every requirement is met."""
        return self.result.ok and not self.lacking

    def to_json(self) -> dict[str, Any]:
        """`Result.to_json`, with the features of a function."""
        able = self.description.features
        found = {
            **self.result.to_json(),
            "ok": self.ok,
            "lacking": self.lacking,
            "without_sandbox": self.without_walls,
            "fresh": None if self.fresh is None else self.fresh.to_json(),
            "likely": None if self.likely is None else self.likely.to_json(),
        }
        if able is None:
            return found
        if self.subject.shards is not None:
            found["shards"] = asdict(self.subject.shards)
        if self.subject.operation is not None:
            found["operation"] = str(self.subject.operation)
        judged = {"judged_alignment": self.subject.causal_alignment}
        borrows = {"borrows": list(self.description.borrows)}
        return {**found, "features": {**able.to_json(), **judged, **borrows}}


@dataclass(frozen=True)
class NotJudged:
    """A function of which nothing was run: its process cannot import it, or it takes none of the
    dtypes asked for. reason: half a sentence about it."""

    name: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name}: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        """Its entry in the place of those that `Outcome.to_json` gives."""
        return {"adapter": self.name, "ok": False, "not_judged": self.reason}


@dataclass(frozen=True)
class Conditions:
    """How functions are run. device: as PyTorch names it; limit, also, required: as of `Session`.
    seed: of the order in which the vectors come, and of the calls that are made twice.
    first_failure: run no more once a vector has failed, and begin with those that tell the most.
    fresh: vectors that are drawn once a function's process runs; None: none.
    buffers: as of `run`."""

    device: str = "cpu"
    limit: float = 60.0
    also: tuple[Path, ...] = ()
    required: bool = False
    first_failure: bool = False
    fresh: Fresh | None = None
    buffers: Buffers = "some"
    seed: int = field(default_factory=lambda: secrets.randbelow(1 << 32))

    def session(
        self, name: str, problem: Path | None = None, shards: Shards | None = None
    ) -> Session:
        """problem: the file whose operation a class of models computes; shards: as of `Session`."""
        more: dict[str, Any] = {"also": self.also, "required": self.required}
        return Session(name, self.device, self.limit, problem=problem, shards=shards, **more)

    def order(self) -> random.Random:
        return random.Random(self.seed)


def outcomes(
    subject: Subject,
    families: Sequence[Family],
    dtypes: Sequence[str],
    conditions: Conditions,
    announce: Callable[[str], None] = lambda text: None,
) -> Iterator[Outcome]:
    """Run it in those of the dtypes that it takes; none: in all. Features are found by probing
    where the subject has none. A function of somebody else's runs in a process of its own, and in a
    new one for each dtype. announce: is told each next step, and which dtypes are not taken. Raises
    CallableError and NoSandboxError."""
    called = _function_name(subject)
    if called is None:
        description = Description(libraries.find(subject.name).dtypes)
        for dtype in _accepted_dtypes(subject, description, dtypes, announce):
            result = _run(adapter_of(subject), families, dtype, conditions)
            yield Outcome(subject, description, result, fresh=conditions.fresh)
            if conditions.first_failure and result.failures:
                return
        return
    if subject.operation is not None and conditions.fresh is not None:
        drawn = replace(conditions.fresh, operation=subject.operation)
        conditions = replace(conditions, fresh=drawn)
    if subject.bench is not None:
        called = subject.bench.function
        more = (*conditions.also, subject.bench.folder)
        conditions = replace(conditions, also=more)
        if conditions.fresh is not None:
            drawn = replace(conditions.fresh, bench=subject.bench)
            conditions = replace(conditions, fresh=drawn)
    with conditions.session(called, subject.problem, subject.shards) as session:
        if subject.operation is not None:
            announce(f"{subject.name}: probing its features …")
            description, refuses = describe_model(session, subject.operation, dtypes)
            subject = replace(subject, features=description.features, refuses=refuses)
        elif subject.bench is not None:
            able = Features(
                (subject.bench.operation.dtype,),
                frozenset(),
                dict.fromkeys(features.NAMES, "a definition determines the computation"),
            )
            description = Description(able.dtypes, able)
            subject = replace(subject, features=able)
        elif subject.decode:
            announce(f"{subject.name}: probing its features …")
            description, form = describe_decoder(session, ALL_DTYPES)
            subject = replace(subject, features=description.features, form=form)
        elif subject.features is not None:
            description = Description(subject.features.dtypes, subject.features)
        elif callables.is_callable_name(subject.name):
            announce(f"{subject.name}: probing its features …")
            # All dtypes: one that refuses those asked for is told from one that always raises.
            description = describe(session, ALL_DTYPES)
            subject = replace(subject, features=description.features)
        else:
            description = Description(libraries.find(subject.name).dtypes)
        for dtype in _accepted_dtypes(subject, description, dtypes, announce):
            session.renew()
            session.open()
            remote = Remote(session, twice=conditions.order())
            adapter = adapter_of(subject, remote, conditions.seed)
            with one_thread():
                result = _run(adapter, families, dtype, conditions)
            yield Outcome(
                subject,
                description,
                result,
                session.without_walls,
                conditions.also,
                conditions.fresh,
            )
            if conditions.first_failure and result.failures:
                return


def _function_name(subject: Subject) -> str | None:
    """The function that runs in a process of its own; None for an implementation of this project's,
    which runs here."""
    if callables.is_callable_name(subject.name):
        return subject.name
    function: str | None = getattr(libraries.find(subject.name), "foreign", None)
    return None if function is None else f"inside.known:{function}"


def _accepted_dtypes(
    subject: Subject,
    description: Description,
    dtypes: Sequence[str],
    announce: Callable[[str], None],
) -> Iterator[str]:
    lacking = [dtype for dtype in dtypes if dtype not in description.dtypes]
    if lacking:
        takes = ", ".join(description.dtypes)
        announce(f"{subject.name} does not take {', '.join(lacking)}, but {takes}")
    for dtype in description.dtypes:
        if dtype in (dtypes or ALL_DTYPES):
            announce(f"{subject.name} {dtype} …")
            yield dtype


def _run(
    adapter: Adapter, families: Sequence[Family], dtype: str, conditions: Conditions
) -> Result:
    until_failure = None
    if conditions.first_failure:
        # It imports all that there are mutants of.
        from bridge.conformance.mutants.attention import telling_families

        until_failure = telling_families()
    # Drawn here, not before: the function is imported by now.
    drawn = () if conditions.fresh is None else conditions.fresh.families
    return run(
        adapter,
        [*families, *drawn],
        dtype,
        conditions.device,
        details=True,
        order=conditions.order(),
        until_failure=until_failure,
        buffers=conditions.buffers,
    )


def describe(session: Session, asked: tuple[str, ...]) -> Description:
    """The features of a session's function, and those of the dtypes asked for that it takes. Raises
    CallableError for one that cannot be called as SDPA is. One that hangs, or ends the process,
    when it is tried counts as taking all that its signature has: the vectors will show it."""
    session.open()
    function = Remote(session)

    try:
        able = features.probe(function, session.device, asked, session.check_loss, session.multiple)
        session.check_loss()
    except Lost as lost:
        session.renew()
        able = features.presume(function, asked, f"a small call {lost}")
        return Description(able.dtypes, replace(able, multiple=session.multiple))
    return Description(able.dtypes, able, _borrows(function, able))


def describe_model(
    session: Session, operation: Operation, asked: Sequence[str]
) -> tuple[Description, str | None]:
    """The same of a model of a problem, in the dtypes asked for, none: the problem's own; and why
    it takes no other sizes than the problem's, if it does not."""
    session.open()
    function = Remote(session)
    dtypes = tuple(asked) or (operation.dtype,)
    given = "a model is called with query, key and value alone"
    able = Features(dtypes, frozenset(), dict.fromkeys(features.NAMES, given))
    try:
        refuses: str | None = "the problem's Model takes no others"
        if operation.any_size:
            refuses = problems.refuses_other_sizes(function, operation)
        borrowed = problems.find_borrowed(function, operation, own=refuses is not None)
    except Lost as lost:
        session.renew()
        able = replace(able, presumed=f"a small call {lost}")
        return Description(dtypes, able), None
    return Description(dtypes, able, borrowed), refuses


def describe_decoder(session: Session, asked: tuple[str, ...]) -> tuple[Description, Form]:
    """The same of a function that is called step by step with a cache, and its form."""
    session.open()
    function = Remote(session)

    try:
        form, able = decoders.probe(function, session.device, asked, session.check_loss)
        session.check_loss()
    except Lost as lost:
        session.renew()
        form, able = decoders.presume(function, asked, f"a small call {lost}")
    return Description(able.dtypes, able), form


def _borrows(function: Remote, able: Features) -> tuple[str, ...]:
    """By a small call and one past the tiles, and that with a causal mask."""
    dtype = DTYPES[able.dtypes[0]]
    few, many = (-(-n // able.multiple) * able.multiple for n in (2, _PAST_TILES))
    small = torch.ones(1, 1, few, able.width or 4, dtype=dtype)
    large = torch.ones(1, 1, many, able.width or 64, dtype=dtype)
    calls: list[tuple[Tensor, dict[str, bool]]] = [(small, {}), (large, {})]
    if "is-causal" in able.supported:
        calls.append((large, {"is_causal": True}))
    found: set[str] = set()
    for query, options in calls:
        # The vectors show the errors that a call raises.
        with contextlib.suppress(Exception):
            found.update(function.find_borrowed(query, query, query, **options))
    return tuple(sorted(found))
