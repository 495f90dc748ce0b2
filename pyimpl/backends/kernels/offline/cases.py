"""The cases that `compile` compiles: kernels, dtypes, head sizes and options, each as a launch on
tensors without memory."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pyimpl.backends.kernels import (
    backward,
    backward_bias,
    backward_keys,
    backward_queries,
    combine,
    decode,
    forward,
    varlen,
)
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.scores import KERNEL_CHANGES, ScoreOptions

# The changes that any kernel takes in any case; a bias is one of "window+mask+bias".
_CHANGES = tuple(change for change in KERNEL_CHANGES if change.kind != "pair")
_DTYPES = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


@dataclass(frozen=True)
class Case:
    """One specialisation of a kernel; both head sizes are `head_dim`.

    kernel: a name out of `KERNELS`. features: those that `_options` knows, joined by "+". Lengths
    and numbers of heads make no other case (`numerics.kernel`).
    """

    kernel: str
    dtype: str
    head_dim: int
    features: str = ""


def _empty(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(size, dtype=dtype, device="meta")


def _like(case: Case, tensor: Tensor) -> Tensor:
    """A kernel's result that belongs to this tensor: in its dtype, "wide" in float32."""
    wide = "wide" in case.features.split("+")
    return torch.empty_like(tensor, dtype=torch.float32) if wide else tensor


def _options(case: Case, batch: int, heads: int, q_len: int, kv_len: int) -> ScoreOptions:
    """The options that the case's features mean; tensors without memory."""
    pairs = (batch, heads, q_len, kv_len)
    settings: dict[str, dict[str, object]] = {
        "": {},
        "causal": {"right": 0},
        "window": {"left": 100, "right": 0},
        "mask": {"mask": _empty(*pairs, dtype=torch.bool)},
        "bias": {"bias": _empty(*pairs, dtype=_DTYPES[case.dtype])},
        **{
            change.feature: {
                change.name: _empty(*((batch, heads) if change.by_batch else (heads,)))
                if change.kind == "head"
                else 30.0
            }
            for change in _CHANGES
        },
        "dropout": {"dropout": Dropout(0.1, _empty(dtype=torch.int64))},
        "part": {"dropout": Dropout(0.1, _empty(dtype=torch.int64), 3, 24, 1000, 1001)},
        "packed": {},
        "wide": {},
        "grid": {},
        "sums": {},
        "pages-of-256": {},
    }
    chosen: dict[str, Any] = {}
    for feature in case.features.split("+"):
        chosen |= settings[feature]
    return ScoreOptions(0.125, **chosen)


def _dense(case: Case) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor, Tensor], ScoreOptions]:
    """Query, key, value, output and log-sum-exp, and the options."""
    batch, heads, kv_heads, q_len, kv_len = 2, 8, 2, 1000, 1024
    dtype = _DTYPES[case.dtype]
    query = _empty(batch, heads, q_len, case.head_dim, dtype=dtype)
    key = _empty(batch, kv_heads, kv_len, case.head_dim, dtype=dtype)
    tensors = (query, key, key, _like(case, query), _empty(batch, heads, q_len))
    return tensors, _options(case, batch, heads, q_len, kv_len)


def _forward(case: Case, arch: int) -> Launch:
    tensors, options = _dense(case)
    return forward.launch(*tensors, options, capability=arch)


def _hopper(case: Case, arch: int) -> Launch:
    from pyimpl.backends.kernels.hopper import forward as hopper

    tensors, options = _dense(case)
    return hopper.launch(*tensors, options, processors=132)


def _decode(case: Case, arch: int) -> Launch:
    batch, heads, kv_heads, q_len, kv_len = 2, 16, 2, 2, 4096
    dtype = _DTYPES[case.dtype]
    query = _empty(batch, heads, q_len, case.head_dim, dtype=dtype)
    lens = _empty(batch, dtype=torch.int32)
    table = None
    key = _empty(batch, kv_heads, kv_len, case.head_dim, dtype=dtype)
    if case.kernel == "paged":
        # A tile of keys lies in several pages, or in one.
        page_size = 256 if "pages-of-256" in case.features.split("+") else 16
        key = _empty(512, page_size, kv_heads, case.head_dim, dtype=dtype).transpose(1, 2)
        table = _empty(batch, kv_len // page_size, dtype=torch.int32)
    parts = _empty(4, batch, heads, q_len, case.head_dim)
    return decode.launch(
        query, key, key, parts, parts[..., 0].contiguous(),
        _options(case, batch, heads, q_len, kv_len), kv_lens=lens, page_table=table,
        bottom_right=True, capability=arch,
    )  # fmt: skip


def _varlen(case: Case, arch: int) -> Launch:
    dtype = _DTYPES[case.dtype]
    query = _empty(3000, 8, case.head_dim, dtype=dtype)
    key = _empty(4000, 2, case.head_dim, dtype=dtype)
    cu_seqlens = _empty(5, dtype=torch.int32)
    return varlen.launch(
        query, key, key, cu_seqlens, cu_seqlens, query, _empty(8, 3000),
        _options(case, 4, 8, 3000, 4000), max_q_len=1000, bottom_right=True, capability=arch,
    )  # fmt: skip


def _inputs_of(case: Case) -> Given:
    """The inputs of the kernels of the backward pass; "packed": four sequences."""
    batch, heads, kv_heads, q_len, kv_len = 2, 8, 2, 1000, 1024
    dtype = _DTYPES[case.dtype]
    query = _empty(batch, heads, q_len, case.head_dim, dtype=dtype)
    key = _empty(batch, kv_heads, kv_len, case.head_dim, dtype=dtype)
    rows = _empty(batch, heads, q_len)
    options = _options(case, batch, heads, q_len, kv_len)
    sequences = None
    if "packed" in case.features.split("+"):
        cu_seqlens = _empty(5, dtype=torch.int32)
        sequences = Sequences(cu_seqlens, cu_seqlens, 500, 500, True)
        options = dataclasses.replace(options, alibi_slopes=None)
    return Given(query, key, key, query, rows, rows, options, sequences)


def _backward_rows(case: Case, arch: int) -> Launch:
    given = _inputs_of(case)
    rows = given.lse
    return backward.row_numbers_launch(given.query, given.query, rows, rows, rows, given.delta)


def _sums(case: Case, given: Given) -> Tensor | None:
    """The tensor to which atomic additions add dQ, "sums"; None: it has a kernel of its own."""
    wanted = "sums" in case.features.split("+")
    return torch.empty_like(given.query, dtype=torch.float32) if wanted else None


def _backward_keys(case: Case, arch: int) -> Launch:
    given = _inputs_of(case)
    gradients = _like(case, given.key), _like(case, given.value)
    return backward_keys.launch(given, *gradients, _sums(case, given), capability=arch)


def _hopper_keys(case: Case, arch: int) -> Launch:
    """ "grid": of fixed programs, which the tiles are dealt out to, also where
    `choice.keys_options` has none."""
    from pyimpl.backends.kernels.hopper import backward as hopper

    given = _inputs_of(case)
    sums = _sums(case, given)
    chosen = None
    if "grid" in case.features.split("+"):
        chosen = choice.keys_options(case.head_dim, False, sums is not None) | {"waves": 1}
    gradients = _like(case, given.key), _like(case, given.value)
    return hopper.launch(given, *gradients, sums, processors=132, chosen=chosen)


def _hopper_queries(case: Case, arch: int) -> Launch:
    from pyimpl.backends.kernels.hopper import queries as hopper

    given = _inputs_of(case)
    return hopper.launch(given, _like(case, given.query), processors=132)


def _backward_queries(case: Case, arch: int) -> Launch:
    given = _inputs_of(case)
    slopes = given.delta if given.options.alibi_slopes is not None else None
    return backward_queries.launch(given, _like(case, given.query), slopes, capability=arch)


def _backward_bias(case: Case, arch: int) -> Launch:
    given = _inputs_of(case)
    bias = given.options.bias
    assert bias is not None
    return backward_bias.launch(given, _empty(*bias.shape), capability=arch)


def _combine(case: Case, arch: int) -> Launch:
    parts = _empty(4, 2, 16, 2, case.head_dim)
    out = _empty(2, 16, 2, case.head_dim, dtype=_DTYPES[case.dtype])
    return combine.launch(parts, parts[..., 0].contiguous(), out, out[..., 0].float())


KERNELS: dict[str, Callable[[Case, int], Launch]] = {
    "forward": _forward,
    "hopper": _hopper,
    "hopper-keys": _hopper_keys,
    "hopper-queries": _hopper_queries,
    "decode": _decode,
    "paged": _decode,
    "varlen": _varlen,
    "rows": _backward_rows,
    "keys": _backward_keys,
    "queries": _backward_queries,
    "bias": _backward_bias,
    "combine": _combine,
}


# Kernels that are not for every architecture, and for which they are.
ONLY = dict.fromkeys(("hopper", "hopper-keys", "hopper-queries"), (90,))


def compiles(arch: int, case: Case) -> bool:
    """Whether the case is for this architecture."""
    return arch in ONLY.get(case.kernel, (arch,))


# The fields of `Case`, a line a case.
_QUICK = """
forward bf16 64 causal
hopper bf16 128 causal
hopper-keys bf16 64 causal+sums
hopper-queries bf16 256 causal
forward fp16 80 window+mask+bias
forward fp32 64 softcap+alibi+sink
decode bf16 128 window+mask+bias
decode bf16 128 causal
paged fp16 64 window+softcap+alibi+sink
paged bf16 128 causal+pages-of-256
varlen bf16 64 causal+sink
combine bf16 64
rows bf16 80
keys fp16 80 window+mask+bias
keys fp32 64 softcap+alibi+sink
keys bf16 256 window
queries bf16 64 causal+packed
bias bf16 64 causal+bias
forward bf16 64 causal+dropout
varlen fp32 64 window+dropout
keys bf16 64 packed+causal+dropout
keys bf16 256 window+mask+bias+dropout
varlen fp32 250 window+dropout
queries bf16 64 window+mask+bias+dropout
forward bf16 64 causal+wide
keys bf16 64 causal+wide
queries bf16 64 causal+wide
bias fp32 64 causal+bias+dropout
forward bf16 64 causal+part
keys bf16 64 causal+part
queries bf16 64 causal+part
bias fp32 64 causal+bias+part
"""


def _case(line: str) -> Case:
    kernel, dtype, head_dim, *features = line.split()
    return Case(kernel, dtype, int(head_dim), *features)


def cases(quick: bool = False) -> list[Case]:
    """The representative cases of each kernel: dtypes, head sizes, and changes of the scores.

    80 stands for the head sizes that are no power of two, 100 and 250 for those whose rows are
    loaded element by element.
    `quick`: a few cases that between them take every branch of the kernels.
    """
    if quick:
        return [_case(line) for line in _QUICK.strip().splitlines()]
    few = ("window+mask+bias", "+".join(("causal", *(change.feature for change in _CHANGES))))
    every = ("", "causal", "window", "mask", *few)
    dropping = tuple(f"{features}+dropout" for features in ("causal", few[0]))
    heads = (64, 80, 100, 128, 250, 256)
    # The backward pass fills up the others with zeros.
    even = tuple(size for size in heads if size % 16 == 0)
    backward_features = (
        "", "window", "packed+causal", *few, "packed+causal+dropout", dropping[1],
    )  # fmt: skip
    return [
        *(
            Case("forward", *rest)
            for rest in itertools.product(_DTYPES, heads, (*every, *dropping))
        ),
        *(
            Case(*rest)
            for rest in itertools.product(
                ("hopper", "hopper-keys", "hopper-queries"),
                ("bf16",),
                (64, 128, 256),
                ("", "causal", "window"),
            )
        ),
        *(
            Case(kernel, "fp16", 128, "causal")
            for kernel in ("hopper", "hopper-keys", "hopper-queries")
        ),
        *(
            Case(kernel, "bf16", head_dim, "causal+sums")
            for kernel in ("hopper-keys", "keys")
            for head_dim in choice.WITH_SUMS
        ),
        *(
            Case("hopper-keys", "bf16", *rest)
            for rest in itertools.product((64, 128, 256), ("grid", "causal+grid"))
        ),
        *(Case("decode", *rest) for rest in itertools.product(("fp32", "bf16"), heads, few)),
        *(Case("paged", *rest) for rest in itertools.product(("fp32", "bf16"), heads, few)),
        *(
            Case(kernel, "bf16", head_dim, features)
            for head_dim in (64, 128, 256)
            for kernel, features in (
                ("decode", "causal"),
                ("paged", "causal"),
                ("paged", "causal+pages-of-256"),
            )
        ),
        *(
            Case("varlen", *rest)
            for rest in itertools.product(
                ("fp32", "bf16"), heads, ("window", few[1], "window+dropout")
            )
        ),
        *(Case("combine", "bf16", head_dim) for head_dim in (64, 256)),
        *(
            Case(kernel, "bf16", head_dim, "causal+wide")
            for kernel in ("forward", "keys", "queries")
            for head_dim in (64, 128, 256)
        ),
        *(Case("rows", dtype, 64) for dtype in _DTYPES),
        *(
            Case(kernel, *rest)
            for kernel in ("keys", "queries")
            for rest in itertools.product(("fp32", "bf16"), even, backward_features)
        ),
        *(
            Case("bias", *rest)
            for rest in itertools.product(("fp32", "bf16"), even, (few[0], dropping[1]))
        ),
    ]
