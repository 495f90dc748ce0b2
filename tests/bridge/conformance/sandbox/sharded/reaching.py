"""Attempts that must fail where processes may talk to each other, after one that may succeed:
each attempt is true only if it works."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import socket
import struct
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

# Written by the test: where on its machine somebody listens.
PORT = Path(__file__).parent / "port"


ATTEMPTS: list[Callable[[], bool]] = []


def attempt(act: Callable[[], bool]) -> Callable[[], bool]:
    ATTEMPTS.append(act)
    return act


def attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """In column n 1 where attempt n has worked, else 0."""
    out = torch.zeros_like(query)
    for n, act in enumerate(ATTEMPTS):
        with contextlib.suppress(OSError):
            out[..., n] = float(act())
    return out


@attempt
def talks_over_the_loopback() -> bool:
    """An allowed connection."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), timeout=5),
    ):
        return True


@attempt
def reaches_the_judges_machine() -> bool:
    with socket.create_connection(("127.0.0.1", int(PORT.read_text())), timeout=5):
        return True


@attempt
def reaches_another_machine() -> bool:
    with socket.create_connection(("192.0.2.1", 80), timeout=5):
        return True


@attempt
def sends_to_another_machine() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        return bool(one.sendto(b"x", ("192.0.2.1", 53)))


@attempt
def has_another_interface() -> bool:
    return any(name != "lo" for _, name in socket.if_nameindex())


@attempt
def gives_itself_an_address() -> bool:
    # SIOCSIFADDR
    address = struct.pack("=16sH2x4s16x", b"lo", socket.AF_INET, bytes([10, 0, 0, 1]))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one.fileno(), 0x8916, address)
        return True


@attempt
def switches_the_interface_off() -> bool:
    # SIOCSIFFLAGS
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        fcntl.ioctl(one.fileno(), 0x8914, struct.pack("=16sH22x", b"lo", 0))
        return True


@attempt
def makes_an_interface() -> bool:
    # RTM_NEWLINK of a dummy, answered by NLMSG_ERROR with 0 where it is made.
    kind = struct.pack("=HH6s2x", 10, 1, b"dummy\0")
    link = struct.pack("=BxHiII", 0, 0, 0, 0, 0) + struct.pack("=HH", len(kind) + 4, 18) + kind
    message = struct.pack("=IHHII", 16 + len(link), 16, 0x605, 1, 0) + link
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as kernel:
        kernel.send(message)
        (error,) = struct.unpack_from("=i", kernel.recv(4096), 16)
        return bool(error == 0)


@attempt
def opens_a_raw_socket() -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP):
        return True


@attempt
def opens_a_packet_socket() -> bool:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW):
        return True


@attempt
def listens_to_the_kernels_events() -> bool:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 15):
        return True


@attempt
def opens_a_socket_of_ipv6() -> bool:
    with socket.socket(socket.AF_INET6):
        return True


@attempt
def goes_to_the_first_network() -> bool:
    with open(f"/proc/{os.getppid()}/ns/net") as space:
        return bool(ctypes.CDLL(None).setns(space.fileno(), 0) == 0)


@attempt
def reads_the_whole_tensors_where_they_are_split() -> bool:
    with open(f"/proc/{os.getppid()}/mem", "rb"):
        return True


@attempt
def takes_the_pipe_that_they_come_by() -> bool:
    with open(f"/proc/{os.getppid()}/fd/3", "rb"):
        return True
