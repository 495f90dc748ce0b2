"""A request to the judge, checked before anything runs."""

from __future__ import annotations

import difflib
import itertools
import secrets
from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal, get_args

import torch

from bridge.conformance.adapters import callables, libraries
from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.decoding import form
from bridge.conformance.drawing import fresh as drawing
from bridge.conformance.drawing.fresh import Fresh
from bridge.conformance.flashinfer.bench import prepare
from bridge.conformance.flashinfer.files import BenchError
from bridge.conformance.functions.features import NAMES, Aligned, CallableError
from bridge.conformance.inside import found
from bridge.conformance.inside.shards import LAYOUTS, Shards
from bridge.conformance.judging.run import Buffers
from bridge.conformance.kernelbench.problems import learn
from bridge.conformance.outcomes.outcome import Conditions
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tolerances.rounding_model import CHOICES
from bridge.vectors import load as loader
from bridge.vectors.format import index
from bridge.vectors.model.attention import Family

# The operations that a function may compute.
Asked = Literal["attention", "decode"]
# Of a function of shards.
MOST_PROCESSES = 8


class Misuse(ValueError):
    """An argument that is not accepted. argument: its name; sentence: the value given, and the
    values accepted. The message has both."""

    def __init__(self, argument: str, sentence: str) -> None:
        super().__init__(f"{argument}: {sentence}")
        self.argument, self.sentence = argument, sentence


@dataclass(frozen=True)
class Request:
    """Which implementations run on which vectors, and how.

    functions: `module:function`, `path/to/file.py:function`, `path/to/folder/:function` for that of
    each file in a folder, or a built-in adapter; the rest as `bridge.verdict.check` has it. Raises
    Misuse for an argument that is not accepted, and VectorError for damaged vectors.
    """

    functions: tuple[str, ...]
    _: KW_ONLY
    dtypes: tuple[str, ...] = ()
    device: str = "cpu"
    rounding_model: str | None = None
    families: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    alignment: Aligned = "top-left"
    undeclared: bool = False
    time_limit: float = 60.0
    also: tuple[Path, ...] = ()
    require_sandbox: bool = False
    first_failure: bool = False
    seed: int | None = None
    fresh: int | None = None
    count: int | None = None
    buffers: Buffers = "some"
    large: bool = False
    problem: Path | None = None
    operation: Asked = "attention"
    definition: Path | None = None
    workload: Path | None = None
    processes: int | None = None
    layout: str = LAYOUTS[0]
    conditions: Conditions = field(init=False, repr=False)
    # Of the sources of solutions; it goes with the request.
    folder: TemporaryDirectory[str] = field(
        default_factory=TemporaryDirectory, init=False, repr=False
    )

    def __post_init__(self) -> None:
        for name in () if self.definition is not None else self.functions:
            check_function(name)
        each = tuple(one for name in self.functions for one in in_folder(name))
        for name in each:
            check_printable("function", name)
        object.__setattr__(self, "functions", tuple(dict.fromkeys(each)))
        check_known("dtypes", self.dtypes, ALL_DTYPES, "a dtype that the vectors run in")
        models = () if self.rounding_model is None else (self.rounding_model,)
        check_known("rounding_model", models, CHOICES, "a rounding model")
        names = form.NAMES if self.decode else NAMES
        check_known("without", self.without, names, "a feature")
        check_known("require", self.require, [*names, *ALL_DTYPES], "a feature or a dtype")
        check_known("operation", [self.operation], get_args(Asked), "an operation")
        check_known("alignment", [self.alignment], get_args(Aligned), "an alignment")
        check_known("buffers", [self.buffers], get_args(Buffers), "a choice of calls")
        for name in () if self.definition is not None else self.functions:
            if not callables.is_callable_name(name):
                self._check_builtin(name)
        for name in sorted(set(self.without) & set(self.require)):
            raise Misuse("require", f"{name!r} is declared unsupported, too")
        if not 0 < self.time_limit < 1e6:
            raise Misuse("time_limit", f"{self.time_limit:g} is not a number of seconds above 0")
        check_device(self.device)
        if self.problem is not None:
            self._check_problem(self.problem)
        if self.decode:
            self._check_decode()
        if self.definition is not None:
            self._check_definition(self.definition)
        elif self.workload is not None:
            raise Misuse("workload", "is given without a definition")
        self._check_shards()
        for path in self.also:
            if not path.exists():
                raise Misuse("also", f"there is no file or folder {str(path)!r}")
        conditions = Conditions(
            device=self.device,
            limit=self.time_limit,
            also=self.also,
            required=self.require_sandbox,
            first_failure=self.first_failure,
            buffers=self.buffers,
            fresh=self._fresh_vectors(),
        )
        if self.seed is not None:
            conditions = replace(conditions, seed=self.seed)
        object.__setattr__(self, "conditions", conditions)

    def _check_builtin(self, name: str) -> None:
        why = f"{name} is built in; features are declared of functions"
        for argument in ("without", "require"):
            if getattr(self, argument):
                raise Misuse(argument, why)
        if self.alignment != "top-left":
            raise Misuse("alignment", f"{name} is built in and declares its own")

    def _check_problem(self, problem: Path) -> None:
        if problem.suffix != ".py" or not problem.is_file():
            raise Misuse("problem", f"there is no file of Python {str(problem)!r}")
        sentence = "a problem determines the computation; none is accepted with one"
        self._refuse(sentence, without=self.without, **self._of_functions())
        self._refuse_builtin("problem", "a class of models is accepted")

    def _of_functions(self) -> dict[str, object]:
        """The arguments that only attention functions have, by name; false: the default."""
        aligned = self.alignment != "top-left"
        return {"alignment": aligned, "undeclared": self.undeclared, "large": self.large}

    def _refuse(self, sentence: str, **given: object) -> None:
        """Raise Misuse for the first of these arguments that is given."""
        for argument, value in given.items():
            if value:
                raise Misuse(argument, sentence)

    def _refuse_builtin(self, argument: str, sentence: str) -> None:
        """Raise Misuse for a function that is none of somebody else's."""
        for name in self.functions:
            if not callables.is_callable_name(name):
                raise Misuse(argument, f"{name} is built in; {sentence}")

    @property
    def decode(self) -> bool:
        """Whether the functions are called step by step with a cache."""
        return self.operation == "decode"

    def _check_decode(self) -> None:
        sentence = "none is accepted for decoding"
        self._refuse(sentence, **self._of_functions(), problem=self.problem)
        self._refuse_builtin("operation", "decoding is judged of functions")

    def _check_definition(self, definition: Path) -> None:
        self._refuse(
            "a definition determines the computation; none is accepted", **self._of_functions(),
            problem=self.problem, operation=self.decode, without=self.without,
            require=self.require, dtypes=self.dtypes,
        )  # fmt: skip
        named = {"definition": definition, "workload": self.workload}
        for argument, path in named.items():
            if path is not None and not path.is_file():
                raise Misuse(argument, f"there is no file {str(path)!r}")
        for name in self.functions:
            if not Path(name).is_file():
                raise Misuse("function", f"there is no file {name!r}; a solution's is accepted")

    def _check_shards(self) -> None:
        check_known("layout", [self.layout], LAYOUTS, "a layout of shards")
        if self.processes is None:
            if self.layout != LAYOUTS[0]:
                raise Misuse("layout", "is given without a number of processes")
            return
        if not 1 <= self.processes <= MOST_PROCESSES:
            accepted = f"1 to {MOST_PROCESSES} are accepted"
            raise Misuse("processes", f"{self.processes} is given; {accepted}")
        if not self.device.startswith("cpu"):
            raise Misuse("device", f"{self.device!r} is given; processes are judged on cpu alone")
        self._refuse(
            "is given with processes; functions of shards are attention", problem=self.problem,
            definition=self.definition, operation=self.decode,
        )  # fmt: skip
        self._refuse_builtin("processes", "a function of shards is accepted")

    @property
    def shards(self) -> Shards | None:
        """How several processes have their parts; None: one has all."""
        return None if self.processes is None else Shards(self.processes, self.layout)

    def _fresh_vectors(self) -> Fresh | None:
        """The fresh vectors that were asked for; without a choice of vectors some by default, with
        one those alone that it names. None: none. Raises Misuse for vectors that cannot be drawn.
        """
        seed, number = self.fresh, drawing.COUNT if self.count is None else self.count
        if not 0 <= number <= drawing.MOST:
            raise Misuse("count", f"{number} is given; 0 to {drawing.MOST} are accepted")
        if seed is not None and seed < 0:
            raise Misuse("fresh", f"{seed} is given; a seed of 0 or more is accepted")
        names = tuple(name for name in self.families if name in drawing.FAMILIES)
        ids = tuple(id for id in self.vectors if _is_fresh(id))
        asked = seed is not None or self.large or names or ids
        if not number:
            if asked:
                sentence = "0 is given with fresh vectors to draw; 1 or more is accepted"
                raise Misuse("count", sentence)
            return None
        if not asked and self.count is None and (self.families or self.vectors):
            return None
        if ids and seed is None:
            raise Misuse("vectors", "a fresh vector is another for each seed, and no seed is given")
        drawn = Fresh(
            secrets.randbelow(1 << 32) if seed is None else seed,
            number,
            self.large,
            names,
            ids,
            problem=self.problem is not None,
            decode=self.decode,
            definition=self.definition is not None,
            multiple=1 if self.shards is None else self.shards.multiple,
        )
        listed = drawn.list_names()
        check_known("vectors", ids, [id for _, id in listed], "a fresh vector of this count")
        check_known("families", names, [name for name, _ in listed], "a fresh family of this count")
        return drawn

    def _solutions(self, definition: Path) -> list[Subject]:
        found = []
        for n, name in enumerate(self.functions):
            folder = Path(self.folder.name) / str(n)
            try:
                bench = prepare(Path(name), definition, self.workload, folder, self.conditions)
            except BenchError as error:
                raise Misuse("definition", str(error)) from error
            shown = f"{bench.solution}:{bench.function.rpartition(':')[2]}"
            found.append(Subject(shown, self.rounding_model, bench=bench))
        return found

    def subjects(self) -> list[Subject]:
        """The subjects, in order. Raises Misuse for a problem whose operation is not known."""
        if self.definition is not None:
            return self._solutions(self.definition)
        operation = None
        if self.problem is not None:
            try:
                operation = learn(self.problem, self.conditions)
            except CallableError as error:
                raise Misuse("problem", f"{self.problem}: {error}") from error
        return [
            Subject(
                name,
                self.rounding_model,
                self.without,
                undeclared=self.undeclared,
                causal_alignment=self.alignment,
                require=self.require,
                problem=self.problem,
                operation=operation,
                decode=self.decode,
                shards=self.shards,
            )
            for name in self.functions
        ]


def check_function(name: str) -> None:
    """Raises Misuse unless this names a function or a built-in adapter, and for one that needs a
    package that is not here."""
    if name not in libraries.names() and not callables.is_callable_name(name):
        hint = (
            f"To test a function in that file, give {name}:FUNCTION_NAME"
            if name.endswith(".py")
            else "Give module:function or file.py:function"
        )
        raise Misuse(
            "function",
            f"{name!r} is not an implementation. {hint}, or one that is "
            f"built in: {', '.join(libraries.names())}",
        )
    if callables.is_callable_name(name) and not found.is_well_formed(name):
        raise Misuse(
            "function",
            f"{name!r} is given; module:function or file.py:function is "
            "accepted, or the name of a built-in implementation",
        )
    absent = libraries.missing_packages(name)
    if absent is not None:
        raise Misuse(
            "function", f"{name} needs packages that are not installed: pip install {absent}"
        )


def check_printable(argument: str, name: str) -> None:
    """Raises Misuse for a name that a terminal or a report would not show as it is."""
    if not name.isprintable():
        raise Misuse(argument, f"{name!a} is given; a name of printable characters is accepted")


def in_folder(name: str) -> list[str]:
    """The function of each file of a folder, for `folder/:function`; another name alone. Raises
    Misuse where there are no files."""
    place, _, function = name.rpartition(":")
    if not place.endswith("/"):
        return [name]
    files = sorted(path for path in Path(place).glob("*.py") if path.name != "__init__.py")
    if not files:
        raise Misuse("function", f"{name!r} is given, and {place} has no Python file")
    return [f"{file}:{function}" for file in files]


def choose_vectors(families: tuple[str, ...], ids: tuple[str, ...]) -> list[Family]:
    """The vectors of the files that were asked for; all if none were. Raises Misuse for a name that
    none has, and VectorError for damaged vectors."""
    entries = index.entries_of(loader.default_directory())
    check_known("families", families, [e["family"] for e in entries], "a family")
    ids_of = {e["family"]: index.ids(e) for e in entries}
    check_known("vectors", ids, itertools.chain(*ids_of.values()), "the id of a vector")
    of_ids = [name for name, known in ids_of.items() if not set(ids).isdisjoint(known)]
    loaded = loader.load(names=[*families, *of_ids] if families or ids else None)
    chosen = []
    for family in loaded:
        whole = family.name in families or not (families or ids)
        vectors = tuple(v for v in family.vectors if whole or v.id in ids)
        chosen.append(replace(family, vectors=vectors))
    return chosen


def choose_committed(families: tuple[str, ...], ids: tuple[str, ...]) -> list[Family]:
    """`choose_vectors`, for a choice that may name fresh vectors too."""
    others = tuple(name for name in families if name not in drawing.FAMILIES)
    of_files = tuple(id for id in ids if not _is_fresh(id))
    nothing_else = (families or ids) and not (others or of_files)
    return [] if nothing_else else choose_vectors(others, of_files)


def _is_fresh(id: str) -> bool:
    return id.rpartition("-")[0] in drawing.FAMILIES


def check_known(argument: str, given: Iterable[str], accepted: Iterable[str], what: str) -> None:
    """Raises Misuse for a name that is not accepted, with all that are, or the nearest of many (of
    families and vectors alone there are many). what: the kind of thing named."""
    known = list(accepted)
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, 3)
            if len(known) <= 20:
                hint = f"{', '.join(known)} are"
            elif near:
                hint = f"the nearest {'is' if len(near) == 1 else 'are'} {', '.join(near)}"
            else:
                hint = "docs/vectors.md lists the families"
            raise Misuse(argument, f"{name!r} is not {what}; {hint}")


def check_device(device: str) -> None:
    """Raises Misuse for a device that PyTorch does not have here."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise Misuse("device", f"PyTorch cannot use {device!r} here: {reason}") from error
