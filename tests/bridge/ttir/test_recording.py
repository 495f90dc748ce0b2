"""PyTorch's work between launches is followed: integers are known, sums and copies recorded."""

from __future__ import annotations

import pytest
import torch

from bridge.proving.recorded import Computed
from bridge.proving.recording import Recording


def test_integers_are_known_on_the_host() -> None:
    with Recording(90) as recording:
        begins = torch.tensor([0, 3, 7], dtype=torch.int32, device="cuda")
        lengths = begins[1:] - begins[:-1]
        assert begins.is_cuda
        assert int(lengths.max()) == 4
        assert lengths.tolist() == [3, 4]
        assert bool((lengths > 2).all())
        table = torch.zeros(2, 4, dtype=torch.int64, device="cuda")
        table[1, 2:].fill_(5)
        table[0] += torch.arange(4, device="cuda")
        repeated = torch.repeat_interleave(torch.arange(2).cuda(), lengths)
        sent = list(recording.storages_to_send())
        assert sent[recording.view(table).storage].detail == (0, 1, 2, 3, 0, 0, 5, 5)
        assert sent[recording.view(repeated).storage].detail == (0, 0, 0, 1, 1, 1, 1)
        # A view's numbers are its storage's.
        assert sent[recording.view(begins[1:]).storage].detail == (0, 3, 7)


def test_numbers_that_no_one_knows_are_not_told() -> None:
    with Recording(90) as recording:
        x = torch.empty(3, device="cuda")
        drawn = torch.randint(0, 9, (3,), device="cuda")
        for tensor in (x > 0, drawn, torch.zeros(3, dtype=torch.int32, device="cuda") + drawn):
            with pytest.raises(RuntimeError, match="meta tensor"):
                tensor.tolist()
        origins = [storage.origin for storage in recording.storages_to_send()]
        assert origins[:3] == ["empty", "computed", "computed"]


def test_an_integer_that_changes_after_a_kernel_was_told_of_it_is_not_known() -> None:
    with Recording(90) as recording:
        lengths = torch.tensor([3, 4], device="cuda")
        recording.integers.told.add(lengths.untyped_storage()._cdata)
        lengths.add_(1)
        storage = list(recording.storages_to_send())[recording.view(lengths).storage]
        assert storage.origin == "computed"


def test_operations_on_floats_are_recorded_in_their_order() -> None:
    with Recording(90) as recording:
        x = recording.make_argument("query", [2, 3], [3, 1], torch.float32)
        y = torch.empty_like(x)
        y.copy_(x * 2.0)
        total = (x * y).sum(-1)
        y[:, 1:].zero_()
        assert all(isinstance(step, Computed) for step in recording.steps)
        assert [step.operation for step in recording.steps] == [
            "multiply", "copy", "multiply", "sum", "fill"
        ]  # fmt: skip
        first, *_, summed, filled = recording.steps
        assert isinstance(first, Computed)
        assert first.operands == (recording.view(x), 2.0)
        assert isinstance(summed, Computed)
        assert summed.dims == (1,)
        assert summed.to == recording.view(total)
        assert isinstance(filled, Computed)
        assert filled.to.offset == 1
        sines = torch.sin(x)
        storage = list(recording.storages_to_send())[recording.view(sines).storage]
        assert (storage.origin, storage.detail) == ("computed", "aten.sin")
