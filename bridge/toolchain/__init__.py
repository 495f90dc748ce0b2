"""Lean wherever you are: find or prepare it; build, run, audit and watch the library."""

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.find import Lean, find

__all__ = ["Lean", "ToolchainError", "find"]
