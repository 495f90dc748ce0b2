"""How many threads PyTorch computes with where vectors are judged."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Use one thread of PyTorch in this process, unless OMP_NUM_THREADS says how many.

    Vectors are small: further threads would wait for work, and use processor time.
    """
    threads = torch.get_num_threads()
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
