"""For pytest: `attention_check` judges a function; `attention_vector` gives a test one vector.

Nothing is imported, PyTorch included, before a test asks for one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from bridge.verdict import Verdict

_MARK = (
    "attention(dtypes=['float32'], features=[], families=[], vectors=[], device='cpu', "
    "rounding_model='generous'): the vectors that the fixture attention_vector gives a test."
)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test for each vector and dtype, where the fixture `attention_vector` is asked for."""
    if "attention_vector" not in metafunc.fixturenames:
        return
    from bridge import interpreting

    interpreting.settle()
    from bridge.conformance.requests.one_vector import one_by_one

    mark = metafunc.definition.get_closest_marker("attention")
    if mark is not None and mark.args:
        raise pytest.UsageError("pytest.mark.attention takes its arguments by name")
    try:
        found = one_by_one(**({} if mark is None else mark.kwargs))
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(f"pytest.mark.attention: {error}") from error
    ids = [f"{one.id}-{one.dtype}" for one in found]
    metafunc.parametrize("attention_vector", found, ids=ids)


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A test that is given a vector, ends well and has judged nothing fails."""
    given = pyfuncitem.funcargs.get("attention_vector")
    before = getattr(given, "judged", None)
    result = yield
    if before is not None and getattr(given, "judged", None) == before:
        pytest.fail("the test judged nothing: it has to call attention_vector.judge", pytrace=False)
    return result


@pytest.fixture
def attention_check() -> Callable[..., Verdict]:
    """`bridge.check`, which fails the test with the whole report."""
    from bridge import check

    def check_or_fail(function: Any, **options: Any) -> Verdict:
        verdict = check(function, **options)
        if not verdict:
            pytest.fail(str(verdict), pytrace=False)
        return verdict

    return check_or_fail
