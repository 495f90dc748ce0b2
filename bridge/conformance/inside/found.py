"""The function that is meant by `module:attribute` or `path/to/file.py:attribute`."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch


class NotFound(ValueError):
    """There is no such function. The message is a sentence without its subject."""


def is_well_formed(name: str) -> bool:
    """Whether such a name has both parts."""
    place, _, attribute = name.rpartition(":")
    return bool(place and attribute)


def is_file(place: str) -> bool:
    """Whether the part before the colon is a file, not a module."""
    return place.endswith(".py") or "/" in place


def function(name: str) -> Callable[..., Any]:
    """The function. Raises NotFound where there is none."""
    found = look_up(name)
    if not callable(found):
        raise NotFound(f"is of type {type(found).__name__}, which cannot be called")
    if inspect.isclass(found):
        raise NotFound(
            "is a class; a function of query, key and value is accepted, or with --problem a class "
            "of models"
        )
    called: Callable[..., Any] = found
    return called


def model(name: str, problem: str, device: str) -> tuple[torch.nn.Module, Problem]:
    """The model of the class of that name, made with the inputs that the file of a problem gives,
    and this file. Raises NotFound where there is none, or none can be made."""
    found = _file(problem)
    absent = [one for one in ("get_inputs", "get_init_inputs") if not hasattr(found, one)]
    if absent:
        raise NotFound(f"{problem} has no {absent[0]!r}")
    made = look_up(name) if Path(name.rpartition(":")[0]) != Path(problem) else None
    if made is None:
        attribute = name.rpartition(":")[2]
        if not hasattr(found, attribute):
            raise NotFound(f"{problem} has no {attribute!r}")
        made = getattr(found, attribute)
    if not (inspect.isclass(made) and issubclass(made, torch.nn.Module)):
        raise NotFound("is no class of torch.nn.Module")
    try:
        given = list(found.get_init_inputs())
        model = made(*given).to(device)
    except (Exception, SystemExit) as error:
        raise NotFound(f"cannot be made: {_describe_error(error)}") from error
    numbers = [x for x in given if isinstance(x, int) and not isinstance(x, bool) and x >= 0]
    return model, Problem(numbers, found.get_inputs)


@dataclass(frozen=True)
class Problem:
    """numbers: those that its models are made with; inputs: the function that gives theirs."""

    numbers: list[int]
    inputs: Callable[[], Any]


def look_up(name: str) -> Any:
    """The object of that name. Raises NotFound if there is none."""
    place, _, attribute = name.rpartition(":")
    if not is_well_formed(name):
        raise NotFound("is not of the form module:function or file.py:function")
    found: Any = _file(place) if is_file(place) else _module(place)
    for part in attribute.split("."):
        if not hasattr(found, part):
            near = difflib.get_close_matches(part, dir(found), 3)
            hint = f"; there is {', '.join(near)}" if near else ""
            raise NotFound(f"{place} has no {part!r}{hint}")
        found = getattr(found, part)
    return found


def _module(name: str) -> Any:
    return _import_module(name, lambda: importlib.import_module(name))


def _file(name: str) -> Any:
    path = Path(name).resolve()
    if not path.is_file():
        raise NotFound(f"there is no file {name}")

    def load() -> Any:
        spec = importlib.util.spec_from_file_location(f"conformed_{path.stem}", path)
        if spec is None or spec.loader is None:
            raise ImportError("its name does not end with .py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        # A file may import its neighbours, as a script can.
        sys.path.insert(0, str(path.parent))
        spec.loader.exec_module(module)
        return module

    return _import_module(name, load)


def _import_module(name: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (Exception, SystemExit) as error:
        raise NotFound(f"{name} cannot be imported: {_describe_error(error)}") from error


def _describe_error(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}".rstrip(": ")


def parameters(function: Callable[..., Any]) -> list[list[Any]] | None:
    """The function's signature: of each parameter its name, its kind and whether it has a default;
    None where there is no signature, as of functions written in C."""
    try:
        each = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[one.name, one.kind.name, one.default is not one.empty] for one in each]
