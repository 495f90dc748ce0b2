"""The command line: its output and how it ends."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import committed
import pytest
from click.testing import CliRunner
from misuse import misuse

import bridge.__main__ as command_line
from bridge import checks, limits, toolchain
from bridge import command as commands
from bridge.command import ROOT
from bridge.conformance.adapters import builtin as adapters
from bridge.limits import Limit
from bridge.pages import written
from bridge.report.verify import Verification
from bridge.vectors import generate
from bridge.vectors import load as loader
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import load
from bridge.vectors.model.attention import Family


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(command_line.main, list(arguments))


def refusal(*arguments: str) -> str:
    return misuse(command_line.main, *arguments)


ONE = ("--family", "one-key")


def test_conform_ends_with_0_when_everything_passes() -> None:
    result = invoke("conform", "pyimpl-reference", "--dtype", "float64", *ONE, "--json")
    assert result.exit_code == 0
    (report,) = json.loads(result.stdout)
    assert report["ok"] is True
    assert len(report["vectors"]) == 12


def test_conform_ends_with_1_when_a_vector_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(names: Sequence[str]) -> list[Family]:
        (family,) = load(names=names)
        first, *others = family.vectors
        row = replace(
            first.expected[0], numerators=tuple(n + 1 for n in first.expected[0].numerators)
        )
        first = replace(first, expected=(row, *first.expected[1:]))
        return [replace(family, vectors=(first, *others))]

    monkeypatch.setattr(loader, "load", wrong)
    result = invoke("conform", "pyimpl-reference", "--dtype", "float64", *ONE)
    assert result.exit_code == 1
    assert "✘" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["conform", "nothing"],
            "IMPLEMENTATION: 'nothing' is not an implementation. Give module:function or "
            "file.py:function, or one that is built in: pyimpl-reference",
        ),
        (["conform", "good.py"], "To test a function in that file, give good.py:FUNCTION_NAME"),
        (["conform", ":f"], "IMPLEMENTATION: ':f' is given; module:function or file.py:function"),
        (["conform", "sdpa-math", "--alignment", "bottom-right"], "sdpa-math is built in"),
        (
            ["verify", "--stage", "nothing"],
            "--stage: unknown stage 'nothing'; choose from toolchain, build,",
        ),
        (["verify", "--stage", "build", "--record"], "--record: takes the times of all stages"),
        (["conform", "--dtype", "int8"], "--dtype: 'int8' is not a dtype"),
        (["conform", "pyimpl-triton", "--dtype", "float64"], "pyimpl-triton does not take float64"),
        (["conform", "--device", "nowhere"], "--device: PyTorch cannot use 'nowhere' here"),
        (["conform", "--device", "meta"], "--device: PyTorch cannot use 'meta' here"),
    ],
)
def test_misuse_is_one_sentence_and_ends_with_2(arguments: list[str], sentence: str) -> None:
    assert sentence in refusal(*arguments)


CHECKOUT = ("try", "verify", "audit", "watch", "vectors", "pages", "test", "translate")


@pytest.mark.parametrize("name", CHECKOUT)
def test_without_a_checkout_it_says_so(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(commands, "ROOT", tmp_path)
    assert "needs a checkout" in refusal(name)


def test_damaged_vectors_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def damage(names: Sequence[str] | None) -> list[Family]:
        raise VectorError("one-key.json: is not JSON.")

    monkeypatch.setattr(loader, "load", damage)
    assert "one-key.json: is not JSON." in refusal("conform", "pyimpl-reference")


def test_a_missing_dependency_is_one_sentence() -> None:
    # -S: without the environment's packages.
    command = [sys.executable, "-S", "-m", "bridge", "verify"]
    done = limits.run(command, Limit(60, 120), cwd=ROOT, env={})
    assert done.returncode == 2
    assert "has no package click; run make setup first" in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_help_lists_the_implementations() -> None:
    text = invoke("conform", "--help").stdout
    for name in adapters.BUILTIN:
        assert re.search(rf"^  {name} .*float32|^  {name} .*float16", text, re.MULTILINE), name


def test_no_summary_is_cut_off() -> None:
    assert "..." not in invoke("--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("ok", [True, False])
def test_the_audit_ends_with_a_verdict(ok: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def stage(self: Verification, key: str, work: Any) -> dict[str, Any]:
        self.report[key] = {"ok": ok, "problems": []}
        return self.report[key]

    monkeypatch.setattr(Verification, "stage", stage)
    result = invoke("audit")
    assert result.exit_code == (0 if ok else 1)
    last = result.stdout.splitlines()[-1]
    assert last == f"The audit {'finds nothing wrong' if ok else 'does not pass; see above'}."


@pytest.mark.parametrize("asked", [True, False])
def test_the_audit_replays_where_it_is_asked_to(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []

    def stage(self: Verification, key: str, work: Any) -> dict[str, Any]:
        found.append(self.library.replay)
        return {"ok": True, "problems": []}

    monkeypatch.setattr(Verification, "stage", stage)
    assert invoke("audit", *(["--replay"] if asked else [])).exit_code == 0
    assert set(found) == {asked}
    result = invoke("audit", "--replay", "Attention.Spec.Flash")
    assert result.exit_code == 2
    assert "--replay: checks the whole library, and MODULE is given" in result.stderr


def test_vectors_says_that_it_runs_the_definitions(monkeypatch: pytest.MonkeyPatch) -> None:
    lean = SimpleNamespace(build=lambda _: SimpleNamespace(ok=True), run=None)
    monkeypatch.setattr(toolchain, "find", lambda *_, **__: lean)
    monkeypatch.setattr(generate, "replace", lambda *_: [])
    monkeypatch.setattr(written, "write_all", lambda _: [])
    said = invoke("vectors").stdout
    assert said.index("running the definitions") < said.index("nothing changed")
    monkeypatch.setattr(generate, "replace_family", lambda _, __, family: [f"{family}.json"])
    said = invoke("vectors", "--family", "one-key").stdout
    assert said.endswith("\nwrote tests/vectors/one-key.json\n")


def test_pages_says_what_it_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "write_all", lambda _: [])
    assert invoke("pages").stdout == "nothing changed\n"
    monkeypatch.setattr(written, "write_all", lambda _: ["docs/vectors.md"])
    assert invoke("pages").stdout == "wrote docs/vectors.md\n"


def test_export_says_what_it_cannot_do(tmp_path: Path) -> None:
    assert invoke("export", str(tmp_path), "--family", "one-key").stdout.startswith("wrote 1 file")
    said = refusal("export", str(tmp_path), "--family", "two-keys")
    assert "there is no family 'two-keys'; index.json lists those" in said
    said = refusal("export", str(tmp_path / "one-key.json"), "--family", "one-key")
    assert "one-key.json' is a file" in said
    said = refusal("export", str(tmp_path / "one-key.json" / "x"), "--family", "one-key")
    assert "cannot be written: Not a directory" in said
    said = refusal("export", str(tmp_path), "--tolerances", "float31")
    assert "--tolerances: 'float31' is not a dtype that the vectors run in" in said
    with_model = ("export", str(tmp_path), "--rounding-model", "exact")
    said = refusal(*with_model, "--tolerances", "float32")
    assert "--rounding-model: 'exact' is not a rounding model" in said
    alone = refusal(*with_model)
    assert "--rounding-model: sets tolerances, and --tolerances is not given" in alone


@pytest.mark.parametrize("arguments", [("export", ""), ("site", "--out", "")])
def test_an_empty_path_is_not_the_current_folder(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "'' is given; accepted is the path of a folder" in refusal(*arguments)
    assert not list(tmp_path.iterdir())


def test_make_help_lists_every_command() -> None:
    # A make that was called by make says where it goes.
    command = ["make", "--no-print-directory", "help"]
    done = limits.run(command, Limit(60, 120), cwd=ROOT)
    assert done.returncode == 0, done.stderr
    makefile = (ROOT / "Makefile").read_text("utf-8")
    wanted = re.findall(r"^([a-z-]+):", makefile, re.MULTILINE)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == wanted


def test_make_calls_the_tools_as_modules() -> None:
    """With packages of another environment in use, `.venv/bin` has not their scripts."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    assert set(re.findall(r"\$\(BIN\)/(\w+)", makefile)) == {"python"}
    # zizmor is no module: its program is looked for on PATH, too.
    programs = {check.command[0] for check in checks.checks()}
    assert programs == {"python", "lake", "zizmor"}


FUNCTIONS = ROOT / "tests" / "bridge" / "conformance" / "attention_functions.py"


@pytest.mark.parametrize(("function", "status"), [("reference", 0), ("scale_ignored", 1)])
def test_conform_takes_a_function_of_a_file(function: str, status: int) -> None:
    result = invoke(
        "conform", f"{FUNCTIONS}:{function}", "--dtype", "float64", "--family", "small-random",
        "--vector", "one-key-001", "--json",
    )  # fmt: skip
    assert result.exit_code == status, result.output
    (report,) = json.loads(result.stdout)
    assert report["rounding_model"] == "generous"
    assert [v["id"] for v in report["vectors"]] == [
        "one-key-001",
        *(v.id for v in committed.family("small-random").vectors),
    ]


def test_conform_judges_by_the_rounding_model_that_is_chosen() -> None:
    arguments = (
        "conform",
        "pyimpl-reference",
        "--dtype",
        "float16",
        *ONE,
        "--json",
        "--rounding-model",
    )
    result = invoke(*arguments, "float64-inside")
    assert result.exit_code == 0
    (report,) = json.loads(result.stdout)
    assert report["rounding_model"] == "float64-inside"


def test_conform_says_which_dtype_an_implementation_lacks() -> None:
    result = invoke("conform", "pyimpl-reference", "pyimpl-triton", "--dtype", "float64", *ONE)
    assert result.exit_code == 0
    assert "pyimpl-triton does not take float64, but float32" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ["--rounding-model", "strict"],
            "--rounding-model: 'strict' is not a rounding model; generous, flash",
        ),
        (
            ["--family", "smal-random"],
            "--family: 'smal-random' is not a family; the nearest is",
        ),
        (["--family", "x"], "--family: 'x' is not a family; docs/vectors.md lists the families"),
        (["--vector", "one-key-0"], "--vector: 'one-key-0' is not the id of a vector; the nearest"),
        (["--without", "masks"], "--without: 'masks' is not a feature; scale, is-causal"),
        (["sdpa-math", "--without", "lse"], "--without: sdpa-math is built in; features are"),
        ([f"{FUNCTIONS}:Doubled"], "is a class; a function of query, key and value is accepted"),
        ([f"{FUNCTIONS}:plain", "--also", "no/such"], "--also: there is no file or folder"),
        (["--time-limit", "0"], "--time-limit: 0 is not a number of seconds above 0"),
        (["no/such.py:f"], "IMPLEMENTATION: no/such.py:f: there is no file no/such.py"),
        ([f"{FUNCTIONS}:half_only", "--dtype", "float32"], "half_only does not take float32, but"),
        ([f"{FUNCTIONS}:configured"], "needs config beside query, key and value"),
    ],
)
def test_misuse_of_conform_is_one_sentence(arguments: list[str], sentence: str) -> None:
    assert sentence in refusal("conform", *ONE, *arguments)
