"""The table of score changes, compared with the lists written by hand beside it."""

from __future__ import annotations

import inspect
from dataclasses import fields

import pytest
import torch

import pyimpl
import pyimpl.distributed
from pyimpl.backends.kernels.decode import _decode_kernel
from pyimpl.backends.kernels.forward import _forward_kernel
from pyimpl.internal import scores
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.implements import implementations
from pyimpl.internal.scores import (
    CHANGES,
    DIFFERENTIABLE,
    KERNEL_CHANGES,
    NAMES,
    Change,
    Changes,
    ScoreOptions,
    checked_options,
    takes_changes,
)
from pyimpl.modules import MultiHeadAttention

FUNCTIONS = (
    pyimpl.attention,
    pyimpl.attention_varlen,
    pyimpl.attention_decode,
    pyimpl.distributed.ring_attention,
    pyimpl.distributed.ulysses_attention,
    pyimpl.distributed.decode_attention,
    MultiHeadAttention.forward,
)
KERNELS = (_forward_kernel, _decode_kernel)


def test_the_gradients_are_those_of_the_table() -> None:
    assert tuple(DIFFERENTIABLE) == Wanted._fields
    assert Gradients._fields == ("query", "key", "value", *DIFFERENTIABLE)


def test_the_rows_are_told_apart() -> None:
    for told in ("name", "feature", "title", "lean"):
        assert len({getattr(change, told) for change in CHANGES}) == len(CHANGES), told
    assert len({change.argument for change in KERNEL_CHANGES}) == len(KERNEL_CHANGES)
    assert [c.name for c in CHANGES] == [n for n in NAMES if n in {c.name for c in CHANGES}]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_row_is_an_option_everywhere(change: Change) -> None:
    (field,) = (one for one in fields(ScoreOptions) if one.name == change.name)
    number = change.kind == "number"
    hint, meant = (
        ("float | None", float | None) if number else ("Tensor | None", torch.Tensor | None)
    )
    assert str(field.type) == hint
    assert number == (change.check is not None)
    for function in FUNCTIONS:
        # A bias is given for each pair of one query and one key length.
        if change.kind != "pair" or function is pyimpl.attention:
            shown = inspect.signature(function).parameters[change.name]
            assert (shown.kind, shown.default) == (shown.KEYWORD_ONLY, None), function
            # pdoc, in other tests, puts types in the place of their names.
            assert shown.annotation in (hint, meant), function
    assert (change.name in Changes.__annotations__) == (change.kind != "pair")
    for kernel in KERNELS if change.argument else ():
        assert change.argument in kernel.arg_names
        if change.letter:
            assert f"stride_{change.letter}h" in kernel.arg_names


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.name)
def test_a_backend_implements_the_definition_of_a_row(change: Change) -> None:
    where = "pyimpl.backends." if change in KERNEL_CHANGES else scores.__name__
    assert change.lean in {one.lean for one in implementations() if one.module.startswith(where)}


def test_no_signature_hides_arguments_or_names_others() -> None:
    for function in FUNCTIONS:
        shown = inspect.signature(function).parameters.values()
        assert not [one for one in shown if one.kind is one.VAR_KEYWORD], function
        assert not {change.name for change in CHANGES} - {"bias"} - {one.name for one in shown}
    with pytest.raises(TypeError, match=r"plain has no \*\*changes as its last argument"):
        takes_changes(plain)


def plain(query: torch.Tensor, softcap: float | None = None) -> None:
    """Takes one change by name, as none should."""


def test_who_passes_the_changes_on_passes_no_other() -> None:
    with pytest.raises(TypeError, match=r"there is no argument sofcap; .* softcap, .* scale"):
        checked_options(
            torch.ones(1, 1, 2, 2), 1, 1, is_causal=False, window=(None, None), sofcap=2
        )
