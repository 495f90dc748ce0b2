"""Whose attention a function calls: seen by PyTorch's dispatcher and by the imported modules."""

from __future__ import annotations

import sys
from typing import Any, Self

from torch._C._profiler import _ExperimentalConfig
from torch.autograd.profiler import profile

# Parts of the names of operators, and packages, that compute attention.
_OPERATORS = ("scaled_dot_product", "flash_attention", "efficient_attention", "cudnn_attention",
              "flex_attention", "native_multi_head_attention", "pyimpl::")  # fmt: skip
_PACKAGES = ("pyimpl", "flash_attn", "flash_attn_interface", "xformers", "flashinfer", "jax",
             "onnxruntime", "transformers", "vllm", "sageattention",
             "torch.nn.attention.flex_attention")  # fmt: skip
_MOST = 20


class Borrowed:
    """A call, in which it is recorded if that is asked for. It is the function's own process that
    says so: an empty record proves nothing."""

    def __init__(self, asked: bool) -> None:
        # A listener in Python (TorchDispatchMode) has PyTorch import its compiler, for seconds.
        # Threads that the function starts are listened to only on request.
        every_thread = _ExperimentalConfig(profile_all_threads=True)
        self.listening = profile(experimental_config=every_thread) if asked else None

    def __enter__(self) -> Self:
        if self.listening is not None:
            # PyTorch writes no types for this method: hence `no-untyped-call`.
            self.listening.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *raised: Any) -> None:
        if self.listening is not None:
            # As in `__enter__`: PyTorch writes no types.
            self.listening.__exit__(*raised)  # type: ignore[no-untyped-call]

    def names(self) -> list[str]:
        """Operators that were called and packages that are loaded."""
        if self.listening is None:
            return []
        called = {event.name for event in self.listening.function_events or ()}
        operators = {name for name in called if any(part in name for part in _OPERATORS)}
        packages = {name for name in _PACKAGES if name in sys.modules}
        return sorted(operators | packages)[:_MOST]
