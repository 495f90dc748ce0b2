"""Pieces of work on threads: all of them, once, and PyTorch's own settings as they were."""

from __future__ import annotations

import os
import sys
import threading

import pytest
import torch
from attention_checks import inputs, judge_options, score_options, tiled_rounding

from bridge import limits
from bridge.limits import Limit, Watch
from pyimpl import attention
from pyimpl.backends import tiled
from pyimpl.backends.workers import for_each


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize("count", [0, 1, 2, 50])
def test_every_item_once(count: int, threads: bool) -> None:
    done: list[int] = []
    for_each(range(count), done.append, threads=threads)
    assert sorted(done) == list(range(count))


def test_each_thread_computes_alone_and_the_others_as_before() -> None:
    here: list[None] = []
    seen: list[tuple[int, bool]] = []

    def work(_: int) -> None:
        here.append(None)
        limits.until(lambda: len(here) == 2, Watch(os.getpid(), Limit(60, 60)), "the other thread")
        seen.append((torch.get_num_threads(), torch.is_grad_enabled()))

    for_each(range(2), work, threads=True)
    assert seen == [(1, False), (1, False)]
    assert torch.get_num_threads() == 2
    fresh: list[int] = []
    thread = threading.Thread(target=lambda: fresh.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert fresh == [2]


def test_an_exception_is_raised_here() -> None:
    def work(item: int) -> None:
        if item == 3:
            raise ValueError("item 3")

    with pytest.raises(ValueError, match="item 3"):
        for_each(range(8), work, threads=True)


def test_inference_mode_and_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiled, "THREADS_FROM", 0)
    query, key, value, _ = inputs((2, 4, 600, 70, 8, 8), torch.float32)
    expected = attention(query, key, value)
    with torch.inference_mode():
        assert torch.equal(attention(query.clone(), key, value), expected)
    with torch.no_grad():
        assert torch.equal(attention(torch.nn.Parameter(query), key, value), expected)


def test_with_and_without_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    query, key, value, mask = inputs((2, 4, 600, 70, 8, 8), torch.float64, masked=True)
    options = score_options(query, mask=mask, right=0)
    for threads_from in (0, 1 << 60):
        monkeypatch.setattr(tiled, "THREADS_FROM", threads_from)
        result = tiled.flash(query, key, value, options)
        judge_options(result, query, key, value, options, tiled_rounding(torch.float64))


@pytest.mark.thorough
@pytest.mark.parametrize("before", ["pass", "for_each(range(4), print, threads=True)"])
def test_when_python_is_ending(before: str) -> None:
    """With threads that were started before, and without."""
    program = (
        "import atexit, torch\n"
        "from pyimpl.backends.workers import for_each\n"
        "torch.set_num_threads(2)\n"
        f"{before}\n"
        "atexit.register(lambda: for_each(range(4, 8), print, threads=True))"
    )
    done = limits.run([sys.executable, "-c", program], Limit(120, 120), check=True)
    assert done.stderr == ""
    assert done.stdout.split()[-4:] == ["4", "5", "6", "7"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_starts_its_own_threads() -> None:
    for_each(range(4), lambda _: None, threads=True)
    child = os.fork()
    if child == 0:
        done: list[int] = []
        for_each(range(4), done.append, threads=True)
        os._exit(0 if sorted(done) == [0, 1, 2, 3] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.thorough
@pytest.mark.parametrize("refused", [(1,), (2,), (2, 4)], ids=str)
def test_a_system_that_gives_no_more_threads(refused: tuple[int, ...]) -> None:
    """The call is answered on the thread that asked, and the process can end."""
    script = f"""
import threading, torch
from pyimpl import attention
asked, start = 0, threading.Thread.start
def refusing(self):
    global asked
    if self.name.startswith("pyimpl"):
        asked += 1
        if asked in {refused}:
            raise RuntimeError("can't start new thread")
    return start(self)
threading.Thread.start = refusing
torch.set_num_threads(3)
q = torch.randn(2, 8, 600, 16)
first = attention(q, q, q)
assert all(torch.allclose(attention(q, q, q), first) for _ in range(3))
assert torch.get_num_threads() == 3
"""
    done = limits.run([sys.executable, "-c", script], Limit(200, 120))
    assert done.returncode == 0, done.stderr
