"""Wrong gradients are found before they are timed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from bench_fakes import CPU, case, exact_gradients
from torch import Tensor

from bench import check_gradients
from bench.cases import Case, Mask, make_inputs
from bench.check import rounding_of
from bench.check_gradients import CheckGradients, gradient_rounding
from bench.peers import PEERS

CASES = [
    case(
        operation="backward", dtype=dtype, q_len=96, kv_len=96, heads=4, kv_heads=kv_heads,
        head_dim=32, batch=2, mask=mask,
    )
    for dtype, kv_heads in (("float32", 2), ("bfloat16", 4), ("float16", 2))
    for mask in (Mask("full"), Mask("causal", None, 0), Mask.of_name("window", 16))
]  # fmt: skip
MUTANTS: dict[str, Callable[[Tensor], Tensor]] = {
    "zeros": torch.zeros_like,
    "another head": lambda x: x.roll(1, 1),
    "another sequence": lambda x: x.flip(0),
    "another row": lambda x: x.roll(1, 2),
    "scale missing": lambda x: x * 32**0.5,
    "a tenth too large": lambda x: x * 1.1,
}


@pytest.mark.parametrize("which", CASES, ids=str)
def test_right_gradients_pass_and_each_wrong_one_does_not(
    which: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In several blocks of queries, the last of another size.
    monkeypatch.setattr(check_gradients, "MAX_PAIRS", 40 * 96)
    inputs = make_inputs(which, CPU)
    judge = CheckGradients(inputs)
    rounding = rounding_of(which.dtype, CPU, is_peer=False)
    right = exact_gradients(inputs)
    found = judge(right, rounding)
    assert found.wrong is None
    assert found.error_over_tolerance <= 1.0
    assert found.rows == 96 * (4 // which.kv_heads + 2)
    for mutant in MUTANTS.values():
        for place in range(3):
            wrong = [mutant(x) if i == place else x for i, x in enumerate(right)]
            verdict = judge(tuple(wrong), rounding)
            assert verdict.wrong is not None
            assert "times the tolerance" in verdict.wrong


def test_d_that_is_missing_is_noticed() -> None:
    """dS = P ∘ dP in place of P ∘ (dP − D)."""
    which = CASES[0]
    inputs = make_inputs(which, CPU)
    query, key, value = (x.double() for x in (inputs.query, inputs.key, inputs.value))
    key, value = (x.repeat_interleave(2, 1) for x in (key, value))
    assert inputs.grad_out is not None
    p = (query @ key.mT / 32**0.5).softmax(-1)
    d_q = (p * (inputs.grad_out.double() @ value.mT)) @ key / 32**0.5
    _, d_k, d_v = exact_gradients(inputs)
    verdict = CheckGradients(inputs)(
        (d_q.float(), d_k, d_v), rounding_of("float32", CPU, is_peer=True)
    )
    assert verdict.wrong is not None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("length", [40, 512])
def test_the_kernel_of_pytorch_that_adds_in_16_bits_is_right(dtype: str, length: int) -> None:
    which = case(operation="backward", dtype=dtype, q_len=length, kv_len=length, head_dim=64)
    inputs = make_inputs(which, CPU)
    rounding = gradient_rounding(which, CPU, is_peer=True)
    assert rounding.gradient_rows == (32 if length == 40 else 64)
    assert gradient_rounding(which, CPU, is_peer=False).gradient_rows is None
    found = PEERS["sdpa-flash"](inputs).run()
    assert CheckGradients(inputs)(found, rounding).wrong is None
    assert isinstance(found, tuple)
    wrong = (*found[:2], found[2].roll(1, 2))
    assert CheckGradients(inputs)(wrong, rounding).wrong is not None


@pytest.mark.parametrize("name", check_gradients.NAMES)
def test_a_nan_anywhere_and_another_shape_are_wrong(name: str) -> None:
    inputs = make_inputs(CASES[0], CPU)
    judge, rounding = CheckGradients(inputs), rounding_of("float32", CPU, is_peer=True)
    place = check_gradients.NAMES.index(name)
    found = [x.clone() for x in exact_gradients(inputs)]
    found[place][0, 0, 50, 3] = float("nan")
    assert judge(tuple(found), rounding).wrong == (
        f"the gradient of {name} is not finite everywhere"
    )
    found[place] = found[place][:, :, :1]
    assert str(judge(tuple(found), rounding).wrong).startswith(
        f"the gradient of {name} has the shape [2, "
    )
