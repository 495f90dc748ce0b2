"""The shape of `index.json`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from bridge.vectors.format.shapes import SOME, Shape, text

Some = Annotated[int, Meta(ge=1)]
Name = Annotated[str, Meta(max_length=80)]


class Entry(Shape):
    """The contents of a file, by the index."""

    file: Annotated[str, text("a slug and .json", "[a-z][a-z0-9]*(-[a-z0-9]+)*[.]json", 90)]
    sha256: Annotated[str, text("the SHA-256 of a file in hex", "[0-9a-f]{64}", 64)]
    family: Name
    operation: Name
    model: Literal["exact", "natural"]
    vectors: Annotated[Some, Meta(description="how many there are in the file")]
    theorems: Annotated[
        list[Name], Meta(description="ids of docs/theorems.toml that its vectors name")
    ]
    definitions: Annotated[
        list[Annotated[str, Meta(max_length=200)]],
        Meta(description="the Lean definitions that were run"),
    ]


class Index(Shape):
    """The families of attention vectors in one folder."""

    format: Literal["attention-vectors-index-1"]
    vectors_format: Literal["attention-vectors-2"]
    vectors: Annotated[Some, Meta(description="of all families together")]
    families: Annotated[list[Entry], SOME, Meta(max_length=1000)]
