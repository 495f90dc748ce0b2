"""The public functions' checks of their arguments, and the helpers for arguments that the
implementations share. Every refusal is one sentence: the argument, the value given, the values
accepted."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.autograd import forward_ad

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
_INTEGERS = (torch.int32, torch.int64)
Alignment = Literal["top-left", "bottom-right"]
Layout = Literal["bhnd", "bnhd"]
Window = tuple[int | None, int | None]


def resolve_scale(scale: float | None, head_dim: int) -> float:
    """The factor on ⟨q, k⟩: `scale`, or 1/√head_dim when it is None, as in PyTorch's SDPA."""
    return 1.0 / math.sqrt(head_dim) if scale is None else float(scale)


def compute_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype in which inputs of a dtype are computed and their log-sum-exp is returned: float64
    for float64, otherwise float32."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def largest_added(dtype: torch.dtype) -> float:
    """The largest bias, slope or sink for inputs of this dtype: a power of two that is
    finite in `compute_dtype` times log₂e too, since the implementations compute in base 2."""
    return 2.0 ** (1023 if compute_dtype(dtype) == torch.float64 else 127)


def mask_as_4d(mask: Tensor, q_len: int, kv_len: int) -> Tensor:
    """A view of a mask or bias as `[batch|1, heads|1, q_len, kv_len]`.

    Only the last two dimensions are expanded: batch and heads stay 1 where the mask does not depend
    on them, so that work done on the mask alone is not repeated for every head.
    """
    while mask.dim() < 4:
        mask = mask.unsqueeze(0)
    return mask.expand(-1, -1, q_len, kv_len)


def empty_output(query: Tensor, value_dim: int, *, wide: bool = False) -> Tensor:
    """An uninitialised `[batch, heads, q_len, value_dim]` of the kind of `query`, dense, with heads
    and q_len in the order in memory that they have in `query`; wide: in `compute_dtype`."""
    batch, heads, q_len, _ = query.shape
    dtype = compute_dtype(query.dtype) if wide else query.dtype
    if query.stride(2) > query.stride(1):
        return query.new_empty(batch, q_len, heads, value_dim, dtype=dtype).transpose(1, 2)
    return query.new_empty(batch, heads, q_len, value_dim, dtype=dtype)


def is_laid_out(tensor: Tensor, query: Tensor) -> bool:
    """Whether it lies as `empty_output` has it."""
    _, heads, q_len, dim = tensor.shape
    heads, q_len, dim = heads or 1, q_len or 1, dim or 1
    each = (dim, heads * dim) if query.stride(2) > query.stride(1) else (q_len * dim, dim)
    return tensor.stride() == (heads * q_len * dim, *each, 1)


def shape(tensor: Tensor) -> list[int]:
    """The shape as a list of plain numbers, for sentences."""
    return list(tensor.shape)


def describe(given: object) -> str:
    """The argument that was given, for a message: on one line, its end left out if it is long."""
    try:
        text = " ".join(repr(given).split())
    except ValueError:  # Python writes no whole number of more than 4300 digits.
        text = f"so long a {type(given).__name__}"
    return text if len(text) <= 80 else text[:79] + "…"


def is_dtensor(tensor: object) -> bool:
    """Whether it is a DTensor, without an import of the module that defines it."""
    return type(tensor).__name__ == "DTensor"


def check_one_of(name: str, given: object, literal: object) -> None:
    """Raises ValueError unless `given` is one of the strings of the `Literal` type."""
    if not isinstance(given, str) or given not in get_args(literal):
        accepted = ", ".join(repr(choice) for choice in get_args(literal))
        raise ValueError(f"{name} must be one of {accepted}, not {describe(given)}")


def check_bool(name: str, given: object) -> None:
    """Raises TypeError unless `given` is True or False."""
    if not isinstance(given, bool):
        raise TypeError(f"{name} must be True or False, not {describe(given)}")


def check_dense(name: str, tensor: Tensor) -> None:
    """Raises TypeError for a sparse or nested tensor."""
    if tensor.layout != torch.strided or tensor.is_nested:
        raise TypeError(f"{name} must be a dense tensor, neither sparse nor nested")


def under_autocast(named: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as `torch.autocast` wants them for a product: in its dtype, unless float64."""
    found = dict(named)
    # PyTorch has no public function that tells it of all types of devices at once.
    if not torch._C._is_any_autocast_enabled():
        return found
    for name, tensor in named.items():
        if isinstance(tensor, Tensor):
            kind = "cpu" if tensor.is_cpu else tensor.device.type
            if _under_autocast(kind) and tensor.dtype in DTYPES[1:]:
                found[name] = tensor.to(torch.get_autocast_dtype(kind))
    return found


def _under_autocast(kind: str) -> bool:
    """Whether `torch.autocast` is on for this type of device."""
    if kind in ("cuda", "cpu"):  # To ask takes as long as the answer.
        return torch.is_autocast_enabled(kind)
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def without_autocast(device: torch.device) -> AbstractContextManager[object]:
    """A block in which `torch.autocast` does not lower the products from `compute_dtype`."""
    # To enter one takes longer than a short product.
    if _under_autocast(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


def check_floating(named: Mapping[str, Tensor], dims: tuple[str, ...]) -> None:
    """Dense tensors of one dtype out of `DTYPES` and one device, with these dimensions, the last of
    them not empty; the first tensor sets dtype and device."""
    first = next(iter(named))
    for name, tensor in named.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} must be a torch.Tensor, not {type(tensor).__name__}")
        check_dense(name, tensor)
        if tensor.dtype not in DTYPES:
            raise TypeError(
                f"{name} must be float64, float32, float16 or bfloat16, not {tensor.dtype}"
            )
        if tensor.dim() != len(dims):
            raise ValueError(f"{name} must be [{', '.join(dims)}], not of shape {shape(tensor)}")
    dtype, device = named[first].dtype, named[first].device
    for name, tensor in named.items():
        if tensor.dtype != dtype:
            raise TypeError(f"{name} must have the dtype of {first}, {dtype}, not {tensor.dtype}")
        if tensor.device != device:
            raise ValueError(
                f"{name} must be on the device of {first}, {device}, not on {tensor.device}"
            )
        if tensor.shape[-1] == 0:
            raise ValueError(
                f"the last dimension of {name} must be at least 1, not of shape {shape(tensor)}"
            )


def check_attended(
    named: Mapping[str, Tensor], enable_gqa: bool, *, paged: bool = False, packed: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """query, key and value in the layout "bhnd", by the names that they have for the caller, fit
    together; `paged`: the first dimension of key and value is pages; `packed`: the layout is
    `[tokens, heads, head_dim]`.

    Returns the three.
    """
    (q_name, query), (k_name, key), (v_name, value) = named.items()
    check_bool("enable_gqa", enable_gqa)
    # As plain tuples: to cut a `torch.Size` takes three times as long.
    all_sizes = [tuple(x.shape) for x in (query, key, value)]
    if packed:
        all_sizes = [(1, heads, tokens, dim) for tokens, heads, dim in all_sizes]
    (batch, heads, _, head_dim), sizes, others = all_sizes
    if not paged and sizes[0] != batch:
        raise ValueError(f"{k_name} must have the batch of {q_name}, {batch}, not {sizes[0]}")
    if sizes[:3] != others[:3]:
        names = ("pages" if paged else "batch", "heads", "length")
        pairs = zip(names, sizes[:3], others[:3], strict=True)
        what, size, other = next(x for x in pairs if x[1] != x[2])
        raise ValueError(f"{v_name} must have the {what} of {k_name}, {size}, not {other}")
    kv_heads = sizes[1]
    if heads != kv_heads and not enable_gqa:
        raise ValueError(
            f"{k_name} must have the heads of {q_name}, {heads}, not {kv_heads}, "
            "unless enable_gqa=True"
        )
    if heads != kv_heads and (0 in (heads, kv_heads) or heads % kv_heads):
        raise ValueError(
            f"the heads of {q_name} must be a positive multiple of those of {k_name}, {kv_heads}, "
            f"not {heads}"
        )
    if sizes[3] != head_dim:
        raise ValueError(f"{k_name} must have the head_dim of {q_name}, {head_dim}, not {sizes[3]}")
    return query, key, value


def is_plain_mode() -> bool:
    """Whether no transform of `torch.func` and no level of forward-mode derivatives is on, so that
    no tensor can be followed by one. Dynamo cannot follow the question.

    PyTorch has no public function that tells.
    """
    return forward_ad._current_level < 0 and torch._C._functorch.maybe_current_level() is None


def check_reverse_mode(named: Mapping[str, Tensor | None] | Mapping[str, Tensor]) -> None:
    """Raises NotImplementedError for a tensor that a forward-mode derivative, or a derivative by
    `torch.func`, is asked of."""
    compiling = torch.compiler.is_compiling()
    if not compiling and is_plain_mode():
        return
    for name, tensor in named.items():
        if tensor is None:
            continue
        # PyTorch does not annotate unpack_dual.
        if forward_ad.unpack_dual(tensor).tangent is not None:  # type: ignore[no-untyped-call]
            raise NotImplementedError(
                f"{name} carries a tangent, and there is no forward-mode derivative"
            )
        if not compiling and _is_tracked(tensor):
            raise NotImplementedError(
                f"{name} is differentiated by torch.func, which takes no custom operator: use "
                "backward() or torch.autograd.grad"
            )


def _is_tracked(tensor: Tensor) -> bool:
    """Whether one of `torch.func`'s grad, vjp, jacrev or hessian follows the tensor, in a `vmap`
    too. PyTorch has no public function that tells."""
    functorch = torch._C._functorch
    while functorch.is_functorch_wrapped_tensor(tensor):
        if functorch.is_gradtrackingtensor(tensor):
            return True
        tensor = functorch.get_unwrapped(tensor)
    return False


def check_no_gradients(
    function: str, named: Mapping[str, Tensor | None] | Mapping[str, Tensor]
) -> None:
    """Raises NotImplementedError for a tensor that a gradient is asked of, for a function that has
    no backward pass."""
    if not torch.is_grad_enabled():
        return
    for name, tensor in named.items():
        if tensor is not None and tensor.requires_grad:
            raise NotImplementedError(
                f"{name} requires a gradient, and {function} has no backward pass: "
                f"use torch.no_grad() or {name}.detach()"
            )


def check_integers(name: str, given: object) -> None:
    """Raises TypeError or ValueError unless `given` is a tensor of int32 or int64 to be read."""
    if not isinstance(given, Tensor) or given.dtype not in _INTEGERS:
        kind = given.dtype if isinstance(given, Tensor) else type(given).__name__
        raise TypeError(f"{name} must be a torch.Tensor of int32 or int64, not {kind}")
    check_dense(name, given)
    if given.is_meta:
        raise ValueError(f"{name} must be on a device that holds its numbers, not on meta")


def check_scores_like(
    name: str, given: Tensor, query: Tensor, sizes: tuple[int, ...], *, boolean: bool
) -> Tensor:
    """A mask or bias that broadcasts to `sizes` = (batch, heads, q_len, kv_len); the numbers of a
    floating one are checked by `checked_range`."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor or None, not {type(given).__name__}")
    check_dense(name, given)
    if given.dtype not in DTYPES and not (boolean and given.dtype == torch.bool):
        accepted = "boolean (True = may attend) or floating (added)" if boolean else "floating"
        raise TypeError(f"{name} must be {accepted}, not {given.dtype}")
    _check_device(name, given, query)
    pairs = zip(reversed(given.shape), reversed(sizes), strict=False)
    if given.dim() > 4 or any(size not in (1, full) for size, full in pairs):
        raise ValueError(
            f"{name} must be broadcastable to [batch, heads, q_len, kv_len] = {list(sizes)}, "
            f"not of shape {shape(given)}"
        )
    return given


def check_per_head(name: str, given: Tensor, query: Tensor, shapes: Iterable[list[int]]) -> Tensor:
    """A floating tensor of one of these shapes on the device of `query`; its numbers are checked by
    `checked_range`."""
    if not isinstance(given, Tensor):
        raise TypeError(f"{name} must be a torch.Tensor or None, not {type(given).__name__}")
    check_dense(name, given)
    if given.dtype not in DTYPES:
        raise TypeError(f"{name} must be floating, not {given.dtype}")
    _check_device(name, given, query)
    if shape(given) not in shapes:
        accepted = " or ".join(str(sizes) for sizes in shapes)
        raise ValueError(f"{name} must be of shape {accepted}, not {shape(given)}")
    return given


def _check_device(name: str, given: Tensor, query: Tensor) -> None:
    if given.device != query.device:
        raise ValueError(
            f"{name} must be on the device of query, {query.device}, not on {given.device}"
        )


def checked_range(name: str, given: Tensor, dtype: torch.dtype, *, finite: bool) -> Tensor:
    """`given`, floating, with numbers of at most −`largest_added` for inputs of this dtype replaced
    by −∞; raises ValueError for NaN, +∞, and larger numbers, with `finite` also for −∞ and numbers
    that count as such."""
    some = _unexpand(given)
    if finite and not bool(some.isfinite().all()):
        raise ValueError(f"{name} must hold finite numbers, and holds NaN or ∞")
    if not bool((some < torch.inf).all()):
        raise ValueError(f"{name} must hold numbers or −∞, and holds NaN or +∞")
    limit = largest_added(dtype)
    if torch.finfo(given.dtype).max < limit:
        return given
    if not bool((some.abs() if finite else some).lt(limit).logical_or(some == -torch.inf).all()):
        raise ValueError(
            f"{name} must hold numbers below {limit:.2g} for query of {dtype}, and holds "
            f"{float(some.abs().max() if finite else some.max()):.2g}"
        )
    low = (some <= -limit) & (some != -torch.inf)
    if not bool(low.any()):
        return given
    return some.masked_fill(low, -torch.inf).expand_as(given)


def unchecked_range(name: str, given: Tensor, dtype: torch.dtype, *, finite: bool) -> Tensor:
    """`checked_range` without looking at the numbers: it waits for nothing and refuses nothing."""
    limit = largest_added(dtype)
    if finite or torch.finfo(given.dtype).max < limit:
        return given
    some = _unexpand(given)
    return some.masked_fill(some <= -limit, -torch.inf).expand_as(given)


def _unexpand(given: Tensor) -> Tensor:
    """An expanded tensor without its repetitions."""
    for dim, stride in enumerate(given.stride()):
        if stride == 0 and given.shape[dim] > 1:
            given = given.narrow(dim, 0, 1)
    return given


def _as_float(name: str, given: object) -> float:
    """A real number as a float, ±∞ for one beyond them; raises TypeError for anything else."""
    # NumPy's scalars are such numbers too.
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise TypeError(f"{name} must be a number or None, not {describe(given)}")
    number: Any = given  # `numbers` does not annotate the order of reals.
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def check_softcap(softcap: object, scale: float, dtype: torch.dtype) -> None:
    """Raises TypeError or ValueError unless `softcap` is None or a finite number above 0 with which
    the implementations can compute: softcap · log₂e and `scale` / softcap are finite in the dtype
    that `dtype` is computed in."""
    if softcap is None:
        return
    cap = _as_float("softcap", softcap)
    if not 0.0 < cap < math.inf:
        raise ValueError(f"softcap must be finite and above 0, not {cap}")
    wide = compute_dtype(dtype)
    most = torch.finfo(wide).max
    if cap > most * math.log(2.0):
        raise ValueError(f"softcap must be finite in {wide}, times log₂e too, not {cap}")
    if abs(scale) > most * min(cap, 1.0) and abs(scale) / cap > most:
        raise ValueError(
            f"softcap must be so large that scale / softcap is finite in {wide}, not {cap} with "
            f"scale {scale}"
        )


def check_scale(scale: object, dtype: torch.dtype) -> None:
    """Raises TypeError or ValueError unless `scale` is None or a number that is finite in the dtype
    that `dtype` is computed in, and times log₂e too: the implementations compute in base 2."""
    if scale is None:
        return
    number, wide = _as_float("scale", scale), compute_dtype(dtype)
    if not abs(number) <= torch.finfo(wide).max * math.log(2.0):
        raise ValueError(f"scale must be finite in {wide}, times log₂e too, not {number}")


def is_whole(given: object) -> bool:
    """Whether it is a whole number: Python's, NumPy's, or one that `torch.export` stands for."""
    return isinstance(given, numbers.Integral | torch.SymInt) and not isinstance(given, bool)


def whole(number: Any) -> int:
    """A number that `is_whole` as an int; a symbol of `torch.export` as it is."""
    symbolic: bool = isinstance(number, torch.SymInt)
    return number if symbolic else int(number)


def check_window(window: object) -> None:
    """Raises TypeError or ValueError unless `window` is a pair of whole numbers from 0 on, or None
    for no bound."""
    if not isinstance(window, tuple | list) or len(window) != 2:
        raise TypeError(f"window must be a pair (left, right), not {describe(window)}")
    for side, bound in zip(("left", "right"), window, strict=True):
        if bound is None:
            continue
        if not is_whole(bound):
            raise TypeError(
                f"the {side} of window must be a whole number or None, not {describe(bound)}"
            )
        if bound < 0:
            raise ValueError(
                f"the {side} of window must be at least 0 or None (no bound), not {describe(bound)}"
            )
