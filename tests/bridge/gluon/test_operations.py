"""Each operation of the simulator, in kernels of a few lines."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from bridge.gluon.faults import Fault
from bridge.gluon.launch import run
from bridge.gluon.load import Loader
from bridge.gluon.rounded import BFLOAT16, FLOAT16, Float32, round_to
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain
from pyimpl.backends.kernels.parts.launch import Launch

_HEAD = """
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language._core import builtin
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier, tma, warpgroup_mma, warpgroup_mma_wait)

@gluon.jit
def barrier(count: gl.constexpr):
    made = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    mbarrier.init(made.index(0), count=count)
    return made.index(0)

"""
Simulate = Callable[..., list[Any]]


@pytest.fixture
def simulate(tmp_path: Path) -> Simulate:
    """Runs the body of a kernel, or a module with one, and gives `[4, 4]` numbers that it stored
    from `out_ptr` on. Its other arguments: `in_desc`, tiles of `[4, 4]` of the numbers 0 to 19 in 5
    rows, and `n` = -7."""

    def simulate_body(body: str, *helpers: str, seed: int = 0, programs: int = 1) -> list[Any]:
        path = tmp_path / "kernels.py"
        functions = "".join(f"@gluon.jit\n{textwrap.dedent(text)}\n" for text in helpers)
        kernel = f"@gluon.jit\ndef kernel(in_desc, out_ptr, n):\n{textwrap.indent(body, '    ')}\n"
        path.write_text(_HEAD + functions + kernel, "utf-8")
        memory = Memory(RationalDomain())
        given = memory.tensor(np.arange(20).reshape(5, 4).astype(object), torch.bfloat16)
        out = memory.empty((4, 4))
        described = SimpleNamespace(
            base=given, shape=[5, 4], strides=[4, 1], block_shape=[4, 4], layout=None
        )
        arguments: dict[str, Any] = {"in_desc": described, "out_ptr": out, "n": -7}
        launch = Launch(SimpleNamespace(__name__="kernel"), programs, arguments, {}, 4, 1)
        run(launch, Loader().module(path), memory, seed)
        return np.asarray(memory.read(out)).reshape(-1).tolist()

    return simulate_body


_COPY = """
buf = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)
full = barrier(1)
mbarrier.expect(full, in_desc.block_type.nbytes)
tma.async_copy_global_to_shared(in_desc, [{row}, 0], full, buf)
"""
_PLACES = "at = gl.arange(0, 4)[:, None] * 4 + gl.arange(0, 4)[None, :]\n"
_LOADED = _PLACES + "gl.store(out_ptr + at, buf.load(None).to(gl.float32))\n"
_PRODUCT = "later = warpgroup_mma(buf, buf, gl.zeros([4, 4], gl.float32), is_async=True)\n"


def test_rows_past_the_end_are_copied_as_zeros(simulate: Simulate) -> None:
    body = _COPY.format(row=3) + "mbarrier.wait(full, 0)\n" + _LOADED
    assert simulate(body) == [*range(12, 20), *[0] * 8]
    body = _COPY.format(row=-1) + "mbarrier.wait(full, 0)\n" + _LOADED
    assert simulate(body) == [*[0] * 4, *range(12)]


def test_a_product_is_a_value_after_its_wait(simulate: Simulate) -> None:
    body = _COPY.format(row=0) + "mbarrier.wait(full, 0)\n" + _PRODUCT + _PLACES
    matrix = np.arange(16).reshape(4, 4)
    found = simulate(body + "s = warpgroup_mma_wait(0, deps=[later])\ngl.store(out_ptr + at, s)")
    assert found == (matrix @ matrix).reshape(-1).tolist()
    with pytest.raises(Fault, match="reads the accumulator of a product that program 0 began"):
        simulate(body + "gl.store(out_ptr + at, later + 1)")
    with pytest.raises(Fault, match="program 0 ends while a product that program 0 began"):
        simulate(body)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (_COPY.format(row=0) + _LOADED, "program 0 at line .* may read buf while a copy"),
        (_COPY.format(row=0), "program 0 ends, and nothing waited for a copy"),
        (
            _COPY.format(row=0) + "mbarrier.expect(full, 32)\n"
            "tma.async_copy_global_to_shared(in_desc, [0, 0], full, buf)",
            "began at line .* may write to buf while a copy that program 0 began .* still writes",
        ),
        (
            "buf = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)\n" + _LOADED,
            "reads buf, which nothing wrote to",
        ),
        ("b = barrier(1)\nmbarrier.init(b, count=1)", r"made\[0\] is initialised a second time"),
        ("b = barrier(0)", r"made\[0\] counts 0 arrivals at line \d+, not 1 or more"),
        (
            "b = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())\n"
            "mbarrier.arrive(b, count=1)",
            r"b is used at line \d+ before it is initialised",
        ),
        (
            "mbarrier.wait(barrier(1), 0)",
            r"^deadlock: program 0 waits for parity 0 of made\[0\] at line \d+, in phase 0, "
            "1 of 1 arrivals and 0 bytes missing; nothing is under way$",
        ),
        ("mbarrier.wait(barrier(1), 2)", r"waits for phase 2 of made\[0\], not 0 or 1"),
        (
            "mbarrier.arrive(barrier(1), count=2)",
            r"arrives 2 times at made\[0\] .* 1 of 1 arrivals are left",
        ),
        ("gl.store(out_ptr + 16, 1.0)", "element 16 of out_ptr, which has 16"),
        ("gl.store(out_ptr + n, 1.0)", "element -7 of out_ptr, which has 16"),
        ("gl.store(out_ptr, 1.0)\ngl.store(out_ptr, 1.0)", "a second time to an element of out"),
        (
            "gl.store(out_ptr + gl.arange(0, 4) // 2, 1.0)",
            "stores a second time to an element of out_ptr",
        ),
        (
            "buf = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)\n"
            "tma.async_copy_global_to_shared(in_desc, [0], barrier(1), buf)",
            r"copies a tile of \[4, 4\] at \[0\] between in_desc and buf of \[4, 4\]",
        ),
        ("bufs = gl.allocate_shared_memory(gl.bfloat16, [2, 4], None)\nbufs.index(2)", "no bufs.2"),
        ("if gl.arange(0, 4) < 2:\n    pass", r"a condition at line \d+ is a tile of \[4\]"),
    ],
)
def test_what_no_kernel_may_do_is_said(simulate: Simulate, body: str, said: str) -> None:
    with pytest.raises(Fault, match=said):
        simulate(body)


def test_additions_read_until_they_are_waited_for(simulate: Simulate) -> None:
    """Of the program's own kind of operation, which Gluon has no name for."""
    helper = "def f():\n    pass\n\n@builtin\ndef add_shared_to_global(desc, coord, src):\n    pass"
    begin = "buf = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)\n"
    added = (
        "buf.store(gl.full([4, 4], 2.0, gl.bfloat16))\nadd_shared_to_global(in_desc, [0, 0], buf)\n"
    )
    waited = "tma.store_wait(pendings=0)\n"
    assert simulate(begin + (added + waited) * 2, helper) == [None] * 16
    with pytest.raises(Fault, match="may write to buf while an addition that program 0 began"):
        simulate(begin + added * 2 + waited, helper)
    with pytest.raises(Fault, match="ends while an addition that program 0 began"):
        simulate(begin + added, helper)
    with pytest.raises(AttributeError, match="else_named, which a module builds, is not simulated"):
        simulate("pass", helper.replace("add_shared_to_global", "else_named"))


def test_a_tile_is_stored_as_far_as_it_is_in_the_tensor_once(simulate: Simulate) -> None:
    """The tensor of `in_desc` has 5 rows of 4, from 0 to 19; of the tile that begins at its row 2
    and column 3 the first column is in it."""
    begin = "buf = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)\n"
    written = (
        "buf.store(gl.full([4, 4], 2.0, gl.bfloat16))\n"
        "tma.async_copy_shared_to_global(in_desc, [2, 3], buf)\n"
    )
    waited = "tma.store_wait(pendings=0)\n"
    read = (
        "full = barrier(1)\nagain = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)\n"
        "mbarrier.expect(full, 32)\n"
        "tma.async_copy_global_to_shared(in_desc, [1, 1], full, again)\n"
        "mbarrier.wait(full, 0)\n"
        "at = gl.arange(0, 4)[:, None] * 4 + gl.arange(0, 4)[None, :]\n"
        "gl.store(out_ptr + at, again.load(None).to(gl.float32))\n"
    )
    found = simulate(begin + written + waited + read)
    assert found == [5, 6, 7, 0, 9, 10, 2, 0, 13, 14, 2, 0, 17, 18, 2, 0]
    with pytest.raises(Fault, match="stores a second time to an element of in_desc"):
        simulate(begin + written + waited + written.split("\n", 1)[1] + waited)
    with pytest.raises(Fault, match="may write to buf while a store that program 0 began"):
        simulate(begin + written + written.split("\n", 1)[0])


def test_what_two_programs_store_is_one_element_each(simulate: Simulate) -> None:
    stored = simulate("gl.store(out_ptr + gl.program_id(0), gl.num_programs(0) * 1.0)", programs=3)
    assert stored[:4] == [3, 3, 3, None]
    with pytest.raises(Fault, match="stores a second time"):
        simulate("gl.store(out_ptr, 1.0)", programs=2)


_WRITES = "def writes(buf, full):\n    buf.store(gl.full([4, 4], 3.0, gl.bfloat16))\n"
_READS = f"def reads(buf, full, out_ptr):\n{textwrap.indent('WAIT' + _LOADED, '    ')}"
_BOTH = """
buf = gl.allocate_shared_memory(gl.bfloat16, [4, 4], None)
full = barrier(1)
gl.warp_specialize([(reads, (buf, full, out_ptr)), (writes, (buf, full))], [1], [24])
"""


def test_partitions_are_ordered_by_barriers_alone(simulate: Simulate) -> None:
    writes = _WRITES + "    mbarrier.arrive(full, count=1)\n"
    reads = _READS.replace("WAIT", "mbarrier.wait(full, 0)\n    ")
    for seed in range(8):
        assert simulate(_BOTH, writes, reads, seed=seed) == [3] * 16
    unordered = _READS.replace("WAIT", "")
    said = set()
    for seed in range(8):
        with pytest.raises(Fault) as raised:
            simulate(_BOTH, writes, unordered, seed=seed)
        said.add(raised.value.kind)
    # In the schedules in which the reading came first, and in the others.
    assert said == {"never written", "read before it has landed"}


def test_integers_are_those_of_the_device(simulate: Simulate) -> None:
    """Quotients are rounded toward zero where numbers are not known to the compiler, and loops
    count in such numbers."""
    body = """
x = gl.full([4], n, gl.int32)
gl.store(out_ptr + gl.arange(0, 4), (x // 2).to(gl.float32))
gl.store(out_ptr + 4, (n // 2).to(gl.float32))
gl.store(out_ptr + 5, (n % 4).to(gl.float32))
gl.store(out_ptr + 6, gl.cdiv(n, 2) * 1.0)
for i in range(n, n + 1):
    gl.store(out_ptr + 7, (i // 2).to(gl.float32))
gl.store(out_ptr + 8, gl.where(n < 0, n, 1) * 1.0)
gl.store(out_ptr + 9, gl.maximum(n, -8) * 1.0)
"""
    assert simulate(body)[:10] == [-3, -3, -3, -3, -3, -3, -3, -3, -7, -7]


def test_a_name_that_is_not_simulated_is_said_to_be_none(simulate: Simulate) -> None:
    with pytest.raises(AttributeError, match=r"gl\.histogram is not simulated"):
        simulate("gl.histogram(1)")


def test_a_module_of_kernels_that_is_imported_is_simulated_too(tmp_path: Path) -> None:
    path = tmp_path / "importing.py"
    path.write_text(
        "import math\n"
        "from triton.experimental import gluon\n"
        "from pyimpl.backends.kernels.hopper.forward_kernel import visited\n"
        "two = math.sqrt(4.0)\n",
        "utf-8",
    )
    module = Loader([("whole_first = 0", "whole_first = 1")]).module(path)
    assert module.two == 2.0
    assert module.visited(0, (1, 1, 40, 70, 0), (None, None), 16, 32) == (4, 5, 1, 4)
    path.write_text("from .sibling import f\n", "utf-8")
    with pytest.raises(ImportError, match="must import sibling by its whole name"):
        Loader().module(path)


def test_numbers_are_rounded_as_torch_rounds_them() -> None:
    domain = Float32()
    numbers = domain.add(domain.constant(1.0), np.float32([2**-9, 2**-8, 2**-7, 3 * 2**-9]))
    assert round_to(domain, numbers, BFLOAT16).tolist() == [1.0, 1.0, 1 + 2**-7, 1 + 2**-7]
    assert round_to(domain, domain.constant(70000.0), FLOAT16).tolist() == float("inf")
