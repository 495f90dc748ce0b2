"""`bridge prove`: verdicts on kernels of others, and on the project's own."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import edits
import pytest
import torch
from compiling import output_of, run_compiling

from bridge.conformance.sandbox.wire import WireError
from bridge.proving.foreign import Foreign, ForeignError, Refused
from bridge.proving.kernel import Kernel
from bridge.proving.procedure import prove
from bridge.proving.recorded import decode
from bridge.proving.replay import place_of
from bridge.proving.verdict import LevelResult, Verdict
from bridge.proving.worker import Request
from bridge.ttir.compare import SCALE, Compared, Level, Shape, Wrong

ROOT = Path(__file__).resolve().parents[3]
FUSED = Path(__file__).parent / "kernels" / "fused_attention.py"
FAULTY = FUSED.with_name("faulty_rows.py")
_CAUSAL = (None, 0)
# Of a recording, as it is sent.
VIEW = {"storage": 0, "dtype": "float32", "offset": 0, "sizes": [4], "strides": [1]}
EMPTY = {"dtype": "float32", "size": 3, "origin": "empty"}
SUM = {"step": "computed", "operation": "sum", "to": VIEW, "operands": [VIEW], "dims": [0]}


class Few(Kernel):
    """A kernel on few shapes."""

    few: dict[Level, tuple[Shape, ...]]

    def shapes(self, level: Level) -> tuple[Shape, ...]:
        return self.few[level]


def verdict(
    process: Foreign,
    random: tuple[Shape, ...],
    formal: tuple[Shape, ...] = (),
    whole: tuple[Shape, ...] = (),
    **options: object,
) -> Verdict:
    subject = Few(process.name, process, **options)  # type: ignore[arg-type]
    subject.few = {"fields": random, "formal": formal, "rational": whole}
    return prove(subject, lean=lambda _: "no proof", seconds=30.0)


@pytest.fixture(scope="module")
def fused() -> Iterator[Foreign]:
    with Foreign(f"{FUSED}:attention_forward") as process:
        yield process


@pytest.fixture(scope="module")
def faulty() -> Iterator[Foreign]:
    with Foreign(f"{FAULTY}:rows") as process:
        yield process


def edit(
    folder: Path, old: str, new: str, *, file: Path = FUSED, kernel: str = "attention_forward"
) -> str:
    """The kernel of a copy of the file with this edit."""
    path = folder / "edited.py"
    edits.edit(file, old, new, path)
    return f"{path}:{kernel}"


def square(length: int, **more: object) -> Shape:
    given = {"q_len": length, "kv_len": length, "head_dim": 16, "value_dim": 16, **more}
    return Shape(**given)  # type: ignore[arg-type]


class TestFused:
    """A kernel in the manner of Triton's tutorial, both ways."""

    @pytest.mark.thorough
    def test_number_that_is_no_minus_infinity(self, fused: Foreign) -> None:
        found = verdict(fused, (square(48), square(48, heads=2, kv_heads=2, window=_CAUSAL)))
        assert found.word == "WRONG"
        assert found.status == 1
        finding = found.finding
        assert finding.shape == square(16, window=_CAUSAL)
        assert finding.program == (0, 0)
        assert finding.output == "output"
        assert found.levels[0].equal == [square(48)]
        assert "causal" in found.text()

    def test_declared_minus_infinity(self, fused: Foreign) -> None:
        shapes = (square(48, heads=2, kv_heads=2), square(48, window=_CAUSAL))
        found = verdict(fused, shapes, (square(16, window=_CAUSAL),), minus_infinity=(-1e6,))
        assert found.word == "EQUAL"
        assert found.status == 0
        assert [level.word for level in found.levels] == ["EQUAL", "EQUAL", None]
        assert found.levels[1].elements == 16 * 17
        assert found.roundings == {"f16"}
        text = found.text()
        assert "-1e+06 stands for −∞" in text
        assert "rounding to f16" in text
        assert 0 < found.error < 1e-5

    def test_products_of_less_precision_are_told(self, fused: Foreign) -> None:
        found = verdict(fused, (square(16),), dtype="float32")
        assert found.word == "EQUAL"
        assert found.roundings == {"tf32"}
        assert "tf32" in found.text()

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("old", "new", "length"),
        [
            # Of a single tile nothing is rescaled.
            ("acc * alpha[:, None]", "acc", 32),
            ("l_i * alpha", "l_i", 32),
            ("p.to(v.dtype), v,", "qk.to(v.dtype), v,", 16),
            ("first, stop, BLOCK_N)", "first, stop - BLOCK_N, BLOCK_N)", 16),
        ],
    )
    def test_faults(self, tmp_path: Path, old: str, new: str, length: int) -> None:
        with Foreign(edit(tmp_path, old, new)) as process:
            found = verdict(process, (square(64, batch=2, heads=2, kv_heads=2),))
        assert found.word == "WRONG"
        assert found.finding.shape == square(length)

    @pytest.mark.thorough
    def test_computed_by_pytorch(self, tmp_path: Path) -> None:
        old, new = "    return out, lse\n", "    return torch.sin(out)\n"
        with Foreign(edit(tmp_path, old, new)) as process:
            found = verdict(process, (square(16),))
        assert found.word == "CANNOT TELL"
        assert "aten.sin" in found.finding.what


def few(length: int) -> Shape:
    return square(length, heads=2, kv_heads=2, head_dim=4, value_dim=4, dtype=torch.float32)


class TestFaulty:
    """A kernel by whose autotuned configurations faults are planted; with tensor descriptors, and
    scores in base e."""

    def faulty(self, process: Foreign, fault: int) -> Verdict:
        shapes = (few(9), few(4))
        whole = (few(4), few(20))
        return verdict(process, shapes, shapes[1:], whole, configuration=fault, dtype="float32")

    def test_none(self, faulty: Foreign) -> None:
        found = self.faulty(faulty, 0)
        assert found.word == "EQUAL", found.text()
        assert [len(level.equal) for level in found.levels] == [2, 1, 2]
        assert found.notes == ["rows is autotuned: configuration 0 of 8 was taken"]

    def test_fault_has_shape_program_and_element(self, faulty: Foreign) -> None:
        found = self.faulty(faulty, 1)
        finding = found.finding
        assert found.word == "WRONG"
        shape = finding.shape
        # The smallest length that is no power of two; descriptors take no smaller head size.
        assert (shape.heads, shape.q_len, shape.kv_len, shape.head_dim) == (1, 3, 3, 4)
        assert finding.program == (0, 0)
        assert finding.element == (0, 0, 0, 0)
        assert "(v[0, 0, 2, 0])·2^(log2e·scale·q[0, 0, 0, 0]·k[0, 0, 2, 0] +" in finding.wanted
        assert finding.found != finding.wanted

    def test_maximum_of_another_sign(self, faulty: Foreign) -> None:
        found = self.faulty(faulty, 2)
        assert found.word == "WRONG"
        # Random numbers of fields have no order.
        assert found.levels[0].word == "EQUAL"
        assert "exp2 of a positive number" in found.finding.what

    def test_maximum_of_the_first_keys_alone(self, faulty: Foreign) -> None:
        """The other levels pass it: it shows beyond 16 keys, and numbers of the fields have no
        order."""
        found = self.faulty(faulty, 6)
        assert [level.word for level in found.levels] == ["EQUAL", "EQUAL", "WRONG"]
        finding = found.finding
        assert finding.shape.kv_len in range(17, 21)
        assert "exp2 of a positive number" in finding.what
        assert "Random whole numbers, by their order too: WRONG, as said above" in found.text()

    def test_log_sum_exp_has_formulas(self, faulty: Foreign) -> None:
        found = self.faulty(faulty, 7)
        finding = found.finding
        assert found.word == "WRONG"
        assert (finding.output, finding.element) == ("log-sum-exp", (0, 0, 0))
        # Of one key the denominator is 1.
        assert finding.found == "0"
        assert finding.wanted.startswith("ln[(1)·2^(log2e·scale·q[0, 0, 0, 0]·k[0, 0, 0, 0] + ")
        text = found.text()
        assert "Random numbers of two prime fields: WRONG, as said above" in text
        assert "no shape was run" not in text

    def test_what_cannot_be_told(self, faulty: Foreign) -> None:
        found = self.faulty(faulty, 3)
        assert found.word == "CANNOT TELL"
        assert found.status == 3
        lines = FAULTY.read_text("utf-8").splitlines()
        line = next(i for i, text in enumerate(lines, 1) if "tl.sin" in text)
        assert found.finding.operation == f"math.sin at {FAULTY}:{line}"

    @pytest.mark.parametrize(
        ("fault", "kind", "operation"),
        [(4, "outside its tensor", "tt.load"), (5, "stored by two programs", "tt.store")],
    )
    def test_violations(self, faulty: Foreign, fault: int, kind: str, operation: str) -> None:
        found = self.faulty(faulty, fault)
        assert found.word == "WRONG"
        assert kind in found.finding.what
        assert re.match(rf"{operation} at .*faulty_rows.py:\d+$", found.finding.operation)
        assert found.finding.program is not None


def request(length: int, **more: object) -> Request:
    given = {
        "batch": 1, "heads": 2, "kv_heads": 2, "q_len": length, "kv_len": length, "head_dim": 16,
        "value_dim": 16, "causal": False, "scale": SCALE, "dtype": "float16", "layout": "bhnd",
        "arch": 90, "configuration": 0, **more,
    }  # fmt: skip
    return Request(**given)  # type: ignore[arg-type]


class TestForeign:
    def test_launch_is_recorded(self, fused: Foreign) -> None:
        found = fused.record(request(64))
        (launch,) = found.launches
        assert launch.kernel == "attention_forward"
        assert launch.grid == (4, 2)
        arguments = dict(launch.arguments)
        assert arguments["scale"] == SCALE
        assert arguments["stride_h"] == 1024
        assert place_of(launch, 5) == (1, 1)
        assert place_of(launch, 1) == (1, 0)
        origins = [found.storages[view.storage].origin for view in found.outputs]
        assert origins == ["empty", "empty"]

    def test_refused(self, fused: Foreign) -> None:
        with pytest.raises(Refused, match=r"ValueError at fused_attention.py:\d+: query and key"):
            fused.record(request(33))

    @pytest.mark.thorough
    @pytest.mark.parametrize(
        ("kernel", "sentence"),
        [
            ("nothing", "has no 'nothing'"),
            ("_pass", "_pass is a kernel, and .* has no function launch__pass"),
            ("BLOCK_M", "is of type int, which cannot be called"),
        ],
    )
    def test_no_kernel(self, kernel: str, sentence: str) -> None:
        with pytest.raises(ForeignError, match=sentence), Foreign(f"{FUSED}:{kernel}"):
            pass

    @pytest.mark.parametrize(
        ("change", "sentence"),
        [
            ({"storages": [EMPTY]}, "larger than its storage"),
            ({"storages": []}, "of which there are less"),
            ({"gradients": [VIEW]}, "1 gradients"),
            ({"outputs": [{**VIEW, "dtype": "float8"}]}, "a dtype that is none of float64, "),
            ({"outputs": [{**VIEW, "strides": []}]}, "0 strides for 1 sizes"),
            ({"storages": [{**EMPTY, "origin": "integers", "detail": [1]}]}, "1 integers for a st"),
            ({"storages": [{**EMPTY, "origin": "given", "detail": "a\x1b"}]}, "matching regex"),
            ({"steps": [{**SUM, "operands": [VIEW, 1.0]}]}, "sum of 2 operands"),
            ({"steps": [{**SUM, "operation": "max"}]}, "Invalid enum value 'max'"),
        ],
    )
    def test_what_is_sent_is_looked_at(self, change: dict[str, Any], sentence: str) -> None:
        whole = {"storages": [{**EMPTY, "size": 4}], "outputs": [VIEW], "steps": [SUM]}
        assert decode(whole).outputs[0].last == 3
        with pytest.raises(WireError, match=sentence):
            decode({**whole, **change})


def test_verdict_without_shapes_is_not_equal() -> None:
    found = Verdict("k", [LevelResult("fields"), LevelResult("formal")], set(), "", 0.0, [])
    assert found.word == "CANNOT TELL"


@pytest.mark.parametrize("by_numbers", [0, 1])
def test_formulas_that_numbers_contradict_are_not_wrong(by_numbers: int) -> None:
    class Subject(Few):
        def __init__(self) -> None:
            self.notes = []
            self.name = "k"

        def compare(
            self, shape: Shape, level: Level, seed: int = 0, only: object = None
        ) -> Compared:
            differ = level == "formal" or (by_numbers and shape.q_len == 3)
            wrong = [Wrong("output", (0, 0, 0, 0), -1, "x + y", "y + x")] if differ else []
            return Compared(1, len(wrong), wrong)

    subject = Subject()
    subject.few = {"fields": (square(4),), "formal": (square(3),), "rational": ()}
    found = prove(subject, lean=lambda _: "", seconds=1.0)
    words = [level.word for level in found.levels[:2]]
    assert words == ["EQUAL", ("CANNOT TELL", "WRONG")[by_numbers]]


def command(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return run_compiling("-m", "bridge", "prove", *arguments, folder=folder)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["forwards"], "'forwards' is given; forward, varlen, decode, combine, backward, flex"),
        (["nowhere.py:kernel"], "there is no Python file 'nowhere.py'"),
        (["forward", "--seconds", "0"], "--seconds: 0 is not a number of seconds above 0"),
    ],
)
def test_misuse(arguments: list[str], sentence: str) -> None:
    done = command(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


class TestPage:
    """The commands and results of docs/prove.md are right."""

    @pytest.mark.thorough
    def test_example(self, tmp_path: Path) -> None:
        page = (ROOT / "docs" / "prove.md").read_text("utf-8")
        code, line = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
        wrong, equal, gradients = re.findall(r"```\n((?:WRONG|EQUAL).*?)\n```", page)
        options = ("my_kernel.py:rows", "--dtype", "float32", "--seconds", "1")
        file = tmp_path / "my_kernel.py"
        file.write_text(code, "utf-8")
        done = command(*options, "--json", "verdict.json", folder=tmp_path)
        assert done.returncode == 1, done.stderr
        assert done.stdout.startswith(wrong + "\n")
        found = json.loads((tmp_path / "verdict.json").read_text("utf-8"))
        assert found["verdict"] == "WRONG"
        assert found["finding"]["shape"]["kv_len"] == 3
        before = "    weights ="
        assert code.count(before) == 1
        file.write_text(code.replace(before, line + before), "utf-8")
        done = command(*options, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(equal + "\n")
        assert "All inputs" in done.stdout
        assert "bhnd" not in done.stdout
        done = command(gradients.removeprefix("EQUAL: "), "--backward", "--seconds", "1")
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(gradients + "\n")


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["forward", "varlen", "decode", "combine", "backward"])
def test_own_kernels(name: str) -> None:
    done = command(name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(f"EQUAL: {name}\n")
    assert done.stdout.count("elements equal") == 3
    proved = {
        "forward": "Full.lean, of which kernel-full, kernel-full-lse, ",
        "varlen": "PackedFull.lean, of which kernel-packed, kernel-packed-lse, ",
    }
    assert ("no theorem is about" in done.stdout) == (name not in proved)
    for kernel, words in proved.items():
        assert (words in done.stdout) == (name == kernel)


_SAID = """
import json, sys
from pathlib import Path
from bridge.proving.lean import describe_texts
from bridge.ttir.texts import TEXTS

full = TEXTS[:1]
print(json.dumps([
    *(describe_texts("forward", Path(root), full) for root in sys.argv[1:]),
    describe_texts("varlen", classes=full),
    describe_texts("varlen", classes=[text for text in TEXTS if text.name == "PackedFull"]),
]))
"""


@pytest.mark.thorough
def test_theorems_of_the_compiled_text(tmp_path: Path) -> None:
    """In a process where Triton compiles, of the committed Lean, of an edited one and of none."""
    committed = "Attention/Kernel/Generated/Full.lean"
    edited_lean, none = tmp_path / "edited", tmp_path / "none"
    (edited_lean / committed).parent.mkdir(parents=True)
    text = (ROOT / committed).read_text("utf-8")
    assert "Flt.mul (" in text
    (edited_lean / committed).write_text(text.replace("Flt.mul (", "Flt.add (", 1), "utf-8")
    said = output_of(_SAID, ROOT, edited_lean, none, TRITON_INTERPRET="0")
    same, other, nothing, no_class, packed = json.loads(said)
    ids = (
        "kernel-full, kernel-full-lse, kernel-full-real, kernel-full-lse-real, "
        "kernel-full-accesses, kernel-full-exponents, kernel-full-integers"
    )
    assert same == f"without a window, the compiled text is {committed}, of which {ids} speak"
    assert other.endswith(f"is not {committed}: no theorem speaks of it")
    assert nothing.startswith("not compared, since there is no folder")
    assert no_class == ""
    ids = (
        "kernel-packed, kernel-packed-lse, kernel-packed-real, kernel-packed-lse-real, "
        "kernel-packed-accesses, kernel-packed-exponents, kernel-packed-integers"
    )
    where = "without a window, sequences packed, the compiled text is"
    assert packed == f"{where} {committed.replace('Full', 'PackedFull')}, of which {ids} speak"
