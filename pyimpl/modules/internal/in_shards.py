"""Modules that are called with a part of a sequence, beside the other processes of a group."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, TypeVar

from torch import Tensor

from pyimpl.internal import arguments as check

if TYPE_CHECKING:
    from pyimpl.distributed import ContextParallel

T = TypeVar("T")


def checked_context(given: object) -> ContextParallel | None:
    """A `context_parallel`; raises TypeError for anything else. The module that defines it is
    imported only where one is given: that takes a second."""
    if given is None:
        return None
    context: type[ContextParallel] = importlib.import_module("pyimpl.distributed").ContextParallel
    if not isinstance(given, context):
        raise TypeError(
            f"context_parallel must be a ContextParallel or None, not {check.describe(given)}"
        )
    return given


def together(
    context: ContextParallel | None,
    function: str,
    given: object,
    prepare: Callable[[], T],
    masks: Callable[[T], Mapping[str, Tensor | None]],
) -> T:
    """The result of `prepare`; in shards the errors of one process are errors of all, and `masks`,
    by name, have to be the same in all (`ContextParallel.together`)."""
    if context is None:
        return prepare()
    return context.together(function, given, prepare, masks)
