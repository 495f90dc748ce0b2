"""The kernels against attention by definition, in three domains; planted faults are found."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from ttir_cases import COMPARED, FAULTS, LEVELS, NEEDS_COMPILER, SHAPES, planted, said

from bridge.spec.masks import Alignment
from bridge.ttir.compare import Compared, Level, Shape, backward, forward
from bridge.ttir.compare_decode import decode
from bridge.ttir.faults import CannotTell

pytestmark = NEEDS_COMPILER

BOTTOM: dict[str, Any] = {"window": (None, 0), "alignment": Alignment.BOTTOM_RIGHT}
SMALL: dict[str, Any] = {"head_dim": 2, "value_dim": 2}
GROUPED: dict[str, Any] = {"heads": 2, "kv_heads": 1, **SMALL}
# The level at which `make test` runs a case, "": at none; all are for `make test-all`.
FORWARD = {
    "masked rows": (Shape(heads=2, kv_heads=2, q_len=20, kv_len=16, **BOTTOM), "rational"),
    "window": (Shape(q_len=17, kv_len=35, window=(3, 2)), ""),
    "packed": (
        Shape(
            batch=3, heads=2, q_len=18, kv_len=20, lengths=((3, 5), (18, 20), (0, 4)), **BOTTOM
        ),
        "formal",
    ),
    "biases": (Shape(q_len=3, kv_len=17, bias=True, alibi=True, **BOTTOM, **GROUPED), "fields"),
    "packed slopes": (
        Shape(batch=2, q_len=3, kv_len=5, alibi=True, lengths=((2, 5), (3, 4)), **BOTTOM), ""
    ),
}  # fmt: skip
BACKWARD = {
    "causal": (Shape(q_len=6, kv_len=4, window=(None, 0)), ""),
    "grouped": (Shape(q_len=3, kv_len=4, window=(None, 0), **GROUPED), "formal"),
    "two tiles": (Shape(q_len=17, kv_len=17, head_dim=1, value_dim=1, window=(1, 0)), "fields"),
    "packed": (
        Shape(batch=2, q_len=3, kv_len=4, lengths=((2, 4), (3, 1)), **BOTTOM, **GROUPED), ""
    ),
    "biases": (Shape(q_len=2, kv_len=3, bias=True, alibi=True, **GROUPED), "rational"),
}  # fmt: skip
CACHES = Shape(
    batch=2, heads=4, kv_heads=2, q_len=2, kv_len=37, lengths=((2, 20), (2, 37)), **BOTTOM
)
DECODE: dict[str, tuple[Shape, dict[str, Any], str]] = {
    "splits": (CACHES, {"splits": 3}, "formal"),
    "pages": (CACHES, {"splits": 2, "page_size": 16}, "fields"),
    "one length": (Shape(q_len=1, kv_len=33), {"splits": 2}, ""),
}


def _levels(cases: dict[str, Any]) -> Any:
    """Each case at each level; one level of each is no thorough test."""
    return pytest.mark.parametrize(
        ("case", "level"),
        [
            pytest.param(case, level, marks=[] if level == chosen else [pytest.mark.thorough])
            for case, (*_, chosen) in cases.items()
            for level in LEVELS
        ],
    )


def _assert_equal(found: Compared) -> None:
    assert found.equal, found.wrong[:3]


@_levels(FORWARD)
def test_forward(case: str, level: Level) -> None:
    shape, _ = FORWARD[case]
    found = forward(shape, level)
    _assert_equal(found)
    rows = sum(shape.lengths_of(b)[0] for b in range(shape.batch))
    assert found.elements == shape.heads * rows * (shape.value_dim + 1)


@_levels(BACKWARD)
def test_backward(case: str, level: Level) -> None:
    shape, _ = BACKWARD[case]
    found = backward(shape, level)
    _assert_equal(found)
    lengths = [shape.lengths_of(b) for b in range(shape.batch)]
    sizes = shape.head_dim + shape.value_dim
    by_keys = sum(kv_len for _, kv_len in lengths) * shape.kv_heads * sizes
    by_bias = sum(q * k for q, k in lengths) * shape.heads * shape.bias
    by_queries = sum(q_len for q_len, _ in lengths) * shape.heads * shape.head_dim
    assert found.elements == by_keys + by_queries + by_bias


@_levels(DECODE)
def test_decode(case: str, level: Level) -> None:
    shape, options, _ = DECODE[case]
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


def test_some_faults_are_found() -> None:
    with planted(FAULTS["o-not-rescaled"]):
        assert said("formal", "full") == "wrong"
    with planted(FAULTS["group-by-remainder"]):
        assert said("fields", "groups") == "wrong"
    with planted(FAULTS["maximum-not-scaled"]):
        # Exact arithmetic does not see it: only the check of exp2 does.
        assert said("formal", "full") == "exp2 of a positive number"
        assert said("fields", "full") == "equal"
    assert said("formal", "full") == "equal"


@pytest.mark.thorough
@pytest.mark.parametrize("fault", ["", *COMPARED])
def test_faults_are_found(fault: str) -> None:
    with planted(FAULTS.get(fault)):
        found = {level: {said(level, x) for x in SHAPES} for level in LEVELS}
    # Of NaN the other domains say that they cannot tell.
    assert "cannot tell" not in found["rational"]
    seen = {level: what != {"equal"} for level, what in found.items()}
    # There is no order in the fields, and the rational scale is 1 in base 2.
    by_numbers = fault not in ("", "maximum-not-scaled")
    assert seen == {"rational": by_numbers, "formal": bool(fault), "fields": by_numbers}
