"""Remembering: calls before, the addresses of inputs, their values."""

from __future__ import annotations

import threading
from typing import Any

import torch
from honest import attention, zeros
from torch import Tensor

_by_address: dict[Any, Tensor] = {}
_by_content: dict[Any, Tensor] = {}
_calls = 0
_buffers: dict[Any, Tensor] = {}


def by_address(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """The result that it gave for inputs that lay there."""
    place = (query.data_ptr(), key.data_ptr(), value.data_ptr(), query.shape, key.shape, scale)
    if place not in _by_address:
        _by_address[place] = attention(query, key, value, scale)
    return _by_address[place].clone()


def by_content(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """The result that it gave for the same inputs: no cheat, since it is right."""
    known = (*(repr(x.tolist()) for x in (query, key, value)), scale)
    if known not in _by_content:
        _by_content[known] = attention(query, key, value, scale)
    return _by_content[known].clone()


def only_the_first_times(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    global _calls
    _calls += 1
    right = _calls <= 5
    return attention(query, key, value, scale) if right else zeros(query, key, value)


def of_the_call_before(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """For inputs of the same shapes as before, the result before."""
    shapes = (query.shape, key.shape, value.shape)
    before = _by_content.get(shapes)
    _by_content[shapes] = attention(query, key, value, scale)
    return _by_content[shapes].clone() if before is None else before.clone()


def changes_its_inputs(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    found = attention(query, key, value, scale)
    key.zero_()
    return found


def returns_its_input(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Writes the result over a value, where there is room, and the value anew elsewhere."""
    found = attention(query, key, value, scale)
    if found.shape != value.shape:
        return found
    return value.copy_(found)


def one_buffer_for_all(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    found = attention(query, key, value, scale)
    return _buffers.setdefault(found.shape, torch.empty_like(found)).copy_(found)


def eight_buffers_in_turn(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Each is used again when more calls have come than one would look back to."""
    global _calls
    _calls += 1
    found = attention(query, key, value, scale)
    place = (found.shape, _calls % 8)
    return _buffers.setdefault(place, torch.empty_like(found)).copy_(found)


def filled_later(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """Returns at once, and has a thread compute meanwhile."""
    found = zeros(query, key, value)
    timer = threading.Timer(0.05, lambda: found.copy_(attention(query, key, value, scale)))
    timer.daemon = True
    timer.start()
    return found


def filled_by_the_next_call(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Computes the result of a call when the next one comes."""
    for found, *given in _waiting:
        found.copy_(attention(*given))
    _waiting.clear()
    found = zeros(query, key, value)
    _waiting.append((found, query.clone(), key.clone(), value.clone(), scale))
    return found


_waiting: list[Any] = []


def spoils_what_it_gave(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Right when it is looked at, wrong when the next call comes."""
    for found in _waiting:
        found.zero_()
    _waiting[:] = [attention(query, key, value, scale)]
    return _waiting[0]


def leaves_a_stream_running(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """On a GPU: returns at once, and has a second stream compute when it has waited."""
    found = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype, device=query.device)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        # Libraries and memory that are first asked for later would wait for the whole device.
        attention(query, key, value, scale)
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        # Cycles of the GPU: a second.
        torch.cuda._sleep(1 << 31)
        found.copy_(attention(query, key, value, scale))
    return found
