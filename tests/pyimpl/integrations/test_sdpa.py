"""`pyimpl.integrations.sdpa`: the function against PyTorch's, in float64, and its replacement in
PyTorch's own layers, by counted calls."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from functools import partial
from threading import Barrier, Thread
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from integration_checks import examples
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.bias import causal_lower_right, causal_upper_left
from torch.overrides import TorchFunctionMode
from torch.utils.checkpoint import checkpoint

from pyimpl import attention
from pyimpl.integrations.sdpa import scaled_dot_product_attention, sdpa_replaced

# As a module has it that imports the function by name.
BY_NAME = F.scaled_dot_product_attention


def theirs(*args: Any, **named: Any) -> Tensor:
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(*args, **named)


def draw(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@pytest.mark.usefixtures("fast_path")
def test_the_example_of_the_page_runs() -> None:
    exec(compile(examples()[0], "docs/integrations.md", "exec"), {})


class TestFunction:
    def test_signature(self) -> None:
        """Names, order, defaults, and which are named alone, as PyTorch's schema has them."""
        anyhow, by_name = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
        schema = torch.ops.aten.scaled_dot_product_attention.default._schema
        expected = [
            (
                x.name,
                by_name if x.kwarg_only else anyhow,
                x.default_value if x.has_default_value() else None,
            )
            for x in schema.arguments
        ]
        own = inspect.signature(scaled_dot_product_attention).parameters.values()
        empty = inspect.Parameter.empty
        assert [
            (x.name, x.kind, None if x.default is empty else x.default) for x in own
        ] == expected

    @settings(max_examples=60, deadline=None)
    @given(st.data())
    def test_all_shapes(self, data: st.DataObject) -> None:
        """Two to five dimensions, leading ones broadcast, grouped heads, every kind of mask."""
        rank = data.draw(st.integers(2, 5))
        q_len, kv_len = (data.draw(st.integers(1, 4)) for _ in range(2))
        leading = [data.draw(st.integers(1, 3)) for _ in range(rank - 2)]
        grouped = rank > 2 and data.draw(st.booleans())
        fixed = 1 if grouped else 0

        def cut(sizes: list[int]) -> list[int]:
            """Sizes that broadcast to these: some are 1, some in front are left out."""
            some = [data.draw(st.sampled_from([1, n])) for n in sizes]
            return some[data.draw(st.integers(0, len(some))) :]

        if grouped:
            heads = leading[-1]
            q_leading, kv_leading = [*leading[:-1], 2 * heads], leading
            leading = q_leading
        else:
            q_leading, kv_leading = leading, cut(leading)
        query = draw(*q_leading, q_len, 3, seed=1)
        key, value = (draw(*kv_leading, kv_len, n, seed=n) for n in (3, 2))
        named: dict[str, Any] = {"enable_gqa": True} if fixed else {}
        named["scale"] = data.draw(st.sampled_from([None, 0.7]))
        mask = None
        kind = data.draw(st.sampled_from(["none", "causal", "boolean", "floating"]))
        if kind in ("boolean", "floating"):
            mask = draw(*cut([*leading, q_len]), data.draw(st.sampled_from([1, kv_len])), seed=4)
            mask = mask > -0.5 if kind == "boolean" else mask
        given_ = (query, key, value, mask, 0.0, kind == "causal")
        expected = theirs(*given_, **named)
        torch.testing.assert_close(scaled_dot_product_attention(*given_, **named), expected)

    def test_gradients(self) -> None:
        shapes = ((2, 3, 2, 4, 5), (2, 1, 2, 6, 5), (1, 3, 2, 6, 4), (3, 1, 4, 6))
        ours = [draw(*shape, seed=i).requires_grad_() for i, shape in enumerate(shapes)]
        others = [x.detach().clone().requires_grad_() for x in ours]
        scaled_dot_product_attention(*ours).square().sum().backward()
        theirs(*others).square().sum().backward()
        for own, other in zip(ours, others, strict=True):
            torch.testing.assert_close(own.grad, other.grad)

    @pytest.mark.parametrize("bias", [causal_lower_right, causal_upper_left])
    def test_causal_bias(self, bias: Any) -> None:
        query, key = draw(1, 2, 3, 4), draw(1, 2, 5, 4, seed=1)
        described = bias(3, 5)
        expected = theirs(query, key, key, described)
        torch.testing.assert_close(
            scaled_dot_product_attention(query, key, key, described), expected
        )
        with pytest.raises(ValueError, match=r"lengths of query and key, \(3, 5\), not \(3, 6\)"):
            scaled_dot_product_attention(query, key, key, bias(3, 6))

    def test_dropout_is_seeded_by_pytorch(self) -> None:
        """In train and eval: as PyTorch's function, it does not know of modes."""
        query = draw(1, 1, 8, 4)
        torch.manual_seed(3)
        first = scaled_dot_product_attention(query, query, query, dropout_p=0.5)
        second = scaled_dot_product_attention(query, query, query, dropout_p=0.5)
        torch.manual_seed(3)
        assert torch.equal(scaled_dot_product_attention(query, query, query, None, 0.5), first)
        assert not torch.equal(first, second)

    def test_a_query_without_keys_gives_zero(self) -> None:
        query = draw(1, 1, 2, 4)
        mask = torch.tensor([[True, False], [False, False]])
        assert bool((scaled_dot_product_attention(query, query, query, mask)[..., 1, :] == 0).all())

    @pytest.mark.parametrize(
        ("changes", "sentence"),
        [
            ({"is_causal": True, "attn_mask": torch.ones(2, 2) > 0}, "is_causal must be False"),
            ({"query": draw(4)}, r"query must be .*length, head_dim\], not of shape \[4\]"),
            ({"key": draw(3, 2, 4), "value": draw(5, 2, 4)}, "must be broadcastable"),
            ({"query": draw(2, 1, 1, 2, 4), "attn_mask": draw(3, 1, 1, 2, 2)}, "attn_mask must"),
            ({"attn_mask": torch.ones(3, 2, 2)}, "attn_mask must be broadcastable"),
            ({"scale": math.nan}, "scale must be finite"),
        ],
    )  # fmt: skip
    def test_refusals(self, changes: dict[str, Any], sentence: str) -> None:
        call = {name: draw(1, 1, 2, 4) for name in ("query", "key", "value")} | changes
        with pytest.raises(ValueError, match=sentence):
            scaled_dot_product_attention(**call)

    def test_what_is_no_tensor_is_refused(self) -> None:
        not_a_tensor: Any = [[0.0]]
        with pytest.raises(TypeError, match=r"key must be a torch\.Tensor, not list"):
            scaled_dot_product_attention(draw(1, 2), not_a_tensor, draw(1, 2))


def make_jagged(*lengths: int, heads: int = 2, seed: int = 0) -> Tensor:
    """`[batch, heads, length, 4]` of these lengths."""
    rows = [draw(n, heads, 4, seed=seed + i) for i, n in enumerate(lengths)]
    return torch.nested.nested_tensor(rows, layout=torch.jagged).transpose(1, 2)


class TestJagged:
    @pytest.mark.parametrize("is_causal", [False, True])
    def test_as_one_by_one(self, is_causal: bool) -> None:
        query = make_jagged(3, 1, 4).requires_grad_()
        out = scaled_dot_product_attention(query, query, query, is_causal=is_causal)
        assert out.shape == query.shape
        parts = [x[None] for x in query.detach().unbind()]
        for own, part in zip(out.unbind(), parts, strict=True):
            torch.testing.assert_close(own[None], theirs(part, part, part, is_causal=is_causal))
        (gradient,) = torch.autograd.grad(out.values().square().sum(), query)
        for own, part in zip(gradient.unbind(), parts, strict=True):
            one = part.clone().requires_grad_()
            theirs(one, one, one, is_causal=is_causal).square().sum().backward()
            torch.testing.assert_close(own[None], one.grad)

    def test_lengths_of_their_own(self) -> None:
        query, key = make_jagged(3, 1, heads=4), make_jagged(2, 5, seed=7)
        out = scaled_dot_product_attention(query, key, key, enable_gqa=True)
        for own, q, k in zip(out.unbind(), query.unbind(), key.unbind(), strict=True):
            alone = attention(q[None], k[None], k[None], enable_gqa=True)
            torch.testing.assert_close(own, alone[0])

    def test_refusals(self) -> None:
        query, dense = make_jagged(3, 1), draw(2, 2, 3, 4)
        with pytest.raises(TypeError, match="key must be a jagged tensor"):
            scaled_dot_product_attention(query, dense, dense)
        strided = torch.nested.nested_tensor([draw(2, 3, 4), draw(2, 1, 4)])
        with pytest.raises(TypeError, match="query must be a jagged tensor"):
            scaled_dot_product_attention(strided, strided, strided)
        with pytest.raises(ValueError, match="attn_mask must be None"):
            scaled_dot_product_attention(query, query, query, torch.ones(3, 3) > 0)
        with pytest.raises(ValueError, match="value must have the lengths of key"):
            scaled_dot_product_attention(query, query, make_jagged(1, 3))
        narrowed = torch.nested.narrow(
            draw(2, 5, 2, 4), 1, torch.tensor([0, 0]), torch.tensor([3, 2]), layout=torch.jagged
        ).transpose(1, 2)
        with pytest.raises(TypeError, match="without gaps"):
            scaled_dot_product_attention(narrowed, narrowed, narrowed)


ENCODER = partial(nn.TransformerEncoderLayer, 8, 2, 16, dropout=0.0, batch_first=True)
# A layer, how it is called, and how often it attends.
LAYERS: dict[str, tuple[Any, Any, int]] = {
    "MultiheadAttention": (
        partial(nn.MultiheadAttention, 8, 2, batch_first=True),
        lambda layer, x: layer(x, x, x, need_weights=False)[0],
        1,
    ),
    "TransformerEncoderLayer": (ENCODER, lambda layer, x: layer(x), 1),
    "TransformerDecoderLayer": (
        partial(nn.TransformerDecoderLayer, 8, 2, 16, dropout=0.0, batch_first=True),
        lambda layer, x: layer(x, x),
        2,
    ),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(ENCODER(), 2, enable_nested_tensor=False),
        lambda layer, x: layer(x),
        2,
    ),
}


X = draw(1, 2, 3, 4).requires_grad_()


@pytest.fixture
def fast_path() -> Iterator[None]:
    """The fast path of PyTorch's layers is on before and after."""
    assert torch.backends.mha.get_fastpath_enabled()
    yield
    assert torch.backends.mha.get_fastpath_enabled()


@pytest.mark.usefixtures("fast_path")
class TestReplaced:
    @pytest.mark.parametrize("gradients", [True, False], ids=["grad", "no_grad"])
    @pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
    @pytest.mark.parametrize("name", LAYERS)
    def test_in_the_layers_of_pytorch(self, name: str, training: bool, gradients: bool) -> None:
        make, call, calls = LAYERS[name]
        layer, x = make().double().train(training), draw(2, 5, 8)
        with torch.set_grad_enabled(gradients):
            expected = call(layer, x)
            with sdpa_replaced() as replaced:
                out = call(layer, x)
        assert replaced.calls == calls
        torch.testing.assert_close(out, expected)
        if gradients:
            parameters = list(layer.parameters())
            both = [torch.autograd.grad(x.square().sum(), parameters) for x in (out, expected)]
            for own, other in zip(*both, strict=True):
                torch.testing.assert_close(own, other)

    def test_a_plain_mode_misses_them(self) -> None:
        """Why `multi_head_attention_forward` is named: a mode that is given only the calls that
        PyTorch gives to it counts none in any layer."""

        class Plain(TorchFunctionMode):
            calls = 0

            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                self.calls += func is BY_NAME
                return func(*args, **(kwargs or {}))

        for make, call, _ in LAYERS.values():
            with Plain() as plain:
                call(make(), draw(2, 5, 8, dtype=torch.float32))
            assert plain.calls == 0

    @pytest.mark.parametrize(
        "function",
        [
            BY_NAME,
            torch.ops.aten.scaled_dot_product_attention,
            torch.ops.aten.scaled_dot_product_attention.default,
            lambda *args: F.scaled_dot_product_attention(*args),
        ],
        ids=["by name", "packet", "overload", "attribute"],
    )
    def test_by_every_name(self, function: Any) -> None:
        x = draw(1, 2, 3, 4)
        with sdpa_replaced("reference") as replaced:
            out = function(x, x, x)
        assert replaced.calls == 1
        assert torch.equal(out, attention(x, x, x, backend="reference"))

    def test_with_weights_pytorch_multiplies_itself(self) -> None:
        """The limit that the docs name."""
        layer, x = nn.MultiheadAttention(8, 2), draw(5, 2, 8, dtype=torch.float32)
        with sdpa_replaced() as replaced:
            layer(x, x, x)
        assert replaced.calls == 0

    def test_nested_blocks_and_exceptions(self) -> None:
        make, call, _ = LAYERS["TransformerEncoderLayer"]
        layer, x = make(), draw(1, 3, 8, dtype=torch.float32)
        with sdpa_replaced() as outer:
            inner = sdpa_replaced()
            with pytest.raises(TypeError, match="query must be float64"), inner:
                F.scaled_dot_product_attention(*[torch.ones(1, 1, 3, 8, dtype=torch.int64)] * 3)
            with inner:
                call(layer, x)
            assert (outer.calls, inner.calls) == (0, 2)
            assert not torch.backends.mha.get_fastpath_enabled()
            call(layer, x)
            with outer:
                call(layer, x)
        call(layer, x)
        assert (outer.calls, inner.calls) == (2, 2)

    def test_other_threads_are_not_replaced(self) -> None:
        """One thread attends inside of its block and one outside; both while both blocks are
        entered, and when one is left."""
        x = draw(1, 2, 3, 4)
        barrier, counted, seen = Barrier(2, timeout=60), {}, []

        def within(name: str, waits: int) -> None:
            with sdpa_replaced() as replaced:
                barrier.wait()
                for _ in range(waits):
                    F.scaled_dot_product_attention(x, x, x)
            counted[name] = replaced.calls
            barrier.wait()

        def without() -> None:
            with Counting() as counting:
                F.scaled_dot_product_attention(x, x, x)
            seen.append(counting.calls)

        class Counting(TorchFunctionMode):
            calls = 0

            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                self.calls += func is BY_NAME
                return func(*args, **(kwargs or {}))

        threads = [Thread(target=within, args=(str(n), n)) for n in (1, 2)]
        for thread in threads:
            thread.start()
        without()
        for thread in threads:
            thread.join()
        assert counted == {"1": 1, "2": 2}
        assert seen == [1]

    @pytest.mark.parametrize(
        "backward", [Tensor.backward, torch.autograd.backward, lambda y: torch.autograd.grad(y, X)]
    )
    def test_recomputation_in_the_backward_pass(self, backward: Any) -> None:
        """`torch.utils.checkpoint` computes again the results that it did not keep."""
        with sdpa_replaced() as replaced:
            out = checkpoint(F.scaled_dot_product_attention, X, X, X, use_reentrant=False)
            backward(out.sum())
        assert replaced.calls == 2

    def test_compiled(self) -> None:
        """A graph with the operator, another backend another graph, and PyTorch's own outside."""
        graphs: list[list[str]] = []

        def keep(module: torch.fx.GraphModule, inputs: list[Tensor]) -> Any:
            graphs.append([str(node.target) for node in module.graph.nodes])
            return module.forward

        x = draw(1, 2, 3, 4)
        compiled = torch.compile(lambda x: F.scaled_dot_product_attention(x, x, x), backend=keep)
        expected = attention(x, x, x)
        with sdpa_replaced():
            assert torch.equal(compiled(x), expected)
        assert "pyimpl.attention.default" in graphs[0]
        compiled(x)
        assert not any("pyimpl" in target for target in graphs[1])
        with sdpa_replaced("reference"):
            assert torch.equal(compiled(x), attention(x, x, x, backend="reference"))
        assert len(graphs) == 3
        layer, y = ENCODER().eval(), draw(2, 5, 8, dtype=torch.float32)
        with torch.no_grad(), sdpa_replaced() as replaced:
            torch.testing.assert_close(torch.compile(layer, backend=keep)(y), layer(y))
        assert replaced.calls == 2
