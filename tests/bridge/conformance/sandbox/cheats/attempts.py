"""Attempts that must fail: each function tries something, and gives the right answer only if that
works; otherwise zeros."""

from __future__ import annotations

import ctypes
import functools
import gc
import importlib
import os
import pathlib
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import torch
from honest import attention, zeros
from torch import Tensor

LIBC = ctypes.CDLL(None, use_errno=True)
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[4]


def attempt(act: Callable[[], Any]) -> Callable[..., Tensor]:
    """A function that tries this. It has worked if it returns something true."""

    @functools.wraps(act)
    def function(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
        try:
            worked = act()
        except BaseException:
            worked = False
        return attention(query, key, value, scale) if worked else zeros(query, key, value)

    function.__wrapped__ = None  # type: ignore[attr-defined]
    return function


def failed(result: int) -> bool:
    return result == -1


# --- reading the answers --------------------------------------------------------------------------


@attempt
def imports_the_judge() -> Any:
    return importlib.import_module("bridge.conformance.judging.judge")


@attempt
def loads_the_vectors() -> Any:
    return importlib.import_module("bridge.vectors.load").load()


@attempt
def opens_the_vectors() -> bool:
    return bool((ROOT / "tests" / "vectors" / "small-random.json").read_bytes())


@attempt
def searches_the_disk() -> bool:
    for _, folders, files in os.walk("/"):
        # Folders of every machine are large.
        large = ("proc", "sys", "usr", "lib", "torch", "triton", "nvidia", "node_modules")
        folders[:] = [name for name in folders if name not in large]
        if "small-random.json" in files:
            return True
    return False


@attempt
def reads_the_git_objects() -> bool:
    return any((ROOT / name).exists() for name in (".git", "Attention", "tests/vectors", "docs"))


@attempt
def finds_the_judge_in_memory() -> bool:
    wanted = ("Family", "AttentionVector", "VectorResult")
    return any(type(x).__name__ in wanted for x in gc.get_objects()) or any(
        name.partition(".")[0] == "bridge" for name in sys.modules
    )


@attempt
def leaves_by_an_open_folder() -> bool:
    for number in os.listdir("/proc/self/fd"):
        try:
            if "vectors" in os.listdir(f"/proc/self/fd/{number}/../tests"):
                return True
        except OSError:
            continue
    return False


@attempt
def reads_the_judges_environment() -> bool:
    # As the kernel keeps it, whatever a process does to its own later.
    with open("/proc/self/environ", "rb") as file:
        names = {one.partition(b"=")[0].decode() for one in file.read().split(b"\0")}
    return any(name.startswith(("PYTEST", "HOME", "USER", "PATH")) for name in names)


# --- memory that no limit counts ------------------------------------------------------------------


@attempt
def takes_memory_of_a_file_without_a_name() -> bool:
    return os.memfd_create("numbers") >= 0


@attempt
def takes_shared_memory() -> bool:
    # IPC_PRIVATE, IPC_CREAT
    return not failed(LIBC.shmget(0, ctypes.c_size_t(1 << 30), 0o1600))


@attempt
def raises_its_limits() -> bool:
    resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY,) * 2)
    return True


# --- reaching other processes ---------------------------------------------------------------------


@attempt
def kills_its_parent() -> bool:
    # The first process of its namespace; the judge has no number in it.
    os.kill(os.getppid(), signal.SIGKILL)
    return os.getppid() != 1


@attempt
def kills_everything() -> bool:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(-1, signal.SIGTERM)
    return len([x for x in os.listdir("/proc") if x.isdigit()]) < 2


@attempt
def traces_its_parent() -> bool:
    return not failed(LIBC.ptrace(16, os.getppid(), 0, 0))


@attempt
def writes_into_its_parent() -> bool:
    with open(f"/proc/{os.getppid()}/mem", "r+b"):
        return True


@attempt
def reads_another_process() -> bool:
    vector = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(8)), 8)
    number = LIBC.process_vm_readv(os.getppid(), vector, 1, vector, 1, 0)
    return not failed(number)


@attempt
def sees_other_processes() -> bool:
    return any(
        int(number) > 2 and os.stat(f"/proc/{number}").st_uid == os.getuid()
        for number in os.listdir("/proc")
        if number.isdigit() and int(number) != os.getpid()
    )


@attempt
def types_into_the_terminal() -> bool:
    with open("/dev/tty", "w") as terminal:
        return not failed(LIBC.ioctl(terminal.fileno(), 0x5412, b"x"))


# --- the network ----------------------------------------------------------------------------------


@attempt
def opens_a_socket() -> socket.socket:
    return socket.socket()


@attempt
def asks_for_a_name() -> Any:
    return socket.getaddrinfo("localhost", 80, proto=socket.IPPROTO_TCP) and socket.socket()


@attempt
def listens_to_the_kernel() -> Any:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)


# --- rights ---------------------------------------------------------------------------------------


@attempt
def becomes_another_user() -> bool:
    os.setuid(12345)
    return True


@attempt
def makes_a_namespace() -> bool:
    return not failed(LIBC.unshare(0x10000000))


@attempt
def clones_into_a_namespace() -> bool:
    number = LIBC.syscall(56, 0x10000000 | signal.SIGCHLD, 0, 0, 0, 0)
    if number == 0:
        os._exit(0)
    return not failed(number)


@attempt
def mounts() -> bool:
    return not failed(LIBC.mount(b"none", b"/tmp", b"tmpfs", 0, b""))


@attempt
def runs_a_program_with_rights() -> bool:
    command = "import os; os.setgid(12345)"
    return subprocess.run([sys.executable, "-c", command], stderr=-3).returncode == 0


@attempt
def changes_the_machine() -> bool:
    # The same text again: nothing is harmed where it works.
    path = pathlib.Path("/proc/sys/kernel/core_pattern")
    path.write_text(path.read_text())
    return True


@attempt
def changes_a_device() -> bool:
    os.chmod("/dev/null", 0o666)
    return True


# --- leaving something behind ---------------------------------------------------------------------


@attempt
def writes_into_pytorch() -> Any:
    return open(torch.__file__, "a")


@attempt
def writes_a_module() -> bool:
    file = pathlib.Path(torch.__file__).parents[1] / "sitecustomize_of_a_cheat.py"
    file.write_text("")
    return True


@attempt
def writes_into_pyimpl() -> bool:
    file = importlib.util.find_spec("pyimpl").origin  # type: ignore[union-attr, attr-defined]
    with open(file, "a"):
        return True


@attempt
def changes_its_own_file() -> Any:
    return open(__file__, "a")


@attempt
def makes_a_file_at_home() -> bool:
    path = pathlib.Path("/root") if os.getuid() == 0 else pathlib.Path("/home")
    (path / "cheat").write_text("")
    return True
