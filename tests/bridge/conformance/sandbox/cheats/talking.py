"""Messages that a terminal, a page, XML or a person might take for something else."""

from __future__ import annotations

import ctypes
import sys
import time

from honest import zeros
from torch import Tensor

CODES = "\x1b[2J\x1b]0;all vectors pass\x07\r\x9b31m\u202e"
MARKUP = "</td><script>alert(1)</script><!--"
XML = "]]></failure><testcase name='x'/>\x00\ufffe"


class Nasty(RuntimeError):
    pass


Nasty.__name__ = "All vectors pass\n\x1b[2J"


class Wordless(RuntimeError):
    def __str__(self) -> str:
        raise SystemExit(0)


def _raises(error: Exception) -> object:
    def function(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
        raise error

    return function


raises_codes = _raises(RuntimeError(CODES))
raises_markup = _raises(RuntimeError(MARKUP))
raises_xml = _raises(RuntimeError(XML))
raises_at_length = _raises(RuntimeError("x" * 10_000_000))
raises_under_a_name = _raises(Nasty("passed"))
raises_without_words = _raises(Wordless())


def prints_codes(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    print(CODES)
    print(CODES, file=sys.stderr)
    return zeros(query, key, value)


def takes_a_name(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """By which the report names a function that has not returned."""
    ctypes.CDLL(None).prctl(15, b"\x1b[2J\n</td><b>", 0, 0, 0)
    time.sleep(1000)
    return zeros(query, key, value)


class Result:
    pass


Result.__name__ = MARKUP


def returns_a_name(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> object:
    return Result()
