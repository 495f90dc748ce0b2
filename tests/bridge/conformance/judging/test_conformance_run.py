"""The runner: its report, and that it notices every error that a function can make."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import committed
import pytest
import torch
from spoiled import Spoiled

from bridge.conformance.adapters.adapter import Adapter
from bridge.conformance.adapters.emulated import FlashEmulated
from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.adapters.sdpa import SdpaMathReduced
from bridge.conformance.judging import run as running
from bridge.conformance.judging.answers import why_unsupported
from bridge.conformance.judging.judge import by_size, describe_failure
from bridge.conformance.judging.run import run
from bridge.conformance.tensors.batch import Batch, Misbehaviour, Outputs
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.attention import AttentionVector, Family, Vector


def small() -> Family:
    return committed.family("small-random")


def with_result(family: Family, vector: AttentionVector) -> list[Family]:
    others = tuple(vector if v.id == vector.id else v for v in family.vectors)
    return [replace(family, vectors=others)]


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_one_changed_digit_of_an_expected_value_fails(dtype: str) -> None:
    """The last digit of a numerator, of every vector in turn."""
    family = small()
    for vector in family.vectors:
        row = vector.expected[-1]
        digit = row.numerators[0] % 10
        changed = row.numerators[0] + (1 if digit < 9 else -1)
        if 0.05 * (abs(row.numerators[0]) + row.output_denominator) > 1:
            continue  # too small for sixteen bits
        wrong = replace(row, numerators=(changed, *row.numerators[1:]))
        bad = replace(vector, expected=(*vector.expected[:-1], wrong))
        result = run(PyimplTiled(), with_result(family, bad), dtype)
        (failure,) = result.failures
        assert failure.id == vector.id
        assert (failure.worst.row, failure.worst.column) == (vector.q_len - 1, 0)
        assert failure.worst.expected == float(wrong.output[0])
        assert failure.theorem == vector.theorem
        assert not result.ok


@pytest.mark.parametrize("field", ["max", "denominator"])
def test_a_changed_maximum_or_denominator_fails_by_the_log_sum_exp(field: str) -> None:
    family = small()
    vector = family.vectors[3]
    row = vector.expected[0]
    assert row.max is not None
    wrong = (
        replace(row, max=row.max + 1)
        if field == "max"
        else replace(row, denominator=row.denominator * 2)
    )
    bad = replace(vector, expected=(wrong, *vector.expected[1:]))
    (failure,) = run(PyimplTiled(), with_result(family, bad), "float32").failures
    assert failure.worst.part == "lse"
    assert failure.worst.column is None


def spoil_first(value: float) -> Callable[[Batch, Outputs], Outputs]:
    def spoil(_batch: Batch, outputs: Outputs) -> Outputs:
        out = outputs.out.clone()
        out[..., 0, 0] = value
        return Outputs(out, outputs.lse)

    return spoil


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none_always_fail(value: float) -> None:
    result = run(Spoiled(spoil_first(value)), [small()], "float32")
    assert len(result.failures) == len(result.vectors)
    assert result.ratio == math.inf
    assert all(v.rows[0] == math.inf for v in result.vectors)


def test_a_wrong_infinity_of_the_log_sum_exp_fails() -> None:
    def spoil(_batch: Batch, outputs: Outputs) -> Outputs:
        return Outputs(outputs.out, torch.where(outputs.lse.isinf(), math.inf, outputs.lse))

    masked = committed.family("fully-masked")
    result = run(Spoiled(spoil), [masked], "float32")
    assert len(result.failures) == len(result.vectors)


def raise_error(_batch: Batch, _outputs: Outputs) -> Outputs:
    raise RuntimeError("no such kernel")


def change_input(batch: Batch, outputs: Outputs) -> Outputs:
    batch.query.mul_(2)
    return outputs


def change_mask(batch: Batch, outputs: Outputs) -> Outputs:
    if batch.mask is not None:
        batch.mask.fill_(True)
    return outputs


def leave(_batch: Batch, _outputs: Outputs) -> Outputs:
    raise SystemExit(3)


def report_itself(_batch: Batch, _outputs: Outputs) -> Outputs:
    raise Misbehaviour("changed its input window")


MISBEHAVIOUR: dict[str, tuple[Callable[[Batch, Outputs], Outputs], str]] = {
    "raises": (raise_error, "raised RuntimeError: no such kernel"),
    "leaves": (leave, "raised SystemExit: 3"),
    "found by the adapter": (report_itself, "changed its input window"),
    "changes its input": (change_input, "changed its inputs: query"),
    "none": (lambda _b, _o: Outputs(None), "returned None instead of a tensor"),  # type: ignore[arg-type]
    "no outputs": (lambda _b, o: o.out, "returned a value of type Tensor instead of Outputs"),  # type: ignore[dict-item,return-value]
    "lse": (lambda _b, o: Outputs(o.out, 1.0), "of type float instead of a tensor, a log-sum-exp"),  # type: ignore[arg-type]
    "lse dtype": (
        lambda _b, o: Outputs(o.out, torch.zeros(o.out.shape[:-1], dtype=torch.int64)),
        "returned a log-sum-exp of torch.int64",
    ),
    "shape": (lambda _b, o: Outputs(o.out[..., 0], o.lse), "returned an output of shape"),
    "dtype": (lambda _b, o: Outputs(o.out.double(), o.lse), "returned an output of torch.float64"),
    "lse shape": (lambda _b, o: Outputs(o.out, o.out), "returned a log-sum-exp of shape"),
}


@pytest.mark.parametrize("name", MISBEHAVIOUR)
def test_misbehaviour_is_reported_for_each_vector(name: str) -> None:
    spoil, sentence = MISBEHAVIOUR[name]
    family = small()
    family = replace(family, vectors=family.vectors[:6])
    result = run(Spoiled(spoil), [family], "float32")
    assert [v.status for v in result.vectors] == ["failed"] * 6
    assert all(v.reason is not None and sentence in v.reason for v in result.vectors)


def test_a_changed_mask_is_reported() -> None:
    family = committed.family("block-mask")
    result = run(Spoiled(change_mask), [replace(family, vectors=family.vectors[:4])], "float32")
    assert {v.reason for v in result.vectors} == {"changed its inputs: mask"}


def test_an_output_that_asks_for_a_gradient_is_judged() -> None:
    def spoil(_batch: Batch, outputs: Outputs) -> Outputs:
        return Outputs(outputs.out.requires_grad_(), outputs.lse)

    assert run(Spoiled(spoil), [small()], "float32").ok


def test_what_was_returned_is_kept_for_failures_alone() -> None:
    family = small()
    wrong = run(Spoiled(spoil_first(7.0)), [family], "float32", details=True)
    for result, vector in zip(wrong.vectors, family.vectors, strict=True):
        detail = result.detail
        assert detail.got[0][0] == 7.0
        shape = (vector.q_len, vector.value_dim)
        assert (len(detail.tolerance), len(detail.tolerance[0])) == shape
        assert len(detail.lse_got) == len(detail.lse_tolerance) == vector.q_len
    assert all(v.detail is None for v in run(PyimplTiled(), [family], "float32").vectors)
    heads = committed.family("grouped-query")
    right = run(PyimplTiled(), [heads], "float32", details=True)
    assert right.ok
    assert all(v.detail is None for v in right.vectors)


def test_nan_is_called_so() -> None:
    result = run(Spoiled(spoil_first(math.nan)), [small()], "float32").to_json()
    said = describe_failure(result["vectors"][0])
    assert "output[0, 0]: expected " in said
    assert ", got nan, error nan, tolerance " in said


def test_where_no_error_is_allowed_the_tolerance_is_zero() -> None:
    masked = committed.family("fully-masked")
    result = run(Spoiled(spoil_first(7.0)), [masked], "float32").to_json()
    said = [describe_failure(v) for v in result["vectors"] if v["status"] == "failed"]
    assert any(
        sentence.endswith("expected 0.0, got 7.0, error 7, tolerance 0") for sentence in said
    )


def test_only_a_failed_vector_has_a_size_and_it_counts_numbers() -> None:
    chosen = committed.families("one-key", "grouped-query", "gradient")
    result = run(Spoiled(spoil_first(7.0)), chosen, "float32")
    vectors = {v.id: v for f in chosen for v in f.vectors}
    assert {v.size is None for v in result.vectors if v.status != "failed"} <= {True}
    sizes = {v.id: v.size for v in result.failures}
    for name, size in sizes.items():
        one = vectors[name]
        if isinstance(one, AttentionVector):
            assert size == sum(len(row) for rows in (one.q, one.k, one.v) for row in rows)
    assert any(name.startswith("one-key") for name in sizes)
    assert sorted([5, None, 3, 4], key=by_size) == [3, 4, 5, None]


def test_one_vector_that_raises_does_not_take_its_batch_with_it() -> None:
    family = small()
    culprit = family.vectors[0]
    other = replace(culprit, id="small-random-9999")

    def spoil(batch: Batch, outputs: Outputs) -> Outputs:
        if any(v.id == culprit.id for v in batch.vectors):
            raise RuntimeError
        return outputs

    result = run(Spoiled(spoil), [replace(family, vectors=(culprit, other))], "float32")
    assert [v.status for v in result.vectors] == ["failed", "passed"]


@pytest.mark.thorough
def test_a_rounding_model_that_promises_too_much_is_found_out() -> None:
    """PyTorch's reduced-precision mode, judged as if it computed in float32."""

    class Boasting(SdpaMathReduced):
        def rounding(self, dtype: str, device: str) -> RoundingModel:
            return RoundingModel.sdpa_math(dtype)

    for dtype in ("float16", "bfloat16"):
        result = run(Boasting(), committed.everything(), dtype)
        assert len(result.failures) > 50


def test_what_is_unsupported_says_why_and_does_not_count() -> None:
    class Choosy(FlashEmulated):
        def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
            return "too long" if vector.kv_len > 2 else None

    result = run(Choosy(), [small()], "float32")
    (summary,) = result.families().values()
    assert summary.unsupported > 0
    assert summary.passed + summary.unsupported == len(small().vectors)
    reasons = {v.reason for v in result.vectors if v.status == "unsupported"}
    assert reasons == {"too long"}
    nothing = Choosy()
    # A method replaced on one object only, which mypy does not allow for.
    nothing.why_unsupported = lambda *_: "never"  # type: ignore[method-assign]
    assert not run(nothing, committed.everything(), "float32").ok


def test_inputs_that_the_dtype_cannot_hold_are_unsupported() -> None:
    family = small()
    large = replace(family.vectors[0], v=((2**20,) * family.vectors[0].value_dim,) * 99)
    large = replace(large, v=large.v[: large.kv_len])
    (result,) = run(PyimplTiled(), [replace(family, vectors=(large,))], "float16").vectors
    assert (result.status, result.reason) == ("unsupported", "its inputs are not exact in float16")


def test_json_has_no_special_numbers() -> None:
    result = run(Spoiled(spoil_first(math.nan)), [small()], "float32")
    text = json.dumps(result.to_json(), allow_nan=False)
    plain = json.loads(text)
    assert plain["ratio"] == "inf"
    assert plain["ok"] is False
    assert plain["vectors"][0]["worst"]["got"] == "nan"
    assert set(plain["families"]) == {"small-random"}


def test_a_dtype_that_the_adapter_does_not_take() -> None:
    with pytest.raises(ValueError, match="takes float32, float16, bfloat16, not float64"):
        run(FlashEmulated(), committed.everything(), "float64")


def test_until_a_failure_the_named_families_run_first_and_the_rest_does_not() -> None:
    chosen = committed.families("causal", "masked-holes", "small-random")
    order = ("masked-holes", "causal")
    result = run(Spoiled(spoil_first(7.0)), chosen, "float32", until_failure=order)
    assert {v.family for v in result.failures} == {"masked-holes"}
    others = {v.reason for v in result.vectors if v.family != "masked-holes"}
    assert others == {"was not run, since another failed first"}
    whole = run(PyimplTiled(), chosen, "float32", until_failure=order)
    assert {v.status for v in whole.vectors} == {"passed"}


def test_after_a_failure_nobody_asks_which_of_the_rest_are_unsupported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To ask means to turn all their numbers into floats."""
    chosen = committed.families("causal", "masked-holes", "small-random")
    asked: set[str] = set()

    def note(adapter: Adapter, vectors: Sequence[Vector], *rest: str) -> dict[str, str]:
        asked.update(vector.family for vector in vectors)
        return why_unsupported(adapter, vectors, *rest)

    monkeypatch.setattr(running, "why_unsupported", note)
    run(Spoiled(spoil_first(7.0)), chosen, "float32", until_failure=("masked-holes",))
    assert asked == {"masked-holes"}
    run(PyimplTiled(), chosen, "float32", until_failure=("masked-holes",))
    assert asked == {family.name for family in chosen}
