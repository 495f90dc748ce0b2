"""The kernels against attention by definition, in three domains; mutants are found."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
import torch
from ttir_cases import COMPARED, LEVELS, MUTANTS, SHAPES, comparison_of, plant

from bridge.ttir.compare import Compared, Level, Shape, backward, forward
from bridge.ttir.compare_decode import decode
from bridge.ttir.faults import CannotTell
from bridge.ttir.shapes import BACKWARD, DECODE, FORWARD

pytestmark = pytest.mark.compiled

# The level at which `make test` runs a case; all levels of all are for `make test-all`.
QUICK: dict[str, dict[str, Level]] = {
    "forward": {"masked rows": "rational", "packed": "formal", "biases": "fields"},
    "backward": {"grouped": "formal", "two tiles": "fields", "biases": "rational"},
    "decode": {"splits": "formal", "pages": "fields"},
}


def _levels(cases: Iterable[str], quick: dict[str, Level]) -> Any:
    """Each case at each level; one level of some is no thorough test."""
    return pytest.mark.parametrize(
        ("case", "level"),
        [
            pytest.param(case, level, marks=[pytest.mark.thorough] * (quick.get(case) != level))
            for case in cases
            for level in LEVELS
        ],
    )


def _assert_equal(found: Compared) -> None:
    assert found.equal, found.wrong[:3]


@_levels(FORWARD, QUICK["forward"])
def test_forward(case: str, level: Level) -> None:
    shape = FORWARD[case]
    found = forward(shape, level)
    _assert_equal(found)
    rows = sum(shape.lengths_of(b)[0] for b in range(shape.batch))
    assert found.elements == shape.heads * rows * (shape.value_dim + 1)


@_levels(BACKWARD, QUICK["backward"])
def test_backward(case: str, level: Level) -> None:
    shape = BACKWARD[case]
    found = backward(shape, level)
    _assert_equal(found)
    lengths = [shape.lengths_of(b) for b in range(shape.batch)]
    sizes = shape.head_dim + shape.value_dim
    by_keys = sum(kv_len for _, kv_len in lengths) * shape.kv_heads * sizes
    by_bias = sum(q * k for q, k in lengths) * shape.heads * shape.bias
    by_queries = sum(q_len for q_len, _ in lengths) * shape.heads * shape.head_dim
    assert found.elements == by_keys + by_queries + by_bias


@_levels(DECODE, QUICK["decode"])
def test_decode(case: str, level: Level) -> None:
    shape, options = DECODE[case]
    found = decode(shape, level, **options)
    _assert_equal(found)
    assert found.elements == shape.batch * shape.heads * shape.q_len * (shape.value_dim + 1)


@pytest.mark.parametrize(
    "level",
    ["formal", *(pytest.param(x, marks=pytest.mark.thorough) for x in ("rational", "fields"))],
)
def test_atomic_additions(level: Level) -> None:
    # Two programs, one for each tile of keys, add to the gradient by the queries.
    shape = Shape(heads=2, kv_heads=1, q_len=2, kv_len=17, head_dim=1, value_dim=1)
    _assert_equal(backward(shape, level, atomics=True))


def test_assumptions_are_reported() -> None:
    assert forward(Shape(), "formal").assumed == {"scale ≥ 0"}


@pytest.mark.parametrize("level", ["formal", "fields"])
def test_of_a_softcap_it_is_said_that_it_cannot_be_told(level: Level) -> None:
    with pytest.raises(CannotTell, match=r"absolute value .*either sign.*math\.absf at .*numerics"):
        forward(Shape(q_len=2, kv_len=3, softcap=True), level)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lengths": ((1, 1),), "batch": 2}, "one pair for each of 2 sequences, not 1"),
        ({"lengths": ((6, 1),)}, r"lengths must be pairs up to \(5, 20\), not \(\(6, 1\),\)"),
        ({"lengths": ((1, 1),), "bias": True}, "where there is a bias"),
    ],
)
def test_lengths_that_cannot_be(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Shape(**given)
    with pytest.raises(ValueError, match="lengths must have 5 queries each"):
        decode(Shape(lengths=((4, 1),)), "fields")


@pytest.mark.thorough
def test_real_sizes() -> None:
    shape = Shape(
        q_len=300, kv_len=300, head_dim=64, value_dim=64, window=(None, 0), dtype=torch.bfloat16,
        blocks=(128, 128),
    )  # fmt: skip
    _assert_equal(forward(shape, "fields"))


def test_some_mutants_are_found() -> None:
    with plant(MUTANTS["o-not-rescaled"]):
        assert comparison_of("formal", "full") == "wrong"
    with plant(MUTANTS["group-by-remainder"]):
        assert comparison_of("fields", "groups") == "wrong"
    with plant(MUTANTS["maximum-not-scaled"]):
        # Exact arithmetic does not see it: only the check of exp2 does.
        assert comparison_of("formal", "full") == "exp2 of a positive number"
        assert comparison_of("fields", "full") == "equal"
    assert comparison_of("formal", "full") == "equal"


@pytest.mark.thorough
@pytest.mark.parametrize("mutant", ["", *COMPARED])
def test_mutants_are_found(mutant: str) -> None:
    with plant(MUTANTS.get(mutant)):
        found = {level: {comparison_of(level, x) for x in SHAPES} for level in LEVELS}
    # Of NaN the other domains say that they cannot tell.
    assert "cannot tell" not in found["rational"]
    seen = {level: what != {"equal"} for level, what in found.items()}
    # There is no order in the fields, and the rational scale is 1 in base 2.
    by_numbers = mutant not in ("", "maximum-not-scaled")
    assert seen == {"rational": by_numbers, "formal": bool(mutant), "fields": by_numbers}
