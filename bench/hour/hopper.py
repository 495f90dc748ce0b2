"""The kernels in Gluon, for Hopper: entries of `bench.hour.kernels.KERNELS`."""

from __future__ import annotations

import itertools
from functools import partial

import torch

from bench.cases import DTYPES, Case, Inputs
from bench.hour.prepared import (
    Kernel,
    Options,
    Prepared,
    count_processors,
    inputs_of,
    score_options,
    with_sums,
)
from pyimpl.backends.kernels.hopper import choice


def _forward(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    from pyimpl.backends.kernels.hopper import forward as hopper

    query = inputs.query
    out = torch.empty_like(query)
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
    launch = hopper.launch(
        query, inputs.key, inputs.value, out, lse, score_options(inputs.case),
        processors=count_processors(query), chosen=chosen,
    )  # fmt: skip
    return Prepared((launch,), partial(launch.run, query.device), (out,), (lse,))


def _forward_default(case: Case, capability: int) -> Options:
    return choice.launch_options(case.head_dim, case.mask.name != "full", case.q_len)


def _around_forward(centre: Options) -> list[Options]:
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


def _least_shared_forward(case: Case, chosen: Options) -> int:
    """The queries of its items, tiles of keys and values, and the output if it has buffers."""
    tiles = chosen["items"] + (chosen["out"] == 2)
    rows = tiles * choice.ROWS + 2 * chosen["stages"] * chosen["block_n"]
    return rows * case.head_dim * DTYPES[case.dtype].itemsize


def _keys(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    from pyimpl.backends.kernels.hopper import backward as hopper

    given = inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    many = count_processors(given.query)
    launch = hopper.launch(given, grad_k, grad_v, None, processors=many, chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (None, grad_k, grad_v))


def _keys_default(case: Case, capability: int) -> Options:
    return choice.keys_options(case.head_dim, case.mask.name == "causal")


def _around_keys(centre: Options) -> list[Options]:
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


def _around_sums(centre: Options) -> list[Options]:
    """No scores come ahead."""
    return [one for one in _around_keys(centre) if not one["ahead"]]


def _least_shared_keys(case: Case, chosen: Options) -> int:
    """The keys and values of its tiles, and the tiles of queries and of the output's gradient."""
    rows = 2 * chosen["items"] * chosen["block_n"] + 2 * chosen["stages"] * chosen["block_m"]
    return rows * case.head_dim * DTYPES[case.dtype].itemsize


def _sums(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    """All three in one loop of five products."""
    from pyimpl.backends.kernels.hopper import backward as hopper

    given = inputs_of(inputs)
    grad_k, grad_v = torch.empty_like(given.key), torch.empty_like(given.value)
    sums = torch.empty_like(given.query, dtype=torch.float32)
    many = count_processors(given.query)
    launch = hopper.launch(given, grad_k, grad_v, sums, processors=many, chosen=chosen)
    return with_sums(given, launch, sums, grad_k, grad_v)


def _least_shared_sums(case: Case, chosen: Options) -> int:
    """The same, the gradients of scores that the groups exchange, and the summands of dQ."""
    exchanged = 4 * choice.BLOCK_M * chosen["block_m"] * DTYPES[case.dtype].itemsize
    added = 2 * chosen["block_m"] * case.head_dim * 4
    return _least_shared_keys(case, chosen) + exchanged + added


def _queries(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
    from pyimpl.backends.kernels.hopper import queries as hopper

    given = inputs_of(inputs)
    grad_q = torch.empty_like(given.query)
    launch = hopper.launch(given, grad_q, processors=count_processors(given.query), chosen=chosen)
    return Prepared((launch,), partial(launch.run, given.query.device), (grad_q, None, None))


def _queries_default(case: Case, capability: int) -> Options:
    return choice.queries_options(case.head_dim, case.mask.name != "full", case.q_len)


def _around_queries(centre: Options) -> list[Options]:
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


def _least_shared_queries(case: Case, chosen: Options) -> int:
    """The queries of its items and the output's gradient, tiles of keys and of values."""
    rows = 2 * chosen["items"] * choice.ROWS
    rows += (chosen["keys"] + chosen["values"]) * chosen["block_n"]
    return rows * case.head_dim * DTYPES[case.dtype].itemsize


# Written in Gluon, of which Triton's interpreter runs nothing.
_gluon = partial(
    Kernel,
    dtypes=("float16", "bfloat16"),
    capabilities=(choice.CAPABILITY,),
    interpreted=False,
)
FORWARD = _gluon(
    "forward",
    _forward_default,
    _forward,
    _around_forward,
    least_shared=_least_shared_forward,
)
KEYS = _gluon(
    "backward",
    _keys_default,
    _keys,
    _around_keys,
    least_shared=_least_shared_keys,
    share=4 / 5,
)
SUMS = _gluon(
    "backward",
    lambda case, capability: choice.keys_options(
        case.head_dim, case.mask.name == "causal", sums=True
    ),
    _sums,
    _around_sums,
    same_bits=False,
    least_shared=_least_shared_sums,
    head_dims=choice.WITH_SUMS,
)
QUERIES = _gluon(
    "backward",
    _queries_default,
    _queries,
    _around_queries,
    least_shared=_least_shared_queries,
    share=3 / 5,
)
