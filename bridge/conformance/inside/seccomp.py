"""System calls that a function under test may not make.

A filter of the kernel's (seccomp) refuses calls that reach into other processes, make namespaces or
mounts, load code into the kernel, take memory that belongs to no process, open sockets other
than those within one machine, or type into a terminal. In a network namespace of its own a process
may be given the loopback interface: then it may open sockets of IPv4 too, which reach nothing else,
and ask the kernel for the list of interfaces, as gloo does. Numbers: Linux,
include/uapi/asm-generic/unistd.h and arch/x86/entry/syscalls.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct

_LIBC = ctypes.CDLL(None, use_errno=True)
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2

# By machine: its number in the audit architecture, then the refused calls.
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_REFUSED = {
    # name: (x86_64, aarch64)
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "kcmp": (312, 272),
    "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438),
    "pidfd_send_signal": (424, 424),
    "perf_event_open": (298, 241),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    # Memory that counts as no process's, and that no limit holds (of memfd_create see below).
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "msgget": (68, 186),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "personality": (135, 92),
}
# Such memory too, without which NVIDIA's driver does not start (NVIDIA/OpenShell, issue 1696): a
# process that has devices of GPUs may take it.
_MEMFD_CREATE = (319, 279)
# Looked at by their arguments: (x86_64, aarch64).
_SOCKET, _SOCKETPAIR, _CLONE, _CLONE3, _IOCTL = (
    (41, 198),
    (53, 199),
    (56, 220),
    (435, 435),
    (16, 29),
)
_AF_UNIX, _AF_INET, _AF_NETLINK = 1, 2, 16
_NETLINK_ROUTE = 0
# CLONE_NEWTIME, NS, CGROUP, UTS, IPC, USER, PID, NET.
_NAMESPACES = (
    0x80 | 0x20000 | 0x2000000 | 0x4000000 | 0x8000000 | 0x10000000 | 0x20000000 | 0x40000000
)
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C

# Of classic BPF and of seccomp's answers.
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_Step = tuple[int, int, int, int]


def program(machine: str, *, loopback: bool = False, devices: bool = False) -> list[_Step]:
    """The filter as steps of classic BPF: (code, steps to skip if true, if false, operand).
    loopback: sockets of IPv4, and of rtnetlink, are let through; devices: memfd_create is. Raises
    OSError for a machine whose numbers are not known."""
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no table of system calls for {machine}")
    which = list(_ARCHITECTURES).index(machine)
    no, none = _ERRNO | errno.EPERM, _ERRNO | errno.ENOSYS
    steps: list[_Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE_AT),
        (_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER_AT),
    ]
    if machine == "x86_64":
        # The numbers of x32, which are the same calls once more.
        steps += [(_AT_LEAST, 0, 1, 0x40000000), (_RETURN, 0, 0, no)]
    for numbers in (*_REFUSED.values(), *([] if devices else [_MEMFD_CREATE])):
        steps += [(_EQUAL, 0, 1, numbers[which]), (_RETURN, 0, 0, no)]
    # Its flags lie in memory, where no filter sees them: the C library then calls clone.
    steps += [(_EQUAL, 0, 1, _CLONE3[which]), (_RETURN, 0, 0, none)]
    first = (_LOAD, 0, 0, _ARGUMENTS_AT)
    for call in (_SOCKET, _SOCKETPAIR):
        found = [first]
        for family in (_AF_UNIX, *([_AF_INET] if loopback else [])):
            found += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
        if loopback:
            found += [
                (_EQUAL, 0, 3, _AF_NETLINK),
                (_LOAD, 0, 0, _ARGUMENTS_AT + 16),
                (_EQUAL, 0, 1, _NETLINK_ROUTE),
                (_RETURN, 0, 0, _ALLOW),
            ]
        found.append((_RETURN, 0, 0, no))
        steps += [(_EQUAL, 0, len(found), call[which]), *found]
    steps += [
        (_EQUAL, 0, 4, _CLONE[which]),
        first,
        (_ANY_BIT, 0, 1, _NAMESPACES),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 4, _IOCTL[which]),
        (_LOAD, 0, 0, _ARGUMENTS_AT + 8),
        (_EQUAL, 1, 0, _TIOCSTI),
        (_EQUAL, 0, 1, _TIOCLINUX),
        (_RETURN, 0, 0, no),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return steps


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("steps", ctypes.c_void_p)]


def install(*, loopback: bool = False, devices: bool = False) -> None:
    """From now on, for this process and all that it starts. It must be unable to gain rights
    (PR_SET_NO_NEW_PRIVS), and for loopback be in a network namespace of its own. devices: it has
    some of GPUs. Raises OSError where the kernel takes no filter."""
    steps = program(platform.machine(), loopback=loopback, devices=devices)
    data = b"".join(struct.pack("=HBBI", *step) for step in steps)
    buffer = ctypes.create_string_buffer(data, len(data))
    given = _Program(len(steps), ctypes.addressof(buffer))
    if _LIBC.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(given), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel takes no filter of system calls")
