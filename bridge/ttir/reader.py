"""The parser's reader of tokens: a place in the TTIR text, and the types, attributes and locations
that begin there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from bridge.ttir.numbers import float_of
from bridge.ttir.syntax import (
    Attribute,
    Descriptor,
    Frame,
    Location,
    Pointer,
    Scalar,
    Tensor,
    TtirError,
    Type,
)
from bridge.ttir.tokens import Token, tokens

T = TypeVar("T")


class Reader:
    """The tokens of a text and a place between them, which every method moves on."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0
        # Where the text of each location's name begins; a location may be used before it.
        self.named = {
            token.text: i + 2
            for i, token in enumerate(self.tokens[:-2])
            if token.kind == "alias" and token.first and self.tokens[i + 1].text == "="
        }
        self.locations: dict[str, Location] = {}

    # ------------------------------------------------------------------------------ tokens

    @property
    def token(self) -> Token:
        return self.tokens[self.at]

    def error(self, wanted: str) -> TtirError:
        found = self.token.text or "the end"
        return TtirError(f"line {self.token.line}: {wanted} must come here, not {found}")

    def take(self) -> Token:
        token = self.token
        self.at += 1
        return token

    def accept(self, text: str) -> bool:
        """Whether this came, and it is behind us."""
        if self.token.text == text and self.token.kind in ("mark", "word"):
            self.at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.accept(text):
            raise self.error(f"'{text}'")

    def of(self, kind: str) -> str:
        if self.token.kind != kind:
            raise self.error(f"a {kind}")
        return self.take().text

    def next_is(self, text: str) -> bool:
        return self.tokens[self.at + 1].text == text

    def list_of(self, item: Callable[[], T], close: str) -> list[T]:
        """Items between commas, and the mark that closes them."""
        found: list[T] = []
        while not self.accept(close):
            if found:
                self.need(",")
            found.append(item())
        return found

    # ------------------------------------------------------------------------------- types

    def type(self) -> Type:
        token = self.take()
        if token.kind == "alias":
            self.need("<")
            inner = self.tile() if self.token.kind == "number" else self.type()
            while self.accept(","):
                self.attribute()
            self.need(">")
            if token.text == "!tt.ptr" and not isinstance(inner, Descriptor):
                return Pointer(inner)
            if token.text == "!tt.tensordesc" and isinstance(inner, Tensor):
                return Descriptor(inner)
        elif token.text == "<":
            # A pointer whose `!tt.ptr` goes without saying.
            inner = self.tile() if self.token.kind == "number" else self.type()
            self.need(">")
            if not isinstance(inner, Descriptor):
                return Pointer(inner)
        elif token.text == "tensor":
            self.need("<")
            tile = self.tile()
            self.need(">")
            return tile
        elif token.kind == "word":
            return Scalar(token.text)
        self.at -= 1
        raise self.error("a type")

    def tile(self) -> Tensor:
        """`16x64xf32` or `16x64x!tt.ptr<f32>`: tokens `16`, `x64xf32` or `x64x`, …"""
        shape = [int(self.of("number"))]
        match = re.fullmatch(r"((?:x\d+)*)x(\w*)", self.token.text)
        if match is None:
            raise self.error("the rest of a tile's type")
        self.at += 1
        shape += [int(size) for size in match[1].split("x")[1:]]
        element = Scalar(match[2]) if match[2] else self.type()
        if not isinstance(element, Scalar | Pointer):
            raise self.error("a number or pointer as the element of a tile")
        return Tensor(tuple(shape), element)

    def types(self) -> list[Type]:
        """One type, or several in parentheses."""
        if self.accept("("):
            return self.list_of(self.type, ")")
        return [self.type()]

    def signature(self) -> tuple[list[Type], list[Type] | None]:
        """The types behind a colon: those of operands, and after an arrow those of results."""
        operands = self.types()
        while self.accept(",") or self.accept("*"):
            operands += self.types()
        if self.accept("->") or self.accept("to"):
            results = self.types()
            while self.accept(","):
                results += self.types()
            return operands, results
        return operands, None

    # -------------------------------------------------------------------------- attributes

    def dictionary(self) -> dict[str, Attribute]:
        """The attributes in braces, the first of which is behind us."""
        return dict(self.list_of(self.entry, "}"))

    def entry(self) -> tuple[str, Attribute]:
        if self.token.kind not in ("word", "string"):
            raise self.error("an attribute's name")
        name = self.take().text.strip('"')
        return name, self.attribute() if self.accept("=") else True

    def attribute(self) -> Attribute:
        token = self.take()
        if token.kind == "number":
            type = self.type() if self.accept(":") else None
            return self.number(token, type)
        if token.text in ("true", "false"):
            return token.text == "true"
        if token.text == "[":
            return self.list_of(self.attribute, "]")
        if token.text == "{":
            return str(self.dictionary())
        if token.text == "array":
            self.need("<")
            self.type()
            return self.list_of(self.attribute, ">") if self.accept(":") else self.close()
        if token.kind in ("string", "symbol"):
            return token.text.strip('@"')
        if token.kind in ("word", "alias"):
            found = token.text + self.skip_brackets()
            # `dense<16> : tensor<1xi32>`: a hint of Triton's. After other words a colon precedes
            # the types of the operation.
            if token.text == "dense" and self.accept(":"):
                self.type()
            return found
        self.at -= 1
        raise self.error("an attribute")

    def close(self) -> list[Attribute]:
        self.need(">")
        return []

    def skip_brackets(self) -> str:
        """The text between < and >, if such brackets come."""
        if self.token.text != "<":
            return ""
        text, depth = "", 0
        while True:
            token = self.take()
            if token.kind == "end":
                raise self.error("'>'")
            text += token.text
            depth += {"<": 1, ">": -1}.get(token.text, 0)
            if depth == 0:
                return text

    def number(self, token: Token, type: Type | None) -> int | float:
        """The number that a token means in this type, or in none."""
        if isinstance(type, Scalar) and type.is_float:
            return float_of(token.text, type, token.line)
        if re.fullmatch(r"-?\d+", token.text):
            return int(token.text)
        if type is None and not token.text.startswith(("0x", "-0x")):
            return float(token.text)
        raise TtirError(f"line {token.line}: {token.text} is no {type or 'number'}")

    # --------------------------------------------------------------------------- locations

    def location(self) -> Location:
        """`loc(…)`, if one comes."""
        if not (self.token.text == "loc" and self.next_is("(")):
            return Location()
        self.at += 2
        found = self.place()
        self.need(")")
        return found

    def place(self) -> Location:
        token = self.take()
        if token.kind == "alias":
            return self.at_alias(token)
        if token.text == "unknown":
            return Location()
        if token.text == "callsite":
            self.need("(")
            inner = self.place()
            self.need("at")
            outer = self.place()
            self.need(")")
            return Location(inner.frames + outer.frames)
        if token.text == "fused":
            self.skip_brackets()
            self.need("[")
            parts = self.list_of(self.place, "]")
            return next((part for part in parts if part.frames), Location())
        if token.kind != "string":
            self.at -= 1
            raise self.error("a location")
        text = token.text[1:-1]
        if self.accept(":"):
            line = int(self.of("number"))
            column = int(self.of("number")) if self.accept(":") else 0
            if self.accept("to"):
                # A range of lines: MLIR 20 and later.
                while self.accept(":") or self.token.kind == "number":
                    self.at += self.token.kind == "number"
            return Location((Frame(text, line, column, None),))
        inner = Location()
        if self.accept("("):
            inner = self.place()
            self.need(")")
        first = inner.frames[:1] or (Frame("", 0, 0, None),)
        if not inner.frames:
            return Location()
        named = Frame(first[0].file, first[0].line, first[0].column, text)
        return Location((named, *inner.frames[1:]))

    def at_alias(self, token: Token) -> Location:
        if token.text not in self.locations:
            if token.text not in self.named:
                raise TtirError(f"line {token.line}: {token.text} is defined nowhere")
            # Against a location that is a part of itself.
            self.locations[token.text] = Location()
            here, self.at = self.at, self.named[token.text]
            self.locations[token.text] = self.location()
            self.at = here
        return self.locations[token.text]
