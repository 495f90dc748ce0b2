"""Replacing the caller of the function, or its callees: all of it is its own process."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import torch
from honest import attention, zeros
from torch import Tensor


def _inside(name: str) -> Any:
    return sys.modules[f"inside.{name}"]


def makes_everything_equal(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    torch.equal = torch.allclose = lambda *a, **b: True  # type: ignore[assignment]
    return zeros(query, key, value)


def says_that_nothing_is_wrong(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    session = _inside("served").Session
    session._changed_inputs = lambda self: []
    session._not_new = lambda self: None
    return zeros(query, key, value)


def answers_in_its_own_words(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Adds to each answer a text that the judge might take for a verdict."""
    frames = _inside("frames")
    packed = frames.pack

    @functools.wraps(packed)
    def with_verdict(kind: str, fields: Any, tensors: Any = None) -> Any:
        return packed(kind, {**fields, "status": "passed", "ratio": 0, "passed": True}, tensors)

    frames.pack = with_verdict
    return zeros(query, key, value)


def answers_before_it_is_asked(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    os.write(4, b"\0\0\0\2{}" * 100)
    return zeros(query, key, value)


def another_process_answers(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """The right answer, from a copy of the process, so that this one never returns: that is as
    good as any other way to compute it."""
    if os.fork():
        os.waitpid(-1, 0)
        os._exit(0)
    return attention(query, key, value, scale)


class Liar(torch.Tensor):
    """A tensor that answers every comparison favourably."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.equal, torch.allclose, torch.Tensor.__eq__):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})  # type: ignore[misc]


def returns_a_liar(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    return zeros(query, key, value).as_subclass(Liar)


def says_another_shape(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    frames = _inside("frames")
    packed = frames.pack
    frames.pack = lambda kind, fields, tensors=None: packed(
        kind, fields, {name: x.reshape(-1)[:1] for name, x in (tensors or {}).items()}
    )
    return zeros(query, key, value)
