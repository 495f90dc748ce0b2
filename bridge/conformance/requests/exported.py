"""The tolerances of a vector as a field of its export, for programs in other languages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bridge.conformance.judging.judge import tolerances_of
from bridge.conformance.requests.request import check_known
from bridge.conformance.tensors.batch import DTYPES, stack
from bridge.conformance.tolerances.rounding_model import CHOICES
from bridge.vectors.export import More, doubles
from bridge.vectors.model.attention import AttentionVector, Vector


def fields(dtype: str, rounding_model: str = "generous") -> More:
    """The function that gives each vector of attention its field `tolerance`: by how much each
    number of a correct function may be off that is given inputs of `dtype`. Other vectors get none.

    Raises Misuse, a ValueError, for names that are not known.
    """
    check_known("tolerances", [dtype], DTYPES, "a dtype that the vectors run in")
    check_known("rounding_model", [rounding_model], CHOICES, "a rounding model")
    rounding = CHOICES[rounding_model](dtype)

    def tolerance(vector: Vector) -> Mapping[str, Any]:
        if not isinstance(vector, AttentionVector):
            return {}
        # The numbers are those that the judge compares with: all in float64.
        out, lse = tolerances_of(rounding, stack((vector,), dtype, "cpu"), lse=True)
        assert lse is not None
        found = {
            "dtype": dtype,
            "rounding_model": rounding_model,
            "output": doubles(out.shape[2:], out.ravel().tolist()),
            "log_sum_exp": doubles(lse.shape[2:], lse.ravel().tolist()),
        }
        return {"tolerance": found}

    return tolerance
