"""The forward pass of FlashAttention-2 in Triton: `Attention.Spec.flash` on a GPU, or in Triton's
interpreter.

One program computes one tile of `BLOCK_M` queries of one head, going over the keys in tiles of
`BLOCK_N` with the state (m, l, o) of `Attention.Spec.Online`. Source: Dao 2023 (FlashAttention-2),
algorithm 1.

Base 2. The hardware has 2^x and not e^x, so the host folds log₂e into the scale once
(`forward_into`): inside the kernel a score is scale·log₂e·⟨q, k⟩, m is a maximum of those, and exp2
of a difference of two of them is exp of the difference of the scores themselves. l and o are
therefore those of the Spec; only m is in base 2, and it is multiplied by ln 2 once, where the
log-sum-exp is stored.
"""

# mypy: allow-untyped-defs, allow-incomplete-defs, allow-untyped-calls, allow-untyped-decorators
# (a kernel's parameters are Triton's own values, which have no Python types to write down)

from __future__ import annotations

import math
import threading
from contextlib import AbstractContextManager

import torch
import triton
import triton.language as tl
from torch import Tensor

from pyimpl._arguments import mask_as_4d, resolve_scale
from pyimpl._implements import implements
from pyimpl.kernels._numerics import INTERPRETED, dot, round_to

MAX_HEAD_DIM = 256
DTYPES = (torch.float32, torch.float16, torch.bfloat16)
LOG2E = 1.0 / math.log(2.0)
LN2 = tl.constexpr(math.log(2.0))
# The interpreter exchanges functions of triton.language while it runs a kernel: one at a time.
_INTERPRETER = threading.Lock()


@implements("Attention.Spec.Online.stepBlock")
@triton.jit
def _step_block(m, l, o, s, v):
    """The state (m, l, o) after a block with scores s (−∞: masked; base 2) and values v."""
    m_new = tl.maximum(m, tl.max(s, 1))
    # exp2(s − m_new) has to be 0, not NaN, where both are −∞: no unmasked key so far.
    m_finite = tl.where(m_new == float("-inf"), 0.0, m_new)
    alpha = tl.exp2(m - m_finite)
    p = tl.exp2(s - m_finite[:, None])
    l = alpha * l + tl.sum(p, 1)
    o = alpha[:, None] * o
    o = o + dot(round_to(p, v.dtype), v)
    return m_new, l, o


@implements("Attention.Spec.Online.online")
@triton.jit
def _over_key_tiles(
    m, l, o, q, first, stop, kv_stop, rows, key_base, value_base, mask_base, stride_kn, stride_kd,
    stride_vn, stride_vd, stride_mm, stride_mn, q_len, head_dim, value_dim, scale_log2,
    BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr, EVEN_D: tl.constexpr,
    EVEN_V: tl.constexpr, CHECKED: tl.constexpr, IS_CAUSAL: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    """The state (m, l, o) after the tiles of keys first, first + BLOCK_N, … below `stop`.

    CHECKED: a key of these tiles may lie past `kv_stop` or be masked. Without it every query
    attends to every key of them.
    """
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    for start in range(first, stop, BLOCK_N):
        keys = start + tl.arange(0, BLOCK_N)
        keys64 = keys.to(tl.int64)
        key_ptrs = key_base + dims[:, None] * stride_kd + keys64[None, :] * stride_kn
        value_ptrs = value_base + keys64[:, None] * stride_vn + value_dims[None, :] * stride_vd
        k_inside = dims[:, None] < head_dim
        v_inside = value_dims[None, :] < value_dim
        if CHECKED:
            k_inside = k_inside & (keys[None, :] < kv_stop)
            v_inside = v_inside & (keys[:, None] < kv_stop)
        if CHECKED or not EVEN_D:
            k = tl.load(key_ptrs, mask=k_inside, other=0.0)
        else:
            k = tl.load(key_ptrs)
        s = dot(q, k) * scale_log2
        if CHECKED or not EVEN_V:
            v = tl.load(value_ptrs, mask=v_inside, other=0.0)
        else:
            v = tl.load(value_ptrs)
        if CHECKED:
            visible = keys[None, :] < kv_stop
            if IS_CAUSAL:
                visible = visible & (keys[None, :] <= rows[:, None])
            if HAS_MASK:
                mask_ptrs = mask_base + rows.to(tl.int64)[:, None] * stride_mm
                mask_ptrs = mask_ptrs + keys64[None, :] * stride_mn
                inside = (rows[:, None] < q_len) & (keys[None, :] < kv_stop)
                visible = visible & (tl.load(mask_ptrs, mask=inside, other=0) != 0)
                # A weight 0 would not silence a NaN: the values of keys that no query sees go.
                seen = tl.max(visible.to(tl.int32), 0) > 0
                v = tl.where(seen[:, None], v, 0.0)
            s = tl.where(visible, s, float("-inf"))
        m, l, o = _step_block(m, l, o, s, v)
    return m, l, o


@implements("Attention.Spec.flash")
@triton.jit
def _forward_kernel(
    query_ptr, key_ptr, value_ptr, mask_ptr, out_ptr, lse_ptr,
    stride_qb, stride_qh, stride_qm, stride_qd, stride_kb, stride_kh, stride_kn, stride_kd,
    stride_vb, stride_vh, stride_vn, stride_vd, stride_mb, stride_mh, stride_mm, stride_mn,
    stride_ob, stride_oh, stride_om, stride_od, stride_lb, stride_lh, stride_lm,
    num_heads, q_len, kv_len, head_dim, value_dim, scale_log2,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_V: tl.constexpr,
    EVEN_D: tl.constexpr, EVEN_V: tl.constexpr, IS_CAUSAL: tl.constexpr, HAS_MASK: tl.constexpr,
):  # fmt: skip
    # One grid dimension: the second and third end at 65,535. Under causality the last tiles have
    # the most keys; started first, they do not finish last.
    num_tiles = tl.cdiv(q_len, BLOCK_M)
    tile = num_tiles - 1 - tl.program_id(0) % num_tiles
    head = tl.program_id(0) // num_tiles
    batch = (head // num_heads).to(tl.int64)
    head = (head % num_heads).to(tl.int64)

    # 64-bit offsets: an index times a stride can pass 2³¹.
    first_row = tile * BLOCK_M
    rows = first_row + tl.arange(0, BLOCK_M)
    rows64 = rows.to(tl.int64)
    dims = tl.arange(0, BLOCK_D).to(tl.int64)
    query_ptrs = query_ptr + batch * stride_qb + head * stride_qh
    query_ptrs = query_ptrs + rows64[:, None] * stride_qm + dims[None, :] * stride_qd
    q = tl.load(query_ptrs, mask=(rows[:, None] < q_len) & (dims[None, :] < head_dim), other=0.0)
    key_base = key_ptr + batch * stride_kb + head * stride_kh
    value_base = value_ptr + batch * stride_vb + head * stride_vh
    mask_base = key_ptr
    if HAS_MASK:
        mask_base = mask_ptr + batch * stride_mb + head * stride_mh

    # Keys below kv_stop are all that a query of this tile may see; those below whole_stop come in
    # whole tiles that each of its queries sees in full.
    kv_stop = kv_len
    whole_stop = kv_len // BLOCK_N * BLOCK_N
    if IS_CAUSAL:
        kv_stop = tl.minimum(kv_len, tl.minimum(first_row + BLOCK_M, q_len))
        whole_stop = tl.minimum(kv_len, first_row + 1) // BLOCK_N * BLOCK_N
    if HAS_MASK:
        whole_stop = 0

    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    o = tl.zeros([BLOCK_M, BLOCK_V], tl.float32)
    if not HAS_MASK:
        m, l, o = _over_key_tiles(
            m, l, o, q, 0, whole_stop, kv_stop, rows, key_base, value_base, mask_base, stride_kn,
            stride_kd, stride_vn, stride_vd, stride_mm, stride_mn, q_len, head_dim, value_dim,
            scale_log2, BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, False, IS_CAUSAL, HAS_MASK,
        )  # fmt: skip
    m, l, o = _over_key_tiles(
        m, l, o, q, whole_stop, kv_stop, kv_stop, rows, key_base, value_base, mask_base, stride_kn,
        stride_kd, stride_vn, stride_vd, stride_mm, stride_mn, q_len, head_dim, value_dim,
        scale_log2, BLOCK_N, BLOCK_D, BLOCK_V, EVEN_D, EVEN_V, True, IS_CAUSAL, HAS_MASK,
    )  # fmt: skip

    # A query without an unmasked key: output 0, log-sum-exp −∞. With one, 1 ≤ l; asked of m, which
    # ignores NaN, a row of NaN scores would pass for masked.
    none = l == 0.0
    l = tl.where(none, 1.0, l)
    o = o / l[:, None]
    lse = m * LN2 + tl.log(l)

    value_dims = tl.arange(0, BLOCK_V).to(tl.int64)
    out_ptrs = out_ptr + batch * stride_ob + head * stride_oh
    out_ptrs = out_ptrs + rows64[:, None] * stride_om + value_dims[None, :] * stride_od
    inside = (rows[:, None] < q_len) & (value_dims[None, :] < value_dim)
    tl.store(out_ptrs, round_to(o, out_ptr.dtype.element_ty), mask=inside)
    lse_ptrs = lse_ptr + batch * stride_lb + head * stride_lh + rows64 * stride_lm
    tl.store(lse_ptrs, lse, mask=rows < q_len)


def why_not(query: Tensor, value: Tensor) -> str | None:
    """The sentence that says why the kernel cannot take tensors of this kind, or None if it can."""
    if query.dtype not in DTYPES:
        return f"backend 'triton' takes float32, float16 and bfloat16, not {query.dtype}"
    largest = max(query.shape[-1], value.shape[-1])
    if largest > MAX_HEAD_DIM:
        return f"backend 'triton' takes head sizes up to {MAX_HEAD_DIM}, not {largest}"
    if not query.is_cuda and not (INTERPRETED.value and query.device.type == "cpu"):
        return (
            f"backend 'triton' takes CUDA tensors, not {query.device.type} (CPU tensors only in "
            "Triton's interpreter: set TRITON_INTERPRET=1 before pyimpl first uses Triton)"
        )
    return None


def launch_options(
    dtype: torch.dtype, head_dim: int, value_dim: int, has_mask: bool, capability: int
) -> dict[str, int]:
    """`block_m`, `block_n`, `num_warps` and `num_stages` for a launch.

    `capability` is 10 × major + minor of the device's compute capability. Chosen from the offline
    compilation (`python -m pyimpl.kernels.compile`) as large tiles that spill at most 32 bytes a
    thread and fit into the shared memory of sm_80, sm_90 and sm_100; not tuned for speed.
    """
    dim = padded(max(head_dim, value_dim))
    num_stages = 2
    if dtype == torch.float32:
        # IEEE products run on the scalar units, whose operands all live in registers.
        block_m, block_n, num_warps = (32, 32, 4) if dim <= 64 else (32, 16, 8)
    elif head_dim % 16 or value_dim % 16:
        # Such rows are loaded element by element, and the addresses of all take registers.
        block_m, block_n, num_warps = 64 if dim <= 128 else 32, 32, 4 if dim <= 64 else 8
    elif dim <= 128:
        # So do the addresses of the elements of a mask.
        block_m, block_n, num_warps = 128, 32 if has_mask else 64, 4 if dim <= 64 else 8
    else:
        block_m, block_n, num_warps = 64, 32, 8
        # Before Hopper the operands come from registers, too few for a second stage.
        num_stages = 1 if capability < 90 else 2
    return {
        "block_m": block_m,
        "block_n": block_n,
        "num_warps": num_warps,
        "num_stages": num_stages,
    }


def _capability(device: torch.device) -> int:
    """10 × major + minor; the interpreter, which has none, counts as the oldest."""
    if device.type != "cuda":
        return 80
    major, minor = torch.cuda.get_device_capability(device)
    return 10 * major + minor


def _launching_on(device: torch.device) -> AbstractContextManager[object]:
    """A block for a launch, which goes to the current device, that need not be the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else _INTERPRETER


def padded(head_dim: int) -> int:
    """The power of two ≥ 16 that a tile of vectors of this size is computed in: `tl.dot` takes no
    other."""
    return max(16, 1 << (head_dim - 1).bit_length())


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    block_m: int | None = None,
    block_n: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in float32, both newly allocated and
    contiguous.

    Shapes, `mask`, `is_causal` and `scale` as in `pyimpl.reference.attention`; inputs of one dtype
    out of `DTYPES`, with any strides; head sizes from 1 to `MAX_HEAD_DIM`. See `forward_into` for
    the rest.
    """
    out = query.new_empty(*query.shape[:-1], value.shape[-1])
    lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
    forward_into(
        query, key, value, out, lse,
        mask=mask, is_causal=is_causal, scale=scale, block_m=block_m, block_n=block_n,
    )  # fmt: skip
    return out, lse


def forward_into(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    *,
    mask: Tensor | None = None,
    is_causal: bool = False,
    scale: float | None = None,
    block_m: int | None = None,
    block_n: int | None = None,
) -> None:
    """Write the output into `out` and the log-sum-exp into `lse`, of any strides.

    `block_m` and `block_n` (powers of two ≥ 16) default to `launch_options`. A key masked for every
    query of a tile has no influence on that tile, whatever its key and value rows hold, NaN
    included; the value row of a key that some query of the tile may attend to must be finite.
    The tensors are checked so far that the kernel reads nothing outside `query`, `key`, `value` and
    `mask`; `pyimpl.attention` says more clearly what is wrong.

    Raises:
        ValueError: `key`, `value` or `mask` does not fit `query`; the dtype, device or head size
            (see `why_not`), a block size, the scale or the number of tiles is outside what the
            kernel takes.
    """
    batch, num_heads, q_len, head_dim = query.shape
    kv_len, value_dim = value.shape[-2:]
    for name, tensor, shape in (
        ("key", key, (batch, num_heads, kv_len, head_dim)),
        ("value", value, (batch, num_heads, kv_len, value_dim)),
    ):
        kind = (tensor.dtype, tensor.device)
        if tensor.shape != shape or kind != (query.dtype, query.device):
            raise ValueError(
                f"{name} must be {query.dtype} {list(shape)} on {query.device}, "
                f"not {tensor.dtype} {list(tensor.shape)} on {tensor.device}"
            )
    if mask is not None and (mask.dtype != torch.bool or mask.device != query.device):
        raise ValueError(
            f"mask must be boolean on {query.device}, not {mask.dtype} on {mask.device}"
        )
    refusal = why_not(query, value)
    if refusal is not None:
        raise ValueError(refusal)
    options = launch_options(
        query.dtype, head_dim, value_dim, mask is not None, _capability(query.device)
    )
    block_m = options["block_m"] if block_m is None else block_m
    block_n = options["block_n"] if block_n is None else block_n
    for name, block in (("block_m", block_m), ("block_n", block_n)):
        if block < 16 or block & (block - 1):
            raise ValueError(f"{name} must be a power of two, at least 16, not {block}")
    scale = resolve_scale(scale, head_dim)
    scale_log2 = scale * LOG2E
    if not abs(scale_log2) <= torch.finfo(torch.float32).max:
        raise ValueError(
            f"scale·log₂e must be within float32 for the Triton kernel; scale is {scale}"
        )
    num_programs = triton.cdiv(q_len, block_m) * batch * num_heads
    if num_programs > 2**31 - 1:
        raise ValueError(f"batch × heads × query tiles must be below 2³¹, not {num_programs}")
    if num_programs == 0:
        return
    mask_strides: tuple[int, ...] = (0, 0, 0, 0)
    if mask is not None:
        mask = mask_as_4d(mask, q_len, kv_len).expand(batch, num_heads, -1, -1).view(torch.uint8)
        mask_strides = mask.stride()
    # The kernel reads memory as it lies, where a negation may still be due (`z.conj().imag`).
    query, key, value = query.resolve_neg(), key.resolve_neg(), value.resolve_neg()
    with _launching_on(query.device):
        _forward_kernel[(num_programs,)](
            query, key, value, mask, out, lse,
            *query.stride(), *key.stride(), *value.stride(),
            *mask_strides, *out.stride(), *lse.stride(),
            num_heads, q_len, kv_len, head_dim, value_dim, scale_log2,
            BLOCK_M=block_m, BLOCK_N=block_n, BLOCK_D=padded(head_dim), BLOCK_V=padded(value_dim),
            EVEN_D=padded(head_dim) == head_dim, EVEN_V=padded(value_dim) == value_dim,
            IS_CAUSAL=is_causal, HAS_MASK=mask is not None,
            num_warps=options["num_warps"], num_stages=options["num_stages"],
        )  # fmt: skip
