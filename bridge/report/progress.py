"""How far the stages are: bars on a terminal, elsewhere a line now and then."""

from __future__ import annotations

import threading
import time
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Live

# Seconds between two lines where there is no terminal.
PACE = 15.0
# The share of the work from which on its own pace tells more than the recorded times.
_TELLING = 0.1


class Bar:
    """How far one stage is. A context manager: it is shown as long as the context lasts.

    expected: how many seconds the whole is thought to take, until its own pace tells.
    """

    def __init__(self, progress: Progress, title: str, expected: float | None) -> None:
        self.title = title
        self.done = self.total = 0
        self._progress, self._expected = progress, expected
        self._start = time.monotonic()
        self._share = 0.0
        # When the first was done, and what share of the work it was.
        self._first: tuple[float, float] | None = None

    def __enter__(self) -> Self:
        self._progress.show(self)
        return self

    def __exit__(self, *raised: object) -> None:
        self._progress.drop(self)

    def advance(self, done: int, total: int, share: float | None = None) -> None:
        """So many of how many. share: of the work, between 0 and 1, if that is another than of the
        number."""
        self.done, self.total = done, total
        self._share = share if share is not None else done / max(total, 1)
        self._first = self._first or (time.monotonic(), self._share)
        self._progress.update(self)

    def text(self) -> str:
        """As in `12 of 28, about 3 min left`."""
        parts = [f"{self.done} of {self.total}"] if self.total else []
        left = self.seconds_left()
        if left is not None:
            parts.append(f"about {duration_text(left)} left")
        return ", ".join(parts)

    def seconds_left(self) -> float | None:
        """An estimate of the seconds that are left; None if nothing tells."""
        now = time.monotonic()
        if self._share < _TELLING and self._expected is not None:
            left = self._start + self._expected - now
            return left if left > 0 else None
        # The first paid for the start, so the pace is that of the others.
        since, share = self._first or (now, 0.0)
        if now == since or self._share == share:
            since, share = self._start, 0.0
        done = self._share - share
        return (now - since) * (1 - self._share) / done if done > 0 else None


def duration_text(seconds: float) -> str:
    """A length of time, roughly: `40 s`, `3 min`."""
    return f"{max(5, 5 * round(seconds / 5))} s" if seconds < 90 else f"{round(seconds / 60)} min"


class Progress:
    """All bars of one console; stages may run in several threads."""

    def __init__(self, console: Console, pace: float = PACE) -> None:
        self.console = console
        self._pace = pace
        self._lock = threading.RLock()
        self._bars: dict[Bar, TaskID] = {}
        self._live: Live | None = None
        self._quiet = threading.Event()

    def bar(self, title: str, expected: float | None = None) -> Bar:
        return Bar(self, title, expected)

    def show(self, bar: Bar) -> None:
        with self._lock:
            if not self._bars:
                self._begin()
            self._bars[bar] = TaskID(-1)
            if self._live is not None:
                self._bars[bar] = self._live.add_task(bar.title, total=None, left="")
            else:
                self.console.print(f"  {bar.title} …", markup=False, highlight=False)

    def update(self, bar: Bar) -> None:
        with self._lock:
            if self._live is not None and bar in self._bars:
                self._live.update(
                    self._bars[bar], completed=bar.done, total=bar.total or None, left=bar.text()
                )

    def drop(self, bar: Bar) -> None:
        with self._lock:
            task = self._bars.pop(bar)
            if self._live is not None:
                self._live.remove_task(task)
            if not self._bars:
                self._end()

    def stop(self) -> None:
        """Show no bar any more."""
        with self._lock:
            self._end()

    def _begin(self) -> None:
        if self.console.is_terminal:
            self._live = Live(
                SpinnerColumn(),
                TextColumn("{task.description}"),
                BarColumn(bar_width=20),
                TextColumn("{task.fields[left]}"),
                TimeElapsedColumn(),
                console=self.console,
                transient=True,
            )
            self._live.start()
        self._quiet = threading.Event()
        threading.Thread(target=self._tell, args=(self._quiet,), daemon=True).start()

    def _end(self) -> None:
        self._quiet.set()
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _tell(self, quiet: threading.Event) -> None:
        """Where the bars are, from time to time."""
        while not quiet.wait(1.0 if self.console.is_terminal else self._pace):
            with self._lock:
                for bar in self._bars:
                    if self._live is not None:
                        self.update(bar)
                    elif text := bar.text():
                        line = f"  {bar.title}: {text}"
                        self.console.print(line, markup=False, highlight=False)
