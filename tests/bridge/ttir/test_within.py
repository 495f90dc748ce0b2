"""The launcher meets the suppositions of `Attention.Kernel.Problem.Within` and `Packed.Within`
about a launch."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from triton.language import TRITON_MAX_TENSOR_NUMEL

from bridge.ttir.bounds import beyond
from pyimpl.backends.kernels import forward, varlen
from pyimpl.backends.kernels.parts.launch import MAX_HEAD_DIM, MAX_LENGTH, Launch
from pyimpl.internal.scores import ScoreOptions

_LONGEST = MAX_LENGTH - 1


def _launch(
    q_len: int,
    kv_len: int,
    options: ScoreOptions,
    *,
    heads: int = 1,
    batch: int = 1,
    key_stride: int = 16,
    block_n: int | None = None,
) -> Launch:
    query = torch.empty((batch, heads, q_len, 16), device="meta")
    key = torch.empty_strided((batch, heads, kv_len, 16), (0, 0, key_stride, 1), device="meta")
    lse = torch.empty((batch, heads, q_len), device="meta")
    return forward.launch(
        query, key, key, query, lse, options, capability=90, block_n=block_n
    )  # fmt: skip


def _launch_packed(
    q_len: int,
    kv_len: int,
    options: ScoreOptions,
    *,
    max_q_len: int | None = None,
    bottom_right: bool = False,
) -> Launch:
    """Of packed sequences, which have as many queries and keys together."""
    query = torch.empty((q_len, 1, 16), device="meta")
    key = torch.empty((kv_len, 1, 16), device="meta")
    begins = torch.empty(4, dtype=torch.int32, device="meta")
    lse = torch.empty((1, q_len), device="meta")
    return varlen.launch(
        query, key, key, begins, begins, query, lse, options,
        max_q_len=q_len if max_q_len is None else max_q_len,
        bottom_right=bottom_right, capability=90,
    )  # fmt: skip


_LENGTHS = st.one_of(st.integers(1, 100), st.integers(_LONGEST - 100, _LONGEST))
_BOUNDS = st.none() | st.integers(0, 200) | st.integers(0, 2**31)
_SHIFTS = st.integers(-100, 100) | st.integers(-_LONGEST, _LONGEST)


@given(_LENGTHS, _LENGTHS, _BOUNDS, _BOUNDS, _SHIFTS, st.integers(0, 2**28))
def test_launches_are_within_the_bounds(
    q_len: int, kv_len: int, left: int | None, right: int | None, shift: int, key_stride: int
) -> None:
    options = ScoreOptions(0.5, left=left, right=right, shift=shift)
    assert beyond(_launch(q_len, kv_len, options, key_stride=key_stride)) == []


@pytest.mark.parametrize("shift", [-_LONGEST, 0, _LONGEST])
def test_the_widest_windows_are_within_the_bounds(shift: int) -> None:
    widest = (max(0, _LONGEST - 2 + shift), max(0, _LONGEST - 2 - shift))
    launch = _launch(
        _LONGEST, _LONGEST, ScoreOptions(0.5, left=widest[0], right=widest[1], shift=shift)
    )
    assert beyond(launch) == []
    if shift == 0:
        # Not vacuous: these bounds are given, and one further they are not.
        assert (launch.arguments["left"], launch.arguments["right"]) == widest
        wider = ScoreOptions(0.5, left=widest[0] + 1, right=widest[1] + 1)
        launch = _launch(_LONGEST, _LONGEST, wider)
        assert (launch.arguments["left"], launch.arguments["right"]) == (None, None)


@given(
    _LENGTHS, _LENGTHS, _BOUNDS, _BOUNDS, _SHIFTS, st.booleans(), st.none() | st.integers(0, 2**31)
)
def test_launches_for_packed_sequences_are_within_the_bounds(
    q_len: int,
    kv_len: int,
    left: int | None,
    right: int | None,
    shift: int,
    bottom_right: bool,
    max_q_len: int | None,
) -> None:
    options = ScoreOptions(0.5, left=left, right=right, shift=shift)
    launch = _launch_packed(q_len, kv_len, options, bottom_right=bottom_right, max_q_len=max_q_len)
    assert beyond(launch) == []


@pytest.mark.parametrize("bottom_right", [False, True])
def test_the_widest_windows_of_packed_sequences_are_within_the_bounds(bottom_right: bool) -> None:
    n = _LONGEST
    more = n if bottom_right else 0
    launch = _launch_packed(
        n, n, ScoreOptions(0.5, left=n - 2 + more, right=n - 2 + more), bottom_right=bottom_right
    )
    assert beyond(launch) == []
    # Not vacuous: these bounds are given, and one further they would be beyond.
    assert (launch.arguments["left"], launch.arguments["right"]) == (n - 2 + more, n - 2 + more)
    for side in ("left", "right"):
        wider = replace(launch, arguments={**launch.arguments, side: n - 1 + more})
        assert beyond(wider) == [side]


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("BM", {"BLOCK_M": 2**21}),
        ("BD", {"BLOCK_V": 512}),
        ("qLen", {"q_len": 2**29}),
        ("kvLen", {"kv_len": 2**29}),
        ("maxLen", {"max_q_len": 101}),
        ("programs", {"programs": 2**31}),
        ("keys", {"stride_kn": 2**30}),
        ("values", {"stride_vn": 2**30}),
        ("strides", {"stride_xb": -1}),
        ("shift", {"shift": 2**29}),
        ("left", {"left": -1}),
        ("right", {"right": -1}),
    ],
)
def test_what_is_beyond_is_named(name: str, changes: dict[str, int]) -> None:
    launch = _launch_packed(100, 100, ScoreOptions(0.5))
    assert beyond(launch) == []
    wrong = replace(
        launch,
        programs=changes.get("programs", launch.programs),
        arguments={n: changes.get(n, x) for n, x in launch.arguments.items()},
        constants={n: changes.get(n, x) for n, x in launch.constants.items()},
    )
    assert beyond(wrong) == [name]


def test_offsets_within_a_tile_that_pass_32_bits_are_another_text() -> None:
    options = ScoreOptions(0.5)
    near = (2**31 - 256) // 16
    launch = _launch(3, 40, options, key_stride=near, block_n=16)
    assert not launch.constants["FAR"]
    assert beyond(launch) == []
    launch = _launch(3, 40, options, key_stride=near + 1, block_n=16)
    assert launch.constants["FAR"]


@pytest.mark.parametrize(
    ("q_len", "kv_len", "shift", "heads", "batch"),
    [
        (MAX_LENGTH, 1, 0, 1, 1),
        (1, MAX_LENGTH, 0, 1, 1),
        (1, 1, MAX_LENGTH, 1, 1),
        (1, 1, -MAX_LENGTH, 1, 1),
        (1, 1, 0, 2**16, 2**15),
    ],
)
def test_beyond_the_bounds_a_launch_is_refused(
    q_len: int, kv_len: int, shift: int, heads: int, batch: int
) -> None:
    with pytest.raises(ValueError, match="must be"):
        _launch(q_len, kv_len, ScoreOptions(0.5, shift=shift), heads=heads, batch=batch)


def test_triton_takes_no_larger_tiles() -> None:
    assert TRITON_MAX_TENSOR_NUMEL <= 2**20
    assert MAX_HEAD_DIM <= 256
