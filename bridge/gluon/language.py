"""The names of Gluon that a simulated kernel uses, as modules of the same names would have them.

A name that is missing here is not simulated: a kernel that uses it ends with an AttributeError that
says so. Layouts, fences between proxies and inline assembly are taken without a look: assembly is
taken to give back its first argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from bridge.gluon import barriers, products, rounded, tensors
from bridge.gluon.barriers import Barriers
from bridge.gluon.faults import Fault, line
from bridge.gluon.program import enter, here, partition
from bridge.gluon.rounded import INT32, INT64, DType, round_to
from bridge.gluon.schedule import Partition
from bridge.gluon.shared import Shared
from bridge.gluon.tiles import Int, Tile, Value, choose, extreme, full, tile_of


class Missing(SimpleNamespace):
    """Names of a module, in a module `name` of them."""

    def __getattr__(self, attribute: str) -> Any:
        raise AttributeError(f"{self.__dict__['name']}.{attribute} is not simulated")


class Layout:
    """Any layout."""

    def __init__(self, *given: Any, **named: Any) -> None:
        pass


class BarrierLayout(Layout):
    """The layout of memory for barriers."""


def _range(*bounds: Any, **options: Any) -> Iterator[Int]:
    """`range` in a kernel: its numbers are known when it runs."""
    return map(Int, range(*map(int, bounds)))


def _jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """The function itself."""
    return function if function is not None else _jit


def _cdiv(a: Any, b: Any) -> Any:
    if type(a) is int and type(b) is int:
        return -(-a // b)
    return (a + (b - 1)) // b


def _allocate(
    element_ty: DType, shape: Sequence[int], layout: Any = None, value: Any = None
) -> Any:
    if isinstance(layout, BarrierLayout):
        return Barriers.allocate([int(size) for size in shape])
    return Shared.allocate(element_ty, shape, value)


def _arange(start: int, end: int, layout: Any = None) -> Tile:
    return Tile(INT32, np.arange(int(start), int(end)))


def _elementwise(name: str) -> Callable[[Value], Tile]:
    def compute(x: Value) -> Tile:
        tile, domain = tile_of(x), here().domain
        return Tile(tile.dtype, round_to(domain, getattr(domain, name)(tile.numbers), tile.dtype))

    return compute


def _abs(x: Value) -> Value:
    if isinstance(x, int):
        return Int(abs(x))
    tile = tile_of(x)
    if not tile.dtype.is_floating():
        return Tile(tile.dtype, np.abs(tile.numbers))
    return Tile(tile.dtype, here().domain.absolute(tile.numbers))


def _reduction(of_floats: str, of_integers: Callable[..., Any]) -> Callable[..., Tile]:
    def reduce(x: Tile, axis: int | None = None, keep_dims: bool = False) -> Tile:
        domain = here().domain
        if axis is None:
            if len(x.shape) != 1:
                raise NotImplementedError("reductions are simulated along one axis")
            axis = 0
        if not x.dtype.is_floating():
            return Tile(x.dtype, np.asarray(of_integers(x.numbers, axis=axis, keepdims=keep_dims)))
        found = getattr(domain, of_floats)(x.numbers, int(axis))
        if keep_dims:
            found = domain.each(lambda y: np.expand_dims(y, int(axis)), found)
        return Tile(x.dtype, round_to(domain, found, x.dtype))

    return reduce


def _smallest(x: Tile, axis: int | None = None) -> Tile:
    return -_LARGEST(-x, axis)


_LARGEST = _reduction("largest", np.max)


def _assembly(asm: str, constraints: str, args: Sequence[Tile], *more: Any, **named: Any) -> Tile:
    return args[0]


def _check(condition: Any, message: str = "", **named: Any) -> None:
    if not condition:
        raise Fault("shape", f"an assertion at {line()} does not hold: {message}")


def _nothing(*given: Any, **named: Any) -> None:
    """An operation that orders, or hints at, something that is not simulated: it does nothing."""


def _same(value: Any, *given: Any, **named: Any) -> Any:
    return value


# Operations of Triton that kernels give names to, since Gluon has none.
_NAMED = {"add_shared_to_global": tensors.add_shared_to_global}


def _builtin(function: Callable[..., Any]) -> Any:
    """The operation that a kernel's module makes out of Triton's builder, by its name."""
    if function.__name__ not in _NAMED:
        raise AttributeError(f"{function.__name__}, which a module builds, is not simulated")
    return _NAMED[function.__name__]


def _warp_specialize(
    functions_and_args: Sequence[tuple[Callable[..., Any], Sequence[Any]]],
    worker_num_warps: Sequence[int],
    worker_num_regs: Sequence[int] | None = None,
) -> Any:
    """Run functions beside each other, each in a partition. Returns the first one's result."""
    workers = len(functions_and_args) - 1
    for name, given in (("warps", worker_num_warps), ("registers", worker_num_regs)):
        if given is not None and len(given) != workers:
            raise Fault(
                "shape", f"{line()} gives {len(given)} numbers of {name} to {workers} workers"
            )
    program, outside = here(), partition()
    results: dict[int, Any] = {}
    bodies = []
    for number, (function, args) in enumerate(functions_and_args):
        name = f"{function.__name__.lstrip('_')} {number}"
        who = Partition(name, outside.clock.copy())

        def body(
            who: Partition = who,
            number: int = number,
            function: Callable[..., Any] = function,
            args: Sequence[Any] = args,
        ) -> None:
            enter(program, who)
            results[number] = function(*args)
            left = who.under_way()
            if left is not None:
                raise Fault("never awaited", f"{who.name} ends while {left} may run")

        bodies.append((who, body))
    program.scheduler.run(bodies)
    for who, _ in bodies:
        outside.clock.join(who.clock)
    return results[0]


MBARRIER = Missing(
    name="mbarrier", MBarrierLayout=BarrierLayout, init=barriers.init, expect=barriers.expect,
    arrive=barriers.arrive, wait=barriers.wait, invalidate=barriers.invalidate,
    allocate_mbarrier=lambda *given, **named: Barriers.allocate([1]),
)  # fmt: skip
TMA = Missing(
    name="tma", async_copy_global_to_shared=tensors.async_copy_global_to_shared,
    async_load=tensors.async_copy_global_to_shared,
    async_copy_shared_to_global=tensors.async_copy_shared_to_global, store_wait=tensors.store_wait,
)  # fmt: skip
HOPPER = Missing(
    name="hopper", mbarrier=MBARRIER, tma=TMA, fence_async_shared=_nothing,
    warpgroup_mma=products.warpgroup_mma, warpgroup_mma_init=_same,
    warpgroup_mma_wait=products.warpgroup_mma_wait,
)  # fmt: skip
LANGUAGE = Missing(
    name="gl", constexpr=_same, static_range=range, range=_range, cdiv=_cdiv,
    static_assert=_check, static_print=_nothing, device_assert=_check, device_print=_nothing,
    assume=_nothing, multiple_of=_same, max_contiguous=_same, max_constancy=_same,
    minimum=lambda a, b: extreme(a, b, False), maximum=lambda a, b: extreme(a, b, True),
    where=choose, exp2=_elementwise("exp2"), exp=_elementwise("exp"), log=_elementwise("log"),
    log2=_elementwise("log2"), abs=_abs, sum=_reduction("sum", np.sum), max=_LARGEST, min=_smallest,
    zeros=lambda shape, dtype, layout=None: full(shape, 0, dtype),
    full=lambda shape, value, dtype, layout=None: full(shape, value, dtype),
    arange=_arange, convert_layout=_same, set_auto_layout=_same,
    expand_dims=lambda x, axis: Tile(x.dtype, np.expand_dims(x.numbers, axis)),
    reshape=lambda x, shape: x.reshape(shape), permute=lambda x, order: x.permute(order),
    cast=lambda x, dtype: tile_of(x).to(dtype), to_tensor=tile_of,
    store=tensors.store, allocate_shared_memory=_allocate,
    inline_asm_elementwise=_assembly, warp_specialize=_warp_specialize,
    program_id=lambda axis: Int(here().number if axis == 0 else 0),
    num_programs=lambda axis: Int(here().programs if axis == 0 else 1),
    float16=rounded.FLOAT16, bfloat16=rounded.BFLOAT16, float32=rounded.FLOAT32,
    int1=rounded.INT1, int32=INT32, int64=INT64,
    NVMMADistributedLayout=Layout, NVMMASharedLayout=Layout, DotOperandLayout=Layout,
    SliceLayout=Layout, BlockedLayout=Layout, AutoLayout=Layout, SwizzledSharedLayout=Layout,
)  # fmt: skip
GLUON = Missing(name="gluon", jit=_jit, constexpr_function=_same, language=LANGUAGE)
LANGUAGE.nvidia = Missing(name="gl.nvidia", hopper=HOPPER)
_GLUON = "triton.experimental.gluon"
MODULES = {
    _GLUON: GLUON,
    f"{_GLUON}.language": LANGUAGE,
    f"{_GLUON}.language._core": Missing(name="gl._core", builtin=_builtin),
    f"{_GLUON}.language.nvidia": LANGUAGE.nvidia,
    f"{_GLUON}.language.nvidia.hopper": HOPPER,
    f"{_GLUON}.language.nvidia.hopper.mbarrier": MBARRIER,
    f"{_GLUON}.language.nvidia.hopper.tma": TMA,
    "triton.experimental": Missing(name="triton.experimental", gluon=GLUON),
}
# The names of Python that mean something else in a kernel.
BUILTINS = {"range": _range}
