"""The table of score changes, held against what is written by hand beside it."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest

import pyimpl
from pyimpl.backends.kernels.decode import _decode_kernel
from pyimpl.backends.kernels.forward import _forward_kernel
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.implements import implementations
from pyimpl.internal.scores import CHANGES, DIFFERENTIABLE, NAMES, Change, ScoreOptions
from pyimpl.modules import MultiHeadAttention

FUNCTIONS = (
    pyimpl.attention,
    pyimpl.attention_varlen,
    pyimpl.attention_decode,
    MultiHeadAttention.forward,
)
KERNELS = (_forward_kernel, _decode_kernel)


def test_the_gradients_are_those_of_the_table() -> None:
    assert tuple(DIFFERENTIABLE) == Wanted._fields
    assert Gradients._fields == ("query", "key", "value", *DIFFERENTIABLE)


def test_the_rows_are_told_apart() -> None:
    for told in ("name", "feature", "title", "argument", "lean"):
        assert len({getattr(change, told) for change in CHANGES}) == len(CHANGES), told
    assert [c.name for c in CHANGES] == [n for n in NAMES if n in {c.name for c in CHANGES}]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_row_is_an_option_everywhere(change: Change) -> None:
    (field,) = (one for one in fields(ScoreOptions) if one.name == change.name)
    assert str(field.type) == ("float | None" if change.kind == "number" else "Tensor | None")
    assert (change.kind == "number") == (change.check is not None)
    for function in FUNCTIONS:
        # A bias is given for each pair of one query and one key length.
        if change.kind != "pair" or function is pyimpl.attention:
            assert change.name in inspect.signature(function).parameters, function
    for kernel in KERNELS:
        assert change.argument in kernel.arg_names
        if change.letter:
            assert f"stride_{change.letter}h" in kernel.arg_names


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_backend_implements_the_definition_of_a_row(change: Change) -> None:
    backends = {one.lean for one in implementations() if one.module.startswith("pyimpl.backends.")}
    assert change.lean in backends
