"""`MultiHeadAttention`'s options beside those of `torch.nn.MultiheadAttention`, the laws of the
source document, conversion, and refusals."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from module_checks import judge_module, normal, randomise
from torch import Tensor, nn

from pyimpl import attention
from pyimpl.modules import MultiHeadAttention

X = normal(2, 5, 8, seed=0)
CONTEXT = normal(2, 7, 8, seed=1)


def module(**options) -> MultiHeadAttention:
    """Of width 8, 4 heads, float64, with random parameters."""
    ours = MultiHeadAttention(8, 4, **{"dtype": torch.float64, **options})
    return randomise(ours).requires_grad_(False)


def by_hand(ours: MultiHeadAttention, query: Tensor, context: Tensor, **options) -> Tensor:
    """The module's definition with `pyimpl.attention`, in its other layout."""
    q, k, v = ours.q_proj(query), ours.k_proj(context), ours.v_proj(context)
    if ours.bias_k is not None:
        k = torch.cat((k, ours.bias_k.expand(len(k), 1, -1)), 1)
        v = torch.cat((v, ours.bias_v.expand(len(v), 1, -1)), 1)
    if ours.add_zero_attn:
        k, v = nn.functional.pad(k, (0, 0, 0, 1)), nn.functional.pad(v, (0, 0, 0, 1))
    heads = (ours.num_heads, ours.num_kv_heads, ours.num_kv_heads)
    q, k, v = (
        x.unflatten(-1, (h, -1)).transpose(1, 2) for x, h in zip((q, k, v), heads, strict=True)
    )
    out = attention(q, k, v, enable_gqa=True, **options)
    assert isinstance(out, Tensor)
    return ours.out_proj(out.transpose(1, 2).flatten(-2))


OPTIONS = {
    "window": {"window": (2, 1)},
    "causal": {"is_causal": True},
    "bottom-right": {"is_causal": True, "causal_alignment": "bottom-right"},
    "softcap": {"softcap": 0.5},
    "ALiBi": {"alibi_slopes": torch.rand(4)},
    "sinks": {"sinks": torch.linspace(-1, 1, 4)},
    "scale": {"scale": 0.3},
    "reference": {"backend": "reference"},
}


@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("name", OPTIONS)
def test_options_of_attention(name: str, num_kv_heads: int) -> None:
    ours = module(num_kv_heads=num_kv_heads, value_head_dim=3, output_dim=5)
    out = ours(X, CONTEXT, **OPTIONS[name])
    assert torch.equal(out, by_hand(ours, X, CONTEXT, **OPTIONS[name]))
    assert not torch.equal(out, ours(X, CONTEXT)) or name == "reference"


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_backends(backend) -> None:
    ours = module(dtype=torch.float32, num_kv_heads=2, add_bias_kv=True, add_zero_attn=True)
    mask = torch.rand(8, 5, 7, generator=torch.Generator().manual_seed(0)) < 0.6
    given = [x.float() for x in (X, CONTEXT, CONTEXT)]
    out = ours(*given, attn_mask=mask, is_causal=True, backend=backend)
    exact = copy.deepcopy(ours).double()
    expected = exact(X, CONTEXT, attn_mask=mask, is_causal=True, backend="reference")
    visible = mask.unflatten(0, (2, 4)) & torch.ones(5, 7, dtype=torch.bool).tril()
    judge_module(out, expected, ours, *given, visible=visible)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_compiles_as_one_graph(added: bool, masked: bool) -> None:
    ours = module(add_bias_kv=added, add_zero_attn=added)
    masks = {"attn_mask": normal(8, 5, 7, seed=3), "key_mask": torch.ones(2, 7, dtype=torch.bool)}
    options = {"is_causal": True, **(masks if masked else {})}
    torch.compiler.reset()
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(X, CONTEXT, **options), ours(X, CONTEXT, **options))


@pytest.mark.parametrize("alignment", ["top-left", "bottom-right"])
@pytest.mark.parametrize("window", [(None, None), (2, 1), (1, None), (10**30, 0)], ids=str)
@pytest.mark.parametrize("is_causal", [True, False])
def test_an_added_key_is_in_no_window(is_causal: bool, window, alignment) -> None:
    ours = module(add_bias_kv=True)
    shift = 2 if alignment == "bottom-right" else 0
    visible = torch.ones(5, 8, dtype=torch.bool)
    for i in range(5):
        for j in range(7):
            left = window[0] is None or i + shift - window[0] <= j
            right = window[1] is None or j <= i + shift + window[1]
            visible[i, j] = left and right and (not is_causal or j <= i + shift)
    out = ours(X, CONTEXT, is_causal=is_causal, window=window, causal_alignment=alignment)
    assert torch.equal(out, by_hand(ours, X, CONTEXT, attn_mask=visible))


@pytest.mark.parametrize("sinks", [None, torch.tensor([0.5, -1, 3, -torch.inf])], ids=str)
@pytest.mark.parametrize("options", [{}, {"softcap": 0.7}, {"window": (1, 1)}], ids=str)
def test_a_zero_key_is_a_sink(sinks: Tensor | None, options) -> None:
    """by_hand appends it, which puts it into a window as well: so the window becomes a mask."""
    ours = module(add_zero_attn=True)
    mask, other = None, dict(options)
    visible = torch.ones(5, 7, dtype=torch.bool)
    if "window" in options:
        visible = visible.tril(1).triu(-1)
        mask = nn.functional.pad(visible, (0, 1), value=True)
        other = {}
    out = ours(X, CONTEXT, sinks=sinks, **options)
    expected = by_hand(ours, X, CONTEXT, sinks=sinks, attn_mask=mask, **other)
    judge_module(out, expected, ours, X, CONTEXT, CONTEXT, visible=visible)


def test_a_mask_of_float16_with_another() -> None:
    """Their sum is more than float16 holds."""
    ours = module()
    mask, keys = torch.full((5, 7), 6e4).half(), torch.full((2, 7), 6e4).half()
    out = ours(X, CONTEXT, attn_mask=mask, key_mask=keys)
    judge_module(out, ours(X, CONTEXT), ours, X, CONTEXT, CONTEXT, added=mask.double() * 2)


def test_the_lowest_number_masks_as_infinity_does() -> None:
    ours = module(add_bias_kv=True)
    hidden = torch.rand(5, 7, generator=torch.Generator().manual_seed(0)) < 0.5
    results = [
        ours(X, CONTEXT, attn_mask=torch.zeros(5, 7).double().masked_fill(hidden, low))
        for low in (-torch.inf, torch.finfo(torch.float64).min)
    ]
    assert torch.equal(*results)
    assert torch.equal(results[0], ours(X, CONTEXT, attn_mask=~hidden))


def test_autocast() -> None:
    ours = module(dtype=torch.float32, add_bias_kv=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert ours(X.float(), CONTEXT.bfloat16()).dtype == torch.bfloat16
        assert module()(X).dtype == torch.float64
        with pytest.raises(
            TypeError, match=r"dtype of the module, torch\.float32, not torch\.float"
        ):
            ours(X)


@pytest.mark.parametrize("shapes", [((0, 5), (0, 7)), ((2, 0), (2, 7)), ((2, 5), (2, 0))], ids=str)
@pytest.mark.parametrize("add_bias_kv", [True, False])
def test_empty_shapes(shapes, add_bias_kv: bool) -> None:
    ours = module(add_bias_kv=add_bias_kv)
    (batch, q_len), (_, kv_len) = shapes
    query, key = (torch.ones(*sizes, 8).double() for sizes in shapes)
    mask = torch.ones(batch * 4, q_len, kv_len, dtype=torch.bool)
    for masks in ({}, {"attn_mask": mask}, {"key_mask": mask[:batch, 0]} if q_len else {}):
        assert ours(query, key, **masks).shape == (batch, q_len, 8)


@settings(max_examples=30, deadline=None)
@given(st.booleans(), st.booleans(), st.permutations(range(5)), st.permutations(range(7)))
def test_permuted_keys_change_nothing_and_queries_the_order(
    bias: bool, add_bias_kv: bool, query, context
) -> None:
    """Document 003 asks for no biases; with them it is true too: each row gets the same one."""
    ours = module(bias=bias, add_bias_kv=add_bias_kv)
    moved = (X[:, query], CONTEXT[:, context], CONTEXT[:, context])
    judge_module(ours(*moved), ours(X, CONTEXT)[:, query], ours, *moved)


@settings(max_examples=30, deadline=None)
@given(st.permutations(range(5)))
def test_self_attention_is_equivariant(order) -> None:
    ours, moved = module(), X[:, order]
    judge_module(ours(moved), ours(X)[:, order], ours, moved, moved, moved)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 4), unique=True), st.booleans())
def test_deleted_queries_leave_the_others_as_they_are(kept, causal: bool) -> None:
    """Without a mask, and with the rows of the mask deleted too."""
    ours = module(add_bias_kv=True)
    mask = normal(2, 4, 5, 7, seed=3)
    if causal:
        mask = mask.masked_fill(~torch.ones(5, 7, dtype=torch.bool).tril(), -torch.inf)
    few, rows = X[:, kept], mask[:, :, kept]
    judge_module(ours(few, CONTEXT), ours(X, CONTEXT)[:, kept], ours, few, CONTEXT, CONTEXT)
    out = ours(few, CONTEXT, attn_mask=rows)
    expected = ours(X, CONTEXT, attn_mask=mask)[:, kept]
    judge_module(out, expected, ours, few, CONTEXT, CONTEXT, added=rows)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 6), unique=True), st.booleans())
def test_masked_keys_are_deleted_keys(kept, nothing: bool) -> None:
    """Whatever they hold; in the document as a limit, here −∞ itself, or False."""
    ours = module(num_kv_heads=2)
    visible = torch.zeros(7, dtype=torch.bool)
    visible[kept] = True
    noisy = CONTEXT.clone()
    noisy[:, ~visible] = torch.nan if nothing else 1e6
    few = CONTEXT[:, sorted(kept)]
    expected = ours(X, few)
    numbers = torch.zeros(7).double().masked_fill(~visible, -torch.inf)
    for masks in (
        {"key_mask": visible.expand(2, 7)},
        {"key_mask": numbers.expand(2, 7)},
        {"attn_mask": visible.expand(5, 7)},
    ):
        judge_module(ours(X, noisy, **masks), expected, ours, X, few, few)


def test_new_parameters() -> None:
    """Xavier's uniform bounds for the weights, 0 for the biases; some added key and value."""
    torch.manual_seed(0)
    ours = MultiHeadAttention(6, 3, key_dim=5, output_dim=4, add_bias_kv=True, dtype=torch.float64)
    for linear in (ours.q_proj, ours.k_proj, ours.v_proj, ours.out_proj):
        bound = (6 / sum(linear.weight.shape)) ** 0.5
        assert bound / 2 < float(linear.weight.detach().abs().max()) <= bound
        assert not bool(linear.bias.any())
    assert bool(ours.bias_k.any())
    assert bool(ours.bias_v.any())
    assert sorted(dict(ours.named_parameters())) == [
        "bias_k", "bias_v", "k_proj.bias", "k_proj.weight", "out_proj.bias", "out_proj.weight",
        "q_proj.bias", "q_proj.weight", "v_proj.bias", "v_proj.weight",
    ]  # fmt: skip
    assert "num_heads=3, add_zero_attn=False" in repr(ours)
    assert MultiHeadAttention(4, 2, device="meta").q_proj.weight.is_meta


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bias": False, "batch_first": True},
        {"kdim": 3, "vdim": 5, "add_bias_kv": True, "dtype": torch.bfloat16},
        {"add_zero_attn": True, "add_bias_kv": True, "dtype": torch.float64},
        {"bias": False, "kdim": 3, "device": "meta"},
    ],
    ids=str,
)
def test_to_torch_and_back(options, training: bool) -> None:
    theirs = nn.MultiheadAttention(6, 2, **options).train(training)
    theirs.out_proj.weight.requires_grad_(False)
    state = torch.get_rng_state()
    ours = MultiHeadAttention.from_torch(theirs)
    again = ours.to_torch()
    assert torch.equal(torch.get_rng_state(), state)
    assert ours.training == again.training == training
    assert repr(again) == repr(theirs)
    assert (again.batch_first, again.add_zero_attn) == (theirs.batch_first, theirs.add_zero_attn)
    expected, got = dict(theirs.named_parameters()), dict(again.named_parameters())
    assert list(got) == list(expected)
    for name, parameter in got.items():
        assert parameter.requires_grad == (name != "out_proj.weight")
        assert parameter.dtype == theirs.out_proj.weight.dtype
        assert parameter.is_meta or torch.equal(parameter, expected[name])
        assert parameter.is_meta or parameter.data_ptr() != expected[name].data_ptr()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"output_dim": 5}, "output_dim must be query_dim, 8, not 5, for torch.nn.Multihead"),
        ({"num_kv_heads": 2}, "num_kv_heads must be num_heads, 4, not 2, for torch"),
        ({"value_head_dim": 3}, "value_head_dim must be head_dim, 2, not 3, for torch"),
        ({"head_dim": 5}, "head_dim must be query_dim / num_heads, 2, not 5, for torch"),
        ({"scale": 0.25}, "scale must be None, not 0.25, for torch"),
    ],
)
def test_what_torch_cannot_hold(options, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        module(**options).to_torch()


def test_what_from_torch_refuses() -> None:
    with pytest.raises(TypeError, match=r"must be a torch\.nn\.MultiheadAttention, not Linear"):
        MultiHeadAttention.from_torch(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"query_dim": 10}, ValueError, "query_dim must be a multiple of num_heads, 4, not 10"),
        ({"query_dim": 0}, ValueError, "query_dim must be at least 1 and below 2³¹, not 0"),
        ({"num_heads": 2.0}, TypeError, "num_heads must be a whole number, not 2.0"),
        ({"key_dim": True}, TypeError, "key_dim must be a whole number, not True"),
        ({"value_head_dim": -1}, ValueError, "value_head_dim must be at least 1 and .* not -1"),
        ({"num_kv_heads": 3}, ValueError, "num_kv_heads must divide num_heads, 4, which 3 does"),
        ({"scale": float("inf")}, ValueError, "scale must be finite in"),
        ({"scale": "1"}, TypeError, "scale must be"),
        ({"bias": None}, TypeError, "bias must be True or False, not None"),
        ({"batch_first": 1}, TypeError, "batch_first must be True or False, not 1"),
        ({"dropout": 1.1}, ValueError, "dropout must be from 0 to 1, not 1.1"),
        ({"dropout": 10**400}, ValueError, "dropout must be from 0 to 1, not 1000"),
        ({"dropout": torch.zeros(2)}, TypeError, "dropout must be a number, not tensor"),
        ({"num_heads": 10**5000}, ValueError, "num_heads must be .* not so long a"),
        ({"head_dim": 2**40}, ValueError, "head_dim must be at least 1 and below 2³¹, not 1099"),
        ({"dtype": [0, 0]}, TypeError, r"dtype must be float64, .* not \[0, 0\]"),
        ({"dtype": torch.int8}, TypeError, "dtype must be float64, float32, .* not torch.int8"),
    ],
)
def test_constructions_that_are_refused(options, error, words: str) -> None:
    with pytest.raises(error, match=words):
        MultiHeadAttention(**{"query_dim": 8, "num_heads": 4, **options})


def test_a_scale_of_the_module() -> None:
    """It is the one that `forward` takes where it is given none."""
    ours = module(scale=0.75)
    plain = copy.deepcopy(ours)
    plain.scale = None
    assert torch.equal(ours(X), plain(X, scale=0.75))
    assert torch.equal(ours(X, scale=0.5), plain(X, scale=0.5))
    assert not torch.equal(ours(X), plain(X))
    assert "scale=0.75" in repr(ours)


def test_whole_numbers_of_numpy() -> None:
    module = MultiHeadAttention(np.int64(8), np.int32(4), num_kv_heads=np.int16(2))
    assert (module.query_dim, module.num_heads, module.num_kv_heads) == (8, 4, 2)
    assert all(type(n) is int for n in (module.query_dim, module.num_heads, module.num_kv_heads))


def test_a_device_without_autocast() -> None:
    module = MultiHeadAttention(8, 2, device="meta").requires_grad_(False)
    assert module(torch.empty(3, 4, 8, device="meta")).shape == (3, 4, 8)


MASK = torch.ones(5, 7, dtype=torch.bool)
REFUSALS = [
    ({"query": [1.0]}, TypeError, "query must be a torch.Tensor, not list"),
    ({"query": X[0, 0]}, ValueError, r"query must be \[batch, length, query_dim\], not of shape"),
    ({"query": X[0]}, ValueError, r"key must be \[length, key_dim\], not of shape \[2, 7, 8\]"),
    ({"query": X[..., :4]}, ValueError, "last dimension of query must be query_dim, 8, not 4"),
    ({"key": CONTEXT[..., :4]}, ValueError, "last dimension of key must be key_dim, 8, not 4"),
    ({"query": X.float()}, TypeError, "query must have the dtype of the module, torch.float64, n"),
    ({"key": CONTEXT.to("meta")}, ValueError, "key must be on the device of the module, cpu, not"),
    ({"key": CONTEXT[:1]}, ValueError, "key must have the batch of query, 2, not 1"),
    ({"value": CONTEXT[:1]}, ValueError, "value must have the batch of key, 2, not 1"),
    ({"value": CONTEXT[:, :3]}, ValueError, "value must have the length of key, 7, not 3"),
    ({"attn_mask": True}, TypeError, "attn_mask must be a torch.Tensor or None, not bool"),
    ({"attn_mask": MASK.int()}, TypeError, "attn_mask must be boolean .* not torch.int32"),
    (
        {"attn_mask": MASK[None]},
        ValueError,
        r"\[5, 7\] or .* = \[2, 4, 5, 7\], or be .* = \[8, 5, 7\], not of shape \[1, 5, 7\]",
    ),
    ({"attn_mask": MASK[:, :6]}, ValueError, r"attn_mask must be broad.* not of shape \[5, 6\]"),
    ({"attn_mask": MASK[0]}, ValueError, r"attn_mask must be broadcastable .* of shape \[7\]"),
    ({"attn_mask": MASK * torch.nan}, ValueError, "attn_mask must hold numbers or −∞, and holds"),
    ({"key_mask": None, "attn_mask": MASK.to("meta")}, ValueError, "attn_mask must be on the dev"),
    ({"key_mask": MASK[0]}, ValueError, r"key_mask must be \[batch, kv_len\] = \[2, 7\], not of"),
    ({"key_mask": [True]}, TypeError, "key_mask must be a torch.Tensor or None, not list"),
    ({"key_mask": MASK[:2].long()}, TypeError, "key_mask must be boolean .* not torch.int64"),
    ({"key_padding_mask": MASK[:2]}, TypeError, "unexpected keyword argument 'key_padding_mask'"),
    ({"window": 3}, TypeError, r"window must be a pair \(left, right\), not 3"),
    ({"is_causal": 1}, TypeError, "is_causal must be True or False, not 1"),
    ({"causal_alignment": "left"}, ValueError, "causal_alignment must be one of 'top-left', "),
    ({"sinks": torch.zeros(3)}, ValueError, r"sinks must be of shape \[4\], not \[3\]"),
    ({"backend": "none"}, ValueError, "backend must be one of 'auto', 'triton', 'gluon', 'til"),
]


@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(("changed", "error", "words"), REFUSALS, ids=[r[2][:40] for r in REFUSALS])
def test_calls_that_are_refused(changed, error, words: str, added: bool) -> None:
    ours = module(add_bias_kv=added, add_zero_attn=added)
    with pytest.raises(error, match=words):
        ours(**{"query": X, "key": CONTEXT, **changed})


def test_key_masks_of_unbatched_inputs_have_one_dimension() -> None:
    with pytest.raises(ValueError, match=r"key_mask must be \[kv_len\] = \[5\], not of shape \[1"):
        module()(X[0], key_mask=torch.ones(1, 5, dtype=torch.bool))


def test_slopes_have_no_place_for_an_added_key() -> None:
    with pytest.raises(ValueError, match="alibi_slopes must be None with add_bias_kv"):
        module(add_bias_kv=True)(X, alibi_slopes=torch.ones(4))


def test_the_examples_of_the_docs_run() -> None:
    page = Path(__file__).resolve().parents[3] / "docs" / "modules.md"
    examples = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    assert len(examples) == 3
    for example in examples:
        exec(compile(example, str(page), "exec"), {})
