"""Processes that tests have started."""

from __future__ import annotations

import psutil


def is_alive(process: psutil.Process) -> bool:
    """Whether it runs still; one that has ended, and for which nobody has waited, does not."""
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
