"""The kernels whose launch options are measured: `KERNELS`, by name.

An entry turns a case's inputs into launches with given options. Another way to compute the same, in
another language of Triton's too, is another entry: the other steps (compiling without a device,
checking, timing, races) need nothing but `Prepared`.
"""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from bench.cases import DTYPES, Case, Inputs, Operation
from pyimpl import attention
from pyimpl.backends.kernels import backward_keys, backward_queries, combine, decode, forward
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.parts.backward_launch import Given, row_buffers
from pyimpl.backends.kernels.parts.launch import Launch, processors
from pyimpl.backends.kernels.parts.numerics import LOG2E
from pyimpl.backends.kernels.parts.tuning import candidates
from pyimpl.internal.scores import ScoreOptions

Options = dict[str, int]
# The log-sum-exps and deltas of queries, kept as long as the queries are there.
_ROWS: Any = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class Prepared:
    """A kernel for the inputs of a case.

    launches: all that `run` starts, to be compiled beforehand. outputs: the results to judge: the
    output, or the gradients by query, key and value, None for one that it does not compute.
    scratch: the other tensors that it writes.
    """

    launches: tuple[Launch, ...]
    run: Callable[[], None]
    outputs: tuple[Tensor | None, ...]
    scratch: tuple[Tensor, ...] = ()

    def poison(self) -> None:
        """Write NaN to all of its results: so elements that it leaves out are seen."""
        for tensor in (*self.outputs, *self.scratch):
            if tensor is not None:
                tensor.fill_(float("nan"))


@dataclass(frozen=True)
class Kernel:
    """operation: of the cases that it is for. paged: with keys in pages. default: the options that
    `launch_options` gives a case on a device of a compute capability. prepare: of inputs, options
    and capability; also of inputs without memory. around: the options to be measured beside some.
    same_bits: whether the same inputs give the same bits. least_shared: bytes of shared memory
    below which it does not come with these options. share: of the operations that the case asks
    for: a kernel that computes some of the gradients does some of the five products. dtypes: of the
    cases that it takes, and head_dims. capabilities: of the devices that it is for, None: of all.
    interpreted: whether Triton's interpreter runs it."""

    operation: Operation
    default: Callable[[Case, int], Options]
    prepare: Callable[[Inputs, Options, int], Prepared]
    around: Callable[[Options], list[Options]] = candidates
    paged: bool = False
    same_bits: bool = True
    least_shared: Callable[[Case, Options], int] = lambda case, chosen: 0
    share: float = 1.0
    dtypes: tuple[str, ...] = tuple(DTYPES)
    head_dims: tuple[int, ...] = choice.HEAD_DIMS
    capabilities: tuple[int, ...] | None = None
    interpreted: bool = True

    def is_for(self, capability: int) -> bool:
        """Whether devices of this compute capability have it."""
        return self.capabilities is None or capability in self.capabilities


def settle_hashes() -> None:
    """Have Triton hash the kernels in this order, whichever is compiled first.

    Into the hash of a kernel go the constants of those functions only that were hashed before
    (`_update_hash` of `triton.runtime.jit`, 3.6 and 3.7: it merges a callee's constants before the
    callee is looked at). So the names in Triton's cache depend on the first kernel of a process:
    the process that measures did not find about a half of the kernels that another had compiled.
    """
    modules = [forward, backward_keys, backward_queries, decode, combine]
    if choice.IS_WRITTEN_FOR_THIS_TRITON:
        names = ("forward", "backward", "queries")
        modules += [importlib.import_module(f"pyimpl.backends.kernels.hopper.{x}") for x in names]
    for module in modules:
        for name, kernel in vars(module).items():
            if name.endswith("_kernel"):
                # Functions of Triton's interpreter have none.
                getattr(kernel, "cache_key", None)


def score_options(case: Case) -> ScoreOptions:
    """The case's options of the scores. Raises ValueError for a Boolean mask, which no kernel is
    tuned for."""
    if case.mask.name == "boolean":
        raise ValueError("mask must be a window, not boolean")
    return ScoreOptions(1.0 / math.sqrt(case.head_dim), left=case.mask.left, right=case.mask.right)


def _sizes(case: Case) -> tuple[torch.dtype, int, int]:
    return DTYPES[case.dtype], case.head_dim, case.head_dim


def _processors(tensor: Tensor) -> int:
    """How many the device has, or one that it is compiled for without it."""
    return processors(tensor.device) if tensor.device.type == "cuda" else 132


def _forward(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    query = inputs.query
    out = torch.empty_like(query)
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
    launch = forward.launch(
        query, inputs.key, inputs.value, out, lse, score_options(inputs.case),
        capability=capability, chosen=chosen,
    )  # fmt: skip
    return Prepared((launch,), partial(launch.run, query.device), (out,), (lse,))


def _forward_default(case: Case, capability: int) -> Options:
    return forward.launch_options(*_sizes(case), score_options(case), capability)


def _hopper(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    from pyimpl.backends.kernels.hopper import forward as hopper

    query = inputs.query
    out = torch.empty_like(query)
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
    launch = hopper.launch(
        query, inputs.key, inputs.value, out, lse, score_options(inputs.case),
        processors=_processors(query), chosen=chosen,
    )  # fmt: skip
    return Prepared((launch,), partial(launch.run, query.device), (out,), (lse,))


def _hopper_default(case: Case, capability: int) -> Options:
    return choice.launch_options(case.head_dim, case.mask.name != "full", case.q_len)


def _around_hopper(centre: Options) -> list[Options]:
    """One of them changed."""
    others = {
        "block_n": (centre["block_n"] // 2, centre["block_n"] * 2),
        "stages": (2, 3, 4),
        "in_turns": (0, 1),
        "waves": (0, 1, 2),
        "items": (1, 2),
        "out": (0, 1, 2),
    }
    found = [centre]
    for name, numbers in others.items():
        found += [{**centre, name: n} for n in numbers if n != centre[name]]
    # A matrix instruction has up to 256 columns, and those below 64 are slow.
    return [one for one in found if 32 <= one["block_n"] <= 256]


def _least_shared_hopper(case: Case, chosen: Options) -> int:
    """The queries of its items, tiles of keys and values, and the output if it has buffers."""
    tiles = chosen["items"] + (chosen["out"] == 2)
    rows = tiles * choice.ROWS + 2 * chosen["stages"] * chosen["block_n"]
    return rows * case.head_dim * DTYPES[case.dtype].itemsize


def _inputs_of(inputs: Inputs) -> Given:
    """The inputs of the kernels of the backward pass, with the numbers of each query by plain
    PyTorch."""
    case, query, grad_out = inputs.case, inputs.query, inputs.grad_out
    assert grad_out is not None
    if query not in _ROWS:
        rows = row_buffers(query)
        if query.device.type != "meta":
            out, lse = attention(
                query, inputs.key, inputs.value, window=(case.mask.left, case.mask.right),
                enable_gqa=case.grouped, return_lse=True, backend="tiled",
            )  # fmt: skip
            rows[0].copy_(lse * LOG2E.value)
            rows[1].copy_((out.float() * grad_out.float()).sum(-1))
        _ROWS[query] = rows
    lse_rows, delta = _ROWS[query]
    return Given(query, inputs.key, inputs.value, grad_out, lse_rows, delta, score_options(case))


def _keys(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    given = _inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    launch = backward_keys.launch(given, grad_k, grad_v, capability=capability, chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (None, grad_k, grad_v))


def _hopper_keys(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    from pyimpl.backends.kernels.hopper import backward as hopper

    given = _inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    many = _processors(given.query)
    launch = hopper.launch(given, grad_k, grad_v, None, processors=many, chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (None, grad_k, grad_v))


def _hopper_keys_default(case: Case, capability: int) -> Options:
    return choice.keys_options(case.head_dim, case.mask.name == "causal")


def _around_hopper_keys(centre: Options) -> list[Options]:
    """The keys of a tile follow from the head size; of wide heads no scores come ahead. A
    persistent grid, whose longest tiles come first, is `waves` above 0."""
    found = [
        {**centre, "waves": waves, "items": items} for waves, items in ((0, 1), (1, 1), (1, 2))
    ]
    found += [
        {**centre, "block_m": rows, "stages": stages, "ahead": ahead}
        for rows, stages in itertools.product((64, 128), (2, 3))
        for ahead in ((0,) if centre["block_n"] == 64 else (0, 1))
    ]
    return [centre, *(one for one in found if one != centre)]


def _around_hopper_sums(centre: Options) -> list[Options]:
    """No scores come ahead."""
    return [one for one in _around_hopper_keys(centre) if not one["ahead"]]


def _least_shared_hopper_keys(case: Case, chosen: Options) -> int:
    """The keys and values of its tiles, and the tiles of queries and of the output's gradient."""
    rows = 2 * chosen["items"] * chosen["block_n"] + 2 * chosen["stages"] * chosen["block_m"]
    return rows * case.head_dim * DTYPES[case.dtype].itemsize


def _hopper_sums(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    """All three in one loop of five products."""
    from pyimpl.backends.kernels.hopper import backward as hopper

    given = _inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    sums = torch.empty_like(given.query, dtype=torch.float32)
    many = _processors(given.query)
    launch = hopper.launch(given, grad_k, grad_v, sums, processors=many, chosen=chosen)
    return _with_sums(given, launch, sums, grad_k, grad_v)


def _least_shared_hopper_sums(case: Case, chosen: Options) -> int:
    """The same, the gradients of scores that the groups exchange, and the summands of dQ."""
    exchanged = 4 * choice.BLOCK_M * chosen["block_m"] * DTYPES[case.dtype].itemsize
    added = 2 * chosen["block_m"] * case.head_dim * 4
    return _least_shared_hopper_keys(case, chosen) + exchanged + added


def _hopper_queries(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    from pyimpl.backends.kernels.hopper import queries as hopper

    given = _inputs_of(inputs)
    grad_q = torch.empty_like(given.query)
    launch = hopper.launch(given, grad_q, processors=_processors(given.query), chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (grad_q, None, None))


def _hopper_queries_default(case: Case, capability: int) -> Options:
    return choice.queries_options(case.head_dim, case.mask.name != "full", case.q_len)


def _around_hopper_queries(centre: Options) -> list[Options]:
    """One of them changed: a persistent grid, whose longest items come first, is `waves` above 0,
    ping-pong `in_turns`."""
    others = {
        "in_turns": (0, 1),
        "waves": (0, 1),
        "items": (1, 2),
        "keys": (2, 3),
        "values": (1, 2, 3),
        "block_n": (64, 128),
    }
    found = [centre]
    for name, numbers in others.items():
        found += [{**centre, name: n} for n in numbers if n != centre[name]]
    return found


def _least_shared_hopper_queries(case: Case, chosen: Options) -> int:
    """The queries of its items and the output's gradient, tiles of keys and of values."""
    rows = 2 * chosen["items"] * choice.ROWS
    rows += (chosen["keys"] + chosen["values"]) * chosen["block_n"]
    return rows * case.head_dim * DTYPES[case.dtype].itemsize


def _sums(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    """The kernels of `pyimpl.backends.kernels.backward.backward` with atomics."""
    given = _inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    sums = torch.empty_like(given.query, dtype=torch.float32)
    launch = backward_keys.launch(given, grad_k, grad_v, sums, capability=capability, chosen=chosen)
    return _with_sums(given, launch, sums, grad_k, grad_v)


def _with_sums(
    given: Given, launch: Launch, sums: Tensor, grad_k: Tensor, grad_v: Tensor
) -> Prepared:
    """The steps around a launch that adds dQ / scale to `sums`."""
    grad_q = torch.empty_like(given.query)

    def run() -> None:
        sums.zero_()
        launch.run(given.query.device)
        torch.mul(sums, given.options.scale, out=grad_q)

    return Prepared((launch,), run, (grad_q, grad_k, grad_v), (sums,))


def _keys_default(case: Case, capability: int, sums: bool = False) -> Options:
    return backward_keys.launch_options(*_sizes(case), score_options(case), capability, sums)


def _queries(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    given = _inputs_of(inputs)
    grad_q = torch.empty_like(given.query)
    launch = backward_queries.launch(given, grad_q, None, capability=capability, chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (grad_q, None, None))


def _queries_default(case: Case, capability: int) -> Options:
    return backward_queries.launch_options(*_sizes(case), score_options(case), capability)


def _decode(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    """The kernels of `backends.kernels.decode.decode`; among the options `percent_splits`, in
    percent of the splits that `split_count` says."""
    case, query, pages = inputs.case, inputs.query, inputs.pages
    key, value, table, lens = inputs.key, inputs.value, None, None
    if pages is not None:
        key, value, table, lens = pages.key, pages.value, pages.table, pages.lens
    device = query.device
    rows = case.q_len * (case.heads // case.kv_heads)
    programs = case.batch * case.kv_heads * -(-rows // chosen["block_m"])
    tiles = -(-case.kv_len // chosen["block_n"])
    each = decode.programs_each(capability)
    splits = decode.split_count(programs, tiles, _processors(query), each)
    splits = max(1, splits * chosen["percent_splits"] // 100)
    out = torch.empty_like(query)
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
    parts, lses = out[None], lse[None]
    if splits > 1:
        parts = out.new_empty(splits, *out.shape, dtype=torch.float32)
        lses = lse.new_empty(splits, *lse.shape)
    launches = [
        decode.launch(
            query, key, value, parts, lses, score_options(case), kv_lens=lens, page_table=table,
            bottom_right=True, capability=capability, chosen=chosen,
        )
    ]  # fmt: skip
    if splits > 1:
        launches.append(combine.launch(parts, lses, out, lse))

    def run() -> None:
        for launch in launches:
            launch.run(device)

    return Prepared(tuple(launches), run, (out,), (parts, lses, lse))


def _decode_default(case: Case, capability: int) -> Options:
    rows = case.q_len * (case.heads // case.kv_heads)
    found = decode.launch_options(*_sizes(case), rows, capability)
    return {**found, "percent_splits": 100}


def _around_decode(centre: Options) -> list[Options]:
    """The rows of a tile are given by the queries."""
    tile = {name: number for name, number in centre.items() if name != "percent_splits"}
    found = [{**tile, "percent_splits": n} for n in (centre["percent_splits"], 50, 200, 400)]
    for one in candidates(tile):
        if one["block_m"] == tile["block_m"]:
            found.append({**one, "percent_splits": centre["percent_splits"]})
    return [one for place, one in enumerate(found) if one not in found[:place]]


def _around_keys(centre: Options) -> list[Options]:
    """Beside the usual ones some that spill little at head_dim 256, where dK and dV of a tile do
    not fit into registers, and such with less in flight."""
    m, n, warps, stages = (centre[x] for x in ("block_m", "block_n", "num_warps", "num_stages"))
    found = candidates(centre)
    for more in (
        (m // 2, n, warps, stages), (m, n, warps, stages - 1), (2 * m, n // 2, warps, stages - 1),
        (2 * m, n // 2, warps, stages), (m, 2 * n, 2 * warps, stages - 1),
    ):  # fmt: skip
        block_m, block_n, num_warps, num_stages = more
        if min(block_m, block_n) >= 16 and num_warps <= 16 and num_stages >= 1:
            one = {
                "block_m": block_m, "block_n": block_n, "num_warps": num_warps,
                "num_stages": num_stages,
            }  # fmt: skip
            found.append(one)
    return [one for place, one in enumerate(found) if one not in found[:place]]


def _around_sums(centre: Options) -> list[Options]:
    """Few: on an H100 two loops are as fast at head_dim 64 and 1.3 to 1.7 times as fast above."""
    return candidates(centre)[:3]


def _least_shared(held: int, *, of_queries: bool, early: int = 0) -> Callable[[Case, Options], int]:
    """The least shared memory of a kernel that holds a tile of `held` tensors and streams tiles of
    two others, as many as it has stages, `early` of them less; of_queries: the held tensors are of
    the queries. A tile of fewer than 64 rows may be held in registers instead. Of 608 that were
    compiled none needs less.
    """

    def least(case: Case, chosen: Options) -> int:
        row = case.head_dim * DTYPES[case.dtype].itemsize
        own, other = chosen["block_m"], chosen["block_n"]
        if not of_queries:
            own, other = other, own
        return row * (held * own * (own >= 64) + (2 * chosen["num_stages"] - early) * other)

    return least


_OF_KEYS = _least_shared(2, of_queries=False, early=1)
KERNELS: dict[str, Kernel] = {
    "forward": Kernel(
        "forward", _forward_default, _forward, least_shared=_least_shared(1, of_queries=True)
    ),
    "hopper": Kernel(
        "forward",
        _hopper_default,
        _hopper,
        _around_hopper,
        least_shared=_least_shared_hopper,
        dtypes=("float16", "bfloat16"),
        capabilities=(choice.CAPABILITY,),
        interpreted=False,
    ),
    "keys": Kernel(
        "backward", _keys_default, _keys, _around_keys, least_shared=_OF_KEYS, share=4 / 5
    ),
    "hopper-keys": Kernel(
        "backward",
        _hopper_keys_default,
        _hopper_keys,
        _around_hopper_keys,
        least_shared=_least_shared_hopper_keys,
        share=4 / 5,
        dtypes=("float16", "bfloat16"),
        capabilities=(choice.CAPABILITY,),
        interpreted=False,
    ),
    "hopper-sums": Kernel(
        "backward",
        lambda case, capability: choice.keys_options(
            case.head_dim, case.mask.name == "causal", sums=True
        ),
        _hopper_sums,
        _around_hopper_sums,
        same_bits=False,
        least_shared=_least_shared_hopper_sums,
        dtypes=("float16", "bfloat16"),
        head_dims=choice.WITH_SUMS,
        capabilities=(choice.CAPABILITY,),
        interpreted=False,
    ),
    "hopper-queries": Kernel(
        "backward",
        _hopper_queries_default,
        _hopper_queries,
        _around_hopper_queries,
        least_shared=_least_shared_hopper_queries,
        share=3 / 5,
        dtypes=("float16", "bfloat16"),
        capabilities=(choice.CAPABILITY,),
        interpreted=False,
    ),
    "queries": Kernel(
        "backward",
        _queries_default,
        _queries,
        share=3 / 5,
        least_shared=_least_shared(2, of_queries=True),
    ),
    "sums": Kernel(
        "backward",
        partial(_keys_default, sums=True),
        _sums,
        _around_sums,
        same_bits=False,
        least_shared=_OF_KEYS,
    ),
    "decode": Kernel("decode", _decode_default, _decode, _around_decode),
    "paged": Kernel("decode", _decode_default, _decode, _around_decode, paged=True),
}
settle_hashes()
