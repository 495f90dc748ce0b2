"""The backward pass of the public function, by autograd: gradients right, operators registered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from attention_checks import inputs
from backward_checks import SHORT, by_autograd, judge_gradients, public_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from option_cases import OPTIONS, options_of
from torch import Tensor

from bridge.conformance.tolerances.gradient_tolerance import Bounded, of_options
from bridge.conformance.tolerances.rounding_model import FLOAT32, RoundingModel
from pyimpl import attention, attention_decode, attention_varlen
from pyimpl.backends import dispatch
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.gradients import Wanted
from pyimpl.internal.scores import ScoreOptions

BACKENDS = ["triton", "tiled", "reference"]
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
GENERATOR = torch.Generator().manual_seed(0)


def leaf(*size: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(size, generator=GENERATOR, dtype=torch.float64).to(dtype).requires_grad_()


CASES: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "bottom-right": {"is_causal": True, "causal_alignment": "bottom-right"},
    "rows without a key": {"window": (1, 0)},
    "mask": {"attn_mask": torch.rand(2, 1, 4, 5, generator=GENERATOR) < 0.5},
    "softcap": {"softcap": 0.7},
    "softcap and scale": {"softcap": 2.0, "scale": 1.7},
    "no scale": {"scale": 0.0},
    "bias": {"bias": leaf(2, 4, 4, 5)},
    "bias of keys": {"bias": leaf(5)},
    "bias of heads": {"bias": leaf(4, 1, 1)},
    "bias of one number": {"bias": leaf()},
    "floating mask": {"attn_mask": leaf(2, 1, 4, 1)},
    "alibi": {"alibi_slopes": leaf(4), "is_causal": True},
    "alibi of batches": {"alibi_slopes": leaf(2, 4), "causal_alignment": "bottom-right"},
    "sinks": {"sinks": leaf(4)},
    "sinks alone": {"sinks": leaf(4), "attn_mask": torch.zeros(1, dtype=torch.bool)},
    "everything": {
        "is_causal": True,
        "window": (3, None),
        "softcap": 1.5,
        "scale": 0.9,
        "attn_mask": torch.rand(4, 5, generator=GENERATOR) < 0.7,
        "bias": leaf(4, 1, 5),
        "alibi_slopes": leaf(2, 4),
        "sinks": leaf(4),
    },
    "bnhd": {"layout": "bnhd", "is_causal": True},
    "dropout": {"dropout_p": 0.4, "dropout_seed": 3},
}
CASES["dropout and everything"] = CASES["everything"] | CASES["dropout"]


def function_of(
    case: dict[str, Any], backend: str
) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    """`attention` as a function of tensors that a gradient is asked of, and such tensors."""
    names = [n for n, x in case.items() if isinstance(x, Tensor) and x.requires_grad]
    rest = {n: x for n, x in case.items() if n not in names}

    def run(query: Tensor, key: Tensor, value: Tensor, *others: Tensor) -> Any:
        return attention(
            query, key, value, enable_gqa=True, return_lse=True, backend=backend,
            **rest, **dict(zip(names, others, strict=True)),
        )  # fmt: skip

    shapes = [(2, 4, 4, 3), (2, 2, 5, 3), (2, 2, 5, 2)]
    if case.get("layout") == "bnhd":
        shapes = [(b, n, h, d) for b, h, n, d in shapes]
    return run, (*(leaf(*shape) for shape in shapes), *(case[n] for n in names))


def finite_outputs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Without the −∞ of rows without a key, whose differences are no numbers."""

    def run(*tensors: Tensor) -> Any:
        out, lse = function(*tensors)
        return out, torch.where(torch.isneginf(lse), 0.0, lse)

    return run


# The loop's gradients are held to bounds for any shape and options below: here each option of the
# reference, and of the loop all of them together.
DIFFERENCES = [
    pytest.param(
        name,
        backend,
        marks=[pytest.mark.thorough]
        if backend == "tiled" and name not in ("everything", "dropout and everything", "bnhd")
        else [],
    )
    for name in CASES
    for backend in BACKENDS[1:]
]


@pytest.mark.parametrize(("name", "backend"), DIFFERENCES)
def test_gradients_are_those_of_differences(name: str, backend: str) -> None:
    function, tensors = function_of(CASES[name], backend)
    assert torch.autograd.gradcheck(finite_outputs(function), tensors, fast_mode=True)


@settings(max_examples=60, deadline=None)
@given(
    shape=st.tuples(*[st.integers(0, 3)] * 2, *[st.integers(0, 20)] * 2, *[st.integers(1, 12)] * 2),
    group=st.integers(1, 3),
    dtype=st.sampled_from(DTYPES),
    name=st.sampled_from(sorted(OPTIONS)),
    with_lse=st.booleans(),
    seed=st.integers(0, 2**31),
)
@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_any_shape_and_options(
    backend, shape, group: int, dtype, name: str, with_lse: bool, seed: int
) -> None:
    query, key, value, _ = inputs(shape, dtype, seed=seed, group=group)
    options = options_of(name, query, key, seed)
    grad_out = torch.randn(*query.shape[:3], value.shape[3], dtype=torch.float64).to(dtype)
    grad_lse = torch.randn(query.shape[:3], dtype=compute_dtype(dtype)) if with_lse else None
    found = public_gradients(query, key, value, options, grad_out, grad_lse, backend)
    computed = torch.float64 if backend == "reference" else compute_dtype(dtype)
    judge_gradients(found, query, key, value, options, grad_out, grad_lse, computed=computed)


@pytest.mark.parametrize("backend", BACKENDS)
def test_keys_in_parts_take_the_log_sum_exp_of_all(backend) -> None:
    # As where keys are split: each part gets the output and the log-sum-exp over all keys.
    query, key, value, _ = inputs((1, 2, 5, 12, 4, 3), torch.float32, seed=1)
    options = ScoreOptions(scale=0.5)
    out, lse = dispatch.forward(query, key, value, options, "reference")
    grad_out, grad_lse = torch.randn_like(out), torch.randn_like(lse)

    def gradients(keys: slice) -> Any:
        return dispatch.backward(
            query, key[:, :, keys], value[:, :, keys], out, lse, grad_out, grad_lse, options,
            Wanted(slopes=False, bias=False, sinks=False), backend,
        )  # fmt: skip

    whole, left, right = (gradients(slice(*part)) for part in ((0, 12), (0, 7), (7, 12)))
    expected = by_autograd(query, key, value, options, grad_out, grad_lse)
    judge_gradients(
        dict(zip(expected, (x.float() for x in whole[:3]), strict=True)),
        query, key, value, options, grad_out, grad_lse, computed=torch.float32,
    )  # fmt: skip
    in_parts = (left[0].double() + right[0], torch.cat((left[1], right[1]), 2))
    judge_gradients(
        dict(zip(expected, (x.float() for x in in_parts), strict=False)),
        query, key, value, options, grad_out, grad_lse, computed=torch.float32,
    )  # fmt: skip


# The interpreter of Triton takes seconds for a test that the others do in milliseconds.
CHECKED = [
    *((b, n) for b in BACKENDS[1:] for n in ("everything", "bnhd", "dropout")),
    ("triton", "dropout"),
    *(
        pytest.param(b, n, marks=pytest.mark.thorough)
        for b, n in (
            *((b, n) for b in BACKENDS[1:] for n in ("causal", "floating mask")),
            ("triton", "floating mask"),
        )
    ),
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("backend", "name"), CHECKED)
def test_opcheck(backend: str, name: str) -> None:
    function, tensors = function_of(CASES[name], backend)
    tensors = tuple(x.detach().float().requires_grad_() for x in tensors)
    check_operators(function, tensors, "pyimpl.attention")


def check_operators(function: Callable[..., Any], tensors: tuple[Tensor, ...], name: str) -> None:
    """The operator of this name and that of its backward pass are all that runs, and PyTorch finds
    nothing wrong with them."""
    taken: list[tuple[Any, ...]] = []
    with Recorded(taken):
        torch.autograd.grad([x.sum() for x in function(*tensors)], tensors)
    assert [str(op) for op, _ in taken] == [f"{name}.default", f"{name}_backward.default"]
    for op, arguments in taken:
        if "backward" in str(op):
            arguments = [x.detach() if isinstance(x, Tensor) else x for x in arguments]
        # It is compared with a traced run of itself: the same operations on the same numbers.
        torch.library.opcheck(op, arguments, atol=0, rtol=0)


def check_compiled(function: Callable[..., Any], tensors: tuple[Tensor, ...]) -> None:
    """Compiled as one graph it has the same gradients."""
    torch.compiler.reset()
    one = torch.compile(function, fullgraph=True, backend="aot_eager")
    outputs = [f(*tensors) for f in (function, one)]
    grads = tuple(torch.randn(x.shape, generator=GENERATOR) for x in outputs[0])
    expected, found = (torch.autograd.grad(o, tensors, grads) for o in outputs)
    for one_found, other in zip(found, expected, strict=True):
        assert torch.equal(one_found, other)


class Recorded(torch.utils._python_dispatch.TorchDispatchMode):
    """Keeps the calls of pyimpl's operators."""

    def __init__(self, calls: list[tuple[Any, ...]]) -> None:
        super().__init__()
        self.calls = calls

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "pyimpl":
            self.calls.append((func, args))
        return func(*args, **(kwargs or {}))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("backend", "name"), [*CHECKED, ("triton", "bnhd")])
def test_forward_and_backward_compile(backend: str, name: str) -> None:
    function, tensors = function_of(CASES[name], backend)
    tensors = tuple(x.detach().float().requires_grad_() for x in tensors)
    check_compiled(function, tensors)


def test_one_graph_of_the_backward_pass_serves_all_lengths() -> None:
    def run(query: Tensor, key: Tensor, value: Tensor) -> Any:
        return attention(query, key, value, is_causal=True, causal_alignment="bottom-right")

    torch.compiler.reset()
    one = torch.compile(run, fullgraph=True, backend="aot_eager", dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for q_len, kv_len in ((5, 7), (3, 9), (4, 6)):
            leaves = [leaf(1, 2, n, 8, dtype=torch.float32) for n in (q_len, kv_len, kv_len)]
            found, expected = (torch.autograd.grad(f(*leaves).sum(), leaves) for f in (one, run))
            for one_found, other in zip(found, expected, strict=True):
                assert torch.equal(one_found, other)


def test_under_autocast_gradients_have_the_dtype_of_their_tensors() -> None:
    leaves = [leaf(1, 2, n, 8, dtype=torch.float32) for n in (5, 7, 7)]
    lower = [x.detach().bfloat16().requires_grad_() for x in leaves]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = attention(*leaves)
    found = torch.autograd.grad(out.sum(), leaves)
    expected = torch.autograd.grad(attention(*lower).sum(), lower)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert torch.equal(one, other.float())


def test_recomputed_by_checkpointing() -> None:
    leaves = [leaf(1, 2, n, 8, dtype=torch.float32) for n in (5, 7, 7)]
    out = torch.utils.checkpoint.checkpoint(attention, *leaves, use_reentrant=False)
    expected = torch.autograd.grad(attention(*leaves).sum(), leaves)
    for one, other in zip(torch.autograd.grad(out.sum(), leaves), expected, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_output_alone(backend: str) -> None:
    function, tensors = function_of(CASES["sinks"], backend)
    tensors = tuple(x.detach().float().requires_grad_() for x in tensors)
    out, lse = function(*tensors)
    zeros = [torch.zeros_like(x) for x in (out, lse)]
    ones = [torch.ones_like(x) for x in (out, lse)]
    for some, grads in ((out, (ones[0], zeros[1])), (lse, (zeros[0], ones[1]))):
        found = torch.autograd.grad(some.sum(), tensors, retain_graph=True)
        expected = torch.autograd.grad((out, lse), tensors, grads, retain_graph=True)
        for one, other in zip(found, expected, strict=True):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_lie_in_memory_as_their_tensors(backend: str) -> None:
    sizes = ((2, 5, 4, 8), (2, 7, 2, 8), (2, 7, 2, 6))
    q, k, v = (torch.randn(s).transpose(1, 2).requires_grad_() for s in sizes)
    out = attention(q, k, v, enable_gqa=True, backend=backend)
    for found, like in zip(torch.autograd.grad(out.sum(), (q, k, v)), (q, k, v), strict=True):
        assert found.stride() == like.stride()


MASK = torch.ones(6, 9, dtype=torch.bool)
MASK[2], MASK[:, 4] = False, False
# q_len, kv_len, options, the queries that see no key and the keys that no query sees.
UNSEEN: dict[str, tuple[int, int, dict[str, Any], list[int], list[int]]] = {
    "mask and window": (6, 9, {"attn_mask": MASK, "window": (None, 2)}, [2], [4, 8]),
    "late keys": (6, 9, {"is_causal": True}, [], [6, 7, 8]),
    "early queries": (
        9, 6, {"is_causal": True, "causal_alignment": "bottom-right"}, [0, 1, 2], [],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "changed",
    [{}, {"softcap": 1.5}, {"sinks": torch.tensor([0.5, -1.0])}],
    ids=lambda changed: "".join(changed) or "plain",
)
@pytest.mark.parametrize("name", UNSEEN)
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_no_query_sees_has_no_influence(
    backend: str, name: str, changed: dict[str, Any]
) -> None:
    """Of keys and queries, whatever they hold, and its own gradient is 0."""
    q_len, kv_len, options, queries, keys = UNSEEN[name]
    query, key, value, _ = inputs((1, 2, q_len, kv_len, 8, 8), torch.float32)
    grad = torch.randn(1, 2, q_len, 8, generator=GENERATOR)

    def run() -> tuple[Tensor, ...]:
        leaves = [x.clone().requires_grad_() for x in (query, key, value)]
        out = attention(*leaves, **options, **changed, backend=backend)
        return torch.autograd.grad(out, leaves, grad)

    expected = run()
    query[:, :, queries] = torch.nan
    key[:, :, keys], value[:, :, keys] = torch.nan, torch.inf
    found = run()
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
    assert bool((found[0][:, :, queries] == 0).all())
    for one in found[1:]:
        assert bool((one[:, :, keys] == 0).all())


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_row_without_a_key_adds_nothing_to_the_sinks(backend: str) -> None:
    """Where the sink is −∞ its log-sum-exp is too, and may have any gradient."""
    query, key, value, _ = inputs((1, 1, 4, 3, 8, 8), torch.float32)
    mask = torch.ones(4, 3, dtype=torch.bool)
    mask[2] = False
    sinks = torch.tensor([-torch.inf], requires_grad=True)
    _, lse = attention(
        query, key, value, attn_mask=mask, sinks=sinks, return_lse=True, backend=backend
    )
    (found,) = torch.autograd.grad(lse, sinks, 2 * lse.detach())
    assert found.tolist() == [0.0]


PACKED: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True},
    "bottom-right": {"is_causal": True, "causal_alignment": "bottom-right", "sinks": leaf(4)},
    "everything": {"window": (2, 1), "softcap": 1.5, "alibi_slopes": leaf(3, 4), "sinks": leaf(4)},
    "one slope a head": {"alibi_slopes": leaf(4)},
}


def pack(case: dict[str, Any], backend: str) -> tuple[Callable[..., Any], tuple[Tensor, ...]]:
    """`attention_varlen` as `function_of` gives `attention`, of 0 to 4 tokens a sequence."""
    names = [n for n, x in case.items() if isinstance(x, Tensor)]
    rest = {n: x for n, x in case.items() if n not in names}
    cu_q, cu_k = torch.tensor([0, 3, 3, 7]), torch.tensor([0, 2, 3, 7])

    def run(query: Tensor, key: Tensor, value: Tensor, *others: Tensor) -> Any:
        return attention_varlen(
            query, key, value, cu_q, cu_k, enable_gqa=True, return_lse=True, backend=backend,
            **rest, **dict(zip(names, others, strict=True)),
        )  # fmt: skip

    return run, (leaf(7, 4, 3), leaf(7, 2, 3), leaf(7, 2, 2), *(case[n] for n in names))


@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", PACKED)
def test_gradients_of_packed_sequences_are_those_of_differences(name: str, backend: str) -> None:
    function, tensors = pack(PACKED[name], backend)
    assert torch.autograd.gradcheck(finite_outputs(function), tensors, fast_mode=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS[1:])
@pytest.mark.parametrize("name", ["bottom-right", "everything"])
def test_packed_sequences_are_operators(name: str, backend: str) -> None:
    function, tensors = pack(PACKED[name], backend)
    tensors = tuple(x.detach().float().requires_grad_() for x in tensors)
    check_operators(function, tensors, "pyimpl.attention_varlen")
    check_compiled(function, tensors)


def alone(case: dict[str, Any], b: int, q_len: int, kv_len: int) -> ScoreOptions:
    """The options of sequence b by itself, of tensors whose head_dim is 3."""
    slopes, sinks = case.get("alibi_slopes"), case.get("sinks")
    left, right = case.get("window", (None, 0 if "is_causal" in case else None))
    if slopes is not None:
        slopes = slopes.detach().float().reshape(-1, 4)[b if slopes.dim() == 2 else 0][None]
    return ScoreOptions(
        scale=3**-0.5, softcap=case.get("softcap"), alibi_slopes=slopes, left=left, right=right,
        shift=kv_len - q_len if "causal_alignment" in case else 0,
        sinks=None if sinks is None else sinks.detach().float(),
    )  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", PACKED)
def test_packed_sequences_are_alone(name: str, backend: str) -> None:
    """The gradients are those of each sequence by itself; by shared inputs, their sum."""
    function, tensors = pack(PACKED[name], backend)
    tensors = tuple(x.detach().float().requires_grad_() for x in tensors)
    outputs = function(*tensors)
    grads = [torch.randn(x.shape, generator=GENERATOR) for x in outputs]
    q, k, v, *others = torch.autograd.grad(outputs, tensors, grads)
    found = {n: x.transpose(0, 1)[None] for n, x in (("query", q), ("key", k), ("value", v))}
    names = [n for n, x in PACKED[name].items() if isinstance(x, Tensor)]
    found |= dict(zip(names, others, strict=True))

    expected = {n: torch.zeros_like(x, dtype=torch.float64) for n, x in found.items()}
    nothing = {n: torch.zeros_like(x) for n, x in expected.items()}
    bounds = {n: Bounded(expected[n], x.clone(), x.clone()) for n, x in nothing.items()}
    rounding = RoundingModel.float32()
    by_head = [x.detach().transpose(0, 1)[None] for x in (*tensors[:3], grads[0])]
    for b, rows, cols in ((0, slice(0, 3), slice(0, 2)), (2, slice(3, 7), slice(3, 7))):
        some = [x[:, :, s] for x, s in zip(by_head, (rows, cols, cols, rows), strict=True)]
        options = alone(PACKED[name], b, some[0].shape[2], some[1].shape[2])
        given = (*some[:3], options, some[3], grads[1][None, :, rows])
        exact = by_autograd(*given)
        found_bounds = of_options(*some, grads[1][None, :, rows], options, rounding)
        for n, x in expected.items():
            mine: Any = (slice(None), slice(None), cols if n in ("key", "value") else rows)
            if n not in ("query", "key", "value"):
                mine = b if x.dim() == 2 else slice(None)
            x[mine] += exact[n].reshape(x[mine].shape)
            for field in ("error", "size"):
                one = getattr(found_bounds[SHORT.get(n, n)], field)
                getattr(bounds[n], field)[mine] += one.reshape(x[mine].shape)
    for n, x in found.items():
        bound = bounds[n]
        # The terms of both sequences may be added up in any order.
        order = 7 * 7 * rounding.accumulation_unit * bound.size if n in names else nothing[n]
        allowed = Bounded(bound.exact, bound.error + order, bound.size).tolerance(FLOAT32)
        assert bool(((x - expected[n]).abs() <= allowed).all()), n


def test_functions_without_a_backward_pass_say_so() -> None:
    q, k, v, sinks = leaf(1, 2, 1, 4), leaf(1, 2, 5, 4), leaf(1, 2, 5, 4), leaf(2)
    for name in ("query", "key_cache", "value_cache", "sinks"):
        given = {"query": q, "key_cache": k, "value_cache": v, "sinks": sinks}
        given = {n: x if n == name else x.detach() for n, x in given.items()}
        with pytest.raises(NotImplementedError, match=f"{name} .* attention_decode has no back"):
            attention_decode(**given)
