"""The claims of `docs/claims.md` about the code of document 003: its class computes the same as
`torch.nn.MultiheadAttention` and `pyimpl` in its example, and for which masks; and heads whose
masks agree, and those whose masks do not."""

from __future__ import annotations

import pytest
import torch
from module_checks import judge_module, normal, randomise
from torch import Tensor, nn

from pyimpl.modules import MultiHeadAttention

# The sizes of its example.
BATCH, Q_LEN, KV_LEN, DIM, KEY_DIM, VALUE_DIM, HEADS = 3, 5, 3, 4, 8, 16, 2
HEAD_DIM = DIM // HEADS
CAUSAL = torch.full((Q_LEN, KV_LEN), -torch.inf, dtype=torch.float64).triu(diagonal=1)


class MHAttn(nn.Module):
    """The document's class without `add_bias_kv`, its einops written as torch and without the
    assertion that h divides dk."""

    def __init__(self, cq: int, ck: int, cv: int, dk: int, dv: int, do: int, h: int) -> None:
        super().__init__()
        self.dk, self.h = dk, h
        self.q_proj = nn.Linear(cq, dk * h, dtype=torch.float64)
        self.k_proj = nn.Linear(ck, dk * h, dtype=torch.float64)
        self.v_proj = nn.Linear(cv, dv * h, dtype=torch.float64)
        self.out_proj = nn.Linear(dv * h, do, dtype=torch.float64)

    def forward(self, Q: Tensor, K: Tensor, V: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        r_q, r_k, r_v = (
            linear(x).unflatten(-1, (self.h, -1)).transpose(1, 2)
            for linear, x in ((self.q_proj, Q), (self.k_proj, K), (self.v_proj, V))
        )
        scores = torch.einsum("bhmd, bhnd -> bhmn", r_q, r_k)
        if attn_mask is not None:
            if attn_mask.dim() == 3:
                attn_mask = attn_mask.unflatten(0, (-1, self.h))
            scores = scores + attn_mask
        attn = (scores / self.dk**0.5).softmax(-1)
        o = torch.einsum("bhmn, bhnv -> bhmv", attn, r_v)
        return self.out_proj(o.transpose(1, 2).flatten(-2))


def copy_weights(theirs: nn.MultiheadAttention) -> MHAttn:
    """The document's class with the weights of torch's, copied as in the document."""
    d = theirs.embed_dim
    attn = MHAttn(d, theirs.kdim, theirs.vdim, d // HEADS, d // HEADS, d, HEADS)
    with torch.no_grad():
        attn.q_proj.weight.copy_(theirs.q_proj_weight)
        attn.k_proj.weight.copy_(theirs.k_proj_weight)
        attn.v_proj.weight.copy_(theirs.v_proj_weight)
        b = theirs.in_proj_bias
        assert b.shape == (3 * d,)
        attn.q_proj.bias.copy_(b[0:d])
        attn.k_proj.bias.copy_(b[d : 2 * d])
        attn.v_proj.bias.copy_(b[2 * d : 3 * d])
        attn.out_proj.weight.copy_(theirs.out_proj.weight)
        attn.out_proj.bias.copy_(theirs.out_proj.bias)
    return attn


@pytest.fixture
def theirs() -> nn.MultiheadAttention:
    """torch's module of the document's example, with random parameters."""
    module = nn.MultiheadAttention(
        DIM, HEADS, kdim=KEY_DIM, vdim=VALUE_DIM, batch_first=True, dtype=torch.float64
    )
    return randomise(module).requires_grad_(False)


@pytest.fixture
def inputs() -> list[Tensor]:
    sizes = ((Q_LEN, DIM), (KV_LEN, KEY_DIM), (KV_LEN, VALUE_DIM))
    return [normal(BATCH, *size, seed=i) for i, size in enumerate(sizes)]


def test_the_shapes_that_it_prints(theirs: nn.MultiheadAttention) -> None:
    assert {name: list(w.shape) for name, w in theirs.named_parameters()} == {
        "q_proj_weight": [4, 4], "k_proj_weight": [4, 8], "v_proj_weight": [4, 16],
        "in_proj_bias": [12], "out_proj.weight": [4, 4], "out_proj.bias": [4],
    }  # fmt: skip
    ours = MultiHeadAttention.from_torch(theirs)
    named = {name: list(w.shape) for name, w in ours.named_parameters()}
    assert named == {name: list(w.shape) for name, w in copy_weights(theirs).named_parameters()}
    assert named["k_proj.weight"] == [4, 8]


def masks_by_head() -> Tensor:
    """Another mask of 0 and −∞ in each head of each sequence; no row hides every key."""
    generator = torch.Generator().manual_seed(3)
    hidden = torch.rand(BATCH * HEADS, Q_LEN, KV_LEN, generator=generator) < 0.4
    hidden[..., 0] = False
    return torch.zeros(hidden.shape, dtype=torch.float64).masked_fill(hidden, -torch.inf)


@pytest.mark.parametrize("mask", [None, CAUSAL, masks_by_head()], ids=["none", "causal", "heads"])
def test_the_document_torch_and_pyimpl_are_equal(
    theirs: nn.MultiheadAttention, inputs: list[Tensor], mask: Tensor | None
) -> None:
    """maskedMultiHeadAttention_eq_bias_of_zero_or_none, with weights copied as in the document."""
    document = copy_weights(theirs)(*inputs, attn_mask=mask)
    ours = MultiHeadAttention.from_torch(theirs)
    added = mask.unflatten(0, (BATCH, HEADS)) if mask is not None and mask.dim() == 3 else mask
    expected, _ = theirs(*inputs, attn_mask=mask)
    judge_module(document, expected, ours, *inputs, added=added)
    judge_module(ours(*inputs, attn_mask=mask), document, ours, *inputs, added=added)


def test_other_masks_must_be_divided_by_the_root(
    theirs: nn.MultiheadAttention, inputs: list[Tensor]
) -> None:
    """equalsTorchForEveryMask_refuted, maskedMultiHeadAttention_eq_bias."""
    ours, mask = MultiHeadAttention.from_torch(theirs), normal(Q_LEN, KV_LEN, seed=4)
    document = copy_weights(theirs)(*inputs, attn_mask=mask)
    expected, _ = theirs(*inputs, attn_mask=mask)
    with pytest.raises(AssertionError, match="over the tolerance"):
        judge_module(document, expected, ours, *inputs, added=mask)
    divided = mask / HEAD_DIM**0.5
    judge_module(ours(*inputs, attn_mask=divided), document, ours, *inputs, added=divided)


def test_heads_need_not_divide_their_width(inputs: list[Tensor]) -> None:
    """dk is the width of one head: the document's `assert dk % h == 0` refuses 5 for no reason."""
    document = randomise(MHAttn(DIM, KEY_DIM, VALUE_DIM, 5, 3, 7, HEADS)).requires_grad_(False)
    ours = MultiHeadAttention(
        DIM, HEADS, key_dim=KEY_DIM, value_dim=VALUE_DIM, head_dim=5, value_head_dim=3,
        output_dim=7, dtype=torch.float64,
    ).requires_grad_(False)  # fmt: skip
    ours.load_state_dict(document.state_dict())
    judge_module(ours(*inputs), document(*inputs), ours, *inputs)


@pytest.mark.parametrize("heads", [[0, 1], [1]], ids=["all heads", "one head"])
def test_a_key_is_suppressed_if_all_heads_mask_it(
    theirs: nn.MultiheadAttention, inputs: list[Tensor], heads: list[int]
) -> None:
    """maskedMultiHeadAttention_suppressed; oneMaskSuppresses_refuted."""
    ours = MultiHeadAttention.from_torch(theirs)
    mask = torch.zeros(1, HEADS, Q_LEN, KV_LEN, dtype=torch.float64)
    mask[:, heads, :, 2] = -torch.inf
    query, key, value = inputs
    other = [torch.cat((x[:, :2], x[:, 2:] + 3), 1) for x in (key, value)]
    out, expected = ours(query, *other, attn_mask=mask), ours(*inputs, attn_mask=mask)
    if heads == [0, 1]:
        judge_module(out, expected, ours, query, *other, added=mask)
        few = ours(query, key[:, :2], value[:, :2])
        judge_module(out, few, ours, query, *other, added=mask)
        return
    with pytest.raises(AssertionError, match="over the tolerance"):
        judge_module(out, expected, ours, query, *other, added=mask)
