"""Compiled kernels on the vectors, and mistakes planted before and after Triton.

They need a process in which Triton compiles: `test_compiled` runs them in one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch

from bridge.conformance.adapters.compiled import PyimplPtx, simulate
from bridge.conformance.judging.run import run
from bridge.conformance.mutants.planted_package import copy_package
from bridge.gluon.faults import Fault
from bridge.ptx import launch as launched
from bridge.ptx.syntax import Constant, Instruction, Register
from bridge.vectors.load import default_directory, read_trusted
from bridge.vectors.model.attention import Family
from pyimpl.backends.kernels import forward
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.internal.scores import ScoreOptions

pytestmark = pytest.mark.compiled
# Of some, such as those of layers, no vector is judged: no kernel takes them.
FAMILIES = sorted(
    path.stem for path in default_directory().glob("*.json") if path.stem != "index"
)  # fmt: skip
# Forward, backward with dropout and a mask, the gradient of slopes: as little as these compile.
FEW = {
    "float16": ("gradient-dropout-tiles-003",),
    "bfloat16": ("causal-003",),
    "float32": ("dropout-tiles-001", "gradient-score-mods-004"),
}


def choose_vectors(*ids: str) -> list[Family]:
    found = []
    for name in dict.fromkeys(one.rpartition("-")[0] for one in ids):
        family = read_trusted(default_directory() / f"{name}.json")
        of_it = tuple(vector for vector in family.vectors if vector.id in ids)
        found.append(replace(family, vectors=of_it))
    assert sum(len(family.vectors) for family in found) == len(ids)
    return found


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", FEW)
def test_a_few_vectors(dtype: str) -> None:
    result = run(PyimplPtx(), choose_vectors(*FEW[dtype]), dtype)
    assert [v.detail for v in result.vectors if v.status != "passed"] == []


# Each family in one of three dtypes, since a family takes seconds.
@pytest.mark.thorough
@pytest.mark.parametrize(("name", "dtype"), list(zip(FAMILIES, itertools.cycle(FEW), strict=False)))
def test_a_family(name: str, dtype: str) -> None:
    family = read_trusted(default_directory() / f"{name}.json")
    result = run(PyimplPtx(), [family], dtype)
    assert [(v.id, v.detail) for v in result.failures] == []


def test_elements_that_are_added_twice_are_found() -> None:
    """As an H200 had it with this text: Triton 3.6 and 3.7 choose kWidth = 8 for tiles of 16, and
    gradients are twice those that are right. The interpreter and TTIR are right."""
    hidden = "kept = tl.max(kept[:, :, None], 2)"

    def edit(text: str) -> str:
        assert text.count(hidden) == 1
        return text.replace(hidden, "pass")

    dropout, entry = "backends/kernels/parts/dropout.py", "backends/kernels/backward.py"
    vectors = choose_vectors("gradient-dropout-tiles-003")
    with copy_package(dropout, edit, entry) as module, simulate(module.__name__.split(".")[0]):
        result = run(PyimplPtx(backward=module.backward), vectors, "float16")
    (vector,) = result.vectors
    assert vector.status == "failed"
    assert round(vector.worst.got / vector.worst.expected) == 2


def made_launch() -> tuple[Launch, torch.Tensor, torch.Tensor]:
    """Attention over several tiles of keys, some copied while others are used; its output, and the
    numbers that have to be there: a query's product with one key, itself, is larger by 2 at least
    than with any other, and at this scale all other weights are 0."""
    generator = torch.Generator().manual_seed(0)
    key = torch.randint(0, 2, (1, 1, 64, 32), generator=generator).half() * 2 - 1
    value = torch.randn(key.shape, generator=generator).half()
    order = torch.randperm(64, generator=generator)
    query = key[:, :, order].contiguous()
    out, lse = torch.full_like(query, torch.nan), torch.full((1, 1, 64), torch.nan)
    options = ScoreOptions(scale=100.0)
    tiles = {"block_m": 64, "block_n": 16, "num_warps": 4, "num_stages": 3}
    with simulate():
        made = forward.launch(query, key, value, out, lse, options, capability=80, chosen=tiles)
    return made, out, value[:, :, order]


def without(removed: Callable[[Instruction], bool], monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of fault of the launch's PTX without these instructions."""
    made, _, _ = made_launch()
    whole = launched.compile_ptx(made)
    nothing = Instruction("mov", ("b32",), (Register("_"), Constant(0)), None, 0, "")
    changed = tuple(nothing if removed(one) else one for one in whole.kernel.instructions)
    assert changed != whole.kernel.instructions
    text = replace(whole, kernel=replace(whole.kernel, instructions=changed))
    monkeypatch.setattr(launched, "compile_ptx", lambda *_: text)
    with pytest.raises(Fault) as raised:
        launched.run(made)
    return raised.value.kind


def test_numbers_and_copies_of_a_launch() -> None:
    made, out, expected = made_launch()
    assert launched.run(made) > 1000
    assert torch.equal(out, expected)
    operations = {(one.operation, *one.modifiers[:1]) for one in _instructions(made)}
    assert {("cp", "async"), ("mma", "sync"), ("ldmatrix", "sync")} <= operations


def _instructions(made: Launch) -> tuple[Instruction, ...]:
    return launched.compile_ptx(made).kernel.instructions


def test_a_text_without_its_barriers_races(monkeypatch: pytest.MonkeyPatch) -> None:
    assert without(lambda one: one.operation == "bar", monkeypatch) == "race"


def test_a_text_that_does_not_await_its_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = without(lambda one: one.modifiers[-1:] == ("wait_group",), monkeypatch)
    assert kind == "read before it has landed"


def test_a_tensor_that_is_too_short() -> None:
    made, _, _ = made_launch()
    value = made.arguments["value_ptr"]
    assert isinstance(value, torch.Tensor)
    short = {**made.arguments, "value_ptr": value[..., :-1, :]}
    with pytest.raises(Fault, match="outside of every tensor"):
        launched.run(replace(made, arguments=short))
