"""Solutions of FlashInfer-Bench judged as the attention that their definitions state."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import bench_files
import pytest
from click.testing import CliRunner
from flashinfer_bench.data import Trace
from misuse import misuse

from bridge.conform import conform
from bridge.conformance.drawing.fresh import Fresh
from bridge.conformance.flashinfer import files
from bridge.conformance.flashinfer.operation import operation_of
from bridge.vectors.model.by_intervals import enclosed_rows
from bridge.vectors.model.by_spec import attention_rows
from bridge.vectors.model.decode import SequencesVector
from bridge.verdict import Verdict, check

LOCK = Path(__file__).resolve().parents[4] / "requirements" / "flashinfer-bench.lock"
SOME = ("fresh-definition",)


def judge_solution(folder: Path, kind: str, function: str, **options: Any) -> Verdict:
    stated = bench_files.definition(kind)
    definition = bench_files.write(folder, "definition", stated)
    solution = bench_files.write(folder, "solution", bench_files.solution(stated, function))
    given: dict[str, Any] = {"fresh": 1, "count": 5, "families": SOME, **options}
    return check(str(solution), definition=definition, require_sandbox=True, **given)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "function"),
    [("decode", "decode"), ("decode", "decode_to"), ("prefill", "prefill"), ("ragged", "ragged")],
)
def test_a_right_solution_passes(kind: str, function: str, tmp_path: Path) -> None:
    verdict = judge_solution(
        tmp_path, kind, function, families=(*SOME, "paged", "causal-bottom-right")
    )
    assert verdict, verdict
    (outcome,) = verdict.outcomes
    assert (outcome.result.dtype, outcome.without_walls) == ("bfloat16", None)
    passed = [v for v in outcome.result.vectors if v.status == "passed"]
    assert {v.family for v in passed} == {*SOME, "paged", "causal-bottom-right"}
    assert all(v.lse_ratio is not None for v in passed)
    assert f"The definition: gqa_{kind}_h4_kv2_d16: " in str(verdict)


# Function → the status of its traces, and a part of the message; None: wrong numbers.
WRONG: dict[str, tuple[str, str | None]] = {
    "reads_whole_pages": ("INCORRECT_NUMERICAL", None),
    "reads_pages_in_order": ("INCORRECT_NUMERICAL", None),
    "shares_heads_in_turns": ("INCORRECT_NUMERICAL", None),
    "leaves_the_scale_out": ("INCORRECT_NUMERICAL", None),
    "gives_the_natural_logarithm": ("INCORRECT_NUMERICAL", None),
    "returns_zeros": ("INCORRECT_NUMERICAL", None),
    "writes_no_lse": ("INCORRECT_NUMERICAL", None),
    "returns_float32": ("INCORRECT_DTYPE", "instead of torch.bfloat16, as output"),
    "returns_one_head": ("INCORRECT_SHAPE", "returned an output of shape"),
    "raises": ("RUNTIME_ERROR", "raised RuntimeError: no kernel image is available"),
    "aligns_top_left": ("INCORRECT_NUMERICAL", None),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_solution_fails_and_its_traces_say_so(name: str, tmp_path: Path) -> None:
    verdict = judge_solution(tmp_path, "ragged" if name == "aligns_top_left" else "decode", name)
    assert not verdict
    status, said = WRONG[name]
    failures = verdict.outcomes[0].result.failures
    assert failures
    assert all(said in str(v.reason) if said else v.worst is not None for v in failures)
    traces = [Trace.model_validate_json(line) for line in verdict.traces().splitlines()]
    found = [x.evaluation for x in traces if x.evaluation is not None]
    assert len(found) == len(traces) == 5
    assert sum(x.status == status for x in found) == len(failures)
    assert {x.status.value for x in found} <= {status, "PASSED"}
    assert all((x.correctness is None) == (said is not None) for x in found if x.status == status)


def test_a_trace_has_the_axes_and_the_scale_and_no_performance(tmp_path: Path) -> None:
    verdict = judge_solution(tmp_path, "prefill", "prefill")
    (family,) = verdict._run(verdict.outcomes)
    traces = [Trace.model_validate_json(line) for line in verdict.traces().splitlines()]
    for trace, vector in zip(traces, family.vectors, strict=True):
        assert isinstance(vector, SequencesVector)
        lengths = [(x.tokens, x.kv_len) for x in vector.sequences]
        axes = trace.workload.axes
        assert axes["total_q"] == sum(tokens for tokens, _ in lengths)
        assert axes["num_kv_indices"] == sum(-(-kv_len // 4) for _, kv_len in lengths)
        assert axes["len_indptr"] == len(lengths) + 1
        assert trace.workload.inputs["sm_scale"].value == vector.attentions()[0].natural_scale
        assert trace.workload.uuid == f"{vector.id} --fresh 1 --count 5"
        assert trace.solution == "tried_prefill"
        assert trace.evaluation.performance.latency_ms == 0
        assert "performance was not measured" in trace.evaluation.log


def test_sizes_are_those_of_workloads(tmp_path: Path) -> None:
    axes = {"batch_size": 3, "len_indptr": 4, "num_kv_indices": 24, "num_pages": 30}
    inputs = {name: {"type": "random"} for name in bench_files.definition("decode")["inputs"]}
    workload = {"axes": axes, "inputs": inputs, "uuid": "one"}
    lines = [{"definition": name, "workload": workload} for name in ("gqa_decode_h4_kv2_d16", "x")]
    path = tmp_path / "workloads.jsonl"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    verdict = judge_solution(tmp_path, "decode", "decode", workload=path)
    assert verdict
    (family,) = verdict._run(verdict.outcomes)
    for vector in family.vectors:
        assert isinstance(vector, SequencesVector)
        assert [x.tokens for x in vector.sequences] == [1, 1, 1]
        assert all(16 <= x.kv_len <= 32 for x in vector.sequences)
    path.write_text(json.dumps({**lines[1]}), "utf-8")
    with pytest.raises(ValueError, match="has no workload of gqa_decode_h4_kv2_d16"):
        judge_solution(tmp_path, "decode", "decode", workload=path)


def test_drawn_rows_are_those_of_the_translation(tmp_path: Path) -> None:
    stated = bench_files.write(tmp_path, "definition", bench_files.definition("ragged"))
    own = operation_of(files.definition(stated))
    from bridge.conformance.flashinfer.bench import Bench

    (family,) = Fresh(3, 6, bench=Bench("", tmp_path, "", own, False)).families
    models = set()
    for vector in family.vectors:
        assert isinstance(vector, SequencesVector)
        problem = min(vector.attentions(), key=lambda x: x.kv_len)
        models.add(problem.model)
        if problem.model == "exact":
            assert attention_rows(problem) == problem.expected
            continue
        for one, other in zip(enclosed_rows(problem), problem.expected, strict=True):
            assert abs(one.output[0] - other.output[0]) <= one.uncertainty + other.uncertainty
    assert models == {"exact", "natural"}


def change(data: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {**data, **changes}


DECODE = bench_files.definition("decode")
MLA = change(DECODE, inputs={"q_nope": DECODE["inputs"]["q"]})
WRONG_REFERENCE = change(
    DECODE,
    reference=f"{bench_files.SOURCE}\n\ndef run(*given):\n    return returns_zeros(*given)\n",
)
FLOAT8 = change(
    DECODE, inputs={**DECODE["inputs"], "q": {**DECODE["inputs"]["q"], "dtype": "float8_e4m3fn"}}
)


@pytest.mark.parametrize(
    ("definition", "solution", "sentence"),
    [
        (change(DECODE, op_type=""), {}, "is no Definition of FlashInfer-Bench: op_type: String"),
        (change(DECODE, reference="x = 1"), {}, "must define a top-level function named 'run'"),
        (MLA, {}, "is no attention that is known here; grouped-query attention with the inputs of"),
        (FLOAT8, {}, "has tensors of bfloat16, float8_e4m3fn; one of"),
        (WRONG_REFERENCE, {}, "its reference does not compute gqa_decode_h4_kv2_d16: paged decode"),
        (DECODE, {"definition": "another"}, "solves 'another'; the definition given is"),
        (DECODE, {"sources": []}, "is no Solution of FlashInfer-Bench: sources: List should have"),
        (DECODE, {"spec": {"language": "cuda"}}, "is written in cuda; python and triton run here"),
        (DECODE, {"spec": {"entry_point": "x.py"}}, "Invalid entry point format"),
        (DECODE, {"path": "../attention.py"}, "parent directory traversal not allowed"),
    ],
)
def test_misuse_is_one_sentence(
    definition: dict[str, Any], solution: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    tried = bench_files.solution(definition, "decode", **solution.pop("spec", {}))
    if "path" in solution:
        tried["sources"][0]["path"] = solution.pop("path")
    tried |= solution
    words = [str(bench_files.write(tmp_path, "solution", tried)), "--definition",
             str(bench_files.write(tmp_path, "definition", definition))]  # fmt: skip
    said = misuse(conform, *words)
    assert sentence in said
    assert "--definition: " in said


def source(path: str) -> dict[str, Any]:
    """One more file of a solution."""
    first = {"path": "src/attention.py", "content": bench_files.SOURCE}
    return {"sources": [first, {"path": path, "content": "x = 1"}]}


def of_sizes(**sizes: int) -> dict[str, Any]:
    const = {name: {"type": "const", "value": n} for name, n in sizes.items()}
    return change(DECODE, axes={**DECODE["axes"], **const})


HOSTILE: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a name": (DECODE, {"name": "\x1b[2Jall\npass"}, r"has the name '\x1b[2Jall\npass'; printable"),
    "an entry": (DECODE, {"entry_point": "src/attention.py::a\x1bb"}, r"::a\x1bb'; printable char"),
    "a file in a file": (DECODE, source("src/attention.py/x.py"), "cannot be written: File exists"),
    "a long name": (DECODE, source("x" * 300), "x… cannot be written: File name too long"),
    "a folder": (DECODE, source("."), "its source . cannot be written: Is a directory"),
    "no character": (DECODE, source("a\0b.py"), "cannot be written: embedded null byte"),
    "a large page": (
        of_sizes(page_size=1 << 22),
        {},
        "numbers in a page of keys; up to",
    ),
    "many heads": (of_sizes(num_qo_heads=1 << 24), {}, "numbers in num_qo_heads × head_dim; up to"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_sentence(name: str, tmp_path: Path) -> None:
    stated, changes, sentence = HOSTILE[name]
    spec = {key: x for key, x in changes.items() if key == "entry_point"}
    tried = bench_files.solution(stated, "decode", **spec)
    tried |= {key: x for key, x in changes.items() if key not in spec}
    definition = bench_files.write(tmp_path, "definition", stated)
    with pytest.raises(ValueError, match=re.escape(sentence)) as caught:
        check(str(bench_files.write(tmp_path, "solution", tried)), definition=definition)
    assert str(caught.value).startswith("definition: ")
    assert str(caught.value).isprintable()


def test_brackets_without_end_are_one_sentence(tmp_path: Path) -> None:
    definition = bench_files.write(tmp_path, "definition", DECODE)
    solution = tmp_path / "solution.json"
    solution.write_text("[" * 100_000)
    with pytest.raises(ValueError, match="is no JSON: maximum recursion depth"):
        check(str(solution), definition=definition)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["x.json", "--definition", "absent.json"], "--definition: there is no file 'absent.json'"),
        (["sdpa-math", "--workload", "x"], "--workload: is given without a definition"),
        (["sdpa-math", "--trace", "x"], "--trace: is given without --definition"),
        (["x", "--definition", __file__, "--without", "lse"], "--without: a definition determines"),
        (["x", "--definition", __file__], "there is no file 'x'; a solution's is accepted"),
    ],
)
def test_misuse_of_options_is_said(words: list[str], sentence: str) -> None:
    assert sentence in misuse(conform, *words)


def test_the_command_writes_traces(tmp_path: Path) -> None:
    definition = bench_files.write(tmp_path, "definition", DECODE)
    solution = bench_files.write(tmp_path, "solution", bench_files.solution(DECODE, "decode"))
    out = tmp_path / "traces.jsonl"
    words = [str(solution), "--definition", str(definition), "--family", "fresh-definition"]
    found = CliRunner().invoke(conform, [*words, "--count", "3", "--trace", str(out)])
    assert found.exit_code == 0, found.output
    traces = [Trace.model_validate_json(line) for line in out.read_text("utf-8").splitlines()]
    assert [trace.is_successful() for trace in traces] == [True] * 3


def test_the_sentence_names_the_version_that_is_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "flashinfer_bench", None)
    with pytest.raises(files.BenchError, match=r"flashinfer-bench==0\.1\.2 docstring-parser"):
        files.models()
    assert "flashinfer-bench==0.1.2 " in LOCK.read_text("utf-8")
