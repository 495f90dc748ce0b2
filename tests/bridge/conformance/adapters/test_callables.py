"""Anybody's function: the features that are found, and how it is called."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import attention_functions as functions
import committed
import numpy as np
import pytest
import torch

import pyimpl
from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.functions.features import CallableError, Features
from bridge.conformance.inside import found as place
from bridge.conformance.judging.run import Result
from bridge.conformance.outcomes.outcome import Conditions, Description, describe, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tolerances.rounding_model import CHOICES, RoundingModel, generous
from bridge.conformance.tolerances.tolerance import attention_tolerance
from bridge.report.tables import alignment_of_is_causal
from bridge.vectors.model.attention import AttentionVector, Family
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.sampled import SampledVector
from pyimpl.internal.scores import CHANGES

SDPA_TAKES = {
    *("scale", "is-causal", "boolean-mask", "floating-mask", "gqa", "gradients", "bias-gradients")
}
FILE = Path(functions.__file__)


PLACES = {
    torch.nn.functional.scaled_dot_product_attention: (
        "torch.nn.functional:scaled_dot_product_attention"
    ),
    pyimpl.attention: "pyimpl:attention",
}


def name_of(function: Callable[..., Any]) -> str:
    return PLACES.get(function) or f"{FILE}:{function.__name__}"


@functools.cache
def description(function: Callable[..., Any]) -> Description:
    with Conditions().session(name_of(function)) as session:
        return describe(session, ALL_DTYPES)


def find_features(function: Callable[..., Any]) -> Features:
    able = description(function).features
    assert able is not None
    return able


def conform(
    function: Callable[..., Any], chosen: list[Family], dtype: str = "float32", *without: str,
    **more: Any,
) -> Result:  # fmt: skip
    subject = Subject(name_of(function), None, without, find_features(function), **more)
    (outcome,) = outcomes(subject, chosen, (dtype,), Conditions())
    return outcome.result


def reasons(result: Result, status: str) -> set[str | None]:
    return {v.reason for v in result.vectors if v.status == status}


def test_what_is_found_of_sdpa() -> None:
    able = find_features(torch.nn.functional.scaled_dot_product_attention)
    assert able.supported == SDPA_TAKES
    assert able.dtypes == ALL_DTYPES
    assert (able.alignment, able.lse_by, able.width, able.equal_dims) == (
        "top-left",
        None,
        None,
        False,
    )


def test_what_is_found_of_the_public_function() -> None:
    able = find_features(pyimpl.attention)
    assert able.unsupported == {"documents": "has no argument cu_seqlens"}
    assert able.lse_by == "return_lse"


def first_of_each(of_each: int | None) -> list[Family]:
    """So many vectors of each family; None: all of them."""
    return [replace(family, vectors=family.vectors[:of_each]) for family in committed.everything()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("of_each", [1, pytest.param(None, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "function",
    [functions.reference, torch.nn.functional.scaled_dot_product_attention, pyimpl.attention],
    ids=lambda function: name_of(function).rpartition(":")[2],
)
def test_a_right_function_passes_everything(
    function: Callable[..., Any], of_each: int | None
) -> None:
    """In every dtype; of_each: how many vectors of each family, None for all of them."""
    subject = Subject(name_of(function), None, (), find_features(function))
    of_dtypes = outcomes(subject, first_of_each(of_each), ALL_DTYPES, Conditions())
    assert [outcome.result.dtype for outcome in of_dtypes] == list(ALL_DTYPES)
    for outcome in of_dtypes:
        result = outcome.result
        assert [v.id for v in result.failures] == []
        passed = sum(v.status == "passed" for v in result.vectors)
        assert passed >= (20 if of_each else 400)
        assert result.ratio is not None
        assert 0.01 < result.ratio <= 1


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("of_each", "least"), [(4, 25), pytest.param(None, 150, marks=pytest.mark.thorough)]
)
def test_every_vector_of_attention_goes_to_the_public_function(
    of_each: int | None, least: int
) -> None:
    """of_each: as above; least: more gradients than this are among them that one slope and one
    sink for all heads will do for."""
    chosen = first_of_each(of_each)
    result = conform(pyimpl.attention, chosen)
    taken = {"attention", "grouped-query", "sampled"}
    # A function of others draws its own dropout, and is given none of these options.
    wanted = {
        v.id
        for f in chosen
        if f.operation in taken
        for v in f.vectors
        if not (isinstance(v, SampledVector) and v.own_options)
    }
    passed = {v.id for v in result.vectors if v.status == "passed"}
    assert passed >= wanted
    assert all(v.lse_ratio is not None for v in result.vectors if v.id in wanted)
    # Of gradients all but those for which each head would need a slope, a sink or a factor of its
    # own, and dropout, of which every function has its own generator.
    gradients = [v for f in chosen for v in f.vectors if isinstance(v, GradientVector)]
    alike = {
        v.id
        for v in gradients
        if len(set(v.sinks or ())) <= 1 and (v.alibi is None or len(set(v.alibi.slopes)) <= 1)
        if not v.dropout and all(getattr(v, c.name) is None for c in CHANGES if not c.argument)
    }
    assert len(alike) > least
    assert len(alike) < len(gradients)
    assert passed - wanted == alike


def test_what_a_function_does_not_support_is_unsupported_with_the_reason() -> None:
    result = conform(functions.plain, committed.everything())
    assert not result.failures
    assert "takes no scale: has no argument scale" in reasons(result, "unsupported")
    assert any(v.status == "passed" for v in result.vectors)
    refused = conform(functions.mask_refused, committed.families("block-mask"))
    (reason,) = reasons(refused, "unsupported")
    assert reason is not None
    assert "raised NotImplementedError: no masks yet" in reason


@pytest.mark.parametrize(
    ("function", "family"),
    [
        (functions.scale_ignored, "small-random"),
        # Raising over an argument of its own is no refusal, where it looks like a mistake.
        (functions.mask_by_mistake, "block-mask"),
        (functions.raises, "small-random"),
    ],
)
def test_a_mistake_fails_the_vectors(function: Callable[..., Any], family: str) -> None:
    result = conform(function, committed.families(family))
    assert len(result.failures) > 5
    assert "unsupported" not in {v.status for v in result.vectors}


def test_where_every_call_raises_each_vector_says_so() -> None:
    able = find_features(functions.raises)
    assert able.dtypes == ALL_DTYPES
    assert able.presumed == "a plain call raised RuntimeError: no such kernel"
    result = conform(functions.raises, committed.families("one-key"))
    assert reasons(result, "failed") == {"raised RuntimeError: no such kernel"}


def test_the_alignment_is_found() -> None:
    able = find_features(functions.bottom_right)
    assert able.alignment == "bottom-right"
    unequal = committed.families("unequal-lengths", "causal-bottom-right")
    # SDPA's is_causal is aligned top-left: a function of its form that is not fails, unless the
    # user says that bottom-right is meant.
    assert conform(functions.bottom_right, unequal).failures
    for alignment, fails in (("top-left", True), ("bottom-right", False)):
        result = conform(functions.bottom_right, unequal, causal_alignment=alignment)
        assert bool(result.failures) == fails
        assert any(v.status == "passed" for v in result.vectors)
    sentence = alignment_of_is_causal("bottom-right", "top-left")
    assert sentence.endswith("If bottom-right is meant: --alignment bottom-right.")


def test_an_alignment_that_nothing_shows_is_not_found() -> None:
    able = find_features(functions.causal_ignored)
    assert able.alignment == "not-found"
    assert "matches neither" in alignment_of_is_causal(able.alignment, "top-left")
    assert alignment_of_is_causal("top-left", "top-left") == "is_causal: top-left."
    # A wrong answer does not count as unsupported.
    result = conform(functions.causal_ignored, committed.families("causal"))
    assert len(result.failures) > 5
    assert not reasons(result, "unsupported")


def test_what_sdpa_is_known_to_get_wrong_fails_where_it_is_not_declared() -> None:
    sdpa = torch.nn.functional.scaled_dot_product_attention
    chosen = committed.families("scales")
    declared = conform(sdpa, chosen)
    assert not declared.failures
    known = {v.id for v in declared.vectors if v.status == "unsupported"}
    assert known
    failing = conform(sdpa, chosen, undeclared=True).failures
    assert {v.id for v in failing} == known


def test_dtypes_and_head_sizes_are_found() -> None:
    able = find_features(functions.half_only)
    assert able.dtypes == ("float16",)
    assert able.width == 16
    assert "float16 only" in able.unsupported["dtype float32"]
    result = conform(functions.half_only, committed.families("small-random", "scales"), "float16")
    assert not result.failures
    assert any(v.status == "passed" for v in result.vectors)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_what_padding_would_give_another_default_scale_is_unsupported(dtype: str) -> None:
    chosen = committed.families("default-scale")
    vectors = [v for f in chosen for v in f.vectors if isinstance(v, AttentionVector)]
    vectors = [v for v in vectors if v.mask.kind == "none"]
    why = "takes no scale, and its head size is padded, for which the default is another"

    def judge_by_family(function: Callable[..., Any]) -> dict[str, set[str]]:
        result = conform(function, chosen, dtype)
        said = {v.reason for v in result.vectors if v.id in unmasked} - {None}
        assert said <= {why}
        return {
            status: {v.id for v in result.vectors if v.status == status}
            for status in ("passed", "failed")
        }

    unmasked = {v.id for v in vectors}
    narrow = {v.id for v in vectors if v.value_dim <= v.head_dim}
    eights = {v.id for v in vectors if v.head_dim % 8 == 0}
    assert len(unmasked) > len(narrow) > len(eights) > 5
    assert judge_by_family(functions.equal_dims) == {"passed": narrow, "failed": set()}
    assert judge_by_family(functions.equal_dims_unscaled) == {"passed": set(), "failed": narrow}
    assert judge_by_family(functions.equal_dims_of_eights) == {"passed": eights, "failed": set()}
    # Beside columns of zeros the scale can be given.
    assert judge_by_family(functions.equal_dims_at_scale) == {"passed": unmasked, "failed": set()}


def test_names_of_sdpa_are_tried_where_any_are_taken() -> None:
    able = find_features(functions.any_options)
    assert able.supported == SDPA_TAKES
    assert "softcap" in able.unsupported


def test_a_log_sum_exp_that_is_returned_is_judged() -> None:
    right = conform(functions.with_lse, committed.families("log-sum-exp"))
    assert right.ok
    assert all(v.lse_ratio is not None for v in right.vectors if v.status == "passed")
    wrong = conform(functions.with_log2, committed.families("small-random"))
    assert wrong.failures
    assert all(v.worst is not None and v.worst.part == "lse" for v in wrong.failures)
    left_out = conform(functions.with_log2, committed.families("small-random"), "float32", "lse")
    assert not left_out.failures


def test_gradients_are_judged_where_autograd_gives_them() -> None:
    chosen = committed.families("gradient", "gradient-grouped")
    vectors = [v for f in chosen for v in f.vectors if isinstance(v, GradientVector)]
    by_out = {v.id for v in vectors if not v.by_log_sum_exp}
    result = conform(functions.with_lse, chosen)
    assert not result.failures
    assert {v.id for v in result.vectors if v.status == "passed"} - by_out
    result = conform(functions.no_gradient_by_lse, chosen)
    assert not result.failures
    assert {v.id for v in result.vectors if v.status == "passed"} <= by_out
    assert (
        "has no gradient by the log-sum-exp: autograd knows of none: requires_grad is False"
        in reasons(result, "unsupported")
    )
    result = conform(functions.detached, chosen)
    assert reasons(result, "unsupported") == {
        "has no gradients: autograd knows of none: requires_grad is False"
    }
    result = conform(functions.reference, chosen, "float32", "gradients")
    assert reasons(result, "unsupported") == {"has no gradients: declared by --without"}


def test_wrong_gradients_fail() -> None:
    chosen = committed.families("gradient")
    result = conform(functions.without_delta, chosen)
    assert result.failures
    assert all(v.worst is not None and v.worst.part[:2] in ("dq", "dk") for v in result.failures)
    assert any(v.status == "passed" for v in conform(functions.reference, chosen).vectors)
    wrong = conform(functions.masked_too_late, chosen).failures
    assert {v.id for v in wrong} == {"gradient-014", "gradient-018"}
    assert all(v.worst is not None and math.isnan(v.worst.got) for v in wrong)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (functions.wrong_shape, "returned an output of shape"),
        (functions.wrong_dtype, "returned an output of torch.float64 instead of torch.float32"),
        (functions.wrong_device, "returned an output on meta instead of cpu"),
        (functions.no_tensor, "returned None instead of a tensor"),
        (functions.sparse, "returned an output of layout torch.sparse_coo"),
        (functions.lse_elsewhere, "returned a log-sum-exp on meta instead of cpu"),
        (functions.sparse_lse, "returned a log-sum-exp of layout torch.sparse_coo"),
        (functions.exits, "raised SystemExit: 3"),
        (functions.skips, "raised Skipped: no such GPU"),
        (functions.wordless, "raised Wordless"),
        (functions.retypes_query, "changed its input query"),
        (functions.changes_key, "changed its input key"),
        (functions.changes_mask, "changed its input attn_mask"),
    ],
)
def test_misbehaviour_is_named(function: Callable[..., Any], sentence: str) -> None:
    family = "block-mask" if function is functions.changes_mask else "unequal-lengths"
    vectors = committed.families(family)
    result = conform(function, vectors)
    said = reasons(result, "failed")
    assert said
    assert all(reason is not None and sentence in reason for reason in said)


def test_not_a_number_is_called_so() -> None:
    result = conform(functions.not_a_number, committed.families("one-key"))
    assert result.failures
    assert all(v.worst is not None and math.isnan(v.worst.got) for v in result.failures)


def test_functions_are_found_by_file_and_module() -> None:
    assert place.function("math:gcd") is math.gcd
    assert place.function(f"{FILE}:reference").__name__ == "reference"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("no/such/file.py:f", "there is no file"),
        ("no_such_module:f", "no_such_module cannot be imported: ModuleNotFoundError"),
        ("math:gdc", "math has no 'gdc'; there is gcd"),
        (f"{FILE}:number", "is of type int, which cannot be called"),
        (f"{FILE}:Doubled", "is a class; a function of query, key and value is accepted"),
        (":f", "is not of the form module:function"),
        ("bridge.conformance.judging.run:run", "is a part of the judge"),
    ],
)
def test_what_is_not_there_is_said(name: str, sentence: str) -> None:
    with (
        pytest.raises(CallableError, match=re.escape(sentence)),
        Conditions().session(name) as session,
    ):
        session.open()


def test_what_cannot_be_called_as_sdpa_is_said() -> None:
    with pytest.raises(CallableError, match="needs config beside query, key and value"):
        find_features(functions.configured)
    with pytest.raises(CallableError, match="takes 1 positional arguments"):
        find_features(functions.of_queries)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_what_passes_another_rounding_model_passes_the_generous(dtype: str) -> None:
    """Its tolerance is never the smaller, for any choice and any built-in adapter's model."""
    others = [make(dtype) for make in CHOICES.values()]
    others += [RoundingModel.sdpa_flash(dtype), RoundingModel.sdpa_math(dtype)]
    for family in committed.families("natural-scores", "large-spread", "block-mask"):
        for vector in family.vectors[:4]:
            assert isinstance(vector, AttentionVector)
            q, k, v = (
                np.array([[float(x) for x in row] for row in m])
                for m in (vector.q, vector.k, vector.v)
            )
            own = attention_tolerance(q, k, v, scale=vector.natural_scale, rounding=generous(dtype))
            for rounding in others:
                other = attention_tolerance(q, k, v, scale=vector.natural_scale, rounding=rounding)
                assert (own >= other).all(), (rounding.name, vector.id)
