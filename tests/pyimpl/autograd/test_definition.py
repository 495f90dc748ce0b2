"""`pyimpl.autograd.definition`: attention under `torch.func`'s transforms, with tangents, and
gradients of gradients, in float64; by finite differences, by the Spec's dual numbers, and against
the operator's own backward pass."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap

from bridge.spec.core import Arithmetic, Dual
from bridge.spec.tangent import jvp as spec_jvp
from pyimpl import attention, attention_decode, attention_varlen
from pyimpl.backends import reference
from pyimpl.distributed import Shards
from pyimpl.distributed.internal.arguments import prepare
from pyimpl.distributed.internal.passing import Processes
from pyimpl.internal.scores import CHANGES, ScoreOptions
from pyimpl.modules import MultiHeadAttention


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


QUERY, KEY, VALUE = draw(1, 2, 2, 3), draw(1, 1, 3, 3, seed=1), draw(1, 1, 3, 2, seed=2)
# The last query sees nothing, and the last key is seen by nobody.
MASK = torch.tensor([[True, True, False], [False, False, False]])
# Those that multiply the queries.
FOLDED = [change.name for change in CHANGES if not change.argument]
# Options by name, and those of them that are tensors with derivatives.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Tensor]]] = {
    "plain": ({}, {}),
    "causal": ({"is_causal": True}, {}),
    "window": ({"window": (1, 0), "causal_alignment": "bottom-right"}, {}),
    "mask": ({"attn_mask": MASK}, {}),
    "softcap": ({"softcap": 0.8}, {}),
    "alibi": ({}, {"alibi_slopes": draw(2, seed=3)}),
    "bias": ({}, {"bias": draw(2, 2, 3, seed=3)}),
    "floating mask": ({}, {"attn_mask": draw(2, 3, seed=3)}),
    "sinks": ({"attn_mask": MASK}, {"sinks": draw(2, seed=3)}),
    **{name: ({}, {name: draw(2, seed=3)}) for name in FOLDED},
    "dropout": ({"dropout_p": 0.4, "dropout_seed": 5}, {}),
}


def function_of(name: str, **more: Any) -> tuple[Any, tuple[Tensor, ...]]:
    """Attention of query, key, value and the tensors of an option, with all of these."""
    fixed, tensors = OPTIONS[name]

    def function(query: Tensor, key: Tensor, value: Tensor, *others: Tensor) -> Any:
        named = dict(zip(tensors, others, strict=True))
        return attention(query, key, value, enable_gqa=True, **fixed, **named, **more)

    return function, (QUERY, KEY, VALUE, *tensors.values())


@pytest.mark.parametrize("name", OPTIONS)
class TestOptions:
    def test_derivatives_by_finite_differences(self, name: str) -> None:
        """Forward and backward, of both outputs where each row has a key, and once more."""
        sees = name != "mask"
        function, tensors = function_of(name, return_lse=sees)
        inputs = [x.clone().requires_grad_() for x in tensors]
        assert gradcheck(function, inputs, check_forward_ad=True, fast_mode=True)
        assert gradgradcheck(function, inputs, fast_mode=True)

    @pytest.mark.parametrize("backend", ["tiled", "reference"])
    def test_as_the_operator_has_it(self, name: str, backend: str) -> None:
        """The values within transforms, and the gradients, are those of the operators."""
        function, tensors = function_of(name, return_lse=True, backend=backend)
        expected, inputs = function(*tensors), [x.clone().requires_grad_() for x in tensors]
        found, pull = vjp(function, *tensors)
        torch.testing.assert_close(found, expected)
        cotangents = tuple(draw(*x.shape, seed=7) for x in expected)
        # No gradient comes of a log-sum-exp of −∞.
        outputs = function(*inputs)
        theirs = torch.autograd.grad(outputs, inputs, cotangents)
        torch.testing.assert_close(pull(cotangents), theirs)
        again = torch.autograd.grad(function(*inputs), inputs, cotangents, create_graph=True)
        torch.testing.assert_close([x.detach() for x in again], list(theirs))


DECIMALS = Arithmetic(Decimal.exp, Decimal, Decimal)
SPEC_INPUTS = (draw(2, 2), draw(3, 2, seed=1), draw(3, 2, seed=2))
# Options of attention as the Spec has them, over dual numbers: by name the tensors that change, the
# options, and the score of a pair, made of these tensors' dual numbers by the arithmetic.
SPEC_OPTIONS: dict[str, tuple[dict[str, Tensor], dict[str, Any], Callable[..., Any]]] = {
    "plain": ({}, {}, lambda num, given, i, j, s: s),
    "causal, with a bias": (
        {"bias": draw(2, 3, seed=3)},
        {"is_causal": True, "causal_alignment": "bottom-right"},
        lambda num, given, i, j, s: None if j > i + 1 else s + given["bias"][i][j],
    ),
    "slopes, and a row that sees nothing": (
        {"alibi_slopes": draw(1, seed=3)},
        {"attn_mask": torch.tensor([[True, True, False], [False, False, False]])},
        lambda num, given, i, j, s: (
            None if i == 1 or j == 2 else s - given["alibi_slopes"][0] * num.value(abs(i - j))
        ),
    ),
    "softcap": (
        {},
        {"softcap": 0.5},
        lambda num, given, i, j, s: cap(num, s),
    ),
}


def cap(num: Arithmetic, score: Any) -> Any:
    """tanh(2 s) / 2, by exponentials."""
    one = num.value(1)
    e = num.exp(num.value(4) * score)
    return (e - one) / (e + one) / num.value(2)


def of_duals(values: Tensor, *rates: Tensor) -> Any:
    """Nested lists of decimals; with rates, of dual numbers, and with two of these, the first with
    a rate too: of dual numbers of dual numbers."""
    if values.dim():
        return [of_duals(*parts) for parts in zip(values, *rates, strict=True)]
    numbers = [Decimal(x.item()) for x in (values, *rates)]
    if len(numbers) == 3:
        # Changing at `inner`, which stays; the whole changes at `outer`.
        value, inner, outer = numbers
        return Dual(Dual(value, inner), Dual(outer, Decimal(0)))
    return Dual(*numbers) if len(numbers) == 2 else numbers[0]


@pytest.mark.parametrize("name", SPEC_OPTIONS)
class TestBySpec:
    """`Spec.jvp`, attention over dual numbers, run over decimals of 28 digits."""

    def function(self, name: str) -> tuple[Any, tuple[Tensor, ...]]:
        tensors, options, _ = SPEC_OPTIONS[name]

        def function(q: Tensor, k: Tensor, v: Tensor, *others: Tensor) -> Any:
            named = dict(zip(tensors, others, strict=True))
            given = (q[None, None], k[None, None], v[None, None])
            return attention(*given, scale=0.5, **options, **named)[0, 0]

        return function, (*SPEC_INPUTS, *tensors.values())

    def rates(self, inputs: tuple[Tensor, ...], seed: int) -> tuple[Tensor, ...]:
        return tuple(draw(*x.shape, seed=seed + i) for i, x in enumerate(inputs))

    def test_forwards(self, name: str) -> None:
        function, inputs = self.function(name)
        rates = self.rates(inputs, 10)
        tensors, _, score = SPEC_OPTIONS[name]
        num = DECIMALS.dual()
        changing = dict(zip(tensors, map(of_duals, inputs[3:], rates[3:]), strict=True))
        expected = spec_jvp(
            Decimal("0.5"), lambda i, j, s: score(num, changing, i, j, s),
            *(of_duals(x) for pair in zip(inputs[:3], rates, strict=False) for x in pair),
            q_len=2, kv_len=3, d=2, d_v=2, num=DECIMALS,
        )  # fmt: skip
        wanted = torch.tensor([[float(x) for x in row] for row in expected], dtype=torch.float64)
        assert bool(wanted.any())
        _, tangent = jvp(function, inputs, rates)
        torch.testing.assert_close(tangent, wanted)
        with forward_ad.dual_level():
            duals = [forward_ad.make_dual(*pair) for pair in zip(inputs, rates, strict=True)]
            torch.testing.assert_close(forward_ad.unpack_dual(function(*duals)).tangent, wanted)

    def test_twice(self, name: str) -> None:
        """The tangent's own tangent, by dual numbers of dual numbers; and of a batch of rates."""
        function, inputs = self.function(name)
        inner, outer = self.rates(inputs, 10), self.rates(inputs, 20)
        tensors, _, score = SPEC_OPTIONS[name]
        once = DECIMALS.dual()
        twice = once.dual()
        nested = [of_duals(*numbers) for numbers in zip(inputs, inner, outer, strict=True)]
        changing = dict(zip(tensors, nested[3:], strict=True))
        # Over dual numbers `jvp` has rates that are dual too: the outer ones, which stay.
        pairs = [(of_duals(x, dx), of_duals(dy, torch.zeros_like(dy)))
                 for x, dx, dy in zip(inputs[:3], inner, outer, strict=False)]  # fmt: skip
        expected = spec_jvp(
            Dual(Decimal("0.5"), Decimal(0)), lambda i, j, s: score(twice, changing, i, j, s),
            *(x for pair in pairs for x in pair),
            q_len=2, kv_len=3, d=2, d_v=2, num=once,
        )  # fmt: skip
        wanted = torch.tensor(
            [[float(x.der) for x in row] for row in expected], dtype=torch.float64
        )
        assert bool(wanted.any())

        def forwards(rates: tuple[Tensor, ...], *given: Tensor) -> Any:
            return jvp(function, given, rates)[1]

        _, found = jvp(lambda *given: forwards(inner, *given), inputs, outer)
        torch.testing.assert_close(found, wanted)
        several = tuple(torch.stack([x, -2 * x]) for x in outer)
        batch = vmap(lambda rates: jvp(lambda *g: forwards(inner, *g), inputs, rates)[1])(several)
        torch.testing.assert_close(batch, torch.stack([wanted, -2 * wanted]))


class TestTransforms:
    def test_gradients_of_each_sample(self) -> None:
        """`vmap` of `grad` through a module, against one sample after another."""
        module = MultiHeadAttention(8, num_heads=2, num_kv_heads=1).double()
        parameters = {name: p.detach() for name, p in module.named_parameters()}
        inputs = draw(3, 4, 8)

        def loss(parameters: dict[str, Tensor], x: Tensor) -> Tensor:
            out: Tensor = functional_call(module, parameters, (x[None],), {"is_causal": True})
            return out.square().sum()

        each = vmap(grad(loss), in_dims=(None, 0))(parameters, inputs)
        for i, x in enumerate(inputs):
            own = torch.autograd.grad(
                module(x[None], is_causal=True).square().sum(), list(module.parameters())
            )
            torch.testing.assert_close([g[i] for g in each.values()], list(own))

    @pytest.mark.parametrize("name", ["bias", "sinks", *FOLDED, "alibi"])
    def test_vmap_of_an_option(self, name: str) -> None:
        function, (*fixed, tensor) = function_of(name)
        several = torch.stack([tensor, 2 * tensor])
        found = vmap(lambda x: function(*fixed, x))(several)
        torch.testing.assert_close(found, torch.stack([function(*fixed, x) for x in several]))

    def test_one_transform_in_another(self) -> None:
        """Jacobians both ways are equal; so are Hessians by `torch.func` and by autograd."""

        def loss(query: Tensor) -> Any:
            return attention(query, query, query, softcap=1.0, is_causal=True).pow(3).sum()

        x = draw(1, 2, 2, 2)
        torch.testing.assert_close(jacfwd(loss)(x), jacrev(loss)(x))
        by_autograd = torch.autograd.functional.hessian(loss, x)
        torch.testing.assert_close(hessian(loss)(x), by_autograd)
        torch.testing.assert_close(jacrev(jacfwd(loss))(x), by_autograd)

    def test_masks_hide_what_is_not_finite(self) -> None:
        """NaN where nobody looks comes into no derivative, and a row that sees nothing has none."""
        query, key, value = QUERY.clone(), KEY.clone(), VALUE.clone()
        query[..., 1, :], key[..., 2, :], value[..., 2, :] = torch.nan, torch.nan, torch.nan
        given = (query, key, value)

        def loss(*tensors: Tensor) -> Any:
            out, lse = attention(*tensors, attn_mask=MASK, enable_gqa=True, return_lse=True)
            return out.square().sum() + lse[..., 0].sum()

        gradients = grad(loss, argnums=(0, 1, 2))(*given)
        seconds = hessian(loss, argnums=(0, 1, 2))(*given)
        for found in (gradients, *seconds):
            assert all(bool(x.isfinite().all()) for x in found)
        assert bool((gradients[0][..., 1, :] == 0).all())
        assert bool((gradients[1][..., 2, :] == 0).all())
        assert bool(gradients[0].any())

    def test_the_reference_differentiated_as_it_stands_is_not_enough(self) -> None:
        """The mistake that this module is for: the formulas of the reference give NaN where a key
        that nobody sees holds NaN, and for the log-sum-exp of a row without keys forwards."""
        options, key = ScoreOptions(1.0, mask=MASK), KEY.clone()

        def function(query: Tensor) -> Any:
            return reference.attention(query, key, VALUE, options)

        _, (_, tangent) = jvp(function, (QUERY,), (QUERY,))
        assert bool(tangent[..., 1].isnan().any())
        key[..., 2, :] = torch.nan
        assert bool(grad(lambda query: function(query)[0].sum())(QUERY).isnan().any())

    def test_numbers_are_looked_at(self) -> None:
        """As in a plain call: NaN is refused, and the lowest numbers mask."""
        function, (*fixed, bias) = function_of("bias")
        several = torch.stack([bias, bias])
        several[1, 0, 0, 0] = torch.nan
        with pytest.raises(ValueError, match="bias must hold numbers or −∞"):
            vmap(lambda x: function(*fixed, x))(several)
        several[1, 0, 0, 0] = torch.finfo(torch.float64).min
        found = vmap(lambda x: function(*fixed, x))(several)
        torch.testing.assert_close(found[1], function(*fixed, several[1]))
        slopes = torch.full((2, 2), torch.inf, dtype=torch.float64)
        with pytest.raises(ValueError, match="alibi_slopes must hold finite numbers"):
            vmap(lambda x: attention(QUERY, KEY, VALUE, alibi_slopes=x, enable_gqa=True))(slopes)

    def test_dropout(self) -> None:
        """A seed is drawn as `vmap` is told to: not at all unless it says how."""

        def function(query: Tensor) -> Any:
            return attention(query, KEY, VALUE, enable_gqa=True, dropout_p=0.5)

        several = torch.stack([QUERY] * 8)
        with pytest.raises(RuntimeError, match="randomness"):
            vmap(function)(several)
        same = vmap(function, randomness="same")(several)
        assert all(torch.equal(x, same[0]) for x in same)
        different = vmap(function, randomness="different")(several)
        assert not all(torch.equal(x, different[0]) for x in different)

    def test_query_key_and_value_may_be_one_tensor(self) -> None:
        x = draw(1, 1, 3, 2).requires_grad_()
        (plain,) = torch.autograd.grad(attention(x, x, x).square().sum(), x)
        (again,) = torch.autograd.grad(attention(x, x, x).square().sum(), x, create_graph=True)
        torch.testing.assert_close(again.detach(), plain)
        torch.testing.assert_close(
            grad(lambda x: attention(x, x, x).square().sum())(x).detach(), plain
        )

    def test_in_float32_and_nothing_to_attend_to(self) -> None:
        query, key = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 0, 4)
        (out, lse), tangents = jvp(
            lambda q: attention(q, key, key, return_lse=True), (query,), (query,)
        )
        assert (out.dtype, lse.dtype) == (torch.float32, torch.float32)
        assert bool((out == 0).all() and torch.isneginf(lse).all())
        assert all(bool((x == 0).all()) for x in tangents)


class TestLimits:
    def test_the_kernels_are_not_what_runs(self) -> None:
        query, key, value = (x.float() for x in (QUERY, KEY, VALUE))
        call = {"backend": "triton", "enable_gqa": True}
        with pytest.warns(UserWarning, match="not by Triton's kernels"):
            gradient = grad(lambda q: attention(q, key, value, **call).sum())(query)
        tiled = {"backend": "tiled", "enable_gqa": True}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            own = grad(lambda q: attention(q, key, value, **tiled).sum())(query)
        assert torch.equal(gradient, own)

    def test_compiled_transforms_are_right_or_refused(self) -> None:
        """Never derivatives of 0, which an operator without a forward-mode formula would give."""
        # It takes seconds to import: not where tests are collected.
        from torch._dynamo.exc import TorchRuntimeError, Unsupported

        def function(query: Tensor) -> Any:
            return attention(query, KEY, VALUE, enable_gqa=True)

        def forwards(query: Tensor) -> Any:
            return jvp(function, (query,), (query,))[1]

        torch.testing.assert_close(torch.compile(forwards, backend="eager")(QUERY), forwards(QUERY))
        torch.compiler.reset()
        with pytest.raises(Unsupported, match="query carries a tangent"):
            torch.compile(forwards, backend="eager", fullgraph=True)(QUERY)
        backwards = grad(lambda query: function(query).sum())
        with pytest.raises(TorchRuntimeError, match="fake tensor"):
            torch.compile(backwards, backend="eager")(QUERY)

    def test_packed_sequences_and_decoding_refuse(self) -> None:
        rows, sums = draw(3, 1, 2), torch.tensor([0, 3])
        with pytest.raises(NotImplementedError, match="key carries a tangent"):
            jvp(lambda k: attention_varlen(rows, k, rows, sums, sums), (rows,), (rows,))
        with pytest.raises(NotImplementedError, match=r"sinks is differentiated by torch\.func"):
            grad(lambda s: attention_varlen(rows, rows, rows, sums, sums, sinks=s).sum())(draw(1))
        with pytest.raises(NotImplementedError, match="query carries a tangent"):
            jvp(lambda q: attention_decode(q, QUERY, QUERY), (QUERY,), (QUERY,))

    @pytest.mark.parametrize("name", ["key", "bias", "sinks"])
    def test_sequences_in_shards_refuse(self, name: str) -> None:
        shards = Shards.contiguous(3, 1)
        given = {"key": draw(1, 1, 3, 2), "bias": draw(3, 3), "sinks": draw(1)}

        def function(changed: Tensor) -> Any:
            call = {"query": given["key"], "value": given["key"]} | given | {name: changed}
            return prepare(
                Processes(None), **call, shards=shards, key_shards=None, attn_mask=None,
                whole_pairs=True, is_causal=False, causal_alignment="top-left",
                window=(None, None), cu_seqlens=None, enable_gqa=False, return_lse=False,
                dropout_p=0.0, dropout_seed=None, backend="tiled",
            )  # fmt: skip

        with pytest.raises(NotImplementedError, match=f"^{name} carries a tangent"):
            jvp(function, (given[name],), (given[name],))
