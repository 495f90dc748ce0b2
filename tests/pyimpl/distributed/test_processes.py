"""Attention by several processes against one process: every layout of shards, every option, output,
log-sum-exp and gradients. In one file, so that its tests share their processes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import context_checks
import dtensor_checks
import pytest
import torch
from attention_checks import judge, tiled_rounding
from backward_checks import judge_gradients
from context_jobs import Case as OfModule
from context_jobs import example as example_in_shards
from context_jobs import refusal as module_refusal
from dtensor_jobs import Case as OfMesh
from dtensor_jobs import example, parallel_module, refusal
from dtensor_jobs import run_compiled as compiled_on_mesh
from hypothesis import given, settings
from hypothesis import strategies as st
from process_pool import Pool, ProcessEnded, shared_pool
from shard_cases import (
    FOLDED,
    SHARDS,
    TENSORS,
    Case,
    argument,
    by_one,
    by_part,
    check_case,
    join,
)
from shard_faults import MUTANTS, NARROW
from shard_jobs import (
    REFUSED,
    by_mesh,
    decode,
    end_early,
    halve,
    log_messages,
    refusal_of_changes,
    require_grad,
    run_compiled,
    skip_the_call,
    twice_differentiated,
)

import pyimpl.distributed
from bench.distributed import Case as Timed
from bench.distributed import measure
from pyimpl.distributed import Shards
from pyimpl.internal.scores import ScoreOptions, scale_by_head

ALIGNMENTS = ["top-left", "bottom-right"]


@st.composite
def cases(draw: Any, function: str = "ring_attention") -> Case:
    """Any case of a function."""
    documents = draw(st.integers(0, 3)) == 0
    q_len = draw(st.integers(0, 19))
    kv_len = q_len if documents or draw(st.booleans()) else draw(st.integers(0, 19))
    names = draw(st.lists(st.sampled_from(sorted(TENSORS)), max_size=3, unique_by=argument))
    if {"bias", "attn_mask"} <= {argument(n) for n in names}:
        names = [n for n in names if n != "floating mask"]
    if documents and "floating mask" in names:
        names = [n for n in names if argument(n) != "bias"]
    bounds = st.none() | st.integers(0, 6)
    numbers = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "is_causal": st.booleans(),
                "causal_alignment": st.sampled_from(ALIGNMENTS),
                "window": st.tuples(bounds, bounds),
                "softcap": st.just(1.5),
                "scale": st.just(-0.7),
                "backend": st.sampled_from(["tiled", "reference"]),
            },
        )
    )
    if draw(st.integers(0, 3)) == 0:
        numbers |= {"dropout_p": 0.4, "dropout_seed": draw(st.integers(0, 2**63 - 1))}
    return Case(
        lengths=(q_len, kv_len),
        shards=draw(st.sampled_from(sorted(SHARDS))),
        key_shards=None if documents else draw(st.none() | st.sampled_from(sorted(SHARDS))),
        batch=draw(st.integers(0, 2)),
        kv_heads=draw(st.integers(1, 2)) if function == "ring_attention" else 4,
        group=draw(st.integers(1, 2)),
        tensors=tuple(names),
        numbers=numbers,
        documents=documents,
        seed=draw(st.integers(0, 2**31)),
        function=function,
    )


@pytest.mark.thorough
@settings(max_examples=80, deadline=None)
@given(cases(), st.integers(1, 4))
def test_any_shards_and_options_are_those_of_one_process(case: Case, processes: int) -> None:
    check_case(shared_pool(), processes, case)


@settings(max_examples=30, deadline=None)
@given(cases("ulysses_attention"), st.sampled_from([1, 2, 4]))
def test_by_heads(case: Case, processes: int) -> None:
    check_case(shared_pool(), processes, case)


@settings(max_examples=25, deadline=None)
@given(cases("ulysses_attention"), st.sampled_from([1, 2, 4]))
def test_by_heads_and_rounds(case: Case, rows: int) -> None:
    check_case(shared_pool(), 4, replace(case, rows=rows))


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(cases("ulysses_attention"), st.sampled_from([2, 4, 8]))
def test_rows_of_eight_processes(case: Case, rows: int) -> None:
    check_case(shared_pool(8), 8, replace(case, rows=rows))


@pytest.mark.thorough
@settings(max_examples=400, deadline=None)
@given(cases(), st.integers(1, 8))
def test_up_to_eight_processes(case: Case, processes: int) -> None:
    check_case(shared_pool(8), processes, case)


DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]


def pool_of(processes: int) -> Pool:
    """The pool of all tests, or the large one where so many are asked for."""
    return shared_pool() if processes <= 4 else shared_pool(8)


def check_rounding(case: Case, processes: int, fault: Any = None) -> None:
    """Fail unless output, log-sum-exp and gradients are within the tolerance of one process, which
    rounds each result once: the number of processes is not in it."""
    made = case.make(processes)
    found = join(case, pool_of(processes).run(processes, by_part, case, fault))
    options = ScoreOptions(scale=case.dims[0] ** -0.5, right=0 if case.numbers else None)
    given = made.query, made.key, made.value
    judge(
        (found["out"], found["lse"]), *given, is_causal=bool(case.numbers),
        rounding=tiled_rounding(case.dtype, 1),
    )  # fmt: skip
    grads = {n: found[f"the gradient of {n}"] for n in ("query", "key", "value")}
    judge_gradients(
        grads, *given, options, made.grad_out, made.grad_lse, computed=torch.float32
    )  # fmt: skip


EIGHT = pytest.param(8, marks=pytest.mark.thorough)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
@pytest.mark.parametrize("processes", [1, 2, 3, 4, EIGHT])
def test_errors_do_not_grow_with_the_processes(dtype: torch.dtype, processes: int) -> None:
    case = Case((37, 37), "zigzag", dims=(16, 16), dtype=dtype, numbers={"is_causal": True})
    check_rounding(case, processes)


def mean_errors(processes: int, fault: Any = None) -> tuple[float, float]:
    """The root mean square of the errors of the output in bfloat16, and the most that it may be: of
    the exact result rounded once, and twice that of the output in float32 from the same numbers.

    For |x + ε − r(x + ε)| ≤ |x + ε − r(x)|, where r rounds to the nearest, so an output x + ε that
    is rounded is off by at most |x − r(x)| + 2|ε|.
    """
    exact = by_one(replace(NARROW, dtype=torch.float64, rounded=torch.bfloat16), processes)["out"]

    def rms(errors: torch.Tensor) -> float:
        return float(errors.square().mean().sqrt())

    def error(dtype: torch.dtype) -> float:
        case = replace(NARROW, dtype=dtype, rounded=torch.bfloat16)
        found = join(case, pool_of(processes).run(processes, by_part, case, fault))["out"]
        return rms(found.double() - exact)

    once = rms(exact.bfloat16().double() - exact)
    return error(torch.bfloat16), once + 2 * error(torch.float32)


@pytest.mark.parametrize("processes", [1, 2, 4, EIGHT])
def test_the_mean_error_in_bfloat16_is_that_of_one_rounding(processes: int) -> None:
    found, most = mean_errors(processes)
    assert found <= most


def test_the_mean_error_of_rounded_partials_is_more() -> None:
    found, most = mean_errors(4, MUTANTS["partial outputs rounded to 16 bits"][0])
    assert found > most


@pytest.mark.parametrize("shards", sorted(SHARDS))
@pytest.mark.parametrize("options", [{}, {"softcap": 1.5}, {"backend": "reference"}], ids=str)
def test_keys_that_no_query_sees_may_hold_anything(shards: str, options: dict[str, Any]) -> None:
    numbers = {"is_causal": True, **options}
    case = Case((7, 12), shards, shards, tensors=("slopes",), unseen=True, numbers=numbers)
    check_case(shared_pool(), 3, case)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "case",
    [Case((9, 9), "zigzag", batch=2, group=2), Case((9, 9), "uneven", batch=2, seed=1),
     Case((9, 9), "striped", batch=2, kv_heads=4, function="ulysses_attention")],
    ids=lambda case: f"{case.function} {case.shards}",
)  # fmt: skip
def test_dropout_in_the_kernels(case: Case) -> None:
    """Of heads, queries and keys that begin elsewhere; by heads all queries are one stretch."""
    numbers = {"dropout_p": 0.4, "dropout_seed": 3, "is_causal": True, "backend": "triton"}
    check_case(shared_pool(), 2, replace(case, dtype=torch.float32, numbers=numbers))


@pytest.mark.parametrize("name", MUTANTS)
def test_faults_are_caught(name: str) -> None:
    fault, processes, case = MUTANTS[name]
    check = check_rounding if case is NARROW else check_float64
    check(case, processes)
    with pytest.raises(AssertionError):
        check(case, processes, fault)


def check_float64(case: Case, processes: int, fault: Any = None) -> None:
    check_case(shared_pool(), processes, case, fault)


@pytest.mark.parametrize(("change", "there", "here"), REFUSED, ids=range(len(REFUSED)))
def test_what_one_process_gives_is_an_error_in_all(change, there: str, here: str) -> None:
    other, own = shared_pool().run(2, refusal_of_changes, {1: change}, "ring_attention")
    assert there in own
    assert here in other
    assert "\n" not in own + other


def test_heads_that_the_processes_do_not_divide() -> None:
    for text in shared_pool().run(3, refusal_of_changes, {}, "ulysses_attention"):
        assert text == (
            "ValueError: the heads of query must be a multiple of the number of processes that "
            "trade them, 3, not 4: ring_attention takes any"
        )


def test_there_are_no_second_derivatives() -> None:
    texts = set(shared_pool().run(2, twice_differentiated))
    assert texts == {
        "the gradients of attention have no gradient: call backward without create_graph"
    }


OF_HEADS = ["slopes", "slopes of each batch", "sinks", *FOLDED]


@settings(max_examples=40, deadline=None)
@given(
    st.tuples(st.integers(0, 4), st.integers(0, 25)), st.sampled_from(sorted(SHARDS)),
    st.lists(st.sampled_from(OF_HEADS), max_size=3, unique_by=argument), st.booleans(),
    st.none() | st.integers(0, 6), st.integers(1, 4), st.sampled_from(DTYPES),
    st.integers(0, 2**31),
)  # fmt: skip
def test_a_cache_in_shards_is_one_cache(
    lengths, shards: str, names, causal: bool, left, processes: int, dtype, seed: int
) -> None:
    case = Case(
        lengths, shards, shards, batch=2, group=2, tensors=tuple(names), dtype=dtype, seed=seed,
        numbers={"is_causal": causal, "window": (left, None)},
    )  # fmt: skip
    check_decoding(case, processes)


def check_decoding(case: Case, processes: int, fault: Any = None) -> None:
    """Fail unless every process finds the same bits, within the tolerance of rounding once."""
    made = case.make(processes)
    found = shared_pool().run(processes, decode, case, {}, fault)
    for other in found[1:]:
        assert all(map(torch.equal, found[0], other))
    options = dict(made.options)
    for name in options.keys() & FOLDED:
        # As `folds_into_query` rounds them.
        made = replace(made, query=scale_by_head(made.query, options.pop(name)))
    if "alibi_slopes" in options:
        options["alibi_slopes"] = options["alibi_slopes"].reshape(-1, 4)
    judge(
        found[0], made.query, made.key, made.value, is_causal=case.numbers["is_causal"],
        left=case.numbers["window"][0], shift=case.lengths[1] - case.lengths[0],
        rounding=tiled_rounding(case.dtype, 1), **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('alignment_shift("bottom-right", q_len, key_shards.length)', "0"),
        ("replace(options, sinks=None),\n    )", "options,\n    )"),
        ("processes.rank, query, key, value", "0, query, key, value"),
        ("parts.append(sink)", "parts += [sink] * processes.count"),
    ],
)
def test_faults_of_decoding_are_caught(old: str, new: str) -> None:
    numbers = {"is_causal": True, "window": (None, None)}
    case = Case((2, 8), key_shards="contiguous", group=2, tensors=("sinks",), numbers=numbers)
    check_decoding(case, 2)
    with pytest.raises(AssertionError):
        check_decoding(case, 2, ("decode.py", old, new))


def test_a_cache_in_shards_refuses_other_queries_and_gradients() -> None:
    case = Case((2, 9), key_shards="contiguous")
    for change, text in (
        (halve, "the digest of query must be the same in every process of the group"),
        (
            require_grad,
            "process 1 of the group refuses its arguments: query requires a gradient, and",
        ),
    ):
        own, _ = shared_pool().run(2, decode, case, {"query": change})
        assert own.startswith(text)


def test_messages_are_on_their_way_while_a_round_is_computed() -> None:
    forward = "post compute wait post compute wait compute"
    # Of keys, and of the gradients that follow them; these at last go home.
    backward = "post compute post wait post compute wait post wait compute wait post wait"
    for events in shared_pool().run(3, log_messages):
        assert " ".join(events) == f"{forward} then {backward}"


def test_a_mesh_is_a_group() -> None:
    texts = {text for texts in shared_pool().run(4, by_mesh) for text in texts}
    assert texts == {
        "group must be a mesh of one dimension, not of 2; ulysses_attention takes one of two",
        "group must be a mesh of at most two dimensions, not of 3",
    }


def test_there_has_to_be_a_group() -> None:
    given = (torch.zeros(1, 1, 4, 2),) * 3
    for group, error, text in (
        (None, ValueError, "group must be given, or torch.distributed.init_process_group be"),
        (3, TypeError, "group must be a ProcessGroup that this process is a member of, a Device"),
    ):
        with pytest.raises(error, match=text):
            pyimpl.distributed.ring_attention(*given, shards=Shards.contiguous(4, 1), group=group)


@pytest.mark.thorough
@pytest.mark.parametrize("function", ["ring_attention", "ulysses_attention"])
def test_compiled_and_from_a_checkpoint(function: str) -> None:
    assert shared_pool().run(2, run_compiled, function) == [True, True]


def test_a_process_that_ends_is_an_error_in_the_others() -> None:
    pool = Pool(2)
    try:
        pool.start(2, end_early)
        text = pool.result(0)
        assert text.startswith(
            "process 0 of the group waited in vain for process 1, which ended or"
        )
        with pytest.raises(ProcessEnded):
            pool.result(1)
    finally:
        pool.close()


@pytest.mark.thorough
def test_a_process_that_does_not_call_is_an_error_within_the_timeout() -> None:
    """The timeout is long enough for a busy machine to start the processes in."""
    pool = Pool(2, timedelta(seconds=45))
    try:
        text, _ = pool.run(2, skip_the_call)
        assert text.startswith(
            "process 0 of the group waited in vain for process 1, which ended or"
        )
    finally:
        pool.close()


@pytest.mark.parametrize("case", dtensor_checks.CASES, ids=range(len(dtensor_checks.CASES)))
def test_dtensors(case: OfMesh) -> None:
    dtensor_checks.check(case)


@pytest.mark.thorough
@settings(max_examples=100, deadline=None)
@given(dtensor_checks.cases())
def test_dtensors_are_computed_as_by_one_process(case: OfMesh) -> None:
    dtensor_checks.check(case)


@pytest.mark.parametrize("name", dtensor_checks.MUTANTS)
def test_faults_of_dtensors_are_caught(name: str) -> None:
    fault, case = dtensor_checks.MUTANTS[name]
    dtensor_checks.check(case)
    with pytest.raises(AssertionError):
        dtensor_checks.check(case, fault)


@pytest.mark.parametrize("name", dtensor_checks.REFUSED)
def test_dtensors_that_are_refused(name: str) -> None:
    for text in shared_pool().run(4, refusal, name):
        assert text.startswith(dtensor_checks.REFUSED[name])
        assert "\n" not in text


@pytest.mark.parametrize("way", ["tensors", "data", "shards of parameters", "checkpoint"])
def test_a_parallel_module_is_that_of_one_process(way: str) -> None:
    for error in shared_pool().run(4, parallel_module, way):
        torch.testing.assert_close(error, 0.0)


def test_the_example_of_training_on_four_processes() -> None:
    found = shared_pool().run(4, example, None)
    line = "8 steps on 4 processes, a head on each: the losses of one process, and falling\n"
    assert found == [line, "", "", ""]


@pytest.mark.thorough
def test_the_example_ends_where_the_gradients_are_wrong() -> None:
    right = 'by_name["value"] = share.key_gradient(by_name["value"], value)'
    fault = right, right.replace('(by_name["value"]', '(2 * by_name["value"]')
    assert set(shared_pool().run(4, example, fault)) == {"it asserted something else"}


@pytest.mark.thorough
@pytest.mark.parametrize("placed", [("batch", "heads"), ("rows", "heads")], ids=str)
def test_dtensors_compiled(placed: tuple[str, ...]) -> None:
    numbers = {"is_causal": True} | dtensor_checks.DROPPED
    case = OfMesh((2, 2), placed, tensors=("slopes", "bias"), numbers=numbers)
    assert shared_pool().run(4, compiled_on_mesh, case) == [True] * 4


@pytest.mark.parametrize("case", context_checks.CASES, ids=range(len(context_checks.CASES)))
def test_modules_in_shards(case: OfModule) -> None:
    context_checks.check(case)


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(context_checks.cases(), st.sampled_from([2, 4]))
def test_modules_in_shards_are_those_of_one_process(case: OfModule, processes: int) -> None:
    context_checks.check(replace(case, rows=case.rows if processes == 4 else 0), processes)


@pytest.mark.parametrize("name", context_checks.MUTANTS)
def test_faults_of_modules_in_shards_are_caught(name: str) -> None:
    fault, case = context_checks.MUTANTS[name]
    with pytest.raises(AssertionError, match="not close"):
        context_checks.check(case, 2, fault)


@pytest.mark.parametrize(
    "way",
    ["data", "shards of parameters"]
    + [pytest.param(way, marks=pytest.mark.thorough) for way in ("checkpoint", "compiled")],
)
def test_wrapped_modules_in_shards(way: str) -> None:
    context_checks.check_wrapped(context_checks.MODEL, way)


def test_the_example_of_modules_in_shards_is_one_process() -> None:
    errors = shared_pool().run(4, example_in_shards)
    torch.testing.assert_close(errors, [[0.0, 0.0]] * 4)


def test_modules_in_shards_refuse_with_a_sentence() -> None:
    for name, text in context_checks.REFUSED.items():
        for found in shared_pool().run(2, module_refusal, name):
            assert found.startswith(text)
            assert "\n" not in found
    for name, text in context_checks.REFUSED_IN_ONE.items():
        other, own = shared_pool().run(2, module_refusal, name)
        assert own == f"ValueError: {text}"
        assert other == f"ValueError: process 1 of the group refuses its arguments: {text}"


def test_the_bytes_that_are_timed_are_those_of_the_rounds_and_of_the_exchanges() -> None:
    case = Timed(length=16, heads=4, head_dim=8, repeats=1)
    shard = case.heads * case.head_dim * 16 // 2 * 4
    sums = case.heads * 16 // 2 * 4
    for found in shared_pool().run(2, measure, case):
        ring, ulysses = found
        # Keys and values once; half of query, key, value, output and log-sum-exp.
        assert ring.sent == 2 * shard
        assert ulysses.sent == (4 * shard + sums) / 2
        assert 0 < ring.waited <= ring.seconds
        assert ring.hidden is not None
