"""An adapter: one way to call an attention function, and its declarations about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, cast, runtime_checkable

from bridge.conformance.adapters.differentiate import Found
from bridge.conformance.adapters.forward_mode import Tangents
from bridge.conformance.adapters.whole_batches import WholeBatches
from bridge.conformance.functions.features import Function
from bridge.conformance.inside import known
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.tangents import TangentVector

ALL_DTYPES = ("float64", "float32", "float16", "bfloat16")


class Adapter(Protocol):
    """How the conformance run calls one attention function.

    name: for reports and the command line. dtypes: names of the input dtypes that it takes. takes:
    which of softcap, alibi, bias and sink it takes.
    """

    name: str
    dtypes: tuple[str, ...]
    takes: frozenset[str]

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        """Why the vector's result is not judged; None if it is."""

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        """The roundings of the function, from which its tolerance is computed."""

    def run(self, batch: Batch) -> Outputs:
        """Call the function. May raise: that fails the vectors of the batch."""


@runtime_checkable
class PartialAdapter(Adapter, Protocol):
    """An adapter some of whose log-sum-exps are not judged."""

    def no_log_sum_exp(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        """Why the log-sum-exp of a supported vector is not judged; None if it is."""


@runtime_checkable
class LayoutsAdapter(Adapter, Protocol):
    """An adapter that takes other operations than attention of plain tensors."""

    operations: frozenset[str]

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        """Call the function for the vector's operation, one of `operations`. Returns the results
        for each of the plain problems that the vector comes to, in their order. May raise: that
        fails the vector."""


@runtime_checkable
class ChoosingAdapter(LayoutsAdapter, Protocol):
    """An adapter that does not take every vector of its operations."""

    def why_not(self, vector: ComesToAttention) -> str | None:
        """Why a vector of one of `operations` is unsupported; None if its plain problems decide."""


@runtime_checkable
class GradientsAdapter(Adapter, Protocol):
    """An adapter whose function can be differentiated."""

    def no_gradients(self, vector: GradientVector, device: str) -> str | None:
        """Why the gradients of this vector are not judged; None if they are."""

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        """The gradients by query, key and value, and by a bias of 0 where the function takes one:
        one result for each way in which the function was called. May raise: that fails the
        vector."""


@runtime_checkable
class TangentsAdapter(Adapter, Protocol):
    """An adapter whose function can be differentiated forwards."""

    def tangents(self, vector: TangentVector, dtype: str, device: str) -> Tangents:
        """The tangents of the output, and of the log-sum-exp where the function returns it. May
        raise: that fails the vector."""


class BuiltinAdapter(Adapter, Protocol):
    """An adapter of this project."""

    @property
    def source(self) -> str | None:
        """The module of this project that holds the function; None for another's function."""

    @property
    def rests_on(self) -> tuple[str, ...]:
        """The modules of `pyimpl` that it runs, with all that these import; none: `source`."""

    @property
    def without(self) -> tuple[str, ...]:
        """Modules or packages of those that it does not run."""


@dataclass(frozen=True)
class About:
    """The description, for readers of docs/findings.md and docs/conform.md, of the function that an
    adapter calls. short: the heading of its column; function: a description of it; how: the way in
    which it is called; unsupported: of another package's function, beside other layouts; on_gpu: it
    runs there alone; packages: those whose versions matter; dtypes: those that `bridge findings`
    runs it in, none: all that it takes."""

    short: str
    function: str
    how: str
    unsupported: str = ""
    on_gpu: bool = False
    packages: tuple[str, ...] = ("torch",)
    dtypes: tuple[str, ...] = ()


class Builtin(WholeBatches):
    """The base of the built-in adapters: everything is supported.

    source: the module of this project that holds the function; rests_on, without: as for
    `BuiltinAdapter`. declared: known wrong answers and refusals of inputs that the function should
    take are declared, and so unsupported; otherwise they fail. packages: those that it needs beside
    PyTorch, as they are imported and as pip names them. about: for readers, where there are any.
    """

    declared = True
    # For another package's attention: the function of `inside.known` that is called, and the caller
    # in a process of its own, if there is one.
    foreign: str | None = None
    function: Function | None = None
    name = ""
    source: str | None = None
    rests_on: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ALL_DTYPES
    takes: frozenset[str] = frozenset()
    packages: ClassVar[Mapping[str, str]] = {}
    about: About | None = None

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        return None

    def call(self, *given: Any, **options: Any) -> Any:
        """Call the function of `foreign`: there, or here."""
        assert self.foreign is not None
        function = self.function or getattr(known, self.foreign)
        return function(*given, **options)


class Given:
    """The part of adapters of functions that a user gives: they round alike on every device."""

    takes: frozenset[str] = frozenset()
    _rounding: Callable[[str], RoundingModel]

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return self._rounding(dtype)


class OutputOnly:
    """Another adapter without its log-sum-exp, like a function that returns none."""

    def __init__(self, adapter: Adapter) -> None:
        self.adapter = adapter
        self.name, self.dtypes, self.takes = adapter.name, adapter.dtypes, adapter.takes
        self.operations = getattr(adapter, "operations", frozenset[str]())

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        return self.adapter.why_unsupported(vector, dtype, device)

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return self.adapter.rounding(dtype, device)

    def run(self, batch: Batch) -> Outputs:
        return Outputs(self.adapter.run(batch).out)

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        adapter = cast("LayoutsAdapter", self.adapter)
        return [Outputs(found.out) for found in adapter.run_vector(vector, dtype, device)]
