"""The process that sessions are forked from: it has imported PyTorch and has run nothing."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bridge import working_folder
from bridge.conformance import inside
from bridge.conformance.inside.shards import Shards
from bridge.conformance.inside.walls import KEPT, View
from bridge.interrupt import unseen_by_children

# The package of `inside`, without that of which it is a part. Imported modules are no garbage, and
# counts as old for the functions (`bridge.garbage`).
_START = """
import gc, importlib.util, sys
gc.disable()
number, folder = int(sys.argv[1]), sys.argv[2]
spec = importlib.util.spec_from_file_location(
    "inside", folder + "/__init__.py", submodule_search_locations=[folder])
sys.modules["inside"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
from inside import zygote
gc.freeze()
gc.unfreeze()
gc.enable()
zygote.main(number)
"""

# By this the dynamic linker finds the libraries of some interpreters.
_OF_THE_LINKER = "LD_LIBRARY_PATH"

_lock = threading.Lock()
# Seconds by the clock in which it ends by itself, or is killed.
_ENDING = 2.0


class Zygote:
    """A running one. It ends when this process does, or when `end` is called."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        folder = str(Path(inside.__file__).parent)
        number = theirs.fileno()
        # Ctrl-C does not wait for its imports; `fork` does, and lets Ctrl-C through.
        with working_folder.unknown_to_children(), unseen_by_children():
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, str(number), folder],
                stdin=subprocess.DEVNULL,
                pass_fds=(number,),
                env=_environment(),
            )
        theirs.close()
        self._answers = False

    def fork(
        self,
        view: View,
        paths: Sequence[str],
        walls: bool,
        pipes: Sequence[int],
        shards: Shards | None = None,
    ) -> int:
        """The number of the process that keeps a new session with these pipes (`inside.zygote`).
        Raises OSError where this one has ended."""
        message: dict[str, Any] = {"view": asdict(view), "paths": list(paths), "walls": walls}
        message["shards"] = None if shards is None else asdict(shards)
        with _lock:
            socket.send_fds(self.socket, [json.dumps(message).encode()], list(pipes))
            answer = self.socket.recv(4)
        if len(answer) < 4:
            raise OSError(f"the process that functions start from ended: {self.process.wait()}")
        self._answers = True
        (pid,) = struct.unpack("=i", answer)
        return int(pid)

    def end(self) -> None:
        """End it, and so its sessions, whose processor time is then that of children of this
        process; imports still under way are not waited for."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        if self._answers:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_ENDING)
        self.process.kill()
        self.process.wait()


def _environment() -> dict[str, str]:
    """That of the process: the kernel shows it to each session's function, in /proc, whatever that
    process clears later. Threads that have nothing to do sleep: by default those of OpenMP wait
    busily, on a machine with other work for longer than they compute."""
    kept = {n: x for n, x in os.environ.items() if n.startswith(KEPT) or n == _OF_THE_LINKER}
    return {"OMP_WAIT_POLICY": "PASSIVE", **kept}


_running: tuple[int, Zygote] | None = None


def zygote() -> Zygote:
    """That of this process, started when it is first asked for."""
    global _running
    with _lock:
        # A copy of a process that has one has none itself.
        if _running is None or _running[0] != os.getpid() or _running[1].process.poll() is not None:
            _running = os.getpid(), Zygote()
            atexit.register(_running[1].end)
        return _running[1]
