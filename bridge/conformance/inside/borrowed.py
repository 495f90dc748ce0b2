"""Whose attention a function calls: seen by PyTorch's dispatcher and by what is imported."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Any, Self

from torch.utils._python_dispatch import TorchDispatchMode

# Parts of the names of operators, and packages, that compute attention.
_OPERATORS = ("scaled_dot_product", "flash_attention", "efficient_attention", "cudnn_attention",
              "flex_attention", "native_multi_head_attention")  # fmt: skip
_PACKAGES = ("pyimpl", "flash_attn", "flash_attn_interface", "xformers", "flashinfer", "jax",
             "onnxruntime", "transformers", "vllm", "sageattention")  # fmt: skip
_MOST = 20


# PyTorch writes no types for the methods of its modes.
class _Listening(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.heard: set[str] = set()

    def __torch_dispatch__(
        self, function: Any, types: Any, arguments: Any = (), options: Any = None
    ) -> Any:
        name = str(function)
        if any(part in name for part in _OPERATORS) or name.startswith("pyimpl"):
            self.heard.add(name.removesuffix(".default"))
        return function(*arguments, **(options or {}))


class Borrowed:
    """A call, in which it is recorded if that is asked for. It is the function's own process that
    says so: what is not recorded proves nothing."""

    def __init__(self, asked: bool) -> None:
        self.listening = _Listening() if asked else None

    def __enter__(self) -> Self:
        if self.listening is not None:
            self.listening.__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.listening is not None:
            self.listening.__exit__(kind, error, traceback)  # type: ignore[no-untyped-call]

    def names(self) -> list[str]:
        """Operators that were called and packages that are loaded."""
        if self.listening is None:
            return []
        packages = {name for name in _PACKAGES if name in sys.modules}
        return sorted(self.listening.heard | packages)[:_MOST]
