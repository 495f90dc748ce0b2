"""Start the embedded Lean and talk to it: requests on its input, answers as `@@ {json}` lines."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node

# KiB of stack for Lean's own threads. Interpreted recursion needs far more than the default.
THREAD_STACK = 200_000
# How long Node runs a function before it optimises it: optimising early costs more than it gains
# in a build, where most functions run for a moment only.
PATIENCE = "--wasm-tiering-budget=100000000"


# Bytes that may wait to be read. Node writes a line once: what does not fit is lost.
PIPE = 1 << 20


@dataclass(frozen=True)
class Runtime:
    """A Node and the folder with `lean.js`, `lean.wasm` and `lean.sym`."""

    node: Node
    folder: Path

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs Lean with these arguments."""
        script = str(self.folder / "lean.js")
        return [str(self.node.node), PATIENCE, script, f"--tstack={THREAD_STACK}", *arguments]


class LeanProcess:
    """A running Lean. A context manager: it is ended with the context.

    Lean prints other things besides answers (`[DEBUG…]` lines, an echo of its input); the last of
    them are kept, for the message when it ends unexpectedly.
    """

    def __init__(
        self, runtime: Runtime, arguments: Sequence[str], *, lean_path: Sequence[Path], cwd: Path
    ) -> None:
        self.noise: deque[str] = deque(maxlen=12)
        self.overdue: str | None = None
        command = runtime.command(*arguments)
        try:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pipesize=PIPE,
                cwd=cwd,
                env={**os.environ, "LEAN_PATH": os.pathsep.join(map(str, lean_path))},
            )
        except OSError as error:
            raise ToolchainError(f"{command[0]} does not start: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                # What was still to be written has no reader any more.
                with contextlib.suppress(OSError):
                    stream.close()
        self.process.wait()

    @contextlib.contextmanager
    def within(self, seconds: float, otherwise: str) -> Iterator[None]:
        """A block that may take so long; then Lean is ended, and what waits for its answers raises
        ToolchainError with this sentence."""

        def end() -> None:
            self.overdue = otherwise
            self.process.kill()

        timer = threading.Timer(seconds, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def send(self, text: str) -> None:
        """Write to its standard input. Raises ToolchainError if it has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def close_input(self) -> None:
        """No more requests."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def lines(self) -> Iterator[str]:
        """Its output, line by line, until it ends."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            yield line.decode("utf-8", "replace").rstrip("\n")

    def answers(self) -> Iterator[dict[str, Any]]:
        """Its answers, one after the other. Raises ToolchainError if it ends before the reader
        stops asking."""
        for line in self.lines():
            if line.startswith("@@ {"):
                yield json.loads(line[3:])
            elif not line.startswith("[DEBUG"):
                self.noise.append(line)
        raise self._ended()

    def _ended(self) -> ToolchainError:
        status = self.process.wait()
        if self.overdue is not None:
            return ToolchainError(self.overdue)
        said = " / ".join(line for line in self.noise if line.strip())[-500:]
        if "out of memory" in said:
            return ToolchainError("the embedded Lean ran out of memory (its limit is 2 GiB)")
        how = f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        return ToolchainError(f"the embedded Lean {how}: {said or 'no output'}")

    def memory(self) -> int:
        """Resident memory in bytes, or 0 where the system does not tell."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return 0
        sizes = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS")]
        return int(sizes[0]) * 1024 if sizes else 0
