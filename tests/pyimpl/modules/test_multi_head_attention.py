"""`MultiHeadAttention` equals `torch.nn.MultiheadAttention`, on all options of it, and the code of
the source document where that is right."""

from __future__ import annotations

import copy
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from module_checks import judge_module, normal, randomise
from torch import Tensor, nn

from pyimpl.modules import MultiHeadAttention
from pyimpl.modules import multi_head_attention as implementation
from pyimpl.modules.internal import masking

BATCH, Q_LEN, KV_LEN, DIM, HEADS = 3, 5, 7, 12, 2
widths = st.none() | st.integers(1, 6)
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
MASKS = {
    "none": (None, None),
    "boolean, 2 dimensions": ("boolean 2", None),
    "boolean, 3 dimensions": ("boolean 3", None),
    "floating, 2 dimensions": ("floating 2", None),
    "floating, 3 dimensions": ("floating 3", None),
    "keys, boolean": (None, "boolean"),
    "keys, floating": (None, "floating"),
    "both, boolean": ("boolean 3", "boolean"),
    "both, floating": ("floating 2", "floating"),
    "both kinds": ("floating 3", "boolean"),
}


def some_mask(kind: str | None, *sizes: int, seed: int) -> Tensor | None:
    """A mask in which every query keeps its first key; the floating one holds −∞ as well."""
    if kind is None:
        return None
    visible = torch.rand(*sizes, generator=torch.Generator().manual_seed(seed)) < 0.6
    visible[..., :1] = True
    if kind.startswith("boolean"):
        return visible
    return normal(*sizes, seed=seed).masked_fill(~visible, -torch.inf)


def masks_of(name: str, batch: int, heads: int, q_len: int, kv_len: int) -> tuple:
    """attn_mask, as `torch.nn.MultiheadAttention` takes it but for the meaning of booleans, and
    key_mask."""
    on_pairs, on_keys = MASKS[name]
    sizes = (q_len, kv_len)
    if on_pairs is not None and on_pairs.endswith("3"):
        sizes = (batch * heads, *sizes)
    return some_mask(on_pairs, *sizes, seed=1), some_mask(on_keys, batch, kv_len, seed=2)


def in_torch(mask: Tensor | None) -> Tensor | None:
    """The mask as torch.nn.MultiheadAttention means it: True hides."""
    return ~mask if mask is not None and mask.dtype == torch.bool else mask


def by_kind(*masks: Tensor | None, batch: int, heads: int) -> dict[str, Tensor | None]:
    """`visible` and `added` for the tolerance, of attn_mask and key_mask."""
    found: dict[str, Tensor | None] = {"visible": None, "added": None}
    for mask in masks:
        if mask is None:
            continue
        name = "visible" if mask.dtype == torch.bool else "added"
        if mask.dim() == 3:
            mask = mask.unflatten(0, (batch, heads))
        elif mask.shape[0] == batch and mask is masks[1]:
            mask = mask[:, None, None]
        other = found[name]
        if other is not None:
            mask = mask & other if name == "visible" else mask + other
        found[name] = mask
    return found


def check_against_torch(
    theirs: nn.MultiheadAttention,
    sizes: tuple[int, int, int],
    name: str,
    *,
    unbatched: bool = False,
    is_causal: bool = False,
) -> None:
    """Ours, in the dtype of `theirs`, within the tolerance of theirs in float64."""
    batch, q_len, kv_len = sizes
    ours = MultiHeadAttention.from_torch(theirs)
    dtype, heads = theirs.out_proj.weight.dtype, theirs.num_heads
    widths = (theirs.embed_dim, theirs.kdim, theirs.vdim)
    given = [
        normal(batch, n, width, seed=i)
        for i, (n, width) in enumerate(zip((q_len, kv_len, kv_len), widths, strict=True))
    ]
    attn_mask, key_mask = masks_of(name, batch, heads, q_len, kv_len)
    judged = by_kind(attn_mask, key_mask, batch=batch, heads=heads)
    torch_mask, torch_keys = in_torch(attn_mask), in_torch(key_mask)
    if is_causal:
        causal = torch.ones(q_len, kv_len, dtype=torch.bool).tril()
        before = judged["visible"]
        judged["visible"] = causal if before is None else causal & before
        hidden = torch.zeros(q_len, kv_len).double().masked_fill(~causal, -torch.inf)
        if torch_mask is not None and torch_mask.dtype == torch.bool:
            torch_mask = torch.zeros(torch_mask.shape).double().masked_fill(torch_mask, -torch.inf)
        torch_mask = hidden if torch_mask is None else torch_mask + hidden

    def arrange(tensors: list[Tensor]) -> list[Tensor]:
        if unbatched:
            return [x[0] for x in tensors]
        return tensors if theirs.batch_first else [x.transpose(0, 1) for x in tensors]

    def back(out: Tensor) -> Tensor:
        if unbatched:
            return out[None]
        return out if theirs.batch_first else out.transpose(0, 1)

    first = (lambda mask: mask if mask is None else mask[0]) if unbatched else (lambda mask: mask)
    with torch.no_grad():
        out = ours(
            *arrange([x.to(dtype) for x in given]), attn_mask=attn_mask,
            key_mask=first(key_mask), is_causal=is_causal,
        )  # fmt: skip
        expected, _ = copy.deepcopy(theirs).double()(
            *arrange(given), attn_mask=torch_mask, key_padding_mask=first(torch_keys)
        )
    judge_module(back(out), back(expected), ours, *given, **judged)


@pytest.mark.sampled(16)
@pytest.mark.filterwarnings("ignore:Support for mismatched:UserWarning")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("widths", [{}, {"kdim": 9, "vdim": 10}], ids=str)
@pytest.mark.parametrize(
    ("bias", "add_bias_kv", "add_zero_attn"), list(product([True, False], repeat=3))
)
def test_equals_torch_on_all_its_options(bias, add_bias_kv, add_zero_attn, widths, dtype) -> None:
    # In float64 with every mask; in the others, which only round more, with one, another each time.
    masks = sorted(MASKS)
    case = [bias, add_bias_kv, add_zero_attn, bool(widths)]
    if dtype != torch.float64:
        masks = [masks[sum(2**i for i, on in enumerate(case) if on) % len(masks)]]
    for batch_first, name in product([True, False], masks):
        theirs = nn.MultiheadAttention(
            DIM, HEADS, bias=bias, add_bias_kv=add_bias_kv, add_zero_attn=add_zero_attn,
            batch_first=batch_first, device="cpu", dtype=dtype, **widths,
        )  # fmt: skip
        randomise(theirs)
        check_against_torch(theirs, (BATCH, Q_LEN, KV_LEN), name)
        if batch_first:  # Inputs without a batch are the same either way.
            check_against_torch(theirs, (1, Q_LEN, KV_LEN), name, unbatched=True)


@pytest.mark.filterwarnings("ignore:Support for mismatched:UserWarning")
@settings(max_examples=100, deadline=None)
@given(
    st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9)),
    st.integers(1, 4), st.integers(1, 5), st.tuples(widths, widths), st.booleans(), st.booleans(),
    st.booleans(), st.booleans(), st.sampled_from(sorted(MASKS)),
)  # fmt: skip
def test_equals_torch_on_many_sizes(
    sizes, heads, head_dim, key_value, add_bias_kv, add_zero_attn, training, is_causal, name
) -> None:
    theirs = nn.MultiheadAttention(
        heads * head_dim, heads, kdim=key_value[0], vdim=key_value[1], add_bias_kv=add_bias_kv,
        add_zero_attn=add_zero_attn, batch_first=True, dtype=torch.float64,
    )  # fmt: skip
    check_against_torch(randomise(theirs).train(training), sizes, name, is_causal=is_causal)


@pytest.mark.filterwarnings("ignore:Support for mismatched:UserWarning")
def test_dropout_in_eval_mode_is_none() -> None:
    theirs = nn.MultiheadAttention(DIM, HEADS, dropout=0.5, batch_first=True)
    check_against_torch(randomise(theirs).eval(), (BATCH, Q_LEN, KV_LEN), "boolean, 3 dimensions")


def test_self_attention_by_one_argument() -> None:
    """In eval mode torch takes its fast path here, which has code of its own."""
    theirs = nn.MultiheadAttention(DIM, HEADS, batch_first=True, dtype=torch.float64)
    ours = MultiHeadAttention.from_torch(randomise(theirs).eval())
    x, hidden = normal(BATCH, Q_LEN, DIM, seed=0), torch.zeros(BATCH, Q_LEN, dtype=torch.bool)
    hidden[1, 3:] = True
    with torch.no_grad():
        expected = theirs(x, x, x, key_padding_mask=hidden, need_weights=False)[0]
        out = ours(x, key_mask=~hidden)
    judge_module(out, expected, ours, x, x, x, visible=~hidden[:, None, None])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("floating", [True, False])
def test_a_query_without_keys_gives_the_bias_of_the_output(bias: bool, floating: bool) -> None:
    """torch.nn.MultiheadAttention gives NaN where it computes the weights."""
    theirs = nn.MultiheadAttention(DIM, HEADS, bias=bias, batch_first=True)
    ours = MultiHeadAttention.from_torch(randomise(theirs))
    x = normal(BATCH, Q_LEN, DIM, seed=0, dtype=torch.float32)
    mask = torch.ones(Q_LEN, Q_LEN, dtype=torch.bool)
    mask[2] = False
    if floating:
        mask = torch.zeros(Q_LEN, Q_LEN).masked_fill(~mask, -torch.inf)
    with torch.no_grad():
        out = ours(x, attn_mask=mask)
        assert bool(theirs(x, x, x, attn_mask=in_torch(mask))[0][:, 2].isnan().all())
        nothing = ours(x, x[:, :0])
    given = theirs.out_proj.bias if bias else torch.zeros(DIM)
    assert torch.equal(out[:, 2], given.expand(BATCH, DIM))
    assert torch.equal(nothing, given.expand(BATCH, Q_LEN, DIM))
    assert bool(out.isfinite().all())


def document(ours: MultiHeadAttention, Q, K, V, attn_mask=None) -> Tensor:
    """The forward pass of the document's `MHAttn`, its einops written as torch."""
    proj_q, proj_k, proj_v = ours.q_proj(Q), ours.k_proj(K), ours.v_proj(V)
    if ours.bias_k is not None:
        batch_size = proj_k.shape[0]
        proj_k = torch.cat([proj_k, ours.bias_k.repeat(batch_size, 1, 1)], dim=1)
        proj_v = torch.cat([proj_v, ours.bias_v.repeat(batch_size, 1, 1)], dim=1)
    r_q, r_k, r_v = (
        x.unflatten(-1, (ours.num_heads, -1)).transpose(1, 2) for x in (proj_q, proj_k, proj_v)
    )
    scores = torch.einsum("bhmd, bhnd -> bhmn", r_q, r_k)
    if attn_mask is not None:
        if attn_mask.dim() == 3:
            attn_mask = attn_mask.unflatten(0, (-1, ours.num_heads))
        scores += attn_mask
    attn = torch.nn.functional.softmax(scores / (ours.head_dim**0.5), dim=-1)
    o = torch.einsum("bhmn, bhnv -> bhmv", attn, r_v)
    return ours.out_proj(o.transpose(1, 2).flatten(-2))


def of_the_document(**options) -> tuple[MultiHeadAttention, list[Tensor]]:
    """A module with all widths different, and inputs."""
    ours = MultiHeadAttention(
        6, HEADS, key_dim=8, value_dim=16, head_dim=5, value_head_dim=3, output_dim=7,
        dtype=torch.float64, **options,
    )  # fmt: skip
    lengths = ((Q_LEN, 6), (KV_LEN, 8), (KV_LEN, 16))
    return randomise(ours), [normal(BATCH, *size, seed=i) for i, size in enumerate(lengths)]


@pytest.mark.parametrize(
    "sizes",
    [
        (Q_LEN, KV_LEN),
        (BATCH * HEADS, Q_LEN, KV_LEN),
        (BATCH, HEADS, Q_LEN, KV_LEN),
        (BATCH, 1, Q_LEN, KV_LEN),
        (1, HEADS, Q_LEN, 1),
    ],
    ids=str,
)
def test_equals_the_document_once_the_mask_is_divided(sizes: tuple[int, ...]) -> None:
    ours, given = of_the_document()
    mask = some_mask("floating", *sizes, seed=5)
    if sizes[-1] == 1:
        mask = normal(*sizes, seed=5)
    with torch.no_grad():
        out = ours(*given, attn_mask=mask / ours.head_dim**0.5)
        expected = document(ours, *given, attn_mask=mask)
    added = mask.unflatten(0, (BATCH, HEADS)) if mask.dim() == 3 else mask
    judge_module(out, expected, ours, *given, added=added / ours.head_dim**0.5)


def test_the_document_cannot_mask_with_an_added_key() -> None:
    ours, given = of_the_document(add_bias_kv=True)
    mask = some_mask("floating", Q_LEN, KV_LEN, seed=5)
    with torch.no_grad():
        with pytest.raises(RuntimeError, match="must match the size"):
            document(ours, *given, attn_mask=mask)
        out = ours(*given, attn_mask=mask / ours.head_dim**0.5)
        wider = torch.cat((mask, torch.zeros(Q_LEN, 1)), dim=-1)
        expected = document(ours, *given, attn_mask=wider)
    judge_module(out, expected, ours, *given, added=mask / ours.head_dim**0.5)


def exchange_heads(linear: nn.Linear, rows: bool) -> None:
    """The first head's rows or columns for the last one's."""
    weight = linear.weight.detach()
    halves = weight.chunk(HEADS, dim=0 if rows else 1)
    weight.copy_(torch.cat(halves[::-1], dim=0 if rows else 1))


def hide_added_key(monkeypatch: pytest.MonkeyPatch) -> None:
    def narrow(mask: Tensor | None) -> Tensor | None:
        if mask is None:
            return None
        return nn.functional.pad(mask, (0, 1), value=False if mask.dtype == torch.bool else -1e9)

    monkeypatch.setattr(masking, "widen", narrow)


def heads_before_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    right = masking.checked_attn_mask

    def wrong(mask: Tensor, query: Tensor, sizes: tuple[int, int, int, int]) -> Tensor:
        if mask.dim() == 3:
            mask = mask.reshape(sizes[1], sizes[0], *sizes[2:]).transpose(0, 1)
        return right(mask, query, sizes)

    monkeypatch.setattr(masking, "checked_attn_mask", wrong)


def changed_call(monkeypatch: pytest.MonkeyPatch, **changes) -> None:
    """The module calls `attention` with other arguments."""
    right = implementation.attention

    def wrong(*given, **options):
        return right(*given, **{**options, **{k: f(options[k]) for k, f in changes.items()}})

    monkeypatch.setattr(implementation, "attention", wrong)


MUTANTS = {
    "heads of q exchanged": lambda m, ours: exchange_heads(ours.q_proj, rows=True),
    "heads of the output exchanged": lambda m, ours: exchange_heads(ours.out_proj, rows=False),
    "bias of k forgotten": lambda m, ours: ours.bias_k.zero_(),
    "bias of v in the place of k": lambda m, ours: ours.bias_k.copy_(ours.bias_v),
    "added key hidden by the mask": lambda m, ours: hide_added_key(m),
    "3-D mask by heads, then batch": lambda m, ours: heads_before_batch(m),
    "True hides": lambda m, ours: changed_call(m, attn_mask=lambda x: ~x),
    "bias divided by √d": lambda m, ours: changed_call(m, bias=lambda x: x / 6**0.5),
    "scale of the whole width": lambda m, ours: changed_call(m, scale=lambda _: DIM**-0.5),
    "zero key forgotten": lambda m, ours: changed_call(m, sinks=lambda _: None),
    "zero key as score −1": lambda m, ours: changed_call(m, sinks=lambda x: x - 1),
}


@pytest.mark.filterwarnings("ignore:Support for mismatched:UserWarning")
@pytest.mark.parametrize("dtype", DTYPES[:3], ids=str)
@pytest.mark.parametrize("name", MUTANTS)
def test_mutants_are_seen(name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bfloat16 the tolerance of four projections and attention hides some of them."""
    theirs = nn.MultiheadAttention(
        DIM, HEADS, add_bias_kv=True, add_zero_attn=True, batch_first=True, dtype=dtype
    )
    randomise(theirs)
    check_against_torch(theirs, (BATCH, Q_LEN, KV_LEN), "both kinds")
    right = MultiHeadAttention.from_torch

    def wrong(module: nn.MultiheadAttention) -> MultiHeadAttention:
        ours = right(module)
        with torch.no_grad():
            MUTANTS[name](monkeypatch, ours)
        return ours

    monkeypatch.setattr(MultiHeadAttention, "from_torch", wrong)
    with pytest.raises(AssertionError, match="over the tolerance"):
        check_against_torch(theirs, (BATCH, Q_LEN, KV_LEN), "both kinds")
