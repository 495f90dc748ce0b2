"""The common part of every kernel's launch: limits, making and checking of arguments, and the
launch itself as a value, which `pyimpl.backends.kernels.offline.compile` compiles without a GPU."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyimpl.backends.kernels.parts.numerics import INTERPRETED, LOG2E
from pyimpl.internal.scores import KERNEL_CHANGES, ScoreOptions

MAX_HEAD_DIM = 256
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
# Sums of three lengths and 1 are 32-bit integers in the kernels.
MAX_LENGTH = 2**29
Arguments = dict[str, Tensor | int | float | None]
# The interpreter exchanges functions of triton.language while it runs a kernel: one at a time.
_INTERPRETER = threading.Lock()


@dataclass(frozen=True)
class StandIn:
    """An absent GPU, which CPU tensors are taken to be on: for measurements and tests of launches
    that have a Triton driver of their own."""

    capability: int
    processors: int


# None outside of that.
stand_in: StandIn | None = None


@dataclass(frozen=True)
class Launch:
    """A kernel with all that one launch of it is given.

    programs: their number, in one grid dimension, since the second and third end at 65,535.
    arguments: tensors, numbers and None by name; constants: compile-time ones.
    """

    kernel: Any
    programs: int
    arguments: Arguments
    constants: dict[str, int | bool | None]
    num_warps: int
    num_stages: int

    def specialisation(self) -> tuple[dict[str, str], dict[str, object]]:
        """The dependencies of the kernel's text: the type of each parameter, as Triton writes it,
        in their order ("constexpr" for a constant of the text), and the constants.

        Constants are the compile-time arguments and those that are None: absent options and
        arrays, and strides of 1 along vectors. Types tell dtypes, and integers of 32 bits from
        those that need 64. Whether 16 divides the address of a tensor, which Triton looks at too,
        is an attribute in the text and changes none of its operations.
        """
        absent = {name: None for name, given in self.arguments.items() if given is None}
        constants: dict[str, object] = {**self.constants, **absent}
        types = {
            name: "constexpr" if name in constants else _type_of(self.arguments[name])
            for name in self.kernel.arg_names
        }
        return types, constants

    def compile(self) -> Any:
        """The finished kernel, out of Triton's cache or made and put there, for the device that
        Triton's driver names; nothing is started, so tensors without memory will do."""
        return self.kernel.warmup(
            **self.arguments,
            **self.constants,
            num_warps=self.num_warps,
            num_stages=self.num_stages,
            grid=(max(1, self.programs),),
        )

    def run(self, device: torch.device) -> None:
        """Start it on `device`, which need not be the current one. No programs: nothing happens."""
        if self.programs == 0:
            return
        with launching_on(device):
            self.kernel[(self.programs,)](
                **self.arguments,
                **self.constants,
                num_warps=self.num_warps,
                num_stages=self.num_stages,
            )


_POINTERS = {
    torch.float64: "*fp64", torch.float32: "*fp32", torch.float16: "*fp16", torch.bfloat16: "*bf16",
    torch.uint8: "*u8", torch.int32: "*i32", torch.int64: "*i64",
}  # fmt: skip


def _type_of(given: Any) -> str:
    if isinstance(given, Tensor):
        return _POINTERS[given.dtype]
    # A descriptor of Gluon for the tensor memory accelerator.
    if isinstance(getattr(given, "base", None), Tensor):
        element = _POINTERS[given.base.dtype].removeprefix("*")
        return f"tensordesc<{element}{list(given.block_shape)},{given.layout!r}>"
    if isinstance(given, int):
        return "i32" if -(2**31) <= given < 2**31 else "i64"
    return "fp32"


def launching_on(device: torch.device) -> AbstractContextManager[object]:
    """A block in which launches go to `device`."""
    if stand_in is not None:
        return nullcontext()
    return torch.cuda.device(device) if device.type == "cuda" else _INTERPRETER


def is_current(device: torch.device) -> bool:
    """Whether launches go to this GPU anyway."""
    return stand_in is not None or device.index == torch.cuda.current_device()


def why_not(query: Tensor, value: Tensor) -> str | None:
    """The sentence that says why the kernels cannot take tensors of this kind, or None if they
    can."""
    if query.dtype not in DTYPES:
        return f"backend 'triton' takes float32, float16 and bfloat16, not {query.dtype}"
    largest = max(query.shape[-1], value.shape[-1])
    if largest > MAX_HEAD_DIM:
        return f"backend 'triton' takes head sizes up to {MAX_HEAD_DIM}, not {largest}"
    on_cpu = query.is_cpu and (INTERPRETED.value or stand_in is not None)
    if not query.is_cuda and not on_cpu:
        return (
            f"backend 'triton' takes CUDA tensors, not {query.device.type} (CPU tensors only in "
            "Triton's interpreter: set TRITON_INTERPRET=1 before the first call of pyimpl, "
            "which imports Triton)"
        )
    return None


def capability(device: torch.device) -> int:
    """10 × major + minor of the device's compute capability; the interpreter, which has none,
    counts as the oldest."""
    if stand_in is not None:
        return stand_in.capability
    if device.type != "cuda":
        return 80
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


def is_hopper(capability: int) -> bool:
    """Whether it is a Hopper GPU's, on which launch options have been timed."""
    return 90 <= capability < 100


def has_warpgroups(capability: int) -> bool:
    """Whether products take their operands from shared memory, of which a block may use 227 KiB:
    Hopper (90) and Blackwell's data centre devices (100 to 119). The others have down to 99 KiB."""
    return 90 <= capability < 120


Tile = tuple[int, int, int, int]


def by_size(dim: int, small: Tile, middle: Tile, large: Tile) -> dict[str, int]:
    """Launch options by the padded head size: up to 64, up to 128, above; of each `block_m`,
    `block_n`, `num_warps` and `num_stages`."""
    tile = small if dim <= 64 else middle if dim <= 128 else large
    return dict(zip(("block_m", "block_n", "num_warps", "num_stages"), tile, strict=True))


def processors(device: torch.device) -> int:
    """The device's multiprocessors; 1 in the interpreter, which runs one program at a time."""
    if stand_in is not None:
        return stand_in.processors
    if device.type != "cuda":
        return 1
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def padded_size(size: int) -> int:
    """The power of two ≥ 16 that a tile of vectors of this size is computed in: `tl.dot` takes no
    other."""
    return max(16, 1 << (size - 1).bit_length())


def is_far(block: int, *vectors: tuple[int, ...]) -> bool:
    """Whether an offset inside of a tile of `block` vectors can pass 2³¹; of each tensor the stride
    from one vector to the next and that along a vector."""
    return any(block * along + MAX_HEAD_DIM * within > 2**31 for along, within in vectors)


def are_aligned(*numbers: int | None) -> bool:
    """Whether 16 divides all of these: a kernel's ALIGNED says it of strides (None: there is none)
    and sizes."""
    return all(number is None or number % 16 == 0 for number in numbers)


def check_kind(query: Tensor, value: Tensor) -> None:
    """Raise the ValueError of `why_not`."""
    refusal = why_not(query, value)
    if refusal is not None:
        raise ValueError(refusal)


def check_tensor(name: str, tensor: Tensor, like: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `tensor` has this shape and the dtype and device of query, `like`."""
    kind = (tensor.dtype, tensor.device)
    if tensor.shape != shape or kind != (like.dtype, like.device):
        raise ValueError(
            f"{name} must be {like.dtype} {list(shape)} on {like.device}, "
            f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
        )


def check_gradient(name: str, tensor: Tensor, like: Tensor) -> None:
    """Raise ValueError unless `tensor` has the shape and device of `like`, and its dtype or
    float32."""
    wide = tensor.dtype == torch.float32
    check_tensor(name, tensor, like.new_empty(0, dtype=torch.float32) if wide else like, like.shape)


def check_indices(name: str, tensor: Tensor, like: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless `tensor` is int32 of this shape on the device of query, `like`."""
    if tensor.shape != shape or tensor.dtype != torch.int32 or tensor.device != like.device:
        raise ValueError(
            f"{name} must be torch.int32 {list(shape)} on {like.device}, "
            f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
        )


def check_outputs(out: Tensor, lse: Tensor, shape: tuple[int, ...]) -> None:
    """Raise ValueError unless the output has this shape, and the log-sum-exp all but the last."""
    for name, tensor, wanted in (("out", out, shape), ("lse", lse, shape[:-1])):
        if tensor.shape != wanted or tensor.device != out.device:
            raise ValueError(
                f"{name} must be {list(wanted)} on {out.device}, "
                f"not {list(tensor.shape)} on {tensor.device}"
            )


def group_of(num_heads: int, num_kv_heads: int) -> int:
    """How many query heads share a head of keys and values. Raises ValueError if they cannot."""
    if num_kv_heads == 0 and num_heads == 0:
        return 1
    if 0 in (num_heads, num_kv_heads) or num_heads % num_kv_heads:
        raise ValueError(
            f"the heads of query must be a positive multiple of those of key, {num_kv_heads}, "
            f"not {num_heads}"
        )
    return num_heads // num_kv_heads


def check_block(name: str, block: int) -> None:
    """Raise ValueError unless a tile may have this many rows or keys."""
    if block < 16 or block & (block - 1):
        raise ValueError(f"{name} must be a power of two, at least 16, not {block}")


def check_programs(what: str, programs: int) -> None:
    """Raise ValueError if the grid has too many programs; `what` names their number."""
    if programs > 2**31 - 1:
        raise ValueError(f"{what} must be below 2³¹, not {programs}")


def check_length(name: str, length: int) -> None:
    """Raise ValueError if a length is not below `MAX_LENGTH`."""
    if length >= MAX_LENGTH:
        raise ValueError(f"{name} must be below 2²⁹ for the Triton kernels, not {length}")


def with_nonnegative_scale(query: Tensor, options: ScoreOptions) -> tuple[Tensor, ScoreOptions]:
    """Queries and options that mean the same scores, with scale ≥ 0: then a row's largest product
    makes its largest score (`loop.step_block`). The queries are copied where scale is below 0."""
    query = query.resolve_neg()
    if options.scale < 0.0:
        return -query, replace(options, scale=-options.scale)
    return query, options


def score_arguments(options: ScoreOptions) -> Arguments:
    """The arguments `scale` and `cap` of a kernel (`loop.Scores`), in base 2.

    Raises:
        ValueError: softcap is not positive and finite, or the factors are not within float32.
    """
    scale = options.scale
    if options.softcap is None:
        factors = {"scale·log₂e": scale * LOG2E.value}
    else:
        if not options.softcap > 0.0:
            raise ValueError(f"softcap must be above 0, not {options.softcap}")
        cap = options.softcap
        factors = {"scale/softcap": scale / cap, "softcap·log₂e": cap * LOG2E.value}
    for name, factor in factors.items():
        if not abs(factor) <= torch.finfo(torch.float32).max:
            raise ValueError(
                f"{name} must be within float32 for the Triton kernel; scale is {scale}"
                + ("" if options.softcap is None else f", softcap is {options.softcap}")
            )
    return dict(zip(("scale", "cap"), (*factors.values(), None), strict=False))


def window_arguments(
    options: ScoreOptions, q_len: int, kv_len: int, shifts: tuple[int, int] | None = None
) -> Arguments:
    """The arguments `left` and `right` of a kernel; a bound that excludes no pair is None.

    `shifts`: the lowest and the highest that occurs, where it is not `options.shift` alone.
    Raises:
        ValueError: a bound is below 0, or the shift is not between −2²⁹ and 2²⁹.
    """
    left, right = options.left, options.right
    for name, bound in (("left", left), ("right", right)):
        if bound is not None and bound < 0:
            raise ValueError(f"{name} must be None or at least 0, not {bound}")
    if abs(options.shift) >= MAX_LENGTH:
        raise ValueError(f"shift must be between −2²⁹ and 2²⁹, not {options.shift}")
    lowest, highest = (options.shift, options.shift) if shifts is None else shifts
    if left is not None and q_len - 1 + highest - left <= 0:
        left = None
    if right is not None and lowest + right >= kv_len - 1:
        right = None
    return {"left": left, "right": right}


def pair_arguments(options: ScoreOptions, query: Tensor, kv_len: int) -> Arguments:
    """The arguments for mask and bias, their strides named `stride_m…` and `stride_b…`.

    `query`: `[batch, heads, q_len, head_dim]`.
    Raises:
        ValueError: mask or bias has the wrong dtype or device, or does not broadcast.
    """
    mask, bias, device = options.mask, options.bias, query.device
    if mask is not None and (mask.dtype != torch.bool or mask.device != device):
        raise ValueError(f"mask must be boolean on {device}, not {mask.dtype} on {mask.device}")
    if bias is not None and (not bias.is_floating_point() or bias.device != device):
        raise ValueError(f"bias must be floating on {device}, not {bias.dtype} on {bias.device}")
    pairs = (*query.shape[:3], kv_len)
    found: Arguments = {}
    for name, letter, tensor in (("mask", "m", mask), ("bias", "b", bias)):
        strides: tuple[int | None, ...] = (None,) * 4
        if tensor is not None:
            sizes = zip(reversed(tensor.shape), reversed(pairs), strict=False)
            if tensor.dim() > 4 or any(size not in (1, full) for size, full in sizes):
                raise ValueError(
                    f"{name} must be broadcastable to [batch, heads, q_len, kv_len] = "
                    f"{list(pairs)}, not of shape {list(tensor.shape)}"
                )
            tensor = tensor.expand(pairs)
            tensor = tensor.view(torch.uint8) if name == "mask" else tensor.resolve_neg()
            strides = tensor.stride()
        found[f"{name}_ptr"] = tensor
        found |= strides_of(letter, "bhmn", strides)
    return found


def pairs_are_aligned(pairs: Arguments) -> bool:
    """Whether 16 divides the strides of mask and bias, of `pair_arguments`, but that from key to
    key: where it is 1, several elements are loaded at a time."""
    strides = (n for name, n in pairs.items() if name.startswith("stride_") and name[-1] != "n")
    return are_aligned(*(n for n in strides if isinstance(n, int)))


def head_arguments(
    options: ScoreOptions, batch: int, num_heads: int, device: torch.device
) -> Arguments:
    """The arguments for the changes of the scores that are given per head.

    Raises:
        ValueError: they have the wrong dtype, device or shape.
    """
    found: Arguments = {}
    for change in KERNEL_CHANGES:
        if change.kind != "head":
            continue
        tensor: Tensor | None = getattr(options, change.name)
        axes = "bh" if change.by_batch else "h"
        strides: tuple[int | None, ...] = (None,) * len(axes)
        if tensor is not None:
            each = (batch, num_heads)
            shapes = dict.fromkeys((each, (1, num_heads)) if change.by_batch else ((num_heads,),))
            fits = tensor.shape in shapes and tensor.device == device
            if not fits or not tensor.is_floating_point():
                accepted = " or ".join(str(list(shape)) for shape in shapes)
                raise ValueError(
                    f"{change.name} must be floating {accepted} on {device}, "
                    f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
                )
            tensor = (tensor.expand(each) if change.by_batch else tensor).resolve_neg()
            strides = tensor.stride()
        found[change.argument] = tensor
        found |= {f"stride_{change.letter}{axis}": n for axis, n in zip(axes, strides, strict=True)}
    return found


def strides_of(letter: str, axes: str, strides: tuple[int | None, ...]) -> Arguments:
    """`{"stride_qb": …, "stride_qh": …}` for the letter q and the axes b, h, …; the last is None if
    it is 1 (`numerics.or_one`), and all are None of a tensor that is not there."""
    along = None if strides[-1] == 1 else strides[-1]
    numbers = (*strides[:-1], along)
    return {f"stride_{letter}{axis}": n for axis, n in zip(axes, numbers, strict=True)}
