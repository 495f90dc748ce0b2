"""The Transformer learns: to reverse sequences, exactly, on held-out ones; and the arguments and
results of the demonstration's command line."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
import torch

from pyimpl.modules import demonstration
from pyimpl.modules.demonstration import BOS, EOS, PAD, Demonstration, Settings, main

SMALL = Settings(
    "reverse", min_len=3, max_len=6, symbols=8, d_model=32, num_layers=1, steps=600,
    learning_rate=5e-3, held_out=300,
)  # fmt: skip
ARGUMENTS = ["--symbols", "8", "--d-model", "32", "--num-layers", "1", "--steps", "2"]


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.thorough
def test_it_learns_to_reverse() -> None:
    found = Demonstration(SMALL)
    assert found.exact(found.held_out) < 0.1
    reports = list(found.train())
    assert found.exact(found.held_out) >= 0.99
    assert reports[-1].loss < reports[0].loss / 10
    # A model that has learned to reverse does not copy.
    other = Demonstration(Settings(**{**vars(SMALL), "task": "copy"}))
    other.model = found.model
    assert other.exact(other.held_out) < 0.5
    # Sampling from the trained model, with little noise, gives the same.
    generator = torch.Generator().manual_seed(0)
    drawn = found.model.generate(
        found.held_out.src, 7, bos=BOS, eos=EOS, src_lens=found.held_out.lens, temperature=0.1,
        generator=generator,
    )  # fmt: skip
    greedy = found.model.generate(
        found.held_out.src, 7, bos=BOS, eos=EOS, src_lens=found.held_out.lens
    )
    assert float((drawn == greedy).double().mean()) > 0.99


@pytest.mark.parametrize("task", ["copy", "reverse"])
def test_the_sequences(task) -> None:
    settings = Settings(task, min_len=2, max_len=5, symbols=4)
    batch = settings.draw(200, torch.Generator().manual_seed(0))
    assert set(batch.lens.tolist()) == {2, 3, 4, 5}
    for src, n, tgt in zip(*(x.tolist() for x in batch), strict=True):
        kept = src[:n]
        assert src[n:] == [PAD] * (5 - n)
        assert set(kept) <= {3, 4, 5, 6}
        wanted = kept if task == "copy" else kept[::-1]
        assert tgt == [*wanted, EOS, *[PAD] * (5 - n)]
    assert batch.token_mask.sum(1).tolist() == (batch.lens + 1).tolist()


def test_no_batch_has_a_held_out_sequence() -> None:
    settings = Settings("copy", min_len=2, max_len=3, symbols=4, held_out=20)
    found = Demonstration(settings)
    secret = {tuple(row) for row in found.held_out.src.tolist()}
    seen = {tuple(row) for row in found.batch(500).src.tolist()}
    assert seen
    assert not seen & secret


def test_batches_of_one_sequence() -> None:
    """One that is held out is drawn again."""
    settings = Settings("copy", min_len=1, max_len=2, symbols=4, held_out=5, batch_size=1)
    found = Demonstration(settings)
    assert {len(found.batch(1).src) for _ in range(100)} == {1}
    with pytest.raises(ValueError, match="held_out must be at most a quarter"):
        Demonstration(Settings("copy", min_len=1, max_len=2, symbols=4, held_out=6))


def test_what_counts_as_exact() -> None:
    """One wrong token, or no end, is not exact; tokens behind the end do not count."""
    found = Demonstration(Settings("copy", min_len=2, max_len=3, symbols=4, held_out=4))
    batch = found.settings.draw(50, torch.Generator().manual_seed(3))
    answer = batch.tgt.masked_fill(~batch.token_mask, EOS)
    for wrong, expected in ((None, 1.0), (0, 0.0), (1, 0.0), ("end", 0.0), ("behind", 1.0)):
        given = answer.clone()
        if wrong == "end":
            given[batch.tgt == EOS] = 3
        elif wrong == "behind":
            given[~batch.token_mask] = 5
        elif wrong is not None:
            given[:, wrong] = 3 + (given[:, wrong] - 2) % 4
        found.model.generate = lambda *_, given=given, **__: given  # type: ignore[method-assign]
        assert found.exact(batch) == expected, wrong


def test_the_same_seed_gives_the_same() -> None:
    first, again, other = (
        Demonstration(Settings(**{**vars(SMALL), "steps": 3, "interval": 1, "seed": seed}))
        for seed in (0, 0, 1)
    )
    losses = [[report.loss for report in one.train()] for one in (first, again, other)]
    assert losses[0] == losses[1] != losses[2]


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reverse", *ARGUMENTS, "--interval", "1", "--held-out", "10"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"reverse: 4 to 10 tokens out of 8, [\d,]+ parameters", lines[0])
    for i, line in enumerate(lines[1:3], start=1):
        assert re.fullmatch(
            rf"step +{i}  loss \d\.\d{{4}}  exact +\d+\.\d%  [\d,]+ tokens/s", line
        )  # fmt: skip
    assert re.fullmatch(
        r"\d+\.\d% of 10 held-out sequences exact, the goal is 99\.0%; \d+ s", lines[3]
    )
    assert len(lines) == 4


def test_a_goal_that_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demonstration.Demonstration, "exact", lambda self, batch: 1.0)
    assert main(["copy", *ARGUMENTS, "--goal", "1"]) == 0


REFUSED = [
    (["sort"], "argument task: invalid choice: 'sort'"),
    ([], "the following arguments are required: task"),
    (["copy", "--steps", "0"], "argument --steps: must be from 1 to 1000000000, not 0"),
    (["copy", "--seed", "9" * 30], "argument --seed: must be from 0 to 2147483647, not 9"),
    (
        ["copy", "--symbols", "1", "--max-len", "1000", "--held-out", "999"],
        "--held-out must be at most 249, a quarter",
    ),
    (["copy", "--steps", "x"], "argument --steps: must be a whole number, not 'x'"),
    (["copy", "--learning-rate", "nan"], "argument --learning-rate: must be above 0, at most 1"),
    (["copy", "--goal", "x"], "argument --goal: must be a number, not 'x'"),
    (["copy", "--min-len", "11"], "--min-len must be at most --max-len, 10, not 11"),
    (["copy", "--d-model", "6"], "--d-model must be even and a multiple of --num-heads, 4, not 6"),
    (["copy", "--symbols", "1"], "--held-out must be at most 1, a quarter of the sequences"),
]


@pytest.mark.parametrize(("arguments", "sentence"), REFUSED)
def test_arguments_that_are_refused(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"Error: {sentence}")
    assert err.count("\n") == 1


@pytest.mark.thorough
def test_it_is_a_program() -> None:
    command = [sys.executable, "-m", "pyimpl.modules.demonstration", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "--held-out" in done.stdout
