"""Triton's interpreter as the project makes it faster: the same bits, and overflow is seen."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from typing import Any

import committed
import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError

from bridge.conformance.adapters import interpreter
from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.judging.answers import Job, jobs_of, why_unsupported
from bridge.conformance.tensors.batch import Outputs, stack
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.gradients import GradientVector

# All kernels, their options, and tiles that are not whole.
SAMPLE = [
    *("ragged-tiles", "score-mods", "sink-tiles", "window-tiles", "dropout-tiles"),
    *("varlen-drawn", "paged", "split-kv"),
    *("gradient-score-mods", "gradient-sinks", "gradient-dropout-tiles"),
]
ADAPTER = PyimplTriton()


@pytest.fixture(autouse=True)
def installed_after() -> Iterator[None]:
    yield
    interpreter.uninstall()
    assert interpreter.install() is None


def compute(job: Job, dtype: str) -> list[bytes]:
    """The kernels' results for vectors that are run at once, bit by bit."""
    first: Any = job[0]
    outputs: Iterable[Outputs | dict[str, Any]]
    if isinstance(first, AttentionVector):
        outputs = [ADAPTER.run(stack(job, dtype, "cpu"))]  # type: ignore[arg-type]
    elif isinstance(first, GradientVector):
        outputs = ADAPTER.gradients(first, dtype, "cpu")
    else:
        outputs = ADAPTER.run_vector(first, dtype, "cpu")
    found = [
        x for each in outputs for x in (each if isinstance(each, dict) else vars(each)).items()
    ]
    return [bits(x) for _, x in found if x is not None]


def bits(numbers: Any) -> bytes:
    if isinstance(numbers, torch.Tensor):
        numbers = numbers.contiguous().view(torch.uint8) if numbers.dim() else numbers.view(1)
    return np.asarray(numbers).tobytes()


def differing_vectors(vectors: Iterable[Vector], dtype: str) -> tuple[int, list[str]]:
    """How many jobs ran, and the first vectors of those with other bits without the exchange."""
    vectors = list(vectors)
    skipped = why_unsupported(ADAPTER, vectors, dtype, "cpu")
    jobs = jobs_of(vector for vector in vectors if vector.id not in skipped)
    with np.errstate(all="ignore"):
        assert interpreter.install() is None
        fast = [compute(job, dtype) for job in jobs]
        interpreter.uninstall()
        slow = [compute(job, dtype) for job in jobs]
    assert all(fast)
    return len(jobs), [job[0].id for job, a, b in zip(jobs, fast, slow, strict=True) if a != b]


@pytest.mark.parametrize("dtype", ADAPTER.dtypes)
def test_a_sample_of_vectors_yields_the_same_bits(dtype: str) -> None:
    smallest = [min(f.vectors, key=lambda v: len(repr(v))) for f in committed.families(*SAMPLE)]
    assert differing_vectors(smallest, dtype) == (len(SAMPLE), [])


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ADAPTER.dtypes)
def test_all_vectors_yield_the_same_bits(dtype: str) -> None:
    ran, others = differing_vectors(
        [v for family in committed.everything() for v in family.vectors], dtype
    )
    assert ran > 500
    assert others == []


def test_another_result_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison sees one bit: interpreted as installed, exp2 is off by one unit."""
    family = committed.family("ragged-tiles")
    builder = importlib.import_module("triton.runtime.interpreter").InterpreterBuilder
    true = builder.create_exp2

    def off(self: Any, arg: Any) -> Any:
        found = true(self, arg)
        if interpreter.is_installed():
            found.data = np.nextafter(found.data, np.float32(2))
        return found

    monkeypatch.setattr(builder, "create_exp2", off)
    assert differing_vectors(family.vectors[:1], "float32") == (1, [family.vectors[0].id])


@triton.jit
def square_kernel(out, n, BLOCK: tl.constexpr):
    """The squares of n, n + 1, … in int32 arithmetic; of a scalar where BLOCK is 1."""
    x = tl.program_id(0) + n
    if BLOCK > 1:
        x = x + tl.arange(0, BLOCK)
    y = x * x
    tl.store(out + x - n, y.to(tl.int64))


@triton.jit
def wrapping_kernel(out, n):
    tl.store(out, tl.mul(n, n, sanitize_overflow=False).to(tl.int64))


@pytest.mark.parametrize("block", [1, 16])
def test_overflow_of_int32_is_seen(block: int) -> None:
    out = torch.zeros(block, dtype=torch.int64)
    square_kernel[(1,)](out, 40_000, BLOCK=block)
    assert out[0] == 40_000**2
    # With 16 numbers, 46341² is the first that int32 does not hold.
    with pytest.raises(InterpreterError, match="int32 overflow detected for operation mul"):
        square_kernel[(1,)](out, 46_341 if block == 1 else 46_326, BLOCK=block)


def test_what_may_wrap_wraps() -> None:
    out = torch.ones(1, dtype=torch.int64)
    wrapping_kernel[(1,)](out, 2**16)
    assert out[0] == 0


def test_tritons_own_interpreter_does_not_see_it() -> None:
    interpreter.uninstall()
    out = torch.ones(1, dtype=torch.int64)
    square_kernel[(1,)](out, 2**16, BLOCK=1)
    assert out[0] == 0


def test_another_version_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter.uninstall()
    monkeypatch.setattr(triton, "__version__", "9.0.0")
    reason = interpreter.install()
    assert reason is not None
    assert "3.6.0 and 3.7.1, not 9.0.0" in reason
    assert not interpreter.is_installed()
    monkeypatch.undo()


@pytest.mark.parametrize("name", ["_patch_lang", "_get_np_dtype", "_LangPatchScope"])
def test_without_one_of_its_names_it_is_left_as_it_is(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter.uninstall()
    module = importlib.import_module("triton.runtime.interpreter")
    before = dict(vars(module))
    monkeypatch.delattr(module, name)
    reason = interpreter.install()
    assert reason is not None
    assert name in reason
    assert not interpreter.is_installed()
    monkeypatch.undo()
    assert vars(module) == before


def test_where_kernels_are_compiled_triton_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    interpreter.uninstall()
    monkeypatch.delenv("TRITON_INTERPRET")
    assert interpreter.install() is None
    assert not interpreter.is_installed()
    monkeypatch.undo()


def test_uninstalled_nothing_of_it_is_left() -> None:
    interpreter.uninstall()
    core = importlib.import_module("triton.language.core")
    before = dict(vars(core)), dict(vars(core.tensor)), dict(vars(core.dtype)), dict(vars(tl))
    assert interpreter.install() is None
    square_kernel[(1,)](torch.ones(1, dtype=torch.int64), 2, BLOCK=1)
    interpreter.uninstall()
    after = dict(vars(core)), dict(vars(core.tensor)), dict(vars(core.dtype)), dict(vars(tl))
    assert after == before
