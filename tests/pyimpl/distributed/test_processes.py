"""Attention by several processes against one process: every layout of shards, every option, output,
log-sum-exp and gradients. In one file, so that its tests share their processes."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial, wraps
from typing import Any
from unittest import mock

import pytest
import torch
import torch.distributed as dist
from attention_checks import judge, tiled_rounding
from backward_checks import judge_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from process_pool import Pool, ProcessEnded, shared_pool
from shard_cases import SHARDS, TENSORS, Case, argument, by_one, by_part, check_case, joined
from shard_faults import FAULTS, NARROW
from torch.distributed.device_mesh import init_device_mesh
from torch.utils.checkpoint import checkpoint

import pyimpl.distributed
from pyimpl.distributed import Shards, ring
from pyimpl.distributed.passing import Carousel, Posted, Processes
from pyimpl.internal.scores import ScoreOptions

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


@settings(max_examples=100, deadline=None)
@given(cases(), st.integers(1, 4))
def test_any_shards_and_options_are_those_of_one_process(case: Case, processes: int) -> None:
    check_case(shared_pool(), processes, case)


@settings(max_examples=30, deadline=None)
@given(cases("ulysses_attention"), st.sampled_from([1, 2, 4]))
def test_by_heads(case: Case, processes: int) -> None:
    check_case(shared_pool(), processes, case)


@pytest.mark.thorough
@settings(max_examples=400, deadline=None)
@given(cases(), st.integers(1, 8))
def test_up_to_eight_processes(case: Case, processes: int) -> None:
    check_case(shared_pool(8), processes, case)


LOW = [torch.float32, torch.float16, torch.bfloat16]


def check_rounding(case: Case, processes: int, fault: Any = None) -> None:
    """Fail unless output, log-sum-exp and gradients are within what one process may round, which
    rounds each result once: the number of processes is not in it."""
    made = case.made(processes)
    found = joined(case, shared_pool().run(processes, by_part, case, fault))
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


@pytest.mark.parametrize("dtype", LOW, ids=str)
@pytest.mark.parametrize("processes", [1, 2, 3, 4])
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
        found = joined(case, shared_pool().run(processes, by_part, case, fault))["out"]
        return rms(found.double() - exact)

    once = rms(exact.bfloat16().double() - exact)
    return error(torch.bfloat16), once + 2 * error(torch.float32)


@pytest.mark.parametrize("processes", [1, 2, 4])
def test_the_mean_error_in_bfloat16_is_that_of_one_rounding(processes: int) -> None:
    found, most = mean_errors(processes)
    assert found <= most


def test_the_mean_error_of_rounded_partials_is_more() -> None:
    found, most = mean_errors(4, FAULTS["partial outputs rounded to 16 bits"][0])
    assert found > most


@pytest.mark.parametrize("name", FAULTS)
def test_faults_are_caught(name: str) -> None:
    fault, processes, case = FAULTS[name]
    check = check_rounding if case is NARROW else check_float64
    check(case, processes)
    with pytest.raises(AssertionError):
        check(case, processes, fault)


def check_float64(case: Case, processes: int, fault: Any = None) -> None:
    check_case(shared_pool(), processes, case, fault)


def refused(
    rank: int, group: dist.ProcessGroup, changes: dict[int, dict[str, Any]], function: str
) -> str:
    """The error of a call in which the processes of `changes` give something else: a job."""
    made = Case((5, 5), kv_heads=4).made(dist.get_world_size(group))
    given: dict[str, Any] = {
        "query": made.shards.take(made.query, rank),
        "key": made.shards.take(made.key, rank),
        "value": made.shards.take(made.value, rank),
        "shards": made.shards,
    }
    for name, change in changes.get(rank, {}).items():
        given[name] = change(given.get(name)) if callable(change) else change
    try:
        getattr(pyimpl.distributed, function)(**given, group=group)
    except (TypeError, ValueError, NotImplementedError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def single(x: torch.Tensor) -> torch.Tensor:
    return x.float()


def shorter(x: torch.Tensor) -> torch.Tensor:
    return x[:, :, 1:]


def narrower(x: torch.Tensor) -> torch.Tensor:
    return x[..., 1:]


def wanting(x: torch.Tensor) -> torch.Tensor:
    return x.requires_grad_()


ALL_SINGLE = {"query": single, "key": single, "value": single}
# What process 1 gives, the error there, and the error in process 0.
REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"key": single}, "TypeError: key must have the dtype of query", "refuses its arguments: key"),
    (ALL_SINGLE, "ValueError: the dtype of query, key and value must be the same in every process "
     "of the group, not torch.float64 in process 0 and torch.float32 in process 1", "ValueError: "),
    ({"query": shorter}, "ValueError: query must have the length that shards give process 1, 2, "
     "not 1", "process 1 of the group refuses its arguments: query must have"),
    ({"value": narrower}, "the last dimension of value must be the same", "not 3 in process 0 and"),
    ({"is_causal": True}, "the window with is_causal must be the same", "(None, 0) in process 1"),
    ({"scale": 2.0}, "scale must be the same", "and 2.0 in process 1"),
    ({"query": wanting}, "whether a gradient is asked for must be the same", "not False in"),
    ({"dropout_p": 0.5}, "dropout_seed must be given, the same in every process", "refuses its"),
    ({"dropout_p": 0.5, "dropout_seed": 1}, "dropout_p must be the same", "0.5 in process 1"),
    ({"sinks": torch.zeros(4)}, "whether there is sinks must be the same", "True in process 1"),
    ({"cu_seqlens": [0, 5]}, "cu_seqlens must be the same", "and (0, 5) in process 1"),
    ({"cu_seqlens": [0, 4]}, "cu_seqlens must rise from 0 to the length of the sequence, 5", "not"),
    ({"shards": None}, "TypeError: shards must be Shards, such as Shards.zigzag, not None", "1"),
    ({"shards": Shards.contiguous(5, 3)}, "shards must be of the 2 processes of the group", "not"),
    ({"shards": Shards.of_lengths([3, 2])}, "no error", "no error"),
    ({"shards": Shards.of_places([torch.tensor([0, 1, 4]), torch.tensor([2, 3])])},
     "shards must be the same in every process", "shards must be the same in every process"),
    ({"attn_mask": torch.ones(2, 4, dtype=torch.bool)}, "attn_mask must be broadcastable", "1"),
    ({"bias": torch.tensor(torch.nan)}, "bias must hold numbers or −∞, and holds NaN", "refuses"),
    ({"dropout_p": 0.5, "dropout_seed": 1, "backend": "triton"},
     "NotImplementedError: dropout_p above 0 is not supported by the backend 'triton'", "refuses"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "there", "here"), REFUSED, ids=range(len(REFUSED)))
def test_what_one_process_gives_is_an_error_in_all(change, there: str, here: str) -> None:
    other, own = shared_pool().run(2, refused, {1: change}, "ring_attention")
    assert there in own
    assert here in other
    assert "\n" not in own + other


def test_heads_that_the_processes_do_not_divide() -> None:
    for text in shared_pool().run(3, refused, {}, "ulysses_attention"):
        assert text == (
            "ValueError: the heads of query must be a multiple of the number of processes, 3, "
            "not 4: ring_attention takes any"
        )


def twice_differentiated(rank: int, group: dist.ProcessGroup) -> str:
    """A job: the error of a second derivative."""
    made = Case((5, 5)).made(dist.get_world_size(group))
    q, k, v = (
        made.shards.take(x, rank).requires_grad_() for x in (made.query, made.key, made.value)
    )
    out = pyimpl.distributed.ring_attention(q, k, v, shards=made.shards, group=group)
    try:
        torch.autograd.grad(out.sum(), q, create_graph=True)
    except NotImplementedError as error:
        return str(error)
    return "no error"


def test_there_are_no_second_derivatives() -> None:
    texts = set(shared_pool().run(2, twice_differentiated))
    assert texts == {
        "the gradients of attention have no gradient: call backward without create_graph"
    }


def logged(rank: int, group: dist.ProcessGroup) -> list[str]:
    """A job: in which order messages are posted, waited for, and computed beside."""
    events: list[str] = []

    def noted(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def noting(*args: Any, **named: Any) -> Any:
            events.append(name)
            return function(*args, **named)

        return noting

    made = Case((9, 9)).made(dist.get_world_size(group))
    q, k, v = (
        made.shards.take(x, rank).requires_grad_() for x in (made.query, made.key, made.value)
    )
    with (
        mock.patch.object(Processes, "start", noted("post", Processes.start)),
        mock.patch.object(Posted, "wait", noted("wait", Posted.wait)),
        mock.patch.object(ring, "forward", noted("compute", ring.forward)),
        mock.patch.object(ring, "backward", noted("compute", ring.backward)),
    ):
        out = pyimpl.distributed.ring_attention(q, k, v, shards=made.shards, group=group)
        events.append("then")
        out.sum().backward()
    return events


def test_messages_are_on_their_way_while_a_round_is_computed() -> None:
    forward = "post compute wait post compute wait compute"
    # Of keys, and of the gradients that follow them; these at last go home.
    backward = "post compute post wait post compute wait post wait compute wait post wait"
    for events in shared_pool().run(3, logged):
        assert " ".join(events) == f"{forward} then {backward}"


def by_mesh(rank: int, group: dist.ProcessGroup) -> str:
    """A job: a mesh for a group, and one of two dimensions."""
    made = Case((9, 9)).made(4)
    own = [made.shards.take(x, rank) for x in (made.query, made.key, made.value)]
    attend = partial(pyimpl.distributed.ring_attention, *own, shards=made.shards)
    expected = attend(group=group)
    assert torch.equal(attend(group=init_device_mesh("cpu", (4,))), expected)
    assert torch.equal(attend(), expected)
    try:
        attend(group=init_device_mesh("cpu", (2, 2)))
    except ValueError as error:
        return str(error)
    return "no error"


def test_a_mesh_is_a_group() -> None:
    texts = set(shared_pool().run(4, by_mesh))
    assert texts == {"group must be a mesh of one dimension, not of 2"}


def test_there_has_to_be_a_group() -> None:
    given = (torch.zeros(1, 1, 4, 2),) * 3
    for group, error, text in (
        (None, ValueError, "group must be given, or torch.distributed.init_process_group be"),
        (3, TypeError, "group must be a ProcessGroup that this process is a member of, a Device"),
    ):
        with pytest.raises(error, match=text):
            pyimpl.distributed.ring_attention(*given, shards=Shards.contiguous(4, 1), group=group)


def compiled(rank: int, group: dist.ProcessGroup, function: str) -> bool:
    """A job: whether outputs and gradients are the same compiled, and of a checkpoint."""
    made = Case((8, 8), kv_heads=2).made(dist.get_world_size(group))
    leaves = [
        made.shards.take(x, rank).requires_grad_() for x in (made.query, made.key, made.value)
    ]

    def layer(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        attend = getattr(pyimpl.distributed, function)
        return 2.0 * attend(q + 1.0, k, v, shards=made.shards, group=group, is_causal=True)

    found = []
    for way in (
        layer,
        torch.compile(layer, backend="aot_eager"),
        partial(checkpoint, layer, use_reentrant=False),
    ):
        out = way(*leaves)
        found.append([out, *torch.autograd.grad(out.square().sum(), leaves)])
    return all(all(map(torch.equal, found[0], other)) for other in found[1:])


@pytest.mark.thorough
@pytest.mark.parametrize("function", ["ring_attention", "ulysses_attention"])
def test_compiled_and_from_a_checkpoint(function: str) -> None:
    assert shared_pool().run(2, compiled, function) == [True, True]


def ending(rank: int, group: dist.ProcessGroup) -> str:
    """A job in which process 1 ends where the keys are passed on."""
    made = Case((6, 6)).made(dist.get_world_size(group))
    own = [made.shards.take(x, rank) for x in (made.query, made.key, made.value)]
    if rank == 1:
        Carousel.pass_on = lambda *_: os._exit(3)
    try:
        pyimpl.distributed.ring_attention(*own, shards=made.shards, group=group)
    except RuntimeError as error:
        return str(error)
    return "no error"


def test_a_process_that_ends_is_an_error_in_the_others() -> None:
    pool = Pool(2)
    try:
        pool.start(2, ending)
        text = pool.result(0)
        assert text.startswith(
            "process 0 of the group waited in vain for process 1, which ended or"
        )
        with pytest.raises(ProcessEnded):
            pool.result(1)
    finally:
        pool.close()


def waiting(rank: int, group: dist.ProcessGroup) -> str:
    """A job in which process 1 does not call."""
    made = Case((6, 6)).made(dist.get_world_size(group))
    own = [made.shards.take(x, rank) for x in (made.query, made.key, made.value)]
    if rank == 1:
        return ""
    try:
        pyimpl.distributed.ring_attention(*own, shards=made.shards, group=group, check=False)
    except RuntimeError as error:
        return str(error)
    return "no error"


@pytest.mark.thorough
def test_a_process_that_does_not_call_is_an_error_within_the_timeout() -> None:
    """The timeout is long enough for a busy machine to start the processes in."""
    pool = Pool(2, timedelta(seconds=45))
    try:
        text, _ = pool.run(2, waiting)
        assert text.startswith(
            "process 0 of the group waited in vain for process 1, which ended or"
        )
    finally:
        pool.close()
