"""Start the embedded Lean and talk to it: requests on its input, answers as `@@ {json}` lines."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

from bridge import limits
from bridge.limits import Limit, Passed
from bridge.toolchain.errors import ToolchainError
from bridge.toolchain.node import Node

# KiB of stack for Lean's own threads. Interpreted recursion needs far more than the default.
THREAD_STACK = 200_000
# How long Node runs a function before it optimises it: optimising early costs more than it gains
# in a build, where most functions run for a moment only.
PATIENCE = "--wasm-tiering-budget=100000000"

# How long to wait for more output, in seconds: at first, and at most.
SHORT, LONG = 0.001, 0.02


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

    Its output goes to a file that has no name any more, and is read from there: if a pipe were full
    at the moment of a write, Node would lose the rest.

    Lean prints other things besides answers (`[DEBUG…]` lines, an echo of its input); the last of
    them are kept, for the message when it ends unexpectedly.
    """

    def __init__(
        self, runtime: Runtime, arguments: Sequence[str], *, lean_path: Sequence[Path], cwd: Path
    ) -> None:
        self.noise: deque[str] = deque(maxlen=12)
        self.overdue: str | None = None
        self._unread: deque[bytes] = deque()
        self._rest = b""
        command = runtime.command(*arguments)
        with tempfile.NamedTemporaryFile(prefix="lean-output-") as output:
            # Opened again: this end has a position of its own. It outlives the `with`, and is
            # closed in `__exit__`: hence no `with` of its own (SIM115).
            self._output = open(output.name, "rb", buffering=0)  # noqa: SIM115
            try:
                self.process = subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    cwd=cwd,
                    env={**os.environ, "LEAN_PATH": os.pathsep.join(map(str, lean_path))},
                )
            except OSError as error:
                self._output.close()
                raise ToolchainError(f"{command[0]} does not start: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        assert self.process.stdin is not None
        # The rest of the input has no reader any more.
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self._output.close()
        self.process.wait()

    @contextlib.contextmanager
    def within(self, limit: Limit, what: str, waited_for: Callable[[], str]) -> Iterator[None]:
        """A block in which Lean may use so much: past that it is ended, and whoever waits for its
        answers gets a ToolchainError. what, waited_for: parts of that sentence, such as "the audit"
        and "the answer after that of Nat.add"."""

        def end(passed: Passed) -> None:
            self.overdue = f"{what} was ended, since it {passed}; it waited for {waited_for()}"

        with limits.watch_process(self.process.pid, limit, end):
            yield

    def send(self, text: str) -> None:
        """Write to its standard input. Raises ToolchainError if it has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(text.encode())
            self.process.stdin.flush()
        except OSError as error:
            raise self._error_of_end() from error

    def close_input(self) -> None:
        """No more requests."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def lines(self) -> Iterator[str]:
        """The process's output, line by line, until it ends."""
        wait = SHORT
        while True:
            while self._unread:
                yield self._unread.popleft().decode("utf-8", "replace")
            # Asked first: after the end there is nothing more to come.
            ended = self.process.poll() is not None
            if chunk := self._output.read(1 << 20):
                *lines, self._rest = (self._rest + chunk).split(b"\n")
                self._unread.extend(lines)
                wait = SHORT
            elif not ended:
                time.sleep(wait)
                wait = min(2 * wait, LONG)
            elif self._rest:
                self._unread.append(self._rest)
                self._rest = b""
            else:
                return

    def answers(self) -> Iterator[dict[str, Any]]:
        """The process's answers, one after the other. Raises ToolchainError if it ends before the
        reader stops asking."""
        for line in self.lines():
            if line.startswith("@@ {"):
                yield json.loads(line[3:])
            elif not line.startswith("[DEBUG"):
                self.noise.append(line)
        raise self._error_of_end()

    def answers_until(self, key: str) -> list[dict[str, Any]]:
        """The process's answers up to the first with this key. Raises as `answers` does."""
        found = []
        for answer in self.answers():
            found.append(answer)
            if key in answer:
                break
        return found

    def _error_of_end(self) -> ToolchainError:
        status = self.process.wait()
        if self.overdue is not None:
            return ToolchainError(self.overdue)
        said = " / ".join(line for line in self.noise if line.strip())[-500:]
        if "out of memory" in said:
            return ToolchainError("the embedded Lean ran out of memory (its limit is 2 GiB)")
        how = f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        return ToolchainError(f"the embedded Lean {how}: {said or 'no output'}")

    def memory(self) -> int:
        """Resident memory in bytes, or 0 where it has ended."""
        try:
            return psutil.Process(self.process.pid).memory_info().rss
        except psutil.Error:
            return 0
