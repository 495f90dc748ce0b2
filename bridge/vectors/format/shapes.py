"""The shape of a vector file: which fields there are, of which types, and how long they may be.

`shape_check` validates by these structs and makes the JSON Schema from them. Exact numbers are
strings. The readers check that sizes agree, and the conditions on the numbers themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct

from bridge.vectors.model.gradients import PER_HEAD, PerHead

T = TypeVar("T", bound=Struct)

# Python's $ also matches before a newline at the end; JSON Schema's does not.
END = r"$(?!\n)"


_UP_TO = 1 << 24


def text(description: str, pattern: str, most: int) -> Meta:
    """A string: its description, and the pattern of the whole."""
    return Meta(description=description, pattern=f"^{pattern}{END}", max_length=most)


Slug = Annotated[str, text("a slug", "[a-z][a-z0-9]*(-[a-z0-9]+)*", 80)]
Sentence = Annotated[str, Meta(min_length=1, max_length=1000)]
LeanName = Annotated[
    str,
    text("the Lean definition that was run", r"[A-Z][A-Za-z0-9_]*(\.[A-Za-z][A-Za-z0-9_']*)+", 200),
]
Integer = Annotated[str, text("a decimal integer without leading zeros", "(0|-?[1-9][0-9]*)", 4000)]
_FRACTION = "0|-?[1-9][0-9]*(/([2-9]|[1-9][0-9]+))?"
Number = Annotated[
    str,
    text(
        "an integer or a fraction p/q with q ≥ 2 (in lowest terms, which the loader checks)",
        f"({_FRACTION})",
        4000,
    ),
]
Scale = Annotated[
    str,
    text("a number, or default (model natural only): 1/√head_dim", f"(default|{_FRACTION})", 4000),
]
Bits = Annotated[str, text("a string of 0 and 1", "[01]+", 4096)]
Letters = Annotated[str, text("a string of the letters -, u and m", "[-um]+", 4096)]

Length = Annotated[int, Meta(ge=1, le=4096)]
Count = Annotated[int, Meta(ge=0, le=4096)]
Word = Annotated[int, Meta(ge=0, le=4294967295)]
Bound = Annotated[Count | None, Meta(description="how many keys on that side; null: all")]
Alignment = Literal["top-left", "bottom-right"]

# Lists: of at most so many columns, rows and heads.
COLUMNS, ROWS, HEADS = Meta(max_length=1024), Meta(max_length=4096), Meta(max_length=1024)
SOME = Meta(min_length=1)
Numbers = Annotated[list[Number], COLUMNS]
Matrix = Annotated[list[Numbers], ROWS]
Matrices = Annotated[list[Matrix], HEADS]
FilledMatrix = Annotated[list[Annotated[Numbers, SOME]], ROWS, SOME]
Integers = Annotated[list[Integer], COLUMNS, Meta(description="integers over 2^128")]
IntegerMatrix = Annotated[list[Integers], ROWS]
BiasRow = Annotated[list[Number | None], ROWS]
BitRows = Annotated[list[Bits], ROWS]
KeptHeads = Annotated[
    list[BitRows],
    HEADS,
    Meta(
        description="for each head, a string for each query, one character for each key: "
        "1 = the weight is kept"
    ),
]
Documents = Annotated[list[Count], ROWS]
Lengths = Annotated[list[Count], Meta(max_length=1025)]
Words = Annotated[list[Word], Meta(min_length=4, max_length=4)]


class Shape(Struct, forbid_unknown_fields=True):
    pass


class NoMask(Shape, tag_field="kind", tag="none"):
    pass


class CausalMask(Shape, tag_field="kind", tag="causal"):
    pass


class CausalBottomRightMask(Shape, tag_field="kind", tag="causal-bottom-right"):
    pass


class WindowMask(Shape, tag_field="kind", tag="window"):
    alignment: Alignment
    left: Bound
    right: Bound


class KeyLengthMask(Shape, tag_field="kind", tag="key-length"):
    length: Count


class KeyPaddingMask(Shape, tag_field="kind", tag="key-padding"):
    valid: Bits


class DocumentMask(Shape, tag_field="kind", tag="document"):
    queries: Documents
    keys: Documents


class BooleanMask(Shape, tag_field="kind", tag="boolean"):
    """One string for each query, one character for each key: 1 = may attend."""

    rows: BitRows


Mask = (
    NoMask
    | CausalMask
    | CausalBottomRightMask
    | WindowMask
    | KeyLengthMask
    | KeyPaddingMask
    | DocumentMask
    | BooleanMask
)


class Output(Shape):
    denominator: Integer
    numerators: Annotated[list[Integer], COLUMNS]


class Row(Shape):
    """The result of one query in the model exact."""

    max: Annotated[
        Integer | None,
        Meta(description="largest unmasked score; null where every key is masked"),
    ]
    denominator: Annotated[Number, Meta(description="Σ 2^(s − max)")]
    output: Output
    log2_sum_exp: (
        Annotated[
            Integer | None,
            Meta(
                description="log₂ Σ 2^s, where that is an integer and the vector is about it; "
                "null: no key"
            ),
        ]
        | UnsetType
    ) = UNSET


class Enclosed(Shape):
    """Bounds of numbers, one for each column."""

    lower: Integers
    upper: Integers


class EnclosedNumber(Shape):
    """Bounds of a number as integers over 2^128."""

    lower: Integer
    upper: Integer


class EnclosedRow(Shape):
    """The result of one query in the model natural."""

    log_sum_exp: Annotated[
        EnclosedNumber | None, Meta(description="null where every key is masked")
    ]
    output: Enclosed


class EnclosedMatrices(Shape):
    lower: Annotated[list[IntegerMatrix], HEADS]
    upper: Annotated[list[IntegerMatrix], HEADS]


Rows = Annotated[list[Row], ROWS]


class Vector(Shape):
    id: Slug
    lean: LeanName
    theorem: Slug
    reason: Sentence


class Rule(Shape):
    """Numbers that are drawn from a name, as docs/vectors.md says."""

    drawn_from: Annotated[str, text("a path of slugs", "[a-z0-9]+(?:[-/_][a-z0-9]+)*", 120)]
    bound: Annotated[int, Meta(ge=0, le=_UP_TO, description="numerators lie between ± this")]
    one_in: Annotated[int, Meta(ge=1, le=_UP_TO, description="how few are drawn; others are 0")]
    over: Annotated[int, Meta(ge=1, le=_UP_TO, description="a power of 2 that divides them")]


class Sized(Vector):
    """Attention of one head or more."""

    q_len: Length
    kv_len: Length
    head_dim: Length
    value_dim: Length
    scale: Scale
    mask: Mask


class Alibi(Shape):
    """− slope·|i + shift − j| is added, second."""

    alignment: Alignment
    slope: Number


Softcap = Annotated[Number, Meta(description="cap·tanh(score / cap), first of all")]


class Attention(Sized, kw_only=True):
    q: Matrix
    k: Matrix
    v: Matrix
    softcap: Softcap | UnsetType = UNSET
    alibi: Alibi | UnsetType = UNSET
    bias: (
        Annotated[
            list[BiasRow],
            ROWS,
            Meta(description="a number to add to each score, third; null masks the pair"),
        ]
        | UnsetType
    ) = UNSET
    sink: (
        Annotated[Number, Meta(description="one more score in every softmax, without a value")]
        | UnsetType
    ) = UNSET


class ExactAttention(Attention):
    expected: Rows


class NaturalAttention(Attention):
    expected: Annotated[list[EnclosedRow], ROWS]


class Tangent(Attention, kw_only=True):
    """Attention, and the rates at which its inputs change."""

    tangent_q: Matrix
    tangent_k: Matrix
    tangent_v: Matrix
    tangent_slope: Annotated[Number, Meta(description="of the slope, if given")] | UnsetType = UNSET
    tangent_bias: (
        Annotated[Matrix, Meta(description="of bias, if given; of no influence where that is null")]
        | UnsetType
    ) = UNSET
    tangent_sink: Annotated[Number, Meta(description="of sink, if given")] | UnsetType = UNSET
    expected: Annotated[
        list[EnclosedRow],
        ROWS,
        Meta(description="bounds of the rates of the output and of the log-sum-exp"),
    ]


class Slopes(Shape):
    """− slopes[h]·|i + shift − j| is added in head h, second."""

    alignment: Alignment
    slopes: Numbers


Gradients = Annotated[
    Matrices | EnclosedMatrices,
    Meta(description="exact numbers (model exact), or bounds of them (model natural)"),
]
DropoutP = Annotated[Number, Meta(description="the probability to drop a weight")]
DropoutSeed = Annotated[Integer, Meta(description="from 0 to 2^63 − 1")]


def with_heads(expected: Callable[[PerHead], Any] | None = None) -> Callable[[type[T]], type[T]]:
    """A shape with a field for each of `PER_HEAD` more, which may be left out, and for the gradient
    by it, of the shape that `expected` says; None: without gradients."""

    def extend(shape: Any) -> Any:
        said = {name: (Numbers, row.meaning) for name, row in PER_HEAD.items()}
        if expected is not None:
            by = {f"expected_{n}": (expected(x), f"by {n}, if given") for n, x in PER_HEAD.items()}
            said |= by
        fields: list[Any] = [
            (name, Annotated[kind, Meta(description=meaning)] | UnsetType, UNSET)
            for name, (kind, meaning) in said.items()
        ]
        return defstruct(
            shape.__name__, fields, bases=(shape,), kw_only=True, forbid_unknown_fields=True
        )

    return extend


@with_heads(lambda row: Numbers if row.exact else Enclosed)
class Gradient(Sized, kw_only=True):
    num_heads: Length
    num_kv_heads: Length
    q: Matrices
    k: Matrices
    v: Matrices
    dropout_p: DropoutP | UnsetType = UNSET
    dropout_seed: DropoutSeed | UnsetType = UNSET
    keep: KeptHeads | UnsetType = UNSET
    grad_output: Matrices
    grad_log_sum_exp: Matrix
    expected_q: Gradients
    expected_k: Gradients
    expected_v: Gradients
    expected_bias: Gradients
    expected_slopes: Annotated[Enclosed, Meta(description="by slopes, if given")] | UnsetType = (
        UNSET
    )
    softcap: Softcap | UnsetType = UNSET
    alibi: Slopes | UnsetType = UNSET
    bias: (
        Annotated[
            list[Annotated[list[BiasRow], ROWS, SOME]],
            HEADS,
            SOME,
            Meta(
                description="a number to add to each score, third, of every head and query or "
                "one for all; null masks the pair"
            ),
        ]
        | UnsetType
    ) = UNSET
