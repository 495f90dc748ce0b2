"""The examples: each prints the output that its text shows, and ends otherwise where the attention
in it is wrong."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import pyimpl
from bridge.pages import examples_page
from bridge.source.excerpt import SourceError
from pyimpl import state
from pyimpl.integrations import transformers
from pyimpl.modules import multi_head_attention

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / examples_page.FOLDER
attention, attention_decode = pyimpl.attention, pyimpl.attention_decode
step_block = state.step_block


def example(first: str) -> examples_page.Example:
    (files,) = [files for files in examples_page.EXAMPLES if files[0] == first]
    return examples_page.example(ROOT, *files)


def blind(*tensors: Tensor, attn_mask: Tensor | None = None, **options: Any) -> Any:
    """Padding is attended to."""
    return attention(*tensors, **options)


def seeing_ahead(*tensors: Tensor, is_causal: bool = False, **options: Any) -> Any:
    return attention(*tensors, **options)


def wider(*tensors: Tensor, window: tuple[int | None, int | None], **options: Any) -> Any:
    """A window of one key more than was asked for."""
    left, right = window
    return attention_decode(*tensors, window=(None if left is None else left + 1, right), **options)


def without_the_last(*tensors: Tensor, kv_lens: Tensor, **options: Any) -> Any:
    return attention_decode(*tensors, kv_lens=kv_lens - 1, **options)


def as_one_document(
    query: Tensor, key: Tensor, value: Tensor, *prefix_sums: Tensor, **options: Any
) -> Any:
    return attention(*(x[None] for x in (query, key, value)), layout="bnhd", **options)[0]


def not_rescaled(before: state.State, scores: Tensor, values: Tensor) -> state.State:
    """The sums by the old maximum stay as they are."""
    after = step_block(before, scores, values)
    alpha = state.rescale(before.m, after.m).unsqueeze(-1)
    return state.State(after.m, after.l, after.o + (1 - alpha) * before.o)


# By example, whose attention is made wrong, under which name, and how.
WRONG: dict[str, tuple[Any, str, Callable[..., Any]]] = {
    "llama_generate.py": (transformers, "attention", blind),
    "train_copy.py": (multi_head_attention, "attention", seeing_ahead),
    "long_context.py": (pyimpl, "attention_decode", wider),
    "paged_batching.py": (pyimpl, "attention_decode", without_the_last),
    "packed_documents.py": (pyimpl, "attention_varlen", as_one_document),
    "pictures.py": (state, "step_block", not_rescaled),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", WRONG)
def test_it_prints_what_it_says(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = example(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    with torch.random.fork_rng():
        runpy.run_path(str(FOLDER / name), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [*shown.printed]
    # Those that it draws are those that the page shows.
    drawn = {path.name for path in tmp_path.rglob("*.png")}
    assert drawn == {*re.findall(r"images/([\w-]+\.png)", shown.text)}
    assert all((ROOT / "docs" / "images" / one).exists() for one in drawn)
    assert shown.commands == (f".venv/bin/python examples/{name}",)


@pytest.mark.parametrize(
    "name",
    # It trains to the end.
    [pytest.param(n, marks=pytest.mark.thorough) if n == "train_copy.py" else n for n in WRONG],
)
def test_it_ends_where_the_attention_is_wrong(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [name])
    monkeypatch.setattr(*WRONG[name])
    with torch.random.fork_rng(), pytest.raises(AssertionError):
        runpy.run_path(str(FOLDER / name), run_name="__main__")


def test_every_file_is_on_the_page() -> None:
    shown = {name for files in examples_page.EXAMPLES for name in files}
    there = {p.relative_to(FOLDER).as_posix() for p in FOLDER.rglob("*") if p.is_file()}
    assert there - shown == {"tile_loop.py"} | {n for n in there if "__pycache__" in n}
    assert shown <= there


def test_a_text_that_lacks_something_is_refused(tmp_path: Path) -> None:
    (tmp_path / "examples").mkdir()
    file = tmp_path / "examples" / "one.py"
    file.write_text('"""A title\n\nIt shows something.\n\nIt prints:\n\n    1\n"""\nprint(1)\n')
    assert examples_page.example(tmp_path, "one.py").printed == ("1",)
    file.write_text('"""A title\n\nIt shows something.\n"""\nprint(1)\n')
    with pytest.raises(SourceError, match=r"examples/one\.py: its text is to be a title"):
        examples_page.example(tmp_path, "one.py")


def run(command: str, cwd: Path, status: int = 0) -> list[str]:
    """The lines that a command prints; `.venv` is the environment of the tests."""
    programs = Path(sys.executable).parent
    environment = {**os.environ}
    for name, first in (("PATH", programs), ("PYTHONPATH", ROOT)):
        environment[name] = os.pathsep.join([str(first), *filter(None, [os.environ.get(name)])])
    text = command.replace(".venv/bin/python", shlex.quote(sys.executable))
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", text],
        cwd=cwd, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout.splitlines()


class TestKernelInCi:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        shutil.copy(FOLDER / "kernel_in_ci" / "my_kernel.py", tmp_path)
        return tmp_path

    @pytest.mark.thorough  # 10 s; the next test runs the command on a family
    def test_the_command_of_the_workflow_passes(self, folder: Path) -> None:
        shown = example("kernel_in_ci/attention.yml")
        (judging,) = shown.commands
        workflow = (FOLDER / "kernel_in_ci" / "attention.yml").read_text("utf-8")
        assert f"      - run: {judging}\n" in workflow
        assert {*shown.printed} <= {*run(judging, folder)}
        assert (folder / "report.html").exists()

    @pytest.mark.thorough
    def test_a_kernel_with_a_mistake_fails(self, folder: Path) -> None:
        file = folder / "my_kernel.py"
        text = file.read_text("utf-8")
        assert text.count("keys > rows") == 1
        file.write_text(text.replace("keys > rows", "keys > rows + 1"))
        (judging,) = example("kernel_in_ci/attention.yml").commands
        lines = run(f"{judging} --family causal --count 0", folder, status=1)
        assert "fails, the smallest input first:" in "\n".join(lines)


@pytest.mark.thorough  # conformance/sandbox/test_ranks.py judges it on few vectors, and wrong
def test_the_ring_in_shards_passes() -> None:
    shown = example("ring_in_shards.py")
    (judging,) = shown.commands
    assert {*shown.printed} <= {*run(judging, FOLDER)}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout as the commands of the examples see it, with the first one's outputs."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "examples").symlink_to(FOLDER)
    run(example("vectors_cpp/check.cpp").commands[0], folder)
    return folder


@pytest.mark.skipif(shutil.which("c++") is None, reason="needs a compiler of C++, c++")
class TestVectorsFromCpp:
    shown = example("vectors_cpp/check.cpp")

    def test_it_prints_what_it_says(self, exported: Path) -> None:
        lines = run("\n".join(self.shown.commands[1:]), exported)
        assert lines == [*self.shown.printed]

    @pytest.mark.parametrize(
        ("right", "wrong"),
        [
            ("rescale * o[d] + weight", "o[d] + weight"),
            ("if (x.visible[i * x.kv_len + j] == '0') continue;", ""),
            ("l == 0 ? 0 : each / l", "each / l / (l > 1e30f)"),  # 1 / 0
        ],
    )
    def test_a_wrong_function_fails(self, right: str, wrong: str, exported: Path) -> None:
        *_, header, compiled, _ = self.shown.commands
        text = (FOLDER / "vectors_cpp" / "check.cpp").read_text("utf-8")
        assert text.count(right) == 1
        (exported / "wrong.cpp").write_text(text.replace(right, wrong), "utf-8")
        of_wrong = compiled.replace("examples/vectors_cpp/check.cpp", "wrong.cpp")
        lines = run(f"{header}\n{of_wrong} -O0\nbuild/hex/check", exported, status=1)
        assert re.fullmatch(r"18 vectors, [1-9]\d* fail", lines[-1])


@pytest.mark.thorough  # four processes start; tests/pyimpl/distributed runs it in those it has
def test_training_on_four_processes() -> None:
    shown = example("train_parallel.py")
    (command,) = shown.commands
    module = ".venv/bin/python -m torch.distributed.run"
    assert run(command.replace(".venv/bin/torchrun", module), ROOT) == [*shown.printed]


def test_the_vectors_from_jax(exported: Path) -> None:
    pytest.importorskip("jax", reason="needs jax, the extra oracles")
    shown = example("vectors_jax.py")
    *_, export, judging = shown.commands
    # The file is there already.
    assert export == example("vectors_cpp/check.cpp").commands[0]
    assert run(judging, exported) == [*shown.printed]
    text = (FOLDER / "vectors_jax.py").read_text("utf-8")
    (exported / "wrong.py").write_text(text.replace("visible, factor * ", "True, factor * "))
    lines = run(judging.replace("examples/vectors_jax.py", "wrong.py"), exported, status=1)
    assert re.fullmatch(r"18 vectors, [1-9]\d* fail", lines[-1])
