"""Triton's interpreter, made faster with the same results, and with a check for overflow.

The interpreter spends its time in Python and not in NumPy. It patches `triton.language` at
each call of a device function, builds the same types again and again, and computes for each integer
sum, in a dozen tensors, whether it overflows, only to drop the answer (its option `debug` is off).
`install` exchanges these functions for ones with the same results, where Triton is one of
`VERSIONS` and has the names that they go by; any other Triton is left as it is.

One thing is added: overflow counts. A sum, difference or product of integers narrower than 64 bits
that leaves their range raises OverflowError, as wrapped index arithmetic would read a wrong address
on a GPU. Operations that may wrap say `sanitize_overflow=False`, as Triton's Philox does.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls
# (the arguments are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import functools
import importlib
import operator
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

# The versions in which tests compare the bits of results with and without the exchange.
VERSIONS = ("3.6.0", "3.7.1")


class _Exchange(NamedTuple):
    """An attribute of a module or class of Triton, and its replacement."""

    owner: Any
    name: str
    value: Any


# Functions that undo the exchanges made in this process, in their order.
_undo: list[Callable[[], None]] = []


def install() -> str | None:
    """Exchange the slow functions of Triton's interpreter in this process. A second call does
    nothing, nor does one where TRITON_INTERPRET does not ask for the interpreter.

    Returns a sentence that says why an interpreter that is asked for is left as it is, else None.
    """
    asked = os.environ.get("TRITON_INTERPRET", "").lower() in ("1", "true", "yes", "on", "y")
    if is_installed() or not asked:
        return None
    try:
        triton = importlib.import_module("triton")
    except ImportError as error:
        return f"Triton cannot be imported: {error}"
    if triton.__version__ not in VERSIONS:
        return (
            f"Triton's interpreter runs as it is, slowly and without a check of overflow: the "
            f"faster one is for Triton {' and '.join(VERSIONS)}, not {triton.__version__}"
        )
    try:
        exchanges = _exchanges(
            importlib.import_module("triton.runtime.interpreter"),
            importlib.import_module("triton.language.semantic").TritonSemantic,
            importlib.import_module("triton.language.core"),
        )
        originals = [getattr(one.owner, one.name) for one in exchanges]
    except (ImportError, AttributeError) as error:
        return (
            f"Triton's interpreter runs as it is, slowly and without a check of overflow: {error}"
        )
    for one, original in zip(exchanges, originals, strict=True):
        setattr(one.owner, one.name, one.value)
        _undo.append(functools.partial(setattr, one.owner, one.name, original))
    return None


def is_installed() -> bool:
    """Whether this process runs with the exchanged functions."""
    return bool(_undo)


def uninstall() -> None:
    """Give Triton's interpreter its own functions back."""
    while _undo:
        _undo.pop()()


def _exchanges(interpreter: ModuleType, semantic: Any, core: ModuleType) -> list[_Exchange]:
    return [
        *_language(interpreter),
        *_types(interpreter, core),
        *_operations(semantic, core),
    ]


def _language(interpreter: Any) -> list[_Exchange]:
    """`triton.language` is patched the first time that a function is seen, and stays so."""
    patch_whole = interpreter._patch_lang
    # After each launch Triton asks to undo the changes that it made.
    unchanged = interpreter._LangPatchScope()
    seen = set()

    def patch_lang(fn):
        if fn not in seen:
            _undo.append(patch_whole(fn).restore)
            seen.add(fn)
        return unchanged

    def patch_attr(obj, name, member, builder, scope):
        # A builtin is wrapped in a check that it is called in a kernel, as it is here.
        function = getattr(member, "__wrapped__", member)
        semantic = interpreter.interpreter_semantic

        def call(*args, **kwargs):
            kwargs["_semantic"] = semantic
            return function(*args, **kwargs)

        scope.set_attr(obj, name, call)

    return [
        _Exchange(interpreter, "_patch_lang", patch_lang),
        _Exchange(interpreter, "_patch_attr", patch_attr),
    ]


def _types(interpreter: Any, core: Any) -> list[_Exchange]:
    """Types and shapes are made once each, and the equal ones are one object."""
    find_np_dtype, unwrap_shape = interpreter._get_np_dtype, core._unwrap_shape
    dtype_equal = core.dtype.__eq__
    make_block, make_tensor = core.block_type.__init__, core.tensor.__init__
    np_dtypes: dict[str, Any] = {}
    # Triton's tuple of the sizes along the axes.
    shapes: dict[tuple[int, ...], Any] = {}
    # The other attributes of a block type, by element type and sizes.
    blocks: dict[tuple[str, tuple[int, ...]], dict[str, Any]] = {}
    # The shape of a type, kept alive, and a tensor's `numel` and `shape`, by the shape's id.
    tensors: dict[int, tuple[Any, Any, Any]] = {}

    def get_np_dtype(tt_dtype):
        found = np_dtypes.get(tt_dtype.name)
        if found is None:
            found = np_dtypes[tt_dtype.name] = find_np_dtype(tt_dtype)
        return found

    def equal(self, other):
        return self is other or dtype_equal(self, other)

    def init_block(self, element_ty, shape):
        kept = None
        if isinstance(shape, (list, core.tuple)):
            sizes = tuple(shape)
            if all(type(size) is int for size in sizes):
                kept = blocks.get((element_ty.name, sizes))
        if kept is None:
            make_block(self, element_ty, shape)
            sizes = tuple(self.shape)
            self.shape = shapes.setdefault(sizes, self.shape)
            kept = {name: value for name, value in vars(self).items() if name != "element_ty"}
            blocks[element_ty.name, sizes] = kept
        else:
            self.element_ty = element_ty
            vars(self).update(kept)

    def init_tensor(self, handle, type):
        shape = type.shape if type.is_block() else ()
        kept = tensors.get(id(shape))
        if kept is None:
            make_tensor(self, handle, type)
            tensors[id(shape)] = shape, self.numel, self.shape
        else:
            self.handle = handle
            self.type = type
            self.dtype = type.scalar
            _, self.numel, self.shape = kept

    def unwrapped_shape(shape):
        if type(shape) is list or type(shape) is tuple:
            return [
                size if type(size) is int else core._unwrap_if_constexpr(size) for size in shape
            ]
        return unwrap_shape(shape)

    return [
        _Exchange(interpreter, "_get_np_dtype", get_np_dtype),
        _Exchange(core.dtype, "__eq__", equal),
        _Exchange(core.block_type, "__init__", init_block),
        _Exchange(core.tensor, "__init__", init_tensor),
        _Exchange(core, "_unwrap_shape", unwrapped_shape),
    ]


# Of integers, and of arrays of int64: exact for operands of 32 bits but for products of two
# unsigned ones, which become negative where they leave int64.
_EXACT = {"add": operator.add, "sub": operator.sub, "mul": operator.mul}


def _operations(semantic: Any, core: Any) -> list[_Exchange]:
    """Operands of one type need no conversion, those of one shape no broadcasting; bounds of
    integers are computed in NumPy."""
    convert = semantic.binary_op_type_checking_impl
    broadcast = semantic.broadcast_impl_value

    def convert_operands(
        self,
        lhs,
        rhs,
        allow_lhs_ptr=False,
        allow_rhs_ptr=False,
        arithmetic_check=True,
        div_or_mod=False,
    ):
        if (
            # Division takes halves to float32.
            not div_or_mod
            and type(lhs) is core.tensor
            and type(rhs) is core.tensor
            and lhs.dtype is rhs.dtype
            # Not a pointer.
            and type(lhs.dtype) is core.dtype
        ):
            return self.broadcast_impl_value(lhs, rhs)
        return convert(self, lhs, rhs, allow_lhs_ptr, allow_rhs_ptr, arithmetic_check, div_or_mod)

    def broadcast_unequal(self, lhs, rhs):
        # Equal shapes are one object, see `_types`.
        return (lhs, rhs) if lhs.shape is rhs.shape else broadcast(self, lhs, rhs)

    def check_overflow(self, lhs, rhs, binary_op):
        scalar, name = lhs.dtype, binary_op.__name__
        if scalar.int_bitwidth >= 64 or not self.builder.options.sanitize_overflow:
            return
        a, b = lhs.handle.data, rhs.handle.data
        if a.size == 1 and b.size == 1:
            low = high = _EXACT[name](int(a.item()), int(b.item()))
        else:
            result = _EXACT[name](a.astype(np.int64), b.astype(np.int64))
            low, high = result.min(), result.max()
        if low < scalar.get_int_min_value() or high > scalar.get_int_max_value():
            raise OverflowError(f"{scalar.name} overflow detected for operation {name}")

    return [
        _Exchange(semantic, "binary_op_type_checking_impl", convert_operands),
        _Exchange(semantic, "broadcast_impl_value", broadcast_unequal),
        _Exchange(semantic, "binary_op_sanitize_overflow_impl", check_overflow),
    ]
