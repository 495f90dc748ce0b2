"""Functions of shards of which the last process does not do as the others do."""

from __future__ import annotations

import functools
import os
import signal
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def right(
    query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup, scale: float | None = None
) -> Tensor:
    """All keys in every process; for shards of one length, without gradients."""
    count = dist.get_world_size(group)
    keys, values = ([torch.empty_like(x) for _ in range(count)] for x in (key, value))
    dist.all_gather(keys, key, group)
    dist.all_gather(values, value, group)
    return scaled_dot_product_attention(
        query, torch.cat(keys, 2), torch.cat(values, 2), scale=scale
    )


def but_the_last(act: Callable[[Tensor, Tensor], Tensor | None]) -> Callable[..., Tensor | None]:
    """`right`; in the last process, the result of this for the output and the key."""

    @functools.wraps(right)
    def function(
        query: Tensor, key: Tensor, value: Tensor, group: dist.ProcessGroup,
        scale: float | None = None,
    ) -> Tensor | None:  # fmt: skip
        last = dist.get_rank(group) == dist.get_world_size(group) - 1
        if last and act in EARLY:
            return act(query, key)
        out = right(query, key, value, group, scale)
        return act(out, key) if last else out

    return function


def _end(query: Tensor, key: Tensor) -> Tensor:
    os._exit(3)


def _crash(query: Tensor, key: Tensor) -> Tensor:
    os.kill(os.getpid(), signal.SIGSEGV)
    return query


def _hang(query: Tensor, key: Tensor) -> Tensor:
    time.sleep(1e6)
    return query


def _raise(query: Tensor, key: Tensor) -> Tensor:
    raise IndexError("too far")


def _zero(out: Tensor, key: Tensor) -> Tensor:
    key.zero_()
    return out


# These do so before they talk to the others.
EARLY = (_end, _crash, _hang, _raise)
ends, crashes, hangs, raises = map(but_the_last, EARLY)
changes_its_key = but_the_last(_zero)
returns_fewer_rows = but_the_last(lambda out, key: out[:, :, 1:].clone())
returns_nothing = but_the_last(lambda out, key: None)
returns_half = but_the_last(lambda out, key: out.half())
