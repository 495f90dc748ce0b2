"""Attention with dropout is judged by its own tolerance, and mutants of it fail."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from committed import families
from torch import Tensor

from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.judging.run import run
from bridge.conformance.tensors.batch import DTYPES, Outputs, array
from bridge.vectors.model.dropout import DropoutVector
from bridge.vectors.model.operations import ComesToAttention

NAMES = ("dropout", "dropout-tiles", "dropout-replay")
# From scores, weights and factors [q_len, kv_len] and values to output and log-sum-exp.
Head = Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]


def softmax(scores: Tensor) -> Tensor:
    """The weights; 0 for a row with every key masked."""
    return torch.nan_to_num(torch.softmax(scores, -1))


def right(scores: Tensor, factors: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return (softmax(scores) * factors) @ v, torch.logsumexp(scores, -1)


def drop_from_denominator(scores: Tensor, factors: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    kept = scores.masked_fill(factors == 0, -math.inf)
    return (softmax(kept) * factors) @ v, torch.logsumexp(scores, -1)


def drop_from_lse(scores: Tensor, factors: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    kept = scores.masked_fill(factors == 0, -math.inf)
    return (softmax(scores) * factors) @ v, torch.logsumexp(kept, -1)


def not_divided(scores: Tensor, factors: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return (softmax(scores) * (factors > 0)) @ v, torch.logsumexp(scores, -1)


def nothing_dropped(scores: Tensor, factors: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return softmax(scores) @ v, torch.logsumexp(scores, -1)


def columns_moved(scores: Tensor, factors: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    return right(scores, factors.roll(1, -1), v)


class Dropping(PyimplTiled):
    """Materialised attention with dropout, with the masks of the vectors."""

    operations = frozenset({DropoutVector.operation})

    def __init__(self, head: Head) -> None:
        super().__init__()
        self.head = head

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        assert isinstance(vector, DropoutVector)
        scale = vector.natural_scale
        found = []
        for problem in vector.attentions():
            assert problem.dropout is not None
            wide = torch.float64 if dtype == "float64" else torch.float32
            q, k, v = (
                torch.from_numpy(array(m)).to(wide) for m in (problem.q, problem.k, problem.v)
            )
            seen = torch.tensor(
                [[problem.visible(i, j) for j in range(vector.kv_len)] for i in range(vector.q_len)]
            )
            keep = torch.tensor(problem.dropout.keep)
            p = float(vector.dropout_p)
            factors = keep.to(wide) * (1 / (1 - p) if p < 1 else 0.0)
            out, lse = self.head((scale * q @ k.T).masked_fill(~seen, -math.inf), factors, v)
            found.append(Outputs(out.to(DTYPES[dtype])[None, None], lse[None, None]))
        return found


@pytest.mark.parametrize("dtype", ["float64", "float32", "bfloat16"])
def test_right_dropout_passes(dtype: str) -> None:
    result = run(Dropping(right), families(*NAMES), dtype)
    assert result.ok, [v.reason or v.worst for v in result.failures]
    assert len(result.vectors) == sum(len(family.vectors) for family in families(*NAMES))
    assert all(v.status == "passed" for v in result.vectors)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "mutant",
    [drop_from_denominator, drop_from_lse, not_divided, nothing_dropped, columns_moved],
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_mutant_fails_in_most_vectors(mutant: Head, dtype: str) -> None:
    result = run(Dropping(mutant), families(*NAMES), dtype)
    # p = 0 and p = 1, and rows without a key, show no mutant.
    assert len(result.failures) > len(result.vectors) / 2


def test_an_adapter_without_dropout_does_not_cover_it() -> None:
    class Without(PyimplTiled):
        operations = PyimplTiled.operations - {DropoutVector.operation}

    result = run(Without(), families(*NAMES), "float32")
    assert {v.status for v in result.vectors} == {"unsupported"}
    assert {v.reason for v in result.vectors} == {"takes no vectors of dropout"}
