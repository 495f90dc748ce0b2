"""The public functions as citizens of PyTorch: operators with fakes, `torch.compile`, autocast."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from attention_checks import inputs
from torch import Tensor

from pyimpl import Part, attention, attention_decode, attention_varlen, merge_states
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.operators import Operator
from pyimpl.internal.scores import NAMES, ScoreOptions

BACKENDS = ["triton", "tiled", "reference"]
Q, K, V, MASK = inputs((2, 2, 5, 7, 8, 6), torch.float32, masked=True, group=2)
GENERATOR = torch.Generator().manual_seed(0)
BIAS = torch.randn(1, 4, 5, 7, generator=GENERATOR)
SLOPES, SINKS = torch.rand(2, 4, generator=GENERATOR)
CU_Q, CU_K = torch.tensor([0, 2, 2, 5]), torch.tensor([0, 3, 4, 7])
LENS, PAGES = torch.tensor([7, 4]), torch.tensor([[1, 0], [0, 9]])

ATTENTION: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"is_causal": True, "causal_alignment": "bottom-right"},
    "window": {"window": (2, 1), "softcap": 3.0},
    "mask": {"attn_mask": MASK, "bias": BIAS},
    "added": {"attn_mask": BIAS, "alibi_slopes": SLOPES, "sinks": SINKS, "scale": 0.3},
    "bnhd": {"layout": "bnhd"},
    "dropout": {"dropout_p": 0.3, "dropout_seed": 5},
    "part": {
        "is_causal": True, "dropout_p": 0.3, "dropout_seed": 5,
        "part": Part((3, 6, 9, 13), 1, 2, 4, 6),
    },
}  # fmt: skip


def call(options: dict[str, Any]) -> Callable[..., Any]:
    """`attention` of Q, K and V, laid out as the options say."""

    def run(query: Tensor, key: Tensor, value: Tensor) -> Any:
        if options.get("layout") == "bnhd":
            query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        return attention(query, key, value, enable_gqa=True, return_lse=True, **options)

    return run


def same(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)
        assert one.stride() == other.stride()


def compile_whole(function: Callable[..., Any], *, dynamic: bool = False) -> Callable[..., Any]:
    torch.compiler.reset()
    return torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=dynamic)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ATTENTION)
def test_attention_compiles_as_one_graph(name: str, backend: str) -> None:
    function = call(ATTENTION[name] | {"backend": backend})
    same(compile_whole(function)(Q, K, V), function(Q, K, V))


@pytest.mark.parametrize("name", [None, "query", "key", "value", "bias", "alibi_slopes", "sinks"])
def test_a_call_has_a_gradient_exactly_where_one_is_asked_for(name: str | None) -> None:
    """Other calls begin below autograd."""
    given = {
        "query": Q, "key": K, "value": V, "bias": BIAS, "alibi_slopes": SLOPES, "sinks": SINKS,
    }  # fmt: skip
    given = {n: x.clone().requires_grad_(n == name) for n, x in given.items()}
    outputs = attention(enable_gqa=True, return_lse=True, **given)
    with torch.no_grad():
        plain = attention(enable_gqa=True, return_lse=True, **given)
    same(outputs, plain)
    assert [x.requires_grad for x in outputs] == [name is not None] * 2
    assert not any(x.requires_grad for x in plain)
    if name is not None:
        torch.stack([x.sum() for x in outputs]).sum().backward()
        assert [n for n, x in given.items() if x.grad is not None] == [name]


def test_one_graph_serves_all_lengths() -> None:
    graphs = 0

    def count(graph: Any, example: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    function = call({"is_causal": True, "causal_alignment": "bottom-right", "backend": "tiled"})
    torch.compiler.reset()
    one = torch.compile(function, fullgraph=True, backend=count, dynamic=True)
    for q_len, kv_len in ((5, 7), (3, 9), (4, 6)):
        query, key, value, _ = inputs((2, 2, q_len, kv_len, 8, 6), torch.float32, group=2)
        same(one(query, key, value), function(query, key, value))
    assert graphs == 1


def varlen(backend: str) -> Callable[[], Any]:
    rows = [x[0].transpose(0, 1).contiguous() for x in (Q, K, V)]
    return lambda: attention_varlen(
        *rows, CU_Q, CU_K, is_causal=True, enable_gqa=True, alibi_slopes=SLOPES, sinks=SINKS,
        return_lse=True, backend=backend,
    )  # fmt: skip


def decode(backend: str, paged: bool) -> Callable[[], Any]:
    more = {"page_table": PAGES} if paged else {}
    return lambda: attention_decode(
        Q[:, :, :1], K, V, kv_lens=LENS, num_splits=2, enable_gqa=True, return_lse=True,
        backend=backend, **more,
    )  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("backend", BACKENDS)
def test_the_other_functions_compile_as_one_graph(backend: str) -> None:
    for function in (varlen(backend), decode(backend, False), decode(backend, True)):
        same(compile_whole(function)(), function())


def test_merging_compiles_as_one_graph() -> None:
    outs, lses = torch.randn(3, 2, 5, 4), torch.randn(3, 2, 5)
    found = compile_whole(merge_states)(outs, lses)
    for one, other in zip(found, merge_states(outs, lses), strict=True):
        assert torch.equal(one, other)


def test_an_exported_program_holds_the_operator() -> None:
    class Causal(torch.nn.Module):
        def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Any:
            return call({"is_causal": True})(query, key, value)

    program = torch.export.export(Causal(), (Q, K, V))
    calls = [node.target for node in program.graph.nodes if node.op == "call_function"]
    assert calls.count(torch.ops.pyimpl.attention.default) == 1
    same(program.module()(Q, K, V), call({"is_causal": True})(Q, K, V))


class Packed(torch.nn.Module):
    """Packed sequences, with a window that follows from a size."""

    def forward(self, query: Tensor, sums: Tensor) -> Any:
        heads = query.shape[1]
        return attention_varlen(query, query, query, sums, sums, window=(heads // 2, None))


class Split(torch.nn.Module):
    def forward(self, query: Tensor, key: Tensor) -> Any:
        return attention_decode(query, key, key, num_splits=key.shape[2] // 2)


def test_exported_programs_take_other_sizes() -> None:
    dynamic = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Packed(), (torch.randn(5, 4, 8), torch.tensor([0, 2, 5])),
        dynamic_shapes=({0: dynamic, 1: dynamic}, {0: dynamic}), strict=False,
    ).module()  # fmt: skip
    query, sums = torch.randn(9, 6, 8), torch.tensor([0, 2, 2, 9])
    assert torch.equal(program(query, sums), Packed()(query, sums))
    program = torch.export.export(
        Split(), (torch.randn(2, 4, 1, 8), torch.randn(2, 4, 6, 8)),
        dynamic_shapes=({}, {2: dynamic}), strict=False,
    ).module()  # fmt: skip
    query, key = torch.randn(2, 4, 1, 8), torch.randn(2, 4, 9, 8)
    assert torch.equal(program(query, key), Split()(query, key))


def test_a_compiled_call_finds_bad_numbers_too() -> None:
    bias = BIAS.clone()
    bias[0, 1, 2, 3] = torch.nan
    with pytest.raises(ValueError, match=r"^bias must hold numbers or −∞, and holds NaN"):
        compile_whole(call({"bias": bias}))(Q, K, V)


def dense(shape: tuple[int, ...], order: tuple[int, ...]) -> Tensor:
    """Numbers of this shape whose axes lie in memory in this order."""
    lying = torch.randn([shape[axis] for axis in order], generator=GENERATOR)
    return lying.permute([order.index(axis) for axis in range(len(shape))])


@pytest.mark.sampled(16)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3), (3, 2, 1, 0), (1, 3, 0, 2)], ids=str
)
def test_opcheck_on_permuted_layouts(order: tuple[int, ...], backend: str) -> None:
    query, key, value = (
        dense(shape, order) for shape in ((2, 4, 5, 8), (2, 2, 7, 8), (2, 2, 7, 6))
    )
    options = ScoreOptions(0.5, bias=dense((2, 4, 5, 7), order), right=1, shift=2, sinks=SINKS)
    placed = replace(options, dropout=Dropout(0.3, torch.tensor(5), 7, 6, 4, 9))
    for some in (options, placed):
        torch.library.opcheck(
            torch.ops.pyimpl.attention.default, (query, key, value, backend, *some.flat())
        )


def test_a_call_with_gradients_does_not_read_the_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """For that PyTorch makes all of its arguments anew, longer than the rest of a call takes."""

    def read(*given: Any) -> None:
        raise AssertionError("the defaults of a schema were read")

    monkeypatch.setattr(torch._library.utils, "fill_defaults", read)
    query, key, value = (x.clone().requires_grad_() for x in (Q, K, V))
    out = attention(query, key, value, enable_gqa=True, backend="tiled")
    for _ in range(2):
        # The second time the notes for the first still hold.
        grads = torch.autograd.grad(out.sum(), (query, value), retain_graph=True)
        assert [x.shape for x in grads] == [query.shape, value.shape]


def test_an_operator_with_gradients_has_no_defaults() -> None:
    made = Operator("of_a_test", "(Tensor x, int n=3) -> Tensor", lambda x, n=3: x + n)
    with pytest.raises(ValueError, match=r"the schema of \w+::of_a_test must have no defaults"):
        made.register_autograd(lambda ctx, grad: (grad, None))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
def test_opcheck_of_the_other_operators(backend: str) -> None:
    options = ScoreOptions(0.5, right=0, alibi_slopes=SLOPES[None])
    flat = options.flat()
    dropping = replace(options, dropout=Dropout(0.3, torch.tensor(5))).flat()
    rows = [x[0].transpose(0, 1) for x in (Q, K, V)]
    for alignment in ("top-left", "bottom-right"):
        torch.library.opcheck(
            torch.ops.pyimpl.attention_varlen.default,
            (*rows, CU_Q, CU_K, None, None, alignment, backend, *dropping),
        )
    query = dense((2, 4, 5, 8), (0, 2, 1, 3))
    for page_table in (None, PAGES):
        torch.library.opcheck(
            torch.ops.pyimpl.attention_decode.default,
            (query, K, V, LENS, page_table, 2, backend, *flat),
        )


def test_the_schema_is_that_of_the_options() -> None:
    *own, dropout = ScoreOptions.__dataclass_fields__
    assert (*own, f"{dropout}_p", f"{dropout}_seed", f"{dropout}_place") == NAMES
    plain, dropping = ScoreOptions(0.5), ScoreOptions(0.5, dropout=Dropout(0.1, torch.tensor(7)))
    placed = dropping.at(Part((3, 6, 9, 13), 1, 2, 4, 6))
    for options in (plain, dropping, placed):
        assert len(options.flat()) == len(NAMES)
        assert ScoreOptions.of_flat(*options.flat()) == options


def test_meta_tensors_give_shapes() -> None:
    query, key, value = (x.to("meta") for x in (Q, K, V))
    out, lse = attention(query, key, value, enable_gqa=True, return_lse=True)
    assert (out.shape, lse.shape, out.device.type) == ((2, 4, 5, 6), (2, 4, 5), "meta")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_rounds_what_is_multiplied(dtype: torch.dtype, backend: str) -> None:
    """As SDPA does, and float64 stays; the scores' bias is not rounded."""
    lower = [x.to(dtype) for x in (Q, K, V)]
    options = {"bias": BIAS, "backend": backend}
    rows = [x[0].transpose(0, 1) for x in (Q, K, V)]
    with torch.autocast("cpu", dtype=dtype):
        found = call(options)(Q, K, V)
        assert found[0].dtype == F.scaled_dot_product_attention(Q, Q, Q).dtype == dtype
        packed = attention_varlen(*rows, CU_Q, CU_K, enable_gqa=True, backend=backend)
        one = attention_decode(Q[:, :, :1], K, V, enable_gqa=True, backend=backend)
        again = compile_whole(call(options))(Q, K, V)
        if backend != "triton":
            wide = attention(*(x.double() for x in (Q, K, V)), enable_gqa=True, backend=backend)
            assert wide.dtype == torch.float64
    same(found, call(options)(*lower))
    same(again, found)
    lower_rows = [x.to(dtype) for x in rows]
    same((packed,), (attention_varlen(*lower_rows, CU_Q, CU_K, enable_gqa=True, backend=backend),))
    same(
        (one,),
        (attention_decode(lower[0][:, :, :1], *lower[1:], enable_gqa=True, backend=backend),),
    )
