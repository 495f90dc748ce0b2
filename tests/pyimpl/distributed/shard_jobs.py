"""Jobs of the pool's processes beside attention of their parts: calls that are refused, that end,
whose messages are logged, compiled, decoding."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial, wraps
from typing import Any
from unittest import mock

import torch
import torch.distributed as dist
from shard_cases import Case, mesh_of, plant
from torch.utils.checkpoint import checkpoint

import pyimpl.distributed
from pyimpl.distributed import Shards
from pyimpl.distributed.internal import ring
from pyimpl.distributed.internal.passing import Carousel, Posted, Processes


def refusal_of_changes(
    rank: int, group: dist.ProcessGroup, changes: dict[int, dict[str, Any]], function: str
) -> str:
    """The error of a call in which the processes of `changes` give something else: a job."""
    made = Case((5, 5), kv_heads=4).make(dist.get_world_size(group))
    given: dict[str, Any] = {
        "query": made.shards.take(made.query, rank),
        "key": made.shards.take(made.key, rank),
        "value": made.shards.take(made.value, rank),
        "shards": made.shards,
    }
    for name, change in changes.get(rank, {}).items():
        given[name] = change(given.get(name)) if callable(change) else change
    try:
        getattr(pyimpl.distributed, function)(**given, group=group)
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def single(x: torch.Tensor) -> torch.Tensor:
    return x.float()


def shorter(x: torch.Tensor) -> torch.Tensor:
    return x[:, :, 1:]


def narrower(x: torch.Tensor) -> torch.Tensor:
    return x[..., 1:]


def require_grad(x: torch.Tensor) -> torch.Tensor:
    return x.requires_grad_()


ALL_SINGLE = {"query": single, "key": single, "value": single}
# The argument that process 1 gives, the error there, and the error in process 0.
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"key": single}, "TypeError: key must have the dtype of query", "refuses its arguments: key"),
    (ALL_SINGLE, "ValueError: the dtype of query, key and value must be the same in every process "
     "of the group, not torch.float64 in process 0 and torch.float32 in process 1", "ValueError: "),
    ({"query": shorter}, "ValueError: query must have the length that shards give process 1, 2, "
     "not 1", "process 1 of the group refuses its arguments: query must have"),
    ({"value": narrower}, "the last dimension of value must be the same", "not 3 in process 0 and"),
    ({"is_causal": True}, "the window with is_causal must be the same", "(None, 0) in process 1"),
    ({"scale": 2.0}, "scale must be the same", "and 2.0 in process 1"),
    ({"query": require_grad}, "whether a gradient is asked for must be the same", "not False in"),
    ({"dropout_p": 0.5}, "dropout_seed must be given, the same in every process", "refuses its"),
    ({"dropout_p": 0.5, "dropout_seed": 1}, "dropout_p must be the same", "0.5 in process 1"),
    ({"sinks": torch.zeros(4)}, "whether there is sinks must be the same", "True in process 1"),
    ({"cu_seqlens": [0, 5]}, "cu_seqlens must be the same", "and (0, 5) in process 1"),
    ({"cu_seqlens": [0, 4]}, "cu_seqlens must rise from 0 to the length of the sequence, 5", "not"),
    ({"shards": None}, "TypeError: shards must be Shards, such as Shards.zigzag, not None", "1"),
    ({"shards": Shards.contiguous(5, 3)}, "shards must be of the 2 processes of the group", "not"),
    ({"shards": Shards.of_lengths([3, 2])}, "no error", "no error"),
    ({"shards": Shards.of_places([torch.tensor([0, 1, 4]), torch.tensor([2, 3])])},
     "shards must be the same in every process", "shards must be the same in every process"),
    ({"attn_mask": torch.ones(2, 4, dtype=torch.bool)}, "attn_mask must be broadcastable", "1"),
    ({"bias": torch.tensor(torch.nan)}, "bias must hold numbers or −∞, and holds NaN", "refuses"),
    ({"dropout_p": 0.5, "dropout_seed": 1, "backend": "triton", "shards": Shards.striped(5, 2)},
     "NotImplementedError: dropout_p above 0 is supported by the backend 'triton' for", "refuses"),
]  # fmt: skip


def twice_differentiated(rank: int, group: dist.ProcessGroup) -> str:
    """A job: the error of a second derivative."""
    made = Case((5, 5)).make(dist.get_world_size(group))
    q, k, v = (
        made.shards.take(x, rank).requires_grad_() for x in (made.query, made.key, made.value)
    )
    out = pyimpl.distributed.ring_attention(q, k, v, shards=made.shards, group=group)
    try:
        torch.autograd.grad(out.sum(), q, create_graph=True)
    except NotImplementedError as error:
        return str(error)
    return "no error"


def decode(
    rank: int, group: dist.ProcessGroup, case: Case, changes: dict[str, Any], fault: Any = None
) -> Any:
    """A job: a decoding step over the part of the cache that a process holds; or its error."""
    made = case.make(dist.get_world_size(group))
    key, value = (made.key_shards.take(x, rank) for x in (made.key, made.value))
    given = {"query": made.query, **made.options, **case.numbers}
    if rank == 1:
        given |= {name: change(given.get(name)) for name, change in changes.items()}
    try:
        with plant(pyimpl.distributed, fault) as package:
            return package.decode_attention(
                key=key, value=value, key_shards=package.Shards(made.key_shards.places),
                group=group, enable_gqa=True, return_lse=True, **given,
            )  # fmt: skip
    except (ValueError, NotImplementedError) as error:
        return str(error)


def halve(x: torch.Tensor) -> torch.Tensor:
    return x / 2


def log_messages(rank: int, group: dist.ProcessGroup) -> list[str]:
    """A job: in which order messages are posted, waited for, and computed beside."""
    events: list[str] = []

    def note(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call_and_note(*args: Any, **named: Any) -> Any:
            events.append(name)
            return function(*args, **named)

        return call_and_note

    made = Case((9, 9)).make(dist.get_world_size(group))
    q, k, v = (
        made.shards.take(x, rank).requires_grad_() for x in (made.query, made.key, made.value)
    )
    with (
        mock.patch.object(Processes, "start", note("post", Processes.start)),
        mock.patch.object(Posted, "wait", note("wait", Posted.wait)),
        mock.patch.object(ring, "forward", note("compute", ring.forward)),
        mock.patch.object(ring, "backward", note("compute", ring.backward)),
    ):
        out = pyimpl.distributed.ring_attention(q, k, v, shards=made.shards, group=group)
        events.append("then")
        out.sum().backward()
    return events


def by_mesh(rank: int, group: dist.ProcessGroup) -> list[str]:
    """A job: a mesh for a group, and the errors of those of too many dimensions."""
    made = Case((9, 9)).make(4)
    own = [made.shards.take(x, rank) for x in (made.query, made.key, made.value)]
    attend = partial(pyimpl.distributed.ring_attention, *own, shards=made.shards)
    expected = attend(group=group)
    assert torch.equal(attend(group=mesh_of(4)), expected)
    assert torch.equal(attend(), expected)
    errors = []
    for name, shape in (("ring_attention", (2, 2)), ("ulysses_attention", (2, 2, 1))):
        try:
            getattr(pyimpl.distributed, name)(*own, shards=made.shards, group=mesh_of(*shape))
        except ValueError as error:
            errors.append(str(error))
    return errors


def run_compiled(rank: int, group: dist.ProcessGroup, function: str) -> bool:
    """A job: whether outputs and gradients are the same compiled, and of a checkpoint."""
    made = Case((8, 8), kv_heads=2).make(dist.get_world_size(group))
    leaves = [
        made.shards.take(x, rank).requires_grad_() for x in (made.query, made.key, made.value)
    ]

    def layer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        attend = getattr(pyimpl.distributed, function)
        return 2.0 * attend(q + 1.0, k, v, shards=made.shards, group=group, is_causal=True)

    found = []
    for way in (
        layer,
        torch.compile(layer, backend="aot_eager"),
        partial(checkpoint, layer, use_reentrant=False),
    ):
        out = way(*leaves)
        found.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    return all(all(map(torch.equal, found[0], other)) for other in found[1:])


def end_early(rank: int, group: dist.ProcessGroup) -> str:
    """A job in which process 1 ends where the keys are passed on."""
    made = Case((6, 6)).make(dist.get_world_size(group))
    own = [made.shards.take(x, rank) for x in (made.query, made.key, made.value)]
    if rank == 1:
        Carousel.pass_on = lambda *_: os._exit(3)
    try:
        pyimpl.distributed.ring_attention(*own, shards=made.shards, group=group)
    except RuntimeError as error:
        return str(error)
    return "no error"


def skip_the_call(rank: int, group: dist.ProcessGroup) -> str:
    """A job in which process 1 does not call."""
    made = Case((6, 6)).make(dist.get_world_size(group))
    own = [made.shards.take(x, rank) for x in (made.query, made.key, made.value)]
    if rank == 1:
        return ""
    try:
        pyimpl.distributed.ring_attention(*own, shards=made.shards, group=group, check=False)
    except RuntimeError as error:
        return str(error)
    return "no error"
