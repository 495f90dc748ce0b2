"""TTIR translated to Lean: one definition for each value that an operation computes.

    found = translate(kernel, "Causal", {"BLOCK_M": 32, "BLOCK_N": 64, "BLOCK_D": 128})

`Attention.Kernel.Ops` defines each operation; nothing is simplified here. A tensor becomes a
function of its indices, a pointer an offset from its argument. Operations that only arrange
elements (`tt.splat`, `tt.broadcast`, …), constants and conversions, which do nothing without
rounding, are written where they are used. Tile sizes become variables.

A value is named by the Python variable that it is assigned to: the last of a variable has its name,
those before it a number too (`queries_1`, `queries_2`, `queries`). All names begin with the given
one; those of a loop go on with `loop1`, `loop2`, …

Beside the values stand three predicates, with a conjunct for each operation that they are about
(`bridge.ttir.obligations`): `Accesses`, `Exponents` and `NoOverflow`.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bridge.ttir.lean_text import (
    ARRANGED,
    COMPARED,
    CONVERSIONS,
    DEF,
    ELEMENTWISE,
    LITERALS,
    REDUCED,
    TRUTH,
    in_brackets,
    is_computed,
    name_of,
    type_of,
)
from bridge.ttir.obligations import Obligations, integer_conditions, lanes
from bridge.ttir.syntax import (
    Block,
    Function,
    Operation,
    Pointer,
    Scalar,
    TtirError,
    Value,
    element_of,
    shape_of,
)

_INDICES = ("i", "j", "k")


@dataclass(frozen=True)
class Translation:
    """name: with which the names begin; fields: of `Args`, with their types; pointers: which of
    them are pointers; definitions: in order, as text, a line as long as it comes (`broken`);
    conditions: the predicates after them, in the same way."""

    name: str
    fields: dict[str, str]
    pointers: list[str]
    definitions: list[str]
    conditions: list[str]

    def at(self, sizes: Mapping[str, int]) -> str:
        """The definitions with numbers for the tile sizes and without line breaks: to compare with
        those of a kernel compiled for these sizes (`numeric`)."""
        text = _in_one_line([*self.definitions, *self.conditions])
        for name, size in sizes.items():
            text = text.replace(f"(a.{name} - 1 : Int)", f"({size - 1} : Int)")
            text = text.replace(f"(a.{name} : Int)", f"({size} : Int)")
            text = re.sub(rf"\ba\.{name}\b", str(size), text)
        return text


def translate(kernel: Function, name: str, sizes: Mapping[str, int]) -> Translation:
    """The kernel in Lean.

    name: with which all names begin; sizes: the tile sizes that it was compiled for, all different;
    each such number is taken for the tile size.

    Raises:
        TtirError: two sizes are one number, or the kernel has something without a translation.
    """
    if len(set(sizes.values())) < len(sizes):
        raise TtirError(f"tile sizes must differ, to be told apart in the text, not {dict(sizes)}")
    return _Translator(kernel, name, {size: name for name, size in sizes.items()}).run()


def numeric(kernel: Function, name: str) -> str:
    """The definitions, with the tile sizes as the numbers that they are (`Translation.at`)."""
    found = _Translator(kernel, name, {}).run()
    return _in_one_line([*found.definitions, *found.conditions])


def _in_one_line(definitions: Sequence[str]) -> str:
    return " ".join(" ".join(definitions).split())


Element = Callable[[Sequence[str]], str]


@dataclass
class _Scope:
    """The kernel's body, or that of a loop: the prefix of its names, the parameters of each
    definition, and the arguments by which these are passed on."""

    prefix: str
    binders: str
    arguments: str
    in_loop: bool = False
    obligations: Obligations = field(default_factory=Obligations)
    names: Counter[str] = field(default_factory=Counter)
    last: dict[str, int] = field(default_factory=dict)


class _Translator:
    def __init__(self, kernel: Function, name: str, sizes: Mapping[int, str]) -> None:
        self.kernel = kernel
        self.name = name
        self.sizes = sizes
        self.elements: dict[Value, Element] = {}
        self.pointers: dict[Value, str] = {}
        self.definitions: list[str] = []
        self.conditions: list[str] = []
        self.loops = 0
        self.loads: set[str] = set()
        self.stores: Counter[str] = Counter()
        self.returned: list[str] = []

    def run(self) -> Translation:
        fields: dict[str, str] = {}
        for argument in self.kernel.arguments:
            name = re.sub(r"\W", "_", argument.name)
            fields[name] = self.argument(argument, name)
        scope = _Scope(f"{self.name}.", f"(a : {self.name}.Args R) (pid : Int)", "a pid")
        block: Block | None = self.kernel.blocks[0]
        self.count(self.kernel.blocks, scope)
        while block is not None:
            block = self.block(block, scope)
        self.conditions += scope.obligations.definitions(self.name, scope.prefix, scope.binders)
        pointers = [name for name, kind in fields.items() if kind.startswith("Mem ")]
        # Lean's memory is that before the launch: no program may read elements that one writes.
        for name in pointers:
            if name in self.loads and name in self.stores:
                raise TtirError(f"{name} has no translation: it is both loaded from and stored to")
        fields |= {"ln2": "R", "log2e": "R", "ln": "R → R"}
        fields |= dict.fromkeys(self.sizes.values(), "Nat")
        return Translation(self.name, fields, pointers, self.definitions, self.conditions)

    def argument(self, value: Value, name: str) -> str:
        """The type of the argument's field."""
        if isinstance(value.type, Pointer):
            self.pointers[value] = name
            self.elements[value] = lambda at: "(0 : Int)"
            return f"Mem {in_brackets(type_of(value.type.to))}"
        self.elements[value] = lambda at: f"a.{name}"
        return type_of(value.type)

    def count(self, blocks: Sequence[Block], scope: _Scope) -> None:
        """How many values of each variable get a definition."""
        for block in blocks:
            for operation in block.operations:
                if is_computed(operation):
                    if not operation.results:
                        raise TtirError(f"{operation} has no translation: it has no value")
                    name = name_of(operation.result, operation)
                    scope.last[name] = scope.last.get(name, 0) + 1

    # -------------------------------------------------------------------------- operations

    def block(self, block: Block, scope: _Scope) -> Block | None:
        """Translate the operations; the block that comes after it, None after the last."""
        for operation in block.operations:
            if operation.name == "cf.cond_br":
                return self.branch(operation, scope)
            if operation.name == "cf.br":
                (successor,) = operation.successors
                for argument, operand in zip(
                    successor.block.arguments, successor.operands, strict=True
                ):
                    self.same(argument, operand)
                return successor.block
            self.operation(operation, scope)
        return None

    def branch(self, operation: Operation, scope: _Scope) -> Block:
        """An early return: nothing is stored after it."""
        then, other = operation.successors
        condition = self.elements[operation.operands[0]](())
        if [o.name for o in then.block.operations] == ["tt.return"]:
            self.returned.append(f"!{condition}")
            return other.block
        if [o.name for o in other.block.operations] == ["tt.return"]:
            self.returned.append(condition)
            return then.block
        raise TtirError(f"{operation} has no translation: neither side only returns")

    def operation(self, operation: Operation, scope: _Scope) -> None:
        match operation.name:
            case "tt.return" | "scf.yield":
                return
            case "scf.for":
                self.loop(operation, scope)
            case "tt.store":
                self.store(operation, scope)
            case "tt.load":
                self.load(operation, scope)
            case name if name in CONVERSIONS:
                self.same(operation.result, operation.operands[0])
            case name if name in ARRANGED:
                self.elements[operation.result] = self.arrange(operation)
                if operation.operands and operation.operands[0] in self.pointers:
                    self.pointers[operation.result] = self.pointers[operation.operands[0]]
            case _:
                self.define(operation, self.compute(operation), scope)
                self.oblige(operation, scope)

    def oblige(self, operation: Operation, scope: _Scope) -> None:
        """Note the conditions on the operation's operands and on its value."""
        at, over = self.lanes(operation.result)
        operands = [in_brackets(self.elements[x](at)) for x in operation.operands]
        if operation.name == "math.exp2":
            scope.obligations.exponents.append(self.guard(f"{over}P {operands[0]}", scope))
        value = in_brackets(self.elements[operation.result](at))
        for condition in integer_conditions(operation, operands, value):
            scope.obligations.integers.append(self.guard(f"{over}{condition}", scope))

    def lanes(self, value: Value) -> tuple[tuple[str, ...], str]:
        """Names for the indices of a value, and the quantifiers over them."""
        shape = shape_of(value.type)
        at = _INDICES[: len(shape)]
        return at, lanes(at, [self.size(n) for n in shape])

    def guard(self, condition: str, scope: _Scope) -> str:
        """The condition, asked for unless the program has returned before."""
        if scope.in_loop or not self.returned:
            return condition
        return f"({' && '.join(self.returned)}) = true → {condition}"

    def same(self, result: Value, operand: Value) -> None:
        self.elements[result] = self.elements[operand]
        if operand in self.pointers:
            self.pointers[result] = self.pointers[operand]

    def arrange(self, operation: Operation) -> Element:
        """Elements of an operation that computes nothing."""
        operands = [self.elements[x] for x in operation.operands]
        match operation.name:
            case "arith.constant":
                text = self.constant(operation)
                return lambda at: text
            case "tt.get_program_id":
                if operation.word("axis") != "x":
                    raise TtirError(f"{operation} has no translation: only axis x has")
                return lambda at: "pid"
            case "tt.make_range":
                start = operation.integer("start")
                if start:
                    return lambda at: f"({start} + {at[0]} : Int)"
                return lambda at: f"({at[0]} : Int)"
            case "tt.splat":
                return lambda at: operands[0](())
            case "tt.expand_dims":
                axis = operation.integer("axis")
                return lambda at: operands[0]((*at[:axis], *at[axis + 1 :]))
            case "tt.broadcast":
                source, target = (
                    shape_of(operation.operands[0].type),
                    shape_of(operation.result.type),
                )
                wide = [a == b for a, b in zip(source, target, strict=True)]
                return lambda at: operands[0](
                    [x if w else "0" for x, w in zip(at, wide, strict=True)]
                )
            case _:  # tt.trans
                order = operation.integers("order")
                return lambda at: operands[0]([x for _, x in sorted(zip(order, at, strict=True))])

    def constant(self, operation: Operation) -> str:
        value = operation.attributes["value"]
        kind = element_of(operation.result.type)
        if isinstance(value, list) or not isinstance(kind, Scalar):
            raise TtirError(f"{operation} has no translation: its elements differ")
        if kind.name == "i1":
            return "true" if value else "false"
        if not kind.is_float:
            return self.number(int(value))
        x = float(value)
        if x == -math.inf:
            return "Flt.ninf"
        if x in LITERALS:
            return f"(Flt.num {LITERALS[x]})"
        if not x.is_integer():
            raise TtirError(f"{operation} has no translation: {x} stands for no number known here")
        return f"(Flt.num {int(x)})" if x >= 0 else f"(Flt.num ({int(x)}))"

    def number(self, n: int) -> str:
        if n in self.sizes:
            return f"(a.{self.sizes[n]} : Int)"
        if n + 1 in self.sizes:
            return f"(a.{self.sizes[n + 1]} - 1 : Int)"
        return f"({n} : Int)"

    def size(self, n: int) -> str:
        return f"a.{self.sizes[n]}" if n in self.sizes else str(n)

    def compute(self, operation: Operation) -> Element:
        """Elements of an operation that gets a definition."""
        operands = [self.elements[x] for x in operation.operands]
        name = operation.name
        if name == "arith.cmpi":
            form = COMPARED.get(operation.word("predicate"))
        elif name == "arith.cmpf":
            form = "Flt.oeq {} {}" if operation.word("predicate") == "oeq" else None
        elif name in TRUTH and element_of(operation.result.type) == Scalar("i1"):
            form = TRUTH[name]
        else:
            form = ELEMENTWISE.get(name)
        if form is not None:
            return lambda at: form.format(*[in_brackets(x(at)) for x in operands])
        if name == "tt.dot":
            left, right, onto = operands
            inner = self.size(shape_of(operation.operands[0].type)[1])
            return lambda at: (
                f"Flt.dot {inner} (fun n => {left((at[0], 'n'))}) "
                f"(fun n => {right(('n', at[1]))}) {in_brackets(onto(at))}"
            )
        folded = REDUCED.get(operation.combination or "") if name == "tt.reduce" else None
        if folded is not None and len(operands) == 1:
            axis = operation.integer("axis")
            over = self.size(shape_of(operation.operands[0].type)[axis])
            return lambda at: (
                f"{folded} {over} fun n => {operands[0]((*at[:axis], 'n', *at[axis:]))}"
            )
        raise TtirError(f"{operation} has no translation")

    def behind(self, pointer: Value, operation: Operation) -> str:
        """The argument from which the pointer is an offset."""
        if pointer not in self.pointers:
            raise TtirError(
                f"{operation} has no translation: its pointer is no argument with offsets"
            )
        return self.pointers[pointer]

    def load(self, operation: Operation, scope: _Scope) -> None:
        """The access, and the value that is read by it."""
        pointer, *rest = operation.operands
        if len(rest) == 1:
            raise TtirError(f"{operation} has no translation: a masked load without other values")
        base, offset = self.behind(pointer, operation), self.elements[pointer]
        self.loads.add(base)
        mask, other = (self.elements[x] for x in rest) if rest else (lambda _: "true", None)
        prefix, variable = self.name_of(operation, scope)
        at, over = self.lanes(operation.result)
        name = f"{prefix}load_{variable}"
        kind = f"{'Nat → ' * len(at)}Access"
        head = f"fun {' '.join(at)} => " if at else ""
        self.definitions.append(
            f"{DEF} {name} {scope.binders} : {kind} :=\n  {head}⟨{mask(at)}, {offset(at)}⟩"
        )

        def access(at: Sequence[str]) -> str:
            return f"({' '.join([name, scope.arguments, *at])})"

        def read(at: Sequence[str]) -> str:
            if other is None:
                return f"a.{base} {access(at)}.offset"
            return f"{access(at)}.read a.{base} {in_brackets(other(at))}"

        self.define(operation, read, scope)
        asked = f"{over}P.{base} {access(at)}"
        scope.obligations.accesses.append(self.guard(asked, scope))

    def store(self, operation: Operation, scope: _Scope) -> None:
        if scope.in_loop:
            raise TtirError(f"{operation} has no translation: it is in a loop")
        pointer, value, *mask = operation.operands
        base = self.behind(pointer, operation)
        self.stores[base] += 1
        if self.stores[base] > 1:
            raise TtirError(f"{operation} has no translation: the second store to {base}")
        at, over = self.lanes(pointer)
        active = [*self.returned, *(self.elements[x](at) for x in mask)] or ["true"]
        parts = [" && ".join(active), self.elements[pointer](at), self.elements[value](at)]
        name = f"{scope.prefix}store_{base}"
        result = f"{'Nat → ' * len(at)}Store {in_brackets(type_of(value.type))}"
        self.definitions.append(
            f"/-- What is stored behind `{base}`. -/\n"
            f"{DEF} {name} {scope.binders} : {result} :=\n"
            f"  fun {' '.join(at)} => ⟨⟨{parts[0]}, {parts[1]}⟩, {parts[2]}⟩"
        )
        element = " ".join([name, scope.arguments, *at])
        scope.obligations.accesses.append(self.guard(f"{over}P.{base} ({element}).toAccess", scope))

    def define(self, operation: Operation, element: Element, scope: _Scope) -> None:
        value = operation.result
        name = "".join(self.name_of(operation, scope))
        scope.names[name_of(value, operation)] += 1
        at = _INDICES[: len(shape_of(value.type))]
        head = f"fun {' '.join(at)} => " if at else ""
        self.definitions.append(
            f"{DEF} {name} {scope.binders} : "
            f"{'Nat → ' * len(at)}{type_of(value.type)} :=\n  {head}{element(at)}"
        )
        self.elements[value] = lambda at: f"({' '.join([name, scope.arguments, *at])})"
        if operation.name == "tt.addptr" and operation.operands[0] in self.pointers:
            self.pointers[value] = self.pointers[operation.operands[0]]

    def name_of(self, operation: Operation, scope: _Scope) -> tuple[str, str]:
        """The prefix and the name of the next definition of the operation's variable."""
        variable = name_of(operation.result, operation)
        number = scope.names[variable] + 1
        return scope.prefix, variable + ("" if number == scope.last[variable] else f"_{number}")

    def loop(self, operation: Operation, scope: _Scope) -> None:
        if scope.in_loop:
            raise TtirError(f"{operation} has no translation: it is in a loop")
        first, stop, step, *carried = operation.operands
        if self.elements[step](()) != "(1 : Int)":
            raise TtirError(f"{operation} has no translation: its step is not 1")
        self.loops += 1
        prefix = f"{scope.prefix}loop{self.loops}."
        (block,) = operation.regions[0]
        types = [f"({'Nat → ' * len(shape_of(x.type))}{type_of(x.type)})" for x in carried]
        state = f"{prefix}State R"
        self.definitions.append(
            f"/-- What the loop carries. -/\n"
            f"abbrev {prefix}State (R : Type u) :=\n  {' × '.join(types)}"
        )
        last = len(carried) - 1
        parts = ["".join([".2"] * n) + (".1" if n < last else "") for n in range(len(carried))]
        inner = _Scope(
            prefix,
            f"(a : {self.name}.Args R) (pid t : Int) (s : {state})",
            f"{scope.arguments} t s",
            True,
        )
        number, *arguments = block.arguments
        self.elements[number] = lambda at: "t"
        for argument, part in zip(arguments, parts, strict=True):
            self.elements[argument] = _part(f"s{part}")
        self.count([block], inner)
        self.block(block, inner)
        for name, what, bound in (
            ("firstTile", "The loop's first", first),
            ("stopTile", "One past the loop's last", stop),
        ):
            self.definitions.append(
                f"/-- {what} tile. -/\n"
                f"{DEF} {prefix}{name} {scope.binders} : Int :=\n"
                f"  {self.elements[bound](())}"
            )
        made = [self.whole(x) for x in block.operations[-1].operands]
        start = [self.whole(x) for x in carried]
        self.definitions.append(
            f"/-- One iteration. -/\n{DEF} {prefix}body {inner.binders} :\n    {state} :=\n"
            f"  ({', '.join(made)})"
        )
        self.definitions.append(
            f"/-- The state before the loop. -/\n"
            f"{DEF} {prefix}start {scope.binders} : {state} :=\n  ({', '.join(start)})"
        )
        self.definitions.append(
            f"/-- The state after the loop. -/\n"
            f"{DEF} {prefix}result {scope.binders} : {state} :=\n"
            f"  forRange ({prefix}firstTile {scope.arguments})\n"
            f"    ({prefix}stopTile {scope.arguments})\n"
            f"    ({prefix}body {scope.arguments}) ({prefix}start {scope.arguments})"
        )
        self.conditions.append(
            f"/-- The state before iteration t. -/\n"
            f"{DEF} {prefix}before {scope.binders} (t : Int) : {state} :=\n"
            f"  forRange ({prefix}firstTile {scope.arguments}) t\n"
            f"    ({prefix}body {scope.arguments}) ({prefix}start {scope.arguments})"
        )
        self.conditions += inner.obligations.definitions(self.name, prefix, inner.binders)
        for conditions, condition in scope.obligations.of_loop(
            inner.obligations, prefix, scope.arguments
        ):
            conditions.append(self.guard(condition, scope))
        for result, part in zip(operation.results, parts, strict=True):
            self.elements[result] = _part(f"({prefix}result {scope.arguments}){part}")

    def whole(self, value: Value) -> str:
        """A value as a function of its indices."""
        at = _INDICES[: len(shape_of(value.type))]
        return (
            f"fun {' '.join(at)} => {self.elements[value](at)}" if at else self.elements[value](())
        )


def _part(text: str) -> Element:
    """Elements of a part of a loop's state."""
    return lambda at: f"({' '.join([text, *at])})" if at else text
