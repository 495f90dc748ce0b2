"""Make a mutant of a copy of an implementation's source, and see which vector catches it.

A check that cannot fail shows nothing. Each mutant is an edit of the text of one `pyimpl` file; the
edited copy is imported under a name of its own, so the real module stays as it is.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from bridge.conformance.adapters import own, shards
from bridge.conformance.adapters.adapter import Adapter, OutputOnly
from bridge.conformance.adapters.builtin import adapters_of
from bridge.conformance.adapters.own import PyimplTiled, PyimplTriton
from bridge.conformance.judging.judge import Element, VectorResult, plain
from bridge.conformance.judging.run import run
from bridge.conformance.mutants.planted_package import copy_package
from bridge.conformance.tensors.batch import DTYPES, Outputs
from bridge.vectors.model.attention import AttentionVector, Family
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.shards import ShardsVector
from pyimpl.internal.implements import forget

_numbers = itertools.count(1)

# The dtype in which a mutant of a forward pass goes through every family, to see which share of the
# mutants each of them catches: all implementations take it.
SHARES_IN = "float32"


class _InShards(PyimplTiled):
    """Sequences in shards by a copy of `pyimpl.distributed.internal.ring`."""

    operations = frozenset({ShardsVector.operation})

    def __init__(self, ring: ModuleType) -> None:
        super().__init__()
        self.ring = ring

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        assert isinstance(vector, ShardsVector)
        place = torch.device(device)
        return shards.attend(vector, self.backend, DTYPES[dtype], place, self.ring)


# The adapter of the functions in each file of `pyimpl`; of attention in shards, and of all else.
SHARDED: dict[str, Callable[[ModuleType], Adapter]] = {"distributed/internal/ring.py": _InShards}
ADAPTERS: dict[str, Callable[[ModuleType], Adapter]] = {
    f"{make.source.removeprefix('pyimpl.').replace('.', '/')}.py": make
    for make in adapters_of(own).values()
    if make.source is not None
} | SHARDED
# Backward passes, which the adapters of the whole implementation run after its forward pass.
BACKWARD: dict[str, Callable[[ModuleType], Adapter]] = {
    "backends/tiled_backward.py": lambda module: PyimplTiled(backward=module.flash_backward),
    "backends/kernels/backward.py": lambda module: PyimplTriton(backward=module.backward),
}


def _has_blind_queries(vector: AttentionVector | GradientVector) -> bool:
    see = (
        [functools.partial(vector.visible, h) for h in range(vector.num_heads)]
        if isinstance(vector, GradientVector)
        else [vector.visible]
    )
    keys = range(vector.kv_len)
    return any(not any(one(i, j) for j in keys) for one in see for i in range(vector.q_len))


# Some mutants show only in vectors with these properties. No implementation's tiles exceed 16.
NEEDS: dict[str, Callable[[AttentionVector | GradientVector], bool]] = {
    "several tiles of keys": lambda v: v.kv_len > 16,
    "several tiles of queries": lambda v: v.q_len > 16,
    "queries that see no key": _has_blind_queries,
    "several heads of queries for one of keys": lambda v: (
        isinstance(v, GradientVector) and v.num_heads > v.num_kv_heads
    ),
}


class MutantError(RuntimeError):
    """A mutant that cannot be planted or does not run: the sources have moved on."""


@dataclass(frozen=True)
class Mutant:
    """An edit of one source file that makes it wrong.

    file: relative to the package `pyimpl`. through: another file of it, which imports `file`,
    if need be through others, and then runs in its place; None: `file` itself runs. old must
    occur exactly `count` times; each is replaced by new. promising: families in which it should
    show first. needs: it can show only in vectors that have this, one of `NEEDS`.
    """

    name: str
    description: str
    file: str
    old: str
    new: str
    count: int = 1
    promising: tuple[str, ...] = ()
    needs: str | None = None
    through: str | None = None

    @property
    def entry(self) -> str:
        """The file that is run."""
        return self.through or self.file

    @property
    def backward(self) -> bool:
        """Whether it is a backward pass that is run."""
        return self.entry in BACKWARD

    def apply(self, source: str) -> str:
        """The edited source. Raises MutantError if `old` does not occur `count` times."""
        found = source.count(self.old)
        if found != self.count:
            raise MutantError(
                f"the mutant {self.name} no longer applies: {self.old!r} occurs {found} times in "
                f"pyimpl/{self.file}, not {self.count}"
            )
        return source.replace(self.old, self.new)


def mutants_of(file: str, through: str | None = None) -> Callable[..., Mutant]:
    """A function that makes mutants of this file from name, description, old, new and the rest."""

    def mutant(
        name: str,
        description: str,
        old: str,
        new: str,
        promising: tuple[str, ...] = (),
        needs: str | None = None,
        count: int = 1,
    ) -> Mutant:
        return Mutant(name, description, file, old, new, count, promising, needs, through)

    return mutant


@dataclass(frozen=True)
class MutantResult:
    """The result of a mutant.

    caught_by: the first vector that failed, None if none did, with its theorem, dtype and worst
    element. families: by dtype and family, whether one of its vectors failed; only families that
    were tried. tried: how many vectors ran; unsupported: why none could, if none could.
    every_family_in: the dtype in which it went through every family, if there is one.
    """

    name: str
    description: str
    file: str
    adapter: str
    caught_by: str | None
    theorem: str | None
    dtype: str | None
    worst: Element | None
    families: dict[str, dict[str, bool]] = field(default_factory=dict)
    tried: int = 0
    unsupported: str | None = None
    every_family_in: str | None = None

    @property
    def caught(self) -> bool:
        return self.caught_by is not None

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes in which it was caught."""
        return tuple(d for d, families in self.families.items() if any(families.values()))

    def to_json(self) -> dict[str, Any]:
        """Plain values; ∞ and NaN become strings."""
        return dict(plain(asdict(self)), caught=self.caught)


def source_of(file: str) -> str:
    """The text of a file of the package `pyimpl`."""
    spec = importlib.util.find_spec("pyimpl")
    if spec is None or spec.origin is None:
        raise MutantError("the package pyimpl cannot be found")
    return (Path(spec.origin).parent / file).read_text("utf-8")


@contextmanager
def _import_text(text: str, file: str, folder: str) -> Iterator[ModuleType]:
    """The text of a file of `pyimpl` as a module under a name of its own."""
    name = f"mutated_{Path(file).stem}_{next(_numbers)}"
    # A real file: Triton reads the source of its kernels again.
    path = Path(folder) / f"{name}.py"
    path.write_text(text, "utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise MutantError(f"{path.name} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        try:
            spec.loader.exec_module(module)
        finally:
            forget(name)
        yield module
    finally:
        del sys.modules[name]


@contextmanager
def mutated_module(mutant: Mutant) -> Iterator[ModuleType]:
    """The module of `mutant.entry` with the mutation in it, for as long as the context lasts.

    The registry of implementations does not learn of it.
    """
    if mutant.through is not None:
        with copy_package(mutant.file, mutant.apply, mutant.through) as module:
            yield module
        return
    text = mutant.apply(source_of(mutant.file))
    with (
        tempfile.TemporaryDirectory(prefix="mutant-") as folder,
        _import_text(text, mutant.file, folder) as module,
    ):
        yield module


@contextmanager
def adapter_with(mutant: Mutant) -> Iterator[Adapter]:
    """The adapter of the implementation with the mutation in it."""
    if not mutant.backward:
        with mutated_module(mutant) as module:
            yield ADAPTERS[mutant.entry](module)
        return
    with copy_package(mutant.file, mutant.apply, mutant.entry) as module:
        yield BACKWARD[mutant.entry](module)


def _order_families(mutant: Mutant, families: Iterable[Family]) -> list[Family]:
    """The families of attention, of its gradients or of shards, with the promising first; in each,
    vectors that can show the mutant, small first."""
    rank = {name: n for n, name in enumerate(mutant.promising)}
    kind: type[AttentionVector | GradientVector | ShardsVector] = AttentionVector
    if mutant.entry in SHARDED:
        kind = ShardsVector
    elif mutant.backward:
        kind = GradientVector

    def key(vector: Any) -> tuple[bool, int]:
        cost = vector.q_len * vector.kv_len * (vector.head_dim + vector.value_dim)
        return mutant.needs is not None and not NEEDS[mutant.needs](vector), cost

    found = []
    for family in sorted(families, key=lambda f: rank.get(f.name, len(rank))):
        vectors = [v for v in family.vectors if isinstance(v, kind)]
        if vectors:
            vectors.sort(key=key)
            found.append(replace(family, vectors=tuple(vectors)))
    return found


def _first_failure(
    adapter: Adapter, family: Family, dtype: str, device: str
) -> tuple[VectorResult | None, int, str | None]:
    """The first vector of the family that fails, how many were judged, and why others were not."""
    judged = 0
    reason = None
    for vector in family.vectors:
        one = replace(family, vectors=(vector,))
        (result,) = run(adapter, [one], dtype, device).vectors
        if result.status == "failed" and result.reason is not None:
            raise MutantError(f"the mutated source does not run: {vector.id}: {result.reason}")
        if result.status == "unsupported":
            reason = result.reason
            continue
        judged += 1
        if result.status == "failed":
            return result, judged, reason
    return None, judged, reason


def plant(
    mutant: Mutant,
    families: Sequence[Family],
    dtypes: Sequence[str] | None = None,
    device: str = "cpu",
    *,
    every_family_in: str | None = None,
    output_only: bool = False,
) -> MutantResult:
    """Run the mutated implementation over the vectors, in each dtype, until one catches it.

    dtypes: default all that the implementation takes; each ends with its first catch, but for the
    dtype every_family_in, which goes on to learn which other families catch it too.
    output_only: do not look at the log-sum-exp, which many functions do not return.
    Raises MutantError where the mutant no longer applies or the edited source does not run.
    """
    first: VectorResult | None = None
    first_dtype: str | None = None
    seen: dict[str, dict[str, bool]] = {}
    tried, reason = 0, None
    with adapter_with(mutant) as adapter:
        if output_only:
            adapter = OutputOnly(adapter)
        for dtype in adapter.dtypes if dtypes is None else dtypes:
            seen[dtype] = {}
            for family in _order_families(mutant, families):
                failure, judged, reason = _first_failure(adapter, family, dtype, device)
                tried += judged
                seen[dtype][family.name] = failure is not None
                if failure is not None and first is None:
                    first, first_dtype = failure, dtype
                if failure is not None and dtype != every_family_in:
                    break
    return MutantResult(
        mutant.name,
        mutant.description,
        f"pyimpl/{mutant.file}",
        adapter.name,
        first.id if first else None,
        first.theorem if first else None,
        first_dtype,
        first.worst if first else None,
        seen,
        tried,
        None if tried else reason,
        every_family_in,
    )


def shares(results: Iterable[MutantResult], dtype: str) -> dict[str, tuple[int, int]]:
    """By family: how many mutants one of its vectors caught in this dtype, and how many were tried,
    of those for which `plant` went through every family in it."""
    table: dict[str, tuple[int, int]] = {}
    for result in (r for r in results if r.every_family_in == dtype):
        for family, caught in result.families.get(dtype, {}).items():
            hits, tried = table.get(family, (0, 0))
            table[family] = (hits + caught, tried + 1)
    return table
