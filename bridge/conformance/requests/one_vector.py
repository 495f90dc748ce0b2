"""One vector as a test has it: the arguments of a call, and a judgement of its result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from torch import Tensor

from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.functions.features import GRADIENTS, NAMES, Features
from bridge.conformance.judging.answers import why_unsupported
from bridge.conformance.judging.judge import describe_failure, judge, plain
from bridge.conformance.requests.request import Misuse, check_device, check_known, choose_vectors
from bridge.conformance.tensors.batch import Batch, Misbehaviour, is_unchanged, stack
from bridge.conformance.tensors.form import form_error
from bridge.conformance.tolerances.rounding_model import CHOICES
from bridge.vectors.model.attention import AttentionVector

# Those that a call without gradients has.
FEATURES = tuple(name for name in NAMES if name not in GRADIENTS)


def _never_called(*inputs: Tensor, **options: Any) -> None:
    raise AssertionError("the test calls the function")


@dataclass(frozen=True)
class OneVector:
    """A vector of `attention` in one dtype.

    args: query, key, value, `[1, 1, length, dim]`; kwargs: the rest, by SDPA's and `pyimpl`'s
    names, of the features that the test declares. theorem: the id of the theorem it rests on.
    judged: how many results were, right or wrong.
    """

    vector: AttentionVector
    dtype: str
    device: str
    adapter: CallableAdapter
    judged: int = field(default=0, init=False, compare=False)

    @property
    def id(self) -> str:
        return self.vector.id

    @property
    def theorem(self) -> str:
        return self.vector.theorem

    @cached_property
    def _batch(self) -> Batch:
        return stack((self.vector,), self.dtype, self.device)

    @cached_property
    def _call(self) -> tuple[tuple[Tensor, ...], dict[str, Any]]:
        return self.adapter.arguments(self._batch)

    @property
    def args(self) -> tuple[Tensor, ...]:
        return self._call[0]

    @property
    def kwargs(self) -> dict[str, Any]:
        return self._call[1]

    def judge(self, result: Tensor | tuple[Tensor, ...]) -> None:
        """Raises AssertionError, in one line, where the result of the call is wrong in its form or
        anywhere beyond the tolerance, and where the call changed its inputs."""
        object.__setattr__(self, "judged", self.judged + 1)
        args, kwargs = self.adapter.arguments(stack((self.vector,), self.dtype, self.device))
        names = ("query", "key", "value", *kwargs)
        given = (*self.args, *self.kwargs.values())
        for name, tensor, before in zip(names, given, (*args, *kwargs.values()), strict=True):
            if isinstance(before, Tensor) and not is_unchanged(tensor, before):
                raise AssertionError(f"{self.id}: changed its input {name}")
        try:
            outputs = self.adapter.outputs(self._batch, result)
            wrong = form_error(self._batch, outputs)
        except Misbehaviour as error:
            wrong = str(error)
        if wrong is not None:
            raise AssertionError(f"{self.id}: {wrong}")
        reasons: list[str | None] = [None if self.adapter.features.lse_by else "is not asked for"]
        rounding = self.adapter.rounding(self.dtype, self.device)
        (found,) = judge(rounding, self._batch, outputs, reasons, False)
        if found.status == "failed":
            raise AssertionError(describe_failure(plain(asdict(found))))


def one_by_one(
    dtypes: Iterable[str] = ("float32",),
    features: Iterable[str] = (),
    families: Iterable[str] = (),
    vectors: Iterable[str] = (),
    device: str = "cpu",
    rounding_model: str = "generous",
) -> list[OneVector]:
    """The vectors of `attention` that need no other features, in each dtype.

    features: of `FEATURES`; families, vectors: only these, by name and by id; none: all; the rest
    as for `bridge.check`. Raises ValueError for a name that is not known, and where no vector is
    left.
    """
    dtypes, features = tuple(dtypes), tuple(features)
    check_known("dtypes", dtypes, ALL_DTYPES, "a dtype that the vectors run in")
    check_known("features", features, FEATURES, "a feature of a call")
    check_known("rounding_model", [rounding_model], CHOICES, "a rounding model")
    check_device(device)
    able = Features(
        dtypes,
        frozenset(features),
        dict.fromkeys(NAMES, "is not among the features of the test"),
        lse_by="return_lse" if "lse" in features else None,
    )
    adapter = CallableAdapter("the test", _never_called, able, CHOICES[rounding_model])
    chosen = [
        vector
        for family in choose_vectors(tuple(families), tuple(vectors))
        for vector in family.vectors
        if isinstance(vector, AttentionVector)
    ]
    found = []
    for dtype in dtypes:
        lacking = why_unsupported(adapter, chosen, dtype, device)
        found += [OneVector(v, dtype, device, adapter) for v in chosen if v.id not in lacking]
    if not found:
        raise Misuse("features", "no vector that is chosen does with these features alone")
    return found
