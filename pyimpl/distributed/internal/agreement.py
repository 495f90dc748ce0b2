"""Whether all processes of a group were asked for the same: they exchange a small description of
the arguments before anything else, and an error in one process is one in all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor

from pyimpl.distributed.internal.passing import Grid, Processes
from pyimpl.internal.arguments import check_bool

# The values that must be the same in every process, by the names that messages give them.
Description = dict[str, Any]
T = TypeVar("T")


def agree(
    function: str,
    processes: Processes | Grid,
    check: bool,
    prepare: Callable[[], T],
    describe: Callable[[T], Description],
) -> T:
    """The result of `prepare`, which `describe` has to describe alike in every process, all of
    which call `function`; without `check` no other process is asked.

    Raises the error of `prepare` here, and in the other processes ValueError, which says so.
    """
    if not check or processes.count == 1:
        return prepare()
    error: Exception | None = None
    prepared: list[T] = []
    description: Description = {}
    try:
        prepared = [prepare()]
        description = {"the function": function, **describe(prepared[0])}
    except Exception as refusal:
        error = refusal
    mine = {"refusal": None if error is None else str(error), **description}
    found = processes.gather(mine)
    if error is not None:
        raise error
    for rank, other in enumerate(found):
        if other["refusal"] is not None:
            raise ValueError(
                f"process {rank} of the group refuses its arguments: {other['refusal']}"
            )
    for name, first in found[0].items():
        for rank, other in enumerate(found):
            if other.get(name) != first:
                raise ValueError(
                    f"{name} must be the same in every process of the group, not {first} in "
                    f"process 0 and {other.get(name)} in process {rank}"
                )
    return prepared[0]


def is_checked(check: bool | None, query: object) -> bool:
    """Whether the processes ask each other: `check`, or, for None, unless a tensor on another
    device than a CPU would have to be waited for."""
    if check is not None:
        check_bool("check", check)
        return check
    return not isinstance(query, Tensor) or query.device.type == "cpu"


def digest(tensor: Tensor | None) -> str | None:
    """A short text that differs where tensors do; None for none."""
    if tensor is None:
        return None
    given = tensor.detach().cpu().contiguous()
    found = hashlib.sha256(f"{given.dtype} {list(given.shape)}".encode())
    if given.numel():
        found.update(given.view(-1).view(torch.uint8).numpy().tobytes())
    return found.hexdigest()[:8]
