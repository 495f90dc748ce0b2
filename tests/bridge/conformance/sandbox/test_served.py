"""Tests of a function's process around a call."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from bridge.conformance.inside import served

CALL: dict[str, Any] = {
    "device": "cpu", "differentiate": ["query"], "padded": [], "same_memory": False,
    "arguments": [{"tensor": "query"}], "options": {}, "record": False, "cache": None, "show": [],
}  # fmt: skip


def test_numbers_are_taken_before_anything_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU a comparison can wait for a stream that is still to write them."""
    query, found = torch.ones(2, 3), torch.zeros(2, 3)

    class Late(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return found

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Tensor:
            return found

    def compare(*_: Tensor) -> bool:
        found.fill_(1.0)
        return True

    monkeypatch.setattr(served, "_is_unchanged", compare)
    session = served.Session()
    session.function = Late.apply
    _, _, numbers = session.call(CALL, {"query": query})
    assert found.all()
    assert not numbers["result"].any()
    found.zero_()
    _, _, numbers = session.differentiate({"by": ["query"]}, {"result": query})
    assert found.all()
    assert not numbers["query"].any()
