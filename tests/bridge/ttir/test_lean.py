"""Kernels in Lean: the text that each comes to, and which kernels come to one text."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from compiling import output_of
from ttir_cases import kernel

from bridge.ttir import texts
from bridge.ttir.lean import Translation, numeric, translate
from bridge.ttir.lean_text import DEF
from bridge.ttir.parse import parse
from bridge.ttir.syntax import Block, Function, Operation, TtirError, element_of

ROOT = Path(__file__).resolve().parents[3]

# Adds 1 to 16 numbers below n.
_ADD = """
    %range = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32>
    %pid = tt.get_program_id x : i32
    %size = arith.constant 16 : i32
    %first = arith.muli %pid, %size : i32 loc("first"("k.py":1:0))
    %splat = tt.splat %first : i32 -> tensor<16xi32>
    %rows = arith.addi %splat, %range : tensor<16xi32> loc("rows"("k.py":2:0))
    %many = tt.splat %n : i32 -> tensor<16xi32>
    %inside = arith.cmpi slt, %rows, %many : tensor<16xi32> loc("inside"("k.py":3:0))
    %ptr = tt.splat %p : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %at = tt.addptr %ptr, %rows : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc("at"("k.py":4:0))
    %zero = arith.constant dense<0.000000e+00> : tensor<16xf32>
    %x = tt.load %at, %inside, %zero : tensor<16x!tt.ptr<f32>> loc("x"("k.py":5:0))
    %one = arith.constant dense<1.000000e+00> : tensor<16xf32>
    %y = arith.addf %x, %one : tensor<16xf32> loc("x"("k.py":6:0))
    %out = tt.splat %o : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
    %to = tt.addptr %out, %rows : tensor<16x!tt.ptr<f32>>, tensor<16xi32> loc("to"("k.py":7:0))
    tt.store %to, %y, %inside : tensor<16x!tt.ptr<f32>>
"""
_ARGUMENTS = "%p: !tt.ptr<f32>, %n: i32, %o: !tt.ptr<f32>"


def _definitions(found: Translation) -> list[str]:
    return [*found.definitions, *found.conditions]


def _translate(body: str, arguments: str = _ARGUMENTS) -> Translation:
    return translate(parse(kernel(arguments, body)).kernel, "K", {"BLOCK": 16})


def test_each_value_has_a_definition_named_by_its_variable() -> None:
    found = _translate(_ADD)
    assert found.fields["p"] == "Mem (Flt R)"
    assert found.fields["n"] == "Int"
    assert found.fields["BLOCK"] == "Nat"
    binders = "(a : K.Args R) (pid : Int)"
    assert _definitions(found) == [
        f"{DEF} K.first {binders} : Int :=\n  pid * (a.BLOCK : Int)",
        f"{DEF} K.rows {binders} : Nat → Int :=\n  fun i => (K.first a pid) + (i : Int)",
        f"{DEF} K.inside {binders} : Nat → Bool :=\n  fun i => decide ((K.rows a pid i) < a.n)",
        f"{DEF} K.at {binders} : Nat → Int :=\n  fun i => (0 : Int) + (K.rows a pid i)",
        f"{DEF} K.load_x_1 {binders} : Nat → Access :=\n"
        "  fun i => ⟨(K.inside a pid i), (K.at a pid i)⟩",
        f"{DEF} K.x_1 {binders} : Nat → Flt R :=\n"
        "  fun i => (K.load_x_1 a pid i).read a.p (Flt.num 0)",
        f"{DEF} K.x {binders} : Nat → Flt R :=\n  fun i => Flt.add (K.x_1 a pid i) (Flt.num 1)",
        f"{DEF} K.to {binders} : Nat → Int :=\n  fun i => (0 : Int) + (K.rows a pid i)",
        "/-- What is stored behind `o`. -/\n"
        f"{DEF} K.store_o {binders} : Nat → Store (Flt R) :=\n"
        "  fun i => ⟨⟨(K.inside a pid i), (K.to a pid i)⟩, (K.x a pid i)⟩",
        "/-- What `P` asks of each access. -/\n"
        f"{DEF} K.Accesses {binders}\n    (P : K.Pointers (Access → Prop)) : Prop :=\n"
        "  (∀ i < a.BLOCK, P.p (K.load_x_1 a pid i)) ∧\n"
        "  (∀ i < a.BLOCK, P.o (K.store_o a pid i).toAccess)",
        "/-- `P` of each argument of exp2. -/\n"
        f"{DEF} K.Exponents {binders}\n    (P : Flt R → Prop) : Prop :=\n  True",
        "/-- No integer operation overflows. -/\n"
        f"{DEF} K.NoOverflow {binders}\n    : Prop :=\n"
        "  (FitsI32 (K.first a pid)) ∧\n"
        "  (∀ i < a.BLOCK, FitsI32 (K.rows a pid i)) ∧\n"
        "  (∀ i < a.BLOCK, FitsI64 (K.at a pid i)) ∧\n"
        "  (∀ i < a.BLOCK, FitsI64 (K.to a pid i))",
    ]


def test_tile_sizes_are_variables() -> None:
    wider = parse(kernel(_ARGUMENTS, _ADD.replace("16", "64"))).kernel
    found = _translate(_ADD)
    assert _definitions(found) == _definitions(translate(wider, "K", {"BLOCK": 64}))
    assert found.at({"BLOCK": 64}) == numeric(wider, "K")
    assert found.at({"BLOCK": 32}) != numeric(wider, "K")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("arith.cmpi slt", "arith.cmpi sle"),
        ("arith.addf %x, %one", "arith.subf %x, %one"),
        ("arith.addf %x, %one", "arith.addf %one, %one"),
        ("tt.load %at, %inside, %zero", "tt.load %at, %inside, %one"),
        ("tt.store %to, %y, %inside", "tt.store %to, %y"),
    ],
)
def test_another_operation_is_another_text(old: str, new: str) -> None:
    one = "    %one = arith.constant dense<1.000000e+00> : tensor<16xf32>\n"
    text = one + _ADD.replace(one, "")
    assert old in text
    assert _translate(text.replace(old, new)).definitions != _translate(text).definitions


def test_names_that_the_text_or_a_proof_has_too() -> None:
    """Of variables with such names, and of one that is named as another's first value would be."""
    for name in ("result", "problem", "store_o", "x_1", "accesses", "Exponents"):
        found = _translate(_ADD.replace('loc("inside"', f'loc("{name}"'))
        names = [re.findall(r"def (\S+)", text)[0] for text in _definitions(found)]
        assert f"K.{name}_" in names
        assert len(set(names)) == len(names) == 12


def test_numbers_below_0() -> None:
    found = _translate(_ADD.replace("1.000000e+00", "-1.000000e+03")).definitions
    (text,) = (one for one in found if "def K.x " in one)
    assert text.endswith("Flt.add (K.x_1 a pid i) (Flt.num (-1000))")


def test_a_load_without_a_mask_is_an_access_that_takes_place() -> None:
    bare = _ADD.replace("tt.load %at, %inside, %zero", "tt.load %at")
    (access,) = (x for x in _translate(bare).definitions if "def K.load_x_1" in x)
    assert access.endswith("fun i => ⟨true, (K.at a pid i)⟩")


def test_divisions_are_listed_with_their_divisors() -> None:
    divided = _ADD.replace("arith.muli %pid, %size", "arith.remsi %pid, %n")
    found = _translate(divided).conditions[-1]
    assert "(FitsI32 (K.first a pid)) ∧\n  (a.n ≠ 0) ∧\n  (FitsI32 (Int.tdiv pid a.n)) ∧" in found


_RETURN = """
    %done = arith.cmpi sle, %n, %pid : i32 loc("done"("k.py":1:0))
    cf.cond_br %done, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
"""


def test_after_a_return_nothing_is_asked_of_programs_that_returned() -> None:
    pid = "    %pid = tt.get_program_id x : i32\n"
    found = _translate(pid + _RETURN + _ADD.replace(pid, "")).conditions
    asked = "((!(K.done a pid)) = true → ∀ i < a.BLOCK, P.p (K.load_x_1 a pid i))"
    assert asked in " ".join("\n".join(found).split())


# The operations that integers come from, and no value of which is one of its operands.
_INTEGER_RESULT = re.compile(r"(?:i32|i64|!tt\.ptr<.*>)$")
_CHOSEN = {"arith.minsi", "arith.maxsi", "arith.select", "tt.load", "arith.extsi"}
_PLACED = {
    "arith.constant", "tt.get_program_id", "tt.make_range", "tt.splat", "tt.expand_dims",
    "tt.broadcast", "tt.trans",
}  # fmt: skip


def _operations(blocks: list[Block]) -> Iterator[Operation]:
    """Those of the kernel's body and of its loops, not those that a reduction combines by."""
    for block in blocks:
        for operation in block.operations:
            yield operation
            if operation.name == "scf.for":
                for region in operation.regions:
                    yield from _operations(region)


def _of_integers(operation: Operation) -> bool:
    if operation.name in _CHOSEN | _PLACED or len(operation.results) != 1:
        return False
    kind = element_of(operation.result.type)
    return _INTEGER_RESULT.match(str(kind)) is not None


# The texts in TTIR. This process has Triton interpret kernels.
_TTIR = """
import json
from bridge.ttir import texts
from bridge.ttir.source import of_launch
launches = {text.name: texts.apart(text) for text in texts.TEXTS}
found = {name: [of_launch(x).text, texts.sizes_of(x)] for name, x in launches.items()}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def compiled() -> dict[str, tuple[Function, dict[str, int]]]:
    """By name the texts as Triton compiles them, and their tile sizes."""
    found = json.loads(output_of(_TTIR))
    return {name: (parse(text).kernel, sizes) for name, (text, sizes) in found.items()}


@pytest.mark.thorough
@pytest.mark.parametrize("name", [text.name for text in texts.TEXTS])
def test_all_operations_of_a_text_are_listed(
    name: str, compiled: dict[str, tuple[Function, dict[str, int]]]
) -> None:
    kernel, sizes = compiled[name]
    operations = list(_operations(kernel.blocks))
    translated = translate(kernel, name, sizes)
    definitions = "\n".join(_definitions(translated))
    names = Counter(operation.name for operation in operations)
    assert names["tt.load"]
    assert names["math.exp2"]
    assert len(re.findall(r"P\.\w+_ptr \(", definitions)) == names["tt.load"] + names["tt.store"]
    exponents = re.findall(r"[ (]P\s+\(", definitions)
    assert len(exponents) == names["math.exp2"]
    integers = sum(map(_of_integers, operations))
    divisions = names["arith.divsi"] + names["arith.remsi"]
    assert len(re.findall(r"FitsI(?:32|64) ", definitions)) == integers + names["arith.remsi"]
    assert definitions.count("≠ 0)") == divisions
    # Every read of memory goes through an access that is listed.
    assert (
        len(re.findall(r"\.read\s+a\.\w+_ptr|a\.\w+_ptr \(.*\)\.offset", definitions))
        == (names["tt.load"])
    )
    assert len(re.findall(r"a\.\w+_ptr\b", definitions)) == names["tt.load"]


_EVERY = """
from bridge.ttir import texts
if texts.is_compared():
    for text in texts.TEXTS:
        print(texts.differing_launches(text, texts.ARCHITECTURES, every=True) or "", end="")
"""


@pytest.mark.thorough
def test_every_launch_comes_to_the_text_of_its_class() -> None:
    """Each size in each dtype, for each compute capability."""
    assert output_of(_EVERY) == ""


def test_what_has_no_translation_is_refused() -> None:
    with pytest.raises(TtirError, match=r"math\.sin.*has no translation"):
        _translate(_ADD.replace("arith.addf %x, %one", "math.sin %x"))
    with pytest.raises(TtirError, match="p has no translation: it is both loaded from and stored"):
        _translate(_ADD.replace("tt.splat %o", "tt.splat %p"))
    under = "scf.if %some {\n    tt.store %to, %y, %inside : tensor<16x!tt.ptr<f32>>\n    }"
    some = "    %some = arith.cmpi slt, %pid, %n : i32\n"
    store = "    tt.store %to, %y, %inside : tensor<16x!tt.ptr<f32>>\n"
    with pytest.raises(TtirError, match=r"scf\.if.*has no translation: it has no value"):
        _translate(_ADD.replace(store, f"{some}    {under}\n"))
    for literal in ("1.500000e+00", "0x7F800000"):
        with pytest.raises(TtirError, match="stands for no number"):
            _translate(_ADD.replace("1.000000e+00", literal))
    with pytest.raises(TtirError, match="tile sizes must differ"):
        translate(parse(kernel(_ARGUMENTS, _ADD)).kernel, "K", {"A": 16, "B": 16})


_SUM = """
    %sum = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%c: f32, %d: f32):
      %e = arith.addf %c, %d : f32
      tt.reduce.return %e : f32
    }) : (tensor<16xf32>) -> f32 loc("sum"("k.py":8:0))
    %all = tt.splat %sum : f32 -> tensor<16xf32>
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("%c, %d", "%c, %c"),
        ("%c, %d", "%d, %d"),
        ("tt.reduce.return %e", "tt.reduce.return %d"),
        ("arith.addf %c, %d", "arith.subf %c, %d"),
    ],
)
def test_a_reduction_is_a_sum_of_all_elements_or_refused(old: str, new: str) -> None:
    store = "    tt.store"
    stored = _ADD.replace(store, _SUM + store).replace("%to, %y,", "%to, %all,")
    (text,) = (one for one in _translate(stored).definitions if "def K.sum " in one)
    assert text.endswith("Flt.sum a.BLOCK fun n => (K.x a pid n)")
    assert old in stored
    with pytest.raises(TtirError, match=r"%sum = tt\.reduce .* has no translation"):
        _translate(stored.replace(old, new))


def test_an_address_that_is_chosen_is_refused() -> None:
    chosen = """
    %else = arith.select %inside, %to, %at : tensor<16xi1>, tensor<16x!tt.ptr<f32>>
    tt.store %else,"""
    with pytest.raises(TtirError, match="no translation: its pointer is no argument with offsets"):
        _translate(_ADD.replace("    tt.store %to,", chosen))


# The text that docs/kernel.md shows a part of.
_TEXT = """
from bridge.ttir import texts
from bridge.ttir.source import of_launch
print(of_launch(texts.TEXTS[0].launch(blocks=(32, 64))).text if texts.is_compared() else "")
"""
_LOCATION = re.compile(r" loc\((?:[^()\"]|\"[^\"]*\"|\((?:[^()\"]|\"[^\"]*\")*\))*\)")


def test_the_chapter_shows_what_triton_prints() -> None:
    page = (ROOT / "docs" / "kernel.md").read_text("utf-8")
    assert " and ".join(texts.COMPARED) in page
    (shown,) = re.findall(r"```mlir\n(.*?)\n```", page, re.DOTALL)
    text = output_of(_TEXT)
    if not text.strip():
        pytest.skip(f"nothing is known of the text of {texts.triton_version()}")
    printed = [_LOCATION.sub("", line).strip() for line in text.splitlines()]
    lines = shown.splitlines()
    windows = [printed[n : n + len(lines)] for n in range(len(printed))]
    assert _renumber(lines) in map(_renumber, windows)


def _renumber(lines: list[str]) -> str:
    """Triton numbers the values of a name through the whole text; here each has its place among the
    values of these lines."""
    seen: dict[str, int] = {}

    def place(value: re.Match[str]) -> str:
        return f"%{value[1]}:{seen.setdefault(value[0], len(seen))}"

    return re.sub(r"%([a-z]\w*?)(?:_\d+)?\b", place, "\n".join(lines))
