"""The elementary functions are as exact as docs/special.md says."""

import pytest

from tests.numpy import elementary_accuracy

# Units in the last place, where more than BOUND.
BOUND = 4
LOOSE = {("sinh", "float32"): 30, ("cosh", "float32"): 30}


CASES = [(name, dtype) for dtype, names in elementary_accuracy.FUNCTIONS.items() for name in names]


@pytest.mark.sample(one_in=64)
@pytest.mark.parametrize(("name", "dtype"), CASES)
def test_accuracy(name, dtype):
    worst, where = elementary_accuracy.measure(name, dtype)
    assert worst <= LOOSE.get((name, dtype), BOUND), where


def test_the_documented_table_has_all_functions():
    text = elementary_accuracy.DOC.read_text()
    names = {name for names in elementary_accuracy.FUNCTIONS.values() for name in names}
    assert all(f"| {name} |" in text for name in names)
