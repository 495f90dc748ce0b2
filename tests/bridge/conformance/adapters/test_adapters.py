"""The declarations and the results of the built-in adapters."""

from __future__ import annotations

import math
from dataclasses import replace

import committed
import pytest
import torch

from bridge.conformance.adapters.adapter import Adapter, OutputOnly
from bridge.conformance.adapters.builtin import BUILTIN, builtin
from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.judging.run import run
from bridge.conformance.tensors.batch import DTYPES, batches, visible
from bridge.conformance.tolerances.rounding_model import FORMATS
from bridge.vectors.exact import attention as exact
from bridge.vectors.model.attention import AttentionVector, Mask

CASES = [(name, dtype) for name, make in BUILTIN.items() for dtype in make().dtypes]


@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_shapes_and_declarations(name: str, dtype: str) -> None:
    adapter = builtin(name)
    assert adapter.name == name
    rounding = adapter.rounding(dtype, "cpu")
    assert rounding.input == rounding.output == FORMATS[dtype]
    masked = committed.family("fully-masked")
    batch = next(batches(masked.vectors[:1], dtype, "cpu"))
    outputs = adapter.run(batch)
    assert outputs.out.shape == (*batch.query.shape[:-1], batch.value.shape[-1])
    assert outputs.out.dtype == DTYPES[dtype]
    if outputs.lse is not None:
        assert outputs.lse.shape == batch.query.shape[:-1]


def test_batches_hold_every_vector_once() -> None:
    vectors = [v for v in committed.vectors() if isinstance(v, AttentionVector)]
    seen = []
    for batch in batches(vectors, "float32", "cpu", largest=8):
        assert len(batch.vectors) <= 8
        seen += [v.id for v in batch.vectors]
        for n, vector in enumerate(batch.vectors):
            keys = torch.ones(vector.q_len, vector.kv_len, dtype=torch.bool)
            if batch.boolean is not None:
                keys = keys & batch.boolean[n, 0]
            if batch.bias is not None:
                keys = keys & (batch.bias[n, 0] > -torch.inf)
            assert torch.equal(keys, torch.tensor(visible(vector)))
            assert batch.query[n, 0].tolist() == [[float(x) for x in row] for row in vector.q]
            assert batch.scale == vector.natural_scale
        assert [b.vectors[0].id for b in batch.split()] == [v.id for v in batch.vectors]
    assert sorted(seen) == sorted(v.id for v in vectors)


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(KeyError, match=r"no adapter 'spda'.*sdpa-math"):
        builtin("spda")


def test_the_flash_backends_log_sum_exp_of_a_masked_row() -> None:
    """The deviation that its adapter declares, as long as PyTorch has it."""
    adapter = builtin("sdpa-flash")
    masked = committed.family("fully-masked")
    vector = masked.vectors[0]
    row = next(i for i, r in enumerate(vector.expected) if r.masked)
    (batch,) = batches([vector], "float32", "cpu")
    lse = adapter.run(batch).lse
    reason = adapter.no_log_sum_exp(vector, "float32", "cpu")
    assert (lse[0, 0, row] != -math.inf) == (reason is not None)
    assert adapter.why_unsupported(vector, "float32", "cpu") is None


def test_the_flash_backend_under_a_causal_mask_with_a_negative_scale() -> None:
    """The other deviation. As boolean mask the same is right."""
    adapter = builtin("sdpa-flash")
    causal = committed.family("causal")
    vector = next(v for v in causal.vectors if v.q_len > 1)
    negative = replace(vector, scale=-1)
    (batch,) = batches([negative], "float32", "cpu")
    wrong = not bool(adapter.run(batch).out.isfinite().all())
    assert wrong == (adapter.why_unsupported(negative, "float32", "cpu") is not None)
    rows = tuple(tuple(row) for row in visible(vector).tolist())
    written_out = replace(negative, mask=Mask("boolean", rows))
    written_out = replace(written_out, expected=exact.attention(written_out))
    assert run(adapter, [replace(causal, vectors=(written_out,))], "float32").ok


def test_the_kernel_says_what_it_does_not_take() -> None:
    vector = committed.everything()[0].vectors[0]
    reason = PyimplTriton().why_unsupported(vector, "float64", "cpu")
    assert reason is not None
    assert "float64" in reason


def test_output_only_hides_the_log_sum_exp() -> None:
    adapter: Adapter = OutputOnly(builtin("pyimpl-tiled"))
    (batch,) = batches(committed.everything()[0].vectors[:1], "float32", "cpu")
    assert adapter.run(batch).lse is None
    assert adapter.name == "pyimpl-tiled"
