"""A GPU that is not there, below Triton's launcher: a libcuda whose functions do nothing.

Triton's own code runs, from its binder down to its launcher in C, with CPU tensors for those of the
device: only the time that NVIDIA's driver takes for a launch is left out.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from pyimpl.backends.kernels.parts import launch
from pyimpl.backends.kernels.parts.numerics import INTERPRETED

SOURCE = Path(__file__).with_name("libcuda.c")


def build(folder: Path) -> Path:
    """The library, compiled into `folder`. Raises RuntimeError with the compiler's message."""
    path = folder / "libcuda.so.1"
    compiler = os.environ.get("CC", "cc")
    flags = ["-O2", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]
    command = [compiler, *flags, str(SOURCE), "-o", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise RuntimeError(f"there is no C compiler {compiler!r}: set CC") from error
    if done.returncode != 0:
        raise RuntimeError(f"{compiler} does not compile {SOURCE.name}:\n{done.stderr}")
    return path


@contextmanager
def stand_in(folder: Path) -> Iterator[Callable[[], int]]:
    """A block in which a GPU like an H200 seems to be there; yields how many kernels were started.

    Raises RuntimeError where Triton interprets, and where there is no C compiler.
    """
    if INTERPRETED.value:
        raise RuntimeError("Triton interprets here: unset TRITON_INTERPRET")
    path = build(folder)
    # The loader finds a library by its name once it is loaded, and the linker by its folder.
    library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    started = ctypes.c_long.in_dll(library, "started")
    there = launch.StandIn(capability=90, processors=132)
    with (
        mock.patch.dict(os.environ, {"TRITON_LIBCUDA_PATH": str(folder)}),
        mock.patch.object(launch, "stand_in", there),
    ):
        # It stays: where there is no GPU, Triton has no other to go back to.
        driver.set_active(_driver())
        yield lambda: started.value


def _driver() -> Any:
    """Triton's driver for NVIDIA's GPUs, but for its questions to PyTorch."""
    from triton.backends.nvidia.driver import CudaDriver, CudaLauncher, CudaUtils

    # Triton writes no types, so that its class is anything to mypy: hence `misc`.
    class Driver(CudaDriver):  # type: ignore[misc]
        def __init__(self) -> None:
            self.utils, self.launcher_cls = CudaUtils(), CudaLauncher

        def get_current_target(self) -> GPUTarget:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, device: int) -> int:
            return 0

    return Driver()
