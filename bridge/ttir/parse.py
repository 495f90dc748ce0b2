"""TTIR's text parsed into `bridge.ttir.syntax`.

    module = parse(text)
    kernel = module.kernel
    for operation in kernel.operations(): ...

Operations are parsed by the few shapes that MLIR prints them in, not by a list of their names:
one that is unknown here is a tree like any other, for `machine` to refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.ttir.reader import Reader
from bridge.ttir.syntax import (
    Attribute,
    Block,
    Descriptor,
    Frame,
    Function,
    Location,
    Module,
    Operation,
    Pointer,
    Scalar,
    Successor,
    Tensor,
    TtirError,
    Type,
    Value,
    element_of,
    with_element,
)
from bridge.ttir.tokens import Token

_I1 = Scalar("i1")
_NUMBERED = re.compile(r"_\d+$")


def parse(text: str) -> Module:
    """The module in a text of TTIR, with or without locations.

    Raises:
        TtirError: it is none; the message has the line.
    """
    return _Parser(text).module()


class _Parser(Reader):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.scopes: list[dict[str, Value]] = []
        self.blocks: list[dict[str, Block]] = []
        self.values = 0

    # ------------------------------------------------------------------------------ values

    def define(
        self, name: str, type: Type, location: Location, variable: str | None = None
    ) -> Value:
        if variable is None:
            variable = location.name
        value = Value(name, self.values, type, location, variable)
        self.values += 1
        if name in self.scopes[-1]:
            raise TtirError(f"line {self.token.line}: %{name} is defined twice")
        self.scopes[-1][name] = value
        return value

    def use(self) -> Value:
        name = self.of("value")[1:]
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        self.at -= 1
        raise self.error("a value defined before")

    @contextmanager
    def scope(self) -> Iterator[None]:
        self.scopes.append({})
        self.blocks.append({})
        yield
        self.scopes.pop()
        self.blocks.pop()

    def define_carried(self, name: str, type: Type, location: Location) -> Value:
        """A value that a loop carries: it is printed without a location, but under the name of its
        variable."""
        base = _NUMBERED.sub("", name)
        places = tuple(Frame(f.file, f.line, f.column, None) for f in location.frames)
        return self.define(name, type, Location(places), None if base.isdigit() else base)

    # ------------------------------------------------------------------ functions and blocks

    def module(self) -> Module:
        functions: dict[str, Function] = {}
        inside = False
        while self.token.kind != "end":
            if self.token.kind == "alias" and self.next_is("="):
                self.at += 2
                if self.token.text == "loc":
                    self.location()
                else:
                    self.attribute()
            elif self.accept("module"):
                if self.token.kind == "symbol":
                    self.at += 1
                if self.accept("attributes"):
                    self.need("{")
                    self.dictionary()
                self.need("{")
                inside = True
            elif self.accept("tt.func"):
                function = self.function()
                functions[function.name] = function
            elif inside and self.accept("}"):
                inside = False
                self.location()
            else:
                raise self.error("tt.func")
        if inside:
            raise self.error("'}'")
        return Module(functions)

    def function(self) -> Function:
        visibility = self.take().text if self.token.kind == "word" else "public"
        name = self.of("symbol")[1:]
        self.values = 0
        with self.scope():
            self.need("(")
            given = self.list_of(self.argument, ")")
            results = self.types() if self.accept("->") else []
            if self.accept("attributes"):
                self.need("{")
                self.dictionary()
            self.need("{")
            blocks = self.region("", [])
            self.location()
        values = [value for value, _ in given]
        attributes = [found for _, found in given]
        return Function(name, visibility, values, attributes, results, blocks, self.values)

    def argument(self) -> tuple[Value, dict[str, Attribute]]:
        name = self.of("value")[1:]
        self.need(":")
        type = self.type()
        attributes = self.dictionary() if self.accept("{") else {}
        return self.define(name, type, self.location()), attributes

    def region(self, label: str, arguments: list[Value]) -> list[Block]:
        """Blocks up to a closing brace; the opening one is behind us. The first has this label and
        these arguments, unless one is printed."""
        blocks: list[Block] = []
        known = self.blocks[-1]
        while not self.accept("}"):
            if self.token.kind == "label":
                label = self.take().text[1:]
                arguments = []
                if self.accept("("):
                    arguments = [value for value, _ in self.list_of(self.argument, ")")]
                self.need(":")
                block = known.setdefault(label, Block(label, [], []))
            elif not blocks:
                block = Block(label, [], [])
            else:
                block = blocks[-1]
            if not blocks or block is not blocks[-1]:
                block.arguments = arguments
                blocks.append(block)
            else:
                block.operations.append(self.operation())
        missing = [name for name, block in known.items() if block not in blocks]
        if missing:
            raise TtirError(f"line {self.token.line}: there is no block ^{missing[0]}")
        return blocks or [Block(label, arguments, [])]

    # -------------------------------------------------------------------------- operations

    def operation(self) -> Operation:
        line = self.token.line
        names = self.result_names()
        if self.token.kind not in ("word", "string"):
            raise self.error("an operation")
        name = self.take().text.strip('"')
        parts = {
            "scf.for": self.loop,
            "scf.while": self.while_loop,
            "scf.if": self.conditional,
            "arith.constant": self.constant,
        }.get(name, self.general)
        operation = Operation(name, [], [], {}, [], [], Location(), line)
        types = parts(operation)
        operation.location = self.location()
        if len(types) != len(names):
            raise TtirError(f"line {line}: {name} has {len(types)} results, not {len(names)}")
        # The results of a loop have the names of the variables that it carries.
        carried = (
            operation.regions[0][0].arguments[-len(names) or 99 :] if name == "scf.for" else []
        )
        variables = [value.variable for value in carried] or [None] * len(names)
        operation.results = [
            self.define(*given[:2], operation.location, given[2])
            for given in zip(names, types, variables, strict=True)
        ]
        return operation

    def result_names(self) -> list[str]:
        names: list[str] = []
        while self.token.kind == "value":
            name = self.take().text[1:]
            if self.accept(":"):
                names += [f"{name}#{i}" for i in range(int(self.of("number")))]
            else:
                names.append(name)
            if not self.accept(","):
                self.need("=")
                break
        return names

    def assignments(self) -> list[tuple[str, Value]]:
        """`(%x = %y, …)`, the parenthesis behind us."""

        def one() -> tuple[str, Value]:
            name = self.of("value")[1:]
            self.need("=")
            return name, self.use()

        return self.list_of(one, ")")

    def loop(self, operation: Operation) -> list[Type]:
        """`scf.for`: its operands are the first number, the end, the step and the carried values;
        its region's arguments the number and the carried values."""
        if self.token.text == "unsigned":
            raise self.error("a loop of signed numbers")
        number = self.of("value")[1:]
        for before in ("=", "to", "step"):
            self.need(before)
            operation.operands.append(self.use())
        pairs: list[tuple[str, Value]] = []
        types: list[Type] = []
        if self.accept("iter_args"):
            self.need("(")
            pairs = self.assignments()
            self.need("->")
            types = self.types()
        type = self.type() if self.accept(":") else Scalar("index")
        operation.operands += [value for _, value in pairs]
        self.need("{")
        with self.scope():
            where = self.location_ahead()
            given = [(number, type), *((n, t) for (n, _), t in zip(pairs, types, strict=True))]
            arguments = [self.define_carried(name, kind, where) for name, kind in given]
            operation.regions.append(self.region("", arguments))
        self.tail(operation)
        return types

    def location_ahead(self) -> Location:
        """The location of an operation whose region begins here: it is printed after it."""
        here, depth = self.at, 1
        while depth and self.token.kind != "end":
            depth += {"{": 1, "}": -1}.get(self.take().text, 0)
        found = self.location()
        self.at = here
        return found

    def while_loop(self, operation: Operation) -> list[Type]:
        """`scf.while`: two regions, the condition, which ends in `scf.condition`, and the body."""
        self.need("(")
        pairs = self.assignments()
        self.need(":")
        before = self.types()
        self.need("->")
        after = self.types()
        operation.operands = [value for _, value in pairs]
        self.need("{")
        with self.scope():
            where = self.location_ahead()
            named = zip(pairs, before, strict=True)
            arguments = [self.define_carried(name, kind, where) for (name, _), kind in named]
            operation.regions.append(self.region("", arguments))
        self.need("do")
        self.need("{")
        with self.scope():
            operation.regions.append(self.region("", []))
        self.tail(operation)
        return after

    def conditional(self, operation: Operation) -> list[Type]:
        """`scf.if`: one region or two."""
        operation.operands = [self.use()]
        types = self.types() if self.accept("->") else []
        while True:
            self.need("{")
            with self.scope():
                operation.regions.append(self.region("", []))
            if not self.accept("else"):
                break
        self.tail(operation)
        return types

    def tail(self, operation: Operation) -> None:
        """Attributes after a region: `attributes {…}` or `{…}`."""
        if self.accept("attributes") or self.token.text == "{":
            self.need("{")
            operation.attributes |= self.dictionary()

    def constant(self, operation: Operation) -> list[Type]:
        if self.accept("{"):
            operation.attributes |= self.dictionary()
        if self.token.text in ("true", "false"):
            operation.attributes["value"] = self.take().text == "true"
            return [self.type()] if self.accept(":") else [_I1]
        given: list[Token] = []
        several = False
        if self.accept("dense"):
            self.need("<")
            several = self.token.text == "["
            while not self.accept(">"):
                token = self.take()
                if token.kind in ("number", "word"):
                    given.append(token)
                elif token.text not in ("[", "]", ","):
                    self.at -= 1
                    raise self.error("a number")
        else:
            given.append(self.take())
        self.need(":")
        type = self.type()
        element = element_of(type)
        values: list[Attribute] = [
            token.text == "true" if token.kind == "word" else self.number(token, element)
            for token in given
        ]
        if len(values) != 1 and not several:
            raise self.error("one constant")
        operation.attributes["value"] = values if several else values[0]
        return [type]

    def general(self, operation: Operation) -> list[Type]:
        """All others: operands, words and attributes, a colon and types."""
        words: list[Attribute] = []
        self.items(operation, words)
        operands: list[Type] = []
        results: list[Type] | None = None
        if self.accept(":"):
            operands, results = self.signature()
            self.agree(operation, operands, results)
        name = operation.name
        if name in ("arith.cmpi", "arith.cmpf") and words:
            operation.attributes["predicate"] = words.pop(0)
        elif name in ("tt.get_program_id", "tt.get_num_programs") and words:
            operation.attributes["axis"] = words.pop(0)
        if words:
            operation.attributes["words"] = words
        if results is not None:
            return results
        return self.infer_types(operation, operands)

    def items(self, operation: Operation, words: list[Attribute]) -> None:
        """The operands and words between an operation's name and the colon before its types."""
        attributes = operation.attributes
        while True:
            token = self.token
            if token.first or token.text in (":", ")", "]") or token.kind == "end":
                return
            if token.text == "loc" and self.next_is("("):
                return
            if token.kind == "value":
                operation.operands.append(self.use())
            elif token.kind == "label":
                operation.successors.append(self.successor())
            elif token.kind == "symbol":
                attributes["callee"] = self.take().text[1:]
            elif token.kind == "word" and self.next_is("="):
                attributes.update([self.entry()])
            elif token.kind == "word" and self.next_is("<"):
                self.at += 1
                attributes[token.text] = self.skip_brackets()[1:-1]
            elif token.kind in ("word", "string"):
                words.append(self.take().text.strip('"'))
            elif token.kind == "number":
                words.append(self.number(self.take(), None))
            elif token.text == "{":
                self.at += 1
                attributes |= self.dictionary()
            elif token.text == "<" and self.next_is("{"):
                self.at += 2
                attributes |= self.dictionary()
                self.need(">")
            elif token.text == "(" and self.next_is("{"):
                self.at += 1
                operation.regions += self.list_of(self.braced_blocks, ")")
            elif token.text in ("(", "["):
                before = len(operation.operands)
                self.at += 1
                self.items(operation, words)
                self.need(")" if token.text == "(" else "]")
                if token.text == "[":
                    operation.groups.append(len(operation.operands) - before)
            elif not self.accept(","):
                raise self.error("an operand or attribute")

    def braced_blocks(self) -> list[Block]:
        self.need("{")
        with self.scope():
            return self.region("", [])

    def successor(self) -> Successor:
        block = self.blocks[-1].setdefault(self.token.text[1:], Block(self.take().text[1:], [], []))
        operands: list[Value] = []
        if self.accept("("):
            while self.token.kind == "value":
                operands.append(self.use())
                self.accept(",")
            self.need(":")
            self.list_of(self.type, ")")
        return Successor(block, operands)

    def agree(self, operation: Operation, operands: list[Type], results: list[Type] | None) -> None:
        """Raise TtirError if as many types are printed as there are operands, and they are others.

        `tt.make_tensor_descriptor` prints its first operand's and its result's.
        """
        own = [value.type for value in operation.operands]
        if len(operands) == len(own) > 1 and own != operands:
            printed = ", ".join(map(str, operands))
            raise TtirError(
                f"line {operation.text_line}: {operation.name} is printed with operands of types "
                f"{printed}, which are of types {', '.join(map(str, own))}"
            )

    def infer_types(self, operation: Operation, printed: list[Type]) -> list[Type]:
        """The types of the results, where they are not printed after an arrow."""
        name = operation.name
        if name in ("arith.cmpi", "arith.cmpf"):
            return [with_element(printed[0], _I1)]
        if name == "tt.load":
            return [_loaded_type(printed[0], operation)]
        if name == "arith.select":
            return [printed[-1]]
        if name == "tt.make_tensor_descriptor":
            block = printed[-1]
            inner = block.to if isinstance(block, Pointer) else block
            if isinstance(inner, Tensor):
                return [Descriptor(inner)]
        if name in _WITHOUT_RESULT or not printed:
            return []
        if name in ("arith.mulsi_extended", "arith.mului_extended"):
            return [printed[0], printed[0]]
        if name == "arith.addui_extended":
            return printed
        return [printed[0]]


_WITHOUT_RESULT = (
    "scf.yield", "scf.condition", "tt.return", "tt.reduce.return", "tt.scan.return",
    "tt.map_elementwise.return", "tt.store", "tt.descriptor_store", "tt.assert", "tt.print",
    "cf.br", "cf.cond_br", "cf.assert", "llvm.intr.assume", "ub.unreachable",
)  # fmt: skip


def _loaded_type(type: Type, operation: Operation) -> Type:
    """The type of the value that a load from a pointer, or a tile of them, gives."""
    if isinstance(type, Tensor) and isinstance(type.element, Pointer):
        inner = type.element.to
        if isinstance(inner, Scalar | Pointer):
            return Tensor(type.shape, inner)
    elif isinstance(type, Pointer):
        return type.to
    raise TtirError(f"line {operation.text_line}: tt.load from {type}, which is no pointer")
