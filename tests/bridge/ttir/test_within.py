"""What `Attention.Kernel.Problem.Within` supposes of a launch is what the launcher sees to."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from triton.language import TRITON_MAX_TENSOR_NUMEL

from pyimpl._scores import ScoreOptions
from pyimpl.kernels import forward
from pyimpl.kernels._launch import MAX_HEAD_DIM, MAX_LENGTH, Launch

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


def _number(launch: Launch, name: str) -> int:
    found = {**launch.arguments, **launch.constants}[name]
    assert isinstance(found, int)
    return found


def _beyond(launch: Launch) -> list[str]:
    """The fields of `Within` that the launch does not meet; of a text in 64 bits none is asked."""
    types, _ = launch.specialisation()
    strides = [name for name in types if name.startswith("stride_")]
    if launch.constants["FAR"] or any(types[name] == "i64" for name in strides):
        return []
    q_len, kv_len, shift = (_number(launch, name) for name in ("q_len", "kv_len", "shift"))
    left, right = launch.arguments["left"], launch.arguments["right"]
    block_n = _number(launch, "BLOCK_N")
    met = {
        "BM": _number(launch, "BLOCK_M") <= 2**20,
        "BN": block_n <= 2**20,
        "BD": _number(launch, "BLOCK_D") <= 256,
        "qLen": q_len < 2**29,
        "kvLen": kv_len < 2**29,
        "programs": launch.programs < 2**31,
        "keys": block_n * _number(launch, "stride_kn") + 256 <= 2**31,
        "values": block_n * _number(launch, "stride_vn") + 256 <= 2**31,
        "strides": all(0 <= _number(launch, x) < 2**31 for x in strides if types[x] != "constexpr"),
        "shift": -(2**29) < shift < 2**29,
        "left": left is None or (left >= 0 and q_len - 1 + shift - left > 0),
        "right": right is None or (right >= 0 and shift + right < kv_len - 1),
    }
    return [name for name, holds in met.items() if not holds]


_LENGTHS = st.one_of(st.integers(1, 100), st.integers(_LONGEST - 100, _LONGEST))
_BOUNDS = st.none() | st.integers(0, 200) | st.integers(0, 2**31)
_SHIFTS = st.integers(-100, 100) | st.integers(-_LONGEST, _LONGEST)


@given(_LENGTHS, _LENGTHS, _BOUNDS, _BOUNDS, _SHIFTS, st.integers(0, 2**28))
def test_launches_are_within_the_bounds(
    q_len: int, kv_len: int, left: int | None, right: int | None, shift: int, key_stride: int
) -> None:
    options = ScoreOptions(0.5, left=left, right=right, shift=shift)
    assert _beyond(_launch(q_len, kv_len, options, key_stride=key_stride)) == []


@pytest.mark.parametrize("shift", [-_LONGEST, 0, _LONGEST])
def test_the_widest_windows_are_within_the_bounds(shift: int) -> None:
    widest = (max(0, _LONGEST - 2 + shift), max(0, _LONGEST - 2 - shift))
    launch = _launch(
        _LONGEST, _LONGEST, ScoreOptions(0.5, left=widest[0], right=widest[1], shift=shift)
    )
    assert _beyond(launch) == []
    if shift == 0:
        # Not vacuous: these bounds are given, and one further they are not.
        assert (launch.arguments["left"], launch.arguments["right"]) == widest
        wider = ScoreOptions(0.5, left=widest[0] + 1, right=widest[1] + 1)
        launch = _launch(_LONGEST, _LONGEST, wider)
        assert (launch.arguments["left"], launch.arguments["right"]) == (None, None)


def test_offsets_within_a_tile_that_pass_32_bits_are_another_text() -> None:
    options = ScoreOptions(0.5)
    near = (2**31 - 256) // 16
    launch = _launch(3, 40, options, key_stride=near, block_n=16)
    assert not launch.constants["FAR"]
    assert _beyond(launch) == []
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
