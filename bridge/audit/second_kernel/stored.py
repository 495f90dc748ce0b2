"""The constants of the library and of Lean's own modules, as their stored bytes have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from bridge.audit.second_kernel.olean import Module, OleanError
from bridge.audit.second_kernel.terms import Line, Terms

# Where Lean keeps the kind of a constant before its body was left out.
_KINDS = "privateConstKindsExt"


class Kind(IntEnum):
    """The kind of a constant, in the order in which Lean stores it."""

    AXIOM = 0
    DEFINITION = 1
    THEOREM = 2
    OPAQUE = 3
    QUOTIENT = 4
    INDUCTIVE = 5
    CONSTRUCTOR = 6
    RECURSOR = 7


# Its kind before, in an order of its own; in the words of the audit.
_ORIGINAL = ("definition", "theorem", "axiom", "opaque constant")


@dataclass(frozen=True)
class Constant:
    """name, parameters: numbers of names; type: the address of a term; fields: addresses of its
    other parts, by kind; scalars: bytes that are no objects; own: of the library."""

    name: int
    kind: Kind
    module: Module
    own: bool
    parameters: tuple[int, ...]
    type: int
    fields: Sequence[int]
    scalars: bytes

    @property
    def unsafe(self) -> bool:
        """Unsafe or partial: the kernel takes nothing of the kind from a safe constant."""
        match self.kind:
            case Kind.DEFINITION:
                return self.scalars[0] != 1
            case Kind.INDUCTIVE | Kind.RECURSOR:
                return self.scalars[1] != 0
            case Kind.AXIOM | Kind.OPAQUE | Kind.CONSTRUCTOR:
                return self.scalars[0] != 0
            case _:
                return False


class Stored:
    """The modules `own`, by name with their parts, and their imports of Lean's own, below the
    folder `shipped`. Raises OleanError for modules stored in another way.

    numbers: of the names of constants; originals: the kinds of constants without a body.
    """

    def __init__(self, own: Mapping[str, Sequence[Path]], shipped: Path, write: Line) -> None:
        self.terms = Terms(write)
        self.numbers: dict[str, int] = {}
        self.originals: dict[int, str] = {}
        self.own: list[int] = []
        self._places: dict[int, tuple[Module, int, bool]] = {}
        self._known: dict[int, Constant] = {}
        self._recursors: dict[Module, dict[int, list[int]]] = {}
        self._constants_of: dict[Module, list[int]] = {}
        done: set[str] = set()
        waiting = sorted(own)
        while waiting:
            name = waiting.pop()
            if name in done:
                continue
            done.add(name)
            here = name in own
            paths = (
                own[name] if here else [shipped.joinpath(*name.split(".")).with_suffix(".olean")]
            )
            module = Module(name, paths)
            if here:
                self.commit = module.parts[0].commit
            waiting += self._read(module, own=here)

    def _read(self, module: Module, *, own: bool) -> list[str]:
        """Enter the constants of a module; the names of its imports."""
        _, (imports, names, constants, _, entries), _ = module.constructor(module.root)
        numbers = self._constants_of[module] = []
        for name, constant in zip(module.array(names), module.array(constants), strict=True):
            number = self.terms.name(module, name)
            numbers.append(number)
            if own:
                self.own.append(number)
            # Several modules may make the same constant; one of them may have it without its body.
            if number not in self._places or self._is_axiom(*self._places[number][:2]):
                self._places[number] = (module, constant, own)
                self.numbers[self.terms.shown[number]] = number
        for entry in module.array(entries):
            _, (extension, values), _ = module.constructor(entry)
            if module.last_of_name(extension) == _KINDS:
                for value in module.array(values):
                    _, (name, kind), _ = module.constructor(value)
                    what = _ORIGINAL[kind >> 1] if kind >> 1 < len(_ORIGINAL) else "constant"
                    self.originals[self.terms.name(module, name)] = what
        return [module.plain_name(module.constructor(one)[1][0]) for one in module.array(imports)]

    @staticmethod
    def _is_axiom(module: Module, address: int) -> bool:
        return module.constructor(address)[0] == Kind.AXIOM

    def constant(self, name: int) -> Constant:
        if (known := self._known.get(name)) is not None:
            return known
        if name not in self._places:
            raise OleanError(f"no module has {self.terms.shown[name]}, which a term names")
        module, address, own = self._places[name]
        tag, (value,), _ = module.constructor(address)
        _, fields, scalars = module.constructor(value)
        _, (_, parameters, type_), _ = module.constructor(fields[0])
        names = tuple(self.terms.name(module, one) for one in module.list(parameters))
        made = Constant(name, Kind(tag), module, own, names, type_, fields, scalars)
        self._known[name] = made
        return made

    def recursors(self, module: Module, inductive: int) -> list[int]:
        """Those that a module has for the first of the inductive types that are declared together,
        by name."""
        if module not in self._recursors:
            found: dict[int, list[int]] = {}
            for name in self._constants_of[module]:
                one = self.constant(name)
                if one.kind == Kind.RECURSOR:
                    first = self.terms.name(one.module, one.module.list(one.fields[1])[0])
                    found.setdefault(first, []).append(name)
            self._recursors[module] = found
        shown = self.terms.shown
        return sorted(self._recursors[module].get(inductive, ()), key=lambda n: shown[n])
