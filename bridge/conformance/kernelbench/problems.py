"""Problems of KernelBench's form: which operation a problem's `Model` computes.

A problem is a file with `class Model`, `get_inputs()` and `get_init_inputs()`. It runs where
functions run, in a process of its own; its `Model` is judged first, as a function of one operation
after another, until one is right.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import torch
from msgspec import Meta
from torch import Tensor

from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.drawing.fresh import Fresh
from bridge.conformance.functions.features import CallableError, Function
from bridge.conformance.functions.operation import Causal, Layout, Operation
from bridge.conformance.judging.run import run
from bridge.conformance.kernelbench.adapter import ModelAdapter
from bridge.conformance.sandbox import wire
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.sandbox.session import Lost, Session
from bridge.conformance.sandbox.wire import Text, WireError
from bridge.conformance.tensors.batch import DTYPES, describe_error
from bridge.conformance.tolerances.rounding_model import generous

if TYPE_CHECKING:
    from bridge.conformance.outcomes.outcome import Conditions

_CAUSAL: tuple[Causal | None, ...] = (None, "top-left", "bottom-right", "square")
# Vectors that decide which operation it is, of other sizes and of the problem's.
_OTHERS, _OWN, _DRAWN = 3, 1, 6
# The answer of a problem's process: dtype and shape of each input, and its numbers.
_Size = Annotated[int, Meta(ge=0, le=1 << 40)]
_Input = tuple[torch.dtype, Annotated[tuple[_Size, ...], Meta(max_length=8)]]
_FEW = Meta(max_length=64)
# The most numbers of queries, keys or values: the answers for more take hours.
_MOST_OF_A_HEAD = 1 << 24


def learn(problem: Path, conditions: Conditions) -> Operation:
    """The operation of a problem. Raises CallableError, a sentence without its subject, for a
    problem whose `Model` is none that is known here or does not answer, and NoSandboxError."""
    try:
        return _learn(problem, conditions)
    except Lost as lost:
        raise CallableError(f"its process {lost}") from lost


def _learn(problem: Path, conditions: Conditions) -> Operation:
    """Learn the operation, as `learn` does. Raises Lost, too."""
    with conditions.session(f"{problem}:Model", problem) as session:
        session.open()
        shapes, dtype, numbers = _inputs(session)
        model = Remote(session)
        possible = [*_possible(shapes, dtype, numbers)]
        fitting = [one for one in possible if _numbers_of_a_head(one) <= _MOST_OF_A_HEAD]
        if possible and not fitting:
            raise CallableError(
                f"one head of its inputs has {min(map(_numbers_of_a_head, possible))} numbers; up "
                f"to {_MOST_OF_A_HEAD} are accepted, since lengths and columns are not cut"
            )
        possible = fitting
        others = [refuses_other_sizes(model, one) is None for one in possible]
        # First those that it computes at other sizes too, which tell more of it.
        for any_size in (True, False):
            for operation, takes in zip(possible, others, strict=True):
                found = replace(operation, any_size=any_size)
                if (
                    takes == any_size
                    and (not any_size or _right(model, found, "fresh-operation", _OTHERS))
                    and _right(model, found, "fresh-problem", _OWN)
                ):
                    return found
    raise CallableError(
        "its Model computes no attention that is known here: scaled dot product attention of "
        "query, key and value, full or causal, at the default scale, is; "
        f"it takes {_show_shapes(shapes)}"
    )


def refuses_other_sizes(function: Function, operation: Operation) -> str | None:
    """A model's error for sizes that are not the problem's; None if it takes them, or does worse
    than to raise."""
    try:
        function(*_small(function, operation))
    except Lost:
        raise
    except Exception as error:
        return describe_error(error)
    return None


def find_borrowed(function: Remote, operation: Operation, *, own: bool) -> tuple[str, ...]:
    """The packages whose attention a call uses (`Remote.find_borrowed`): a small call or one of the
    problem's own lengths. Raises Lost."""
    try:
        return function.find_borrowed(*_small(function, operation, own=own))
    except Lost:
        raise
    except Exception:
        # The vectors show the error of a call.
        return ()


def _small(function: Function, operation: Operation, *, own: bool = False) -> list[Tensor]:
    """Inputs of a few numbers in the operation's layout. own: of its own lengths and columns."""
    adapter = ModelAdapter("", function, operation, ALL_DTYPES, generous)
    heads = operation.heads if operation.layout == "batch, length, heads×dim" else 2
    sizes = (5, 5, 6, 6) if operation.causal == "square" else (5, 7, 6, 6)
    q_len, kv_len, head_dim, value_dim = operation.sizes() if own else sizes
    return [
        adapter.lay_out(torch.ones(2, heads, *shape, dtype=DTYPES[operation.dtype]))
        for shape in ((q_len, head_dim), (kv_len, head_dim), (kv_len, value_dim))
    ]


def _inputs(session: Session) -> tuple[list[tuple[int, ...]], str, list[int]]:
    """Shapes and dtype of query, key and value, and the numbers that `Model` is made with. Raises
    CallableError for other inputs."""
    frame = session.ask("inputs", {}, {})
    try:
        if frame.kind == "raised":
            what, name = frame.field("text", Text), wire.show(frame.field("type", Text))
            raise CallableError(f"its get_inputs raised {name}: {what[:200]}".rstrip(": "))
        wire.read(frame.kind, Literal["inputs"], "an answer")
        each = frame.field("inputs", Annotated[list[_Input | None], _FEW])
        numbers = frame.field("numbers", Annotated[list[_Size], _FEW])
    except WireError as error:
        raise CallableError(f"its process sent an invalid answer: {error}") from error
    known = [one for one in each if one is not None]
    kinds = {dtype for dtype, _ in known}
    if len(each) != 3 or len(known) != 3 or len(kinds) != 1:
        raise CallableError(
            f"its get_inputs returns {len(known)} tensors of floating numbers in {len(each)} "
            "inputs; three of one dtype are accepted: query, key and value"
        )
    dtype = str(known[0][0]).removeprefix("torch.")
    return [shape for _, shape in known], dtype, numbers


def _show_shapes(shapes: list[tuple[int, ...]]) -> str:
    return ", ".join(str(list(shape)) for shape in shapes)


def _possible(shapes: list[tuple[int, ...]], dtype: str, numbers: list[int]) -> Iterator[Operation]:
    """The operations that take such inputs."""
    q, k, v = shapes
    layouts: list[tuple[Layout, int]] = []
    if len(q) == len(k) == len(v) == 4:
        layouts = [("batch, heads, length, dim", 0), ("batch, length, heads, dim", 0)]
    elif len(q) == len(k) == len(v) == 3:
        several = sorted({n for n in numbers if n > 1 and not (q[2] % n or v[2] % n)})
        layouts = [("batch, length, dim", 1), *(("batch, length, heads×dim", n) for n in several)]
    for (layout, number), causal in itertools.product(layouts, _CAUSAL):
        sizes = [_plain(shape, layout, number) for shape in shapes]
        (batch, heads, q_len, head_dim), (_, _, kv_len, _), (*_, value_dim) = sizes
        alike = sizes[1] == (batch, heads, kv_len, head_dim)
        alike = alike and sizes[2] == (batch, heads, kv_len, value_dim)
        if not alike or 0 in (*sizes[0], *sizes[2]) or (causal == "square" and q_len != kv_len):
            continue
        yield Operation(layout, causal, dtype, batch, heads, q_len, kv_len, head_dim, value_dim)


def _numbers_of_a_head(one: Operation) -> int:
    q_len, kv_len, head_dim, value_dim = one.sizes()
    return max(q_len * head_dim, kv_len * head_dim, kv_len * value_dim)


def _plain(shape: tuple[int, ...], layout: Layout, number: int) -> tuple[int, int, int, int]:
    """Batch, heads, length and dim."""
    if layout == "batch, heads, length, dim":
        return shape[0], shape[1], shape[2], shape[3]
    if layout == "batch, length, heads, dim":
        return shape[0], shape[2], shape[1], shape[3]
    return shape[0], number, shape[1], shape[2] // number


def _right(model: Function, operation: Operation, family: str, count: int) -> bool:
    """Whether the model is right on the first vectors of this family."""
    fresh = Fresh(0, _DRAWN, problem=True, operation=operation)
    ids = tuple(id for name, id in fresh.list_names() if name == family)[:count]
    families = replace(fresh, ids=ids).families
    adapter = ModelAdapter("Model", model, operation, ALL_DTYPES, generous)
    result = run(adapter, families, operation.dtype)
    return bool(result.vectors) and all(v.status == "passed" for v in result.vectors)
