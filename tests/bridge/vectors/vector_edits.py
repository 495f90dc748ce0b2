"""One committed vector as it is in its file, edits of it, and how it is refused then."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Sequence
from functools import cache, reduce
from typing import Any

import pytest

from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import default_directory, family_of

Vector = dict[str, Any]


@cache
def read_committed(name: str) -> bytes:
    return (default_directory() / f"{name}.json").read_bytes()


def document(name: str, n: int) -> dict[str, Any]:
    """A committed family with its vector `n` alone."""
    loaded: dict[str, Any] = json.loads(read_committed(name))
    loaded["vectors"] = loaded["vectors"][n : n + 1]
    return loaded


def refusal(read: Callable[[], object]) -> str:
    """The sentence with which reading ends; checked to be one."""
    with pytest.raises(VectorError) as caught:
        read()
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert sentence.isprintable()
    assert len(sentence) < 400
    return sentence


def refusal_of(name: str, n: int, edit: Callable[[Vector], object]) -> str:
    """That of a committed vector, good before this edit, which is named in it."""
    edited = document(name, n)
    family_of(edited, f"{name}.json")
    edit(edited["vectors"][0])
    sentence = refusal(lambda: family_of(edited, f"{name}.json"))
    assert sentence.startswith(f"{name}.json: {edited['vectors'][0]['id']}: ")
    return sentence


def at(vector: Vector, path: Sequence[Any]) -> Any:
    """The value at the end of these keys."""
    return reduce(operator.getitem, path, vector)


def put(*path: Any) -> Callable[[Vector], None]:
    """An edit: keys, then the new value."""
    *keys, last, value = path
    return lambda vector: operator.setitem(at(vector, keys), last, value)


def drop(*path: Any) -> Callable[[Vector], None]:
    """An edit: the last entry of a list goes."""
    return lambda vector: at(vector, path).pop()
