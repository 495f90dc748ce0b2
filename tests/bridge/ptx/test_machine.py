"""Faults of the machine: races, accesses outside, barriers, numbers that nobody wrote."""

from __future__ import annotations

import pytest
import torch
from ptx_cases import execute, kernel_of

from bridge.gluon.faults import Fault
from bridge.ptx.memory import Buffers
from bridge.ptx.parse import parse

# Thread n writes to its own place, and reads that of thread n ^ 32: the other warp's.
WRITE = "xor.b32 %r3, %r1, 32; mad.lo.s32 %r4, %r3, 16, 0; st.shared.b32 [%r2], %r1;\n"
READ = "ld.shared.b32 %r10, [%r4]; st.global.b32 [%rd1], %r10;\n"
BARRIER = "bar.sync 0;\n"
EARLY = "setp.lt.u32 %p1, %r1, 32;\n"
# 4 bytes from global memory to a thread's own place.
COPY = "cp.async.ca.shared.global [%r2], [%rd1], 4;\n cp.async.commit_group;\n"
ADDRESSES = "xor.b32 %r3, %r1, 32; mad.lo.s32 %r4, %r3, 16, 0;\n"
WAIT = "cp.async.wait_group 0;\n"


def refusal(body: str, threads: int = 64) -> Fault:
    with pytest.raises(Fault) as raised:
        execute(body, threads=threads)
    return raised.value


def test_a_barrier_orders_the_accesses_of_two_warps() -> None:
    found = execute(WRITE + BARRIER + READ, threads=64)
    assert found[:, 0].tolist() == [i ^ 32 for i in range(64)]


def test_without_the_barrier_it_is_a_race() -> None:
    # The numbers are right all the same: one warp executes no instruction before the other.
    fault = refusal(WRITE + READ)
    assert fault.kind == "race"
    assert str(fault) == (
        "kernel, program 0, thread 0: line 23, `ld.shared.b32 %r10, [%r4]`: reads where another "
        "warp wrote, and no barrier is between"
    )


def test_writing_what_another_warp_read_is_a_race() -> None:
    fault = refusal(WRITE + BARRIER + READ + "st.shared.b32 [%r2], %r3;")
    assert fault.kind == "race"
    assert "writes where another warp read" in str(fault)


def test_two_warps_may_write_the_same_number_and_no_other() -> None:
    execute("st.shared.b32 [0], 7;", threads=64)
    assert refusal("st.shared.b32 [0], %r1;").kind == "race"
    assert refusal("shr.u32 %r5, %r1, 5; st.shared.b32 [0], %r5;").kind == "race"


def test_one_warp_needs_no_barrier() -> None:
    body = WRITE.replace("%r1, 32", "%r1, 1") + READ
    assert execute(body)[:, 0].tolist() == [i ^ 1 for i in range(32)]


def test_a_copy_has_to_be_awaited_and_then_ordered() -> None:
    execute(ADDRESSES + COPY + WAIT + BARRIER + READ, threads=64)
    early = refusal(ADDRESSES + COPY + BARRIER + READ)
    assert early.kind == "read before it has landed"
    # The barrier before the end of the waiting orders nothing.
    assert refusal(ADDRESSES + COPY + BARRIER + WAIT + READ).kind == "race"
    over = refusal(COPY + "st.shared.b32 [%r2], 1;")
    assert over.kind == "overwritten while in use"


def test_the_last_groups_of_copies_may_stay_under_way() -> None:
    second = COPY.replace("[%r2]", "[%r2+2048]")
    body = COPY + second + "cp.async.wait_group 1;\n" + "ld.shared.b32 %r10, [%r2];\n"
    execute(body)
    fault = refusal(body.replace("[%r2];\n", "[%r2+2048];\n"), threads=32)
    assert fault.kind == "read before it has landed"


def test_a_copy_fills_up_with_zeros_and_reads_no_further() -> None:
    body = "add.s64 %rd3, %rd2, 252; cp.async.ca.shared.global [%r2], [%rd3], 16, %r5;"
    body += COPY.split("\n")[1] + WAIT + "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r2];"
    body += "st.global.v4.b32 [%rd1], {%r10, %r11, %r12, %r13};"
    given = [*[0] * 63, 9]
    assert execute("mov.b32 %r5, 4;" + body, given)[5].tolist() == [9, 0, 0, 0]
    with pytest.raises(Fault, match="outside of every tensor"):
        execute("mov.b32 %r5, 8;" + body.replace("252", "248").replace("%rd2, 248", "%rd2, 256"))


@pytest.mark.parametrize("place", ["[%rd1+1024]", "[%rd0+-4]", "[64]"])
def test_an_access_outside_of_every_tensor(place: str) -> None:
    fault = refusal(f"st.global.b32 {place}, %r1;", threads=64)
    assert fault.kind == "outside its tensor"
    assert "writes 4 bytes at 0x" in str(fault)


def test_the_rest_of_a_storage_does_not_exist() -> None:
    """A view's neighbours are no part of it; two views of a storage are one memory."""
    whole = torch.arange(12, dtype=torch.int32)
    memory = Buffers()
    first, second = memory.address(whole[2:4]), memory.address(whole[8:])
    assert second - first == 24
    everywhere = torch.tensor([first, second]).numpy()
    assert memory.read(everywhere, 8).view("i4").tolist() == [[2, 3], [8, 9]]
    for shift in (-4, 4):
        with pytest.raises(Exception, match="0"):
            memory.read(everywhere[:1] + shift, 8)


def test_shared_memory_ends() -> None:
    assert "4096 bytes, outside" in str(refusal("st.shared.b32 [%r2+4096], %r1;"))


def test_addresses_are_multiples_of_the_size() -> None:
    assert refusal("ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%rd1+4];").kind == "not aligned"


def test_a_barrier_reached_by_a_part() -> None:
    fault = refusal(EARLY + "@%p1 bra $after;\nbar.sync 0;\n$after:\n")
    assert fault.kind == "barrier"
    assert "`bar.sync 0`: is reached by 32 of 64 threads alone" in str(fault)
    assert refusal(EARLY + "@%p1 ret;\n" + BARRIER).kind == "barrier"


def test_threads_part_and_meet_again() -> None:
    """Each thread counts up to its own number."""
    body = """
    mov.b32 %r10, 0;
$loop:
    setp.ge.s32 %p1, %r10, %r1;
    @%p1 bra $done;
    add.s32 %r10, %r10, 1;
    bra.uni $loop;
$done:
    bar.sync 0;
    st.global.b32 [%rd1], %r10;
"""
    assert execute(body, threads=64)[:, 0].tolist() == list(range(64))


def test_a_number_that_nobody_wrote() -> None:
    fault = refusal("add.s32 %r10, %r11, 1; st.global.b32 [%rd1], %r10;")
    assert fault.kind == "never written"
    assert "`st.global.b32 [%rd1], %r10`: stores a value that was never written" in str(fault)
    part = EARLY + "@%p1 mov.b32 %r10, 5;\n"
    assert "thread 32" in str(refusal(part + "st.global.b32 [%rd1], %r10;"))
    # Where it is not used it may be there.
    execute(part + "@%p1 st.global.b32 [%rd1], %r10;", threads=64)
    execute(part + "selp.b32 %r10, %r10, 0, %p1; st.global.b32 [%rd1], %r10;", threads=64)
    assert refusal("ld.shared.b32 %r10, [%r2];").kind == "never written"
    assert refusal("@%p3 mov.b32 %r10, 5;").kind == "never written"


def test_a_warp_multiplies_together() -> None:
    body = "setp.lt.u32 %p1, %r1, 16; @%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, [%r2];"
    assert refusal(body).kind == "part of a warp"
    half = "setp.lt.u32 %p1, %r1, 16; @%p1 shfl.sync.idx.b32 %r10, %r1, 20, 31, -1;"
    assert refusal(half).kind == "part of a warp"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "text must have a kernel"),
        (".visible .entry k() {}", "k must say how many threads it has"),
        (".visible .entry k() .reqntid 32 { mov.u32 %r1, ?; }", "line 1: '?' is no operand"),
        (".visible .entry k() .reqntid 32 {\n Add; }", "line 2 is no instruction: 'Add'"),
        (".visible .entry k() .reqntid 32 {\n ret }", "line 1 is no statement"),
    ],
)
def test_a_text_that_is_not_read(text: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=r"^[^\n]*$") as raised:
        parse(text)
    assert sentence in str(raised.value)


def test_lines_and_scopes_are_read() -> None:
    kernel = kernel_of("{ .reg .b32 t; mov.b32 t, 1; // one\n}\n@!%p1 bra $x;\n$x:\n")
    one, branch = kernel.instructions[6:8]
    assert (one.line, branch.line) == (22, 24)
    assert branch.guard.negated
    assert kernel.labels["$x"] == 8
    assert kernel.width("t") == kernel.width("%r3") == 32
