"""`torch.nn.attention.flex_attention`, compiled: the Triton code that PyTorch's compiler (inductor)
writes for an H100 is made here without one, and launched as inductor launches it.

The operator of FlexAttention is traced on fake tensors and lowered by inductor's `GraphLowering` to
a module of Python, of which nothing is changed: it has the kernel's source, its buffers and its
grid. Dynamo, which traces `flex_attention` for a user, takes no part, and autotuning neither, of
which the default has one configuration. Asked for is `kernel_options={"BACKEND": "TRITON"}`: for
less than 128 queries the default is another template, that of decoding.
"""

from __future__ import annotations

import contextlib
import functools
import linecache
import math
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor
from torch._higher_order_ops.flex_attention import flex_attention as _operator
from torch.nn.attention.flex_attention import _create_empty_block_mask, create_block_mask

_OPTIONS = {
    "BACKEND": "TRITON", "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False,
    "BLOCKS_ARE_CONTIGUOUS": False, "WRITE_DQ": True, "OUTPUT_LOGSUMEXP": True, "OUTPUT_MAX": False,
}  # fmt: skip


# Of each tensor its dtype, sizes and strides.
_Described = tuple[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]], ...]


def _same(score: Tensor, b: Tensor, h: Tensor, m: Tensor, n: Tensor) -> Tensor:
    return score


def _causal(b: Tensor, h: Tensor, m: Tensor, n: Tensor) -> Tensor:
    return m >= n


def _all(b: Tensor, h: Tensor, m: Tensor, n: Tensor) -> Tensor:
    return m.new_ones((), dtype=torch.bool)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    blocks = _blocks(query.shape[2], key.shape[2], is_causal)
    numbers = [None if x is None else x.to("cuda") for x in blocks.numbers]
    given = [query, key, value, *(x for x in numbers if x is not None)]
    described = tuple((x.dtype, tuple(x.shape), tuple(x.stride())) for x in given)
    source = _source(described, blocks.sizes, is_causal, scale)
    out, lse = _module(source)["call"](list(given))
    # As `torch.nn.attention.flex_attention` does: the operator's is to base 2.
    return out, lse * math.log(2)


def _blocks(q_len: int, kv_len: int, is_causal: bool) -> SimpleNamespace:
    """The block mask: its tensors on the CPU, and the lengths of its blocks."""
    if is_causal:
        mask = create_block_mask(_causal, None, None, q_len, kv_len, device="cpu")
    else:
        mask = _create_empty_block_mask(torch.empty(1, 1, q_len, 1), torch.empty(1, 1, kv_len, 1))
    numbers = (
        mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices
    )  # fmt: skip
    return SimpleNamespace(numbers=numbers, sizes=tuple(mask.BLOCK_SIZE))


@functools.cache
def _source(described: _Described, sizes: tuple[int, ...], is_causal: bool, scale: float) -> str:
    """What inductor writes for tensors that are described so."""
    found: list[str] = []
    failed: list[Exception] = []

    def lower() -> None:
        try:
            found.append(_lower(described, sizes, is_causal, scale))
        except Exception as error:
            failed.append(error)

    # In a thread of its own, where the launcher's modes are not.
    thread = threading.Thread(target=lower)
    thread.start()
    thread.join()
    if failed:
        raise RuntimeError(f"inductor: {failed[0]}") from failed[0]
    return found[0]


def _lower(described: _Described, sizes: tuple[int, ...], is_causal: bool, scale: float) -> str:
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    def attend(q: Tensor, k: Tensor, v: Tensor, *numbers: Tensor) -> Any:
        given = [*numbers, None, None, None, None][:4]
        mask = (
            q.shape[2], k.shape[2], *given, *[None] * 8, *sizes, _causal if is_causal else _all
        )  # fmt: skip
        # The third, the scores' maxima, is for those who ask.
        return _operator(q, k, v, _same, mask, scale, dict(_OPTIONS), (), ())[:2]

    fake = FakeTensorMode()
    with contextlib.ExitStack() as stack:
        # What a build of PyTorch with CUDA says; copies of fake tensors need such a build.
        stack.enter_context(mock.patch.object(torch.version, "cuda", "12.8"))
        module = sys.modules["torch._higher_order_ops.flex_attention"]
        stack.enter_context(mock.patch.object(module, "_permute_strides", _permute))
        stack.enter_context(fake)
        tensors = [
            torch.empty_strided(shape, stride, dtype=dtype, device="cuda")
            for dtype, shape, stride in described
        ]
        traced = make_fx(attend, select_decomp_table())(*tensors)
        traced.graph.eliminate_dead_code()
        traced.recompile()
        graph = GraphLowering(traced, example_inputs=tensors)
        stack.enter_context(V.set_graph_handler(graph))
        stack.enter_context(V.set_fake_mode(fake))
        stack.enter_context(V.set_debug_handler(DebugContext()))
        graph.run(*tensors)
        code: str = graph.codegen()[0].value
        return code


def _permute(out: Tensor, strides: tuple[int, ...]) -> Tensor:
    """As `_permute_strides`, without the copy."""
    from torch._higher_order_ops.flex_attention import _construct_strides
    from torch._inductor.ir import get_fill_order

    order = get_fill_order(strides)
    return torch.empty_strided(
        out.shape, _construct_strides(out.shape, order), dtype=out.dtype, device=out.device
    )


@functools.cache
def _module(source: str) -> dict[str, Any]:
    """The module that inductor wrote, run up to its functions."""
    from torch._inductor.async_compile import AsyncCompile

    def empty(sizes: Any, strides: Any, dtype: torch.dtype) -> Tensor:
        return torch.empty_strided(sizes, strides, dtype=dtype, device="cuda")

    def take_kernel(self: Any, *given: Any, **_: Any) -> _Kernel:
        return _Kernel(*given)

    names: dict[str, Any] = {"__name__": "written_by_inductor"}
    guards = torch._C._dynamo.guards
    with (
        mock.patch.object(AsyncCompile, "triton", take_kernel),
        mock.patch.object(AsyncCompile, "wait", return_value=None),
        mock.patch.object(guards, "_empty_strided_cuda", empty),
        mock.patch.object(torch._C, "_cuda_getCurrentRawStream", create=True, return_value=0),
    ):
        exec(compile(source, "written_by_inductor", "exec"), names)
    names["torch"] = SimpleNamespace(
        **{**vars(torch), "cuda": SimpleNamespace(
            _DeviceGuard=lambda i: contextlib.nullcontext(), set_device=lambda i: None
        )}
    )  # fmt: skip
    return names


class _Kernel:
    """A kernel of the module: its source under `triton.jit`, without inductor's launcher."""

    def __init__(self, name: str, source: str, *_: Any) -> None:
        from torch._inductor.runtime import triton_heuristics

        file = f"written_by_inductor_{abs(hash(source))}.py"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)
        self.options: dict[str, int] = {}

        def template(num_stages: int, num_warps: int, **_: Any) -> Callable[[Any], Any]:
            self.options = {"num_stages": num_stages, "num_warps": num_warps}
            return lambda function: function

        names: dict[str, Any] = {"__name__": name}
        with mock.patch.object(triton_heuristics, "template", template):
            exec(compile(source, file, "exec"), names)
        self.function = names[name]
        assert isinstance(self.function, triton.JITFunction)

    def run(self, *given: Any, stream: Any) -> None:
        # The grid is behind the kernel's own arguments.
        count = len(self.function.arg_names)
        self.function[given[count:]](*given[:count], **self.options)
