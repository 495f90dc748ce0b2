"""A function's process: its view, who may have one, and that honest functions run in it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import committed
import psutil
import pytest
import torch

import pyimpl
from bridge.conformance.functions.features import CallableError
from bridge.conformance.inside import seccomp, walls
from bridge.conformance.outcomes.outcome import Conditions, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.sandbox import session as sessions
from bridge.conformance.sandbox import zygote
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.sandbox.session import Lost, NoSandboxError, Session
from bridge.conformance.sandbox.view import sight_of
from bridge.conformance.sandbox.wire import Frame, WireError
from bridge.vectors.load import default_directory

SDPA = "torch.nn.functional:scaled_dot_product_attention"
ROOT = Path(__file__).resolve().parents[4]
CONDITIONS = Conditions(required=True)


def inputs(**more: Any) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(1, 2, 3, 4, generator=generator, **more) for _ in range(3)]


def write(folder: Path, text: str) -> str:
    file = folder / "candidate.py"
    file.write_text(textwrap.dedent(text), "utf-8")
    return f"{file}:attention"


@contextlib.contextmanager
def open_session(name: str, **more: Any) -> Iterator[Session]:
    with Session(name, required=True, **more) as session:
        session.open()
        yield session


def test_this_system_has_walls() -> None:
    with open_session(SDPA) as session:
        assert session.without_walls is None


def test_numbers_go_there_and_back() -> None:
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        query, key, value = inputs(dtype=dtype)
        mask = torch.tensor([[True, False, True]] * 3)[None, None]
        here = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=0.3
        )
        with open_session(SDPA) as session:
            there = Remote(session)(query, key, value, attn_mask=mask, scale=0.3)
        assert there.dtype == dtype
        assert torch.equal(here, there)


def test_gradients_are_those_of_the_function() -> None:
    def gradients(function: Any) -> list[torch.Tensor]:
        leaves = [x.requires_grad_() for x in inputs(dtype=torch.float64)]
        output = function(*leaves, scale=0.3)
        return list(torch.autograd.grad((output * output.detach().cos()).sum(), leaves))

    with open_session(SDPA) as session:
        there = gradients(Remote(session))
    here = gradients(torch.nn.functional.scaled_dot_product_attention)
    assert all(torch.equal(a, b) for a, b in zip(here, there, strict=True))


def test_what_it_raises_is_raised_here(tmp_path: Path) -> None:
    name = write(
        tmp_path,
        """
        class Special(NotImplementedError):
            pass

        def attention(query, key, value, what=""):
            if what:
                raise Special(what)
            return None, 3, (query + 1,)
        """,
    )
    with open_session(name) as session:
        function = Remote(session)
        with pytest.raises(NotImplementedError, match="not this") as caught:
            function(*inputs(), what="not this")
        assert type(caught.value).__name__ == "Special"
        nothing, number, (tensor,) = function(*inputs())
    assert nothing is None
    assert type(number).__name__ == "int"
    assert torch.equal(tensor, inputs()[0] + 1)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (3, "a field parameters that is 3: Expected `array | null`, got `int`"),
        ([["x"]], "`array` of length 3, got 1"),
        ([["class", "KEYWORD_ONLY", False]], "a parameter named class"),
        ([["a b", "KEYWORD_ONLY", False]], "a parameter named a b"),
        ([["x", "ANY", False]], r"value 'ANY' - at `\$\[0\]\[1\]`"),
        ([["x", "VAR_KEYWORD", True]], "a default of a parameter that takes any number"),
    ],
)
def test_a_signature_is_looked_at(data: Any, sentence: str) -> None:
    with pytest.raises(WireError, match=sentence):
        sessions._parameters(Frame("opened", {"parameters": data}, {}))


def test_a_view_holds_neither_this_package_nor_the_vectors() -> None:
    view = sight_of(SDPA, "cpu").view
    assert not view.devices
    private = (default_directory(), ROOT / "bridge", ROOT / "tests", ROOT / "Attention")
    for path in map(Path, view.read):
        for secret in private:
            assert not path.is_relative_to(secret)
            assert not secret.is_relative_to(path) or str(secret) in view.hide
    everything = sight_of(SDPA, "cpu", [ROOT]).view
    assert {str(secret) for secret in private} <= set(everything.hide)
    with pytest.raises(CallableError, match="is a part of the judge"):
        sight_of("bridge.conformance.judging.judge:judge", "cpu")


def test_the_package_of_the_vectors_is_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site-packages" / "attention_vectors"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("answers = 42\n")
    monkeypatch.syspath_prepend(package.parent)
    name = write(tmp_path, "from attention_vectors import answers as attention\n")
    with pytest.raises(CallableError, match="cannot import name 'answers'"), Session(name) as one:
        one.open()


def test_no_link_shows_the_vectors(tmp_path: Path) -> None:
    """Within a folder that is seen they are hidden; alone they are refused."""
    vectors = default_directory()
    (tmp_path / "weights.json").symlink_to(vectors / "causal.json")
    (tmp_path / "data").symlink_to(vectors)
    with pytest.raises(CallableError, match=r"is to see .*, which is a part of what judges it"):
        sight_of(SDPA, "cpu", [tmp_path / "weights.json"])
    with pytest.raises(CallableError, match=r"is to see .*, which is a part of what judges it"):
        sight_of(SDPA, "cpu", [tmp_path / "data"])
    with pytest.raises(CallableError, match=r"is to see .*, which is a part of what judges it"):
        sight_of(SDPA, "cpu", problem=tmp_path / "weights.json")
    assert not any(
        Path(path).is_relative_to(vectors) for path in sight_of(SDPA, "cpu", [tmp_path]).view.read
    )


def test_a_neighbour_is_seen_where_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "neighbour.py").write_text("def attention(query, key, value): return value + 0\n")
    name = write(tmp_path, "from neighbour import attention\n")
    with pytest.raises(CallableError, match="No module named 'neighbour'"), Session(name) as one:
        one.open()
    for also in (tmp_path, tmp_path / "neighbour.py"):
        with open_session(name, also=(also,)):
            pass


def test_where_there_are_no_walls_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "ways", (False,))
    chosen = committed.some("one-key", 2)
    (outcome,) = outcomes(Subject(SDPA), chosen, ("float32",), Conditions())
    assert outcome.without_walls is not None
    assert outcome.to_json()["without_sandbox"] == outcome.without_walls
    assert outcome.result.ok
    with pytest.raises(NoSandboxError):
        list(outcomes(Subject(SDPA), chosen, ("float32",), CONDITIONS))


INSIDE = """
import importlib.util, json, os, sys
folder = sys.argv[1]
spec = importlib.util.spec_from_file_location(
    "inside", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["inside"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from inside import walls
"""
WITHOUT_RIGHTS = (
    INSIDE
    + """
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    # As a program is that a user starts.
    walls.dumpable(True)
if sys.argv[2] == "hidden":
    # As in a container that hides a part of its /proc.
    walls.apart()
    if os.fork():
        os.wait()
        os._exit(0)
    walls._mount("proc", "/proc", "proc", 0)
    walls._mount("none", "/proc/sys", "tmpfs", 0)

def ready(why):
    os.write(1, json.dumps([why]).encode() + b"\\n")

def call():
    seen = sorted(os.listdir("/")), os.getuid(), os.getpid(), os.path.exists("/proc/self")
    os.write(1, json.dumps(seen).encode() + b"\\n")
    os._exit(7)

def ended(code):
    os.write(keep, b"%d" % code)

keep = os.dup(1)
os.set_inheritable(keep, True)
view = walls.View(("/usr",))
walls.run_enclosed(view, walls.Work(ready, call, ended))
"""
)


def run_inside(text: str, *arguments: str) -> str:
    """Standard output of a program with the package that runs inside."""
    command = [sys.executable, "-I", "-c", text, str(Path(walls.__file__).parent), *arguments]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.stderr == ""
    return found.stdout


@pytest.mark.parametrize("proc", ["whole", "hidden"])
def test_no_rights_are_needed(proc: str) -> None:
    """As nobody, if this is root. Where this fails, the system lets nobody make namespaces."""
    why, seen, *_ = run_inside(WITHOUT_RIGHTS, proc).splitlines()
    assert why == "[null]"
    user = 65534 if os.getuid() == 0 else os.getuid()
    own = "true" if proc == "whole" else "false"
    assert seen == f'[["dev", "proc", "tmp", "usr"], {user}, 2, {own}]'


WRITABLE = (
    INSIDE
    + """
def call():
    own = os.open(f"/proc/self/task/{os.getpid()}/comm", os.O_RDWR)
    os.write(own, b"named")
    processes = [x for x in os.listdir("/proc") if x.isdecimal() or os.path.islink("/proc/" + x)]
    found = [
        path
        for folder, inner, files in os.walk("/proc")
        for path in [os.path.join(folder, x) for x in inner + files]
        if path.split("/")[2] not in processes and os.access(path, os.W_OK)
    ]
    os.write(1, json.dumps([os.pread(own, 9, 0).decode(), found]).encode() + b"\\n")

view = walls.View(("/usr",), devices=("/dev/null",))
walls.run_enclosed(view, walls.Work(lambda why: why and print(why), call, lambda code: None))
"""
)


def test_with_a_device_of_a_gpu_threads_can_be_named_and_nothing_else_changed() -> None:
    """NVIDIA's driver names its threads as it starts, or does not start."""
    assert json.loads(run_inside(WRITABLE)) == ["named\n", []]


REACHED = (
    WITHOUT_RIGHTS.partition("if sys.argv[2] ==")[0]
    + """
def works(path, data):
    try:
        with open(path, "r+b", buffering=0) as file:
            return file.write(data) == len(data)
    except OSError:
        return False

def call():
    tried = [
        (f"/proc/{who}/{name}", data)
        for who in ("1", "1/task/1", "self", "thread-self")
        for name, data in (
            ("oom_score_adj", b"-1"), ("oom_adj", b"-17"), ("uid_map", b"0 0 1"),
            ("gid_map", b"0 0 1"), ("setgroups", b"allow"), ("timens_offsets", b"monotonic 1 0"),
            ("attr/current", b"unconfined"), ("attr/exec", b"unconfined"),
        )
    ]
    # To open some is enough.
    tried += [("/proc/1/mem", b""), ("/proc/1/fd/1", b""), ("/proc/1/comm", b"x")]
    # By the root of the first process, or its working folder.
    tried += [(f"/proc/1/{way}/proc/sys/kernel/hostname", b"") for way in ("root", "cwd/..")]
    tried += [("/proc/net/arp", b"")]
    found = [path for path, data in tried if works(path, data)]
    own = [works("/proc/self/mem", b""), works("/proc/self/comm", b"x")]
    os.write(1, json.dumps([os.getuid(), own, found]).encode() + b"\\n")

view = walls.View(("/usr",), devices=("/dev/null",))
walls.run_enclosed(view, walls.Work(lambda why: why and print(why), call, lambda code: None))
"""
)


def test_with_a_device_of_a_gpu_neither_rights_nor_the_first_process_are_reached() -> None:
    """As nobody, if this is root; and as root."""
    as_it_is = REACHED.replace("if os.getuid() == 0:", "if False:")
    for text in {REACHED, as_it_is} if os.getuid() == 0 else {as_it_is}:
        user = 65534 if text is REACHED and os.getuid() == 0 else os.getuid()
        assert json.loads(run_inside(text)) == [user, [True, True], []]


@pytest.mark.parametrize("seconds", ["0.5", "inf"], ids=["returns", "is ended"])
@pytest.mark.parametrize(
    "walls", [True, pytest.param(False, marks=pytest.mark.thorough)], ids=["walls", "no walls"]
)
def test_its_processor_time_is_that_of_a_child(
    seconds: str, walls: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one that is killed at its limit."""
    name = write(
        tmp_path,
        f"""
        import time
        def attention(query, key, value):
            while time.process_time() < started + float("{seconds}"):
                pass
            return query.clone()
        started = time.process_time()
        """,
    )
    monkeypatch.setattr(Session, "ways", (walls,))
    process = zygote.zygote().process
    before = os.times()
    with Session(name, limit=60.0 if seconds != "inf" else 0.5) as session:
        with contextlib.suppress(Lost):
            Remote(session)(*inputs())
        own = psutil.Process(process.pid).cpu_times()
    zygote.zygote().end()
    after = os.times()
    used = after.children_user + after.children_system
    used -= before.children_user + before.children_system
    # Its own use, for PyTorch above all, was counted before, too.
    assert used > own.user + own.system + 0.4


def test_the_filter_knows_this_machine_and_refuses_others() -> None:
    either = (False, True)
    for machine, loopback, devices in itertools.product(("x86_64", "aarch64"), either, either):
        steps = seccomp.program(machine, loopback=loopback, devices=devices)
        assert len(steps) < 4096
        returns = 6
        assert steps[-1][0] == returns
        for at, (code, if_true, if_false, _) in enumerate(steps):
            assert code == returns or at + 1 + max(if_true, if_false) < len(steps)
    with pytest.raises(OSError, match="no table of system calls for pdp11"):
        seccomp.program("pdp11")


def test_an_interpreted_kernel_runs_in_it(tmp_path: Path) -> None:
    name = write(
        tmp_path,
        """
        import pyimpl

        def attention(query, key, value, is_causal=False, scale=None):
            return pyimpl.attention(
                query, key, value, is_causal=is_causal, scale=scale, backend="triton"
            )
        """,
    )
    chosen = [*committed.some("small-random", 6), *committed.some("causal", 4)]
    (outcome,) = outcomes(Subject(name), chosen, ("float32",), CONDITIONS)
    assert [v.status for v in outcome.result.vectors] == ["passed"] * 10
    assert "pyimpl" in outcome.description.borrows
    assert Path(pyimpl.__file__).parent in map(Path, sight_of(name, "cpu").view.read)


@pytest.mark.thorough
def test_a_compiled_function_runs_in_it(tmp_path: Path) -> None:
    name = write(
        tmp_path,
        """
        import torch

        @torch.compile(dynamic=True)
        def attention(query, key, value, scale=1.0):
            return (query @ key.mT * scale).softmax(-1) @ value
        """,
    )
    conditions = replace(CONDITIONS, limit=600.0)
    subject = Subject(name, without=("gradients",))
    (outcome,) = outcomes(subject, committed.some("small-random", 4), ("float32",), conditions)
    assert [v.status for v in outcome.result.vectors] == ["passed"] * 4
