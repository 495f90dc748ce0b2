"""Rounding to a format, as the Spec has it, against torch's casts and operations, bit for bit."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bridge.spec.format as spec
from bridge.conformance.tolerances.rounding_model import FORMATS
from bridge.spec.core import EXACT

DTYPES = {
    torch.float64: spec.binary64(),
    torch.float32: spec.binary32(),
    torch.float16: spec.binary16(),
    torch.bfloat16: spec.bfloat16(),
}
LARGEST = {dtype: spec.format_largest(known, num=EXACT) for dtype, known in DTYPES.items()}
SMALL = (torch.float16, torch.bfloat16)
IDS = [str(dtype).removeprefix("torch.") for dtype in DTYPES]


def round_by_spec(dtype: torch.dtype, x: Fraction) -> Fraction:
    return spec.format_round(math.floor, DTYPES[dtype], x, num=EXACT)


def result(dtype: torch.dtype, x: Fraction, *, negative: bool) -> float:
    """The right result of a cast of x: infinity if it overflows (nothing up to the largest number
    does, `round-finite`), and the sign of x on 0, which a fraction does not have."""
    sign = -1 if negative else 1
    if abs(x) > LARGEST[dtype] and spec.format_overflows(math.floor, DTYPES[dtype], x, num=EXACT):
        return math.copysign(math.inf, sign)
    return math.copysign(float(round_by_spec(dtype, x)), sign)


def positive(dtype: torch.dtype) -> torch.Tensor:
    """All numbers of a format of 16 bits from 0 to infinity, in order."""
    count = int(torch.tensor(math.inf, dtype=dtype).view(torch.int16)) + 1
    return torch.arange(count, dtype=torch.int16).view(dtype)


def differing_numbers(dtype: torch.dtype, inputs: torch.Tensor) -> list[float]:
    """Of these numbers of a larger format, those that are cast otherwise than they are rounded."""
    cast = inputs.to(dtype).double()
    found = []
    for x, y in zip(inputs.double().tolist(), cast.tolist(), strict=True):
        wanted = result(dtype, Fraction(x), negative=math.copysign(1, x) < 0)
        if wanted != y or math.copysign(1, wanted) != math.copysign(1, y):
            found.append(x)
    return found


def between(numbers: torch.Tensor) -> torch.Tensor:
    """The midpoint of each two neighbours, and its neighbours on both sides in the format that the
    numbers are stored in. Past the largest the neighbour would be a power of 2."""
    below, above = numbers[:-1].double(), numbers[1:].double()
    if above[-1].isinf():
        above[-1] = 2 * below[-1] - below[-2]
    middle = ((below + above) / 2).to(numbers.dtype)
    zero, infinite = torch.zeros_like(middle), torch.full_like(middle, math.inf)
    return torch.cat([middle.nextafter(zero), middle, middle.nextafter(infinite)])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_numbers_of_16_bits(dtype: torch.dtype) -> None:
    """Each number of the format, of both signs, is left as it is (`round-number`)."""
    numbers = positive(dtype)[:-1].float()
    assert not differing_numbers(dtype, torch.cat([numbers, -numbers]))


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", SMALL, ids=str)
def test_between_numbers_of_16_bits(dtype: torch.dtype) -> None:
    """Halfway between any two neighbours, from 0 to infinity, and just beside it."""
    numbers = positive(dtype).float()
    assert not differing_numbers(dtype, between(numbers))
    some = numbers[torch.arange(0, len(numbers) - 1, 17)]
    assert not differing_numbers(dtype, -between(some))


def some_numbers() -> torch.Tensor:
    """Of each exponent of float32 neighbours at its ends and somewhere, in order."""
    source = random.Random("formats")
    places = []
    for exponent in range(255):
        start = source.randrange(2, 2**23 - 4)
        significands = (0, 1, 2, start, start + 1, 2**23 - 2, 2**23 - 1)
        places += [exponent << 23 | significand for significand in significands]
    return torch.tensor([*places, 255 << 23], dtype=torch.int32).view(torch.float32)


def test_float32_between_neighbours() -> None:
    """Numbers of float64 between those of float32: normal, subnormal, past the largest."""
    numbers = some_numbers().double()
    inputs = torch.cat([numbers[:-1], between(numbers)])
    assert not differing_numbers(torch.float32, torch.cat([inputs, -inputs]))


@given(st.fractions(), st.integers(-1150, 1023))
def test_float64_is_a_quotient(x: Fraction, exponent: int) -> None:
    """Torch has no wider dtype; Python's quotient of integers is rounded correctly."""
    y = x * Fraction(2) ** exponent
    try:
        wanted = float(y)
    except OverflowError:
        wanted = math.inf if y > 0 else -math.inf
    assert result(torch.float64, y, negative=y < 0) == wanted


@pytest.mark.parametrize("sign", [1, -1])
def test_float64_halfway(sign: int) -> None:
    least = Fraction(5e-324)
    for n in (0, 1, 2, 3, 2**52 - 1, 2**52, 2**53 - 1):
        y = sign * (n + Fraction(1, 2)) * least
        assert result(torch.float64, y, negative=y < 0) == float(y)


Operation = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
OPERATIONS: dict[str, Operation] = {
    "sum": torch.add,
    "difference": torch.sub,
    "product": torch.mul,
    "quotient": torch.div,
}
EXACTLY: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "sum": lambda a, b: a + b,
    "difference": lambda a, b: a - b,
    "product": lambda a, b: a * b,
    "quotient": lambda a, b: a / b,
}


def pairs(dtype: torch.dtype) -> Iterator[tuple[float, float]]:
    """Numbers whose products and quotients are normal, subnormal, 0 and infinite."""
    source = random.Random(f"operations {dtype}")
    lowest = DTYPES[dtype].least
    for _ in range(1500):
        a, b = (
            math.ldexp(source.choice((-1, 1)) * source.uniform(1, 2), source.randrange(*ends))
            for ends in ((lowest, -lowest // 2), (lowest // 2, 12))
        )
        yield a, b


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_operations(dtype: torch.dtype, operation: str) -> None:
    """Torch's operations on a processor are the exact ones, rounded: the numbers that round."""
    a, b = torch.tensor(list(pairs(dtype)), dtype=torch.float64).to(dtype).unbind(1)
    keep = a.isfinite() & (b != 0)
    a, b = a[keep], b[keep]
    for x, y, z in zip(
        a.tolist(), b.tolist(), OPERATIONS[operation](a, b).double().tolist(), strict=True
    ):
        exact = EXACTLY[operation](Fraction(x), Fraction(y))
        assert result(dtype, exact, negative=math.copysign(1, z) < 0) == z


WRONG: dict[str, Sequence[tuple[str, Callable[..., object]]]] = {
    "half up": [("nearest", lambda floor, x, num: floor(x + Fraction(1, 2)))],
    "truncated": [("nearest", lambda floor, x, num: int(x))],
    "no least exponent": [
        ("format_last_place", lambda floor, f, x, num: (
            spec.exponent(floor, abs(x), num=num) - f.precision + 1))
    ],
    "one bit less": [
        ("format_last_place", lambda floor, f, x, num: max(
            spec.exponent(floor, abs(x), num=num) - f.precision + 2, f.least))
    ],
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", SMALL, ids=str)
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rounding_is_noticed(
    wrong: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = positive(dtype).float()[:3000]
    assert not differing_numbers(dtype, between(numbers))
    for name, function in WRONG[wrong]:
        monkeypatch.setattr(spec, name, function)
    assert differing_numbers(dtype, between(numbers))


@pytest.mark.parametrize("dtype", DTYPES, ids=IDS)
def test_sizes(dtype: torch.dtype) -> None:
    """The largest number, the smallest normal and subnormal one, the unit roundoff: as torch and
    the rounding models have them."""
    known, info = DTYPES[dtype], torch.finfo(dtype)
    model = FORMATS[str(dtype).removeprefix("torch.")]
    assert spec.format_largest(known, num=EXACT) == Fraction(info.max)
    assert spec.format_smallest_normal(known, num=EXACT) == Fraction(info.smallest_normal)
    assert Fraction(model.smallest_normal) == Fraction(info.smallest_normal)
    assert Fraction(model.smallest_subnormal) == Fraction(2) ** known.least
    assert Fraction(model.unit) == Fraction(2) ** -known.precision
    assert known.least + known.precision <= known.top
