"""Kernels in Lean: the text that each comes to, and which kernels come to one text."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ttir_cases import FAULTS, kernel

from bridge.ttir import texts
from bridge.ttir.lean import Translation, numeric, translate
from bridge.ttir.parse import parse
from bridge.ttir.syntax import TtirError

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
    tt.store %at, %y, %inside : tensor<16x!tt.ptr<f32>>
"""
_ARGUMENTS = "%p: !tt.ptr<f32>, %n: i32"


def _translated(body: str, arguments: str = _ARGUMENTS) -> Translation:
    return translate(parse(kernel(arguments, body)).kernel, "K", {"BLOCK": 16})


def test_each_value_has_a_definition_named_by_its_variable() -> None:
    found = _translated(_ADD)
    assert found.fields["p"] == "Mem (Flt R)"
    assert found.fields["n"] == "Int"
    assert found.fields["BLOCK"] == "Nat"
    binders = "(a : K.Args R) (pid : Int)"
    assert found.definitions == [
        f"@[expose] def K.first {binders} : Int :=\n  pid * (a.BLOCK : Int)",
        f"@[expose] def K.rows {binders} : Nat → Int :=\n  fun i => (K.first a pid) + (i : Int)",
        f"@[expose] def K.inside {binders} : Nat → Bool :=\n"
        "  fun i => decide ((K.rows a pid i) < a.n)",
        f"@[expose] def K.at {binders} : Nat → Int :=\n  fun i => (0 : Int) + (K.rows a pid i)",
        f"@[expose] def K.x_1 {binders} : Nat → Flt R :=\n"
        "  fun i => if (K.inside a pid i) then a.p (K.at a pid i) else (Flt.num 0)",
        f"@[expose] def K.x {binders} : Nat → Flt R :=\n"
        "  fun i => Flt.add (K.x_1 a pid i) (Flt.num 1)",
        "/-- What is stored behind `p`. -/\n"
        f"@[expose] def K.store_p {binders} : Nat → Store (Flt R) :=\n"
        "  fun i => ⟨⟨(K.inside a pid i), (K.at a pid i)⟩, (K.x a pid i)⟩",
    ]


def test_tile_sizes_are_variables() -> None:
    wider = parse(kernel(_ARGUMENTS, _ADD.replace("16", "64"))).kernel
    found = _translated(_ADD)
    assert found.definitions == translate(wider, "K", {"BLOCK": 64}).definitions
    assert found.at({"BLOCK": 64}) == numeric(wider, "K")
    assert found.at({"BLOCK": 32}) != numeric(wider, "K")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("arith.cmpi slt", "arith.cmpi sle"),
        ("arith.addf %x, %one", "arith.subf %x, %one"),
        ("arith.addf %x, %one", "arith.addf %one, %one"),
        ("tt.load %at, %inside, %zero", "tt.load %at, %inside, %one"),
        ("tt.store %at, %y, %inside", "tt.store %at, %y"),
    ],
)
def test_another_operation_is_another_text(old: str, new: str) -> None:
    one = "    %one = arith.constant dense<1.000000e+00> : tensor<16xf32>\n"
    text = one + _ADD.replace(one, "")
    assert old in text
    assert _translated(text.replace(old, new)).definitions != _translated(text).definitions


def test_what_has_no_translation_is_refused() -> None:
    with pytest.raises(TtirError, match=r"math\.sin.*has no translation"):
        _translated(_ADD.replace("arith.addf %x, %one", "math.sin %x"))
    with pytest.raises(TtirError, match="stands for no number"):
        _translated(_ADD.replace("1.000000e+00", "1.500000e+00"))
    with pytest.raises(TtirError, match="tile sizes must differ"):
        translate(parse(kernel(_ARGUMENTS, _ADD)).kernel, "K", {"A": 16, "B": 16})


_CHILD = """
import json, sys
from pathlib import Path
from bridge.ttir import texts
print(json.dumps(texts.differing(Path(sys.argv[1]), texts.texts())))
"""


def _differing(folder: Path, fault: tuple[str, str, str] | None) -> list[str]:
    """Which committed texts are not what the kernels with this fault come to."""
    shutil.copytree(
        ROOT / "pyimpl", folder / "pyimpl", ignore=shutil.ignore_patterns("__pycache__")
    )
    if fault is not None:
        name, old, new = fault
        path = folder / "pyimpl" / "kernels" / name
        text = path.read_text("utf-8")
        assert old in text
        path.write_text(text.replace(old, new), "utf-8")
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-P", "-c", _CHILD, str(ROOT)],
        cwd=folder, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_the_committed_texts_are_what_triton_compiles(tmp_path: Path) -> None:
    assert _differing(tmp_path, None) == []


@pytest.mark.parametrize(
    "fault",
    [
        "o not rescaled",
        *(
            pytest.param(name, marks=pytest.mark.thorough)
            for name in FAULTS
            if name != "o not rescaled"
        ),
    ],
)
def test_a_faulty_kernel_is_another_text(tmp_path: Path, fault: str) -> None:
    found = _differing(tmp_path, FAULTS[fault])
    # A fault in the code of masks or edges leaves a text without them as it is.
    assert "Attention/Kernel/Generated/Causal.lean" in found


_PACKED = ("PackedCausal", "PackedCausalEnd", "PackedFull", "PackedWindow", "PackedWindowEnd")
# Faults that some texts alone have: file, old, new, and the texts.
_PARTIAL = {
    "a sequence begins with the one after it": (
        ("_sequences.py", "first = tl.load(cu_ptr + sequence * stride)",
         "first = tl.load(cu_ptr + (sequence + 1) * stride)"),
        _PACKED,
    ),
    "a tile behind the queries returns too late": (
        ("forward.py", "if row_first >= q_len:", "if row_first > q_len:"), _PACKED,
    ),
    "the alignment is one off": (
        ("forward.py", "shift = shift + kv_len - q_len", "shift = shift + kv_len - q_len + 1"),
        ("PackedCausalEnd", "PackedWindowEnd"),
    ),
    "the left edge is one off": (
        ("_bounds.py", "first = tl.maximum(row_first + shift - left, 0)",
         "first = tl.maximum(row_first + shift - left + 1, 0)"),
        ("Left", "PackedWindow", "PackedWindowEnd", "PaddedWindow", "Window"),
    ),
    "padding of a head is loaded": (
        ("_loop.py", "or PAGE_SIZE is not None or not EVEN_D:", "or PAGE_SIZE is not None:"),
        ("PaddedCausal", "PaddedFull", "PaddedWindow"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    "fault",
    [pytest.param(x, marks=pytest.mark.thorough if n else ()) for n, x in enumerate(_PARTIAL)],
)
def test_a_fault_changes_the_texts_that_have_it(tmp_path: Path, fault: str) -> None:
    edit, names = _PARTIAL[fault]
    found = _differing(tmp_path, edit)
    assert set(found) >= {f"Attention/Kernel/Generated/{name}.lean" for name in names}


_EVERY = """
from bridge.ttir import texts
if texts.is_compared():
    for text in texts.TEXTS:
        print(texts.differing_launches(text, texts.ARCHITECTURES, every=True) or "", end="")
"""


@pytest.mark.thorough
def test_every_launch_comes_to_the_text_of_its_class() -> None:
    """Each size in each dtype, for each compute capability."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _EVERY],
        env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""


# What means the same in other words, or says nothing to Triton.
_HARMLESS = {
    "a comment": ("_loop.py", "    l = alpha * l", "    # The denominator.\n    l = alpha * l"),
    "lines moved": ("forward.py", '"""Attention\'s forward', '"""\n\nAttention\'s forward'),
}


@pytest.mark.parametrize("edit", _HARMLESS)
def test_a_harmless_edit_is_the_same_text(tmp_path: Path, edit: str) -> None:
    assert _differing(tmp_path, _HARMLESS[edit]) == []


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
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", _TEXT],
        env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if not done.stdout.strip():
        pytest.skip(f"nothing is known of the text of {texts.triton_version()}")
    printed = [_LOCATION.sub("", line).strip() for line in done.stdout.splitlines()]
    lines = shown.splitlines()
    windows = [printed[n : n + len(lines)] for n in range(len(printed))]
    assert _numbered(lines) in map(_numbered, windows)


def _numbered(lines: list[str]) -> str:
    """Triton numbers the values of a name through the whole text; here each has its place among the
    values of these lines."""
    seen: dict[str, int] = {}

    def placed(value: re.Match[str]) -> str:
        return f"%{value[1]}:{seen.setdefault(value[0], len(seen))}"

    return re.sub(r"%([a-z]\w*?)(?:_\d+)?\b", placed, "\n".join(lines))
