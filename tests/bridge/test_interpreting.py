"""Whether Triton is interpreted is settled where a process begins, and nowhere else."""

from __future__ import annotations

import json
import os
import pickle
from dataclasses import replace
from pathlib import Path

import committed
import pytest
from compiling import output_of
from small_verify import SmallVerify

ROOT = Path(__file__).resolve().parents[2]


# Of torch nothing is asked but whether there is a GPU; with Triton comes the real one.
SETTLE = """
import os, sys, types
if sys.argv[2] == "imported":
    import torch
    import triton
else:
    torch = sys.modules["torch"] = types.ModuleType("torch")
    torch.cuda = types.SimpleNamespace()
torch.cuda.is_available = lambda: sys.argv[1] == "gpu"
from bridge import interpreting
interpreting.settle(*map(eval, sys.argv[3:]))
print(os.environ.get("TRITON_INTERPRET"))
"""


@pytest.mark.parametrize(
    ("case", "given", "found"),
    [
        (("none", "first"), {}, "1"),
        (("gpu", "first"), {}, "None"),
        (("gpu", "first", "True"), {}, "1"),
        (("none", "first", "False"), {"TRITON_INTERPRET": "1"}, "None"),
        # The user's own choice stays, and nothing is of use after Triton's import.
        (("none", "first"), {"TRITON_INTERPRET": "0"}, "0"),
        (("none", "imported"), {}, "None"),
    ],
)
def test_triton_is_interpreted_where_there_is_no_gpu(
    case: tuple[str, ...], given: dict[str, str], found: str
) -> None:
    assert output_of(SETTLE, *case, **given).strip() == found


def test_the_tests_are_settled() -> None:
    assert os.environ["TRITON_INTERPRET"] == "1"


TOO_LATE = """
import json, os, pickle, sys
import torch, pyimpl
x = torch.zeros(1, 1, 2, 4)
pyimpl.attention(x, x, x, backend="tiled")
assert "triton" in sys.modules, "the first call imports it"
os.environ["TRITON_INTERPRET"] = "1"
from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.judging.run import run
with open(sys.argv[1], "rb") as file:
    families = pickle.load(file)
result = run(PyimplTriton(), families, "float32")
operations = {f.name: f.operation for f in families}
print(json.dumps([(operations[v.family], v.status, v.reason) for v in result.vectors]))
"""


@pytest.mark.thorough
def test_a_kernel_that_cannot_run_here_is_unsupported(tmp_path: Path) -> None:
    """Triton is imported without its interpreter, and TRITON_INTERPRET is set afterwards."""
    one_of_each = {f.operation: replace(f, vectors=f.vectors[:1]) for f in committed.everything()}
    path = tmp_path / "families"
    path.write_bytes(pickle.dumps(list(one_of_each.values())))
    found = json.loads(output_of(TOO_LATE, path))
    assert {operation for operation, _, _ in found} == set(one_of_each)
    assert {status for _, status, _ in found} == {"unsupported"}
    why = {reason for operation, _, reason in found if operation == "attention"}
    assert len(why) == 1
    assert "set TRITON_INTERPRET=1 before the first call of pyimpl" in why.pop()


@pytest.mark.thorough
def test_an_audit_that_fails_changes_nothing_for_the_kernels(tmp_path: Path) -> None:
    """One worker runs the tile loop, whose first call imports Triton, and then the kernels."""
    names = ("small-random", "scales", "gradient", "varlen")
    run = SmallVerify(tmp_path, [f for name in names for f in committed.some(name, 3)])
    status, output = run.whole(
        # The modules that both threads import are there before the second begins.
        "import sys\n"
        "there = {'triton.language.core', 'pyimpl.backends.kernels.forward'} <= set(sys.modules)\n"
        "raise ToolchainError(f'the audit was made to fail; imported: {there}')",
        adapters=["pyimpl-tiled", "pyimpl-triton"],
        mutants=["lse-base-2", "tiled-doubled-scale"],
        workers=1,
    )
    assert status == 1, output
    report = run.report()
    assert report["audit"]["problems"] == ["the audit was made to fail; imported: True"]
    ran = {(r["adapter"], r["dtype"]): r for r in report["implementations"]["results"]}
    for dtype in ("float32", "float16", "bfloat16"):
        states = [v["status"] for v in ran["pyimpl-triton", dtype]["vectors"]]
        assert set(states) == {"passed"}
    assert report["implementations"]["problems"] == []
    # The time of the workers, and of nothing that ran before them or beside them.
    for stage in ("implementations", "mutants"):
        times = [r["processor_seconds"] for r in report[stage]["results"]]
        assert report[stage]["processor_seconds"] == pytest.approx(sum(times), abs=0.1)
    assert [r["caught"] for r in report["mutants"]["results"]] == [True, True]
