"""Kernels of published packages that `bridge prove` knows by name: how each is called.

Nothing of a package is here but the few lines that call it, in `launchers`. A package that is not
installed is a misuse, whose message names the packages to install.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

_LAUNCHERS = Path(__file__).parent / "launchers"


@dataclass(frozen=True)
class Published:
    """name: its name as an argument of `prove`; file, function: of its launcher; what: a
    description in a few words; packages: the distributions that it needs, its own first; layout: as
    `--layout`; gradients: whether it has a backward pass that is Triton's too; masked_loads: as
    `--masked-loads` of that pass, None: it leaves no number open."""

    name: str
    file: str
    function: str
    what: str
    packages: tuple[str, ...]
    layout: str = "bhnd"
    gradients: bool = False
    masked_loads: float | None = None

    @property
    def launcher(self) -> str:
        return f"{_LAUNCHERS / self.file}:{self.function}"

    @property
    def version(self) -> str | None:
        """The version of the package, None if one of those that it needs is not installed."""
        try:
            first, *_ = [metadata.version(package) for package in self.packages]
        except metadata.PackageNotFoundError:
            return None
        return first


PUBLISHED = {
    one.name: one
    for one in (
        Published(
            "flex_attention", "of_torch.py", "flex_attention",
            "FlexAttention as PyTorch's compiler writes it for an H100, with and without "
            "a causal block mask", ("torch",), gradients=True, masked_loads=0.0,
        ),
        Published(
            "fla-parallel-attn", "of_fla.py", "parallel_attn",
            "`fla.ops.attn.parallel.parallel_attn`, causal", ("fla-core", "einops"),
            layout="bnhd", gradients=True,
        ),
        Published(
            "conch-varlen-attention", "of_conch.py", "varlen_attention",
            "`conch.ops.attention.varlen_attention`: packed queries, a cache in pages of 16",
            ("conch-triton-kernels",), layout="bnhd",
        ),
    )
}  # fmt: skip
