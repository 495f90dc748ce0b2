"""Wrong results are found before they are timed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from bench_fakes import CPU, case, exact
from torch import Tensor

from bench import check
from bench.cases import Case, Mask, make_inputs
from bench.check import Check, rounding_of

CASES = [
    case(dtype=dtype, q_len=256, kv_len=256, heads=4, kv_heads=2, head_dim=32, batch=2, mask=mask)
    for dtype in ("float32", "bfloat16", "float16")
    for mask in (Mask("full"), Mask("causal", None, 0), Mask.of_name("window", 16))
]
MUTANTS: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros": torch.zeros_like,
    "another head": lambda out: out.roll(1, 1),
    "another sequence": lambda out: out.flip(0),
    "another query": lambda out: out.roll(1, 2),
    "not rescaled": lambda out: out * 1.2,
}


@pytest.mark.parametrize("which", CASES, ids=str)
def test_a_right_answer_passes_and_wrong_ones_do_not(which: Case) -> None:
    inputs = make_inputs(which, CPU)
    judge = Check(inputs)
    rounding = rounding_of(which.dtype, CPU, is_peer=False)
    right = judge(exact(inputs), rounding)
    assert right.wrong is None
    assert right.error_over_tolerance <= 1.0
    assert right.rows == check.MAX_ROWS
    for mutant in MUTANTS.values():
        verdict = judge(mutant(exact(inputs)), rounding)
        assert verdict.wrong is not None
        assert "times the tolerance" in verdict.wrong
        assert verdict.error_over_tolerance > 1.0


def test_zeros_are_wrong_over_many_keys_too() -> None:
    """Where the output of a row would be near 0 if its weights were spread over all keys."""
    which = case(
        operation="decode", dtype="bfloat16", heads=2, q_len=1, kv_len=1 << 16, head_dim=64,
        mask=Mask("full"),
    )  # fmt: skip
    inputs = make_inputs(which, CPU)
    rounding = rounding_of("bfloat16", torch.device("cuda"), is_peer=True)
    judge = Check(inputs)
    assert judge(exact(inputs), rounding).wrong is None
    assert judge(torch.zeros_like(inputs.query), rounding).wrong is not None


def test_a_nan_anywhere_is_wrong() -> None:
    inputs = make_inputs(CASES[0], CPU)
    out = exact(inputs)
    out[1, 2, 100, 3] = float("nan")
    verdict = Check(inputs)(out, rounding_of("float32", CPU, is_peer=True))
    assert verdict.wrong == "the output is not finite everywhere"


def test_another_shape_is_wrong() -> None:
    inputs = make_inputs(CASES[0], CPU)
    verdict = Check(inputs)(exact(inputs)[:, :1], rounding_of("float32", CPU, is_peer=True))
    assert verdict.wrong == "the output has the shape [2, 1, 256, 32], not [2, 4, 256, 32]"


def test_the_last_row_of_all_is_among_those_looked_at() -> None:
    inputs = make_inputs(CASES[0], CPU)
    out = exact(inputs)
    out[-1, -1, -1] += 1.0
    assert Check(inputs)(out, rounding_of("float32", CPU, is_peer=True)).wrong is not None
