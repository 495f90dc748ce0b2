"""Run the interpreted kernel on tensors that touch pages which may not be read or written.

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

from pyimpl.kernels.forward import forward, forward_into

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
    """Each dtype, causal or not, with and without a mask, with a guard at either end."""
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
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


if __name__ == "__main__":
    main()
    print("no access outside")
