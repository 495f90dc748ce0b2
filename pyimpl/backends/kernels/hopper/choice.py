"""Which calls the Gluon kernels take, and which they are given unasked.

Nothing of Gluon is imported here: in other versions of Triton it has other names.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from torch import Tensor

from pyimpl.backends.kernels.parts import kept
from pyimpl.backends.kernels.parts import launch as launches
from pyimpl.backends.kernels.parts.launch import are_aligned, window_arguments
from pyimpl.backends.kernels.parts.numerics import INTERPRETED
from pyimpl.internal.scores import KERNEL_CHANGES, ScoreOptions

# 10 × major + minor.
CAPABILITY = 90
HEAD_DIMS = (64, 128, 256)
# Those for which the backward kernel computes dQ too.
WITH_SUMS = (64, 128)
DTYPES = (torch.float16, torch.bfloat16)
# The kernel is written in the Gluon that both have.
TRITONS = ("3.6", "3.7")
_VERSION = ".".join(triton.__version__.split(".")[:2])
IS_WRITTEN_FOR_THIS_TRITON = _VERSION in TRITONS
# Rows of queries that one warp group computes, and one program.
BLOCK_M, ROWS = 64, 128
# The tensor memory accelerator takes strides below this many bytes.
_LARGEST_STRIDE = 2**40


@dataclass(frozen=True)
class Seen:
    """Calls for which the kernel was seen right on a device, and faster than the Triton kernel.

    head_dim, dtypes, tritons: of the calls, and the versions of Triton. causal: whether with a
    right edge too. kernel: `text_of_the_kernel`, as it was then: of another text it says nothing.
    evidence: when, on which device, with which versions, what.
    """

    head_dim: int
    dtypes: tuple[torch.dtype, ...]
    tritons: tuple[str, ...]
    causal: bool
    kernel: str
    evidence: str


# What was seen on 2026-11-26: bench/results/2026-11-26-hopper-h200.txt has it whole.
_FORWARD = (
    "2026-11-26, H200, Triton 3.6.0, torch 2.11.0+cu130, Python 3.12.3: none of the 106 tests of "
    "tests/gpu/test_gpu_hopper.py that ran before the time was over failed, of both dtypes, with "
    "each kind of mask and of ragged lengths; each of 44 pairs of launch options and cases in "
    "bfloat16 was right and had the same bits three times; at 1024, 4096 and 16,384 keys, full and "
    "causal, 0.92 to 1.18 times as fast as cuDNN. "
    "2026-11-27, H200, the same versions: 180 of those tests passed and none failed, among them "
    "52 pairs of a family of vectors and a dtype, each with all vectors that the kernel takes "
    "(bench/results/2026-11-27-gpu-tests-h200.txt). "
    "2026-11-27, H100 80GB HBM3, the same versions: those 180 tests; the same bits 50 times "
    "(bench/results/2026-11-27-gpu-tests-h100.txt, 2026-11-27-gpu-hour-h100.txt)."
)
SEEN = tuple(
    Seen(n, DTYPES, ("3.6",), causal=True, kernel="764df7b08989", evidence=_FORWARD)
    for n in HEAD_DIMS
)
# The same of the backward kernel.
_BACKWARD = (
    "2026-11-26, H100 80GB HBM3, Triton 3.6.0, torch 2.11.0+cu130, Python 3.12.3: right within the "
    "tolerance in both dtypes, full, causal and with windows (30 tests of "
    "tests/gpu/test_gpu_backward.py); each of 30 pairs of launch options and cases in bfloat16 was "
    "right, of ragged lengths with grouped heads too; the same bits 50 times "
    "(bench/results/2026-11-26-gpu-hour-backward.txt); with the Triton kernel for dQ 1.2 to 2.1 "
    "times as fast as the Triton kernels (bench/results/2026-11-26-hopper.txt). "
    "2026-11-27, H200, the same versions, as it is now: those 30 tests; each of 105 pairs of "
    "launch options and cases was right, 20 of them with dQ, with the grid of fixed programs and "
    "without (bench/results/2026-11-27-gpu-hour-h200-decode.txt). "
    "2026-11-27, H100 80GB HBM3, the same versions, as it is now: those 30 tests; the same bits 50 "
    "times, with the grid of fixed programs too (bench/results/2026-11-27-gpu-hour-h100.txt)."
)
# `kernel` is the hash of the whole of backward_kernel.py. So that file, long as it is, is not
# divided before a device is at hand that sees its parts right.
SEEN_BACKWARD = tuple(
    Seen(n, DTYPES, ("3.6",), causal=True, kernel="35ced108d3f5", evidence=_BACKWARD)
    for n in HEAD_DIMS
)
# The same of the kernel for dQ.
_QUERIES = (
    "2026-11-26, H100 80GB HBM3, Triton 3.6.0, torch 2.11.0+cu130, Python 3.12.3: right within the "
    "tolerance in both dtypes, full, causal and with windows (30 tests of "
    "tests/gpu/test_gpu_backward.py); each of 114 pairs of launch options and cases in bfloat16 "
    "was right, of ragged lengths with grouped heads too; the same bits 50 times; 1.1 to 1.3 times "
    "as fast as the Triton kernel (bench/results/2026-11-26-gpu-hour-backward.txt)."
)
SEEN_QUERIES = tuple(
    Seen(n, DTYPES, ("3.6",), causal=True, kernel="345e4daf614a", evidence=_QUERIES)
    for n in HEAD_DIMS
)


@functools.cache
def text_of_the_kernel(name: str = "forward") -> str:
    """The first 12 digits of the SHA-256 of the kernel's file: "forward", "backward" or
    "queries"."""
    text = Path(__file__).with_name(f"{name}_kernel.py").read_bytes()
    return hashlib.sha256(text).hexdigest()[:12]


def launch_options(head_dim: int, is_windowed: bool, q_len: int) -> dict[str, int]:
    """`block_n`, `stages`, `in_turns` (0 or 1), `waves`, `items` and `out` for a launch.

    waves: so many programs for each multiprocessor, or with 0 one for each two tiles of queries.
    items: for how many of those a program has buffers for queries. out: how the output leaves, 0 to
    2: the kernel's `BY_THREADS`, `FROM_QUERIES` or `FROM_ITS_OWN`.

    By times on an H200 (bench/results/2026-11-26-hopper-h200.txt).
    """
    # Under a window tiles have more or less to do, which a GPU evens out better than a fixed share;
    # but of short sequences each program has too little to do for its beginning and its end.
    longest = {64: 4096, 128: 2048, 256: 0}[head_dim]
    waves = 0 if is_windowed and q_len > longest else 1
    small = head_dim == 64 and not is_windowed
    out = 1 if waves == 0 or head_dim == 256 else 0 if small and q_len > longest else 2
    return {
        "block_n": 64 if head_dim == 256 else 128,
        "stages": 3 if small else 2,
        "in_turns": int(small),
        "waves": waves,
        "items": 2 if out == 2 else 1,
        "out": out,
    }


def keys_options(head_dim: int, is_causal: bool, sums: bool = False) -> dict[str, int]:
    """`block_m` (64 or 128), `block_n` (128, or 64 of wide heads), `stages`, `ahead`, `waves` and
    `items` for a launch of the backward kernel, by times on an H100 and an H200.

    is_causal: there is a right edge and no left one. sums: dQ is added too. ahead: with 1 a tile's
    scores are computed beside the product for dK of the tile before, which takes a third buffer,
    and registers that heads of 64 have for tiles of 64 queries alone. waves: so many programs for
    each multiprocessor, or with 0 one for each tile of keys. items: for how many tiles of keys of
    its own such a program has buffers.
    """
    block_m, block_n = 128 if head_dim == 64 else 64, 64 if head_dim == 256 else 128
    ahead = int(head_dim == 128 and not sums)
    # The wider the head, the less room for a program that loads and stores beside computing.
    grid = head_dim == 64 and is_causal and not sums
    return {
        "block_m": block_m, "block_n": block_n, "stages": 2 + ahead, "ahead": ahead,
        "waves": int(grid), "items": 1 + grid,
    }  # fmt: skip


def queries_options(head_dim: int, is_windowed: bool, q_len: int) -> dict[str, int]:
    """`block_n`, `keys` and `values`, buffers of the tiles of these, `in_turns`, `waves` and
    `items` as `launch_options` has them, for a launch of the kernel for dQ.

    By times on an H100 (bench/results/2026-11-26-gpu-hour-backward.txt): with a third buffer of
    keys, where there is room for it, it is 1.5 to 1.7 times as fast as with two.
    """
    waves = launch_options(head_dim, is_windowed, q_len)["waves"]
    wide = head_dim == 256
    return {
        "block_n": 128 if head_dim == 64 else 64,
        "keys": 2 if wide else 3,
        "values": 1 if wide else 2,
        "in_turns": 0,
        "waves": waves,
        "items": 1 if wide or not waves else 2,
    }


def why_not(
    query: Tensor, key: Tensor, value: Tensor, out: Tensor | None, options: ScoreOptions
) -> str | None:
    """The sentence that says why this kernel cannot compute a call that the Triton kernel can, or
    None if it can. out: None for one like `empty_output` makes."""
    refusal = _why_not_on(query.device, launches.stand_in, INTERPRETED.value)
    if refusal is not None:
        return refusal
    dtype = query.dtype if out is None else out.dtype
    if query.dtype not in DTYPES or dtype != query.dtype:
        return f"backend 'gluon' takes float16 and bfloat16, not {query.dtype} into {dtype}"
    sizes = (query.shape[-1], value.shape[-1])
    if sizes[0] not in HEAD_DIMS or sizes[0] != sizes[1]:
        return f"backend 'gluon' takes head sizes of 64, 128 and 256, the same for all, not {sizes}"
    names = ("mask", *(change.name for change in KERNEL_CHANGES), "dropout")
    given = [name for name in names if getattr(options, name) is not None]
    if given:
        return f"backend 'gluon' takes windows and causality, not {', '.join(given)}"
    if options.scale == 0.0:
        # Hidden scores are −∞ before they are scaled.
        return "backend 'gluon' takes a scale other than 0"
    if 0 in query.shape or 0 in key.shape:
        return "backend 'gluon' takes no empty tensors"
    for name, tensor in (("query", query), ("key", key), ("value", value), ("out", out)):
        if tensor is not None and not _has_rows_of_16(tensor):
            return (
                f"backend 'gluon' takes rows of elements that lie together, strides that 16 "
                f"divides, none of them 0, and addresses that 16 divides; those of {name} are "
                f"{tensor.stride()} at {tensor.data_ptr()}"
            )
    return None


@functools.cache
def _why_not_on(
    device: torch.device, stand_in: launches.StandIn | None, interpreted: bool
) -> str | None:
    """The same by Triton and the device alone."""
    if _VERSION not in TRITONS:
        return f"backend 'gluon' takes Triton 3.6 and 3.7, not {triton.__version__}"
    if interpreted:
        return "backend 'gluon' does not run in Triton's interpreter: unset TRITON_INTERPRET"
    if device.type != "cuda" and stand_in is None:
        return f"backend 'gluon' takes CUDA tensors, not {device.type}"
    found = launches.capability(device)
    if found != CAPABILITY:
        return (
            "backend 'gluon' takes devices of compute capability 9.0, Hopper's, not "
            f"{found // 10}.{found % 10}"
        )
    return None


def _has_rows_of_16(tensor: Tensor) -> bool:
    """Whether the tensor memory accelerator can copy rows of it: of all heads and batches, so that
    none is broadcast."""
    *strides, last = tensor.stride()
    kept = [stride for stride, size in zip(strides, tensor.shape, strict=False) if size > 1]
    large = _LARGEST_STRIDE // tensor.element_size()
    return (
        last == 1
        and are_aligned(*kept)
        and all(0 < stride < large for stride in kept)
        and tensor.data_ptr() % 16 == 0
    )


def is_chosen(query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> bool:
    """Whether "auto" takes the forward kernel for a call: a row of `SEEN` has it and is of the
    kernel as it is now, and a key that is hidden from every query of a program is in no tile that
    the program visits.

    Whole tiles are copied, and the rows of values whose keys are hidden count with the weight 0. So
    a NaN in one of them would be seen, and the Triton kernel, which reads no such row, has none.
    """
    return _is_chosen("forward", SEEN, query, key, value, options, _no_hidden_key_is_read)


def is_chosen_backward(query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> bool:
    """Whether "auto" takes the backward kernel for a call: a row of `SEEN_BACKWARD` has it and is
    of the kernel as it is now, every query sees a key, and every key is seen.

    Others must have no influence, whatever they hold: the Triton kernels do not read them.
    """
    return _is_chosen("backward", SEEN_BACKWARD, query, key, value, options, _all_see_and_are_seen)


def is_chosen_queries(query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> bool:
    """The same of the kernel for dQ and `SEEN_QUERIES`."""
    return _is_chosen("queries", SEEN_QUERIES, query, key, value, options, _all_see_and_are_seen)


def _is_chosen(
    name: str, seen: tuple[Seen, ...], query: Tensor, key: Tensor, value: Tensor,
    options: ScoreOptions, under_an_edge: Callable[[Tensor, Tensor, ScoreOptions], bool],
) -> bool:  # fmt: skip
    """Whether a row has a call, which has no left edge; and `under_an_edge` holds if it has a right
    one. Of calls like an earlier one it is known."""
    text = text_of_the_kernel(name)
    rows = [
        row for row in seen
        if row.kernel == text and _VERSION in row.tritons
        if row.head_dim == query.shape[-1] and query.dtype in row.dtypes
    ]  # fmt: skip

    def decide() -> bool:
        if why_not(query, key, value, None, options) is not None:
            return False
        window = window_arguments(options, query.shape[2], key.shape[2])
        if window["left"] is not None or window["right"] is None:
            return window["left"] is None
        return under_an_edge(query, key, options) and any(row.causal for row in rows)

    return bool(rows) and kept.decide_once(
        decide, (query, key, value, *kept.tensors_of(options)),
        ("chosen", name, *kept.numbers_of(options)),
    )  # fmt: skip


def _no_hidden_key_is_read(query: Tensor, key: Tensor, options: ScoreOptions) -> bool:
    q_len, kv_len = query.shape[2], key.shape[2]
    block_n = launch_options(query.shape[-1], True, q_len)["block_n"]
    return tile_ends(options, q_len, kv_len, ROWS, block_n)


def _all_see_and_are_seen(query: Tensor, key: Tensor, options: ScoreOptions) -> bool:
    assert options.right is not None
    reach = options.shift + options.right
    return reach >= 0 and query.shape[2] + reach >= key.shape[2]


def tile_ends(options: ScoreOptions, q_len: int, kv_len: int, rows: int, block_n: int) -> bool:
    """Whether under the right edge of `options` each program, of `rows` queries, sees some key, and
    the last key that it sees ends a tile or is the last there is."""
    assert options.right is not None
    reach = options.shift + options.right
    if reach < 0 or reach % block_n or rows % block_n:
        return False
    return q_len + reach >= kv_len or (q_len + reach) % block_n == 0
