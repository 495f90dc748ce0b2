"""`jax.nn.dot_product_attention` as an oracle, over shapes and options that hypothesis draws.

jax is no dependency of the project but the extra `oracles`; without it these tests are skipped:

    .venv/bin/python -m pip install 'jax>=0.10'
    .venv/bin/python -m pytest tests/suites/test_jax_oracle.py

The options that the two have in common, and each one's name of them:

| meaning | jax | pyimpl |
| --- | --- | --- |
| shapes | BTNH, K heads of keys | `layout="bnhd"`, `enable_gqa` |
| boolean mask, added bias | mask, bias | attn_mask, bias |
| causal, window, aligned top-left | is_causal, local_window_size | is_causal, window |
| padding at the end | query_seq_lengths, key_value_seq_lengths | attn_mask |
| log-sum-exp | return_residual | return_lse |

The two may be apart by the sum of both tolerances. One difference is known: jax masks with a large
negative number, so that a query that may attend to no key gets the mean of the values (0 if it is
padding). Such rows are compared with 0 and −∞, `attention`'s answers for them, and not with
jax. float16 is left out: jax has no such product on a CPU. Its log-sum-exp is looked at in float32,
since with bfloat16 it is rounded to that.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from attention_checks import NAMES, inputs, tiled_rounding
from hypothesis import given, settings
from hypothesis import strategies as st
from suite_checks import BACKENDS, agree, find_tolerances
from torch import Tensor

import pyimpl
from bridge.conformance.tolerances.rounding_model import FLOAT32, FORMATS, WHOLE_ROW, RoundingModel

jax = pytest.importorskip("jax", reason="needs jax, the extra oracles")
jax.config.update("jax_platforms", "cpu")

Options = dict[str, Any]
sides = st.integers(0, 12)
windows = st.none() | st.tuples(sides, sides)


@st.composite
def option_sets(draw: st.DrawFn, sizes: tuple[int, int, int, int]) -> Options:
    """Options in the words of jax, for `sizes` = (batch, heads, q_len, kv_len); None: not given."""
    batch, heads, q_len, kv_len = sizes
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**32)))
    broadcast = [draw(st.sampled_from([1, n])) for n in (batch, heads, q_len)]
    numbers = torch.randn(*broadcast, kv_len, generator=generator)

    def lengths(most: int) -> st.SearchStrategy[list[int] | None]:
        return st.none() | st.lists(st.integers(0, most), min_size=batch, max_size=batch)

    return {
        "mask": draw(st.sampled_from([None, numbers < 0.8, numbers < -0.5])),
        "bias": draw(st.sampled_from([None, numbers.flip(-1)])),
        "scale": draw(st.sampled_from([None, 0.3, -2.0])),
        "is_causal": draw(st.booleans()),
        "local_window_size": draw(windows),
        "query_seq_lengths": draw(lengths(q_len)),
        "key_value_seq_lengths": draw(lengths(kv_len)),
    }


@st.composite
def calls(draw: st.DrawFn) -> tuple[tuple[Tensor, Tensor, Tensor], list[Options]]:
    """Tensors in the layout "bhnd", and several sets of options: jax compiles anew for each shape,
    and not for each set."""
    group, dim = draw(st.sampled_from([1, 2, 4])), draw(st.sampled_from([1, 8, 20]))
    batch, kv_heads, q_len, kv_len = (draw(st.integers(1, n)) for n in (3, 3, 12, 40))
    dtype = draw(st.sampled_from([torch.float32, torch.bfloat16]))
    seed = draw(st.integers(0, 2**32))
    shape = (batch, kv_heads, q_len, kv_len, dim, dim)
    tensors = inputs(shape, dtype, seed=seed, group=group)[:3]
    sizes = (batch, group * kv_heads, q_len, kv_len)
    return tensors, draw(st.lists(option_sets(sizes), min_size=5, max_size=5))


@partial(jax.jit, static_argnames="is_causal")
def run_compiled(query: Any, key: Any, value: Any, **options: Any) -> Any:
    return jax.nn.dot_product_attention(query, key, value, return_residual=True, **options)


def to_jax(tensor: Tensor) -> Any:
    """float32 holds every bfloat16."""
    dtype = "bfloat16" if tensor.dtype == torch.bfloat16 else "float32"
    return jax.numpy.asarray(tensor.float().numpy(), dtype=dtype)


def by_jax(
    tensors: tuple[Tensor, Tensor, Tensor], sizes: tuple[int, ...], options: Options
) -> tuple[Tensor, Tensor]:
    """Output and log-sum-exp in the layout "bhnd". Options that are not given are given as numbers
    that change nothing: so that the call has one form, and is compiled once."""
    batch, _, q_len, kv_len = sizes
    given = {name: option for name, option in options.items() if option is not None}
    mask = given.get("mask", torch.ones(1, 1, 1, 1, dtype=torch.bool))
    out, lse = run_compiled(
        *(to_jax(x.transpose(1, 2)) for x in tensors),
        mask=mask.expand(sizes).numpy(),
        bias=given.get("bias", torch.zeros(1, 1, 1, 1)).expand(sizes).numpy(),
        scale=given.get("scale", 1 / math.sqrt(tensors[0].shape[-1])),
        is_causal=options["is_causal"],
        local_window_size=given.get("local_window_size", (99, 99)),
        query_seq_lengths=np.array(given.get("query_seq_lengths", [q_len] * batch), np.int32),
        key_value_seq_lengths=np.array(
            given.get("key_value_seq_lengths", [kv_len] * batch), np.int32
        ),
    )
    dtype = tensors[0].dtype
    out, lse = (torch.from_numpy(np.array(x, np.float32)) for x in (out, lse))
    return out.transpose(1, 2).to(dtype), lse.transpose(1, 2)


def padding(options: Options, sizes: tuple[int, ...]) -> Tensor:
    """Which pairs are neither padding of the queries nor of the keys."""
    batch, _, q_len, kv_len = sizes
    q_lens, kv_lens = options["query_seq_lengths"], options["key_value_seq_lengths"]
    rows = torch.tensor([q_len] * batch if q_lens is None else q_lens)
    columns = torch.tensor([kv_len] * batch if kv_lens is None else kv_lens)
    i, j = torch.arange(q_len)[:, None], torch.arange(kv_len)
    return (i < rows[:, None, None, None]) & (j < columns[:, None, None, None])


def by_pyimpl(
    tensors: tuple[Tensor, Tensor, Tensor], sizes: tuple[int, ...], options: Options, backend: str
) -> tuple[Tensor, Tensor]:
    mask = padding(options, sizes)
    if options["mask"] is not None:
        mask = mask & options["mask"]
    out, lse = pyimpl.attention(
        *(x.transpose(1, 2) for x in tensors), attn_mask=mask, bias=options["bias"],
        is_causal=options["is_causal"], window=options["local_window_size"] or (None, None),
        scale=options["scale"], enable_gqa=True, return_lse=True, layout="bnhd", backend=backend,
    )  # fmt: skip
    return out.transpose(1, 2), lse


def jax_rounding(dtype: torch.dtype) -> RoundingModel:
    """Everything in float32, but bfloat16 weights after they were divided by their sum."""
    if dtype == torch.float32:
        return RoundingModel.sdpa_math("float32")
    low = FORMATS[NAMES[dtype]]
    return RoundingModel(
        "jax", low, low, FLOAT32, FLOAT32.unit, operands=FLOAT32, operand_roundings=1, weights=low,
        weights_normalized=True, denominator="unrounded", block_n=WHOLE_ROW,
    )  # fmt: skip


def compare(
    tensors: tuple[Tensor, Tensor, Tensor], options: Options, backend: str, **changed: Any
) -> None:
    """Fail unless both agree; `changed`: other options for `pyimpl`."""
    query, key, value = tensors
    sizes = (*query.shape[:3], key.shape[2])
    visible = padding(options, sizes).expand(sizes)
    i, j = torch.arange(sizes[2])[:, None], torch.arange(sizes[3])
    if options["mask"] is not None:
        visible = visible & options["mask"]
    if options["is_causal"]:
        visible = visible & (j <= i)
    if options["local_window_size"] is not None:
        left, right = options["local_window_size"]
        visible = visible & (i - left <= j) & (j <= i + right)
    scale = options["scale"] or 1 / math.sqrt(query.shape[-1])
    tolerances = find_tolerances(
        query, key, value, scale=scale, visible=visible, bias=options["bias"],
        rounding_models=[tiled_rounding(query.dtype), jax_rounding(query.dtype)],
    )  # fmt: skip
    ours = by_pyimpl(tensors, sizes, options | changed, backend)
    theirs = by_jax(tensors, sizes, options)
    empty = ~visible.any(-1)
    agree(ours[0], theirs[0].masked_fill(empty.unsqueeze(-1), 0.0), tolerances[0])
    if query.dtype == torch.float32:
        agree(ours[1], theirs[1].masked_fill(empty, -math.inf), tolerances[1])
    else:
        assert torch.equal(torch.isneginf(ours[1]), empty)


@settings(max_examples=15)
@given(calls(), st.sampled_from(BACKENDS))
def test_drawn_calls(
    call: tuple[tuple[Tensor, Tensor, Tensor], list[Options]], backend: str
) -> None:
    tensors, several = call
    for options in several:
        compare(tensors, options, backend)


NOTHING: Options = dict.fromkeys(
    ["mask", "bias", "scale", "local_window_size", "query_seq_lengths", "key_value_seq_lengths"]
)
CHANGES = {
    "window": ({"local_window_size": (2, 1)}, {"local_window_size": (3, 1)}),
    "other side": ({"local_window_size": (2, 1)}, {"local_window_size": (1, 2)}),
    "causal": ({"is_causal": True}, {"is_causal": False}),
    "scale": ({"scale": 0.3}, {"scale": None}),
    "padding": ({"key_value_seq_lengths": [7]}, {"key_value_seq_lengths": [8]}),
    "padding of queries": ({"query_seq_lengths": [4]}, {"query_seq_lengths": [5]}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_meaning_is_caught(name: str) -> None:
    tensors = inputs((1, 2, 5, 9, 8, 8), torch.float32, group=2)[:3]
    given, changed = CHANGES[name]
    options = NOTHING | {"is_causal": False} | given
    compare(tensors, options, "tiled")
    with pytest.raises(AssertionError):
        compare(tensors, options, "tiled", **changed)


def test_what_jax_makes_of_a_query_without_a_key() -> None:
    """Known, and the reason why such rows are not compared: the mean of all values."""
    query, key, value, _ = inputs((1, 1, 2, 4, 8, 8), torch.float32)
    seen = NOTHING | {"is_causal": False}
    hidden = seen | {"mask": torch.zeros(1, 1, 1, 1, dtype=torch.bool)}
    mean, _ = by_jax((torch.zeros_like(query), key, value), (1, 1, 2, 4), seen)
    assert torch.equal(by_jax((query, key, value), (1, 1, 2, 4), hidden)[0], mean)
    compare((query, key, value), hidden, "tiled")
