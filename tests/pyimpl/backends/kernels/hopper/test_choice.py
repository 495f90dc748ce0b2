"""Which calls the Gluon kernel takes, is refused, and is given unasked; no device is needed."""

from __future__ import annotations

import hashlib
import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from torch import Tensor

from pyimpl import (
    attention,
    attention_cascade,
    attention_decode,
    attention_varlen,
)
from pyimpl.backends import dispatch
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.hopper.choice import (
    SEEN,
    SEEN_BACKWARD,
    SEEN_QUERIES,
    Seen,
    is_chosen,
    is_chosen_backward,
    is_chosen_queries,
    tile_ends,
    why_not,
)
from pyimpl.backends.kernels.parts import kept, launch
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.gradients import Wanted
from pyimpl.internal.scores import ScoreOptions

PLAIN = ScoreOptions(0.125)


@pytest.fixture
def hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU tensors are taken for those of an H200, with the Triton of `SEEN`, of which the row for
    head_dim 128 alone is there, and is of the kernel as it is now."""
    monkeypatch.setattr(choice.INTERPRETED, "value", False)
    monkeypatch.setattr(launch, "stand_in", launch.StandIn(capability=90, processors=132))
    monkeypatch.setattr(choice, "_VERSION", SEEN[0].tritons[0])
    row = next(row for row in SEEN if row.head_dim == 128)
    now = replace(row, kernel=choice.text_of_the_kernel())
    monkeypatch.setattr(choice, "SEEN", (now,))
    now = replace(row, kernel=choice.text_of_the_kernel("backward"))
    monkeypatch.setattr(choice, "SEEN_BACKWARD", (now,))
    monkeypatch.setattr(choice, "SEEN_QUERIES", ())


def rows(
    *size: int, dtype: torch.dtype = torch.bfloat16, strides: tuple[int, ...] | None = None
) -> Tensor:
    """An empty tensor whose address 64 divides."""
    if strides is None:
        return torch.empty(size, dtype=dtype)
    span = 1 + sum((n - 1) * stride for n, stride in zip(size, strides, strict=True))
    return torch.empty(span, dtype=dtype).as_strided(size, strides)


TAKEN: dict[str, Callable[[], tuple[Tensor, Tensor, Tensor]]] = {
    "dense": lambda: (rows(2, 4, 40, 64), rows(2, 2, 50, 64), rows(2, 2, 50, 64)),
    "256": lambda: (rows(2, 4, 40, 256), rows(2, 2, 50, 256), rows(2, 2, 50, 256)),
    "length before heads": lambda: tuple(
        rows(2, 40, 4, 128, dtype=torch.float16).transpose(1, 2) for _ in range(3)
    ),
    "strides of size 1": lambda: (
        rows(1, 1, 40, 64, strides=(7, 3, 64, 1)), rows(1, 1, 1, 64, strides=(5, 0, 9, 1)),
        rows(1, 1, 1, 64),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_it_takes(hopper: None, name: str) -> None:
    query, key, value = TAKEN[name]()
    assert why_not(query, key, value, None, PLAIN) is None
    out = torch.empty_like(query)
    assert why_not(query, key, value, out, replace(PLAIN, left=3, right=0, scale=-1.0)) is None


DENSE = TAKEN["dense"]()
REFUSED: dict[str, tuple[tuple[Tensor, Tensor, Tensor], Tensor | None, ScoreOptions]] = {
    "takes float16 and bfloat16, not torch.float32": (
        tuple(x.float() for x in DENSE), None, PLAIN,
    ),
    "into torch.float32": (DENSE, DENSE[0].float(), PLAIN),
    "the same for all, not (64, 32)": ((*DENSE[:2], rows(2, 2, 50, 32)), None, PLAIN),
    "not (80, 80)": (tuple(rows(1, 1, 8, 80) for _ in range(3)), None, PLAIN),
    "causality, not mask": (DENSE, None, replace(PLAIN, mask=torch.ones(40, 50).bool())),
    "causality, not bias": (DENSE, None, replace(PLAIN, bias=torch.ones(40, 50))),
    "not softcap, sinks": (DENSE, None, replace(PLAIN, softcap=1.0, sinks=torch.ones(4))),
    "not dropout": (DENSE, None, replace(PLAIN, dropout=Dropout(0.5, torch.tensor(0)))),
    "a scale other than 0": (DENSE, None, replace(PLAIN, scale=0.0)),
    "no empty tensors": ((DENSE[0], DENSE[1][:, :, :0], DENSE[2][:, :, :0]), None, PLAIN),
    "those of query": (
        (rows(2, 4, 40, 64, strides=(20480, 5120, 128, 2)), *DENSE[1:]), None, PLAIN,
    ),
    "those of key are (6400, 0, 64, 1)": (
        (DENSE[0], rows(2, 1, 100, 64).expand(2, 2, 100, 64), DENSE[2]), None, PLAIN,
    ),
    "those of value": (
        (*DENSE[:2], rows(2, 2, 50, 64, strides=(20000, 4008, 72, 1))), None, PLAIN,
    ),
    "those of out": (DENSE, rows(2, 4, 40, 64, strides=(1, 2, 8, 320)), PLAIN),
}  # fmt: skip


@pytest.mark.parametrize("said", REFUSED)
def test_what_it_does_not_take_is_said(hopper: None, said: str) -> None:
    given, out, options = REFUSED[said]
    found = why_not(*given, out, options)
    assert found is not None
    assert said in found, found
    assert found.startswith("backend 'gluon'")


def test_an_address_that_16_does_not_divide(hopper: None) -> None:
    query = torch.empty(4 * 40 * 64 + 4, dtype=torch.bfloat16)[4:].view(1, 4, 40, 64)
    assert "those of query" in str(why_not(query, query, query, None, PLAIN))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"capability": 80}, "compute capability 9.0, Hopper's, not 8.0"),
        ({"capability": 100}, "compute capability 9.0, Hopper's, not 10.0"),
        ({"interpreted": True}, "does not run in Triton's interpreter"),
        ({"version": "3.8"}, "takes Triton 3.6 and 3.7, not"),
        ({"there": False}, "takes CUDA tensors, not cpu"),
    ],
)
def test_where_it_runs(
    hopper: None, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], said: str
) -> None:
    if "capability" in change:
        monkeypatch.setattr(launch, "stand_in", launch.StandIn(change["capability"], 132))
    if "interpreted" in change:
        monkeypatch.setattr(choice.INTERPRETED, "value", True)
    if "there" in change:
        monkeypatch.setattr(launch, "stand_in", None)
    # The answers about Triton and the device are kept.
    choice._why_not_on.cache_clear()
    if "version" in change:
        monkeypatch.setattr(choice, "_VERSION", change["version"])
    try:
        with pytest.raises(ValueError, match=re.escape(said)):
            attention(*DENSE, enable_gqa=True, backend="gluon")
    finally:
        choice._why_not_on.cache_clear()


def test_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "triton_installed", lambda: False)
    with pytest.raises(ImportError, match="backend 'gluon' needs the package triton"):
        attention(*DENSE, enable_gqa=True, backend="gluon")


def test_the_other_functions_have_no_kernel_in_gluon() -> None:
    q, k, v = (x.to(torch.float16) for x in DENSE)
    sums = torch.tensor([0, 40])
    calls = (
        lambda: attention_varlen(q[0].transpose(0, 1), k[0].transpose(0, 1), v[0].transpose(0, 1),
                                 sums, torch.tensor([0, 50]), enable_gqa=True, backend="gluon"),
        lambda: attention_decode(q[:, :, :1], k, v, enable_gqa=True, backend="gluon"),
        lambda: attention_cascade(q, k[0], v[0], k, v, suffix_lens=torch.tensor([50, 50]),
                                  enable_gqa=True, backend="gluon"),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(ValueError, match="backend 'gluon' has kernels for pyimpl"):
            call()


def test_the_backward_pass_is_that_of_triton_s_kernels() -> None:
    assert dispatch.backend_of_backward("gluon") == "triton"
    for backend in ("auto", "triton", "tiled", "reference"):
        assert dispatch.backend_of_backward(backend) == backend


def is_chosen_for(q_len: int, kv_len: int, head_dim: int = 128, **changes: Any) -> bool:
    query, key = rows(1, 2, q_len, head_dim), rows(1, 2, kv_len, head_dim)
    return is_chosen(query, key, key, replace(PLAIN, **changes))


def test_when_it_is_taken_unasked(hopper: None, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_chosen_for(300, 500)
    assert is_chosen_for(300, 500, right=500)
    assert is_chosen_for(500, 500, right=0)
    assert is_chosen_for(500, 300, right=0)
    assert is_chosen_for(384, 500, right=0)
    assert is_chosen_for(500, 500, left=500, right=0)
    assert is_chosen_for(300, 428, right=0, shift=128)
    # A key is hidden from a whole program, and its tile is not.
    assert not is_chosen_for(300, 500, right=0)
    assert not is_chosen_for(300, 500, right=0, shift=200)
    assert not is_chosen_for(500, 500, right=0, shift=-128)
    assert not is_chosen_for(500, 500, left=100, right=0)
    # No row has it.
    assert not is_chosen_for(500, 500, head_dim=64)
    assert not is_chosen_for(500, 500, softcap=3.0)
    monkeypatch.setattr(choice, "SEEN", (replace(choice.SEEN[0], causal=False),))
    assert is_chosen_for(500, 500)
    assert not is_chosen_for(500, 500, right=0)
    monkeypatch.setattr(choice, "_VERSION", "3.7")
    assert not is_chosen_for(500, 500)


def test_auto_gives_it_the_calls_that_are_chosen(
    hopper: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = importlib.import_module("pyimpl.backends.kernels.hopper.forward")
    monkeypatch.setattr(kernel, "forward", lambda *given: given)
    query, key = rows(1, 2, 128, 128), rows(1, 2, 300, 128)
    for options, taken in (
        (PLAIN, ("auto", "gluon")),
        (replace(PLAIN, right=0), ("auto", "gluon")),
        (replace(PLAIN, right=9), ("gluon",)),
        (replace(PLAIN, left=3), ("gluon",)),
    ):
        for backend in ("auto", "gluon"):
            found = dispatch._by_gluon(query, key, key, options, backend)
            assert (found is not None) == (backend in taken)


NUMBERS = st.integers(1, 70)


@given(NUMBERS, NUMBERS, st.integers(-40, 40), st.integers(0, 40), st.sampled_from((4, 8, 16)))
@example(16, 40, 0, 0, 8)
@example(17, 40, 0, 0, 8)
def test_no_tile_that_is_visited_has_a_key_that_its_program_hides(
    q_len: int, kv_len: int, shift: int, right: int, block_n: int
) -> None:
    program = 16
    options = ScoreOptions(1.0, right=right, shift=shift)
    whole = True
    for first in range(0, q_len, program):
        stop = min(kv_len, max(0, min(first + program, q_len) + shift + right))
        last = max(0, -(-stop // block_n) - 1)
        whole &= stop == min(kv_len, (last + 1) * block_n)
    if tile_ends(options, q_len, kv_len, program, block_n):
        assert whole
    # That it may be refused elsewhere too costs time alone; but not where every program ends so
    # whatever keys there are.
    elif shift + right >= 0 and (shift + right) % block_n == 0 and q_len % block_n == 0:
        raise AssertionError("a program that ends with a tile is refused")


def test_evidence_of_another_text_of_the_kernel_does_not_count(
    hopper: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_chosen_for(300, 500)
    monkeypatch.setattr(choice, "SEEN", (replace(choice.SEEN[0], kernel="0123456789ab"),))
    assert not is_chosen_for(300, 500)
    file = Path(choice.__file__).with_name("forward_kernel.py")
    assert choice.text_of_the_kernel() == hashlib.sha256(file.read_bytes()).hexdigest()[:12]


def test_when_its_backward_pass_is_taken_unasked(hopper: None) -> None:
    def takes(q_len: int, kv_len: int, head_dim: int = 128, **changes: Any) -> bool:
        query, key = rows(1, 2, q_len, head_dim), rows(1, 2, kv_len, head_dim)
        return is_chosen_backward(query, key, key, replace(PLAIN, **changes))

    assert takes(300, 500)
    assert takes(500, 500, right=0)
    assert takes(300, 500, right=0, shift=200)
    # Keys that no query sees, and queries that see no key.
    assert not takes(300, 500, right=0)
    assert not takes(500, 500, right=0, shift=-1)
    assert not takes(500, 500, left=100, right=0)
    # No row has it.
    assert not takes(500, 500, head_dim=64)
    assert not takes(500, 500, softcap=3.0)


def test_the_kernel_for_queries_is_taken_unasked_once_it_was_seen(
    hopper: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = rows(1, 2, 300, 128)
    given = (query, query, query, PLAIN)
    assert is_chosen_backward(*given)
    assert not is_chosen_queries(*given)
    (row,) = choice.SEEN_BACKWARD
    monkeypatch.setattr(choice, "SEEN_QUERIES", (row,))
    assert not is_chosen_queries(*given)
    now = replace(row, kernel=choice.text_of_the_kernel("queries"))
    monkeypatch.setattr(choice, "SEEN_QUERIES", (now,))
    assert is_chosen_queries(*given)
    assert not is_chosen_queries(query, query, query, replace(PLAIN, left=100))


def test_the_backward_kernels_that_a_backend_is_given(
    hopper: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the two is taken by rows of its own, and by name both are."""
    told: list[tuple[bool, ...]] = []

    def note(make: Callable[[], tuple[kept.Named, ...]], *_: object) -> None:
        told.append(tuple("hopper" in made.kernel.fn.__module__ for made, _ in make()[1:]))

    monkeypatch.setattr(kept, "start", note)
    monkeypatch.setattr(dispatch, "choose_backend", lambda *_: "triton")
    # Vectors of 120 are filled up to 128, of which there is a row.
    asked: tuple[tuple[dispatch.Backend, int], ...] = (
        ("auto", 128), ("gluon", 128), ("triton", 128), ("auto", 120),
    )  # fmt: skip
    for backend, head_dim in asked:
        query = rows(1, 2, 300, head_dim)
        dispatch.backward(
            query, query, query, query, torch.zeros(1, 2, 300), query, None, PLAIN, Wanted(),
            backend,
        )  # fmt: skip
    assert told == [(True, False), (True, True), (False, False), (False, False)]


@pytest.mark.parametrize(
    ("name", "seen"), [("forward", SEEN), ("backward", SEEN_BACKWARD), ("queries", SEEN_QUERIES)]
)
def test_the_evidence_is_of_the_kernel_as_it_is(name: str, seen: tuple[Seen, ...]) -> None:
    """Whoever changes a kernel runs tests/gpu on such a device, and enters the results: until then
    "auto" does not take it, and docs/use.md says so."""
    assert {row.kernel for row in seen} == {choice.text_of_the_kernel(name)}
    assert all(version in choice.TRITONS for row in seen for version in row.tritons)
