"""Walls around a function under test, by Linux namespaces.

`enclosed` puts the calling process, which must have one thread, into namespaces of its own: of
users, so that it needs no rights to do so; of mounts, whose root holds the files that `View` names
and no more; of processes, of the network, of System V's IPC and of host names. Then it forks: a
first process, which clears away those that end, and the one in which the function is called. That
one gives up all rights for good, gets limits, and a filter of system calls (`seccomp`). Where the
view says so, the network namespace has its loopback interface, and nothing else.

    the judge
      zygote            has imported PyTorch; forks
        keeper          outside of the new process namespace: tells how it ended
          first process
            function    sees no other process than the first, itself and its children
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import resource
import signal
import socket
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from . import seccomp

_LIBC = ctypes.CDLL(None, use_errno=True)

# linux/sched.h
_NEWNS, _NEWUTS, _NEWIPC = 0x20000, 0x4000000, 0x8000000
_NEWUSER, _NEWPID, _NEWNET = 0x10000000, 0x20000000, 0x40000000
_ALL = _NEWNS | _NEWUTS | _NEWIPC | _NEWPID | _NEWNET
# linux/mount.h
_NOSUID, _NODEV, _NOEXEC, _BIND, _REC, _PRIVATE = 2, 4, 8, 4096, 16384, 1 << 18
_ATTR_RDONLY, _ATTR_NOSUID, _ATTR_NODEV = 1, 2, 4
_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
# System calls that the C library need not have; their numbers, of x86_64 and aarch64.
_SYS = {"x86_64": (155, 442), "aarch64": (41, 442)}
# linux/prctl.h
_SET_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP, _SET_CHILD_SUBREAPER = 1, 4, 24, 36
_SET_NO_NEW_PRIVS = 38
_CAPABILITIES = 64
_CAP_VERSION_3 = 0x20080522

# Errors of systems that do not let a user make namespaces.
_WHY_NOT = {
    errno.ENOSPC: "user namespaces are switched off (user.max_user_namespaces)",
    errno.EPERM: "namespaces are not permitted (by a container's filter of system calls, or by "
    "kernel.apparmor_restrict_unprivileged_userns or kernel.unprivileged_userns_clone)",
}
# Devices that every process may use.
_DEVICES = ("null", "zero", "full", "random", "urandom")
# The size of a memory file system of its own, in bytes.
_SCRATCH = 2 << 30
# linux/if.h, linux/sockios.h
_IFF_UP, _SIOCSIFFLAGS = 1, 0x8914
# Variables that a function's process keeps: those that choose threads, devices and languages.
KEPT = ("OMP_", "MKL_", "CUDA_", "NVIDIA_", "LANG", "LC_", "TRITON_INTERPRET", "TZ")
# A process namespace with fewer numbers than this cannot be had (kernel/pid.c).
_LEAST_PROCESSES = 301


@dataclass(frozen=True)
class View:
    """The files that a function's process sees, all of them read-only: `read`, files and folders;
    less `hide`, of which folders become empty, and files too; `links`, by path, to where. devices:
    of GPUs. Beside that it has a private /tmp and /dev/shm, and /proc of its own processes, or an
    empty one; of a process that has devices /proc is read-only but for the entries of its own
    processes.

    memory: bytes that a process may take for data; processes: how many there may be; loopback:
    whether they may talk over an interface of their own.
    """

    read: tuple[str, ...]
    hide: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    devices: tuple[str, ...] = ()
    memory: int = 16 << 30
    processes: int = 512
    loopback: bool = False

    @classmethod
    def of(cls, data: dict[str, Any]) -> View:
        """From its value in JSON."""
        links = tuple((path, target) for path, target in data["links"])
        lists = (tuple(data["read"]), tuple(data["hide"]), links, tuple(data["devices"]))
        return cls(*lists, data["memory"], data["processes"], data["loopback"])


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    given = (source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())
    _check(_LIBC.mount(*given), f"mounting {target}")


def _system_call(number: int, *arguments: Any) -> int:
    return int(_LIBC.syscall(ctypes.c_long(number), *arguments))


def _numbers() -> tuple[int, int]:
    machine = platform.machine()
    if machine not in _SYS:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    return _SYS[machine]


def apart() -> None:
    """Put this process into namespaces of its own; its children too into one of processes. Raises
    OSError where the system does not let it."""
    uid, gid = os.geteuid(), os.getegid()
    _numbers()
    if _LIBC.unshare(_NEWUSER | _ALL) == 0:
        for name, text in (
            ("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")
        ):  # fmt: skip
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    else:
        number = ctypes.get_errno()
        # Where namespaces of users are switched off, root can do without.
        if _LIBC.unshare(_ALL) != 0:
            raise OSError(number, _WHY_NOT.get(number, f"no namespaces: {os.strerror(number)}"))
    _mount("none", "/", "", _REC | _PRIVATE)


def furnish(view: View) -> None:
    """Make the view's files the root of this process, the first of a new process namespace.
    Raises OSError."""
    pivot, mount_setattr = _numbers()
    # Of a file system of its own both roots are made: `/old`, which goes again, and `/new`.
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=755")
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    _check(_system_call(pivot, b"/tmp", b"/tmp/old"), "changing the root")
    os.chdir("/")
    new = "/new"
    _mount("tmpfs", new, "tmpfs", _NOSUID | _NODEV, "mode=755")

    def scratch(path: str, mode: str) -> None:
        os.makedirs(new + path, exist_ok=True)
        _mount("tmpfs", new + path, "tmpfs", _NOSUID | _NODEV, f"mode={mode},size={_SCRATCH}")

    def bind(path: str) -> None:
        _place(f"/old{path}", new + path)
        _mount(f"/old{path}", new + path, "", _BIND | _REC)

    def seal(path: str, recursive: int = _AT_RECURSIVE, device: int = _ATTR_NODEV) -> None:
        # Of struct mount_attr the bits to set; to clear, propagation and the user namespace are 0.
        wanted = (ctypes.c_uint64 * 4)(_ATTR_RDONLY | _ATTR_NOSUID | device, 0, 0, 0)
        given = (ctypes.c_int(_AT_FDCWD), path.encode(), ctypes.c_uint(recursive), wanted)
        size = ctypes.c_size_t(ctypes.sizeof(wanted))
        _check(_system_call(mount_setattr, *given, size), f"sealing {path}")

    # Before the folders below them.
    scratch("/tmp", "1777")
    scratch("/dev/shm", "1777")
    for path in sorted(view.read):
        bind(path)
        seal(new + path)
    for path in (*(f"/dev/{name}" for name in _DEVICES), *view.devices):
        bind(path)
        # A device is written to all the same; who owns it and who may use it cannot be changed.
        seal(new + path, device=0)
    for path, target in view.links:
        if not os.path.lexists(new + path):
            os.makedirs(os.path.dirname(new + path), exist_ok=True)
            os.symlink(target, new + path)
    for link, target in (
        ("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ):  # fmt: skip
        os.symlink(target, f"{new}/dev/{link}")
    for path in view.hide:
        if os.path.isdir(new + path):
            _mount("tmpfs", new + path, "tmpfs", _NOSUID | _NODEV, "mode=755,size=4k")
            seal(new + path)
        elif os.path.exists(new + path):
            _mount("/old/dev/null", new + path, "", _BIND)
    os.mkdir(f"{new}/proc")
    try:
        _mount("proc", f"{new}/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    except PermissionError:
        # Containers that hide a part of their own /proc let nobody make another: it stays empty.
        pass
    else:
        # Kernels before 6.14 have one such limit for the whole machine, and refuse.
        with contextlib.suppress(OSError), open(f"{new}/proc/sys/kernel/pid_max", "w") as file:
            file.write(str(max(view.processes, _LEAST_PROCESSES)))
        # Root owns much of it, such as the settings of the machine, also without any right.
        if not view.devices:
            seal(f"{new}/proc")
        # NVIDIA's driver names its threads there, or does not start: of processes it stays
        # writable, which are those of the function.
        for path in _settings(f"{new}/proc") if view.devices else ():
            _mount(path, path, "", _BIND | _REC)
            seal(path)
    os.chdir(new)
    _check(_system_call(pivot, b".", b"."), "changing the root")
    _check(_LIBC.umount2(b".", _DETACH), "leaving the old root")
    os.chdir("/tmp")
    seal("/", recursive=0)
    _check(_LIBC.sethostname(b"function", 8), "naming the host")
    if view.loopback:
        _raise_loopback()


def _raise_loopback() -> None:
    """Switch the loopback interface of this network namespace on. Raises OSError."""
    request = struct.pack("=16sH22x", b"lo", _IFF_UP)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as of_the_kernel:
        fcntl.ioctl(of_the_kernel, _SIOCSIFFLAGS, request)


def _settings(proc: str) -> list[str]:
    """The entries of /proc that are not of a process."""
    with os.scandir(proc) as entries:
        return [x.path for x in entries if not x.name.isdecimal() and not x.is_symlink()]


def _place(source: str, target: str) -> None:
    """A file or folder to mount on."""
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with contextlib.suppress(FileExistsError):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o444))


def renounce(view: View) -> None:
    """Give up every right for good. Raises OSError."""
    for number in range(_CAPABILITIES):
        # Beyond the last one that the kernel knows: EINVAL.
        _LIBC.prctl(_CAPBSET_DROP, number, 0, 0, 0)
    header = (ctypes.c_uint32 * 2)(_CAP_VERSION_3, 0)
    _check(_LIBC.capset(header, (ctypes.c_uint32 * 6)()), "giving up rights")
    set_limits(view)
    _check(_LIBC.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "giving up new rights")
    seccomp.install(loopback=view.loopback, devices=bool(view.devices))


def set_limits(view: View) -> None:
    """Limits that need no walls: memory for data of a process, no core files."""
    for what, most in ((resource.RLIMIT_DATA, view.memory), (resource.RLIMIT_CORE, 0)):
        _, hard = resource.getrlimit(what)
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(what, (most, most))


def dies_with_parent() -> None:
    _LIBC.prctl(_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def adopts() -> None:
    """A descendant of this process that loses its parent becomes its child: it can wait for it,
    and so has its processor time."""
    _LIBC.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _fork(work: Callable[[], None]) -> int:
    """A child that does this and ends. Its parent gets its number."""
    pid = os.fork()
    if pid:
        return pid
    try:
        dies_with_parent()
        work()
    except BaseException:
        os._exit(70)
    os._exit(0)


@dataclass(frozen=True)
class Work:
    """The work of a session's processes. ready: in the function's, before anything of it runs,
    given why there are no walls, or None; call: after that, if the walls asked for are there;
    ended: in another process, given the status in which the function's ended, as `subprocess` has
    it."""

    ready: Callable[[str | None], None]
    call: Callable[[], None]
    ended: Callable[[int], None]


def run_enclosed(view: View, work: Work) -> None:
    """Do the work within walls, and wait for its end. Where walls cannot be had, `ready` says so
    and no more is done."""
    try:
        apart()
    except OSError as error:
        work.ready(str(error.strerror or error))
        return
    first = _fork(lambda: _first(view, work))
    # Nobody of the same user reaches into its memory.
    dumpable(False)
    os.waitpid(first, 0)


def alone(view: View, work: Work) -> None:
    """Do the work in a process that has its limits and nothing else around it."""

    def function() -> None:
        set_limits(view)
        work.ready("walls were not asked for")
        work.call()

    _tell_end(_fork(function), work)


def _first(view: View, work: Work) -> None:
    """The first process of its namespace: when it ends, all others do."""
    try:
        furnish(view)
    except OSError as error:
        work.ready(str(error.strerror or error))
        return
    dumpable(False)

    def function() -> None:
        # It may look at itself.
        dumpable(True)
        try:
            renounce(view)
        except OSError as error:
            work.ready(str(error.strerror or error))
            return
        work.ready(None)
        work.call()

    _tell_end(_fork(function), work)


def _tell_end(pid: int, work: Work) -> None:
    while True:
        ended, status = os.wait()
        if ended == pid:
            work.ended(os.waitstatus_to_exitcode(status))
            return


def dumpable(value: bool) -> None:
    """Whether processes of the same user may look into this one: its memory, its open files."""
    _LIBC.prctl(_SET_DUMPABLE, int(value), 0, 0, 0)
