"""Helpers of the tests of `bridge.ttir`: kernels in a few lines of TTIR, and mutants of the forward
kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from bridge.conformance.mutants.attention import KERNEL_MUTANTS, OPTION_MUTANTS
from bridge.conformance.mutants.planted_package import copy_package
from bridge.conformance.mutants.planting import Mutant
from bridge.spec.masks import Alignment
from bridge.ttir import launches, texts
from bridge.ttir.compare import Level, Shape, forward
from bridge.ttir.faults import CannotTell, Violation
from bridge.ttir.machine import Machine
from bridge.ttir.memory import Memory
from bridge.ttir.parse import parse
from pyimpl.backends.kernels.parts.launch import Launch

_LOOP = "backends/kernels/parts/loop.py"
# Mutants of the forward kernel that are no part of the vectors' own.
_MORE = (
    Mutant(
        "ragged-tile-taken-as-whole",
        "a ragged last tile is taken without mask code",
        "backends/kernels/parts/bounds.py",
        "whole_stop = tl.minimum(whole_stop, length // block)",
        "whole_stop = whole_stop",
    ),
    Mutant(
        "masked-row-undefined",
        "of a row with every key masked −∞ is taken from −∞",
        _LOOP,
        'm_finite = tl.where(m_new == float("-inf"), 0.0, m_new)',
        "m_finite = m_new",
    ),
    Mutant(
        "group-by-remainder",
        "query head h uses head h % group of the keys",
        "backends/kernels/forward.py",
        "return head // group",
        "return head % group",
    ),
    Mutant(
        "maximum-not-scaled",
        "the maximum that weights are relative to is that of the products",
        _LOOP,
        "largest = largest * factor",
        "largest = largest",
    ),
)
# Mutants that no exact run is asked to find, most of them of some texts alone: of packed sequences,
# of padded heads.
_PARTIAL = (
    Mutant(
        "next-sequence",
        "a packed sequence begins with the one after it",
        "backends/kernels/parts/sequences.py",
        "first = tl.load(cu_ptr + sequence * stride)",
        "first = tl.load(cu_ptr + (sequence + 1) * stride)",
    ),
    Mutant(
        "returns-too-late",
        "a tile that begins right behind the queries of its sequence is no reason to return",
        "backends/kernels/forward.py",
        "if row_first >= q_len:",
        "if row_first > q_len:",
    ),
    Mutant(
        "packed-alignment-one-off",
        "packed sequences aligned bottom-right see one key more",
        "backends/kernels/forward.py",
        "shift = shift + kv_len - q_len",
        "shift = shift + kv_len - q_len + 1",
    ),
    Mutant(
        "padding-of-heads-loaded",
        "what lies behind a head that does not fill its tile is loaded as part of it",
        _LOOP,
        "or PAGE_SIZE is not None or not EVEN_D:",
        "or PAGE_SIZE is not None:",
    ),
    Mutant(
        "running-maximum-forgotten",
        "the reference point is the largest score of the tile, which may be below the one before",
        _LOOP,
        "m_new = tl.maximum(m, largest)",
        "m_new = largest",
    ),
    Mutant(
        "values-by-the-keys-stride",
        "the values of a head lie as far apart as its keys",
        "backends/kernels/forward.py",
        "value_ptr, batch, stride_vb, kv_head, stride_vh,",
        "value_ptr, batch, stride_vb, kv_head, stride_kh,",
    ),
    Mutant(
        "query-tiles-one-late",
        "the first tile of queries is left out, and one past the last taken",
        "backends/kernels/forward.py",
        "tile = query_tiles - 1 - tl.program_id(0) % query_tiles",
        "tile = query_tiles - tl.program_id(0) % query_tiles",
    ),
    Mutant(
        "stored-by-the-size-of-keys",
        "of an output row as many elements are stored as a key has",
        "backends/kernels/forward.py",
        "stored = inside[:, None] & within(value_dims, value_dim, ALIGNED)[None, :]",
        "stored = inside[:, None] & within(value_dims, head_dim, ALIGNED)[None, :]",
    ),
    # It stores the same as long as no integer passes its type.
    Mutant(
        "rows-of-32-bits",
        "the offset of a row is a product of 32 bits",
        "backends/kernels/forward.py",
        "queries64 = queries.to(tl.int64)",
        "queries64 = queries",
    ),
)
MUTANTS = {f.name: f for f in (*KERNEL_MUTANTS, *OPTION_MUTANTS, *_MORE, *_PARTIAL)}
# Those that exact runs are asked to find.
COMPARED = (
    *("o-not-rescaled", "l-not-rescaled", "causal-excludes-diagonal", "ragged-keys-not-masked"),
    *("masked-row-nan", "last-key-skipped", *(mutant.name for mutant in _MORE)),
)

LEVELS: tuple[Level, ...] = ("rational", "formal", "fields")
SHAPES = {
    "full": Shape(q_len=2, kv_len=37),
    "causal": Shape(q_len=18, kv_len=18, window=(None, 0)),
    "masked rows": Shape(q_len=5, kv_len=3, window=(None, 0), alignment=Alignment.BOTTOM_RIGHT),
    "groups": Shape(heads=4, kv_heads=2, q_len=3, kv_len=17, window=(None, 14)),
}


@contextmanager
def plant(edit: Mutant | None) -> Iterator[None]:
    """For so long, `bridge.ttir` launches the forward kernel of a copy of `pyimpl` with this edit;
    None: none."""
    if edit is None:
        yield
        return
    with ExitStack() as stack:
        # By way of it all of the forward kernel's launches come.
        varlen = stack.enter_context(
            copy_package(edit.file, edit.apply, "backends/kernels/varlen.py")
        )
        for module, name in itertools.product((launches, texts), ("forward", "varlen")):
            if hasattr(module, name):
                copy = varlen if name == "varlen" else varlen.forward
                stack.enter_context(mock.patch.object(module, name, copy))
        for kept in (texts.texts, texts.translation):
            kept.cache_clear()
            stack.callback(kept.cache_clear)
        yield


def comparison_of(level: Level, shape: str) -> str:
    """The result of the forward kernel's comparison."""
    try:
        return "equal" if forward(SHAPES[shape], level).equal else "wrong"
    except Violation as violation:
        return violation.kind
    except CannotTell:
        return "cannot tell"


def kernel_name(launch: Launch) -> str | None:
    """As `pyimpl.backends.kernels.offline.cases` has it; None of a kernel that it does not have."""
    names = {
        "_forward_kernel": "forward", "_decode_kernel": "decode", "_row_numbers_kernel": "rows",
        "keys_kernel": "keys", "queries_kernel": "queries", "bias_kernel": "bias",
        "_combine_kernel": "combine",
    }  # fmt: skip
    name = names.get(launch.kernel.fn.__name__)
    given = {argument for argument, x in launch.arguments.items() if x is not None}
    if name == "forward" and "cu_q_ptr" in given:
        return "varlen"
    return "paged" if name == "decode" and "table_ptr" in given else name


def kernel(arguments: str, body: str) -> str:
    """TTIR of a kernel with these arguments and operations."""
    return f"module {{\n  tt.func public @k({arguments}) {{\n{body}\n    tt.return\n  }}\n}}\n"


def run(
    text: str, memory: Memory, *arguments: Any, programs: int = 1, masked_after: bool = False
) -> Machine:
    """The kernel in a text of TTIR, run."""
    machine = Machine(parse(text).kernel, memory, arguments, masked_after=masked_after)
    machine.run((programs,))
    return machine
