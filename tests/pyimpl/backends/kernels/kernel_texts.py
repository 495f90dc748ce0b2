"""The inputs of the kernels' texts, printed as JSON by a process in which Triton compiles.

`keys`: for each kernel, of launches of one kind and different shapes, the types, constants and
attributes from which Triton's own binder makes the text. `agree`: whether `Launch.specialisation`
says the same types and constants. `texts`: of the forward kernel the texts themselves, TTIR without
locations, by kind and shape. `tables`: by the size of pages, the types that a kernel loads of their
table in its loops. `tuples`: by its numbers, the types that Triton gives the members of a tuple
that it is told not to specialise.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import torch
import triton
from torch import Tensor
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import make_backend
from triton.runtime.jit import create_function_from_signature

from pyimpl.backends.kernels import (
    backward,
    backward_keys,
    backward_queries,
    combine,
    decode,
    forward,
    varlen,
)
from pyimpl.backends.kernels.offline.compile import specialise
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.internal.scores import ScoreOptions

TARGET = GPUTarget("cuda", 90, 32)
# Heads of queries, of keys, queries, keys.
SHAPES = (
    (8, 2, 1000, 1024),
    (8, 8, 1000, 1024),
    (1, 1, 1000, 1024),
    (8, 2, 1, 1024),
    (4, 1, 33, 1),
)


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.empty(shape, dtype=dtype, device="meta")


def options_of(kind: str, q_len: int, kv_len: int) -> ScoreOptions:
    """Causal with the last query at the last key, so that the bound hides some key of each row."""
    if kind == "causal":
        return ScoreOptions(0.125, right=0, shift=min(0, kv_len - 1 - q_len))
    return ScoreOptions(0.125)


def forward_launch(kind: str, shape: tuple[int, int, int, int], head_dim: int = 64) -> Launch:
    heads, kv_heads, q_len, kv_len = shape
    query = empty(2, heads, q_len, head_dim)
    key = empty(2, kv_heads, kv_len, head_dim)
    options = options_of(kind, q_len, kv_len)
    lse = empty(2, heads, q_len)
    return forward.launch(query, key, key, query, lse, options, capability=90)


def launches(shape: tuple[int, int, int, int]) -> dict[str, Launch]:
    """One launch of each kernel; the backward pass for bias is not among them, which chooses its
    text by the shape of the bias."""
    heads, kv_heads, q_len, kv_len = shape
    query = empty(2, heads, q_len, 64)
    key = empty(2, kv_heads, kv_len, 64)
    rows = empty(2, heads, q_len)
    options = options_of("causal", q_len, kv_len)
    given = Given(query, key, key, query, rows, rows, options)
    parts = empty(3, 2, heads, q_len, 64)
    ends = empty(2, dtype=torch.int32)
    packed_query, packed_key = empty(q_len, heads, 64), empty(kv_len, kv_heads, 64)
    return {
        "forward": forward_launch("causal", shape),
        "packed": varlen.launch(
            packed_query, packed_key, packed_key, ends, ends, packed_query, empty(heads, q_len),
            options, max_q_len=q_len, bottom_right=True, capability=90,
        ),
        "decode": decode.launch(
            query, key, key, parts, parts[..., 0].contiguous(), options,
            kv_lens=ends, capability=90,
        ),
        "combine": combine.launch(parts, parts[..., 0].contiguous(), query, rows),
        "rows": backward.row_numbers_launch(query, query, rows, None, rows, rows),
        "keys": backward_keys.launch(given, key, key, capability=90),
        "queries": backward_queries.launch(given, query, None, capability=90),
    }  # fmt: skip


def paged_launch(page_size: int) -> Launch:
    query, lens = empty(2, 8, 1, 64), empty(2, dtype=torch.int32)
    pool = empty(40, 2, page_size, 64)
    parts = empty(3, 2, 8, 1, 64)
    return decode.launch(
        query, pool, pool, parts, parts[..., 0].contiguous(), ScoreOptions(0.125), kv_lens=lens,
        page_table=empty(2, 20, dtype=torch.int32), capability=90,
        chosen={"block_m": 16, "block_n": 32, "num_warps": 4, "num_stages": 2},
    )  # fmt: skip


def loads_of_table(text: str) -> list[str]:
    """The types of the addresses of integers that are loaded inside of loops."""
    inside = text[text.index("scf.for") :]
    return re.findall(r"tt\.load [^:]*: (\S*!tt\.ptr<i32>>?)", inside)


def bind(launch: Launch) -> tuple[Any, Any, Any]:
    """(types, constants, attributes) by Triton's binder, the one that a launch calls."""
    kernel, backend = launch.kernel, make_backend(TARGET)
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    stages = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    arguments, found, given = binder(**launch.arguments, **launch.constants, **stages)
    _, types, constants, attributes = kernel._pack_args(backend, given, arguments, found, given)
    return types, {kernel.arg_names[k[0]]: x for k, x in constants.items()}, attributes


def text_of(launch: Launch) -> str:
    source = specialise(launch)
    backend = make_backend(TARGET)
    options = backend.parse_options(
        {"num_warps": launch.num_warps, "num_stages": launch.num_stages, **source.parse_options()}
    )
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    codegen, modules = backend.get_codegen_implementation(options), backend.get_module_map()
    module = source.make_ir(TARGET, options, codegen, modules, context)
    return str(backend.make_ttir(module, {}, options, 90).str_nodebug())


@triton.jit(do_not_specialize=["strides"])
def in_a_tuple(ptr: Any, strides: Any) -> None:
    pass


def types_in_a_tuple(*strides: int) -> Any:
    launch = Launch(in_a_tuple, 1, {"ptr": empty(1), "strides": strides}, {}, 4, 1)
    return bind(launch)[0]["strides"]


def without_hints(text: str) -> str:
    return re.sub(r" \{tt\.(divisibility|constancy) = [^}]*\}", "", text)


def main() -> None:
    keys: dict[str, list[str]] = {}
    agree = {}
    for shape in SHAPES:
        for name, launch in launches(shape).items():
            # Blocks of decoding follow the number of rows: sizes are no part of the comparison.
            sizes = ("BLOCK_M", "BLOCK_N")
            types, constants, attributes = bind(launch)
            agree[f"{name} {shape}"] = launch.specialisation() == (types, constants)
            constants = {n: str(x) for n, x in constants.items() if n not in sizes}
            keys.setdefault(name, []).append(json.dumps([types, constants, str(attributes)]))
    texts = {
        f"{kind} {shape}": text_of(forward_launch(kind, shape))
        for kind in ("full", "causal")
        for shape in SHAPES
    }
    # 16 divides neither head size nor strides: the same tiles, and none are taken without masks of
    # dimensions.
    hints = [
        without_hints(text_of(forward_launch("full", SHAPES[0], head_dim))) for head_dim in (80, 81)
    ]
    found: dict[str, Any] = {"keys": keys, "agree": agree, "texts": texts, "hints": hints}
    found["tables"] = {n: loads_of_table(text_of(paged_launch(n))) for n in (16, 24, 32, 96)}
    tuples = {str(strides): types_in_a_tuple(*strides) for strides in ((3, 5), (1, 5))}
    json.dump({**found, "tuples": tuples}, sys.stdout)


if __name__ == "__main__":
    main()
