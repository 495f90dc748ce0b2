"""The parser of TTIR: on small texts, and on that of every kernel."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from ttir_cases import kernel

from bridge.ttir import source
from bridge.ttir.parse import parse
from bridge.ttir.source import of_launch
from bridge.ttir.syntax import Pointer, Scalar, Tensor, TtirError
from pyimpl.backends.kernels.offline.cases import KERNELS, Case
from pyimpl.backends.kernels.parts.launch import Launch

pytestmark = pytest.mark.compiled

CASES = [
    Case("forward", "bf16", 64, "window+mask+bias+dropout"),
    Case("varlen", "bf16", 64, "causal"),
    Case("decode", "bf16", 64, "causal"),
    Case("paged", "bf16", 64, "causal"),
    Case("combine", "bf16", 64),
    Case("rows", "bf16", 64),
    Case("keys", "bf16", 64, "causal"),
    Case("queries", "fp32", 64, "packed+causal"),
    Case("bias", "bf16", 64, "causal+bias"),
]


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.kernel,
            marks=[] if case.kernel in ("forward", "combine", "keys") else [pytest.mark.thorough],
        )
        for case in CASES
    ],
)
def test_every_kernel_has_its_values_and_places(case: Case) -> None:
    launch = KERNELS[case.kernel](case, 90)
    made = of_launch(launch)
    found = parse(made.text).kernel
    operations = list(found.operations())
    assert len(made.arguments) == len(found.arguments)
    for name, value in zip(made.arguments, found.arguments, strict=True):
        assert value.variable == name.split(".")[-1] or value.variable == name
        assert isinstance(value.type, Pointer) == isinstance(made.arguments[name], torch.Tensor)
    # Every line of the text that defines a value is an operation here.
    lines = [line for line in made.text.splitlines() if line.lstrip().startswith("%")]
    assert len([o for o in operations if o.results]) == len(lines)
    results = [value for operation in operations for value in operation.results]
    assert len({value.number for value in results}) == len(results)
    named = [value for value in results if value.variable is not None]
    assert len(named) > 0.6 * len(results)
    for operation in operations:
        if operation.name in ("tt.load", "tt.store", "tt.dot", "math.exp2"):
            assert operation.location.line is not None
            assert "pyimpl/backends/kernels/" in str(operation.location.file)


def test_a_text_is_made_once_for_launches_that_triton_compiles_once() -> None:
    launch = KERNELS["forward"](Case("forward", "fp32", 16, "causal"), 90)

    def of(**changed: int | None) -> Launch:
        return replace(launch, arguments={**launch.arguments, **changed})

    source._text.cache_clear()
    found = [of_launch(of(q_len=q_len)) for q_len in (1000, 77)]
    assert source._text.cache_info().misses == 1
    assert [x.arguments["q_len"] for x in found] == [1000, 77]
    source._text.cache_clear()
    assert {of_launch(of(q_len=77)).text} == {x.text for x in found}
    wider = replace(launch, constants={**launch.constants, "BLOCK_N": 64})
    others = [launch, wider, of(right=None), replace(launch, num_stages=3)]
    texts = {of_launch(x).text for x in others} | {of_launch(launch, 80).text}
    assert source._text.cache_info().misses == 5
    assert len(texts) >= 3


def test_a_loop_names_what_it_carries() -> None:
    launch = KERNELS["forward"](Case("forward", "fp32", 16, "causal"), 90)
    found = parse(of_launch(launch).text).kernel
    loop = next(o for o in found.operations() if o.name == "scf.for")
    assert [value.variable for value in loop.results] == ["m", "l", "o"]
    number, *carried = loop.regions[0][0].arguments
    assert [value.variable for value in carried] == ["m", "l", "o"]
    assert number.type == Scalar("i32")
    assert loop.regions[0][0].operations[-1].name == "scf.yield"
    assert isinstance(loop.results[0].type, Tensor)


def test_types_attributes_and_constants() -> None:
    found = parse(
        kernel(
            "%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i64",
            """
    %c = arith.constant dense<0xFF80> : tensor<4x8xbf16>
    %h = arith.constant 0.693147182 : f32
    %t = arith.constant true
    %d = arith.constant dense<[1, -2]> : tensor<2xi32>
    %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
    %x = tt.trans %c {order = array<i32: 1, 0>} : tensor<4x8xbf16> -> tensor<8x4xbf16>
    %g = arith.cmpi slt, %r, %r {tt.constancy = dense<4> : tensor<1xi32>} : tensor<8xi32>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<8x!tt.ptr<bf16>>
    %q = tt.addptr %s, %r : tensor<8x!tt.ptr<bf16>>, tensor<8xi32>
    %l = tt.load %q, %g evictionPolicy = evict_last : tensor<8x!tt.ptr<bf16>>""",
        )
    ).kernel
    by_name = {o.result.name: o for o in found.operations() if o.results}
    assert by_name["c"].attributes["value"] == -float("inf")
    assert by_name["h"].attributes["value"] == 0.6931471824645996
    assert by_name["t"].attributes["value"] is True
    assert by_name["d"].attributes["value"] == [1, -2]
    assert by_name["e"].integer("axis") == 0
    assert by_name["x"].integers("order") == [1, 0]
    assert by_name["g"].word("predicate") == "slt"
    assert by_name["g"].attributes["tt.constancy"] == "dense<4>"
    assert by_name["g"].result.type == Tensor((8,), Scalar("i1"))
    assert by_name["l"].result.type == Tensor((8,), Scalar("bf16"))
    assert by_name["l"].attributes["evictionPolicy"] == "evict_last"
    assert found.attributes[0] == {"tt.divisibility": 16}
    assert by_name["q"].operands[0] is by_name["s"].result


def test_branches_and_conditions() -> None:
    text = """
module {
  tt.func public @k(%n: i32, %b: i1) {
    cf.cond_br %b, ^bb1, ^bb2(%n : i32)
  ^bb1:
    %y:2 = scf.if %b -> (i32, i32) {
      scf.yield %n, %n : i32, i32
    } else {
      %z = arith.addi %n, %n : i32
      scf.yield %z, %n : i32, i32
    }
    %w = scf.while (%i = %n) : (i32) -> i32 {
      %g = arith.cmpi sgt, %i, %n : i32
      scf.condition(%g) %i : i32
    } do {
    ^bb0(%j: i32):
      %k = arith.subi %j, %n : i32
      scf.yield %k : i32
    }
    cf.br ^bb2(%y#1 : i32)
  ^bb2(%r: i32):
    tt.return
  }
}
"""
    found = parse(text).kernel
    assert [block.label for block in found.blocks] == ["", "bb1", "bb2"]
    branch = found.blocks[0].operations[0]
    assert [successor.block for successor in branch.successors] == found.blocks[1:]
    condition, loop, last = found.blocks[1].operations
    assert [len(region) for region in condition.regions] == [1, 1]
    assert loop.regions[1][0].arguments[0].name == "j"
    assert last.successors[0].operands == [condition.results[1]]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    %a = arith.addi %n, %m : i32", "line 3: a value defined before must come here"),
        ("    %a = arith.addi %n, %n : i64, i64", "are of types i32, i32"),
        ("    %n = arith.addi %n, %n : i32", "%n is defined twice"),
        ("    scf.for unsigned %i = %n to %n step %n : i32 {\n    }", "a loop of signed numbers"),
        ("    cf.br ^bb7", r"there is no block \^bb7"),
        ("    %a:2 = arith.addi %n, %n : i32", "has 1 results, not 2"),
        ("    %a = arith.constant dense<?> : i32", "is no part of TTIR|must come here"),
        ("    %a = arith.addi %n, %n : i32 loc(#loc9)", "#loc9 is defined nowhere"),
    ],
)
def test_what_is_no_ttir_is_refused_with_its_line(body: str, said: str) -> None:
    with pytest.raises(TtirError, match=said):
        parse(kernel("%n: i32", body))
