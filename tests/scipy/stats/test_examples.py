"""The examples in the documentation of distributions: all functions have one, and it is right."""

import pytest

from tests.docstrings import check_function
from weft.scipy import stats
from weft.scipy.stats.examples import POINTS, RESULTS

FUNCTIONS = {f"{n}.{kind}": getattr(getattr(stats, n), kind) for n in POINTS
             for kind in getattr(stats, n).__all__}  # fmt: skip


def test_every_function_has_an_example():
    assert FUNCTIONS.keys() == RESULTS.keys()


@pytest.mark.sample(one_in=10)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_of_a_function_is_right(name):
    assert check_function(name, FUNCTIONS[name]) == 2
