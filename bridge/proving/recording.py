"""The launches of a Triton kernel that Python code makes, recorded without a GPU.

Tensors have shapes, strides, storages of their own and, as they say, a device "cuda", and no
numbers. PyTorch's operations on them are noted by storage, so that for each tensor that a kernel is
given it is known whether it was given, made empty, filled with a constant, or computed: integers
are known (`integers`), and of floats the sums, products and copies are recorded in their order
among the launches.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, ClassVar
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from triton.backends.compiler import GPUTarget
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

from bridge.proving.integers import Integers, is_whole, key_of
from bridge.proving.recorded import Computed, Launched, Operation, Origin, Step, Storage, View
from bridge.ttir.source import of_kernel

# The device that tensors say they are on.
CUDA = torch.device("cuda", 0)
_META = torch.device("meta")
_EMPTY = (
    "empty",
    "empty_like",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "empty_permuted",
)
_FILLED = {"zeros": 0, "zeros_like": 0, "new_zeros": 0, "zero_": 0, "zero": 0, "ones": 1,
           "ones_like": 1, "new_ones": 1}  # fmt: skip
_FULL = {"full": 1, "full_like": 1, "new_full": 2, "fill_": 1, "fill": 1}


@dataclass
class Followed:
    """A storage of fake tensors while it is followed: as `recorded.Storage`; of integers the detail
    comes at the end."""

    number: int
    dtype: torch.dtype
    size: int
    origin: Origin
    detail: Any = None
    kept: list[Tensor] = field(default_factory=list)


# PyTorch's operations that are recorded, each with the kind of its step: those that end in _ write
# to their first operand.
OPERATIONS: dict[str, Operation] = {
    "clone": "copy", "_to_copy": "copy", "copy_": "copy", "fill_": "fill", "zero_": "fill",
    "add": "add", "add_": "add", "sub": "subtract", "sub_": "subtract", "mul": "multiply",
    "mul_": "multiply", "div": "divide", "div_": "divide", "neg": "negate", "sum": "sum",
}  # fmt: skip


def _getter(name: str) -> Any:
    """An attribute of tensors, as PyTorch hands it to modes."""
    return getattr(Tensor, name).__get__


class _OnCuda(TorchFunctionMode):
    """Tensors are made on PyTorch's device "meta", where none has numbers, and say that they are on
    CUDA. (PyTorch's fake tensors do too, but take seconds to import its compiler, and without CUDA
    cannot be indexed.)"""

    _SAID: ClassVar[dict[Any, Any]] = {
        _getter("device"): CUDA,
        _getter("is_cuda"): True,
        _getter("is_meta"): False,
        Tensor.get_device: 0,
        torch.get_device: 0,
    }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in self._SAID and args[0].is_meta:
            return self._SAID[func]
        if func is Tensor.cuda:
            return args[0].to(_META)
        kwargs = dict(kwargs or {})
        if _is_cuda(kwargs.get("device")):
            kwargs["device"] = _META
        if func is Tensor.to:
            args = tuple(_META if _is_cuda(x) else x for x in args)
        if func in (torch.tensor, torch.as_tensor) and kwargs.get("device") == _META:
            # Made on "meta" it would have no numbers.
            return func(*args, **{**kwargs, "device": None}).to(_META)
        return func(*args, **kwargs)


def _is_cuda(x: Any) -> bool:
    if isinstance(x, int) and not isinstance(x, bool):
        return False
    return (isinstance(x, torch.device) and x.type in ("cuda", "meta")) or (
        isinstance(x, str) and x.partition(":")[0] == "cuda"
    )


class _Pointer:
    """A tensor for Triton's binder, which looks at its dtype and at its address."""

    def __init__(self, view: View) -> None:
        self.view, self.dtype = view, view.dtype

    def data_ptr(self) -> int:
        return self.view.offset * self.view.dtype.itemsize


class Recording(TorchDispatchMode):
    """Launches while it lasts, as a context manager.

    arch: compute capability that code sees, such as 90; configuration: which of an autotuned
    kernel's is taken.
    """

    def __init__(self, arch: int, configuration: int = 0) -> None:
        # PyTorch writes no types for its modes: hence `no-untyped-call`, three times.
        super().__init__()  # type: ignore[no-untyped-call]
        self.arch, self.configuration = arch, configuration
        self.steps: list[Step] = []
        self.integers = Integers()
        self.storages: dict[int, Followed] = {}
        self._taken: tuple[int, int] | None = None
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Recording:
        for patch in self._patches():
            self._stack.enter_context(patch)
        self._stack.enter_context(_OnCuda())
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)  # type: ignore[no-untyped-call]
        self._stack.close()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Else PyTorch's compiler is imported, for seconds, at the first operation.
        return False

    def make_argument(
        self, name: str, sizes: Sequence[int], strides: Sequence[int], dtype: torch.dtype
    ) -> Tensor:
        """A tensor that the code is given under this name."""
        tensor = torch.empty_strided(tuple(sizes), tuple(strides), dtype=dtype, device=CUDA)
        storage = self._storage(tensor)
        storage.origin, storage.detail = "given", name
        return tensor

    def storages_to_send(self) -> Iterator[Storage]:
        """The storages, with the integers that are known."""
        for storage in self.storages.values():
            if storage.origin == "integers" and storage.detail is None:
                storage.detail = self.integers.numbers(storage.kept[0])
                if storage.detail is None:
                    storage.origin, storage.detail = "computed", "integers that are not followed"
            numbers = isinstance(storage.detail, list)
            detail = tuple(storage.detail) if numbers else storage.detail
            yield Storage(storage.dtype, storage.size, storage.origin, detail)

    def view(self, tensor: Tensor) -> View:
        if tensor.is_neg() or tensor.is_conj():
            raise ValueError("a tensor that is a negated view has no address of its own")
        number = self._storage(tensor).number
        offset = int(tensor.storage_offset())
        return View(number, tensor.dtype, offset, tuple(tensor.shape), tensor.stride())

    # --------------------------------------------------------------------------- PyTorch's side

    def _storage(self, tensor: Tensor) -> Followed:
        if not _is_fake(tensor):
            raise ValueError(
                "a kernel is given a tensor that is not on the GPU, or that was made before the "
                "launcher was called"
            )
        key = key_of(tensor)
        if key not in self.storages:
            size = tensor.untyped_storage().nbytes() // tensor.element_size()
            number = len(self.storages)
            self.storages[key] = Followed(number, tensor.dtype, size, "computed", "a number")
        # Addresses of storages that have ended would be given to others.
        self.storages[key].kept.append(tensor)
        return self.storages[key]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        # Autograd calls operations under `_OnCuda`, whose answers are for the launcher alone.
        with torch._C.DisableTorchFunction():
            return self._dispatch(func, args, kwargs or {})

    def _dispatch(self, func: Any, args: Any, kwargs: Any) -> Any:
        known = set(self.storages)
        writes = bool(func._schema.is_mutable)
        found = self.integers.compute(func, args, kwargs)
        if found is NotImplemented:
            found = func(*args, **kwargs)
            if writes:
                self.integers.write(func, args, kwargs)
        for tensor in tree_leaves(found):
            if not isinstance(tensor, Tensor) or not tensor.is_meta:
                continue
            fresh = key_of(tensor) not in known
            storage = self._storage(tensor)
            if fresh or writes:
                storage.origin, storage.detail = self._origin(
                    func, tensor, storage, args, kwargs, fresh=fresh
                )
        return found

    def _origin(
        self, func: Any, tensor: Tensor, storage: Followed, args: Any, kwargs: Any, *, fresh: bool
    ) -> tuple[Origin, Any]:
        """The contents of a storage after an operation whose result is this tensor."""
        name = func.overloadpacket.__name__
        if is_whole(tensor.dtype):
            if self.integers.of(tensor) is not None:
                return "integers", None
            if key_of(tensor) in self.integers.told:
                return "computed", f"aten.{name}, of a tensor that a kernel was given before"
        if name in _EMPTY:
            return "empty", None
        constant = _FILLED.get(name, args[_FULL[name]] if name in _FULL else None)
        if isinstance(constant, int | float):
            whole = tensor.numel() == storage.size
            if whole and (fresh or not self.steps) and math.isfinite(constant):
                return "constant", float(constant)
        if name in OPERATIONS and self._compute(name, tensor, args, kwargs):
            return ("empty", None) if fresh else (storage.origin, storage.detail)
        return "computed", f"aten.{name}"

    def _compute(self, name: str, to: Tensor, args: Any, kwargs: Any) -> bool:
        """Record an operation on floats; whether it could be."""
        if kwargs.get("alpha", 1) != 1 or kwargs.get("rounding_mode") is not None:
            return False
        operation = OPERATIONS[name]
        operands = args[1:2] if operation in ("copy", "fill") and name.endswith("_") else args[:2]
        dims: tuple[int, ...] = ()
        if name == "zero_":
            operands = (0.0,)
        if operation == "sum":
            operands = args[:1]
            given = (args[1] if len(args) > 1 else None) or range(args[0].dim())
            dims = tuple(int(d) % args[0].dim() for d in given)
        if operation in ("copy", "negate"):
            operands = operands[:1]
        views: list[View | float] = []
        for x in operands:
            if isinstance(x, Tensor) and x.is_meta and x.is_floating_point():
                views.append(self.view(x))
            elif isinstance(x, int | float) and math.isfinite(x):
                views.append(float(x))
            else:
                return False
        if not to.is_floating_point():
            return False
        self.steps.append(Computed(operation, self.view(to), tuple(views), dims))
        return True

    # ---------------------------------------------------------------------------- Triton's side

    def _patches(self) -> Iterator[Any]:
        """Triton's functions and autotuner that record, and a GPU as far as code asks for one."""
        recording = self

        def run(kernel: Any, *args: Any, grid: Any, warmup: bool = False, **kwargs: Any) -> None:
            if not warmup:
                recording._launch(kernel, args, grid, kwargs)

        def run_configuration(tuner: Any, *args: Any, **kwargs: Any) -> Any:
            tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
            configs = tuner.prune_configs(kwargs)
            if recording.configuration >= len(configs):
                raise ValueError(
                    f"configuration must be below {len(configs)}, not {recording.configuration}"
                )
            config = configs[recording.configuration]
            chosen = config.all_kwargs()
            if config.pre_hook is not None:
                config.pre_hook({**tuner.nargs, **kwargs, **chosen})
            recording._taken = (recording.configuration, len(configs))
            try:
                return tuner.fn.run(*args, **kwargs, **chosen)
            finally:
                recording._taken = None

        yield mock.patch.object(JITFunction, "run", run)
        yield mock.patch.object(Autotuner, "run", run_configuration)
        yield from gpu(self.arch)

    def _launch(self, kernel: Any, args: Sequence[Any], grid: Any, kwargs: dict[str, Any]) -> None:
        for hook in kernel.pre_run_hooks:
            hook(*args, **kwargs)
        defaults = {
            name: parameter.default
            for name, parameter in kernel.signature.parameters.items()
            if parameter.default is not inspect.Parameter.empty
        }
        given = {**dict(zip(kernel.arg_names, args, strict=False)), **kwargs}
        arguments = {name: given[name] for name in kernel.arg_names if name in given}
        options = {name: x for name, x in given.items() if name not in arguments}
        if callable(grid):
            grid = grid({**defaults, **arguments})
        told = [x for x in tree_leaves(arguments) if _is_fake(x) and is_whole(x.dtype)]
        self.integers.told |= {key_of(x) for x in told}
        pointers = tree_map_only(Tensor, lambda x: _Pointer(self.view(x)), arguments)
        # The tensors of descriptors are no leaves of a tree.
        source = of_kernel(kernel, pointers, options, self.arch)
        if _STORES_INTEGERS.search(source.text):
            for x in told:
                # Kept as they were before: which of them change is not looked at.
                storage = self._storage(x)
                storage.detail = storage.detail or self.integers.numbers(x)
                self.integers.forget(x)
        self.steps.append(
            Launched(
                kernel.__name__,
                source.text,
                tuple((name, self._argument(name, x)) for name, x in source.arguments.items()),
                tuple(int(size) for size in grid),
                self._taken,
            )
        )

    def _argument(self, name: str, given: Any) -> View | int | float | bool:
        if isinstance(given, _Pointer):
            return given.view
        if isinstance(given, TensorDescriptor):
            of = self.view(given.base)
            own = tuple(given.shape), tuple(given.strides)
            return View(of.storage, of.dtype, of.offset, *own, given.padding)
        if isinstance(given, bool | int | float) and math.isfinite(given):
            return given
        raise ValueError(f"argument {name} of the kernel is {given!r}, which has no meaning here")


def _is_fake(x: Any) -> bool:
    """Whether it is a tensor that has no numbers."""
    with torch._C.DisableTorchFunction():
        return isinstance(x, Tensor) and x.is_meta


# An operation of TTIR that changes integers in memory.
_STORES_INTEGERS = re.compile(r"tt\.(?:store|atomic_\w+|descriptor_store)\b.*ptr<i\d+>")


class _Driver:
    """Triton's driver of a GPU that is not there."""

    def __init__(self, arch: int) -> None:
        self.arch = arch
        self.utils = SimpleNamespace(get_device_properties=lambda device: dict(_PROPERTIES))

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.arch, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int = 0) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Any]:
        raise RuntimeError("there is no GPU to measure on")


# The properties of an H100.
_PROPERTIES = {
    "max_shared_mem": 232448, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32,
    "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120,
}  # fmt: skip


def gpu(arch: int) -> Iterator[Any]:
    """Patches that show a GPU of this compute capability to code that asks PyTorch or Triton."""
    major, minor = divmod(arch, 10)
    device = SimpleNamespace(
        name="none", major=major, minor=minor, multi_processor_count=132, warp_size=32,
        total_memory=80 << 30, shared_memory_per_block_optin=232448, L2_cache_size=50 << 20,
        max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
    )  # fmt: skip
    answers: dict[str, Callable[..., Any]] = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "device_count": lambda: 1,
        "current_device": lambda: 0,
        "get_device_capability": lambda device=None: (major, minor),
        "get_device_properties": lambda device_=None: device,
        "get_device_name": lambda device=None: "none",
        "synchronize": lambda device=None: None,
        "device": lambda device=None: contextlib.nullcontext(),
    }
    for name, answer in answers.items():
        yield mock.patch.object(torch.cuda, name, answer)
    yield mock.patch.object(driver, "_active", _Driver(arch))
