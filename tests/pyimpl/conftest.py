"""These tests run the Triton kernels on the CPU, in Triton's interpreter."""

import os
import sys

# Triton reads this when a kernel is defined, so it has to be set before pyimpl.kernels is imported.
os.environ["TRITON_INTERPRET"] = "1"

if "pyimpl.kernels._numerics" in sys.modules:
    from pyimpl.kernels._numerics import INTERPRETED

    if not INTERPRETED.value:
        raise RuntimeError(
            "pyimpl.kernels was imported before tests/pyimpl could set TRITON_INTERPRET=1: "
            "set it for the whole run, or run tests/pyimpl alone"
        )
