"""A native Lean kernel, called through its library's C functions: it checks an export.

An error of the library can end the process: `process` is one of its own.

The kernel's interface is private to Lean and other in each version; so the version is looked at.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

LEAN = "4.35.0"
_OBJECT, _SIZE, _BYTE = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint8
_RECURSION = 1_000_000
_STRING, _BOX_LIMIT = 249, 1 << 62
_BINDERS = {"default": 0, "implicit": 1, "strictImplicit": 2, "instImplicit": 3}
_LETTERS = {5: "a", 6: "l", 7: "p", 8: "t"}
# `Lean.Kernel.Exception`, in its order.
_REASONS = (
    *("unknown constant", "already declared", "declared type mismatch"),
    *("declaration has metavariables", "declaration has free variables", "function expected"),
    *("type expected", "let type mismatch", "expression type mismatch"),
    *("application type mismatch", "invalid projection", "type of theorem is no proposition"),
    *("other", "deterministic timeout", "excessive memory", "deep recursion", "interrupted"),
)
_OTHER = _REASONS.index("other")
_AXIOM, _THEOREM, _RECURSOR = 0, 2, 7


class Refused(Exception):
    """A declaration or a line that is not accepted. The message is one sentence."""


class Objects:
    """Lean's objects of a library, made and read. An object is an address, or a number twice and 1.

    Objects made here live as long as the process: nothing is counted.
    """

    def __init__(self, library: str) -> None:
        self.library = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        self._kept: list[Any] = []
        self.function("lean_initialize", result=None)()
        started = self.function("initialize_Lean", _BYTE, _OBJECT)(1, 1)
        if self.tag(started) != 0:
            raise Refused("the library does not initialise")
        self.function("lean_io_mark_end_initialization", result=None)()
        self._persist = self.function("lean_mark_persistent", _OBJECT, result=None)
        self._string = self.function("lean_mk_string_from_bytes", ctypes.c_char_p, _SIZE)
        self._number = self.function("lean_cstr_to_nat", ctypes.c_char_p)
        self._digits = self.function("l_Nat_reprFast", _OBJECT)
        version = _OBJECT.in_dll(self.library, "l_Lean_versionString").value
        self.version = self.text(version or 1)

    def function(self, name: str, *arguments: Any, result: Any = _OBJECT) -> Callable[..., Any]:
        found: Any = getattr(self.library, name)
        found.argtypes, found.restype = arguments, result
        function: Callable[..., Any] = found
        return function

    def keep(self, address: int) -> int:
        self._persist(address)
        return address

    def constructor(self, tag: int, *fields: int, scalars: bytes = b"") -> int:
        """A constructor with its fields. Its head has 0 for a count, so that none is kept."""
        room = (len(scalars) + 7) // 8 * 8
        size = 8 + 8 * len(fields) + room
        head = struct.pack("iI", 0, size | len(fields) << 16 | tag << 24)
        rest = struct.pack(f"{len(fields)}Q", *fields) + scalars.ljust(room, b"\0")
        buffer = ctypes.create_string_buffer(head + rest, size)
        self._kept.append(buffer)
        return ctypes.addressof(buffer)

    def linked_list(self, items: Iterable[int]) -> int:
        found = 1
        for item in reversed(list(items)):
            found = self.constructor(1, item, found)
        return found

    def string(self, text: str) -> int:
        data = text.encode()
        return self.keep(self._string(data, len(data)))

    def number(self, value: int) -> int:
        if value < 0:
            raise ValueError(value)
        small = value < _BOX_LIMIT
        return 2 * value + 1 if small else self.keep(self._number(str(value).encode()))

    @staticmethod
    def tag(address: int) -> int:
        """The number of an object's constructor."""
        if address & 1:
            return address >> 1
        return int(ctypes.c_uint8.from_address(address + 7).value)

    @staticmethod
    def field(address: int, index: int) -> int:
        return int(ctypes.c_size_t.from_address(address + 8 + 8 * index).value)

    def text(self, address: int) -> str:
        if self.tag(address) != _STRING:
            raise Refused("the library's objects are not as Lean's 4.35 are")
        size = self.field(address, 0)
        return ctypes.string_at(address + 32, size - 1).decode()

    def value(self, address: int) -> int:
        """A natural number. A large one is written by the library in decimal digits."""
        return address >> 1 if address & 1 else int(self.text(self._digits(address)))

    def items(self, address: int) -> list[int]:
        found = []
        while not address & 1:
            found.append(self.field(address, 0))
            address = self.field(address, 1)
        return found


class Kernel:
    """The kernel and its accepted declarations. `read` takes the lines of an export.

    library: the path of libleanshared.so of Lean 4.35.
    """

    def __init__(self, library: str) -> None:
        self.objects = o = Objects(library)
        if o.version != LEAN:
            raise Refused(f"the library is Lean {o.version}, not {LEAN}, which is called here")
        call, obj = o.function, _OBJECT
        self._str = call("l_Lean_Name_str___override", obj, obj)
        self._num = call("l_Lean_Name_num___override", obj, obj)
        self._levels = {
            "succ": call("lean_level_mk_succ", obj), "param": call("lean_level_mk_param", obj),
            "max": call("lean_level_mk_max", obj, obj),
            "imax": call("lean_level_mk_imax", obj, obj),
        }  # fmt: skip
        self._bvar, self._sort = call("lean_expr_mk_bvar", obj), call("lean_expr_mk_sort", obj)
        self._const = call("lean_expr_mk_const", obj, obj)
        self._app = call("lean_expr_mk_app", obj, obj)
        self._binder = {
            "lam": call("lean_expr_mk_lambda", obj, obj, obj, _BYTE),
            "forallE": call("lean_expr_mk_forall", obj, obj, obj, _BYTE),
        }
        self._let = call("lean_expr_mk_let", obj, obj, obj, obj, _BYTE)
        self._literal = call("lean_expr_mk_lit", obj)
        self._projection = call("lean_expr_mk_proj", obj, obj, obj)
        self._same = call("lean_expr_eqv", obj, obj, result=_BYTE)
        self._find = call("lean_environment_find", obj, obj)
        self._add = call("lean_add_decl", obj, _SIZE, _SIZE, obj, obj)
        empty = call("l_Lean_mkEmptyEnvironment", ctypes.c_uint32, obj)(0, 1)
        if o.tag(empty) != 0:
            raise Refused("the library makes no empty environment")
        self._environment = call("lean_elab_environment_to_kernel_env", obj)(o.field(empty, 0))
        self._names, self._shown = [1], [""]
        self._numbers: dict[str, int] = {}
        self._of_level = [o.keep(call("lean_level_mk_zero", obj)(1))]
        self._terms: list[int] = []
        self._generated: list[tuple[str, int, list[int]]] = []
        self._quotient = False
        self._line_number = 0
        self.accepted: Counter[str] = Counter()
        self.axioms: list[str] = []

    # --- reading ----------------------------------------------------------------------------------

    def read(self, lines: Iterable[str]) -> None:
        """The next lines. Raises Refused with the first line or declaration that is not accepted,
        after which nothing more is read."""
        decode = msgspec.json.Decoder().decode
        try:
            for line in lines:
                self._line_number += 1
                self._line(decode(line))
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise Refused(
                f"line {self._line_number} of the export is none of its format "
                f"({type(error).__name__}: {error})"
            ) from error

    def _line(self, said: dict[str, Any]) -> None:
        if "ie" in said:
            number = said.pop("ie")
            ((kind, of),) = said.items()
            self._enter(number, self._terms, self._term(kind, of))
        elif "in" in said:
            self._name(said)
        elif "il" in said:
            self._enter(said["il"], self._of_level, self._level(said))
        elif "meta" not in said:
            ((kind, what),) = said.items()
            self._declare(kind, what)

    def _enter(self, number: int, table: list[int], made: int) -> None:
        if number != len(table):
            raise ValueError(f"number {number} where {len(table)} comes next")
        table.append(self.objects.keep(made))

    def _name(self, said: dict[str, Any]) -> None:
        o = self.objects
        if "str" in said:
            prefix, last = said["str"]["pre"], said["str"]["str"]
            made = self._str(self._names[prefix], o.string(last))
        else:
            prefix, last = said["num"]["pre"], said["num"]["i"]
            made = self._num(self._names[prefix], o.number(last))
        self._enter(said["in"], self._names, made)
        before = self._shown[prefix]
        self._shown.append(f"{before}.{last}" if before else str(last))

    def _level(self, said: dict[str, Any]) -> int:
        ((kind, of),) = ((key, value) for key, value in said.items() if key != "il")
        if kind == "param":
            parts = [self._names[of]]
        else:
            parts = [self._of_level[one] for one in (of if isinstance(of, list) else [of])]
        made: int = self._levels[kind](*parts)
        return made

    def _term(self, kind: str, of: Any) -> int:
        made: int
        o, terms, names = self.objects, self._terms, self._names
        match kind:
            case "app":
                made = self._app(terms[of["fn"]], terms[of["arg"]])
            case "lam" | "forallE":
                two = (terms[of["type"]], terms[of["body"]])
                made = self._binder[kind](names[of["name"]], *two, _BINDERS[of["binderInfo"]])
            case "const":
                levels = o.linked_list(self._of_level[one] for one in of["us"])
                made = self._const(names[of["name"]], levels)
            case "bvar":
                made = self._bvar(o.number(of))
            case "sort":
                made = self._sort(self._of_level[of])
            case "letE":
                three = (terms[of[part]] for part in ("type", "value", "body"))
                made = self._let(names[of["name"]], *three, 0)
            case "natVal":
                made = self._literal(o.constructor(0, o.number(int(of))))
            case "strVal":
                made = self._literal(o.constructor(1, o.string(of)))
            case "proj":
                index = o.number(of["idx"])
                made = self._projection(names[of["typeName"]], index, terms[of["struct"]])
            case _:
                raise KeyError(kind)
        return made

    # --- declarations -----------------------------------------------------------------------------

    def _head(self, said: dict[str, Any]) -> int:
        parameters = self._name_list(said["levelParams"])
        return self.objects.constructor(0, self._names[said["name"]], parameters, self._type(said))

    def _type(self, said: dict[str, Any]) -> int:
        return self._terms[int(said["type"])]

    def _name_list(self, names: Iterable[int]) -> int:
        return self.objects.linked_list(self._names[name] for name in names)

    def _declare(self, kind: str, said: dict[str, Any]) -> None:
        made = self.objects.constructor
        if kind == "quot":
            # Four lines, and one declaration without content.
            if not self._quotient:
                self._quotient = True
                self._check("quot", "Quot", 9)
            self._generated.append((self._shown[said["name"]], said["name"], [self._type(said)]))
            return
        if kind == "inductive":
            self._inductive(said)
            return
        name, head = self._shown[said["name"]], self._head(said)
        if kind == "axiom":
            self._check(kind, name, made(0, made(0, head, scalars=b"\0")))
            self.axioms.append(name)
            self._numbers[name] = said["name"]
            return
        value, together = self._terms[said["value"]], self._name_list(said["all"])
        if kind == "def":
            hint = self._hint(said["hints"])
            self._check(kind, name, made(1, made(0, head, value, hint, together, scalars=b"\1")))
        elif kind == "thm":
            self._check(kind, name, made(2, made(0, head, value, together)))
        elif kind == "opaque":
            self._check(kind, name, made(3, made(0, head, value, together, scalars=b"\0")))
        else:
            raise ValueError(f"a declaration of the kind {kind}")
        self._numbers[name] = said["name"]

    def _hint(self, hints: str | dict[str, int]) -> int:
        if isinstance(hints, dict):
            return self.objects.constructor(2, scalars=struct.pack("I", hints["regular"]))
        return {"opaque": 1, "abbrev": 3}[hints]

    def _inductive(self, said: dict[str, Any]) -> None:
        o, names = self.objects, self._names
        types = []
        for one in said["types"]:
            inside = [c for c in said["ctors"] if c["induct"] == one["name"]]
            constructors = o.linked_list(
                o.constructor(0, names[c["name"]], self._type(c)) for c in inside
            )
            types.append(o.constructor(0, names[one["name"]], self._type(one), constructors))
        first = said["types"][0]
        parameters = self._name_list(first["levelParams"])
        number = o.number(first["numParams"])
        made = o.constructor(6, parameters, number, o.linked_list(types), scalars=b"\0")
        self._check("inductive", self._shown[first["name"]], made)
        # The kernel makes recursors of its own.
        for one in said["recs"]:
            terms = [self._type(one), *(self._terms[rule["rhs"]] for rule in one["rules"])]
            self._generated.append((self._shown[one["name"]], one["name"], terms))

    def _check(self, kind: str, name: str, declaration: int) -> None:
        o = self.objects
        found = self._add(self._environment, 0, _RECURSION, declaration, 1)
        if o.tag(found) != 1:
            error = o.field(found, 0)
            number = o.tag(error)
            why = _REASONS[number] if number < len(_REASONS) else f"reason {number}"
            more = f" ({o.text(o.field(error, 0))})" if number == _OTHER else ""
            raise Refused(f"the kernel refuses {name} ({kind}): {why}{more}")
        self._environment = o.field(found, 0)
        self.accepted[kind] += 1

    # --- its report -------------------------------------------------------------------------------

    def end(self) -> None:
        """Nothing more is added. Raises Refused where a recursor, or a part of the quotient, is
        other than the one that the kernel has made."""
        self.objects.keep(self._environment)
        o = self.objects
        for name, number, terms in self._generated:
            constant = self._constant(number)
            kernels = [] if constant is None else [o.field(o.field(constant[1], 0), 2)]
            if constant is not None and constant[0] == _RECURSOR:
                rules = o.items(o.field(constant[1], 6))
                kernels += [o.field(rule, 2) for rule in rules]
            if len(kernels) != len(terms) or not all(map(self._same, terms, kernels)):
                raise Refused(f"{name} is other than the one that the kernel makes")

    def _constant(self, number: int) -> tuple[int, int] | None:
        """The kind and the content of a constant, by the number of its name."""
        o = self.objects
        found = self._find(self._environment, self._names[number])
        if found & 1:
            return None
        information = o.field(found, 0)
        return o.tag(information), o.field(information, 0)

    def statements(self, names: Iterable[str], kind: int) -> dict[str, str | None]:
        """The digests of statements; None where the kernel has no such constant of the kind."""
        return {name: self._statement(name, kind) for name in names}

    def _statement(self, name: str, kind: int) -> str | None:
        constant = self._constant(self._numbers[name]) if name in self._numbers else None
        if constant is None or constant[0] != kind:
            return None
        o = self.objects
        head = o.field(constant[1], 0)
        parameters = [self._name_of(one) for one in o.items(o.field(head, 1))]
        return digest([*parameters, *self._term_lines(o.field(head, 2))])

    def _name_of(self, address: int) -> str:
        o = self.objects
        if address & 1:
            return ""
        before, last = self._name_of(o.field(address, 0)), o.field(address, 1)
        end = o.text(last) if o.tag(address) == 1 else str(o.value(last))
        return f"{before}.{end}" if before else end

    def _level_of(self, address: int) -> str:
        o = self.objects
        tag = o.tag(address)
        if tag == 0:
            return "0"
        if tag == 4:
            return self._name_of(o.field(address, 0))
        of = [self._level_of(o.field(address, i)) for i in range(1 if tag == 1 else 2)]
        return f"{('succ', 'max', 'imax')[tag - 1]}({','.join(of)})"

    def _term_lines(self, root: int) -> list[str]:
        """A term, a line for each of its parts, each part once and after those that it is made of;
        without the names of bound variables, and how an argument is given."""
        o = self.objects
        lines: dict[str, int] = {}
        done: dict[int, int] = {}
        stack = [root]
        while stack:
            address = stack[-1]
            tag = o.tag(address)
            first = {5: 0, 6: 1, 7: 1, 8: 1, 10: 1, 11: 2}.get(tag, 0)
            count = {5: 2, 6: 2, 7: 2, 8: 3, 10: 1, 11: 1}.get(tag, 0)
            parts = [o.field(address, i) for i in range(first, first + count)]
            waiting = [part for part in parts if part not in done]
            if waiting:
                stack += reversed(waiting)
                continue
            stack.pop()
            if address not in done:
                of = [done[part] for part in parts]
                if tag == 10:
                    done[address] = of[0]
                else:
                    line = self._part_line(address, tag, of)
                    done[address] = lines.setdefault(line, len(lines))
        return list(lines)

    def _part_line(self, address: int, tag: int, of: list[int]) -> str:
        o = self.objects
        if tag in _LETTERS:
            return " ".join((_LETTERS[tag], *map(str, of)))
        if tag == 0:
            return f"b {o.value(o.field(address, 0))}"
        if tag == 3:
            return f"s {self._level_of(o.field(address, 0))}"
        if tag == 4:
            levels = [self._level_of(one) for one in o.items(o.field(address, 1))]
            return " ".join(("c", self._name_of(o.field(address, 0)), *levels))
        if tag == 9:
            literal = o.field(address, 0)
            value = o.field(literal, 0)
            return f"n {o.value(value)}" if o.tag(literal) == 0 else f"x {o.text(value)}"
        if tag == 11:
            name, index = self._name_of(o.field(address, 0)), o.value(o.field(address, 1))
            return f"j {name} {index} {of[0]}"
        raise Refused(f"a statement has a term of kind {tag}")


def digest(lines: Iterable[str]) -> str:
    """Of a statement: its level parameters and the lines of its term."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


# Takes the next lines of an export.
Read = Callable[[Iterable[str]], None]


def check(library: str, names: Iterable[str], give: Callable[[Read], None]) -> dict[str, Any]:
    """The report on the export whose lines `give` gives, in lean4export's format, 3.1.0.

    `lean`: the library's version; `declarations`: how many of each kind it accepted; `axioms`:
    those that it was given, and `statements`: the theorems `names`, by name the digest of each
    statement as the kernel has it then (`digest`), or None if it has no such axiom or theorem;
    `refused`: a sentence on the declaration or line that it does not accept, or None.
    """
    found: dict[str, Any] = {"lean": None, "declarations": {}, "axioms": {}, "statements": {}}
    kernel: Kernel | None = None
    refused: str | None = None
    try:
        kernel = Kernel(library)
        give(kernel.read)
        kernel.end()
        found["axioms"] = kernel.statements(kernel.axioms, _AXIOM)
        found["statements"] = kernel.statements(names, _THEOREM)
    except Refused as error:
        refused = str(error)
    if kernel is not None:
        found |= {"lean": kernel.objects.version, "declarations": dict(kernel.accepted)}
    return {**found, "refused": refused}
