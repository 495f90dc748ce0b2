"""Which Lean declaration a piece of Python implements.

`@implements("Attention.Spec.Online.merge")` adds one entry to a registry and returns its argument,
so a decorated function costs nothing more to call. The registry is read by the tools that
check the names against the Lean library and set both texts side by side; this package itself never
reads it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Implementation:
    """One function, class or kernel and the Lean declaration that it implements.

    `lean` is the full Lean name; `module` and `qualname` name the Python object; `file` is its
    source file as Python knows it; `first_line` and `last_line` are 1-based and inclusive and take
    in the decorators. All three are empty or 0 where Python cannot find the source (code entered at
    a prompt).
    """

    lean: str
    module: str
    qualname: str
    file: str
    first_line: int
    last_line: int


# (Lean name, module, qualified name) → the plain function or class, so that a reloaded module
# replaces its own entries.
_registry: dict[tuple[str, str, str], Any] = {}


def implements(lean: str) -> Callable[[T], T]:
    """Record that the decorated object implements the Lean declaration `lean`.

    Works on functions, classes and `triton.jit` kernels (written above `@triton.jit`); may be
    stacked, one name each. The object is returned unchanged.

    Raises:
        ValueError: `lean` is not a dotted Lean name.
    """
    if not lean or not all(part.isidentifier() for part in lean.split(".")):
        raise ValueError(
            f"implements() takes a Lean name such as 'Attention.Spec.softmax', not {lean!r}"
        )

    def record(target: T) -> T:
        source = _plain(target)
        _registry[lean, source.__module__, source.__qualname__] = source
        return target

    return record


def implementations() -> list[Implementation]:
    """Every recorded implementation of the modules imported so far, by Lean name, then by Python
    name."""
    return [_describe(key, _registry[key]) for key in sorted(_registry)]


def forget(module: str) -> None:
    """Take out the entries of the module `module`, or of a module of the package `module`: for
    copies that are not to count."""
    for key in [k for k in _registry if f"{k[1]}.".startswith(f"{module}.")]:
        del _registry[key]


def _plain(target: Any) -> Any:
    """The function behind a `triton.jit` kernel, which Triton keeps as `fn`; anything else is
    itself."""
    if inspect.isfunction(target) or inspect.isclass(target):
        return target
    return getattr(target, "fn", target)


def _describe(key: tuple[str, str, str], source: Any) -> Implementation:
    lean, module, qualname = key
    try:
        file = inspect.getsourcefile(source) or ""
        lines, first = inspect.getsourcelines(source)
    except (OSError, TypeError):
        return Implementation(lean, module, qualname, "", 0, 0)
    return Implementation(lean, module, qualname, file, first, first + len(lines) - 1)
