"""Every check of the machine bites: small kernels that do something forbidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from ttir_cases import kernel, run

from bridge.ttir.faults import CannotTell, Violation
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain


def _memory(*numbers: int) -> tuple[Memory, torch.Tensor]:
    memory = Memory(RationalDomain())
    return memory, memory.tensor(np.array(numbers, object))


def violation(kind: str, *given: object, **how: object) -> Violation:
    """A run's violation, of this kind."""
    with pytest.raises(Violation) as caught:
        run(*given, **how)  # type: ignore[arg-type]
    assert caught.value.kind == kind
    return caught.value


# Loads 4 elements and stores them: %load and %store say to and from which.
_COPY = """
    %r = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %y = tt.addptr %x, %r : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    %v = tt.load %y : tensor<4x!tt.ptr<f32>>
    %pid = tt.get_program_id x : i32
    %c = arith.constant CONSTANT : i32
    %o = arith.muli %pid, %c : i32
    %q = tt.addptr %to, %o : !tt.ptr<f32>, i32
    %z = tt.splat %q : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %w = tt.addptr %z, %r : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
    tt.store %w, %v : tensor<4x!tt.ptr<f32>>"""
_TWO = "%p: !tt.ptr<f32>, %to: !tt.ptr<f32>"


def test_a_copy_runs() -> None:
    memory, given = _memory(1, 2, 3, 4)
    out = memory.empty((8,))
    run(kernel(_TWO, _COPY.replace("CONSTANT", "4")), memory, given, out, programs=2)
    assert memory.read(out).tolist() == [1, 2, 3, 4, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("step", "size", "programs", "kind", "element"),
    [
        (4, 7, 2, "outside its tensor", (3,)),
        (-1, 8, 2, "outside its tensor", (0,)),
        (3, 8, 2, "stored by two programs", (0,)),
    ],
)
def test_stores_outside_and_twice(
    step: int, size: int, programs: int, kind: str, element: tuple[int, ...]
) -> None:
    memory, given = _memory(1, 2, 3, 4)
    text = kernel(_TWO, _COPY.replace("CONSTANT", str(step)))
    found = violation(kind, text, memory, given, memory.empty((size,)), programs=programs)
    assert (found.operation.name, found.program) == ("tt.store", (1, 0, 0))
    assert found.element == element


def test_a_load_outside() -> None:
    memory, given = _memory(1, 2, 3)
    with pytest.raises(Violation, match="element 3 of p, which spans 3") as caught:
        run(kernel(_TWO, _COPY.replace("CONSTANT", "4")), memory, given, memory.empty((4,)))
    assert caught.value.operation.name == "tt.load"


def test_a_view_is_no_whole_storage() -> None:
    memory, given = _memory(1, 2, 3, 4, 5, 6, 7, 8)
    with pytest.raises(Violation, match="element 3 of p, which spans 3"):
        run(kernel(_TWO, _COPY.replace("CONSTANT", "4")), memory, given[2:5], memory.empty((4,)))


def test_read_and_written() -> None:
    memory, given = _memory(1, 2, 3, 4)
    violation(
        "read and written", kernel(_TWO, _COPY.replace("CONSTANT", "0")), memory, given, given
    )


def test_one_store_twice_to_an_address() -> None:
    memory, given = _memory(1)
    body = """
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
    %v = arith.constant dense<1.0> : tensor<4xf32>
    tt.store %x, %v : tensor<4x!tt.ptr<f32>>"""
    found = violation("stored twice at once", kernel("%p: !tt.ptr<f32>", body), memory, given)
    assert found.element == (0,)


@pytest.mark.parametrize(
    ("type", "n", "operation", "overflows"),
    [
        ("i32", 2**30, "addi", True),
        ("i32", 2**30 - 1, "addi", False),
        ("i32", 2**16, "muli", True),
        ("i64", 2**62, "addi", True),
        ("i64", 2**61, "addi", False),
        ("i64", 2**32, "muli", True),
        ("i64", 2**31, "muli", False),
    ],
)
def test_overflow_where_a_number_is_used(
    type: str, n: int, operation: str, overflows: bool
) -> None:
    memory, _ = _memory(0)
    sum_ = f"    %s = arith.{operation} %n, %n : {type}\n"
    # As bits it may be any.
    run(kernel(f"%n: {type}", sum_ + f"    %b = arith.xori %s, %n : {type}"), memory, n)
    used = kernel(f"%n: {type}", sum_ + f"    %b = arith.cmpi slt, %s, %n : {type}")
    if not overflows:
        run(used, memory, n)
        return
    assert violation("overflow", used, memory, n).operation.name == f"arith.{operation}"


def test_an_overflow_passes_through_loops_and_bits_to_an_address() -> None:
    memory, given = _memory(1, 2)
    body = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %s = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %n) -> (i32)  : i32 {
      %d = arith.muli %a, %n : i32
      scf.yield %d : i32
    }
    %x = arith.andi %s, %c1 : i32
    %q = tt.addptr %p, %x : !tt.ptr<f32>, i32
    %v = tt.load %q : !tt.ptr<f32>"""
    run(kernel("%p: !tt.ptr<f32>, %n: i32", body), memory, given, 1000)
    with pytest.raises(Violation, match=r"overflow .*arith.muli"):
        run(kernel("%p: !tt.ptr<f32>, %n: i32", body), memory, given, 2000)


_LEFT_OPEN = """
    %c1 = arith.constant 1 : i32
    %there = arith.cmpi slt, %n, %c1 : i32
    %x = tt.load %i, %there : !tt.ptr<i32>
    %y = arith.subi %x, %c1 : i32
    %z = arith.muli %y, FACTOR : i32
    scf.if %there {
      tt.store %i, %c1 : !tt.ptr<i32>
    }
    %q = tt.addptr %p, %z : !tt.ptr<f32>, i32
    %v = tt.load %q : !tt.ptr<f32>"""


def test_what_a_masked_load_leaves_open() -> None:
    memory, given = _memory(1, 2)
    arguments = "%p: !tt.ptr<f32>, %i: !tt.ptr<i32>, %n: i32, %zero: i32"
    at = torch.ones(1, dtype=torch.int32)
    text = kernel(arguments, _LEFT_OPEN.replace("FACTOR", "%c1"))
    violation("read and written", text, memory, given, at, 0, 0)
    with pytest.raises(CannotTell, match="a value that a masked load left open"):
        run(text, memory, given, at, 1, 0)
    # Times 0 it is 0; a region that gives nothing ends without a word.
    run(kernel(arguments, _LEFT_OPEN.replace("FACTOR", "%zero")), memory, given, at, 1, 0)


_EXP2 = """
    %r = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
    %y = tt.addptr %x, %r : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
    %v = tt.load %y : tensor<2x!tt.ptr<f32>>
    %e = math.exp2 %v : tensor<2xf32>
    %zero = arith.constant dense<0> : tensor<2xi32>
    %none = arith.constant dense<0.0> : tensor<2xf32>
    %first = arith.cmpi eq, %r, %zero : tensor<2xi32>
    %w = arith.select CHOICE : tensor<2xi1>, tensor<2xf32>
    %s = arith.addf %w, %none : tensor<2xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
    %u = tt.addptr %t, %r : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
    tt.store %u, %s : tensor<2x!tt.ptr<f32>>"""


@pytest.mark.parametrize(
    ("numbers", "choice", "wrong"),
    [
        ((-1, 0), "%first, %e, %e", None),
        ((-1, 1), "%first, %e, %none", None),
        ((-1, 1), "%first, %none, %e", (1,)),
        ((3, 0), "%first, %e, %none", (0,)),
    ],
)
def test_exp2_of_what_is_used(
    numbers: tuple[int, int], choice: str, wrong: tuple[int, ...] | None
) -> None:
    memory, given = _memory(*numbers)
    to = memory.empty((2,))
    text = kernel("%p: !tt.ptr<f32>, %to: !tt.ptr<f32>", _EXP2.replace("CHOICE", choice))
    if wrong is None:
        run(text, memory, given, to, masked_after=True)
    else:
        found = violation("exp2 of a positive number", text, memory, given, to, masked_after=True)
        assert found.element == wrong
    if max(numbers) > 0:
        violation("exp2 of a positive number", text, memory, given, to)


# Of a matrix of weights the first column's may overflow; DONE: the operations on them.
_OVERFLOWING = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %r = tt.make_range {end = 2 : i32, start = 0 : i32} : tensor<2xi32>
    %x = tt.splat %p : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
    %y = tt.addptr %x, %r : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
    %v = tt.load %y : tensor<2x!tt.ptr<f32>>
    %e = math.exp2 %v : tensor<2xf32>
    %h = arith.truncf %e : tensor<2xf32> to tensor<2xf16>
    %i = tt.expand_dims %h {axis = 0 : i32} : tensor<2xf16> -> tensor<1x2xf16>
    %w = tt.broadcast %i : tensor<1x2xf16> -> tensor<2x2xf16>
    %wt = tt.trans %w {order = array<i32: 1, 0>} : tensor<2x2xf16> -> tensor<2x2xf16>
    %one = arith.constant dense<1.0> : tensor<2x2xf16>
    %none = arith.constant dense<0.0> : tensor<2x2xf32>
    %none2 = arith.constant dense<0.0> : tensor<2xf32>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<2x!tt.ptr<f32>>
    %u = tt.addptr %t, %r : tensor<2x!tt.ptr<f32>>, tensor<2xi32>
    %rows = tt.splat %row : i32 -> tensor<2xi32>
    %kept = arith.cmpi eq, %r, %rows : tensor<2xi32>
    DONE
    tt.store %u, %z, %kept : tensor<2x!tt.ptr<f32>>"""
_LOOP = """%a = scf.for %k = %c0 to %c2 step %c1 iter_args(%b = %none) -> (tensor<2x2xf32>)  : i32 {
      %d = tt.dot FACTORS, %b : tensor<2x2xf16> * tensor<2x2xf16> -> tensor<2x2xf32>
      scf.yield %d : tensor<2x2xf32>
    }
    %z = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb0(%f: f32, %g: f32):
      %q = arith.addf %f, %g : f32
      tt.reduce.return %q : f32
    }) : (tensor<2x2xf32>) -> tensor<2xf32>"""


@pytest.mark.parametrize(
    ("done", "row", "wrong"),
    [
        # A row of a product is of the same row of the left factor.
        (_LOOP.replace("FACTORS", "%wt, %one"), 0, True),
        (_LOOP.replace("FACTORS", "%wt, %one"), 1, False),
        # A column of the right factor reaches the sum over all columns.
        (_LOOP.replace("FACTORS", "%one, %w"), 1, True),
        # A sum over the keys, of which one may be ∞.
        (_LOOP.replace("FACTORS", "%w, %one"), 1, True),
        ("%z = arith.addf %e, %none2 : tensor<2xf32>", 0, True),
        ("%z = arith.addf %e, %none2 : tensor<2xf32>", 1, False),
        # A maximum would lose it, and a comparison say anything.
        ("%z = arith.maxnumf %e, %none2 : tensor<2xf32>", 1, True),
        ("""%c = arith.cmpf ogt, %e, %none2 : tensor<2xf32>
    %z = arith.select %c, %none2, %none2 : tensor<2xi1>, tensor<2xf32>""", 1, True),
    ],
)  # fmt: skip
def test_what_may_overflow_may_be_left_out_where_it_is_stored(
    done: str, row: int, *, wrong: bool
) -> None:
    memory, given = _memory(1, -1)
    to = memory.empty((2,))
    arguments = "%p: !tt.ptr<f32>, %to: !tt.ptr<f32>, %row: i32"
    text = kernel(arguments, _OVERFLOWING.replace("DONE", done))
    if wrong:
        violation("exp2 of a positive number", text, memory, given, to, row, masked_after=True)
    else:
        run(text, memory, given, to, row, masked_after=True)
        # No NaN is stored.
        assert memory.domain.equal(memory.read(to)[[row]], memory.read(to)[[row]]).all()


def test_a_masked_load_of_floats_gives_what_is_declared() -> None:
    memory, given = _memory(5)
    to = memory.empty(())
    body = """
    %c0 = arith.constant 0 : i32
    %there = arith.cmpi ne, %n, %c0 : i32
    %v = tt.load %p, %there : !tt.ptr<f32>
    tt.store %to, %v : !tt.ptr<f32>"""
    text = kernel("%p: !tt.ptr<f32>, %to: !tt.ptr<f32>, %n: i32", body)
    with pytest.raises(CannotTell, match="a masked load without a value"):
        run(text, memory, given, to, 0)
    memory.domain.left_open = memory.domain.constant(3.0)
    for n, wanted in ((0, 3.0), (1, 5.0)):
        run(text, memory, given, to, n)
        assert memory.domain.equal(memory.read(to), memory.domain.constant(wanted)).all()


_MAXIMUM = """
    %v = tt.load %p : !tt.ptr<f32>
    %e = arith.constant 0.000000e+00 : f32
    %n = arith.divf %e, %e : f32
    %w = arith.KIND %v, %n : f32
    tt.store %to, %w : !tt.ptr<f32>"""
_REDUCED = """
    %v = tt.load %p : !tt.ptr<f32>
    %e = arith.constant 0.000000e+00 : f32
    %n = arith.divf %e, %v : f32
    %t = tt.splat %n : f32 -> tensor<4xf32>
    %w = "tt.reduce"(%t) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.KIND %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<4xf32>) -> f32"""


@pytest.mark.parametrize("kind", ["maxnumf", "minnumf", "maximumf", "minimumf"])
@pytest.mark.parametrize("body", [_MAXIMUM, _REDUCED])
def test_a_maximum_that_keeps_nan_is_not_one_that_drops_it(body: str, kind: str) -> None:
    memory, given = _memory(0)
    out = memory.empty((1,))
    text = kernel(_TWO, body.replace("KIND", kind))
    if not kind.endswith("numf"):
        with pytest.raises(CannotTell, match="keeps NaN"):
            run(text, memory, given, out)
    else:
        run(text, memory, given, out)
        if body is _MAXIMUM:
            assert memory.read(out).tolist() == [0]


_ADD = """
    %v = arith.constant 2.0 : f32
    FIRST
    %old = tt.atomic_rmw fadd, relaxed, gpu, %p, %v, %t : (!tt.ptr<f32>, f32, i1) -> f32"""


def test_atomic_additions() -> None:
    memory, given = _memory(1)
    body = "    %t = arith.constant true" + _ADD
    run(kernel("%p: !tt.ptr<f32>", body.replace("FIRST", "")), memory, given, programs=3)
    assert memory.read(given).tolist() == [7]
    for first in ("%x = tt.load %p : !tt.ptr<f32>", "tt.store %p, %v : !tt.ptr<f32>"):
        text = kernel("%p: !tt.ptr<f32>", body.replace("FIRST", first))
        violation("read and written", text, memory, given)


def test_what_has_no_meaning_is_said_with_its_operation() -> None:
    memory, given = _memory(1)
    body = "    %v = tt.load %p : !tt.ptr<f32>\n    %w = math.erf %v : f32"
    with pytest.raises(CannotTell, match=r"math\.erf"):
        run(kernel("%p: !tt.ptr<f32>", body), memory, given)


def test_unsigned_operations() -> None:
    memory, out = Memory(RationalDomain()), torch.zeros(6, dtype=torch.int32)
    body = "\n".join(
        f"""
    %c{i} = arith.constant {i} : i32
    %p{i} = tt.addptr %p, %c{i} : !tt.ptr<i32>, i32
    %v{i} = {operation}
    tt.store %p{i}, %v{i} : !tt.ptr<i32>"""
        for i, operation in enumerate(
            (
                "tt.mulhiui %a, %b : i32",
                "arith.shrui %a, %c1 : i32",
                "arith.xori %a, %b : i32",
                "arith.muli %a, %b : i32",
                "arith.divui %a, %b : i32",
                "arith.remui %a, %b : i32",
            )
        )
    ).replace("%c1 : i32", "%one : i32")
    body = "    %one = arith.constant 1 : i32\n" + body
    a, b = 0xD2511F53, 0x9E3779B9
    signed = [x - 2**32 for x in (a, b)]
    run(kernel("%p: !tt.ptr<i32>, %a: i32, %b: i32", body), memory, out, *signed)
    wanted = (a * b >> 32, a >> 1, a ^ b, a * b % 2**32, a // b, a % b)
    found = memory.read(out).tolist()
    assert [x % 2**32 for x in found] == list(wanted)


def test_a_foreign_float_tensor_is_refused() -> None:
    memory, given = _memory(1, 2, 3, 4)
    with pytest.raises(ValueError, match="to must be a tensor of this memory"):
        run(kernel(_TWO, _COPY.replace("CONSTANT", "0")), memory, given, torch.zeros(4))
