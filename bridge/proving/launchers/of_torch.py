"""`torch.nn.attention.flex_attention`, compiled: the Triton code that PyTorch's compiler (inductor)
writes for an H100 is made here without one, and launched as inductor launches it.

FlexAttention's operators, of the forward pass and of the backward pass, are traced on fake tensors
and lowered by inductor's `GraphLowering` to a module of Python each, of which nothing is changed:
it has the kernels' sources, their buffers and their grids. Dynamo, which traces `flex_attention`
for a user, takes no part, and autotuning neither: of several configurations the first is taken (the
templates have one by default). Asked for is `kernel_options={"BACKEND": "TRITON"}`: for less than
128 queries the default is another template, that of decoding.
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
from torch._higher_order_ops.flex_attention import create_fw_bw_graph
from torch._higher_order_ops.flex_attention import flex_attention as _operator
from torch._higher_order_ops.flex_attention import flex_attention_backward as _operator_backward
from torch.nn.attention.flex_attention import _create_empty_block_mask, create_block_mask

_OPTIONS = {
    "BACKEND": "TRITON", "PRESCALE_QK": False, "ROWS_GUARANTEED_SAFE": False,
    "BLOCKS_ARE_CONTIGUOUS": False, "WRITE_DQ": True, "OUTPUT_LOGSUMEXP": True, "OUTPUT_MAX": False,
}  # fmt: skip


# The dtype, sizes and strides of each tensor.
_Described = tuple[tuple[torch.dtype, tuple[int, ...], tuple[int, ...]], ...]
# It takes a block mask, a scale and tensors, and returns an operator's results.
_Graph = Callable[..., Any]


def _same(score: Tensor, b: Tensor, h: Tensor, m: Tensor, n: Tensor) -> Tensor:
    return score


def _causal(b: Tensor, h: Tensor, m: Tensor, n: Tensor) -> Tensor:
    return m >= n


def _all(b: Tensor, h: Tensor, m: Tensor, n: Tensor) -> Tensor:
    return m.new_ones((), dtype=torch.bool)


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    # PyTorch writes no types for it: hence `no-untyped-call`.
    out, lse = _FlexAttention.apply(query, key, value, is_causal, scale)  # type: ignore[no-untyped-call]
    # As `torch.nn.attention.flex_attention` does: the operator's is to base 2.
    return out, lse * math.log(2)


class _FlexAttention(torch.autograd.Function):
    """The two graphs that are compiled where gradients are wanted, each called as PyTorch does."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, is_causal: bool, scale: float
    ) -> tuple[Tensor, Tensor]:
        ctx.blocks = _blocks(query.shape[2], key.shape[2], is_causal)
        ctx.is_causal, ctx.scale = is_causal, scale
        out, lse = _call(_attend, ctx.blocks, is_causal, scale, query, key, value)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.mark_non_differentiable(lse)
        return out, lse

    @staticmethod
    def backward(ctx: Any, grad_out: Tensor, _: Any) -> tuple[Tensor | None, ...]:
        given = (*ctx.saved_tensors, grad_out)
        return (*_call(_differentiate, ctx.blocks, ctx.is_causal, ctx.scale, *given), None, None)


def _call(
    graph: _Graph, blocks: SimpleNamespace, is_causal: bool, scale: float, *tensors: Tensor
) -> tuple[Tensor, ...]:
    """A graph of these tensors, as inductor compiles it."""
    given = [*tensors, *(x.to("cuda") for x in blocks.numbers if x is not None)]
    described = tuple((x.dtype, tuple(x.shape), tuple(x.stride())) for x in given)
    missing = tuple(x is None for x in blocks.numbers)
    call = _module(_source(graph, described, missing, blocks.sizes, is_causal, scale))["call"]
    found: tuple[Tensor, ...] = call(given)
    return found


def _blocks(q_len: int, kv_len: int, is_causal: bool) -> SimpleNamespace:
    """The block mask: its tensors on the CPU, and the lengths of its blocks."""
    if is_causal:
        mask = create_block_mask(_causal, None, None, q_len, kv_len, device="cpu")
    else:
        mask = _create_empty_block_mask(torch.empty(1, 1, q_len, 1), torch.empty(1, 1, kv_len, 1))
    numbers = (
        mask.kv_num_blocks, mask.kv_indices, mask.full_kv_num_blocks, mask.full_kv_indices,
        mask.q_num_blocks, mask.q_indices, mask.full_q_num_blocks, mask.full_q_indices,
    )  # fmt: skip
    return SimpleNamespace(numbers=numbers, sizes=tuple(mask.BLOCK_SIZE))


def _attend(mask: tuple[Any, ...], scale: float, q: Tensor, k: Tensor, v: Tensor) -> Any:
    # The third, the scores' maxima, is for those who ask.
    return _operator(q, k, v, _same, mask, scale, dict(_OPTIONS), (), ())[:2]


def _differentiate(
    mask: tuple[Any, ...], scale: float, q: Tensor, k: Tensor, v: Tensor, out: Tensor,
    lse: Tensor, grad_out: Tensor,
) -> Any:  # fmt: skip
    # The score's own gradient is traced where autograd needs no build of PyTorch with CUDA.
    score = torch.zeros((), dtype=q.dtype, device="cpu", requires_grad=True)
    place = torch.zeros((), dtype=torch.int, device="cpu")
    graph, joint = create_fw_bw_graph(_same, (score, place, place, place, place), ())
    # Nobody differentiates the log-sum-exp: its gradient is None.
    options: Any = (graph, joint, mask, scale, dict(_OPTIONS), (), ())
    return _operator_backward(q, k, v, out, lse, grad_out, None, *options)[:3]


@functools.cache
def _source(
    graph: _Graph, described: _Described, missing: tuple[bool, ...], sizes: tuple[int, ...],
    is_causal: bool, scale: float,
) -> str:  # fmt: skip
    """The source that inductor writes for tensors with these descriptions, those of the block mask
    last; missing: which of the mask's tensors are None."""
    found: list[str] = []
    failed: list[Exception] = []

    def call_graph(*given: Tensor) -> Any:
        count = len(given) - missing.count(False)
        rest = iter(given[count:])
        numbers = [None if absent else next(rest) for absent in missing]
        _, _, q_len, _ = given[0].shape
        _, _, kv_len, _ = given[1].shape
        mask = (q_len, kv_len, *numbers, *[None] * 4, *sizes, _causal if is_causal else _all)
        return graph(mask, scale, *given[:count])

    def lower() -> None:
        try:
            found.append(_lower(call_graph, described))
        except Exception as error:
            failed.append(error)

    # In a thread of its own, where the launcher's modes are not.
    thread = threading.Thread(target=lower)
    thread.start()
    thread.join()
    if failed:
        raise RuntimeError(f"inductor: {failed[0]}") from failed[0]
    return found[0]


def _lower(graph: Callable[..., Any], described: _Described) -> str:
    from torch._inductor.debug import DebugContext
    from torch._inductor.decomposition import select_decomp_table
    from torch._inductor.graph import GraphLowering
    from torch._inductor.virtualized import V
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.experimental.proxy_tensor import make_fx

    fake = FakeTensorMode()
    with contextlib.ExitStack() as stack:
        # The version that a build of PyTorch with CUDA has; copies of fake tensors need one.
        stack.enter_context(mock.patch.object(torch.version, "cuda", "12.8"))
        module = sys.modules["torch._higher_order_ops.flex_attention"]
        stack.enter_context(mock.patch.object(module, "_permute_strides", _permute))
        stack.enter_context(fake)
        tensors = [
            torch.empty_strided(shape, stride, dtype=dtype, device="cuda")
            for dtype, shape, stride in described
        ]
        traced = make_fx(graph, select_decomp_table())(*tensors)
        traced.graph.eliminate_dead_code()
        traced.recompile()
        lowering = GraphLowering(traced, example_inputs=tensors)
        stack.enter_context(V.set_graph_handler(lowering))
        stack.enter_context(V.set_fake_mode(fake))
        stack.enter_context(V.set_debug_handler(DebugContext()))
        lowering.run(*tensors)
        code: str = lowering.codegen()[0].value
        return code


def _permute(out: Tensor, strides: tuple[int, ...]) -> Tensor:
    """PyTorch's `_permute_strides`, without the copy."""
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
        from torch._inductor.runtime import triton_helpers, triton_heuristics

        file = f"written_by_inductor_{abs(hash(source))}.py"
        linecache.cache[file] = (len(source), None, source.splitlines(True), file)

        def take(_: Any, configs: Any, *, inductor_meta: Any, **__: Any) -> Callable[[Any], Any]:
            self.config, self.meta = configs[0], inductor_meta
            return lambda function: function

        names: dict[str, Any] = {"__name__": name, "__file__": file}
        with (
            mock.patch.object(triton_heuristics, "cached_autotune", take),
            mock.patch.object(triton_helpers, "set_driver_to_gpu"),
        ):
            exec(compile(source, file, "exec"), names)
        self.function = names[name]
        assert isinstance(self.function, triton.JITFunction)

    def run(self, *given: Any, stream: Any) -> None:
        from torch._inductor.runtime.triton_heuristics import GridExpr

        chosen = self.config.all_kwargs()
        # The arguments that the grid is made of are behind the kernel's own.
        own = [name for name in self.function.arg_names if name not in self.config.kwargs]
        names = [*own, *self.meta.get("extra_launcher_args", ())]
        named = dict(zip(names, given, strict=True))
        grid = GridExpr.from_meta(self.meta, self.config).eval_slow({**named, **chosen})
        self.function[grid](**{name: named[name] for name in own}, **chosen)
