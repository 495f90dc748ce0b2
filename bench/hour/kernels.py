"""The kernels whose launch options are measured: `KERNELS`, by name.

An entry turns a case's inputs into launches with given options. Another way to compute the same, in
another language of Triton's too, is another entry: the other steps (compiling without a device,
checking, timing, races) need nothing but `Prepared`. Triton's are here, Gluon's in `hopper.py`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial

import torch

from bench.cases import DTYPES, Case, Inputs
from bench.hour import hopper
from bench.hour.prepared import (
    Kernel,
    Options,
    Prepared,
    count_processors,
    inputs_of,
    score_options,
    with_sums,
)
from pyimpl.backends.kernels import backward_keys, backward_queries, combine, decode, forward
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.parts.tuning import candidates


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


def _sizes(case: Case) -> tuple[torch.dtype, int, int]:
    return DTYPES[case.dtype], case.head_dim, case.head_dim


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


def _keys(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    given = inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    launch = backward_keys.launch(given, grad_k, grad_v, capability=capability, chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (None, grad_k, grad_v))


def _sums(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    """The kernels of `pyimpl.backends.kernels.backward.backward` with atomics."""
    given = inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    sums = torch.empty_like(given.query, dtype=torch.float32)
    launch = backward_keys.launch(given, grad_k, grad_v, sums, capability=capability, chosen=chosen)
    return with_sums(given, launch, sums, grad_k, grad_v)


def _keys_default(case: Case, capability: int, sums: bool = False) -> Options:
    return backward_keys.launch_options(*_sizes(case), score_options(case), capability, sums)


def _queries(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    given = inputs_of(inputs)
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
    splits = decode.split_count(programs, tiles, count_processors(query), each)
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
    "hopper": hopper.FORWARD,
    "keys": Kernel(
        "backward", _keys_default, _keys, _around_keys, least_shared=_OF_KEYS, share=4 / 5
    ),
    "hopper-keys": hopper.KEYS,
    "hopper-sums": hopper.SUMS,
    "hopper-queries": hopper.QUERIES,
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
