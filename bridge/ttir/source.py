"""The TTIR of a kernel's launch, made offline: no GPU and no driver.

TTIR is Triton's intermediate representation before anything is specific to a device. Which
arguments become constants is decided by Triton's own binder, the one that a launch calls, so the
text is that of the kernel which such a launch runs.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import triton
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.compiler.compiler import make_backend
from triton.runtime.jit import create_function_from_signature

from pyimpl.backends.kernels.parts.launch import Launch


@dataclass(frozen=True)
class Source:
    """TTIR as text, with locations, and the kernel's arguments that are left at run time.

    arguments: by name, in the order of the function's parameters; a member of a tuple is named
    `tuple.member`, or `tuple.0` where the members have no names.
    """

    text: str
    arguments: dict[str, Any]


def of_launch(launch: Launch, arch: int = 90) -> Source:
    """The TTIR that `launch` runs on compute capability `arch` (90 is 9.0); its tensors may be
    without memory (device "meta").

    Raises:
        ValueError: Triton interprets its kernels in this process.
        triton.CompilationError: the kernel does not compile.
    """
    options = {"num_warps": launch.num_warps, "num_stages": launch.num_stages}
    return of_kernel(launch.kernel, {**launch.arguments, **launch.constants}, options, arch)


def of_kernel(
    kernel: Any, arguments: Mapping[str, Any], options: Mapping[str, Any], arch: int = 90
) -> Source:
    """The source of any function under `triton.jit`, as `of_launch` gives that of a launch.

    arguments: those of the function by name, compile-time ones among them; options: Triton's own,
    such as `num_warps`. Below capability 90 tensor descriptors are lowered to pointers. Of calls
    that Triton itself would compile once, the text is made once.
    """
    if not isinstance(kernel, triton.JITFunction):
        raise ValueError(
            "kernel must be a function that Triton compiles, "
            f"not {type(kernel).__name__} (with TRITON_INTERPRET=1 it compiles none)"
        )
    target = GPUTarget("cuda", arch, 32)
    backend = make_backend(target)
    binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    bound, specialization, given = binder(**arguments, **options)
    parsed, signature, constants, attributes = kernel._pack_args(
        backend, given, bound, specialization, given
    )
    source = ASTSource(kernel, signature, constants, attributes)
    text = _text(_Compilation(kernel, arch, source.hash(), parsed.hash(), source, backend, parsed))
    left: dict[str, Any] = {}
    for name, value in bound.items():
        left |= _at_run_time(name, value, signature[name])
    return Source(text, left)


@dataclass(frozen=True)
class _Compilation:
    """Compilations of one kernel are the same where Triton's hashes of them are."""

    kernel: triton.JITFunction[Any]
    arch: int
    source_hash: str
    options_hash: str
    source: ASTSource = field(compare=False)
    backend: Any = field(compare=False)
    options: Any = field(compare=False)


@functools.lru_cache(maxsize=64)
def _text(wanted: _Compilation) -> str:
    backend, options = wanted.backend, wanted.options
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    module = wanted.source.make_ir(
        backend.target, options, backend.get_codegen_implementation(options),
        backend.get_module_map(), context,
    )  # fmt: skip
    text: str = backend.make_ttir(module, {}, options, wanted.arch).str()
    return text


def _at_run_time(name: str, value: Any, kind: Any) -> dict[str, Any]:
    """The members of an argument that are no constants; `kind` is its part of the signature."""
    if kind == "constexpr":
        return {}
    if not isinstance(kind, tuple):
        return {name: value}
    members: Iterator[str] = iter(getattr(value, "_fields", map(str, range(len(kind)))))
    found: dict[str, Any] = {}
    for member, part, inner in zip(members, value, kind, strict=True):
        found |= _at_run_time(f"{name}.{member}", part, inner)
    return found
