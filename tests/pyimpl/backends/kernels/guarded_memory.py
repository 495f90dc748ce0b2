"""Run the interpreted kernels on tensors that touch pages which may not be read or written.

A program of its own, since one access outside of a tensor ends the process. Linux only. A read
whose result is then discarded changes no output and shows nowhere else; on a GPU it can fault.
"""

import ctypes
import mmap
from dataclasses import replace

import torch
from attention_checks import inputs
from kernel_checks import score_options
from torch import Tensor

from pyimpl.backends.kernels.backward import backward
from pyimpl.backends.kernels.decode import decode
from pyimpl.backends.kernels.forward import forward, forward_into
from pyimpl.backends.kernels.paged import decode_paged
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.backends.kernels.varlen import varlen
from pyimpl.internal.gradients import Wanted

PROT_NONE = 0
_mappings: list[mmap.mmap] = []


def between_guards(tensor: Tensor, at_end: bool) -> Tensor:
    """A contiguous copy, the page after its last or before its first element without access."""
    size = tensor.numel() * tensor.element_size()
    inner = -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    mapping = mmap.mmap(-1, inner + 2 * mmap.PAGESIZE)
    _mappings.append(mapping)
    first = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
    libc = ctypes.CDLL(None, use_errno=True)
    for page in (first, first + mmap.PAGESIZE + inner):
        if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(mmap.PAGESIZE), PROT_NONE) != 0:
            raise OSError(ctypes.get_errno(), "mprotect")
    offset = mmap.PAGESIZE + (inner - size if at_end else 0)
    flat = torch.frombuffer(mapping, dtype=tensor.dtype, count=tensor.numel(), offset=offset)
    return flat.reshape(tensor.shape).copy_(tensor)


def main() -> None:
    """4 and 2 bytes, causal or not, with and without a mask, with a guard at either end."""
    for dtype in (torch.float32, torch.float16):
        for is_causal in (False, True):
            for masked in (False, True):
                query, key, value, mask = inputs((1, 2, 21, 39, 18, 35), dtype, masked=masked)
                options = score_options(query, is_causal=is_causal, mask=mask)
                blocks = {"block_m": 16, "block_n": 16}
                expected = forward(query, key, value, options, **blocks)
                for at_end in (False, True):
                    tensors = [between_guards(x, at_end) for x in (query, key, value)]
                    results = [between_guards(torch.zeros_like(x), at_end) for x in expected]
                    if mask is not None:
                        options = replace(options, mask=between_guards(mask, at_end))
                    forward_into(*tensors, *results, options, **blocks)
                    assert torch.equal(results[0], expected[0])
                    assert torch.equal(results[1], expected[1])


def others() -> None:
    """Bias, slopes and sinks; decoding with lengths and splits; pages; packed sequences."""
    query, key, value, _ = inputs((2, 4, 3, 39, 18, 35), torch.float16)
    lens = torch.tensor([39, 20], dtype=torch.int32)
    pages = [torch.randn(5, 2, 16, n).half() for n in (18, 35)]
    table = torch.tensor([[4, 0, 2], [1, 3, -9]], dtype=torch.int32)
    cu_seqlens = torch.tensor([0, 3, 6], dtype=torch.int32)
    rows = [torch.randn(*shape).half() for shape in ((6, 4, 18), (6, 2, 18), (6, 2, 35))]
    for at_end in (False, True):

        def guard(*tensors: torch.Tensor, at_end: bool = at_end) -> list[torch.Tensor]:
            return [between_guards(x, at_end) for x in tensors]

        q, k, v = guard(query, key[:, :2].contiguous(), value[:, :2].contiguous())
        bias, slopes, sinks = guard(torch.randn(2, 4, 3, 39), torch.rand(2, 4), torch.rand(4))
        options = score_options(q, bias=bias, alibi_slopes=slopes, sinks=sinks, left=20, shift=36)
        plain = score_options(q, alibi_slopes=slopes, sinks=sinks, left=20)
        forward(q, k, v, options, block_m=16, block_n=16)
        decode(q, k, v, options, kv_lens=guard(lens)[0], num_splits=2, block_n=16)
        for block_n in (16, 32):  # Tiles in one page and in two.
            decode_paged(
                q, *guard(*pages, table, lens), plain, bottom_right=True, num_splits=2,
                block_n=block_n,
            )  # fmt: skip
        cu_q, cu_k = guard(cu_seqlens, cu_seqlens)
        varlen(*guard(*rows), cu_q, cu_k, plain, bottom_right=True, block_m=16, block_n=16)


def backward_pass() -> None:
    """One batch and packed sequences, with a bias of all pairs and one of the keys. Head sizes are
    multiples of 16: others are copied."""
    query, key, value, mask = inputs((2, 2, 21, 39, 16, 48), torch.float16, masked=True)
    cu_seqlens = torch.tensor([0, 18, 21], dtype=torch.int32)
    for at_end in (False, True):

        def guard(*tensors: torch.Tensor, at_end: bool = at_end) -> list[torch.Tensor]:
            return [between_guards(x, at_end) for x in tensors]

        q, k, v, visible = guard(query, key, value, mask)
        lse, grad_lse, bias, slopes, sinks = guard(
            torch.randn(2, 2, 21), torch.randn(2, 2, 21), torch.randn(2, 1, 21, 39),
            torch.rand(2, 2), torch.rand(2),
        )  # fmt: skip
        out, grad_out = guard(torch.randn(2, 2, 21, 48).half(), torch.randn(2, 2, 21, 48).half())
        everything, blocks = Wanted(True, True, True), {"block_m": 16, "block_n": 16}
        added = {"alibi_slopes": slopes, "sinks": sinks, "left": 20, "shift": 18}
        options = score_options(q, bias=bias, mask=visible, **added)
        given = (q, k, v, out, lse, grad_out, grad_lse)
        backward(*given, options, everything, blocks=blocks)
        of_keys = score_options(q, bias=guard(torch.randn(39))[0], **added)
        backward(*given, of_keys, everything, blocks=blocks)
        one = [x[:1].contiguous() for x in (query, key[:, :, :21], value[:, :, :21])]
        packed = [*one, *(x[:1] for x in (out, lse, grad_out, grad_lse))]
        sequences = Sequences(*guard(cu_seqlens, cu_seqlens), 18, 18, True)
        plain = score_options(q, **(added | {"shift": 0}))
        backward(*guard(*packed), plain, everything, sequences=sequences, blocks=blocks)


if __name__ == "__main__":
    backward_pass()
    others()
    main()
    print("no access outside")
